"""A finished run, read from its folder: configuration, metrics, predictions and origin.

Begin with :class:`Run`. The metrics of several runs are read together by :func:`read_metrics`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairbench.core.files import (
    TEXT,
    UNREADABLE,
    DamagedError,
    half_of,
    most_memory,
    names_in,
    read_bytes,
    sha256,
    table_within,
    unsealed_json,
)
from fairbench.results import record as records

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from fairbench.results.predictions import People

LAST = "environment.json"
FIGURES = "figures"
DRAWN = "manifest.json"  # in the folder of figures: their sha256, sealed
WRITTEN = "written"  # index entry: when the record was written, in seconds since 1970


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A finished run: the folder ``results/runs/<id>``; its ``environment.json`` is written last.

    That file is sealed and has the sha256 of the others: what is read is what was written.
    It needs nothing else than the results folder it lies in: neither raw data, nor a checkout's
    configurations, nor the code of its method.

    Attributes
    ----------
    listed : the run's entries of the catalogue's index, by which runs are listed
        and selected. All else is read from the run's own files, and checked.
    """

    path: Path
    listed: Mapping[str, Any] | None = None

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
        return self.path / FIGURES

    @cached_property
    def environment(self) -> dict[str, Any]:
        """The record of a finished run: choices, options, data, versions, machine, files.

        Raises
        ------
        UserError : an index lists the run, and its record is damaged, or is not what was listed.
        """
        record = read_environment(self.path)
        if self.listed:
            with records.reading(self.path / LAST):
                entries = (*records.SUMMARY, "config")
                if any(repr(record.get(name)) != repr(self.listed.get(name)) for name in entries):
                    raise DamagedError("the record is not what was listed")
        return record

    @property
    def summarised(self) -> Mapping[str, Any]:
        """The configuration and the entries `SUMMARY` by which runs are listed and selected."""
        return self.environment if self.listed is None else self.listed

    @property
    def choices(self) -> dict[str, str]:
        """The option chosen for each group: ``dataset``, ``learner``, ``method`` ..."""
        return dict(self.summarised["choices"])

    @property
    def name(self) -> str:
        """A short name for people: data set, learner, intervention, method."""
        return str(self.summarised["name"])

    @property
    def protect(self) -> str:
        """The attribute, or combination, of the headline metrics."""
        return str(self.summarised["protect"])

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that `protect` joins."""
        return tuple(self.protect.split(" x "))

    @property
    def verified(self) -> bool:
        """Whether its raw files were compared with the checksums that are known of them."""
        dataset = self.config.get("dataset")
        return not isinstance(dataset, dict) or dataset.get(records.VERIFIED) is not False

    @property
    def purpose(self) -> str:
        """The purpose of the run, one of `PURPOSES`; a study if its record does not say."""
        return str(self.summarised.get("purpose") or records.STUDY)

    @property
    def seed(self) -> int:
        """The root seed of the run."""
        return int(self.summarised["seed"])

    @property
    def finished(self) -> datetime:
        """When the run was finished."""
        return datetime.fromtimestamp(self.written)

    @property
    def written(self) -> float:
        """When the run was finished, in seconds since 1970."""
        if self.listed and self.listed[WRITTEN]:
            return float(self.listed[WRITTEN])
        return (self.path / LAST).stat().st_mtime_ns / 1e9

    @property
    def config(self) -> dict[str, Any]:
        """The run's configuration: every component by its name, with its options."""
        with records.reading(self.path / LAST):
            return dict(self.environment["config"])

    def content(self, name: str) -> bytes:
        """Return one of `FILES` as it was written.

        Raises
        ------
        UserError : it is missing or damaged.
        """
        path = self.path / name
        with records.reading(path):
            content = read_bytes(path, most_memory() if path.suffix == ".parquet" else TEXT)
            if sha256(content) != self.environment.get("files", {}).get(name):
                raise DamagedError("the content is not what was written")
            return content

    def read_parquet(
        self, kind: str, texts: Collection[str] = (), columns: Collection[str] = ()
    ) -> pa.Table:
        """Return a table that is a Parquet file of the run's folder.

        Parameters
        ----------
        kind : the name of the file, without its ending.
        texts : columns to read as dictionaries; names that the table does not have are ignored.
        columns : columns to read, ignoring names that it does not have; all by default.
        """
        path = self.path / f"{kind}.parquet"
        content = self.content(path.name)
        with records.reading(path):
            table = table_within(content, str(path), columns or None, texts)
            if len({*table.column_names}) < table.num_columns:
                raise DamagedError("a column is there twice")
            return table

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """The metrics of the run's own variant, in the columns that `Catalogue.metrics` has."""
        return read_metrics([self])

    def all_metrics(self) -> pd.DataFrame:
        """Return the run's long table of metrics, of all of its variants."""
        from fairbench.results.tables import checked_metrics

        with records.reading(self.path / "metrics.parquet"):
            return checked_metrics(self.read_parquet("metrics")).to_pandas()

    def summary(self) -> pd.DataFrame:
        """Return the means of the run's metrics over its splits, with their intervals."""
        from fairbench.results.tables import summary_in

        with records.reading(self.path / "summary.csv"):
            return summary_in(self.content("summary.csv"))

    def predictions(self, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Return repeat, fold, part (2 is test), row and predictions of each row."""
        from fairbench.results.predictions import read_predictions

        table = self.read_parquet("predictions")
        with records.reading(self.path / "predictions.parquet"):
            return read_predictions(self.results, table, str(self.environment["rows"]), columns)

    def people(self) -> People:
        """Return target and groups of every row of the data set."""
        from fairbench.results.predictions import read_people

        return read_people(self.results, str(self.environment["data"]))

    def __repr__(self) -> str:
        """Return which run it is, in a line."""
        return f"<run {self.id}: {self.name}>" if self.summarised else f"<run {self.id}>"

    def _repr_html_(self) -> str:
        """Return the headline metrics as a notebook shows them."""
        from fairbench.results.tables import run_html

        return run_html(f"Run {self.id}: {self.name}", self.summary(), self.protect)

    def cells(self) -> list[str]:
        """Return the ids of the run's cells."""
        ids = self.content("cells.txt").decode(errors="replace").split()
        with records.reading(self.path / "cells.txt"):
            if not all(map(records.is_id, ids)):  # they are parts of paths
                raise DamagedError("an id of a cell is none")
        return ids


def config_text(config: Mapping[str, Any]) -> str:
    """Return a configuration as ``config.yaml`` has it."""
    import yaml

    # libyaml's writer if it is installed.
    dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return str(yaml.dump(dict(config), Dumper=dumper, sort_keys=False, allow_unicode=True))


def read_environment(path: Path, parts: records.Parts | None = None) -> dict[str, Any]:
    """Return the record of a run's folder; empty if the run is not finished.

    A run whose file is damaged is not finished, nor is one of an earlier version, or one that lies
    under the id of another.
    """
    try:
        return records.checked(
            unsealed_json(read_bytes(path / LAST)), path.name, parts or records.Parts()
        )
    except UNREADABLE:
        return {}


def damaged_files(run: Run) -> list[str]:
    """Return which files of a finished run are missing or not as they were written."""
    return [
        name for name in records.FILES if not _intact(run.path / name, run.environment["files"])
    ]


def is_of_figures(name: str) -> bool:
    """Say whether a file of this name is one of those in a folder of figures."""
    name = half_of(name) or name
    return name == DRAWN or name.endswith(".png")


def damaged_figures(run: Run) -> list[str]:
    """Return which of a run's figures are missing or not as they were drawn."""
    present = {*names_in(run.figures)[0]} - {DRAWN}
    try:
        drawn: dict[str, str] = unsealed_json(read_bytes(run.figures / DRAWN))["files"]
        if not records.are_strings(drawn) or any(Path(name).name != name for name in drawn):
            raise DamagedError("no list of files in the folder")
    except UNREADABLE:
        return sorted({*present, DRAWN})
    return [name for name in sorted({*present, *drawn}) if not _intact(run.figures / name, drawn)]


def _intact(path: Path, sums: Mapping[str, str]) -> bool:
    try:
        return sha256(read_bytes(path, most_memory())) == sums.get(path.name)
    except OSError:
        return False


def read_metrics(runs: Sequence[Run]) -> pd.DataFrame:
    """Return the metrics of runs, of their own variants, with the column ``run``."""
    from fairbench.evaluation.table import TEXTS
    from fairbench.results.tables import checked_metrics, joined

    tables = {}
    for run in runs:
        with records.reading(run.path / "metrics.parquet"):
            tables[run.id] = checked_metrics(run.read_parquet("metrics", TEXTS), own=True)
    return joined(tables)
