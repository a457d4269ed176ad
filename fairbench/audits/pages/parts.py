"""What the reports of all kinds of audits have in common."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar

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


def bars(ends: Sequence[tuple[float, float, float]], epsilon: float) -> Iterator[Bar | None]:
    """Yield (lower, value, upper) placed on a scale that all share; None of what is undefined."""
    shown = [each for triple in ends for each in triple if not np.isnan(each)]
    low, high = min([-epsilon, *shown]), max([epsilon, *shown])

    def place(value: float) -> float:
        return round(100 * (value - low) / (high - low), 1)

    band, zero = (place(-epsilon), place(epsilon)), place(0)
    for triple in ends:
        if np.isnan(triple).any():
            yield None
        else:
            lower, value, upper = map(place, triple)
            yield Bar(lower, value, upper, band=band, zero=zero)


def all_metrics(found: pd.DataFrame, note: str = "") -> Details:
    """Return every metric in a table that is folded away."""
    metrics = found.assign(setting=setting_text(found))
    everyone = metrics["attribute"] == ""
    ordered = [*records(metrics[everyone]), *records(metrics[~everyone])]
    columns = [Column("metric"), Column("statistic"), Column("of"), Column("group")]
    columns += [Column("setting")]
    columns += [Column("value", "number"), Column("95 % interval", "interval")]
    columns += [Column("n", "count"), Column("status")]
    rows = [
        [
            row["metric"].replace("_", " "),
            row["statistic"].replace("_", " "),
            row["attribute"],
            row["group"],
            row["setting"],
            row["value"],
            (row["lower"], row["upper"]),
            row["n"],
            "" if row["status"] == "ok" else status_text(row["status"], row["reason"]),
        ]
        for row in ordered
    ]
    table = Table(columns, rows)
    notes = [Paragraph(note, "note")] if note else []
    return Details(f"All metrics ({len(rows)})", [*notes, table])


Row = TypeVar("Row")
# What a cell shows of a row: a field, an interval or estimate of several, or what a function makes.
Shown: TypeAlias = str | tuple[str, ...] | Callable[[Row], object]
OF_GROUP = (("attribute", Column("of", left_out=1)), ("group", Column("group")))


def table_of(
    rows: Sequence[Row],
    columns: Sequence[tuple[Shown[Row], Column]],
    *,
    caption: str = "",
    reading: str = "",
    most: int = 0,
    by: str = "attribute",
) -> Table:
    """Return a table of rows, in columns that each say what they show of a row.

    Parameters
    ----------
    by : the field at whose changes a rule is drawn; none without one.
    """

    def cell(row: Row, shown: Shown[Row]) -> object:
        if isinstance(shown, str):
            return getattr(row, shown)
        if isinstance(shown, tuple):
            return tuple(getattr(row, name) for name in shown)
        return shown(row)

    return Table(
        [column for _, column in columns],
        [[cell(row, shown) for shown, _ in columns] for row in rows],
        caption=caption,
        reading=reading,
        rules=starts([getattr(row, by) for row in rows]) if by else frozenset(),
        most=most,
    )
