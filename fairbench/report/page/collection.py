"""Every finished run of a results folder, read once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

_TEXTS = ["run", "metric", "attribute", "group", "setting", "status"]


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
    runs, tables = {}, []
    for path in sorted((results / "runs").glob("*/environment.json")):
        environment = json.loads(path.read_text(encoding="utf-8"))
        if "choices" not in environment:
            continue
        run = FinishedRun(path.parent.name, _yaml(path.with_name("config.yaml")), environment)
        runs[run.id] = run
        tables.append(_metrics(path.with_name("metrics.parquet"), run.id))
    metrics = pd.concat(tables, ignore_index=True) if tables else _no_metrics()
    # As categories, a thousand runs take tens of megabytes.
    return Collection(runs, metrics.astype(dict.fromkeys(_TEXTS, "category")))


def _no_metrics() -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(dtype=str) for name in [*_TEXTS, "variant"]})


def _metrics(path: Path, run: str) -> pd.DataFrame:
    metrics = pd.read_parquet(path)
    return metrics[metrics["variant"] == ""].assign(run=run)


def _yaml(path: Path) -> dict[str, Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    values: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), loader)
    return values
