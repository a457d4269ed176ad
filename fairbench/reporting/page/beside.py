"""The papers' numbers beside those of a collection, wherever runs answer them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from fairbench.evaluation.summary import summarise
from fairbench.experiments.presets import Presets
from fairbench.reporting.papers import with_choice
from fairbench.reporting.published import VERDICTS, Paper, compare, papers_in, quick_note
from fairbench.results.collection import Collection, FinishedRun

_COLUMNS = [
    "experiment", "dataset", "method", "intervention", "option", "metric", "variant", "attribute",
    "group", "mean", "sd", "repeats",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class PaperTable:
    """A published table: its rows with ours, a verdict each, and what answers it.

    Attributes
    ----------
    rows : of :func:`fairbench.reporting.published.compare`, with ``own data set``: its name here.
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


def paper_tables(
    collection: Collection, published: Path, presets: Presets, paper: str = ""
) -> Iterator[PaperTable]:
    """Yield every table of the papers that have a mapping, or of one, with what answers it.

    Raises
    ------
    UserError : a `paper` without a mapping.
    """
    known = set(presets.experiments())
    for name in [paper] if paper else papers_in(published):
        read = Paper.read(name, published)
        answers: dict[str, _Answers] = {}
        for table in read.tables:
            experiments = [each for each in read.experiments(table) if each in known]
            for each in experiments:
                if each not in answers:
                    answers[each] = _answers(each, read, collection, presets)
            yield _table(read, table, {each: answers[each] for each in experiments})


@dataclass(frozen=True, eq=False)
class _Answers:
    """The runs that answer an experiment, and their summaries with what each chose in front."""

    runs: dict[str, FinishedRun]
    summaries: pd.DataFrame


def _answers(name: str, paper: Paper, collection: Collection, presets: Presets) -> _Answers:
    runs = presets.runs_of(name, collection.runs)
    metrics = collection.metrics
    chosen = metrics["run"].isin(runs) & metrics["metric"].isin(_wanted(paper))
    found = [
        with_choice({"experiment": name, **runs[str(id_)][1].choices, **runs[str(id_)][0]}, summary)
        for id_, summary in summarise(
            metrics[chosen & (metrics["group"] == "")], per=["run"]
        ).groupby("run", observed=True)
    ]
    summaries = pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=_COLUMNS)
    return _Answers({id_: run for id_, (_, run) in runs.items()}, summaries)


def _table(paper: Paper, table: str, answers: Mapping[str, _Answers]) -> PaperTable:
    ours = pd.concat([each.summaries for each in answers.values()], ignore_index=True)
    rows = compare(paper, table, ours[ours["metric"].isin(_wanted(paper, table))])
    own = paper.tables[table].get("datasets", {})
    rows = rows.assign(**{"own data set": rows["dataset"].map(lambda name: own.get(name, name))})
    runs = {id_: run for each in answers.values() for id_, run in each.runs.items()}
    note = quick_note(rows, paper.runs)
    return PaperTable(paper.name, table, tuple(answers), rows, tuple(runs.values()), note)


def _wanted(paper: Paper, *tables: str) -> set[str]:
    """Return the metrics of ours that some tables, or all, need."""
    rules = [rule for table in tables or paper.tables for rule in paper.tables[table]["rules"]]
    return {str(each["metric"]) for rule in rules for each in rule["metrics"].values()}
