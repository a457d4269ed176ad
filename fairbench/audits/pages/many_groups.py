"""The audit of many groups as a document: those that stand out, those least known, and a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import pandas as pd

from fairbench.audits.conclusions import Conclusions
from fairbench.audits.many_groups import (
    BEYOND,
    FEWEST_ROWS,
    OPEN,
    WITHIN,
    ManyGroups,
    conclude_many,
    shares,
)
from fairbench.audits.pages.parts import audit_of, bars, header
from fairbench.core.formats import count, csv_text
from fairbench.metrics.registry import label
from fairbench.reporting.document.model import Block, Column, Document, Paragraph, Section, Table

_MOST, _MOST_PRINTED, _MOST_UNKNOWN = 40, 16, 10
TABLE = "groups.csv"


def many_groups_document(found: ManyGroups) -> Document:
    """Return an audit of many groups; the table of all of them is a file beside the page."""
    conclusions = conclude_many(found)
    return audit_of(
        found.options,
        conclusions,
        _sections(found),
        _data(found, conclusions),
        labels=found.table.labels,
        files={TABLE: csv_text(found.frame)},
    )


def _sections(found: ManyGroups) -> Iterator[Section]:
    yield Section("Everyone, and how far groups are from it", [_everyone(found)])
    yield Section("Groups that stand out", list(_stand_out(found)))
    table = _groups(found, found.least_known.head(_MOST_UNKNOWN), "")
    yield Section("Groups of which least is known", [table])
    yield Section(
        "", [Paragraph(f"Every group and rate, {count(len(found.frame))} rows: {TABLE}.", "note")]
    )


def _everyone(found: ManyGroups) -> Table:
    epsilon = found.options.epsilon
    columns = [
        Column("rate"),
        Column("everyone", "estimate"),
        Column("unlike everyone", "count"),
        Column(f"within {epsilon:g}", "percent"),
        Column("beyond", "percent"),
        Column("open", "percent"),
        Column("widest gap", "number", left_out=1),
        Column("95 % interval", "interval"),
    ]
    rows = []
    for rate in found.rates:
        share = shares(found, rate)
        unlike = int((found.unlike["rate"] == rate.name).sum())
        gap = tuple(map(float, rate.gap))
        everyone = tuple(map(float, rate.overall))
        parts = [share[each] for each in (WITHIN, BEYOND, OPEN)]
        rows.append([rate.label, everyone, unlike, *parts, gap[0], gap[1:]])
    return Table(
        columns,
        rows,
        caption=(
            f"within, beyond: share of the groups that are less than {epsilon:g} from everyone, or "
            "further, with a probability of 95 % or more; widest gap: of the counts, between two "
            f"groups of {FEWEST_ROWS} rows or more, at least what the surest of all pairs shows "
            "and at most what any pair may have"
        ),
    )


def _stand_out(found: ManyGroups) -> Iterator[Block]:
    if not len(found.unlike):
        yield Paragraph("No group is surely unlike everyone else in any rate.")
        return
    shown = found.unlike.head(_MOST)
    more = f"; the {count(len(shown))} surest are shown" if len(found.unlike) > len(shown) else ""
    yield _groups(found, shown, f"{count(len(found.unlike))} rates of groups{more}")


def _groups(found: ManyGroups, rows: pd.DataFrame, title: str) -> Table:
    """Return rows of the table of groups, with their pooled intervals drawn on one scale."""
    columns = [
        Column("rate"),
        Column("group"),
        Column("rows", "count"),
        Column("raw", "number"),
        Column("everyone", "number", left_out=1),
        Column("pooled less everyone", "signed"),
        Column("95 % interval", "interval"),
        Column("", "bar"),
    ]
    ends = [
        (row.lower - row.everyone, row.pooled - row.everyone, row.upper - row.everyone)
        for row in rows.itertuples()
    ]
    cells = [
        [
            label(str(row.rate)),
            row.group,
            row.rows,
            row.raw,
            row.everyone,
            at[1],
            (at[0], at[2]),
            bar,
        ]
        for row, at, bar in zip(
            rows.itertuples(), ends, bars(ends, found.options.epsilon), strict=True
        )
    ]
    reading = (
        "Drawn: the pooled estimate of each group less the rate of everyone, with its 95 % "
        f"interval. Shaded: less than {found.options.epsilon:g} either way."
    )
    return Table(columns, cells, title, reading=reading, most=_MOST_PRINTED)


def _data(found: ManyGroups, conclusions: Conclusions) -> Mapping[str, Any]:
    names = found.groups
    return header(
        found.options,
        rows=len(found.table),
        labels=len(found.table.known),
        conclusions=asdict(conclusions),
        rates=[
            {
                "rate": rate.name,
                "everyone": [float(each) for each in rate.overall],
                "gap": [float(each) for each in rate.gap],
                "surest_pair": [names[rate.high], names[rate.low]] if rate.high >= 0 else [],
                "shares": shares(found, rate),
            }
            for rate in found.rates
        ],
        groups=found.frame.to_dict("list"),
    )
