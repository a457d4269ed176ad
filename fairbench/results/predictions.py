"""Predictions of a finished run, and the rows they are about: every bit of both is kept.

The rows of a split's folds are the same for every run of that split and are stored once; a run's
own file has the predictions alone, in the order of those rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from fairbench.core.errors import UserError
from fairbench.core.files import (
    UNREADABLE,
    DamagedError,
    most_memory,
    parquet_bytes,
    read_parquet,
    set_aside,
    write_bytes,
)
from fairbench.core.safe_open import read_bytes
from fairbench.results.cells import plain_id
from fairbench.results.pack_tables import unpacked
from fairbench.results.packs import is_pack, open_pack
from fairbench.results.record import are_strings
from fairbench.results.shapes import check_numbers

KEYS = ("repeat", "fold", "part", "row")
VALIDATION, TEST = 1, 2
_META = b"fairbench"
_TYPES = {"repeat": np.int16, "fold": np.int16, "part": np.int8, "row": np.int32}


def rows_path(results: Path, split: str) -> Path:
    """Return where the rows of a split are kept."""
    return results / "splits" / f"{plain_id(split)}.parquet"


def stored_predictions(results: Path, table: pd.DataFrame) -> tuple[bytes, str]:
    """Return the file of a run's predictions; store the rows of its split unless they are there.

    Parameters
    ----------
    table : columns `KEYS` (part 1 is validation, 2 test), then one a kind of prediction.

    Returns
    -------
    The content, and the digest of the split's rows, which :func:`read_predictions` needs.
    """
    rows = {name: table[name].to_numpy(_TYPES[name]) for name in KEYS}
    split = _digest(rows)
    if not rows_stored(results, split):
        write_bytes(rows_path(results, split), parquet_bytes(pa.table(rows)), shows=True)
    columns = {
        str(name): _compact(table[name].to_numpy(np.float64)) for name in table if name not in KEYS
    }
    stored_as = _stored_names(columns)
    stored = pa.table({name: columns[name] for name in dict.fromkeys(stored_as.values())})
    meta = {_META: json.dumps(stored_as).encode()}
    return parquet_bytes(stored.replace_schema_metadata(meta)), split


def _digest(rows: Mapping[str, NDArray[Any]]) -> str:
    """Return the digest that the rows of a split are named by."""
    return hashlib.sha256(b"".join(rows[name].tobytes() for name in KEYS)).hexdigest()[:20]


def rows_stored(results: Path, split: str) -> bool:
    """Say whether the rows of a split are stored; a damaged file is set aside."""
    try:
        _read_rows(results, split)
    except FileNotFoundError:
        return False
    except UNREADABLE:
        set_aside(rows_path(results, split), "it is written again")
        return False
    return True


def _stored_names(columns: Mapping[str, NDArray[Any]]) -> dict[str, str]:
    """Return the stored name of each column: its own, or that of an earlier equal column."""
    first: dict[bytes, str] = {}
    return {name: first.setdefault(values.tobytes(), name) for name, values in columns.items()}


def _compact(values: NDArray[np.float64]) -> NDArray[Any]:
    """Return values in the smallest type that represents every value exactly."""
    for kind in (np.int8, np.float32):
        with np.errstate(invalid="ignore", over="ignore"):
            smaller = values.astype(kind)
        if np.array_equal(smaller.astype(np.float64), values, equal_nan=True):
            return smaller
    return values


def read_predictions(
    results: Path, table: pa.Table, split: str, columns: Sequence[str] | None = None
) -> pd.DataFrame:
    """Return the predictions that were stored, or some of their columns, as float64.

    Raises
    ------
    UserError : the rows of the split are missing or damaged.
    ValueError, LookupError, TypeError : the content is that of another file.
    """
    stored_as = json.loads(table.schema.metadata[_META])
    check_numbers(table)
    if not are_strings(stored_as) or {*KEYS} & {*stored_as}:
        raise DamagedError("its notes name no columns of predictions")
    predictions = pd.DataFrame(
        {
            name: table[stored_name].to_numpy().astype(np.float64)
            for name, stored_name in stored_as.items()
            if columns is None or name in columns
        }
    )
    try:
        rows = _rows(results, split)
    except UNREADABLE as error:
        raise UserError(
            f"{rows_path(results, split)} is missing or damaged: repeat the command of a run of "
            "this split, which fits nothing that is in the store"
        ) from error
    if len(rows) != len(predictions):
        raise ValueError(f"{len(predictions)} rows, and {len(rows)} in its split")
    return pd.concat([rows, predictions], axis="columns")


def split_table(results: Path, split: str) -> pa.Table:
    """Return the rows of a split as they are stored, in a folder or a pack."""
    if is_pack(results):
        return unpacked(open_pack(results).table("splits", split))
    path = rows_path(results, split)
    return read_parquet(read_bytes(path, most_memory()), path.name)


def damaged_rows(results: Path, split: str) -> Iterator[Path]:
    """Yield the file of a split's rows, if it is missing or not as it was written."""
    try:
        _read_rows(results, split)
    except UNREADABLE:
        yield rows_path(results, split)


@lru_cache(maxsize=4)
def _rows(results: Path, split: str) -> pd.DataFrame:
    return _read_rows(results, split)


def _read_rows(results: Path, split: str) -> pd.DataFrame:
    """Return the rows of a split, after checking that they are those that its digest names."""
    table = split_table(results, split)
    check_numbers(table)
    rows = table.to_pandas()
    if any(rows[name].dtype != _TYPES[name] for name in KEYS) or (rows["row"] < 0).any():
        raise DamagedError("its columns are not those of a split")
    if _digest({name: rows[name].to_numpy() for name in KEYS}) != split:
        raise DamagedError("the rows are not those that it is named by")
    return rows
