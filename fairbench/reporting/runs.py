"""The documents of runs: the table of one, and a trade-off of many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from rich.table import Table as RichTable

from fairbench.core.errors import UserError
from fairbench.core.escaping import terminal
from fairbench.core.formats import count
from fairbench.data.dataset import Task
from fairbench.evaluation.columns import (
    COSTS,
    DEBIASED,
    POOLED,
    VALUE,
    WORST,
    status_text,
    values_of,
    without_interval,
)
from fairbench.evaluation.headlines import DEBIASED_MEANS, debiased_gaps
from fairbench.evaluation.many_groups import CLASS, unlike_everyone_else
from fairbench.metrics.registry import declared, find, label
from fairbench.reporting.document.model import Column, Document, Paragraph, Section, Table
from fairbench.reporting.set_tables import set_tables
from fairbench.results.labels_and_groups import Description
from fairbench.results.runs import Run

FITS = ("constraint_active", *COSTS)
_COLUMNS = (
    Column("metric"),
    Column("of"),
    Column("mean", "number", decimals=4),
    Column("sd", "number", decimals=4, left_out=2),
    Column("95 % interval", "interval", left_out=1),
    Column("rows", "count", left_out=3),
    Column("status"),
)
_CAPTION = (
    "mean and sd: over repeats; 95 % interval: {}; the interval of a gap is for the gap between "
    "the groups' mean rates, and may begin at 0; rows: how many rows the value rests on, of a gap "
    "those of its smallest group; {}all metrics are in metrics.parquet"
)
_STATUS_CAPTION = "status: n stands for rows, and (1 of 3) for 1 of 3 repeats; "


def headline(summary: pd.DataFrame, protect: str) -> pd.DataFrame:
    """Return the most important rows: of everyone, gaps of `protect`, its groups, the fits.

    Those of single classes have a table of their own.
    """
    summary = values_of(summary)
    summary = summary[(summary["variant"] == "") & summary["outcome"].isna()]
    overall = summary["attribute"] == ""
    gaps = (summary["attribute"] == protect) & (summary["group"] == "")
    groups = (summary["attribute"] == protect) & (summary["group"] != "")
    mass = (summary["binning"] == "mass").to_numpy(bool)

    def shown(where: str) -> pd.Series:
        return summary["metric"].isin(
            [metric.name for metric in declared() if where in metric.shown]
        )

    parts = [
        summary[overall & shown("everyone") & ~mass],
        summary[gaps & shown("gaps")],
        summary[groups & shown("groups")],
        summary[overall & summary["metric"].isin(FITS)],
    ]
    return pd.concat(parts, ignore_index=True)


def document_of(run: Run) -> Document:
    """Return the headline metrics of a finished run, and its groups unlike everyone else.

    What labels mean is left out where the results hold no labels, as of data that may not be
    passed on.
    """
    unlike = unlike_everyone_else(run.all_metrics())
    try:
        meaning = labels_in_words(run.people().about)
    except UserError:
        meaning = ""
    return run_document(run.summary(), run.name, run.protect, unlike, meaning=meaning)


def labels_in_words(about: Description) -> str:
    """Return what the labels of a data set mean, and what a selection rate is a share of."""
    if about.task is Task.REGRESSION:
        return (
            f"The target, {about.target_name}, is a number. The gap in selection rate is between "
            "the groups' shares of predictions above one value, where that gap is largest."
        )
    if about.task is Task.MULTICLASS:
        names = [f"'{name}'" for name in about.classes]
        order = ", in this order" if about.ordered else ""
        text = (
            f"The classes are {', '.join(names)}{order}. The selection rate of a class is the "
            "share predicted to be in it."
        )
    else:
        names = ["Label 0", "Label 1"]
        text = "The selection rate is the share predicted 1."
        if about.positive_label:
            text = (
                f"Label 1 is '{about.positive_label}'; the selection rate is the share predicted 1."
            )
    if about.favourable is None:
        return text
    return f"{text} {names[about.favourable]} is good for the person."


def run_document(
    summary: pd.DataFrame,
    name: str,
    protect: str,
    unlike: pd.DataFrame | None = None,
    *,
    meaning: str = "",
) -> Document:
    """Return the headline metrics of a run as a document.

    Parameters
    ----------
    summary : the result of :func:`fairbench.evaluation.summary.summarise`.
    protect : the attribute whose gaps and groups are shown.
    unlike : the result of :func:`fairbench.evaluation.many_groups.unlike_everyone_else`.
    meaning : what the labels mean, in sentences.
    """
    headlines = headline(summary, protect)
    chance = debiased_gaps(headlines, summary)
    parts = list(zip(headlines["attribute"], headlines["group"] != "", strict=True))
    rules = frozenset(i for i in range(1, len(parts)) if parts[i] != parts[i - 1])
    rows = list(_rows(headlines))
    status_caption = _STATUS_CAPTION if any(row[-1] for row in rows) else ""
    caption = _CAPTION.format(about(headlines), status_caption)
    columns = list(_COLUMNS)
    if np.isfinite(chance).any():
        columns.insert(3, Column(DEBIASED, "number", decimals=4))
        of_rows = [less if np.isfinite(less) else None for less in chance.tolist()]
        rows = [[*row[:3], less, *row[3:]] for row, less in zip(rows, of_rows, strict=True)]
        caption = f"{DEBIASED_MEANS}; {caption}"
    table = Table(columns, rows, "", caption, rules=rules)
    tables = [
        table,
        *(t for of in (_classes, set_tables, _pooled_groups_table) for t in of(summary, protect)),
    ]
    if unlike is not None and len(unlike):
        tables.append(_unlike(unlike))
    lead = [Paragraph(meaning)] if meaning else []
    return Document(name, [Section("", [*lead, *tables])])


_CLASS_COLUMNS = (
    Column("class"),
    Column("share", "number", decimals=3),
    Column("predicted", "number", decimals=3),
    Column("found", "number", decimals=3),
    Column("false alarms", "number", decimals=3, left_out=1),
    Column("gap in predicted", "number", decimals=3),
    Column("95 % interval", "interval", decimals=2, left_out=2),
    Column("gap in found", "number", decimals=3),
    Column("95 % interval", "interval", decimals=2, left_out=3),
)
_CLASS_CAPTION = (
    "share: of the rows that are of the class; predicted: of the rows predicted so; found: of the "
    "rows of the class, those predicted so (true positive rate); false alarms: of all other rows "
    "(false positive rate); gaps: the largest between two groups of {}"
)


def _classes(summary: pd.DataFrame, protect: str) -> Iterator[Table]:
    """Yield the table of each class against the rest, if there are several classes."""
    class_rows = values_of(summary)
    class_rows = class_rows[(class_rows["variant"] == "") & (class_rows["group"] == "")]
    class_rows = class_rows[
        class_rows["outcome"].notna() & class_rows["attribute"].isin(["", protect])
    ]
    row_of = {(row.metric, row.outcome): row for row in class_rows.itertuples()}
    names = [outcome for metric, outcome in row_of if metric == "base_rate"]
    rows: list[list[object]] = []
    for name in names:
        cells = [row_of[rate, name].mean for rate in _CLASS_RATES]
        for gap in ("statistical_parity", "equal_opportunity"):
            row = row_of.get((gap, name))
            none = (np.nan, (np.nan, np.nan))
            cells += none if row is None else (row.mean, (row.lower, row.upper))
        rows.append([str(name), *cells])
    if rows:
        caption = _CLASS_CAPTION.format(protect)
        yield Table(_CLASS_COLUMNS, rows, "each class against the rest", caption)


_CLASS_RATES = ("base_rate", "selection_rate", "true_positive_rate", "false_positive_rate")
_POOLED_COLUMNS = (
    Column("rate"),
    Column("group"),
    Column("raw", "number", decimals=4),
    Column("pooled", "number", decimals=4),
    Column("pooled interval", "interval"),
    Column("P(worst)", "number", decimals=2),
    Column("rows", "count", left_out=1),
    Column("remark"),
)
_POOLED_CAPTION = (
    "raw: from the group's own rows; pooled: drawn towards what the other groups lead one to "
    "expect, the more the fewer the rows; P(worst): that no other group's rate is worse"
)


def _pooled_groups_table(summary: pd.DataFrame, protect: str) -> Iterator[Table]:
    """Yield the table of jointly estimated groups, if an attribute has three or more."""
    group_rows = summary[(summary["variant"] == "") & (summary["attribute"] == protect)]
    group_rows = group_rows[group_rows["outcome"].isna()]
    group_rows = group_rows[
        (group_rows["group"] != "") & group_rows["statistic"].isin([VALUE, POOLED, WORST])
    ]
    row_of = {(row.metric, row.statistic, row.group): row for row in group_rows.itertuples()}
    rows: list[list[object]] = []
    rules = []
    for (rate, statistic, group), row in row_of.items():
        if statistic != POOLED:
            continue
        if rows and rows[-1][0] != label(str(rate)):
            rules.append(len(rows))
        raw, worst = (row_of[rate, statistic_name, group].mean for statistic_name in (VALUE, WORST))
        remark = "" if row.status == "ok" else status_text(str(row.status), str(row.reason))
        ends = row.lower, row.upper
        rows.append([label(str(rate)), group, raw, row.mean, ends, worst, row.n, remark])
    if rows:
        title = f"groups of {protect}, estimated together"
        caption = _POOLED_CAPTION
        yield Table(_POOLED_COLUMNS, rows, title, caption, rules=frozenset(rules))


_UNLIKE_COLUMNS = (
    Column("rate"),
    Column("group"),
    Column("of the group", "number", decimals=4),
    Column("of all others", "number", decimals=4),
    Column("rows", "count", left_out=1),
)
_MOST_UNLIKE = 8  # groups that are shown


def _unlike(unlike: pd.DataFrame) -> Table:
    """Return the table of groups that differ from everyone else."""
    rows = [
        [_rate_label(str(row.metric)), f"{row.attribute}: {row.group}", row.value, row.rest, row.n]
        for row in unlike.head(_MOST_UNLIKE).itertuples()
    ]
    title = (
        f"groups that differ from everyone else: {len(unlike)} of {unlike.attrs['tests']} tested"
    )
    caption = "chosen from all rates and groups of the run so that at most one in ten is wrong"
    if len(unlike) > len(rows):
        caption += f"; the {len(rows)} surest are shown"
    return Table(_UNLIKE_COLUMNS, rows, title, caption)


def _rate_label(metric: str) -> str:
    """Return the label of a rate, with its class, if any."""
    rate, of, name = metric.partition(CLASS)
    return f"{label(rate)}{of}{name}"


def about(summary: pd.DataFrame) -> str:
    """Return what a summary's intervals are for, such as ``for the mean over this fit, ...``."""
    estimands = [str(text).partition(":")[0] for text in summary.get("estimand", ()) if text]
    return f"for the mean over {estimands[0]}, on new people" if estimands else "there is none"


