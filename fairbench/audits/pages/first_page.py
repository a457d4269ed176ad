"""The first page of an audit, apart from its sentences, and the pictures of its groups.

The first page has key figures and one chart; the pictures are rates, impact ratios and calibration
of every group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from math import ceil, isclose, isfinite
from typing import TypeAlias

import numpy as np

from fairbench.audits.assessment import Assessment
from fairbench.audits.direction import RATE_OF
from fairbench.audits.sentences import STRICTER
from fairbench.core.text import count, interval, number, shortened, signed
from fairbench.evaluation.by_group import COMPARED_WITH, Row
from fairbench.evaluation.findings import (
    COMPARISON,
    CONSTRAINT,
    GAP,
    LARGE,
    OPEN,
    PAIR,
    RATIO,
    SHARE,
    SMALL,
    Finding,
)
from fairbench.inference.gaps import FOUR_FIFTHS
from fairbench.reporting.charts import NAN, Estimate, forest
from fairbench.reporting.document.model import Column, Figure, Gallery, Section, Table, TableCell
from fairbench.reporting.group_tables import estimates

_MOST_FIGURES = 9  # rows of the key figures
_MOST_DRAWN = 10  # attributes of the chart
_LETTERS = 36  # of a name
_BEYOND = "†"  # of a row that is open although its interval lies beyond its limit
_DIFFERENCES = (GAP, COMPARISON)  # what a tolerance is about


def key_figures(findings: Sequence[Finding], single: Sequence[str], measure: str) -> Table | None:
    """Return each attribute's smallest impact ratio, and the gaps that a page concludes about.

    Parameters
    ----------
    findings : all findings of the audit.
    single : the attributes that were asked for; their combinations are left to the appendix.
    measure : the measure whose gap matters; if empty, the widest gap is shown.

    Returns
    -------
    The table; None without any ratio or gap.
    """
    pairs = {finding.question for finding in findings if finding.about == PAIR}
    shown = list(_key_findings(findings, single, measure))[:_MOST_FIGURES]
    rows = [_row(finding, differs=finding.question in pairs) for finding in shown]
    columns = [
        Column("by", heads=True),
        Column("measured"),
        Column("size", "number"),
        Column("95 % interval", "interval"),
        Column("limit", "general"),
        Column("verdict"),
    ]
    if any(isfinite(finding.noise) for finding in shown):
        columns.insert(3, Column("by noise", "number"))
        by_noise = [finding.noise if isfinite(finding.noise) else None for finding in shown]
        rows = [[*row[:3], noise, *row[3:]] for row, noise in zip(rows, by_noise, strict=True)]
    caption = " ".join(_explained(shown))
    return Table(columns, rows, caption=caption) if rows else None


def _explained(shown: Sequence[Finding]) -> Iterator[str]:
    """Yield what key figures are, what their limits are, and why some are open beyond these."""
    if any(finding.about == GAP and finding.bound for finding in shown):
        yield (
            "Gap: the largest difference between two groups. Up to its limit, it makes no "
            "practical difference."
        )
    if any(isfinite(finding.noise) for finding in shown):
        yield (
            "By noise: how large the largest difference among more than two groups would be on "
            "average, if they were all alike."
        )
    if any(map(_mark, shown)):
        yield f"{_BEYOND}: the interval of this row alone lies beyond the limit, but {STRICTER}"
    if any(finding.about == SHARE for finding in shown):
        yield (
            "Share: the share that a group gets of the places, over its share of the rows. At the "
            "limit, 1, it gets exactly its share."
        )
    ratios = [finding for finding in shown if finding.about == RATIO]
    for word in dict.fromkeys(ratio.decided for ratio in ratios):
        of_word = [ratio for ratio in ratios if ratio.decided == word]
        highest = f"the group {word} most often"
        if any(ratio.scope for ratio in of_word):
            highest += ", where that is large enough"
        named = "the group named by reference="
        given = {len(ratio.groups) > 1 for ratio in of_word}
        over = f"{named}, or else of {highest}" if len(given) == 2 else named
        yield (
            f"Impact ratio: the share {word} of a group over that of "
            f"{over if True in given else highest}. Under 0.8, four fifths, it is commonly looked "
            "into."
        )
    if any(ratio.scope for ratio in ratios):
        yield COMPARED_WITH


def _is_beyond(finding: Finding) -> bool:
    """Say whether the interval lies on one side of the limit."""
    size = _unsigned(finding)
    return size.lower > finding.bound or size.upper < finding.bound


def _key_findings(
    findings: Sequence[Finding], single: Sequence[str], measure: str
) -> Iterator[Finding]:
    """Yield, for each attribute, its smallest ratio and its gap, or else its smallest share."""
    for of_attribute in _by_attribute(findings, single):
        ratios = [finding for finding in of_attribute if finding.about == RATIO]
        if ratios:
            yield min(ratios, key=lambda ratio: ratio.value)
        if gap := key_gap(of_attribute, measure):
            yield gap
            yield from _also_concluded(of_attribute, gap)
        others = [finding for finding in of_attribute if finding.about in (SHARE, CONSTRAINT)]
        if others and not ratios:
            smallest = min(others, key=lambda finding: finding.value)
            yield smallest
            sure = [other for other in others if other.verdict == LARGE and other is not smallest]
            yield from sorted(sure, key=lambda other: -abs(other.value - other.bound))


def _by_attribute(findings: Sequence[Finding], single: Sequence[str]) -> Iterator[list[Finding]]:
    """Yield what was measured of the attributes that were asked for, or of all without any."""
    measured = [finding for finding in findings if isfinite(finding.value) and not finding.given]
    attributes = dict.fromkeys(finding.attribute for finding in measured)
    for attribute in [name for name in attributes if name in single] or attributes:
        yield [finding for finding in measured if finding.attribute == attribute]


def key_gap(findings: Sequence[Finding], measure: str = "") -> Finding | None:
    """Return the gap of an attribute that a page shows: that of `measure`, or the widest.

    Gaps that are surely large go first. The interval is that of the gap without its sign.
    """
    gaps = [finding for finding in findings if finding.about in _DIFFERENCES]
    gaps = [gap for gap in gaps if gap.measure == measure] or gaps
    if not gaps:
        return None
    return _unsigned(max(gaps, key=lambda gap: (gap.verdict == LARGE, abs(gap.value))))


def _also_concluded(findings: Sequence[Finding], shown: Finding) -> Iterator[Finding]:
    """Yield the other gaps of an attribute that are large, or of which some groups differ."""
    pairs = {finding.question for finding in findings if finding.about == PAIR}
    gaps = [gap for gap in findings if gap.about == GAP and gap.question != shown.question]
    concluded = [gap for gap in gaps if gap.verdict == LARGE or gap.question in pairs]
    concluded.sort(key=lambda gap: (gap.verdict != LARGE, -abs(gap.value)))
    yield from map(_unsigned, concluded)


def _mark(finding: Finding) -> str:
    """Return the mark of an open row whose interval lies beyond its limit."""
    return f" {_BEYOND}" if finding.verdict == OPEN and _is_beyond(finding) else ""


def _unsigned(gap: Finding) -> Finding:
    """Return a gap of two groups with its size, and the interval of its size."""
    lower, upper = sorted(map(abs, gap.interval))
    if gap.lower < 0 < gap.upper:
        lower = 0.0
    return replace(gap, value=abs(gap.value), lower=lower, upper=upper)


_VERDICTS = {
    GAP: {LARGE: "large", SMALL: "small", OPEN: "open"},
    COMPARISON: {LARGE: "large", SMALL: "small", OPEN: "open"},
    RATIO: {LARGE: "under four fifths", SMALL: "four fifths or more", OPEN: "open"},
    CONSTRAINT: {LARGE: "does not hold", SMALL: "holds", OPEN: "open"},
    SHARE: {LARGE: "not its share", OPEN: "open"},
}
DIFFER = "differ; size open"  # some groups surely differ, and it is open whether by more


def _row(finding: Finding, *, differs: bool) -> list[object]:
    """Return the row of a finding in the table of key figures.

    Parameters
    ----------
    differs : whether some of the groups surely differ.
    """
    names = [shortened(name, _LETTERS) for name in finding.groups]
    if finding.about == GAP and len(finding.values) == 2:
        # The size is that of the two groups furthest apart; the groups that surely differ may be
        # others.
        difference = abs(finding.values[0] - finding.values[1])
        names = names if isclose(difference, abs(finding.value), abs_tol=1e-9) else []
    joined = {GAP: " and ", RATIO: " over "}.get(finding.about, ", ").join(names)
    kind = {GAP: "gap in ", SHARE: "share of "}.get(finding.about, "")
    if finding.about == COMPARISON and finding.attribute:
        kind = "difference of gaps in "
    measured = f"{kind}{_measure(finding)}{f': {joined}' if joined else ''}"
    verdict = _VERDICTS[finding.about].get(finding.verdict, finding.verdict)
    if finding.verdict == OPEN and finding.about == GAP and differs:
        verdict = DIFFER
    return [
        finding.attribute,
        measured,
        finding.value,
        finding.interval,
        finding.bound or None,
        TableCell(verdict, mark=finding.verdict, after=_mark(finding)),
    ]


def _measure(finding: Finding) -> str:
    """Return what is measured, and of whom if that is not everyone in the file."""
    scope = finding.scope if finding.about == GAP else ""
    return ", ".join(filter(None, [finding.measure, scope]))


def gap_chart(findings: Sequence[Finding], single: Sequence[str], measure: str) -> Figure | None:
    """Draw the gap of every attribute and their common tolerance; None if there are no gaps.

    Gaps with another tolerance than the first have another scale, and are left to the appendix.
    """
    gaps = [gap for found in _by_attribute(findings, single) if (gap := key_gap(found, measure))]
    gaps = [gap for gap in gaps if gap.bound == gaps[0].bound and isfinite(gap.upper)]
    if not gaps:
        return None
    gaps = sorted(gaps, key=lambda gap: -gap.value)[:_MOST_DRAWN]
    bound = gaps[0].bound
    measures = set(map(_measure, gaps))
    rows: list[Estimate] = [
        (
            gap.attribute if len(measures) == 1 else f"{gap.attribute}: {_measure(gap)}",
            *(gap.value, gap.lower, gap.upper),
        )
        for gap in gaps
    ]
    top = max(2 * bound, *(gap.upper for gap in gaps))
    top = ceil(10 * top) / 10 if gaps[0].is_share else top
    title = "The gap of every attribute, and the tolerance"
    svg = forest("", [rows], span=(0.0, top), band=(0.0, bound))
    in_one = f" in {measures.pop()}" if len(measures) == 1 else ""
    caption = (
        f"Dots: the largest difference between two groups{in_one}. Lines: 95 % intervals, in "
        "brackets. "
        f"Shaded: up to {bound:g}, which makes no practical difference."
    )
    return Figure(title, svg=svg, caption=caption)


_MOST_SMALL = 24  # groups of a picture
_WIDEST = 2.0  # of the impact ratios that are drawn


def pictures(assessment: Assessment) -> list[Section]:
    """Return a picture of each rate with every group's interval; nothing where none is known."""
    figures = [*_impact_picture(assessment), *_rate_pictures(assessment)]
    if not figures:
        return []
    caption = "Dots: what was measured in each group. Lines: 95 % intervals, in brackets."
    return [Section("The groups in pictures", [Gallery(figures, caption)])]


