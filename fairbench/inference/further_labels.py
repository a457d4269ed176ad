"""How many further labels answer a question on a gap, where the true rates are supposed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fairbench.core.arrays import Floats
from fairbench.inference.gaps import GroupLimits, largest_gap, simultaneous_level
from fairbench.inference.rates import Limits, quick_limits

LIKELY, UNLIKELY = 0.8, 0.2
WORLDS = 1024  # a power of two, as quasi-random points are best
_EXACT = 1.01  # a least number of labels is found up to this factor


@dataclass(frozen=True, eq=False)
class SupposedRates:
    """Counts of groups so far, their supposed true rates, and what one label adds.

    Attributes
    ----------
    successes, sizes : (G,) counts so far.
    rates : (W, G) true rates in simulated worlds, or (G,) the same in all.
    size_after : number of further labels, of rows at random -> (G,) the sizes with them.
    luck : (W, G) standard normals, from which the further labels are simulated.
    """

    successes: Floats
    sizes: Floats
    rates: Floats
    size_after: Callable[[float], Floats]
    luck: Floats

    def gap(self, labels: float, level: float) -> Limits:
        """Return the interval (W,) of the largest gap at a level, with so many more labels."""
        sizes = self.size_after(labels)
        added = sizes - self.sizes
        spread = np.sqrt(added * self.rates * (1 - self.rates))
        new_successes = np.clip(added * self.rates + self.luck * spread, 0, added)
        counts = self.successes + new_successes
        together = simultaneous_level(level, counts.shape[-1])
        pointwise, simultaneous = (
            quick_limits(counts, sizes, level=at_level) for at_level in (level, together)
        )
        return largest_gap(GroupLimits(pointwise, simultaneous))


def least_number(
    chance: Callable[[float], float], wanted: float, least: float, most: float
) -> int | None:
    """Return the least number with a wanted chance, of a chance that grows with the number.

    Parameters
    ----------
    chance : the chance as a function of the number.
    wanted : the chance that is wanted.
    least, most : the smallest and the largest number that is tried.

    Returns
    -------
    The number; None where `most` is not enough.
    """
    if most < least or chance(most) < wanted:
        return None
    low, high = least, most
    while high > _EXACT * low:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if chance(middle) >= wanted else (middle, high)
    return int(np.ceil(high))
