"""Tables that are in memory already, of pandas, polars or Arrow, as the columns of text they hold.

A file and the same table in memory are read alike: what is checked afterwards is one thing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.errors import DataError, UserError
from fairbench.core.text import count, quoted, said
from fairbench.data.columns import check_columns, text_of, unique_names, without_copies

Table = Any  # a DataFrame of pandas or polars, or whatever gives its columns as Arrow does


def is_table(source: object) -> bool:
    """Return whether something is a table in memory."""
    has_names = hasattr(source, "columns") or hasattr(source, "column_names")
    return isinstance(source, pd.DataFrame) or (has_names and hasattr(source, "__arrow_c_stream__"))


def names_of_table(source: Table) -> list[str]:
    """Return the names of a table's columns as texts."""
    names = source.column_names if hasattr(source, "column_names") else source.columns
    return [str(name) for name in names]


def texts_of_table(
    source: Table,
    file: str,
    named: Sequence[str] = (),
    *,
    every: bool = False,
    numeric: Collection[str] = (),
) -> tuple[pd.DataFrame, Sequence[str]]:
    """Return columns of a table as strings; missing values are empty. Also notes on how it is read.

    Truths are ``True`` and ``False``, and whole numbers are without a point, as in a file. The
    index of a DataFrame of pandas is left out: all columns have the same.

    Parameters
    ----------
    file : the name of the table in messages.
    named : the columns that the table must have; others are dropped unless `every` is true.
    numeric : columns that stay numbers if they are.

    Raises
    ------
    DataError : it is no table; a column of lists or records.
    UserError : a column that it does not have.
    """
    if not is_table(source):
        raise DataError(said("data", "no_table", file=file, kind=type(source).__name__))
    found = names_of_table(source)
    columns = check_columns(file, named, found, every=every)
    frame = frame_of(source).set_axis(unique_names(found), axis=1)
    read = pd.DataFrame({
        column: _numbers_or_texts(frame[column], file, not {column, name}.isdisjoint(numeric))
        for column, name in columns.items()
    })  # fmt: skip
    return without_copies(read, columns, named, file)


def frame_of(source: Table) -> pd.DataFrame:
    """Return a table as a DataFrame of pandas; whole numbers with gaps stay whole numbers."""
    if isinstance(source, pd.DataFrame):
        return source
    from pyarrow import table

    return pd.DataFrame(table(source).to_pandas(integer_object_nulls=True))


def _numbers_or_texts(column: pd.Series, file: str, numeric: bool) -> pd.Series:
    """Return a column as numbers if it is numeric, otherwise as texts."""
    plain = column.reset_index(drop=True)
    of_values: Any = getattr(plain.dtype, "subtype", plain.dtype)  # of a sparse column
    if of_values.kind == "f" and of_values.itemsize == 4:
        # The decimals that a file of them holds: of 0.3 the double is another than of its bits.
        decimals = plain.to_numpy(np.float32, na_value=np.nan).astype(str)
        plain = pd.Series(decimals.astype(np.float64))
    if numeric and plain.dtype.kind in "iuf":
        return plain.astype(np.float64)
    try:
        codes, values = pd.factorize(plain, use_na_sentinel=False)
    except TypeError as error:
        raise DataError(said("data", "holds_lists", file=file, name=column.name)) from error
    texts = np.array([text_of(value) for value in values] or [""], dtype=object)
    return pd.Series(texts[codes], dtype=object).astype(str)


def as_array(values: Any) -> NDArray[Any]:
    """Return what a user gives as an array of the same values, of any shape.

    Objects are None where nothing is: under NumPy's mask, and where pandas, polars or Arrow have a
    gap. Whole numbers beside a gap stay whole numbers; as floats, two of 16 digits could be one.

    Parameters
    ----------
    values : a list, or an array, column or table of NumPy, pandas, polars or Arrow.
    """
    if isinstance(values, np.ma.MaskedArray):
        hidden = np.ma.getmaskarray(values)
        return _gapped(values.data, hidden)
    gaps = getattr(values, "null_count", 0)
    if gaps() if callable(gaps) else gaps:  # a column of polars or of Arrow
        given = values.to_list() if hasattr(values, "to_list") else values.to_pylist()
        array = np.empty(len(given), object)
        array[:] = given  # one by one: each may be a list
        return _with_none(array)
    if isinstance(values, list | tuple):
        # As objects: NumPy would make a missing label in a list of texts the text "None".
        return _with_none(np.asarray(values, object))
    own_type = hasattr(values, "isna") and not isinstance(getattr(values, "dtype", 0), np.dtype)
    if own_type and np.any(values.isna()):  # a type of pandas' own
        return _with_none(np.asarray(values.astype(object)))
    array = np.asarray(values)
    return _with_none(array) if array.dtype == object else array


def _with_none(array: NDArray[Any]) -> NDArray[Any]:
    """Return objects with None for whatever stands for a missing value."""
    missing = np.asarray(pd.isna(array))
    if pd.api.types.infer_dtype(array.ravel()).startswith("mixed"):  # as one from a masked array is
        masked = [value is np.ma.masked for value in array.flat]
        missing |= np.reshape(masked, array.shape)
    return _gapped(array, missing)


def _gapped(array: NDArray[Any], missing: NDArray[np.bool_]) -> NDArray[Any]:
    """Return an array as objects with None where there is no value, if anywhere."""
    if missing.any():
        array = array.astype(object)
        array[missing] = None
    return array


