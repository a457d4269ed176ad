"""Tables that are in memory already, of pandas, polars or Arrow, as the columns of text they hold.

A file and the same table in memory are read alike: what is checked afterwards is one thing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fairbench.core.errors import DataError

Table = Any  # a DataFrame of pandas or polars, or whatever gives its columns as Arrow does


def is_table(source: object) -> bool:
    """Say whether something is a table in memory."""
    named = hasattr(source, "columns") or hasattr(source, "column_names")
    return isinstance(source, pd.DataFrame) or (named and hasattr(source, "__arrow_c_stream__"))


def names_of_table(source: Table) -> list[str]:
    """Return the names of a table's columns as texts."""
    names = source.column_names if hasattr(source, "column_names") else source.columns
    return [str(name) for name in names]


def texts_of_table(
    source: Table, file: str, *, only: Sequence[str] | None = None, numeric: Collection[str] = ()
) -> pd.DataFrame:
    """Return the columns of a table as strings, empty where there is no value.

    Truths are ``True`` and ``False``, and whole numbers are without a point, as in a file. The
    index of a DataFrame of pandas is left out: all columns have the same.

    Parameters
    ----------
    file : what messages call the table.
    only : the columns to keep, all by default.
    numeric : columns that stay numbers if they are.

    Raises
    ------
    DataError : it is no table; a column of lists or records.
    """
    if not is_table(source):
        raise DataError(
            f"{file}: a {type(source).__name__} is no table: give a DataFrame of pandas or polars, "
            "or a table of Arrow"
        )
    frame = frame_of(source)
    frame = frame.set_axis(names_of_table(frame), axis=1)
    kept = list(frame) if only is None else list(only)
    return pd.DataFrame({
        name: _numbers_or_texts(frame[name], file, name in numeric) for name in kept
    })  # fmt: skip


def frame_of(source: Table) -> pd.DataFrame:
    """Return a table as a DataFrame of pandas."""
    if isinstance(source, pd.DataFrame):
        return source
    from pyarrow import table

    frame: pd.DataFrame = table(source).to_pandas()
    return frame


def _numbers_or_texts(column: pd.Series, file: str, numeric: bool) -> pd.Series:
    plain = column.reset_index(drop=True)
    if numeric and plain.dtype.kind in "iuf":
        return plain.astype(np.float64)
    try:
        codes, values = pd.factorize(plain, use_na_sentinel=False)
    except TypeError as error:
        raise DataError(
            f"{file}: column '{column.name}' holds lists or records, not a value in each row"
        ) from error
    texts = np.array([text_of(value) for value in values] or [""], dtype=object)
    return pd.Series(texts[codes], dtype=object).astype(str)


def text_of(value: object) -> str:
    """Return a value as it would be written in a file."""
    if value is None or value is pd.NA or value is pd.NaT or value != value:
        return ""
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return f"{float(value):.0f}"
    return str(value)
