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
from fairbench.audits.labels_needed import LIKELY, UNLIKELY, WORLDS
from fairbench.audits.question import PlanOptions
from fairbench.core.seeds import rng
from fairbench.inference.few_labels.importance import sobol
from fairbench.inference.gaps import GroupLimits, largest_gap

Floats = NDArray[np.float64]

MOST = 50_000_000  # labels; more are not planned
_EXACT = 1.01  # the number of labels is found up to this factor


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

    def labels(self, *, alike: bool, equally: bool) -> tuple[int | None, int | None]:
        """Return how many labels show what is true with a probability of 0.2, and of 0.8.

        Parameters
        ----------
        alike : all groups are, which is to be shown of the gap; otherwise the smallest differs by
            it, which is to be shown of the groups.
        equally : as many labels go to every group; otherwise they go to people at random.

        Returns
        -------
        None where even `MOST` do not.
        """
        options = self.options
        shares, rates = np.array(options.groups), np.full(len(options.groups), options.rate)
        given = np.full(len(shares), 1 / len(shares)) if equally else shares / shares.sum()
        if not alike:
            rates[self.smallest] = self.other
        risk = ERROR_RATE / (len(RATE_OF) * options.attributes)

        def chance(labels: float) -> float:
            size = labels * given * options.among
            counts = rates * size + self._luck * np.sqrt(size * rates * (1 - rates))
            level = 1 - 2 * risk if alike else 1 - risk
            gap = largest_gap(GroupLimits.of(np.clip(counts, 0, size), size, level=level))
            return float(((gap.upper < options.gap) if alike else (gap.lower > 0)).mean())

        smallest = min(options.groups) * options.among
        start = options.rate * (1 - options.rate) / options.gap**2 / smallest
        few = _least(chance, UNLIKELY, start)
        return few, None if few is None else _least(chance, LIKELY, few)

    @cached_property
    def _luck(self) -> Floats:
        """Standard normals (W, G): what the labels may say."""
        generator = rng(self.options.seed, "plan")
        return np.asarray(special.ndtri(sobol(len(self.options.groups), WORLDS, generator)))


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