# The attribute, the group, and its rate or ratio with both limits.
GroupEstimate: TypeAlias = tuple[str, str, float, float, float]


def _rate_pictures(assessment: Assessment) -> Iterator[Figure]:
    """Draw each rate: all groups of single attributes, then the largest of combinations."""
    rates = estimates(assessment.metrics, {rate.name for rate in RATE_OF.values()})
    direction = assessment.table.direction
    single = assessment.options.group
    for metric, rate in RATE_OF.items():
        keys = [(size["attribute"], size["group"]) for size in assessment.sizes]
        measured = [
            (*key, *rates[*key, rate.name])
            for key in keys
            if not np.isnan(rates.get((*key, rate.name), (np.nan,))[0])
        ]
        of_single = [row for row in measured if row[0] in single]
        of_combinations = [row for row in measured if row[0] not in single]
        drawn = of_single + of_combinations[: max(_MOST_SMALL - len(of_single), 0)]
        if not drawn:
            continue
        n_left_out = len(measured) - len(drawn)
        more = f" Not drawn: {n_left_out} smaller groups." if n_left_out else ""
        meaning = f"{direction.meaning(metric)}.{more}"
        yield _forest(direction.rate_names[metric], meaning, drawn, _span(drawn))


def _span(drawn: Sequence[GroupEstimate]) -> tuple[float, float]:
    """Return the ends of the scale of a picture, in tenths, between which all intervals lie."""
    numbers = np.array([row[2:] for row in drawn])
    tenths = 10 * numbers[np.isfinite(numbers)]
    low, high = float(np.floor(tenths.min()) / 10), float(np.ceil(tenths.max()) / 10)
    return low, max(high, low + 0.1)


