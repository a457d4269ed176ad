"""How many more labels would settle the open questions, simulated from what is known so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fairbench.audits.findings import ERROR_RATE, OPEN
from fairbench.audits.gaps import NEEDS_NO_LABELS, RATE_OF, Gap
from fairbench.audits.question import Options
from fairbench.audits.table import AuditTable
from fairbench.core.seeds import rng
from fairbench.evaluation.group_intervals import CountIntervals
from fairbench.evaluation.groups import Counted
from fairbench.inference.few_labels.importance import sobol
from fairbench.inference.gaps import GroupLimits, largest_gap, simultaneous_level
from fairbench.inference.rates import Limits, pseudo_count, rate_limits

Floats = NDArray[np.float64]

LIKELY, UNLIKELY = 0.8, 0.2
WORLDS = 1024  # a power of two, as quasi-random points are best
_MOST_ROWS = 10_000_000


@dataclass(frozen=True, eq=False)
class Needed:
    """How more labels would narrow a gap that is not yet settled.

    Attributes
    ----------
    labels, settled : numbers of further labels, and how often each settled the gap in `WORLDS`
        simulations, as a question by itself within its attribute.
    remaining : how many rows have no label yet; None if all have one, and more rows are needed.
    """

    gap: Gap
    labels: Sequence[int]
    settled: Sequence[float]
    remaining: int | None

    @property
    def enough(self) -> int | None:
        """The number that settles the gap with a probability of 0.8, if one does."""
        return self.reaching(LIKELY)

    @property
    def few(self) -> int | None:
        """The number that settles the gap with a probability of 0.2, if one does."""
        return self.reaching(UNLIKELY)

    def reaching(self, chance: float) -> int | None:
        """Return the number of labels that settles the gap with a probability."""
        chances = np.maximum.accumulate(self.settled) if len(self.settled) else np.zeros(0)
        if not len(chances) or chances[-1] < chance:
            return None
        place = int(np.searchsorted(chances, chance))
        if not place:
            return self.labels[0]
        low, high = chances[place - 1], chances[place]
        share = (chance - low) / (high - low)
        return round(float(self.labels[place - 1] ** (1 - share) * self.labels[place] ** share))


@dataclass(frozen=True, eq=False)
class KnownRates:
    """What is known of a rate in the groups that are compared, and what one more label adds.

    Attributes
    ----------
    successes, sizes : (G,) of rows that count, and of how many.
    rates : (W, G) what the rates may be.
    each : (G,) how much a label at random among all rows adds to the sizes.
    luck : (W, G) standard normals: what the further labels may say of these rates.
    """

    successes: Floats
    sizes: Floats
    rates: Floats
    each: Floats
    luck: Floats

    def settled(self, labels: int, epsilon: float, risk: float) -> float:
        """Return how often so many more labels settle the gap.

        Parameters
        ----------
        risk : the probability with which the verdict may be wrong.
        """
        more = labels * self.each
        spread = np.sqrt(more * self.rates * (1 - self.rates))
        found = np.clip(more * self.rates + self.luck * spread, 0, more)
        counts, size = self.successes + found, self.sizes + more
        wider = simultaneous_level(1 - risk, counts.shape[-1])
        single, together = (_limits(counts, size, level) for level in (1 - 2 * risk, wider))
        gap = largest_gap(GroupLimits(single, together))
        return float(((gap.upper < epsilon) | (gap.lower > epsilon)).mean())


_MANY = 4.0  # successes and failures
_FEW = np.linspace(0, _MANY, 81)


def _limits(counts: Floats, size: Floats, level: float) -> Limits:
    """Return the limits of `rate_limits` of counts (W, G), to a hundredth of their width."""
    counts, sizes = np.broadcast_arrays(counts, size)
    many = (counts >= _MANY) & (sizes - counts >= _MANY)
    lower, upper = np.empty_like(counts), np.empty_like(counts)
    lower[many], upper[many] = _limits_of_many(counts[many], sizes[many], level)
    for group in np.flatnonzero(~many.all(axis=0)):
        rows, n = ~many[:, group], size[group]
        grid = np.unique(np.clip([_FEW, n - _FEW], 0, n))
        known = rate_limits(grid, n, level=level)
        lower[rows, group] = np.interp(counts[rows, group], grid, known.lower)
        upper[rows, group] = np.interp(counts[rows, group], grid, known.upper)
    with np.errstate(invalid="ignore"):
        return Limits(counts / sizes, lower, upper)


def _limits_of_many(counts: Floats, size: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the quantiles of Beta distributions that limits are, sixty times as fast.

    Abramowitz and Stegun (1964), "Handbook of Mathematical Functions", 26.5.22.
    """
    wide, added = -special.ndtri((1 - level) / 2), pseudo_count(size)
    failures, bend = size - counts, (wide**2 - 3) / 6
    ends = []
    for sign, a in ((1, added), (-1, 1 - added)):
        first, second = 1 / (2 * (counts + a) - 1), 1 / (2 * (failures - a) + 1)
        mean = 2 / (first + second)
        spread = sign * wide * np.sqrt(mean + bend) / mean
        shift = (second - first) * (bend + 5 / 6 - 2 / (3 * mean))
        ratio = (failures + 1 - a) / (counts + a)
        ends.append(1 / (1 + ratio * np.exp(2 * (spread - shift))))
    return ends[0], ends[1]


