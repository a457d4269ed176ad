"""The documents of runs: the table of one, several in one table, and a trade-off of many.

Begin with `document_of`, which is printed when a run ends, and `runs_document`, with headline
metrics and intervals of several; `tidy` has a row for each metric of each run.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import isfinite, isnan, nan
from typing import Any

import numpy as np
import pandas as pd

from fairbench.core.errors import UserError, did_you_mean
from fairbench.core.text import number
from fairbench.data.dataset import Dataset, Task
from fairbench.evaluation import summary as summaries
from fairbench.evaluation import table as long_table
from fairbench.evaluation.many_groups import CLASS, unlike_everyone_else
from fairbench.evaluation.summary import DEBIASED_MEANS, HEADLINES, headline
from fairbench.evaluation.table import DEBIASED, POOLED, status_text, values_of
from fairbench.inference.posterior import DIRICHLET
from fairbench.inference.repeats import ESTIMANDS, FOLDS
from fairbench.metrics import registry
from fairbench.reporting.document import model as doc
from fairbench.reporting.document.model import Column
from fairbench.reporting.group_tables import named_table, sentence_of, sentences_of
from fairbench.results.catalogue import Catalogue
from fairbench.results.record import GROUPS
from fairbench.results.runs import Run, read_summaries

_LEVEL = 0.9  # the level that is shown; if it was not run, the nearest one


def levels_of(runs: Iterable[Run]) -> str:
    """Return the level of runs' intervals, such as ``95 %``, or ``50 or 95 %`` if they differ."""
    return " or ".join(f"{100 * level:g}" for level in sorted({run.level for run in runs})) + " %"


def _set_tables(summary: pd.DataFrame, protect: str, sure: str) -> Iterator[doc.Table]:
    """Yield the table of coverage and size of label sets, for everyone and each group."""
    rows = _of_people(summary, protect)
    level = _level_of(rows, "set_size")
    rows = rows[(rows["level"] == level) & ((rows["group"] != "") | (rows["attribute"] == ""))]
    of_groups = [row for row in _rows_of(rows, ["group"]) if "set_size" in row]
    shown = [{**row, "who": row["group"] or "everyone"} for row in of_groups]
    if shown:
        yield named_table("run", "sets", shown, level=level, sure=sure)


def _level_of(rows: pd.DataFrame, metric: str) -> float:
    """Return the level of a metric that is shown, the nearest to the usual one; NaN without any."""
    levels = rows.loc[rows["metric"] == metric, "level"]
    return float(levels.iloc[(levels - _LEVEL).abs().argmin()]) if len(levels) else nan


_UNCERTAINTY, _CALIBRATION, _COVERAGE = (
    "predictive_uncertainty", "expected_calibration_error", "coverage",
)  # fmt: skip
_UNCERTAINTIES = (_UNCERTAINTY, "epistemic_uncertainty", f"{_UNCERTAINTY}_ratio")


def _uncertainties(summary: pd.DataFrame, protect: str, sure: str) -> Iterator[doc.Table]:
    """Yield the table of each group's uncertainty, its ratio to the first's, and calibration."""
    chosen = (summary["variant"] == "") & (summary["attribute"] == protect)
    rows = summary[chosen & (summary["group"] != "") & summary["outcome"].isna()]
    metric, statistic = rows["metric"], rows["statistic"]
    # Sets have a table of their own.
    level = nan if (metric == "set_size").any() else _level_of(rows, _COVERAGE)
    shown = metric.isin(_UNCERTAINTIES) & (statistic == long_table.VALUE)
    # Chance adds more to the calibration error of a smaller group.
    shown |= (metric == _CALIBRATION) & (statistic == DEBIASED) & (rows["binning"] == "width")
    shown |= (metric == _COVERAGE) & (statistic == long_table.VALUE) & (rows["level"] == level)
    groups = [row for row in _rows_of(rows[shown], ["group"]) if _UNCERTAINTY in row]
    if groups:
        there = {name for row in groups for name in row}
        parts = {name: name in there for name in (*_UNCERTAINTIES, _CALIBRATION, _COVERAGE)}
        values = {"reference": groups[0]["group"], "level": level, "protect": protect, "sure": sure}
        without = [name for name, is_there in parts.items() if not is_there]
        caption = "; ".join(sentences_of("uncertainties", parts, **values))
        table = [{**row, "status": _status_of(row[_UNCERTAINTY])} for row in groups]
        yield named_table("run", "uncertainties", table, without=without, caption=caption, **values)