def _forest(
    name: str,
    meaning: str,
    rows: Iterable[GroupEstimate],
    span: tuple[float, float],
    mark: float = NAN,
) -> Figure:
    """Draw the interval of each group, with a line between two attributes."""
    panels = [
        [row[1:] for row in of_attribute] for _, of_attribute in groupby(rows, lambda row: row[0])
    ]
    svg = forest(name, panels, span=span, mark=mark)
    return Figure(name, svg=svg, caption=f"{name}: {meaning}", style="panel")


def _impact_picture(assessment: Assessment) -> Iterator[Figure]:
    """Draw the impact ratios of the groups of single attributes, where there are any."""
    rows = [
        (row["attribute"], row["group"], row["ratio"], row["lower"], row["upper"])
        for row in assessment.impact
        if row["attribute"] in assessment.options.group and not np.isnan(row["ratio"])
    ]
    everyone = assessment.table.everyone or assessment.table
    if rows:
        highest = np.nanmax([row[-1] for row in rows])
        meaning = (
            f"how often a group is {everyone.granted}, over how often the group is "
            "that it is compared with. Dashed: four fifths."
        )
        span = (0.0, float(np.clip(np.ceil(10 * highest) / 10, 1.2, _WIDEST)))
        yield _forest("impact ratio", meaning, rows, span, FOUR_FIFTHS)


