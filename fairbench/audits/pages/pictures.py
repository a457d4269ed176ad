"""The pictures of an audit: rates, impact ratios and calibration of every group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

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
    """Return each rate of every group with its interval, drawn one below the other."""
    rates = estimates(assessment.metrics, {rate.name for rate in RATE_OF.values()})
    single = assessment.options.group
    figures = [*_impact_picture(assessment)]
    for metric, rate in RATE_OF.items():
        measured = [
            (size.attribute, size.group, *rates[*size.key, rate.name])
            for size in assessment.sizes
            if not np.isnan(rates.get((*size.key, rate.name), (np.nan,))[0])
        ]
        of_single = [row for row in measured if row[0] in single]
        others = [row for row in measured if row[0] not in single]
        drawn = of_single + others[: max(_MOST_DRAWN - len(of_single), 0)]
        if not drawn:
            continue
        ends = np.array([estimate for _, _, *estimate in drawn])
        ends = 10 * ends[np.isfinite(ends)]
        low, high = float(np.floor(ends.min()) / 10), float(np.ceil(ends.max()) / 10)
        direction, left = assessment.table.direction, len(measured) - len(drawn)
        name = direction.rate_names[metric]
        more = f" Not drawn: {left} smaller groups." if left else ""
        meaning = f"{direction.meaning(metric)}.{more}"
        figures.append(_forest(name, meaning, drawn, (low, max(high, low + 0.1))))
    caption = "Dots: what was measured in each group. Lines: 95 % intervals, in brackets."
    gallery = Section("The groups in pictures", [Gallery(figures, caption)])
    return [gallery] if figures else []


def _forest(
    name: str,
    meaning: str,
    rows: Iterable[tuple[str, str, float, float, float]],
    span: tuple[float, float],
    mark: float = NAN,
) -> Figure:
    """Draw (attribute, group, value, lower, upper), with a line between two attributes."""
    parts = [[row[1:] for row in part] for _, part in groupby(rows, lambda row: row[0])]
    svg = forest(name, parts, span=span, mark=mark)
    return Figure(name, svg=svg, caption=f"{name}: {meaning}", style="panel")


def _impact_picture(assessment: Assessment) -> Iterator[Figure]:
    rows = [
        (row.attribute, row.group, row.ratio, row.lower, row.upper)
        for row in assessment.impact
        if row.attribute in assessment.options.group and not np.isnan(row.ratio)
    ]
    whole = assessment.table.everyone or assessment.table
    if rows:
        top = np.nanmax([upper for *_, upper in rows])
        meaning = (
            f"how often a group is {whole.granted}, over how often the group is "
            "that it is compared with. Dashed: four fifths."
        )
        span = (0.0, float(np.clip(np.ceil(10 * top) / 10, 1.2, _WIDEST)))
        yield _forest("impact ratio", meaning, rows, span, FOUR_FIFTHS)


def diagrams(assessment: Assessment) -> Iterator[Figure]:
    """Yield the reliability of each group of a single attribute that has labels and scores."""
    for row in assessment.calibrations:
        if row.attribute in assessment.options.group and row.bins:
            ends = interval(row.lower, row.upper) or "too few of the rarer label for an interval"
            caption = (
                f"{row.attribute}: {row.group}, {count(row.labels)} labels; mean score "
                f"{number(row.score)}, share {number(row.share)}, excess {signed(row.excess)} "
                f"({ends})"
            )
            yield Figure(f"reliability of {row.group}", svg=_reliability(row.bins), caption=caption)


def _reliability(bins: Sequence[Bin]) -> str:
    points = "".join(
        f'<line class="range" x1="{100 * b.score}" x2="{100 * b.score}" '
        f'y1="{100 - 100 * b.lower}" y2="{100 - 100 * b.upper}"/>'
        f'<circle cx="{100 * b.score}" cy="{100 - 100 * b.share}" r="2.2"/>'
        for b in bins
    )
    return (
        '<svg viewBox="-4 -4 108 108" role="img" aria-label="reliability">'
        f'<line class="ideal" x1="0" y1="100" x2="100" y2="0"/>{points}</svg>'
    )
