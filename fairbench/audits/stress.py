"""How wrong one group's scores may be before what follows from scores no longer does.

A slope is by how much the log odds of a label grow with those of the score. If it is half of what
the posterior of calibration takes it for, the group's scores say half as much as they seem to; at
0 they say nothing, and below they say the opposite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairbench.audits.findings import LARGE, OPEN, SMALL
from fairbench.audits.gaps import RATE_OF, Gap, sizes_of
from fairbench.audits.table import AuditTable
from fairbench.core.seeds import rng
from fairbench.inference.few_labels.completion import Calibrated, population_draws, union
from fairbench.inference.posterior import central_interval

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


def _verdict(ends: Sequence[float], epsilon: float) -> str:
    """Return what an interval says of a gap by itself."""
    lower, upper = ends
    if max(abs(lower), abs(upper)) < epsilon:
        return SMALL
    return LARGE if lower > epsilon or upper < -epsilon else OPEN


def stresses(
    table: AuditTable, completion: Calibrated, gaps: Sequence[Gap], epsilon: float, seed: int
) -> list[Stress]:
    """Return what follows from scores alone, where labels leave it open, and how far it holds."""
    follows = {gap: _verdict(gap.supposed[1:], epsilon) for gap in gaps if gap.verdict == OPEN}
    asked = [gap for gap, verdict in follows.items() if verdict in (SMALL, LARGE)]
    found = []
    for attribute in dict.fromkeys(gap.attribute for gap in asked):
        of_attribute = [gap for gap in asked if gap.attribute == attribute]
        labels = table.groups[attribute]
        members, names = union(table.cells, labels), list(map(str, labels.cat.categories))
        fails = set()
        for group in sorted({group for gap in of_attribute for group in gap.compared}):
            for factor in (*LESS, *MORE):
                counts = completion.with_slopes(np.where(members[group] > 0, factor, 1.0), seed)
                generator = rng(seed, "stress", attribute)
                draws = population_draws(counts, members, len(counts), generator)
                for gap in of_attribute:
                    sizes = sizes_of(gap, RATE_OF[gap.metric](draws[:, gap.compared]))
                    ends = [float(end) for end in central_interval(sizes)]
                    if _verdict(ends, epsilon) != follows[gap]:
                        fails.add((gap, group, factor))
        for gap in of_attribute:
            # The factor nearest to 1 at which it fails, and for which group.
            (less, weakest), (more, strongest) = (
                next(
                    (
                        (factor, names[group])
                        for factor in factors
                        for group in gap.compared
                        if (gap, group, factor) in fails
                    ),
                    (float("nan"), ""),
                )
                for factors in (LESS, MORE)
            )
            found.append(
                Stress(attribute, gap.metric, follows[gap], less, weakest, more, strongest)
            )
    return found
