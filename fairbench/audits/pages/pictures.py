"""The pictures of an audit: rates, impact ratios and calibration of every group."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fairbench.audits.assessment import Assessment
from fairbench.audits.calibration import GroupCalibration
from fairbench.audits.gaps import RATE_NAMES, RATE_OF
from fairbench.audits.pages.parts import Estimates, estimates
from fairbench.core.formats import count, interval, number, signed
from fairbench.inference.impact import FOUR_FIFTHS
from fairbench.reporting.charts import Estimate, forest
from fairbench.reporting.document.model import Figure, Gallery, Section

_MOST_DRAWN = 24  # groups of a picture


def pictures(assessment: Assessment) -> list[Section]:
    """Return each rate of every group with its interval, drawn one below the other."""
    rates = estimates(assessment.metrics, {rate.name for rate in RATE_OF.values()})
    labels = assessment.table.labels
    figures = []
    for metric, rate in RATE_OF.items():
        parts, left = _of_groups(assessment, rates, rate.name)
        if not parts:
            continue
        ends = np.array([each[1:] for part in parts for each in part])
        name = RATE_NAMES[metric]
        more = f" Not drawn: {left} smaller groups." if left else ""
        figures.append(
            Figure(
                name,
                svg=forest(name, parts, span=_span(ends)),
                caption=f"{name}: {rate_meaning(name, labels)}.{more}",
                style="panel",
            )
        )
    ratios = _impact_picture(assessment)
    if ratios is not None:
        figures.insert(0, ratios)
    if not figures:
        return []
    caption = "Dots: what was measured in each group. Lines: 95 % intervals, in brackets."
    return [Section("The groups in pictures", [Gallery(figures, caption)])]


def rate_meaning(rate: str, labels: tuple[str, str]) -> str:
    """Return in plain words which share of whom a rate is.

    Examples
    --------
    >>> print(rate_meaning("true positive rate", ("denied", "repaid")))
    of those who truly are 'repaid', the share with decision 'repaid'
    """
    negative, positive = (f"'{each}'" for each in labels)
    return {
        "selection rate": f"the share with decision {positive}",
        "true positive rate": f"of those who truly are {positive}, the share with decision "
        f"{positive}",
        "false positive rate": f"of those who truly are {negative}, the share with decision "
        f"{positive}",
        "precision": f"of those with decision {positive}, the share who truly are {positive}",
        "accuracy": "the share of right decisions",
    }.get(rate, "")


_WIDEST = 2.0  # of the impact ratios that are drawn


def _impact_picture(assessment: Assessment) -> Figure | None:
    parts: dict[str, list[Estimate]] = {}
    for each in assessment.impact:
        if each.attribute in assessment.options.group and not np.isnan(each.ratio):
            ends = (each.ratio, each.lower, each.upper)
            parts.setdefault(each.attribute, []).append((each.group, *ends))
    if not parts:
        return None
    top = max(each[3] for part in parts.values() for each in part if not np.isnan(each[3]))
    span = (0.0, float(min(max(np.ceil(10 * top) / 10, 1.2), _WIDEST)))
    title = "impact ratio"
    return Figure(
        title,
        svg=forest(title, list(parts.values()), span=span, mark=FOUR_FIFTHS),
        caption=(
            "impact ratio: how often a group is selected, over how often the group is that it is "
            "compared with. Dashed: four fifths."
        ),
        style="panel",
    )


def _of_groups(
    assessment: Assessment, rates: Estimates, rate: str
) -> tuple[list[list[Estimate]], int]:
    """Return a rate's estimates by attribute, and of how many groups there is no room."""
    single = assessment.options.group
    parts: dict[str, list[Estimate]] = {}
    room = _MOST_DRAWN
    left = 0
    for size in assessment.sizes:
        found = rates.get((*size.key, rate))
        if found is None or np.isnan(found[0]):
            continue
        if size.attribute not in single and room <= 0:
            left += 1
            continue
        room -= 1
        parts.setdefault(size.attribute, []).append((size.group, *found))
    return list(parts.values()), left


def _span(ends: np.ndarray) -> tuple[float, float]:
    """Return round ends of a scale that holds all intervals."""
    shown = ends[np.isfinite(ends)]
    low, high = np.floor(10 * shown.min()) / 10, np.ceil(10 * shown.max()) / 10
    return float(low), float(max(high, low + 0.1))


def diagrams(assessment: Assessment) -> Iterator[Figure]:
    """Yield the reliability of each group of a single attribute that has labels and scores."""
    for each in assessment.calibrations:
        if each.attribute in assessment.options.group and each.bins:
            yield Figure(f"reliability of {each.group}", svg=_svg(each), caption=_told(each))


def _told(each: GroupCalibration) -> str:
    ends = interval(each.lower, each.upper) or "too few of the rarer label for an interval"
    return (
        f"{each.attribute}: {each.group}, {count(each.labels)} labels; mean score "
        f"{number(each.score)}, share {number(each.share)}, excess {signed(each.excess)} ({ends})"
    )


def _svg(each: GroupCalibration) -> str:
    points = "".join(
        f'<line class="range" x1="{100 * b.score}" x2="{100 * b.score}" '
        f'y1="{100 - 100 * b.lower}" y2="{100 - 100 * b.upper}"/>'
        f'<circle cx="{100 * b.score}" cy="{100 - 100 * b.share}" r="2.2"/>'
        for b in each.bins
    )
    return (
        '<svg viewBox="-4 -4 108 108" role="img" aria-label="reliability">'
        f'<line class="ideal" x1="0" y1="100" x2="100" y2="0"/>{points}</svg>'
    )
