"""What runs predict, about which rows, and whose: predictions, rows of splits, labels and groups.

The rows of a split's folds are the same for every run of that split and are stored once; a run's
own file has the predictions alone, in the order of those rows. Every bit of both is kept. Labels
and groups are stored once for each data set. They are about people, so only the owner of a results
folder may read these files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
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
    make_private,
    most_memory,
    parquet_bytes,
    read_bytes,
    read_table,
    set_aside,
    table_within,
    write_bytes,
    write_table,
)
from fairbench.core.options import from_plain
from fairbench.data.dataset import Dataset, Task, group_labels
from fairbench.results.cells import plain_id
from fairbench.results.record import are_strings
from fairbench.results.tables import check_numbers, check_plain

_META = b"fairbench"
KEYS = ("repeat", "fold", "part", "row")
VALIDATION, TEST = 1, 2
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
    split = _rows_digest(rows)
    if not rows_stored(results, split):
        write_bytes(rows_path(results, split), parquet_bytes(pa.table(rows)), shows=True)
    columns = {
        str(name): _compact(table[name].to_numpy(np.float64)) for name in table if name not in KEYS
    }
    first: dict[bytes, str] = {}  # equal columns are stored once
    stored_as = {name: first.setdefault(column.tobytes(), name) for name, column in columns.items()}
    stored = pa.table({name: columns[name] for name in dict.fromkeys(stored_as.values())})
    meta = {_META: json.dumps(stored_as).encode()}
    return parquet_bytes(stored.replace_schema_metadata(meta)), split


def _rows_digest(rows: Mapping[str, NDArray[Any]]) -> str:
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
    path = rows_path(results, split)
    table = table_within(read_bytes(path, most_memory()), path.name)
    check_numbers(table)
    rows = table.to_pandas()
    if any(rows[name].dtype != _TYPES[name] for name in KEYS) or (rows["row"] < 0).any():
        raise DamagedError("its columns are not those of a split")
    if _rows_digest({name: rows[name].to_numpy() for name in KEYS}) != split:
        raise DamagedError("the rows are not those that it is named by")
    return rows


_DIGEST = "data"  # the entry of the metadata that holds the digest of the data set


@dataclass(frozen=True)
class Description:
    """Facts about a data set that are not about single rows."""

    name: str
    task: Task
    privileged: Mapping[str, str]
    target_name: str
    positive_label: str
    favourable: int | None
    redistributable: bool
    classes: tuple[str, ...] = ()
    ordered: bool = False


@dataclass(frozen=True, eq=False)
class People:
    """Target, groups, clusters and weights of every row of a data set.

    Attributes
    ----------
    target : (n,) labels or values.
    sensitive : (n, a) categorical labels.
    clusters : (n,) marks of rows that belong together, or None.
    weight : (n,) how many people each row stands for, or None.
    """

    digest: str
    about: Description
    target: pd.Series
    sensitive: pd.DataFrame
    clusters: pd.Series | None
    weight: pd.Series | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.target)

    @property
    def name(self) -> str:
        """The name of the data set."""
        return self.about.name

    @property
    def task(self) -> Task:
        """What is predicted."""
        return self.about.task

    def groups(self, attributes: str | Sequence[str]) -> pd.Series:
        """Return each row's group as a categorical whose first category is the reference."""
        return group_labels(self.name, self.sensitive, self.about.privileged, attributes)


def people_path(results: Path, digest: str) -> Path:
    """Return where the people of a data set are kept."""
    return results / "data" / f"{plain_id(digest)}.parquet"


def write_people(results: Path, data: Dataset) -> None:
    """Store target, groups, clusters and weights of a data set, unless they are there."""
    path = people_path(results, data.digest)
    stored = stored_people(results, data.digest)
    if stored:  # the digest that it is named by does not cover weights
        kept = stored["weight"] if "weight" in stored.column_names else []
        if data.weight is None or np.array_equal(kept, data.weight.to_numpy()):
            return
    make_private(path.parent)
    columns = {"target": data.target}
    columns |= {f"group.{name}": data.sensitive[name] for name in data.sensitive}
    if data.clusters is not None:
        columns["clusters"] = data.clusters
    if data.weight is not None:
        columns["weight"] = data.weight
    frame = pd.DataFrame({name: values.reset_index(drop=True) for name, values in columns.items()})
    facts = {name: getattr(data, name) for name in Description.__dataclass_fields__}
    about = asdict(Description(**{**facts, "privileged": dict(data.privileged)}))
    meta = json.dumps({**about, _DIGEST: data.digest})
    table = pa.Table.from_pandas(frame, preserve_index=False)
    table = table.replace_schema_metadata({**table.schema.metadata, _META: meta.encode()})
    write_table(path, table, mode=0o600)


def stored_people(results: Path, digest: str) -> pa.Table | None:
    """Return the table of a data set's people, if there is one; a damaged file is set aside."""
    path = people_path(results, digest)
    try:
        table = read_table(path, private=True)
        description_in(table, digest)
        return table
    except FileNotFoundError:
        return None
    except UNREADABLE:
        set_aside(path, "it is written again")
        return None


def damaged_people(results: Path, digest: str) -> Iterator[Path]:
    """Yield the file of a data set's people, if it is missing or not as it was written."""
    path = people_path(results, digest)
    try:
        description_in(read_table(path), digest)
    except UNREADABLE:
        yield path


def description_in(table: pa.Table, digest: str) -> dict[str, Any]:
    """Return the description of the data set in a table of people: the fields of `Description`.

    Raises
    ------
    DamagedError : it is of another data set. Tables of earlier versions do not say of which.
    """
    meta: dict[str, Any] = json.loads(table.schema.metadata[_META])
    if meta.pop(_DIGEST, digest) != digest:
        raise DamagedError("the people are those of another data set")
    return meta


@lru_cache(maxsize=8)
def read_people(results: Path, digest: str) -> People:
    """Return the people of a data set.

    Raises
    ------
    UserError : the file is missing or damaged.
    """
    path = people_path(results, digest)
    try:
        table = read_table(path)
        meta = description_in(table, digest)
        check_plain(table)
        return _people(digest, meta, table.to_pandas())
    except UNREADABLE as error:
        raise UserError(
            f"{path} is missing or damaged: it is left out where data may not be passed on; repeat "
            "the command of a run of this data set, which fits nothing that is in the store"
        ) from error


def _people(digest: str, meta: Mapping[str, Any], frame: pd.DataFrame) -> People:
    """Return the people of a table, after checking that a data set may have them.

    Raises
    ------
    DataError, ValueError, TypeError : no data set may.
    """
    about: Description = from_plain(Description, {**meta, "task": Task(meta["task"])})
    groups = [name for name in frame if name.startswith("group.")]
    if "group." in groups:
        raise DamagedError("an attribute without a name")
    sensitive = frame[groups].rename(columns=lambda name: name.removeprefix("group."))
    clusters, weight = (frame.get(name) for name in ("clusters", "weight"))
    Dataset(
        features=pd.DataFrame(index=frame.index), target=frame["target"], sensitive=sensitive,
        clusters=clusters, weight=weight, **vars(about),
    )  # fmt: skip
    return People(digest, about, frame["target"], sensitive, clusters, weight)
