"""How many further labels would settle a gap, simulated from what is known of the rates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fairbench.core.arrays import Floats
from fairbench.inference.gaps import GroupLimits, largest_gap, simultaneous_level
from fairbench.inference.rates import quick_limits

LIKELY, UNLIKELY = 0.8, 0.2
WORLDS = 1024  # a power of two, as quasi-random points are best
_EXACT = 1.01  # a least number of labels is found up to this factor


@dataclass(frozen=True, eq=False)
class FurtherLabels:
    """How more labels would narrow a gap that is not yet settled.

    Attributes
    ----------
    labels : numbers of further labels; empty if none were requested.
    settled : the share of `WORLDS` simulations in which each number settled the gap, as a question
        by itself within its attribute.
    remaining : how many rows have no label yet; None if all have one, and more rows are needed.
    """

    labels: Sequence[int] = ()
    settled: Sequence[float] = ()
    remaining: int | None = None

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
    """Counts and simulated rates of the groups that are compared, and what one label adds.

    Attributes
    ----------
    successes, sizes : (G,) counts so far; 0 before there are any.
    rates : (W, G) simulated true rates, or (G,) known ones.
    added : (G,) how much a label of a row at random adds to the sizes.
    luck : (W, G) standard normals, from which the further labels are simulated.
    """

    successes: Floats | float
    sizes: Floats | float
    rates: Floats
    added: Floats
    luck: Floats

    def after(self, labels: float) -> tuple[Floats, Floats]:
        """Return the successes (W, G) and the sizes (G,) with so many more labels."""
        added = labels * self.added
        spread = np.sqrt(added * self.rates * (1 - self.rates))
        new_successes = np.clip(added * self.rates + self.luck * spread, 0, added)
        return self.successes + new_successes, self.sizes + added

    def settled_share(self, labels: int, epsilon: float, risk: float) -> float:
        """Return the share of simulations in which so many more labels settle the gap.

        Parameters
        ----------
        labels : the number of further labels.
        epsilon : the gap that matters.
        risk : the probability with which the verdict may be wrong.
        """
        counts, sizes = self.after(labels)
        levels = 1 - 2 * risk, simultaneous_level(1 - risk, counts.shape[-1])
        pointwise, simultaneous = (quick_limits(counts, sizes, level=level) for level in levels)
        gap = largest_gap(GroupLimits(pointwise, simultaneous))
        return float(((gap.upper < epsilon) | (gap.lower > epsilon)).mean())


def least_number(
    chance: Callable[[float], float], wanted: float, start: float, most: int
) -> int | None:
    """Return the least number with a wanted chance, of a chance that grows with the number.

    Parameters
    ----------
    chance : the chance as a function of the number.
    wanted : the chance that is wanted.
    start : a guess of the number.
    most : the largest number that is tried.

    Returns
    -------
    The number; None where `most` is not enough.
    """
    low, high = start, start
    while chance(high) < wanted:
        low, high = high, 2 * high
        if high > most:
            return None
    while low == high or chance(low) >= wanted:
        low, high = low / 2, low
    while high > _EXACT * low:
        middle = np.sqrt(low * high)
        low, high = (low, middle) if chance(middle) >= wanted else (middle, high)
    return int(np.ceil(high))