def _of_people(summary: pd.DataFrame, protect: str) -> pd.DataFrame:
    """Return the values of a run's own variant, of everyone and by `protect`."""
    rows = values_of(summary)
    return rows[(rows["variant"] == "") & rows["attribute"].isin(["", protect])]


def document_of(run: Run) -> doc.Document:
    """Return the headline metrics of a finished run, and its groups unlike everyone else.

    What labels mean is left out where the results hold no labels, as of data that may not be
    passed on.
    """
    metrics = run.all_metrics()
    unlike = unlike_everyone_else(metrics)
    try:
        meaning = _labels_in_words(run.people())
    except UserError:
        meaning = ""
    about: dict[str, Any] = {"meaning": meaning, "sure": levels_of([run])}
    about["posterior"] = run.config["evaluator"].get("interval") == DIRICHLET
    return _run_document(run.summary(), run.name, run.protect, unlike, **about)


def _labels_in_words(about: Dataset) -> str:
    """Return what the labels of a data set mean, and what a selection rate is a share of."""
    if about.task is Task.REGRESSION:
        return sentence_of("run", "target", name=about.target_name)
    if about.task is Task.MULTICLASS:
        names = [f"'{name}'" for name in about.classes]
        order = ", in this order" if about.ordered else ""
        text = sentence_of("run", "classes", names=", ".join(names), order=order)
    else:
        names = ["Label 0", "Label 1"]
        positive = about.positive_label
        text = sentence_of("run", "positive" if positive else "labels", label=positive)
    if about.favourable is None:
        return text
    return sentence_of("run", "favourable", text=text, name=names[about.favourable])


def _run_document(
    summary: pd.DataFrame,
    name: str,
    protect: str,
    unlike: pd.DataFrame | None = None,
    *,
    meaning: str = "",
    sure: str = "95 %",
    posterior: bool = False,
) -> doc.Document:
    """Return the headline metrics of a run as a document.

    Parameters
    ----------
    summary : the result of :func:`fairbench.evaluation.summary.summarise`.
    protect : the attribute whose gaps and groups are shown.
    unlike : the result of :func:`fairbench.evaluation.many_groups.unlike_everyone_else`.
    meaning : what the labels mean, in sentences.
    sure : the level of the intervals.
    posterior : whether these are of the papers' posterior.
    """
    headlines = headline(summary, protect)
    chance = summaries.debiased_gaps(headlines, summary)
    parts = [f"{row.attribute}, {row.group != ''}" for row in headlines.itertuples()]
    estimands = headlines.get("estimand", pd.Series(dtype=str))
    splits = "folds" if estimands.str.contains(ESTIMANDS[FOLDS]).any() else "repeats"
    rows = list(_rows(headlines, chance.tolist()))
    counted = any(re.search(r"n=|\(\d", row["status"]) for row in rows)
    is_of_splits = posterior and (headlines["repeats"] > 1).any()
    told = {"posterior": is_of_splits, "status": counted}
    status = "".join(sentences_of("run", told, splits=splits))
    above_chance = np.isfinite(chance).any()
    is_regression = summaries.task_of(summary) == registry.REGRESSION
    table = named_table(
        *("run", "headline", rows),
        without=[] if above_chance else [DEBIASED],
        apart=parts,
        chance=f"{DEBIASED_MEANS}; " if above_chance else "",
        about=_about(estimands),
        splits=splits,
        status=status,
        sure=sure,
        # The gaps of a regression are between distributions, of every row.
        counted="all groups" if is_regression else "its smallest group",
    )
    blocks: list[doc.Block] = [doc.Paragraph(meaning)] if meaning else []
    blocks.append(table)
    for tables in (_uncertainties, _classes, _set_tables, _pooled_groups_table):
        blocks += tables(summary, protect, sure)
    if unlike is not None and len(unlike):
        blocks.append(_unlike(unlike))
    return doc.Document(name, [doc.Section("", blocks)])


