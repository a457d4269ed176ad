"""What the reports of all kinds of audits have in common."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

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


def table_of(
    rows: Iterable[Mapping[str, Any]],
    columns: Mapping[str | tuple[str, ...], Column],
    *,
    by: str = "attribute",
    title: str = "",
    caption: str = "",
    reading: str = "",
    most: int = 0,
) -> Table:
    """Return rows as a table.

    Parameters
    ----------
    columns : by what of a row stands in each, of an interval both ends.
    by : of which part of a row each different value begins a new part of the table; empty of none.
    title, caption, reading, most : of the :class:`Table`.
    """
    rows = list(rows)
    cells = [
        [row[name] if isinstance(name, str) else tuple(map(row.get, name)) for name in columns]
        for row in rows
    ]
    rules = starts([row[by] for row in rows]) if by else frozenset()
    return Table(list(columns.values()), cells, title, caption, reading, rules, most=most)
