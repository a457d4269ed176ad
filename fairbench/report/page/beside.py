"""The papers' numbers beside those of a collection, wherever runs answer them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from fairbench.report.page.collection import Collection, FinishedRun
from fairbench.report.page.presets import Presets
from fairbench.report.papers import with_choice
from fairbench.report.published import VERDICTS, Paper, compare, quick_note
from fairbench.report.summary import summarise

_COLUMNS = [
    "experiment", "dataset", "method", "intervention", "option", "metric", "variant", "attribute",
    "group", "mean", "sd", "repeats",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class PaperTable:
    """A published table: its rows with ours, a verdict each, and what answers it.

    Attributes
    ----------
    rows : of :func:`fairbench.report.published.compare`, with ``own data set``: its name here.
    """

    paper: str
    table: str
    experiments: tuple[str, ...]
    rows: pd.DataFrame
    runs: tuple[FinishedRun, ...]
    note: str

    @property
    def counts(self) -> dict[str, int]:
        """Return how many reproductions have each verdict."""
        found = self.rows.loc[self.rows["reproduces"], "verdict"].value_counts()
        return {name: int(found.get(name, 0)) for name in VERDICTS}


def paper_tables(collection: Collection, published: Path, presets: Presets) -> Iterator[PaperTable]:
    """Yield every table of the papers that have a mapping, with those runs that answer it."""
    known = set(presets.experiments())
    for path in sorted(published.glob("*.yaml")):
        paper = Paper.read(path.stem, published)
        for table in paper.tables:
            names = [name for name in paper.experiments(table) if name in known]
            yield _table(paper, table, names, collection, presets)


def _table(
    paper: Paper, table: str, experiments: list[str], collection: Collection, presets: Presets
) -> PaperTable:
    found, runs = [], {}
    for name in experiments:
        answers = presets.runs_of(name, collection.runs)
        metrics = collection.metrics[collection.metrics["run"].isin(answers)]
        wanted = metrics["metric"].isin(_wanted(paper, table))
        for id_, of_run in summarise(metrics[wanted], per=["run"]).groupby("run", observed=True):
            chosen, run = answers[str(id_)]
            found.append(with_choice({"experiment": name, **run.choices, **chosen}, of_run))
            runs[run.id] = run
    ours = pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=_COLUMNS)
    rows = compare(paper, table, ours)
    own = paper.tables[table].get("datasets", {})
    rows = rows.assign(**{"own data set": rows["dataset"].map(lambda name: own.get(name, name))})
    note = quick_note(rows, paper.runs)
    return PaperTable(paper.name, table, tuple(experiments), rows, tuple(runs.values()), note)


def _wanted(paper: Paper, table: str) -> set[str]:
    rules = paper.tables[table]["rules"]
    return {str(each["metric"]) for rule in rules for each in rule["metrics"].values()}