def _rows_of(table: pd.DataFrame, by: Sequence[str], named: str = "metric") -> list[dict[str, Any]]:
    """Return a row for each combination of the columns `by` of a long table.

    A row has these columns, and for each metric (or whatever else the column `named` names) its own
    row of the long table: with its mean or value, lower, upper and n.
    """
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for estimate in table.to_dict("records"):
        key = tuple(estimate[name] for name in by)
        row = rows.setdefault(key, dict(zip(by, key, strict=True)))
        row[str(estimate[named])] = estimate
    return list(rows.values())


def _status_of(row: Mapping[str, Any]) -> str:
    """Return the status of a row of a long table, with its reason; empty if it is ok."""
    return "" if row["status"] == "ok" else status_text(str(row["status"]), str(row["reason"]))


def _classes(summary: pd.DataFrame, protect: str, sure: str) -> Iterator[doc.Table]:
    """Yield the table of each class against the rest, if there are several classes."""
    class_rows = _of_people(summary, protect)
    class_rows = class_rows[(class_rows["group"] == "") & class_rows["outcome"].notna()]
    rows = [row for row in _rows_of(class_rows, ["outcome"]) if "base_rate" in row]
    if rows:
        yield named_table("run", "classes", rows, protect=protect, sure=sure)


def _pooled_groups_table(summary: pd.DataFrame, protect: str, sure: str) -> Iterator[doc.Table]:
    """Yield the table of jointly estimated groups, if an attribute has three or more."""
    chosen = (summary["variant"] == "") & (summary["attribute"] == protect)
    chosen &= summary["outcome"].isna() & (summary["group"] != "")
    chosen &= summary["statistic"].isin([long_table.VALUE, POOLED, long_table.WORST])
    rows = [
        {**row, "label": registry.label(row["metric"]), "remark": _status_of(row[POOLED])}
        for row in _rows_of(summary[chosen], ["metric", "group"], named="statistic")
        if POOLED in row
    ]
    if rows:
        labels = [row["label"] for row in rows]
        pooled = pd.Series([row[POOLED]["mean"] for row in rows]).groupby(labels, sort=False)
        gaps = [f"{label} {number(gap)}" for label, gap in (pooled.max() - pooled.min()).items()]
        values = {"protect": protect, "gaps": ", ".join(gaps)}
        yield named_table("run", "pooled", rows, apart=labels, **values)


_MOST_UNLIKE = 8  # groups that are shown


def _unlike(unlike: pd.DataFrame) -> doc.Table:
    """Return the table of groups that differ from everyone else."""
    rows = unlike.head(_MOST_UNLIKE).to_dict("records")
    for row in rows:
        rate, of, name = row["metric"].partition(CLASS)  # a rate, with its class, if any
        row["rate"] = f"{registry.label(rate)}{of}{name}"
        row["who"] = f"{row['attribute']}: {row['group']}"
    shown = f"; the {_MOST_UNLIKE} surest are shown" if len(unlike) > _MOST_UNLIKE else ""
    values = {"found": len(unlike), "tests": unlike.attrs["tests"], "shown": shown}
    return named_table("run", "unlike", rows, **values)


def _about(estimands: Iterable[str]) -> str:
    """Return what intervals are for, by their estimands, such as ``for the mean over this fit``."""
    first = next(filter(None, estimands), "")
    over = first.partition(":")[0]
    return f"for the mean over {over}, on new people" if first else "there is none"


def _rows(headlines: pd.DataFrame, chance: Sequence[float]) -> Iterator[dict[str, Any]]:
    """Yield the headline metrics as rows of a table, with gaps less what chance adds to them."""
    groups = list(dict.fromkeys(str(group) for group in headlines["group"] if group))
    for row, less in zip(headlines.to_dict("records"), chance, strict=True):
        name = str(row["metric"])
        detail = row["group"] or _compared(name, groups)
        status = _status_of(row)
        if not status and np.isnan(row["lower"]):
            why = long_table.without_interval(name)
            why = why.replace("no interval: none is known to hold", "no known interval")
            status = "as measured" if name in long_table.COSTS else why
        of = f"{row['attribute']}: {detail}" if detail else str(row["attribute"])
        about = {"label": registry.label(name), "of": of, "status": status}
        yield {**row, **about, DEBIASED: less if np.isfinite(less) else None}


