"""What the page shows of each block: tables, figures, and where they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from fairbench.experiments.presets import Presets
from fairbench.experiments.provenance import Provenance, provenance
from fairbench.reporting.page.better import Better
from fairbench.reporting.page.blocks import Block, named
from fairbench.reporting.page.drawn import Drawn
from fairbench.reporting.page.metric_table import MetricTable
from fairbench.reporting.papers.matching import PaperTable
from fairbench.results.collection import FinishedRun

_GLANCE = (
    "error_rate", "roc_auc", "nll", "log_loss", "expected_calibration_error", "rmse", "r2",
    "statistical_parity", "equalized_odds",
)  # fmt: skip
_FEW = 5

Row = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Wide:
    """A table with a row for each label, and a column for each of `columns`; cells may be None."""

    columns: Sequence[str]
    rows: Mapping[str, list[Row | None]]


@dataclass(frozen=True, eq=False)
class ShownTable:
    """A metric's table, and the scale on which its intervals are drawn."""

    table: MetricTable
    source: Provenance

    def __getattr__(self, name: str) -> Any:
        return getattr(self.table, name)

    @cached_property
    def records(self) -> list[Row]:
        """The rows, with the ends of what is drawn: the interval, or one sd either way."""
        rows = self.table.rows
        sd = rows["sd"].fillna(0)
        low, high = rows["lower"].fillna(rows["mean"] - sd), rows["upper"].fillna(rows["mean"] + sd)
        return _records(rows.assign(low=low, high=high))

    @property
    def scale(self) -> Callable[[float], float] | None:
        """What turns a value into a place between 0 and 100; None where nothing is finite."""
        ends = [v for row in self.records for v in (row["low"], row["high"], row["mean"])]
        finite = [v for v in ends if np.isfinite(v)]
        if not finite or min(finite) == max(finite):
            return None
        low, width = min(finite), max(finite) - min(finite)
        return lambda v: round(100 * (v - low) / width, 1) if np.isfinite(v) else 0.0


@dataclass(frozen=True, eq=False)
class GroupTable:
    """A metric of every group of people side by side."""

    metric: str
    attribute: str
    names: Sequence[str]
    rows: Mapping[str, list[Row | None]]
    source: Provenance


@dataclass(frozen=True, eq=False)
class Page:
    """A block, with everything that is shown of it."""

    block: Block
    better: Better | None
    tables: Sequence[ShownTable]
    groups: Sequence[GroupTable]
    beside: Sequence[Row]
    figures: Sequence[Drawn]
    source: Provenance
    beside_source: Provenance

    @property
    def runs(self) -> list[tuple[FinishedRun, str]]:
        """The runs and their labels."""
        runs = list(self.block.runs.values())
        return list(zip(runs, named(runs), strict=True))

    @property
    def note(self) -> str:
        """That there are few repeats, if so."""
        repeats = self.block.repeats
        return f"quick: {repeats} repeat{'s' * (repeats > 1)}" if repeats < _FEW else ""

    @property
    def summary(self) -> Wide:
        """The metrics that most readers look at first."""
        chosen = {t.metric: t for t in self.tables if t.metric in _GLANCE and t.is_ranked}
        columns = [name for name in _GLANCE if name in chosen]
        return Wide(columns, _beside([chosen[name].table for name in columns]))

    @property
    def learners(self) -> str:
        """The learners that were run."""
        return self._chosen("learner")

    @property
    def interventions(self) -> str:
        """The interventions that were run."""
        return self._chosen("intervention")

    @property
    def methods(self) -> str:
        """The methods that were run."""
        return self._chosen("method")

    def _chosen(self, group: str) -> str:
        return ", ".join(sorted({run.choices[group] for run in self.block.runs.values()}))


def make_page(
    block: Block,
    tables: Sequence[MetricTable],
    papers: Sequence[PaperTable],
    figures: Sequence[Drawn],
    presets: Presets,
    better: Better | None = None,
) -> Page:
    """Return the page of a block, with the papers' tables where `papers` are given."""
    known: dict[tuple[str, ...], Provenance] = {}

    def source(runs: Sequence[FinishedRun]) -> Provenance:
        key = tuple(run.id for run in runs)
        if key not in known:
            known[key] = provenance(runs, presets)
        return known[key]

    def of(rows: pd.DataFrame) -> Provenance:
        return source([block.runs[id_] for id_ in block.runs if id_ in set(rows["run"])])

    alone = [ShownTable(each, of(each.rows)) for each in tables if not each.group]
    answers = [
        run for each in papers for run in each.runs if run.choices["dataset"] == block.dataset
    ]
    return Page(
        block,
        better,
        alone,
        list(_groups([each for each in tables if each.group], of)),
        list(_of_dataset(papers, block.dataset)),
        figures,
        source(list(block.runs.values())),
        source(list({run.id: run for run in answers}.values())),
    )


def _groups(
    tables: Sequence[MetricTable], of: Callable[[pd.DataFrame], Provenance]
) -> Iterator[GroupTable]:
    for metric in dict.fromkeys(table.metric for table in tables):
        mine = [table for table in tables if table.metric == metric]
        names = [table.group for table in mine]
        yield GroupTable(metric, mine[0].attribute, names, _beside(mine), of(mine[0].rows))


def _beside(tables: Sequence[MetricTable]) -> dict[str, list[Row | None]]:
    """Return the tables' rows by label, each table a column."""
    columns = [{row["label"]: row for row in _records(table.rows)} for table in tables]
    labels = dict.fromkeys(label for column in columns for label in column)
    return {label: [column.get(label) for column in columns] for label in labels}


def _of_dataset(papers: Sequence[PaperTable], dataset: str) -> Iterator[Row]:
    for table in papers:
        mine = table.rows[table.rows["own data set"] == dataset]
        for row in _records(mine):
            yield {**row, "paper": table.paper, "table": table.table, "note": table.note}


def _records(rows: pd.DataFrame) -> list[Row]:
    return [{str(k): v for k, v in row.items()} for row in rows.to_dict("records")]