def has_means_of_gaps(summary: pd.DataFrame) -> bool:
    """Return whether gaps are means over splits, and their intervals of the gap of mean rates."""
    return any(str(text).endswith(": their mean rates") for text in summary.get("estimand", ()))


def _rows(headlines: pd.DataFrame) -> Iterator[list[object]]:
    """Yield the cells of each headline metric."""
    groups = list(dict.fromkeys(str(group) for group in headlines["group"] if group))
    for row in headlines.itertuples():
        name = str(row.metric)
        detail = row.group or _compared(name, groups)
        where = f"{row.attribute}: {detail}" if detail else str(row.attribute)
        if row.status != "ok":
            status = status_text(str(row.status), str(row.reason))
        elif np.isnan(row.lower):
            status = without_interval(name)
        else:
            status = _too_wide(name, row.upper - row.lower, row.n)
        ends = row.lower, row.upper
        yield [label(name), where, row.mean, row.sd, ends, row.n, status]


def _compared(name: str, groups: Sequence[str]) -> str:
    """Return which group's rate is divided by whose, of a ratio; empty of any other metric.

    Parameters
    ----------
    groups : the groups of the attribute, the reference first.
    """
    metric = find(name)
    if metric is None or metric.interval != "widest" or metric.is_gap or len(groups) < 2:
        return ""
    return f"{groups[1]} over {groups[0]}" if len(groups) == 2 else "smallest over largest"