def _compared(name: str, groups: Sequence[str]) -> str:
    """Return which group's rate is divided by whose, of a ratio; empty of any other metric.

    Parameters
    ----------
    groups : the groups of the attribute, the reference first.
    """
    metric = registry.find(name)
    if metric is None or metric.interval != "widest" or metric.is_gap or len(groups) < 2:
        return ""
    return f"{groups[1]} over {groups[0]}" if len(groups) == 2 else "smallest over largest"


def tradeoff_document(
    rows: pd.DataFrame,
    metrics: Sequence[str],
    title: str,
    base: str,
    *,
    spread: str = "the mean of all repeats",
) -> doc.Document:
    """Return a table of the trade-off for each metric, with the runs sorted by error.

    Parameters
    ----------
    rows : the result of :func:`fairbench.comparison.runs.tradeoff`.
    base : the name of the model whose thresholds the last column is about; empty for none.
    spread : the quantity whose posterior the spreads describe.
    """
    thresholds = sentence_of("run", "thresholds", base=base) if base else ""
    values: dict[str, Any] = {"spread": spread, "thresholds": thresholds}
    titles = {name: name.removesuffix("_gap").replace("_", " ") for name in metrics}
    tables = []
    for name, shown in titles.items():
        of_metric = _of_metric(rows, name)
        most = {part: max(row[part] for row in of_metric) for part in ("without_group", "left_out")}
        values["left_out"] = "".join(sentences_of("run", most, **most))
        tables.append(named_table("run", "tradeoff", of_metric, metric=shown, **values))
    return doc.Document(title, [doc.Section("", tables)])


def _of_metric(rows: pd.DataFrame, metric: str) -> list[dict[str, Any]]:
    """Return the rows of a trade-off by one metric of gaps, least error first."""
    rows = rows[rows["metric"] == metric]
    parts = ["intervention", *(["learner"] if rows["learner"].nunique() > 1 else []), "method"]
    shown = rows.sort_values("error", kind="stable").to_dict("records")
    for row in shown:
        mark = " " if row["dominated"] or isnan(row["gap"]) else "*"
        row["name"] = f"{mark} {', '.join(str(row[part]) for part in parts)}"
        row |= {f"{name}_spread": row[f"{name}_variance"] ** 0.5 for name in ("error", "gap")}
    return shown


_UNVERIFIED = "not verified (data.verify=false): they may be other files than the data set's own"


def where_from(run: Run) -> doc.Document:
    """Return the origin of a run: machine, code, versions and data."""
    environment = run.environment
    dirty = " (with changes)" if environment.get("git_dirty") else ""
    versions = environment["versions"] | {"python": environment["python"]}
    facts = {
        "folder": str(run.path),
        "cells": str(len(run.cells())),
        "protects": run.protect,
        "seed": str(run.seed),
        "CPU": environment["cpu"],
        "commit": f"{environment.get('git_commit', 'unknown')}{dirty}",
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        **({} if run.verified else {"raw files": _UNVERIFIED}),
        **{f"sha256 of {name}": value for name, value in environment["data_sha256"].items()},
    }
    items = [f"{name}: {text}" for name, text in facts.items()]
    return doc.Document(run.name, [doc.Section("", [doc.Items(items)])])


_FACTS = (
    *("run", "name", *GROUPS, "seed", "protect", "metric", "statistic", "attribute", "group"),
    *("mean", "sd", "lower", "upper", "n", "repeats", "status", "reason"),
)


