"""The part of an audit on what cannot be known: labels of those who were not selected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from math import floor

from fairbench.audit.gaps import LARGE, OPEN, RATE_NAMES, SMALL
from fairbench.audit.unknown import CANNOT, BoundedGap, BoundedRate, UnknownLabels
from fairbench.core.formats import count, interval
from fairbench.metrics.registry import label
from fairbench.reporting.audits.binary import starts
from fairbench.reporting.document.model import (
    Column,
    Details,
    Document,
    Paragraph,
    Section,
    Table,
    TableCell,
    Verdict,
)

_TITLE = "What cannot be known"


def with_unknown_labels(document: Document, unknown: UnknownLabels) -> Document:
    """Return the audit of those who were selected, with what follows for everyone."""
    was = document.verdict or Verdict([], [])
    of_whom = (
        f"Of {count(unknown.rows)} people, {count(unknown.selected)} were selected "
        f"('{unknown.options.selected}'), and only these can have labels. What follows is of them; "
        f"what that says of everyone stands under '{_TITLE}' and begins with 'of everyone'."
    )
    epsilon = unknown.options.epsilon
    verdict = replace(
        was,
        basis=[of_whom, *was.basis],
        can=[*was.can, *_can(unknown.gaps, epsilon)],
        cannot=[*was.cannot, *_cannot(unknown.gaps, epsilon)],
    )
    data = {
        **document.data,
        "of_everyone": {
            "rows": unknown.rows,
            "selected": unknown.selected,
            "gaps": [asdict(each) for each in unknown.gaps],
            "rates": [asdict(each) for each in unknown.rates],
        },
    }
    sections = [*document.sections]
    return replace(
        document,
        sections=[*sections[:1], _section(unknown), *sections[1:]],
        verdict=verdict,
        notes=[
            *document.notes,
            "Verdicts of everyone are counted apart: in at most one audit of twenty any of them is "
            "wrong.",
        ],
        data=data,
    )


def _can(gaps: Sequence[BoundedGap], epsilon: float) -> Iterator[str]:
    for gap in gaps:
        rate = RATE_NAMES[gap.metric]
        if gap.verdict == LARGE:
            yield (
                f"{gap.attribute}, of everyone: the {rate} of {gap.high} is higher than that of "
                f"{gap.low} by more than {epsilon:g}, whatever the labels are that cannot be known."
            )
        elif gap.verdict == SMALL:
            yield (
                f"{gap.attribute}, of everyone: no two groups differ by {epsilon:g} or more in "
                f"{rate}, whatever the labels are that cannot be known."
            )


def _cannot(gaps: Sequence[BoundedGap], epsilon: float) -> Iterator[str]:
    for attribute in dict.fromkeys(gap.attribute for gap in gaps):
        mine = [gap for gap in gaps if gap.attribute == attribute and gap.verdict == CANNOT]
        if mine:
            listed = "; ".join(
                f"{RATE_NAMES[gap.metric]} (anything in {interval(*gap.bounds.size)})"
                for gap in mine
            )
            yield (
                f"{attribute}, of everyone: no number of labels of the selected settles whether "
                f"groups differ by {epsilon:g} or more in {listed}."
            )


def _section(unknown: UnknownLabels) -> Section:
    others = unknown.rows - unknown.selected
    odds = unknown.options.odds
    text = (
        f"{count(others)} of {count(unknown.rows)} people were not selected, and what their labels "
        "would have been is not in any data. Under 'whatever they are' nothing is assumed. Under "
        f"'odds within {odds:g}' the odds of label 1 of those who were not selected are at most "
        f"{odds:g} times higher or lower than those of the selected of the same group, decision "
        "and band of scores."
    )
    return Section(_TITLE, [Paragraph(text), _gaps(unknown), _rates(unknown)])


def _gaps(unknown: UnknownLabels) -> Table:
    gaps, odds = unknown.gaps, unknown.options.odds
    columns = [
        Column("groups"),
        Column("gap in"),
        Column("whatever they are", "interval"),
        Column("verdict"),
        Column(f"odds within {odds:g}", "interval"),
        Column("verdict"),
        Column("holds up to", right=True),
    ]
    rows = [
        [
            gap.attribute,
            RATE_NAMES[gap.metric],
            gap.bounds.interval,
            _verdict(gap.verdict),
            None if gap.assumed is None else gap.assumed.interval,
            _verdict(gap.assumed_verdict),
            _factor(gap),
        ]
        for gap in gaps
    ]
    return Table(
        columns,
        rows,
        title="Gaps of everyone, selected or not",
        caption=(
            "Intervals hold the gap in 95 % of samples, wherever it is between its bounds; of two "
            "groups, the second's rate minus the first's. cannot be known: no number of rows "
            "settles it. holds up to: the verdict that follows if missing labels are like those of "
            "similar selected people, and the factor between their odds up to which it holds."
        ),
        rules=starts([gap.attribute for gap in gaps]),
    )


def _verdict(verdict: str) -> TableCell:
    return TableCell(verdict, mark=OPEN if verdict == CANNOT else verdict)


def _factor(gap: BoundedGap) -> str:
    if gap.factor_verdict not in (SMALL, LARGE):
        return ""
    if gap.factor is None:
        return f"{gap.factor_verdict}: any"
    # Never rounded up, as it would not hold there.
    shown = floor(10 * gap.factor) / 10 if gap.factor < 10 else floor(gap.factor)
    return f"{gap.factor_verdict}: {shown:g}"


def _rates(unknown: UnknownLabels) -> Details:
    odds = unknown.options.odds
    columns = [
        Column("of"),
        Column("group"),
        Column("rows", "count"),
        Column("not selected", "count"),
        Column("rate"),
        Column("bounds", "interval"),
        Column("95 % interval", "interval"),
        Column(f"bounds, odds within {odds:g}", "interval"),
        Column("95 % interval", "interval"),
    ]
    rows = [_rate(each) for each in unknown.rates]
    return Details("Rates of everyone, by group", [Table(columns, rows)])


def _rate(each: BoundedRate) -> list[object]:
    return [
        each.attribute,
        each.group,
        each.rows,
        each.others,
        label(each.rate),
        each.bounds,
        each.interval,
        each.assumed,
        each.assumed_interval,
    ]