def check_exact(labels: Any, name: str) -> None:
    """Refuse labels that are floats too large to tell whole numbers apart, as ids with gaps become.

    Raises
    ------
    UserError : there is one; the message has its row.
    """
    if getattr(getattr(labels, "dtype", None), "kind", "") == "f":
        values = np.asarray(labels, float)
        inexact = np.isfinite(values) & (np.abs(values) >= _EXACT)
        if inexact.any():
            row = int(inexact.argmax())
            raise UserError(said("data", "inexact", name=name, value=values[row], row=row))


_EXACT = 2**53  # up to which every whole number is a float


def by_text(columns: Iterable[tuple[object, Any]], where: str) -> dict[str, Any]:
    """Return columns by their names as texts.

    Raises
    ------
    UserError : two columns of one name, such as 1 and "1": either would be lost.
    """
    named: dict[str, Any] = {}
    for name, column in columns:
        if str(name) in named:
            raise UserError(f"{where}: 2 columns are named {quoted(str(name))}: rename one")
        named[str(name)] = column
    return named


def columns_of_table(source: Table, where: str) -> dict[str, Any]:
    """Return a table's columns by name: of pandas with their index, of others without any."""
    columns = by_text(frame_of(source).items(), where)
    if isinstance(source, pd.DataFrame):
        return columns
    return {name: as_array(column) for name, column in columns.items()}


def is_by_value(value: object, table: Table) -> bool:
    """Return whether a column is given by value, or several are, and not by name.

    Parameters
    ----------
    table : the table whose rows it may have; anything else if there is none.
    """
    if isinstance(value, str | bytes | Path) or not hasattr(value, "__len__"):
        return False
    if isinstance(value, set | frozenset):
        return not all(isinstance(item, str) for item in value)
    if isinstance(value, list | tuple):
        if not all(isinstance(item, str) for item in value):
            return True
        return is_table(table) and not _lists_columns(value, names_of_table(table), len(table))
    return len(value) > 0 or not isinstance(value, Mapping)


def with_columns(
    source: Table, file: str, given: Mapping[str, Any]
) -> tuple[pd.DataFrame, dict[str, tuple[str, ...]]]:
    """Return a table with further columns that are given by value, and what they are called.

    A Series of pandas belongs to the rows by its index; what has none, by its order.

    Parameters
    ----------
    file : the name of the table in messages.
    given : option -> a Series, an array or a list of values, a DataFrame, or a list of these and
        of names of columns.

    Returns
    -------
    The table, and for each option the names of its columns: of a Series its own name, otherwise
    that of the option.

    Raises
    ------
    UserError : other rows than the table's, or more than one dimension.
    """
    frame, indexed = frame_of(source), isinstance(source, pd.DataFrame)
    frame = frame.set_axis(names_of_table(frame), axis=1)
    added: dict[str, pd.Series] = {}
    names: dict[str, tuple[str, ...]] = {}
    for option, value in given.items():
        called = []
        for name, part in _listed_columns(value, option, names_of_table(frame), len(frame)):
            if isinstance(part, str):
                called.append(part)
                continue
            column = _align(part, option, frame, file)
            if isinstance(part, pd.Series) and not indexed and not part.index.equals(frame.index):
                raise UserError(said("data", "no_index", option=option, file=file))
            if not (name in frame and column.equals(frame[name])):
                while name in frame or name in added:
                    name += f" ({option}=)"
                added[name] = column
            called.append(name)
        names[option] = tuple(called)
    return frame.assign(**added), names


def _listed_columns(
    value: Any, option: str, names: Sequence[str], rows: int
) -> Iterator[tuple[str, Any]]:
    """Yield the columns that an option lists, what each is called, and its values or its name."""
    if isinstance(value, pd.DataFrame) or is_table(value):
        yield from columns_of_table(value, f"{option}=").items()
    elif isinstance(value, Mapping):
        yield from by_text(value.items(), f"{option}=").items()
    elif isinstance(value, list | tuple) and _lists_columns(value, names, rows):
        for item in value:
            named = isinstance(item, str)
            yield from [("", item)] if named else _listed_columns(item, option, names, rows)
    else:
        name = getattr(value, "name", None)
        yield name if isinstance(name, str) and name else option, value


def _lists_columns(value: Sequence[Any], names: Sequence[str], rows: int) -> bool:
    """Return whether a list is of columns, by name or by value, and not the values of one."""
    if all(isinstance(item, str) for item in value):
        return len(value) != rows or {*value} <= {*names}
    return any(hasattr(item, "__len__") and not isinstance(item, str | bytes) for item in value)


def _align(value: Any, option: str, frame: pd.DataFrame, file: str) -> pd.Series:
    """Return a column given by value in the order of a table's rows."""
    if isinstance(value, pd.Series):
        return _align_by_index(value, option, frame, file)
    try:
        array = as_array(value)
    except ValueError:  # lists of several lengths
        array = np.empty((len(value), 0), object)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        shape = " x ".join(map(str, array.shape))
        raise UserError(said("data", "array", option=option, shape=shape))
    if len(array) != len(frame):
        sizes = {"values": count(len(array)), "rows": count(len(frame))}
        raise UserError(said("data", "other_length", option=option, file=file, **sizes))
    return pd.Series(array, index=frame.index)


def _align_by_index(column: pd.Series, option: str, frame: pd.DataFrame, file: str) -> pd.Series:
    """Return a series in the order of a table's index; refuse one of another index."""
    if column.index.equals(frame.index):
        return column
    problem = f"{option}= is a Series"
    if column.index.is_unique and frame.index.is_unique:
        lacking = ~frame.index.isin(column.index)
        if not lacking.any():
            return column.reindex(frame.index)
        lacking_label = quoted(frame.index[int(lacking.argmax())], 30)
        problem += f" without index {lacking_label}, which a row of {file} has"
    else:
        problem += f" of another index than {file}, and an index repeats"
    raise UserError(said("data", "other_index", problem=problem, option=option))
