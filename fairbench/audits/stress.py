"""Gaps under equal calibration of all groups, and how robust they are to one group's deviation.

A slope is the increase of a label's log odds with the score's. If a group's true slope is half of
that in the posterior of calibration, its scores carry half the information that they seem to; at 0
they carry none, and below 0 they point the wrong way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np

from fairbench.audits.findings import LARGE, OPEN, SMALL
from fairbench.audits.gaps import NAN, Gap, Stress
from fairbench.audits.table import AuditTable
from fairbench.core.seeds import rng
from fairbench.evaluation.groups import GroupCounts
from fairbench.inference.few_labels.completion import Calibrated, population_draws, union

# Factors of one group's slope, from small deviations to large ones, in either direction.
LESS = (0.8, 0.67, 0.5, 0.33, 0.0, -1.0)
MORE = (1.25, 1.5, 2.0, 3.0)


def with_supposed(
    gaps: Sequence[Gap],
    supposed: Sequence[GroupCounts],
    table: AuditTable,
    completion: Calibrated,
    epsilon: float,
    seed: int,
) -> list[Gap]:
    """Return gaps with their values under equal calibration, and the robustness of open ones.

    Parameters
    ----------
    supposed : the counts of each attribute that follow from draws of `completion`.
    completion : the labels completed as if all groups' scores were calibrated equally.
    epsilon : the gap that matters.
    """
    drawn = {of_groups.attribute: of_groups.intervals.draws for of_groups in supposed}
    gaps = [
        replace(gap, supposed=gap.interval(gap.rate(drawn[gap.attribute][:, gap.compared])))
        if len(gap.compared) > 1
        else gap
        for gap in gaps
    ]
    follows = {
        gap: _verdict(gap.supposed, epsilon)
        for gap in gaps
        if gap.verdict == OPEN and _verdict(gap.supposed, epsilon) != OPEN
    }

    @cache
    def with_slope(attribute: str, group: int, factor: float) -> Mapping[Gap, str]:
        """Return what follows of an attribute's gaps if a group's slopes are another multiple."""
        members = union(table.cells, table.groups[attribute])
        counts = completion.with_slopes(np.where(members[group] > 0, factor, 1.0), seed)
        draws = population_draws(counts, members, len(counts), rng(seed, "stress", attribute))
        return {
            gap: _verdict(gap.interval(gap.rate(draws[:, gap.compared])), epsilon)
            for gap in follows
            if gap.attribute == attribute
        }

    def failing(gap: Gap, factors: Sequence[float]) -> Iterator[tuple[float, str]]:
        """Yield the factors, the nearest to 1 first, and groups with which it does not follow."""
        for factor, (group, name) in product(factors, zip(gap.compared, gap.names, strict=True)):
            if with_slope(gap.attribute, group, factor)[gap] != follows[gap]:
                yield factor, name

    def stress(gap: Gap) -> Stress | None:
        """Return how far a verdict that follows for an open gap holds; None if none follows."""
        if gap not in follows:
            return None
        less, more = (next(failing(gap, factors), (NAN, "")) for factors in (LESS, MORE))
        return Stress(follows[gap], *less, *more)

    return [replace(gap, stress=stress(gap)) for gap in gaps]


def _verdict(gap: tuple[float, float, float], epsilon: float) -> str:
    """Return what the value and interval of a gap say of it by themselves."""
    _, lower, upper = gap
    if max(abs(lower), abs(upper)) < epsilon:
        return SMALL
    return LARGE if lower > epsilon or upper < -epsilon else OPEN
