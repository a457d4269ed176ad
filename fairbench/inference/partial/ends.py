"""Bounds of a rate as two ends, each an estimate with an error of its own, and what follows.

An end is estimated like a rate of so many rows, so that limits of rates and of differences serve
for ends too. Nothing in the rows says where between the ends the rate is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairbench.core.arrays import Floats
from fairbench.inference.gaps import simultaneous_level
from fairbench.inference.rates import Limits, difference_limits, rate_limits


@dataclass(frozen=True, eq=False)
class Ends:
    """The least and the largest value that a rate of each of G groups may have.

    Attributes
    ----------
    lower, upper : (..., G) the two values; NaN where nothing is known of the rate.
    lower_rows, upper_rows : (..., G) of how many rows an ordinary rate would be as sure.
    """

    lower: Floats
    upper: Floats
    lower_rows: Floats
    upper_rows: Floats

    def limits(self, level: float) -> tuple[Limits, Limits]:
        """Return both ends with limits, each at this level."""
        return (
            rate_limits(self.lower * self.lower_rows, self.lower_rows, level=level),
            rate_limits(self.upper * self.upper_rows, self.upper_rows, level=level),
        )

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return an interval (..., G) that holds both ends, and so the rate between them."""
        low, high = self.limits(level)
        unknown = np.isnan(low.value)
        return np.where(unknown, 0.0, low.lower), np.where(unknown, 1.0, high.upper)

    @property
    def known(self) -> NDArray[np.intp]:
        """The positions of the groups, along the last axis, of whose rate anything is known."""
        return np.flatnonzero(np.isfinite(self.lower + self.upper))

    def columns(self) -> dict[str, Floats]:
        """Return both ends, lowest and highest, and the interval, lower and upper, (..., G)."""
        lower, upper = self.interval()
        return {"lowest": self.lower, "highest": self.upper, "lower": lower, "upper": upper}

    def take(self, groups: ArrayLike) -> Ends:
        """Return the ends of some groups."""
        parts = (self.lower, self.upper, self.lower_rows, self.upper_rows)
        return Ends(*(part[..., np.asarray(groups)] for part in parts))


@dataclass(frozen=True)
class GapBounds:
    """What may be true of the gap of a rate between groups.

    Attributes
    ----------
    lower, upper : the bounds: for two groups of the second's rate minus the first's; of more, of
        the largest gap.
    interval : of the gap, wherever between the bounds it is.
    """

    lower: float
    upper: float
    interval: tuple[float, float]

    @property
    def size(self) -> tuple[float, float]:
        """The least and the largest size that the gap may have."""
        low = max(0.0, self.lower, -self.upper)
        return low, max(abs(self.lower), abs(self.upper))


def gap_bounds(ends: Ends, *, level: float = 0.95) -> GapBounds:
    """Return the bounds of a gap between G groups, from the ends (G,) of their rates."""
    lower, upper = _differences(ends, level)
    if ends.lower.shape[-1] == 2:
        interval = float(lower.lower[1, 0]), float(upper.upper[1, 0])
        return GapBounds(float(lower.value[1, 0]), float(upper.value[1, 0]), interval)
    at_least, at_most, _ = gap_size(ends, level)
    return GapBounds(
        max(0.0, _largest(lower.value)), _largest(upper.value), (float(at_least), float(at_most))
    )


def gap_size(ends: Ends, level: float) -> tuple[Floats, Floats, Floats]:
    """Return what the largest gap is at least and at most, and who leads by how much at least.

    Returns
    -------
    The largest lower end of a pair and, as the last, those of all ordered pairs (G, G), which hold
    together; the largest upper end of any one pair.
    """
    together, _ = _differences(ends, simultaneous_level(level, ends.lower.shape[-1]))
    _, single = _differences(ends, level)
    at_least, at_most = max(0.0, _largest(together.lower)), _largest(single.upper)
    return np.asarray(at_least), np.asarray(at_most), together.lower


def _differences(ends: Ends, level: float) -> tuple[Limits, Limits]:
    """Return the least and the largest difference (G, G) of every group's rate from another's."""
    low, high = ends.limits(level)
    low_one, high_one = (Limits(*(limit[:, None] for limit in limits)) for limits in (low, high))
    return difference_limits(low_one, high), difference_limits(high_one, low)


def _largest(values: Floats) -> float:
    other = ~np.eye(len(values), dtype=bool)
    return float(values[other].max())