def labels_needed(
    table: AuditTable,
    counted: Sequence[Counted],
    gaps: Sequence[Gap],
    options: Options,
) -> list[Needed]:
    """Simulate more labels, in growing numbers, until an open gap is likely settled.

    Each question is simulated by itself: what else is asked changes nothing. Labels are given to
    rows at random among all; what the next ones say is drawn from what is known of the rates.

    Parameters
    ----------
    counted : what is known, by attribute; of no labels, if scores are right.
    """
    labels = len(table.known)
    remaining = len(table) - labels or None
    by_name = {each.attribute: each for each in counted}
    asked = [
        gap
        for gap in gaps
        if (gap.verdict == OPEN or gap.assumed)
        and len(gap.compared) > 1
        and (gap.metric != NEEDS_NO_LABELS or remaining is None)
    ]
    return [_needed(table, by_name[gap.attribute], gap, remaining, options) for gap in asked]


def _needed(
    table: AuditTable, counted: Counted, gap: Gap, remaining: int | None, options: Options
) -> Needed:
    generator = rng(options.seed, "labels needed", gap.attribute, gap.metric)
    known = _known(table, counted, gap, generator)
    risk = ERROR_RATE / len(RATE_OF)
    tried: list[int] = []
    chances: list[float] = []
    for labels in numbers(len(table.known), remaining):
        tried.append(labels)
        chances.append(known.settled(labels, options.epsilon, risk))
        if chances[-1] >= LIKELY:
            break
    return Needed(gap, tried, chances, remaining)


def _known(
    table: AuditTable, counted: Counted, gap: Gap, generator: np.random.Generator
) -> KnownRates:
    rate, groups = RATE_OF[gap.metric], table.groups[gap.attribute].cat.codes.to_numpy()
    names, labels = len(counted.groups), len(table.known)
    rows = np.bincount(groups, minlength=names)
    if not isinstance(counted.intervals, CountIntervals):
        draws = counted.intervals.draws[
            generator.permutation(len(counted.intervals.draws))[:WORLDS]
        ]
        # Draws are shares of everyone; a label is as many rows of the rate as a row of the group.
        each = (rate.size(draws) / draws.sum(axis=-1)).mean(axis=0) * rows / len(table)
        nothing = np.zeros(len(gap.compared))
        luck = special.ndtri(spread_evenly(len(nothing), generator))[: len(draws)]
        return KnownRates(nothing, nothing, rate(draws)[:, gap.compared], each[gap.compared], luck)
    (successes,), (sizes,) = counted.intervals.effective_counts([rate])
    labelled = np.bincount(groups[table.known], minlength=names)
    worth = sizes / np.maximum(labelled, 1)
    worth = np.where(labelled > 0, worth, sizes.sum() / labels)
    left = rows if len(table) == labels else rows - labelled
    x, n = successes[gap.compared], sizes[gap.compared]
    truth, luck = np.split(spread_evenly(2 * len(x), generator), 2, axis=1)
    rates = special.betaincinv(x + 0.5, n - x + 0.5, truth)
    each = (worth * left / left.sum())[gap.compared]
    return KnownRates(x, n, rates, each, special.ndtri(luck))


def spread_evenly(columns: int, generator: np.random.Generator) -> Floats:
    """Draw (WORLDS, columns) numbers in (0, 1) that fill it evenly, so that seeds hardly matter."""
    return sobol(columns, WORLDS, generator)


def numbers(labels: int, remaining: int | None) -> list[int]:
    """Return 10, 20, 50, 100, ... from a tenth of the labels there are to all that can be had."""
    most = _MOST_ROWS if remaining is None else remaining
    steps = [step * 10**power for power in range(1, 8) for step in (1, 2, 5)]
    wanted = [each for each in steps if 10 * each >= labels and each < most]
    return [*wanted, most] if remaining is not None else wanted


def rounded(labels: int) -> int:
    """Return a number to two digits, as sure as a simulation of it is."""
    digits = max(len(str(labels)) - 2, 0)
    return round(labels, -digits)
