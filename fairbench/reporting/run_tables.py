"""Several finished runs in one table: headline metrics with intervals, or a row for each metric."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import isfinite, nan

import pandas as pd

from fairbench.core.errors import UserError, did_you_mean
from fairbench.evaluation.columns import DEBIASED
from fairbench.evaluation.headlines import (
    DEBIASED_MEANS,
    HEADLINES,
    debiased_headline_gap,
    estimate,
    headlines,
    task_of,
)
from fairbench.metrics.registry import BINARY, MULTICLASS, REGRESSION, label, metrics_of
from fairbench.reporting.document.model import Column, Document, Section, Table
from fairbench.reporting.runs import about, has_means_of_gaps, headline
from fairbench.results.catalogue import Catalogue
from fairbench.results.record import GROUPS
from fairbench.results.runs import Run

_FACTS = (
    *("metric", "statistic", "attribute", "group"),
    *("mean", "sd", "lower", "upper", "n", "repeats", "status"),
)


def runs_table(runs: Catalogue, metrics: Sequence[str] = (), *, most: int = 0) -> Table:
    """Return a row for each run, named by how it differs, sorted by data set and then by error.

    Parameters
    ----------
    metrics : the metrics that are shown of each run; error, log loss and gap by default.
    most : the most rows that a terminal shows; 0 for all.

    Raises
    ------
    UserError : a metric that none of the runs has.
    """
    summary_of_run = {run.id: run.summary() for run in runs}
    _check(metrics, summary_of_run.values())
    names = runs.label()
    rows = []
    debiased: list[float] = []
    tasks = dict[str, None]()
    for run in runs:
        summary = summary_of_run[run.id]
        tasks[task_of(summary)] = None
        headline_estimates = headlines(summary, run.protect)
        estimates = [estimate(summary, name, run.protect) for name in metrics] or list(
            headline_estimates.values()
        )
        cells: list[object] = [cell for value, *ends in estimates for cell in (value, ends)]
        debiased.append(nan if metrics else debiased_headline_gap(summary, run.protect))
        cells.append(debiased[-1])
        rows.append(
            (
                run.choices["dataset"],
                headline_estimates["error"][0],
                [run.id[:6], names[run.id], *cells],
            )
        )
    rows.sort(key=lambda row: (row[0], row[1]))
    rule_places = {
        row_index
        for row_index in range(1, len(rows))
        if rows[row_index][0] != rows[row_index - 1][0]
    }
    every = pd.concat(list(summary_of_run.values())) if summary_of_run else pd.DataFrame()
    ends = f"95 % intervals {about(every)}; a gap's may begin at 0"
    if has_means_of_gaps(every):
        ends += "; a gap is the mean of all splits' gaps, not the gap of mean rates as in choose"
    meanings = "" if metrics else _meanings(tasks)
    is_debiased = any(map(isfinite, debiased))
    if is_debiased:
        meanings += f"{DEBIASED_MEANS}; "
    column = [Column(DEBIASED, "number", left_out=1)]
    return Table(
        [Column("id"), Column("run"), *_columns(metrics), *(column if is_debiased else [])],
        [row if is_debiased else row[:-1] for _, _, row in rows],
        caption=f"{meanings}{ends}",
        rules=frozenset(rule_places),
        most=most,
    )


def _columns(metrics: Sequence[str]) -> Iterator[Column]:
    """Yield a column for each metric and one for its interval; those of log loss go first."""
    for title in [label(name) for name in metrics] or HEADLINES[BINARY]:
        scarce = 2 * (title == "log loss" and not metrics)
        yield Column(title, "number", left_out=scarce)
        yield Column("95 % interval", "interval", decimals=2, left_out=scarce and scarce + 1)


def _check(metrics: Sequence[str], summaries: Iterable[pd.DataFrame]) -> None:
    """Refuse metrics that no run has."""
    available = {str(name) for summary in summaries for name in summary["metric"].unique()}
    for name in metrics:
        if name not in available:
            hint = did_you_mean(name, available)
            raise UserError(f"none of these runs has a metric '{name}'{hint and ': '}{hint}")


_OF = {MULTICLASS: "of several classes, ", REGRESSION: "of regressions, "}


def _meanings(tasks: Iterable[str]) -> str:
    """Return a text on the metrics of the columns, for each task."""
    parts = []
    for task in tasks:
        declared = metrics_of(task)
        meanings = (
            f"{name} is the {declared[metric].label}" for name, metric in HEADLINES[task].items()
        )
        parts.append(f"{_OF.get(task, '')}{', '.join(meanings)}")
    return "; ".join([*parts, ""])


def runs_document(runs: Catalogue, metrics: Sequence[str] = (), *, most: int = 0) -> Document:
    """Return the table of several runs as a document."""
    title = f"{len(runs)} runs of {runs.folder}"
    return Document(title, [Section("", [runs_table(runs, metrics, most=most)])])


def tidy(runs: Catalogue, metrics: Sequence[str] = ()) -> pd.DataFrame:
    """Return a row for each metric of each run, of everyone, of gaps and of the protected groups.

    Parameters
    ----------
    metrics : the metrics to return; by default those that the table of a run shows.

    Returns
    -------
    DataFrame
        ``run``, ``name``, what was chosen, ``seed``, ``protect``; ``metric``, ``statistic``,
        ``attribute``, ``group``, ``mean``, ``sd``, ``lower``, ``upper``, ``n``, ``repeats``,
        ``status``, ``reason``. Of metrics that are named, all statistics.

    Raises
    ------
    UserError : a metric that none of the runs has.
    """
    names = runs.label()
    summary_of_run = {run.id: run.summary() for run in runs}
    _check(metrics, summary_of_run.values())
    parts = [_rows(run, names[run.id], summary_of_run[run.id], metrics) for run in runs]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _rows(run: Run, name: str, summary: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """Return the rows of one run, with its choices in the first columns."""
    summary_of_run = summary[summary["variant"] == ""]
    selected = (
        summary_of_run[summary_of_run["metric"].isin(metrics)]
        if metrics
        else headline(summary, run.protect)
    )
    about_run: dict[str, object] = {
        "run": run.id,
        "name": name,
        **{group: run.choices[group] for group in GROUPS},
    }
    about_run |= {"seed": run.seed, "protect": run.protect}
    facts = selected[[*_FACTS, "reason"]].reset_index(drop=True)
    for index, (column, value) in enumerate(about_run.items()):
        facts.insert(index, column, value)
    return facts