def runs_document(runs: Catalogue, metrics: Sequence[str] = ()) -> doc.Document:
    """Return the table of several runs as a document, sorted by data set and then by error.

    A run is named by how it differs from the others.

    Parameters
    ----------
    metrics : the metrics that are shown of each run; error, log loss and gap by default.

    Raises
    ------
    UserError : a metric that none of the runs has.
    """
    names = runs.label()
    rows: list[tuple[tuple[str, float], list[Any]]] = []
    gap = "" if metrics else summaries.headline_of(runs)
    tasks: dict[str, Mapping[str, str]] = {}
    estimands: dict[str, None] = {}
    available: set[str] = set()
    for table in read_summaries([*runs]):
        available.update(table["metric"].unique())
        texts = table["estimand"].unique() if "estimand" in table else ()
        estimands.update(dict.fromkeys(filter(None, texts)))
        is_own = table["variant"] == ""
        own = table[is_own if metrics else is_own & (table["group"] == "")]
        for id_, summary in own.groupby("run", sort=False):
            run = runs.runs[str(id_)]
            of_run = summaries.Headlines(summary, run.protect, gap)
            tasks[of_run.task] = of_run.names
            asked = [of_run.estimate(name) for name in metrics] or of_run.usual.values()
            shown = (part for value, *ends in asked for part in (value, tuple(ends)))
            place = run.choices["dataset"], of_run.usual["error"][0]
            debiased = nan if metrics else of_run.debiased_gap
            rows.append((place, [run.id[:6], names[run.id], *shown, debiased]))
    _check(metrics, available)
    rows.sort(key=lambda row: row[0])
    sure = levels_of(runs)
    columns = [Column("id"), Column("run")]
    titles = [registry.label(name) for name in metrics] or HEADLINES[registry.BINARY]
    for title in titles:
        # Those of log loss go first.
        scarce = 2 * (title == "log loss" and not metrics)
        columns.append(Column(title, "number", left_out=scarce))
        columns.append(Column(f"{sure} interval", "interval", 2, left_out=scarce and scarce + 1))
    caption = "" if metrics else _meanings(tasks)
    if any(isfinite(cells[-1]) for _, cells in rows):
        columns.append(Column(DEBIASED, "number", left_out=1))
        caption += f"{DEBIASED_MEANS}; "
    caption += f"{sure} intervals {_about(estimands)}; a gap's may begin at 0"
    if registry.BINARY in tasks and any(text.endswith(": their mean rates") for text in estimands):
        caption += "; of two classes," if len(tasks) > 1 else ";"
        caption += " a gap is the mean of the splits' gaps, not the gap of mean rates as in choose"
    data = [place[0] for place, _ in rows]
    rules = frozenset(i for i in range(1, len(data)) if data[i] != data[i - 1])
    cells = [row[: len(columns)] for _, row in rows]
    table = doc.Table(columns, cells, caption=caption, rules=rules)
    return doc.Document(f"{len(runs)} runs of {runs.folder}", [doc.Section("", [table])])


def _check(metrics: Sequence[str], available: Collection[str]) -> None:
    """Refuse metrics that no run has."""
    for name in metrics:
        if name.partition(registry.AT)[0] not in available:
            hint = did_you_mean(name, available)
            raise UserError(f"none of these runs has a metric '{name}'{hint and ': '}{hint}")


_OF = {registry.MULTICLASS: "of several classes, ", registry.REGRESSION: "of regressions, "}


def _meanings(tasks: Mapping[str, Mapping[str, str]]) -> str:
    """Return a text on the metrics of the columns, for each task."""
    parts = []
    for task, names in tasks.items():
        of_task = registry.metrics_of(task)
        meanings = (f"{name} is the {of_task[metric].label}" for name, metric in names.items())
        parts.append(f"{_OF.get(task, '')}{', '.join(meanings)}")
    return "; ".join([*parts, ""])


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
    protect = {run.id: run.protect for run in runs}
    available: set[str] = set()
    parts = []
    for table in read_summaries([*runs]):
        available.update(table["metric"].unique())
        if metrics:
            own = table[table["variant"] == ""]
            parts.append(own[own["metric"].isin(metrics)])
            parts += [
                summaries.rows_of(rows, name, runs.runs[str(id_)].protect)
                for name in metrics
                if registry.AT in name
                for id_, rows in own.groupby("run", sort=False)
            ]
        else:
            by_protect = table.groupby(table["run"].map(protect))
            parts += [headline(rows, str(name)) for name, rows in by_protect]
    _check(metrics, available)
    if not parts:
        return pd.DataFrame()
    about = [
        run.choices | {"run": run.id, "name": names[run.id], "seed": run.seed, "place": place}
        for place, run in enumerate(runs)
    ]
    rows = pd.concat(parts).merge(pd.DataFrame(about), on="run")
    rows["protect"] = rows["run"].map(protect)
    return rows.sort_values("place", kind="stable", ignore_index=True)[[*_FACTS]]
