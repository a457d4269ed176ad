"""Lower and upper bounds of rates that rows alone cannot settle, and the bounds of their gaps.

Each bound is estimated like a rate of so many rows, so that limits of rates and of differences
serve for bounds too. Nothing in the rows says where between its bounds a rate is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairbench.core.arrays import Floats
from fairbench.inference.gaps import simultaneous_level
from fairbench.inference.rates import Limits, difference_limits, rate_limits


@dataclass(frozen=True, eq=False)
class RateBounds:
    """The least and the largest value that a rate of each of G groups may have.

    Attributes
    ----------
    lower, upper : (..., G) the two values; NaN where nothing is known of the rate.
    lower_rows, upper_rows : (..., G) effective rows of each bound: an ordinary rate of so many
        rows has the same standard error.
    """

    lower: Floats
    upper: Floats
    lower_rows: Floats
    upper_rows: Floats

    def limits(self, level: float) -> tuple[Limits, Limits]:
        """Return the lower and the upper bounds with their limits, each at this level."""
        return (
            rate_limits(self.lower * self.lower_rows, self.lower_rows, level=level),
            rate_limits(self.upper * self.upper_rows, self.upper_rows, level=level),
        )

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return an interval (..., G) that holds both bounds, and so the rate between them."""
        lower_bound, upper_bound = self.limits(level)
        unknown = np.isnan(lower_bound.value)
        return np.where(unknown, 0.0, lower_bound.lower), np.where(unknown, 1.0, upper_bound.upper)

    @property
    def bounded_groups(self) -> NDArray[np.intp]:
        """The positions, along the last axis, of the groups whose rate has bounds."""
        return np.flatnonzero(np.isfinite(self.lower + self.upper))

    def columns(self) -> dict[str, Floats]:
        """Return the table columns lowest and highest (the bounds), lower and upper (interval)."""
        lower, upper = self.interval()
        return {"lowest": self.lower, "highest": self.upper, "lower": lower, "upper": upper}

    def take(self, groups: ArrayLike) -> RateBounds:
        """Return the bounds of some groups, by their positions."""
        index = np.asarray(groups)
        return RateBounds(
            lower=self.lower[..., index],
            upper=self.upper[..., index],
            lower_rows=self.lower_rows[..., index],
            upper_rows=self.upper_rows[..., index],
        )


@dataclass(frozen=True)
class GapBounds:
    """The bounds of a gap between groups, from the bounds of their rates.

    Attributes
    ----------
    lower, upper : the bounds of the second group's rate minus the first's; of more than two
        groups, the bounds of the largest gap.
    interval : a confidence interval of the gap, wherever between the bounds it is.
    """

    lower: float
    upper: float
    interval: tuple[float, float]

    @property
    def size(self) -> tuple[float, float]:
        """The least and the largest size that the gap may have."""
        least = max(0.0, self.lower, -self.upper)
        return least, max(abs(self.lower), abs(self.upper))


def gap_bounds(bounds: RateBounds, *, level: float = 0.95) -> GapBounds:
    """Return the bounds of a gap between G groups, from the bounds (G,) of their rates."""
    least, largest = _difference_bounds(bounds, level)
    if bounds.lower.shape[-1] == 2:
        return GapBounds(
            lower=float(least.value[1, 0]),
            upper=float(largest.value[1, 0]),
            interval=(float(least.lower[1, 0]), float(largest.upper[1, 0])),
        )
    at_least, at_most, _ = gap_size(bounds, level)
    return GapBounds(
        lower=max(0.0, _largest_of_pairs(least.value)),
        upper=_largest_of_pairs(largest.value),
        interval=(float(at_least), float(at_most)),
    )


def gap_size(bounds: RateBounds, level: float) -> tuple[Floats, Floats, Floats]:
    """Return limits of the size of the largest gap, and of the lead of each group over another.

    Returns
    -------
    at_least : the largest lower limit of a pair; the limits of all pairs hold together.
    at_most : the largest upper limit of any one pair.
    leads : (G, G) the lower limits of all ordered pairs, which hold together.
    """
    n_groups = bounds.lower.shape[-1]
    least_together, _ = _difference_bounds(bounds, simultaneous_level(level, n_groups))
    _, largest_single = _difference_bounds(bounds, level)
    at_least = max(0.0, _largest_of_pairs(least_together.lower))
    at_most = _largest_of_pairs(largest_single.upper)
    return np.asarray(at_least), np.asarray(at_most), least_together.lower


def _difference_bounds(bounds: RateBounds, level: float) -> tuple[Limits, Limits]:
    """Return the least and the largest difference (G, G) of every group's rate from another's."""
    lower, upper = bounds.limits(level)
    lower_column, upper_column = (
        Limits(*(array[:, None] for array in limits)) for limits in (lower, upper)
    )
    return difference_limits(lower_column, upper), difference_limits(upper_column, lower)


def _largest_of_pairs(values: Floats) -> float:
    """Return the largest entry off the diagonal."""
    of_distinct_groups = ~np.eye(len(values), dtype=bool)
    return float(values[of_distinct_groups].max())
