"""The shape of a run's tables: which columns there are, each once, of texts or of numbers.

A checksum shows that a table is what somebody stored, and not that it was this project. What is
asked here is what every reader of these tables relies on.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Container, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fairbench.core.files import DamagedError
from fairbench.evaluation.columns import SETTINGS, STATISTICS, STATUSES, TEXTS

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_ROWS = ("variant", "metric", "statistic", "attribute", "group", "n", "status", "reason")
METRICS = (*_ROWS, "repeat", "fold", "value")
SUMMARY = (*_ROWS, "mean", "sd", "lower", "upper", "binning", "feature")
# Columns of a run's summary in which an empty text is a text, and not a missing one.
SUMMARY_TEXTS = ("variant", "attribute", "group", "estimand", "reason", "feature", "outcome")
_TEXTS = {*TEXTS, "estimand"}
_PLACES = ("repeat", "fold")  # which every row has
_LARGEST = 2**53  # beyond which not every whole number is one of floating point
_COUNTS = tuple(name for name, dtype in SETTINGS.items() if dtype == "Int64")
# Texts that every row has one of; of the last two, one that there is.
_ALWAYS = ("variant", "metric", "attribute", "group", "statistic", "status")
_VALID = {"statistic": STATISTICS, "status": STATUSES}


def check_columns(there: Container[str], wanted: Sequence[str]) -> None:
    """Check that columns are there.

    Raises
    ------
    DamagedError : one is not.
    """
    if missing := [name for name in wanted if name not in there]:
        raise DamagedError(f"no column {missing[0]}")


def check_metrics(table: pa.Table, wanted: Sequence[str] = METRICS) -> None:
    """Check a long table of metrics, or some of its columns.

    Raises
    ------
    DamagedError : a column is missing, there twice, or of another type; or a row has no metric.
    """
    check_columns(table.column_names, wanted)
    check_numbers(table, but=_TEXTS)
    for name in _TEXTS & {*table.column_names}:
        _check_texts(name, table[name])
    for name in {*_PLACES, *_COUNTS} & {*table.column_names}:
        whole = str(table[name].type) in (*_INTEGERS, *(["null"] if name in _COUNTS else []))
        if not whole or (name in _PLACES and table[name].null_count):
            raise DamagedError(f"column {name} is not of whole numbers")


_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_NUMBERS = (*_INTEGERS, "halffloat", "float", "double", "null")


def check_numbers(table: pa.Table, but: Collection[str] = ()) -> None:
    """Check that the columns are different ones, all of numbers, as pandas reads them.

    Raises
    ------
    DamagedError : they are not.
    """
    from pyarrow import compute

    check_plain(table)
    for name in table.column_names:
        if name in but:
            continue
        if _kind(table[name]) not in _NUMBERS:
            raise DamagedError(f"column {name} is of {table[name].type}, not of numbers")
        if str(table[name].type) in _INTEGERS:
            ends = compute.min_max(table[name]).as_py()
            if max(abs(ends["min"] or 0), abs(ends["max"] or 0)) > _LARGEST:
                raise DamagedError(f"column {name} has a number beyond {_LARGEST:,}")


def check_plain(table: pa.Table) -> None:
    """Check that the columns are different ones, of single values, and the same to pandas.

    Raises
    ------
    DamagedError : one is there twice, has lists, or is changed by what pandas noted of the table.
    """
    _check_plain(table.schema.serialize().to_pybytes())


@lru_cache(maxsize=256)
def _check_plain(written: bytes) -> None:
    """Check a schema as it is written: thousands of runs share one, and pandas reads it slowly."""
    import pyarrow as pa

    schema = pa.ipc.read_schema(pa.py_buffer(written))
    names = schema.names
    if len({*names}) < len(names):
        raise DamagedError("a column is there twice")
    if nested := [field.name for field in schema if pa.types.is_nested(field.type)]:
        raise DamagedError(f"column {nested[0]} has several values in a row")
    notes = (schema.metadata or {}).get(b"pandas")
    if notes is None:
        return
    index = json.loads(notes)["index_columns"]
    plain = [entry for entry in index if isinstance(entry, dict) and not entry["start"]]
    if len(index) > 1 or len(plain) < len(index):
        raise DamagedError("pandas' notes of it have an index")
    if list(schema.empty_table().to_pandas().columns) != names:
        raise DamagedError("pandas' notes of it are of another table")


def _check_texts(name: str, column: pa.ChunkedArray) -> None:
    if _kind(column) not in ("string", "large_string", *(["null"] if name not in _ALWAYS else [])):
        raise DamagedError(f"column {name} is of {column.type}, not of texts")
    if name in _ALWAYS:
        _check_values(name, _different(column))


def _kind(column: pa.ChunkedArray) -> str:
    """Return the type of a column's values, whether they are stored as a dictionary or not."""
    import pyarrow as pa

    kind = column.type
    return str(kind.value_type if pa.types.is_dictionary(kind) else kind)


def _different(column: pa.ChunkedArray) -> Iterator[Any]:
    """Yield the different values of a column of texts."""
    yield from column.unique().to_pylist()


def _check_values(name: str, values: Iterator[Any]) -> None:
    valid = _VALID.get(name)
    for value in values:
        if not isinstance(value, str) or not (valid is None or value in valid):
            raise DamagedError(f"column {name} has {str(value)[:40]!r}")


def check_summary(found: pd.DataFrame) -> None:
    """Check the means of a run's metrics.

    Raises
    ------
    DamagedError : a column is missing or of another type, or a row has no metric.
    """
    check_columns(found, SUMMARY)
    for name, column in found.items():
        if name not in _TEXTS and found[name].dtype.kind not in "biuf":
            raise DamagedError(f"column {name} is not of numbers")
        if name in _ALWAYS:
            _check_values(str(name), iter(column.unique()))
        elif name in SETTINGS and name in _TEXTS:
            _check_values(str(name), iter(column.dropna().unique()))
