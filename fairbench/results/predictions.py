"""Predictions of a finished run, and the rows they are about: every bit of both is kept.

The rows of a split's folds are the same for every run of that split and are stored once; a run's
own file has the predictions alone, in the order of those rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fairbench.core.errors import UserError
from fairbench.core.files import atomic

KEYS = ("repeat", "fold", "part", "row")
VALIDATION, TEST = 1, 2
_META = b"fairbench"
_TYPES = {"repeat": np.int16, "fold": np.int16, "part": np.int8, "row": np.int32}
_BYTES = {"compression": "zstd", "compression_level": 9}


def rows_path(results: Path, split: str) -> Path:
    """Return where the rows of a split are kept."""
    return results / "splits" / f"{split}.parquet"


def write_predictions(results: Path, path: Path, table: pd.DataFrame) -> str:
    """Store a run's predictions, and the rows of its split unless they are there.

    Parameters
    ----------
    table : columns `KEYS` (part 1 is validation, 2 test), then one a kind of prediction.

    Returns
    -------
    The digest of the split's rows, which :func:`read_predictions` needs.
    """
    rows = {name: table[name].to_numpy(_TYPES[name]) for name in KEYS}
    split = hashlib.sha256(b"".join(values.tobytes() for values in rows.values())).hexdigest()[:20]
    if not (shared := rows_path(results, split)).exists():
        with atomic(shared) as temporary:
            pq.write_table(pa.table(rows), temporary, **_BYTES)
    columns = {str(n): _compact(table[n].to_numpy(np.float64)) for n in table if n not in KEYS}
    place = _places(columns)
    stored = pa.table({name: columns[name] for name in dict.fromkeys(place.values())})
    with atomic(path) as temporary:
        meta = {_META: json.dumps(place).encode()}
        pq.write_table(stored.replace_schema_metadata(meta), temporary, **_BYTES)
    return split


def _places(columns: Mapping[str, NDArray[Any]]) -> dict[str, str]:
    """Return the column that each is stored as: itself, or an earlier one that it equals."""
    first: dict[bytes, str] = {}
    return {name: first.setdefault(values.tobytes(), name) for name, values in columns.items()}


def _compact(values: NDArray[np.float64]) -> NDArray[Any]:
    """Return values in the smallest type that keeps every one of them as it is."""
    for kind in (np.int8, np.float32):
        with np.errstate(invalid="ignore", over="ignore"):
            smaller = values.astype(kind)
        if np.array_equal(smaller.astype(np.float64), values, equal_nan=True):
            return smaller
    return values


def read_predictions(
    results: Path, path: Path, split: str, columns: Sequence[str] | None = None
) -> pd.DataFrame:
    """Return the table that was written, or some of its prediction columns, as float64.

    Raises
    ------
    UserError : a file is missing or damaged, or the two do not belong together.
    """
    try:
        place = json.loads(pq.read_schema(path).metadata[_META])
        wanted = {name: at for name, at in place.items() if columns is None or name in columns}
        stored = pq.read_table(path, columns=sorted(set(wanted.values())))
        values = {name: stored[at].to_numpy().astype(np.float64) for name, at in wanted.items()}
        found = pd.DataFrame(values)
        rows = _rows(results, split)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{path} is missing or damaged: remove the folder of that run and repeat its command, "
            "which fits nothing that is in the store"
        ) from error
    if len(rows) != len(found):
        raise UserError(f"{path} has {len(found)} rows and its split {len(rows)}: run it again")
    return pd.concat([rows, found], axis="columns")


@lru_cache(maxsize=4)
def _rows(results: Path, split: str) -> pd.DataFrame:
    return pq.read_table(rows_path(results, split)).to_pandas()
