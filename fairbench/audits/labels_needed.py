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
from fairbench.inference.rates import quick_limits

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
        return self._reaching(LIKELY)

    @property
    def few(self) -> int | None:
        """The number that settles the gap with a probability of 0.2, if one does."""
        return self._reaching(UNLIKELY)

    def _reaching(self, chance: float) -> int | None:
        chances = np.maximum.accumulate(np.asarray(self.settled, float))
        if chances.max(initial=0.0) < chance:
            return None
        return round(float(np.exp(np.interp(chance, chances, np.log(self.labels)))))


@dataclass(frozen=True, eq=False)
class KnownRates:
    """What is known of a rate in the groups that are compared, and what one more label adds.

    Attributes
    ----------
    successes, sizes : (G,) of rows that count, and of how many.
    rates : (W, G) what the rates may be.
    added : (G,) how much a label at random among all rows adds to the sizes.
    luck : (W, G) standard normals: what the further labels may say of these rates.
    """

    successes: Floats
    sizes: Floats
    rates: Floats
    added: Floats
    luck: Floats

    def settled(self, labels: int, epsilon: float, risk: float) -> float:
        """Return how often so many more labels settle the gap.

        Parameters
        ----------
        risk : the probability with which the verdict may be wrong.
        """
        more = labels * self.added
        spread = np.sqrt(more * self.rates * (1 - self.rates))
        counts = self.successes + np.clip(more * self.rates + self.luck * spread, 0, more)
        levels = 1 - 2 * risk, simultaneous_level(1 - risk, counts.shape[-1])
        size = self.sizes + more
        single, wider = (quick_limits(counts, size, level=level) for level in levels)
        gap = largest_gap(GroupLimits(single, wider))
        return float(((gap.upper < epsilon) | (gap.lower > epsilon)).mean())


def labels_needed(
    table: AuditTable, counted: Sequence[Counted], gaps: Sequence[Gap], options: Options
) -> list[Needed]:
    """Simulate more labels, in growing numbers, until an open gap is likely settled.

    Each question is simulated by itself: what else is asked changes nothing. Labels are given to
    rows at random among all; what the next ones say is drawn from what is known of the rates.

    Parameters
    ----------
    counted : what is known, by attribute; of no labels, if scores are right.
    """
    remaining = len(table) - len(table.known) or None
    by_attribute = {groups.attribute: groups for groups in counted}
    needed = []
    for gap in gaps:
        asked = (gap.verdict == OPEN or gap.assumed) and len(gap.compared) > 1
        if not asked or (gap.metric == NEEDS_NO_LABELS and remaining is not None):
            continue
        generator = rng(options.seed, "labels needed", gap.attribute, gap.metric)
        rates = _known_rates(table, by_attribute[gap.attribute], gap, generator)
        tried: list[int] = []
        chances: list[float] = []
        for labels in numbers(len(table.known), remaining):
            tried.append(labels)
            chances.append(rates.settled(labels, options.epsilon, ERROR_RATE / len(RATE_OF)))
            if chances[-1] >= LIKELY:
                break
        needed.append(Needed(gap, tried, chances, remaining))
    return needed


def _known_rates(
    table: AuditTable, counted: Counted, gap: Gap, generator: np.random.Generator
) -> KnownRates:
    rate, groups = RATE_OF[gap.metric], table.groups[gap.attribute].cat.codes.to_numpy()
    compared, names, labels = gap.compared, len(counted.groups), len(table.known)
    rows = np.bincount(groups, minlength=names)
    if not isinstance(counted.intervals, CountIntervals):
        draws = counted.intervals.draws
        draws = draws[generator.permutation(len(draws))[:WORLDS]]
        # Draws are shares of everyone; a label is as many rows of the rate as a row of the group.
        added = (rate.size(draws) / draws.sum(axis=-1)).mean(axis=0) * rows / len(table)
        nothing = np.zeros(len(compared))
        luck = special.ndtri(sobol(len(compared), WORLDS, generator))[: len(draws)]
        return KnownRates(nothing, nothing, rate(draws)[:, compared], added[compared], luck)
    (successes,), (sizes,) = counted.intervals.effective_counts([rate])
    labelled = np.bincount(groups[table.known], minlength=names)
    worth = sizes / np.maximum(labelled, 1)
    worth = np.where(labelled > 0, worth, sizes.sum() / labels)
    left = rows if len(table) == labels else rows - labelled
    added = worth * left / left.sum()
    x, n = successes[compared], sizes[compared]
    truth, luck = np.split(sobol(2 * len(x), WORLDS, generator), 2, axis=1)
    rates = special.betaincinv(x + 0.5, n - x + 0.5, truth)
    return KnownRates(x, n, rates, added[compared], special.ndtri(luck))


def numbers(labels: int, remaining: int | None) -> list[int]:
    """Return 10, 20, 50, 100, ... from a tenth of the labels there are to all that can be had."""
    most = _MOST_ROWS if remaining is None else remaining
    steps = [step * 10**power for power in range(1, 8) for step in (1, 2, 5)]
    wanted = [step for step in steps if 10 * step >= labels and step < most]
    return [*wanted, most] if remaining is not None else wanted


def rounded(labels: int) -> int:
    """Return a number to two digits, as sure as a simulation of it is."""
    return round(labels, 2 - max(len(str(labels)), 2))
