"""How wrong one group's scores may be before what follows from scores no longer does.

A slope is by how much the log odds of a label grow with those of the score. If it is half of what
the posterior of calibration takes it for, the group's scores say half as much as they seem to; at
0 they say nothing, and below they say the opposite.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.audits.findings import LARGE, OPEN, SMALL
from fairbench.audits.gaps import RATE_OF, Gap
from fairbench.audits.table import AuditTable
from fairbench.core.seeds import rng
from fairbench.inference.few_labels.completion import Calibrated, population_draws, union
from fairbench.inference.posterior import central_interval

Floats = NDArray[np.float64]

# What the slope of one group is multiplied by, from nearly nothing to much, either way.
LESS, MORE = (0.8, 0.67, 0.5, 0.33, 0.0, -1.0), (1.25, 1.5, 2.0, 3.0)


@dataclass(frozen=True)
class Stress:
    """What of a gap follows if scores are calibrated alike, and when it no longer does.

    Attributes
    ----------
    follows : that it is `SMALL`, or `LARGE`.
    less, more : the first of the smaller slopes of one group, as multiples, with which it does not
        follow, and the first of the larger ones; NaN where it follows with all that are tried.
    weakest, strongest : the groups of which that holds.
    """

    attribute: str
    metric: str
    follows: str
    less: float
    weakest: str
    more: float
    strongest: str


def supposed_verdict(gap: Gap, epsilon: float) -> str:
    """Return what the interval if scores are calibrated alike would say by itself."""
    return _verdict(gap.supposed[1], gap.supposed[2], epsilon)


def _verdict(lower: float, upper: float, epsilon: float) -> str:
    if max(abs(lower), abs(upper)) < epsilon:
        return SMALL
    return LARGE if lower > epsilon or upper < -epsilon else OPEN


def stresses(
    table: AuditTable, completion: Calibrated, gaps: Sequence[Gap], epsilon: float, seed: int
) -> list[Stress]:
    """Return what follows from scores alone, where labels leave it open, and how far it holds."""
    asked = [
        gap
        for gap in gaps
        if gap.verdict == OPEN and supposed_verdict(gap, epsilon) in (SMALL, LARGE)
    ]
    return [
        each
        for attribute in dict.fromkeys(gap.attribute for gap in asked)
        for each in _of_attribute(
            table, completion, [gap for gap in asked if gap.attribute == attribute], epsilon, seed
        )
    ]


def _of_attribute(
    table: AuditTable, completion: Calibrated, gaps: Sequence[Gap], epsilon: float, seed: int
) -> Iterator[Stress]:
    labels = table.groups[gaps[0].attribute]
    members, names = union(table.cells, labels), list(map(str, labels.cat.categories))
    fails: dict[tuple[int, int, float], bool] = {}
    for group in sorted({group for gap in gaps for group in gap.compared}):
        for factor in (*LESS, *MORE):
            counts = completion.with_slopes(np.where(members[group] > 0, factor, 1.0), seed)
            generator = rng(seed, "stress", gaps[0].attribute)
            draws = population_draws(counts, members, len(counts), generator)
            for place, gap in enumerate(gaps):
                fails[place, group, factor] = not _still(gap, draws, epsilon)
    for place, gap in enumerate(gaps):
        less, weakest = _first(fails, place, gap.compared, LESS)
        more, strongest = _first(fails, place, gap.compared, MORE)
        follows = supposed_verdict(gap, epsilon)
        named = [names[each] if each is not None else "" for each in (weakest, strongest)]
        yield Stress(gap.attribute, gap.metric, follows, less, named[0], more, named[1])


def _still(gap: Gap, draws: Floats, epsilon: float) -> bool:
    """Say whether draws of the counts (T, A, 4) lead to what followed before."""
    rates = RATE_OF[gap.metric](draws[:, gap.compared])
    size = rates[:, 1] - rates[:, 0] if gap.signed else np.ptp(rates, axis=-1)
    lower, upper = map(float, central_interval(size))
    return _verdict(lower, upper, epsilon) == supposed_verdict(gap, epsilon)


def _first(
    fails: dict[tuple[int, int, float], bool],
    place: int,
    groups: Sequence[int],
    factors: Sequence[float],
) -> tuple[float, int | None]:
    """Return the factor nearest to 1 at which it fails, and for which group."""
    for factor in factors:
        for group in groups:
            if fails[place, group, factor]:
                return factor, group
    return float("nan"), None
