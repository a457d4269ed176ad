"""What an audit says of what cannot be known: labels of the others, or who is in which group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from math import floor, isnan
from typing import Any

from fairbench.audits.conclusions import Conclusions
from fairbench.audits.gaps import LARGE, OPEN, RATE_NAMES, SMALL
from fairbench.audits.pages.parts import audit_of, header, starts
from fairbench.audits.proxy import ProxyAudit
from fairbench.audits.unknown import CANNOT, BoundedGap, BoundedRate, UnknownLabels
from fairbench.core.formats import count, interval
from fairbench.metrics.registry import label
from fairbench.reporting.document.model import (
    Column,
    Details,
    Document,
    ExecutiveSummary,
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
    short = document.summary or ExecutiveSummary([])
    summary = replace(
        short,
        found=[*short.found, *_can(unknown.gaps, epsilon)],
        unseen=[of_whom, *short.unseen],
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
        summary=summary,
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
            yield (
                f"{attribute}, of everyone: no number of labels of the selected settles whether "
                f"groups differ by {epsilon:g} or more in {_anything(mine)}."
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


def proxy_document(audit: ProxyAudit) -> Document:
    """Return the audit of groups that are known through probabilities alone."""
    epsilon, gaps = audit.options.epsilon, audit.gaps
    can = [
        f"The {RATE_NAMES[gap.metric]} of {gap.high} is higher than that of {gap.low} by more than "
        f"{epsilon:g}, whoever belongs to which group."
        for gap in gaps
        if gap.verdict == LARGE
    ]
    can += [
        f"No two groups differ by {epsilon:g} or more in {RATE_NAMES[gap.metric]}, whoever belongs "
        "to which group."
        for gap in gaps
        if gap.verdict == SMALL
    ]
    unsettled = [gap for gap in gaps if gap.verdict == CANNOT]
    few = [gap for gap in gaps if gap.verdict == OPEN]
    cannot = []
    if unsettled:
        cannot.append(
            f"No number of rows settles whether groups differ by {epsilon:g} or more in "
            f"{_anything(unsettled)}. Probabilities nearer to 0 and 1 might."
        )
    if few:
        listed = ", ".join(RATE_NAMES[gap.metric] for gap in few)
        cannot.append(f"More rows might settle whether groups differ by that much in {listed}.")
    conclusions = Conclusions("", list(_proxy_basis(audit)), can, cannot, audit.table.notes)
    sections = [Section(_TITLE, [_proxy_gaps(audit), _proxy_rates(audit)])]
    return audit_of(audit.options, conclusions, sections, _proxy_data(audit, conclusions))


def _proxy_basis(audit: ProxyAudit) -> Iterator[str]:
    labels = len(audit.table.known)
    people = ", ".join(
        f"{count(round(size))} of {name}"
        for name, size in zip(audit.names, audit.people, strict=True)
    )
    yield (
        f"{count(len(audit.table))} rows, {count(labels)} of them with a label. Nobody's group is "
        f"known; by the probabilities there are about {people}."
    )
    yield (
        "Bounds hold whoever belongs to which group, as long as the probabilities are right: of "
        "people with a probability of 0.3, three in ten belong to the group."
    )


def _anything(gaps: Sequence[BoundedGap]) -> str:
    return "; ".join(
        f"{RATE_NAMES[gap.metric]} (anything in {interval(*gap.bounds.size)})" for gap in gaps
    )


def _proxy_gaps(audit: ProxyAudit) -> Table:
    columns = [
        Column("gap in"),
        Column("bounds", "interval"),
        Column("95 % interval", "interval"),
        Column("verdict"),
    ]
    rows = [
        [
            RATE_NAMES[gap.metric],
            (gap.bounds.lower, gap.bounds.upper),
            gap.bounds.interval,
            _verdict(gap.verdict),
        ]
        for gap in audit.gaps
    ]
    size = (
        f"{audit.names[1]}'s rate minus that of {audit.names[0]}"
        if len(audit.names) == 2
        else "the largest difference between two groups"
    )
    return Table(
        columns,
        rows,
        title="Gaps between groups",
        caption=(
            f"Gaps are {size}. Bounds: no number of rows makes them narrower. The interval holds "
            "them in 95 % of samples. cannot be known: both a small and a large gap are possible."
        ),
    )


def _proxy_rates(audit: ProxyAudit) -> Table:
    columns = [
        Column("group"),
        Column("people", "count"),
        Column("rate"),
        Column("bounds", "interval"),
        Column("95 % interval", "interval"),
        Column("weighted", "number"),
    ]
    rows = [
        [
            each.group,
            each.rows,
            label(each.rate),
            each.bounds,
            each.interval,
            None if each.assumed is None else each.assumed[0],
        ]
        for each in sorted(audit.rates, key=lambda each: audit.names.index(each.group))
        if not isnan(each.bounds[0])
    ]
    return Table(
        columns,
        rows,
        title="Rates by group",
        caption=(
            "weighted: the rate with everyone counted by their probability; it is right only if, "
            "among people of equal probabilities, labels and decisions do not depend on the group."
        ),
        rules=starts([str(row[0]) for row in rows]),
    )


def _proxy_data(audit: ProxyAudit, conclusions: Conclusions) -> Mapping[str, Any]:
    return header(
        audit.options,
        rows=len(audit.table),
        labels=len(audit.table.known),
        conclusions=asdict(conclusions),
        groups=dict(zip(audit.names, audit.people, strict=True)),
        gaps=[_without_assumption(asdict(each)) for each in audit.gaps],
        rates=[
            {**_without_assumption(asdict(each)), "weighted": (each.assumed or (None,))[0]}
            for each in audit.rates
        ],
    )


def _without_assumption(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is told of groups known through probabilities."""
    left_out = ("assumed", "assumed_interval", "assumed_verdict", "factor", "factor_verdict")
    return {name: each for name, each in values.items() if name not in (*left_out, "others")}
