"""How many labels an audit will take, from what is supposed before there are any data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fairbench.audits.findings import ERROR_RATE
from fairbench.audits.gaps import RATE_OF
from fairbench.audits.labels_needed import LIKELY, UNLIKELY, spread_evenly
from fairbench.audits.question import PlanOptions
from fairbench.core.seeds import rng
from fairbench.inference.gaps import GroupLimits, largest_gap

Floats = NDArray[np.float64]

MOST = 50_000_000  # labels; more are not planned
_EXACT = 1.01  # the number of labels is found up to this factor


@dataclass(frozen=True)
class LabelsFor:
    """How many labels settle a question with a probability of 0.2, and with one of 0.8.

    None where even `MOST` do not.
    """

    few: int | None
    enough: int | None


@dataclass(frozen=True)
class AuditPlan:
    """Labels that a planned audit needs.

    Rates are estimated from labels alone: scores, which may help, are not known yet.
    """

    options: PlanOptions

    @property
    def other(self) -> float:
        """The rate of the smallest group where it differs from the others'."""
        rate, gap = self.options.rate, self.options.gap
        return rate - gap if rate >= gap else rate + gap

    @property
    def smallest(self) -> int:
        """The position of the smallest group."""
        return int(np.argmin(self.options.groups))

    def alike(self, *, equally: bool) -> LabelsFor:
        """Return the labels that show that no two groups differ by the gap, if all are alike.

        Parameters
        ----------
        equally : as many labels go to every group; otherwise they go to people at random.
        """
        rates = np.full(len(self.options.groups), self.options.rate)
        return self._answer(lambda labels: self._shown(labels, rates, equally, small=True))

    def apart(self, *, equally: bool) -> LabelsFor:
        """Return the labels that show that groups differ, if the smallest differs by the gap."""
        rates = np.full(len(self.options.groups), self.options.rate)
        rates[self.smallest] = self.other
        return self._answer(lambda labels: self._shown(labels, rates, equally, small=False))

    def _shown(self, labels: float, rates: Floats, equally: bool, *, small: bool) -> float:
        """Return how often so many labels show that the gap is small, or that there is one."""
        options = self.options
        share = np.array(options.groups)
        each = np.full(len(share), 1 / len(share)) if equally else share / share.sum()
        size = labels * each * options.among
        counts = rates * size + self._luck * np.sqrt(size * rates * (1 - rates))
        counts = np.clip(counts, 0, size)
        risk = ERROR_RATE / (len(RATE_OF) * options.attributes)
        if small:
            upper = largest_gap(GroupLimits.of(counts, size, level=1 - 2 * risk)).upper
            return float((upper < options.gap).mean())
        lower = largest_gap(GroupLimits.of(counts, size, level=1 - risk)).lower
        return float((lower > 0).mean())

    @cached_property
    def _luck(self) -> Floats:
        """Standard normals (W, G): what the labels may say."""
        generator = rng(self.options.seed, "plan")
        return np.asarray(special.ndtri(spread_evenly(len(self.options.groups), generator)))

    def _answer(self, chance: Callable[[float], float]) -> LabelsFor:
        smallest = min(self.options.groups) * self.options.among
        start = self.options.rate * (1 - self.options.rate) / self.options.gap**2 / smallest
        few = _least(chance, UNLIKELY, start)
        return LabelsFor(few, None if few is None else _least(chance, LIKELY, few))


def _least(chance: Callable[[float], float], wanted: float, start: float) -> int | None:
    """Return the least number with a chance, of a chance that grows with it."""
    low, high = start, start
    while chance(high) < wanted:
        low, high = high, 2 * high
        if high > MOST:
            return None
    while low == high or chance(low) >= wanted:
        low, high = low / 2, low
    while high > _EXACT * low:
        middle = np.sqrt(low * high)
        low, high = (low, middle) if chance(middle) >= wanted else (middle, high)
    return int(np.ceil(high))
