"""The pictures of an audit: rates, impact ratios and calibration of every group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from fairbench.audits.assessment import Assessment
from fairbench.audits.gaps import RATE_OF
from fairbench.core.formats import count, interval, number, signed
from fairbench.evaluation.group_calibration import Bin
from fairbench.inference.impact import FOUR_FIFTHS
from fairbench.reporting.charts import NAN, forest
from fairbench.reporting.document.model import Figure, Gallery, Section
from fairbench.reporting.group_tables import estimates

_MOST_DRAWN = 24  # groups of a picture
_WIDEST = 2.0  # of the impact ratios that are drawn


def pictures(assessment: Assessment) -> list[Section]:
    """Return a picture of each rate with every group's interval; nothing where none is known."""
    figures = [*_impact_picture(assessment), *_rate_pictures(assessment)]
    if not figures:
        return []
    caption = "Dots: what was measured in each group. Lines: 95 % intervals, in brackets."
    return [Section("The groups in pictures", [Gallery(figures, caption)])]


class GroupEstimate(NamedTuple):
    """A rate or a ratio of a group, with its interval."""

    attribute: str
    group: str
    value: float
    lower: float
    upper: float


def _rate_pictures(assessment: Assessment) -> Iterator[Figure]:
    """Draw each rate: all groups of single attributes, then the largest of combinations."""
    rates = estimates(assessment.metrics, {rate.name for rate in RATE_OF.values()})
    direction = assessment.table.direction
    single = assessment.options.group
    for metric, rate in RATE_OF.items():
        measured = [
            GroupEstimate(size.attribute, size.group, *rates[*size.key, rate.name])
            for size in assessment.sizes
            if not np.isnan(rates.get((*size.key, rate.name), (np.nan,))[0])
        ]
        of_single = [row for row in measured if row.attribute in single]
        of_combinations = [row for row in measured if row.attribute not in single]
        drawn = of_single + of_combinations[: max(_MOST_DRAWN - len(of_single), 0)]
        if not drawn:
            continue
        n_left_out = len(measured) - len(drawn)
        more = f" Not drawn: {n_left_out} smaller groups." if n_left_out else ""
        meaning = f"{direction.meaning(metric)}.{more}"
        yield _forest(direction.rate_names[metric], meaning, drawn, _span(drawn))


def _span(drawn: Sequence[GroupEstimate]) -> tuple[float, float]:
    """Return the ends of the scale of a picture, in tenths, between which all intervals lie."""
    numbers = np.array([(row.value, row.lower, row.upper) for row in drawn])
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
        [(row.group, row.value, row.lower, row.upper) for row in of_attribute]
        for _, of_attribute in groupby(rows, lambda row: row.attribute)
    ]
    svg = forest(name, panels, span=span, mark=mark)
    return Figure(name, svg=svg, caption=f"{name}: {meaning}", style="panel")


def _impact_picture(assessment: Assessment) -> Iterator[Figure]:
    """Draw the impact ratios of the groups of single attributes, where there are any."""
    rows = [
        GroupEstimate(row.attribute, row.group, row.ratio, row.lower, row.upper)
        for row in assessment.impact
        if row.attribute in assessment.options.group and not np.isnan(row.ratio)
    ]
    everyone = assessment.table.everyone or assessment.table
    if rows:
        highest = np.nanmax([row.upper for row in rows])
        meaning = (
            f"how often a group is {everyone.granted}, over how often the group is "
            "that it is compared with. Dashed: four fifths."
        )
        span = (0.0, float(np.clip(np.ceil(10 * highest) / 10, 1.2, _WIDEST)))
        yield _forest("impact ratio", meaning, rows, span, FOUR_FIFTHS)


def diagrams(assessment: Assessment) -> Iterator[Figure]:
    """Yield the reliability of each group of a single attribute that has labels and scores."""
    for row in assessment.calibrations:
        if row.attribute in assessment.options.group and row.bins:
            limits = interval(row.lower, row.upper) or "too few of the rarer label for an interval"
            caption = (
                f"{row.attribute}: {row.group}, {count(row.labels)} labels; mean score "
                f"{number(row.score)}, share {number(row.share)}, excess {signed(row.excess)} "
                f"({limits})"
            )
            yield Figure(f"reliability of {row.group}", svg=_reliability(row.bins), caption=caption)


def _reliability(bins: Sequence[Bin]) -> str:
    """Return a drawing of the share of label 1 over the mean score, a point for each bin."""
    points = "".join(
        f'<line class="range" x1="{100 * bin_.score}" x2="{100 * bin_.score}" '
        f'y1="{100 - 100 * bin_.lower}" y2="{100 - 100 * bin_.upper}"/>'
        f'<circle cx="{100 * bin_.score}" cy="{100 - 100 * bin_.share}" r="2.2"/>'
        for bin_ in bins
    )
    return (
        '<svg viewBox="-4 -4 108 108" role="img" aria-label="reliability">'
        f'<line class="ideal" x1="0" y1="100" x2="100" y2="0"/>{points}</svg>'
    )
