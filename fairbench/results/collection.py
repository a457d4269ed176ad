"""Every finished run of a results folder, read once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairbench.evaluation.columns import TEXTS
from fairbench.results.runs import RunFolder, reading

if TYPE_CHECKING:
    import pyarrow as pa

_TEXTS = ["run", *TEXTS]


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """What a run was made of, and where."""

    id: str
    config: Mapping[str, Any]
    environment: Mapping[str, Any]

    @property
    def choices(self) -> Mapping[str, str]:
        """The option chosen for each group: ``dataset``, ``learner``, ``method`` ..."""
        return dict(self.environment["choices"])

    @property
    def protect(self) -> str:
        """The attribute, or combination, of the headline metrics."""
        return str(self.environment["protect"])


@dataclass(frozen=True, eq=False)
class Collection:
    """Finished runs by id, and the metrics of their own variants with the column ``run``."""

    runs: Mapping[str, FinishedRun]
    metrics: pd.DataFrame

    def only(self, ids: set[str]) -> Collection:
        """Return the runs of these ids."""
        runs = {id_: run for id_, run in self.runs.items() if id_ in ids}
        return Collection(runs, self.metrics[self.metrics["run"].isin(runs)])


def read_collection(results: Path) -> Collection:
    """Read configuration, environment and metrics of every finished run."""
    runs, files = {}, {}
    for path in sorted((results / "runs").glob("*/environment.json")):
        environment = json.loads(path.read_text(encoding="utf-8"))
        if "choices" in environment:
            id_ = path.parent.name
            runs[id_] = FinishedRun(id_, RunFolder(path.parent).config(), environment)
            files[id_] = path.with_name("metrics.parquet")
    return Collection(runs, _metrics(files))


def _metrics(files: Mapping[str, Path]) -> pd.DataFrame:
    """Return the runs' metrics, texts as categories: a thousand runs take tens of megabytes."""
    import pyarrow as pa

    if not files:
        return pd.DataFrame({name: pd.Series(dtype="category") for name in _TEXTS})
    tables = [_table(id_, path) for id_, path in files.items()]
    metrics = pa.concat_tables(tables, promote_options="permissive")
    return metrics.unify_dictionaries().to_pandas()


def _table(id_: str, path: Path) -> pa.Table:
    """Return a run's rows of its own variant, texts as dictionaries from the start."""
    import pyarrow as pa
    from pyarrow import compute, parquet

    with reading(path):
        table = parquet.read_table(path, read_dictionary=_TEXTS)
    table = table.filter(compute.equal(table["variant"].cast(pa.string()), ""))
    run = pa.DictionaryArray.from_arrays(np.zeros(len(table), np.int32), [id_])
    return table.append_column("run", run)
