"""What an audit shows of the decisions of each group: how often it is selected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fairbench.auditing.assessment import Assessment
from fairbench.auditing.impact import ImpactRatio, impact_sentences
from fairbench.inference.impact import FOUR_FIFTHS
from fairbench.reporting.document.model import Bar, Block, Column, Items, Table

_LARGEST = 2.0  # of the ratios that a bar has room for


def impact_blocks(assessment: Assessment) -> Iterator[Block]:
    """Yield the impact ratios of every group, and what they say of the four-fifths rule."""
    ratios = assessment.impact
    yield _impact_table(ratios)
    yield Items(list(impact_sentences(ratios)))


def _impact_table(ratios: Sequence[ImpactRatio]) -> Table:
    columns = [
        Column("of", left_out=1),
        Column("group"),
        Column("rows", "count", left_out=2),
        Column("selected", "estimate"),
        Column("ratio", "number", decimals=2),
        Column("95 % interval", "interval", decimals=2),
        Column("", "bar"),
        Column("P(<0.8)", "probability"),
    ]
    rows = []
    for each in ratios:
        alone = each.is_given_reference
        interval = None if alone else (each.lower, each.upper)
        selected = (each.rate, each.rate_lower, each.rate_upper)
        start = [each.attribute, each.group, each.rows, selected, each.ratio]
        rows.append([*start, interval, _bar(each), None if alone else each.below])
    whom = _whom(ratios)
    return Table(
        columns,
        rows,
        caption=(
            f"ratio: the share selected over that of {whom}; P(<0.8): how sure it is that the "
            "ratio is under four fifths"
        ),
        reading=(
            f"The ratio is the share of a group that is selected over that of {whom}"
            f"{_allows(ratios)} P(<0.8) says how sure it is that the ratio is under four fifths: "
            "97.5 % where the interval ends at 0.8. It assumes only that the rows are a sample of "
            "the people asked about. Shaded: from four fifths to its inverse."
        ),
        rules=_starts([each.attribute for each in ratios]),
        most=16,
    )


def _whom(ratios: Sequence[ImpactRatio]) -> str:
    named, most = "the group named by reference=", "the group selected most often"
    given = {each.given for each in ratios}
    if len(given) == 2:
        return f"{named}, or else of {most}"
    return named if given == {True} else most


def _allows(ratios: Sequence[ImpactRatio]) -> str:
    if all(each.given for each in ratios):
        return "."
    return (
        "; which group that truly is, is not known of a sample, and the interval allows for each. "
        "Nobody is compared with a group of under 10 rows or under 2 % of them."
    )


def _starts(names: Sequence[str]) -> frozenset[int]:
    return frozenset(i for i in range(len(names)) if i == 0 or names[i] != names[i - 1])


def _bar(ratio: ImpactRatio) -> Bar | None:
    """Return a ratio on a scale from 0 to 2; beyond, it is cut off."""
    if np.isnan(ratio.ratio):
        return None
    ends = (1.0, 1.0) if ratio.is_given_reference else (ratio.lower, ratio.upper)
    lower, value, upper, low, one, high = (
        round(100 * min(each, _LARGEST) / _LARGEST, 1)
        for each in (ends[0], ratio.ratio, ends[1], FOUR_FIFTHS, 1, 1 / FOUR_FIFTHS)
    )
    return Bar(lower, value, upper, band=(low, high), zero=one)
