"""The sections of a page on gaps between groups, on pairs of groups, and on each group's rates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

from fairbench.audits.assessment import Assessment
from fairbench.audits.findings import NOT_MEASURED, OPEN
from fairbench.audits.gaps import NEEDS_NO_LABELS, Gap
from fairbench.audits.labels_needed import kind_of_labels
from fairbench.audits.sentences import STRICTER
from fairbench.core.formats import count, number, signed, two_digits
from fairbench.reporting.document.model import (
    Column,
    Details,
    Link,
    Section,
    Table,
    TableCell,
    Text,
)
from fairbench.reporting.group_tables import (
    MOST_ROWS,
    OF_GROUP,
    bars,
    estimates,
    table_of,
)

_MAIN_RATES = {
    "selection_rate": "selected",
    "true_positive_rate": "TPR",
    "false_positive_rate": "FPR",
    "positive_predictive_value": "precision",
    "accuracy": "accuracy",
}
_PAIRS = "pairs"  # the place of a page with the pairs of groups that differ


def gaps_section(assessment: Assessment) -> Section:
    """Return the section of the gaps, and of how many labels would settle the open ones."""
    return Section("Gaps between groups", [_gaps(assessment), *_needed(assessment)])


def pairs_section(gaps: Sequence[Gap]) -> Iterator[Section]:
    """Yield the section of pairs of groups that differ, where by how much is open."""
    pairs = [
        (gap.attribute, gap.rate_name, high, low)
        for gap in gaps
        if _differ_somehow(gap)
        for high, low in gap.pairs
    ]
    if pairs:
        columns = [Column(title) for title in ("groups", "rate", "higher", "lower")]
        caption = (
            "Each row is a pair of groups that surely differ; by how much is open. These findings "
            "share the error rate of the page."
        )
        table = Table(columns, pairs, caption=caption, most=MOST_ROWS)
        yield Section("Pairs of groups that surely differ", [table], name=_PAIRS)


def rates_section(assessment: Assessment) -> Section:
    """Return the section of the rates of each group."""
    return Section("Rates by group", [_rates(assessment)])


def _gaps(assessment: Assessment) -> Table:
    """Return the table of gaps: size, interval, verdict, and what else applies to these rows."""
    epsilon = assessment.bounds.epsilon
    gaps = assessment.gaps
    bar_of = dict(
        zip(gaps, bars([(gap.lower, gap.value, gap.upper) for gap in gaps], epsilon), strict=True)
    )

    def size(gap: Gap) -> str:
        return signed(gap.value) if gap.signed else number(gap.value)

    def standard_error(gap: Gap) -> float | None:
        return gap.standard_error if gap.signed else None

    def by_noise(gap: Gap) -> float | None:
        return gap.alike if isfinite(gap.alike) else None

    def small(gap: Gap) -> float | None:
        # Of several groups it would follow from how little is known of each, not from the data.
        return gap.small if gap.signed or gap.assumed else None

    def verdict(gap: Gap) -> TableCell:
        mark = "assumed" if gap.assumed else gap.verdict
        after: Text = ""
        if _differ_somehow(gap):
            by_how_much = f": some groups differ, but no pair surely by {epsilon:g} or more: "
            after = (by_how_much, Link("see the pairs", f"#{_PAIRS}"))
        return TableCell(verdict_text(gap), mark=mark, after=after)

    columns: list[tuple[Any, Column]] = [
        ("attribute", Column("groups")),
        ("rate_name", Column("gap in")),
        (size, Column("size", right=True)),
    ]
    if assessment.of_decisions:
        columns.append((standard_error, Column("standard error", "number", decimals=4)))
    if any(isfinite(gap.alike) for gap in gaps):
        columns.append((by_noise, Column("by noise", "number", left_out=1)))
    columns += [
        (("lower", "upper"), Column("95 % interval", "interval")),
        (bar_of.get, Column("", "bar")),
    ]
    if assessment.assumed is not None:
        column = Column("if calibrated alike", "interval", left_out=2)
        columns.append((lambda gap: gap.supposed[1:], column))
    columns += [
        (small, Column(f"P(<{epsilon:g})", "probability", left_out=1)),
        (verdict, Column("verdict")),
    ]
    return table_of(gaps, columns, caption=_gaps_caption(assessment), reading=_reading(assessment))


_ALIKE = (
    " if calibrated alike: the interval that follows if scores are as right in every group as in "
    "the others; no verdict rests on it."
)


def _gaps_caption(assessment: Assessment) -> str:
    """Return the caption of the table of gaps."""
    caption = (
        "size: the largest difference between two groups; where there are only two, the second's "
        "rate minus the first's."
    )
    if any(isfinite(gap.alike) for gap in assessment.gaps):
        caption += " by noise: how large it would be on average if all groups were alike."
    if any(gap.verdict == OPEN for gap in assessment.gaps):
        caption += f" A gap can be open although its interval lies beyond the bound: {STRICTER}"
    if assessment.assumed is not None:
        caption += _ALIKE
    return caption


def _reading(assessment: Assessment) -> str:
    """Return how to read the table of gaps."""
    reading = (
        "Largest difference between two groups, which noise alone makes larger among many. Shaded: "
        f"less than {assessment.bounds.epsilon:g} either way. Large: one group is surely ahead of "
        "another by more; small: none is."
    )
    if assessment.assumed is not None:
        reading += _ALIKE
    return reading


def verdict_text(gap: Gap) -> str:
    """Return a verdict for a table."""
    if gap.verdict == NOT_MEASURED:
        return "the same by construction" if gap.fixed else "too few rows"
    if gap.assumed and gap.verdict != OPEN:
        return f"{gap.verdict} if scores are right"
    return gap.verdict


def _differ_somehow(gap: Gap) -> bool:
    """Say whether groups surely differ, while it is open between whom by how much."""
    return gap.verdict == OPEN and not gap.signed and not gap.assumed and bool(gap.pairs)


def _needed(assessment: Assessment) -> Iterator[Details]:
    """Yield how many more labels settle the open gaps, and what each number supposes."""
    labels, rows = assessment.labels, len(assessment.table)
    most = rows - labels or rows
    table = [
        (gap.attribute, gap.rate_name, supposed, f">{count(most)}" if n is None else two_digits(n))
        for gap in assessment.gaps
        for supposed, n in gap.needed.items()
    ]
    if table:
        kind = kind_of_labels(labels, rows)
        columns = [Column(title) for title in ("groups", "gap in", "supposed")]
        columns.append(Column(kind, right=True))
        caption = (
            f"{kind}: how many, at random among all, settle the verdict with a probability of 80 % "
            "if the true gap is as supposed. It takes more the nearer the gap is to the bound."
        )
        yield Details("What would settle what is open", [Table(columns, table, caption=caption)])


def _rates(assessment: Assessment) -> Table:
    """Return the table of each group's size and main rates."""
    labelled = not assessment.of_decisions
    selected = assessment.table.direction.rate_names[NEEDS_NO_LABELS].removeprefix("share ")
    selection = {"selection_rate": selected.replace("selection rate", "selected")}
    main = {**_MAIN_RATES, **selection} if labelled else selection
    values = estimates(assessment.metrics, main)
    return table_of(
        assessment.sizes,
        [
            *OF_GROUP,
            ("rows", Column("rows", "count")),
            *([("labels", Column("labels", "count"))] if labelled else []),
            *(
                (lambda size, name=name: values.get((*size.key, name)), Column(title, "estimate"))
                for name, title in main.items()
            ),
        ],
        most=MOST_ROWS,
    )
