"""Labels and groups of the people that results are about, stored once for each data set.

They are about people, so only the owner of a results folder may read these files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from fairbench.core.errors import UserError
from fairbench.core.files import UNREADABLE, DamagedError, read_table, set_aside, write_table
from fairbench.core.from_plain import from_plain
from fairbench.core.safe_open import make_private
from fairbench.data.dataset import Dataset, Task, group_labels
from fairbench.results.cells import plain_id
from fairbench.results.pack_tables import unpacked
from fairbench.results.packs import is_pack, open_pack
from fairbench.results.shapes import check_plain

_META = b"fairbench"
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
    if stored and (data.weight is None or _has_weight(stored, data.weight)):
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


def _has_weight(stored: pa.Table, weight: pd.Series) -> bool:
    """Whether a table holds these weights, which the digest it is named by does not cover."""
    if "weight" not in stored.column_names:
        return False
    return np.array_equal(stored["weight"].to_numpy(), weight.to_numpy())


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
    packed = open_pack(results).table("data", digest) if is_pack(results) else None
    try:
        table = unpacked(packed) if packed else read_table(path)
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
