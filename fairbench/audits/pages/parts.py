"""What the reports of all kinds of audits have in common."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pandas as pd

from fairbench.evaluation.columns import records, setting_text, status_text, values_of
from fairbench.reporting.document.model import (
    Bar,
    Column,
    Details,
    Paragraph,
    Table,
)

MOST_ROWS = 16  # of a table by group, on a terminal
MOST_LINES = 8  # groups in a figure


# (attribute, group, metric) -> (value, lower, upper)
Estimates: TypeAlias = Mapping[tuple[str, str, str], tuple[float, float, float]]


def estimates(metrics: pd.DataFrame, names: Collection[str]) -> Estimates:
    """Return value, lower and upper of metrics of these names, by attribute, group and metric."""
    metrics = values_of(metrics)
    shown = metrics[metrics["metric"].isin(list(names))]
    columns = ("attribute", "group", "metric", "value", "lower", "upper")
    rows = zip(*(shown[name] for name in columns), strict=True)
    return {(str(a), str(g), str(m)): (v, low, up) for a, g, m, v, low, up in rows}


def starts(names: Sequence[str]) -> frozenset[int]:
    """Return the positions where a name differs from the one before."""
    return frozenset(i for i in range(len(names)) if i == 0 or names[i] != names[i - 1])


def bars(ends: Sequence[tuple[float, float, float]], epsilon: float) -> list[Bar | None]:
    """Return (lower, value, upper) placed on a scale that all share; None of what is undefined."""
    shown = np.array([*ends, (-epsilon, 0, epsilon)], float)
    low, high = np.nanmin(shown), np.nanmax(shown)
    scaled = (100 * (shown - low) / (high - low)).tolist()
    *placed, (left, zero, right) = [[round(place, 1) for place in triple] for triple in scaled]
    return [
        None if np.isnan(triple).any() else Bar(*triple, band=(left, right), zero=zero)
        for triple in placed
    ]


Row = TypeVar("Row")
# What a cell shows of a row: a field, an interval or estimate of several, or what a function makes.
Shown: TypeAlias = str | tuple[str, ...] | Callable[[Row], object]
OF_GROUP = (("attribute", Column("of", left_out=1)), ("group", Column("group")))


def table_of(
    rows: Iterable[Row],
    columns: Sequence[tuple[Shown[Row], Column]],
    *,
    by: str = "attribute",
    **about: Any,
) -> Table:
    """Return a table of rows, in columns that each say what they show of a row.

    Parameters
    ----------
    rows : mappings, or objects with the fields as attributes.
    by : the field at whose changes a rule is drawn; empty for none.
    about : what else a :class:`Table` has, such as its caption.
    """
    rows = list(rows)

    def field(row: Row, name: str) -> object:
        return row[name] if isinstance(row, Mapping) else getattr(row, name)

    def cell(row: Row, shown: Shown[Row]) -> object:
        if isinstance(shown, str):
            return field(row, shown)
        if isinstance(shown, tuple):
            return tuple(field(row, name) for name in shown)
        return shown(row)

    return Table(
        [column for _, column in columns],
        [[cell(row, shown) for shown, _ in columns] for row in rows],
        rules=starts([str(field(row, by)) for row in rows]) if by else frozenset(),
        **about,
    )


def all_metrics(found: pd.DataFrame, note: str = "") -> Details:
    """Return every metric in a table that is folded away."""
    metrics = found.assign(setting=setting_text(found))
    everyone = metrics["attribute"] == ""

    def status(row: Mapping[str, Any]) -> str:
        return "" if row["status"] == "ok" else status_text(row["status"], row["reason"])

    table = table_of(
        [*records(metrics[everyone]), *records(metrics[~everyone])],
        [
            (lambda row: row["metric"].replace("_", " "), Column("metric")),
            (lambda row: row["statistic"].replace("_", " "), Column("statistic")),
            ("attribute", Column("of")),
            ("group", Column("group")),
            ("setting", Column("setting")),
            ("value", Column("value", "number")),
            (("lower", "upper"), Column("95 % interval", "interval")),
            ("n", Column("n", "count")),
            (status, Column("status")),
        ],
        by="",
    )
    notes = [Paragraph(note, "note")] if note else []
    return Details(f"All metrics ({len(found)})", [*notes, table])