_WIDE = 0.9  # the share of all possible values from which on an interval tells nearly nothing


def _too_wide(name: str, width: float, rows: float) -> str:
    """Return why the interval of a share or a gap has nearly every value; empty if it has not."""
    metric = find(name)
    is_share = metric is not None and (metric.is_gap or metric.interval in ("rate", "auc"))
    return f"wide: {count(rows)} rows are too few to tell" if is_share and width >= _WIDE else ""


_TRADEOFF_COLUMNS = (
    Column("run"),
    Column("error (sd)", "spread"),
    Column("gap (sd)", "spread"),
    Column("dominated", "number", decimals=2),
    Column("thresholds", "number", left_out=1),
)
_TRADEOFF_CAPTION = (
    "*: no other run has a smaller mean in one and no larger in the other; sd: posterior of {}; "
    "dominated: probability that the run most likely to beat it is better in both, paired"
)


def tradeoff_document(
    rows: pd.DataFrame,
    metrics: Sequence[str],
    title: str,
    base: str,
    *,
    spread: str = "the mean of all repeats",
) -> Document:
    """Return a table of the trade-off for each metric, with the runs sorted by error.

    Parameters
    ----------
    rows : the result of :func:`fairbench.comparison.tradeoff_runs.tradeoff`.
    base : the name of the model whose thresholds the last column is about; empty for none.
    spread : the quantity whose posterior the standard deviations describe.
    """
    caption = _TRADEOFF_CAPTION.format(spread)
    if base:
        caption += f"; thresholds: error of {base}, a threshold per group, at no larger gap"
    tables = [_table(rows[rows["metric"] == metric], metric, caption) for metric in metrics]
    return Document(title, [Section("", tables)])