def diagrams(assessment: Assessment) -> Iterator[Figure]:
    """Yield the reliability of each group of a single attribute that has labels and scores."""
    for row in assessment.calibrations:
        if row["attribute"] in assessment.options.group and row["bins"]:
            ends = interval(row["lower"], row["upper"])
            limits = ends or "too few of the rarer label for an interval"
            caption = (
                f"{row['attribute']}: {row['group']}, {count(row['labels'])} labels; mean score "
                f"{number(row['score'])}, share {number(row['share'])}, excess "
                f"{signed(row['excess'])} ({limits})"
            )
            name = f"reliability of {row['group']}"
            yield Figure(name, svg=_reliability(row["bins"]), caption=caption)


def _reliability(bins: Sequence[Row]) -> str:
    """Return a drawing of the share of label 1 over the mean score, a point for each bin."""
    points = "".join(
        f'<line class="range" x1="{100 * row["score"]}" x2="{100 * row["score"]}" '
        f'y1="{100 - 100 * row["lower"]}" y2="{100 - 100 * row["upper"]}"/>'
        f'<circle cx="{100 * row["score"]}" cy="{100 - 100 * row["share"]}" r="2.2"/>'
        for row in bins
    )
    return (
        '<svg viewBox="-4 -4 108 108" role="img" aria-label="reliability">'
        f'<line class="ideal" x1="0" y1="100" x2="100" y2="0"/>{points}</svg>'
    )
