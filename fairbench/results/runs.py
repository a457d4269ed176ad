"""A finished run, read from its folder: configuration, metrics, predictions and origin."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairbench.core.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

    from fairbench.results.people import People

_LAST = "environment.json"


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run: the folder ``results/runs/<id>``, of which ``environment.json`` comes last.

    It needs nothing else than the results folder it lies in: neither raw data, nor a checkout's
    configurations, nor the code of its method.
    """

    path: Path

    @property
    def id(self) -> str:
        """The id: a hash of what the run is."""
        return self.path.name

    @property
    def results(self) -> Path:
        """The results folder that the run lies in."""
        return self.path.parents[1]

    @property
    def figures(self) -> Path:
        """Where the run's figures are drawn; written whole or not at all."""
        return self.path / "figures"

    @cached_property
    def environment(self) -> dict[str, Any]:
        """What is known of a finished run: choices, data, versions, machine."""
        return read_environment(self.path)

    @property
    def choices(self) -> dict[str, str]:
        """The option chosen for each group: ``dataset``, ``learner``, ``method`` ..."""
        return dict(self.environment["choices"])

    @property
    def name(self) -> str:
        """A short name for people: data set, learner, intervention, method."""
        return str(self.environment["name"])

    @property
    def protect(self) -> str:
        """The attribute, or combination, of the headline metrics."""
        return str(self.environment["protect"])

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that `protect` joins."""
        return tuple(self.protect.split(" x "))

    @property
    def seed(self) -> int:
        """The root seed of the run."""
        return int(self.environment["seed"])

    @property
    def finished(self) -> datetime:
        """When the run was finished."""
        return datetime.fromtimestamp((self.path / _LAST).stat().st_mtime)

    @cached_property
    def config(self) -> dict[str, Any]:
        """The run's configuration: every component by its name, with its options."""
        import yaml

        # libyaml's loader where it was built: ten times as fast, over thousands of runs.
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        path = self.path / "config.yaml"
        with reading(path, yaml.YAMLError):
            return dict(yaml.load(path.read_text(encoding="utf-8"), loader))

    def metrics(self) -> pd.DataFrame:
        """Return the run's long table of metrics."""
        from pyarrow.parquet import ParquetFile  # slow to import: listing runs does without

        path = self.path / "metrics.parquet"
        with reading(path), ParquetFile(path) as file:
            return file.read().to_pandas()

    def summary(self) -> pd.DataFrame:
        """Return the means of the run's metrics over its splits, with their intervals."""
        from fairbench.core.files import read_csv

        texts = ("variant", "attribute", "group", "estimand", "reason")
        with reading(self.path):
            return read_csv(self.path / "summary.csv").fillna(dict.fromkeys(texts, ""))

    def predictions(self, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Return repeat, fold, part (2 test), row, and what was predicted of each row."""
        from fairbench.results.predictions import read_predictions

        path = self.path / "predictions.parquet"
        return read_predictions(self.results, path, str(self.environment["rows"]), columns)

    def people(self) -> People:
        """Return target and groups of every row of the data set."""
        from fairbench.results.people import read_people

        return read_people(self.results, str(self.environment["data"]))

    def cells(self) -> list[str]:
        """Return the ids of the run's cells."""
        path = self.path / "cells.txt"
        with reading(path):
            return path.read_text().split()


def read_environment(path: Path) -> dict[str, Any]:
    """Return what a run's folder says of itself, nothing if the run is not finished."""
    try:
        known: dict[str, Any] = json.loads((path / _LAST).read_text())
    except (OSError, ValueError):
        return {}
    return known


@contextlib.contextmanager
def reading(path: Path, *errors: type[Exception]) -> Iterator[None]:
    """Read a file of a finished run.

    Raises
    ------
    UserError : it is missing or damaged; `errors` are what reading such a file raises, beside
        OSError and ValueError (of which pyarrow's are).
    """
    expected: tuple[type[Exception], ...] = (OSError, ValueError, TypeError, *errors)
    try:
        yield
    except expected as error:
        raise UserError(
            f"{path} is missing or damaged: remove the folder of that run and repeat its command, "
            "which fits nothing that is in the store"
        ) from error