def _table(rows: pd.DataFrame, metric: str, caption: str) -> Table:
    """Return the table of a trade-off by one metric of gaps, least error first."""
    parts = ["intervention", *(["learner"] if rows["learner"].nunique() > 1 else []), "method"]
    cells = [
        [
            _name(row, parts),
            (row["error"], np.sqrt(row["error_variance"])),
            (row["gap"], np.sqrt(row["gap_variance"])),
            row["certainty"],
            row["postprocessed_error"],
        ]
        for row in rows.sort_values("error", kind="stable").to_dict("records")
    ]
    title = f"error against the {metric.replace('_', ' ')} gap"
    return Table(_TRADEOFF_COLUMNS, cells, title=title, caption=caption)


def _name(row: dict[object, object], parts: Sequence[str]) -> str:
    best = not row["dominated"] and row["gap"] == row["gap"]
    return f"{'*' if best else ' '} {', '.join(str(row[part]) for part in parts)}"


_UNVERIFIED = "not verified (data.verify=false): they may be other files than the data set's own"


def where_from(run: Run) -> RichTable:
    """Return the origin of a run as a table: machine, code, versions and data."""
    environment = run.environment
    dirty = " (with changes)" if environment.get("git_dirty") else ""
    versions = environment["versions"] | {"python": environment["python"]}
    rows = {
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
    title = terminal(run.name, style="italic")
    table = RichTable(show_header=False, title=title, title_justify="left")
    for name, value in rows.items():
        table.add_row(*(terminal(text) for text in (name, value)))
    return table
