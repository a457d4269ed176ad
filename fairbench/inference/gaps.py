"""Intervals of largest gaps and smallest ratios between groups, and which pairs of groups differ.

The largest gap between observed rates is hardly ever 0, even if all true rates are equal. Therefore
the intervals of the pairs' signed differences are folded: the lower limit of the gap is the largest
lower limit of the size of any pair's difference, and its upper limit the largest upper limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from fairbench.core.arrays import Floats
from fairbench.inference.rates import (
    Limits,
    difference_limits,
    quantile,
    rate_limits,
    ratio_limits,
)


@dataclass(frozen=True)
class GroupLimits:
    """Rates of G groups with pointwise and simultaneous limits, (..., G) each.

    Attributes
    ----------
    pointwise : limits that each hold at the given level.
    simultaneous : wider limits, with which the statements of all pairs hold at once at that level.
    correlation : (..., G, G) the correlations of the groups' errors, if groups share clusters.
    """

    pointwise: Limits
    simultaneous: Limits
    correlation: Floats | float = 0.0

    @classmethod
    def of(
        cls, successes: ArrayLike, size: ArrayLike, *, level: float = 0.95, rates: int = 1
    ) -> GroupLimits:
        """Return the limits of rates from counts (..., G).

        Parameters
        ----------
        successes, size : numbers of successes and of rows.
        level : the level of the intervals.
        rates : how many different rates the statements of all pairs are about, such as 2 for
            equalized odds.
        """
        pointwise = rate_limits(successes, size, level=level)
        groups = pointwise.value.shape[-1]
        wider_level = simultaneous_level(level, groups, rates)
        if wider_level == level:
            return cls(pointwise, pointwise)
        return cls(pointwise, rate_limits(successes, size, level=wider_level))

    def row(self, index: int) -> GroupLimits:
        """Return the limits at one position of the first axis."""
        shared = self.correlation
        return GroupLimits(
            Limits(*(array[index] for array in self.pointwise)),
            Limits(*(array[index] for array in self.simultaneous)),
            shared if isinstance(shared, float) else shared[index],
        )

    def take(self, groups: NDArray[Any] | list[int]) -> GroupLimits:
        """Return the limits of some groups alone, by their positions or a mask of all."""
        shared = self.correlation
        if not isinstance(shared, float):
            shared = shared[..., groups, :][..., groups]
        return GroupLimits(self.pointwise.take(groups), self.simultaneous.take(groups), shared)

    def only(
        self, groups: NDArray[np.bool_], *, unseen: NDArray[np.bool_] | None = None
    ) -> GroupLimits:
        """Return the limits (..., G) of some of the groups alone.

        Parameters
        ----------
        groups : (..., G) whether a group is kept.
        unseen : (..., G) other groups that are kept although they have no row; their limits are 0
            and 1.
        """
        if groups.all():
            return self
        none = np.zeros_like(groups) if unseen is None else unseen
        nothing = Limits(
            np.full(groups.shape, np.nan), np.where(none, 0.0, np.nan), np.where(none, 1.0, np.nan)
        )
        pointwise, simultaneous = (
            Limits(*(np.where(groups, *pair) for pair in zip(limits, nothing, strict=True)))
            for limits in (self.pointwise, self.simultaneous)
        )
        return GroupLimits(pointwise, simultaneous, self.correlation)


@lru_cache(maxsize=512)
def simultaneous_level(level: float, groups: int, rates: int = 1) -> float:
    """Return the level of pointwise intervals at which those of all pairs of groups hold at once.

    The critical value is that of the studentised range divided by the square root of 2 (Tukey),
    which for two groups is the normal quantile. Several rates share the error rate equally.

    Raises
    ------
    ValueError : there is no rate, or the level is not between 0 and 1.
    """
    if rates < 1 or not 0 < level < 1:
        raise ValueError(f"no level of single intervals at level {level:g} of {rates} rates")
    shared = 1 - (1 - level) / rates
    if groups <= 2:
        return shared
    return float(2 * ndtr(range_quantile(shared, groups) / np.sqrt(2)) - 1)


def simultaneous_levels(level: float, groups: ArrayLike, rates: int = 1) -> Floats:
    """Return :func:`simultaneous_level` for each element of an array of numbers of groups."""
    distinct, index = np.unique(groups, return_inverse=True)
    levels = [simultaneous_level(level, int(count), rates) for count in distinct]
    return np.reshape(np.array(levels)[index], np.shape(groups))


@lru_cache(maxsize=512)
def range_quantile(level: float, groups: int, freedom: float = np.inf) -> float:
    """Return a quantile of the studentised range, Tukey's q.

    It is the range of `groups` standard normals over an independent estimate of their standard
    deviation.

    Parameters
    ----------
    freedom : the degrees of freedom of that estimate, at least 1; infinite where it is known.

    Notes
    -----
    The range of k normals has the distribution function H(q), the integral of
    k phi(z) (Phi(z) - Phi(z - q))^(k-1), and the studentised range the mean of H(q s) over
    s = sqrt(chi2_v / v) (Copenhaver and Holland 1988). Both integrals are taken by the trapezoidal
    rule, the outer one over log s, where it converges geometrically. ``scipy.stats`` integrates
    adaptively, which takes a hundred times as long, and is off at one degree of freedom and levels
    above 0.999.

    Raises
    ------
    ValueError : there are no two groups, or the level is not between 0 and 1.
    """
    if groups < 2 or not 0 < level < 1 or not freedom >= 1:
        raise ValueError(
            f"no studentised range of {groups} groups at level {level:g} with {freedom:g} degrees "
            "of freedom"
        )
    scales, weights = _scales(freedom)

    def excess(logarithm: float) -> float:
        """Return the log of the upper tail at a log quantile, less that of 1 - level."""
        over = _over_range(float(np.exp(logarithm)), groups, scales, weights)
        return float(np.log(max(over, 1e-300) / (1 - level)))

    low, high = -2.0, 2.0
    while excess(high) > 0:
        low, high = high, high + 2
    while excess(low) <= 0:
        low, high = low - 2, low
    return float(np.exp(_root(excess, low, high)))


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a falling function crosses zero between two points (the Illinois method)."""
    above, below = function(low), function(high)
    value = np.inf
    kept = 0  # 1 if the upper point was kept in the last step, -1 if the lower one
    while abs(value) > 1e-14 and high - low > 1e-15 * max(1, high):
        point = (low * below - high * above) / (below - above)
        value = function(point)
        if value > 0:
            low, above = point, value
            below, kept = (below / 2 if kept > 0 else below), 1
        else:
            high, below = point, value
            above, kept = (above / 2 if kept < 0 else above), -1
    return point


def _scales(freedom: float) -> tuple[Floats, Floats]:
    """Return points s, (N,), and weights that sum to 1: the distribution of sqrt(chi2_v / v)."""
    if np.isinf(freedom):
        return np.ones(1), np.ones(1)
    width = 1 / np.sqrt(2 * freedom)  # about the standard deviation of log s
    left, right = 40 / freedom + np.sqrt(40 / freedom), min(2.5, 12 * width)
    points = np.arange(-left, right, min(0.06, width / 4))
    logarithm = freedom * (points - np.exp(2 * points) / 2)
    density = np.exp(logarithm - logarithm.max())
    return np.exp(points), density / density.sum()


_NORMALS, _STEP = np.linspace(-8.5, 8.5, 171, retstep=True)
_BELOW = ndtr(_NORMALS)
_DENSITY = _STEP * np.exp(-(_NORMALS**2) / 2) / np.sqrt(2 * np.pi)


def _over_range(quantile: float, groups: int, scales: Floats, weights: Floats) -> float:
    """Return the probability that the studentised range is larger than a quantile."""
    points = quantile * scales
    surely = points < 1e-4  # nearly every range of normals is larger than this
    near = (points < 40) & ~surely  # no range of normals is larger than 40
    inner = points[near, None]
    under = (_BELOW - ndtr(_NORMALS - inner)) ** (groups - 1) @ (groups * _DENSITY)
    return float(weights[surely].sum() + weights[near] @ (1 - under))


def pairs(limits: Limits) -> tuple[Limits, Limits]:
    """Return the limits of the first and of the second group of every ordered pair, (..., G, G)."""
    first = Limits(*(limit[..., :, None] for limit in limits))
    second = Limits(*(limit[..., None, :] for limit in limits))
    return first, second


def largest_gap(*rates: GroupLimits) -> Limits:
    """Return the largest difference between two groups in any of several rates, as an interval.

    Parameters
    ----------
    rates : the limits of G groups (..., G), of one rate, or of each of several (equalized odds),
        made with that number of `rates`.

    Returns
    -------
    The gap. Its lower limit is the largest simultaneous lower limit of all pairs and rates. Its
    upper limit is the largest pointwise upper limit of any pair; it needs no correction, because it
    fails only if the limit of one pair, the truly widest, fails. The observed gap always lies
    inside.

    A group without a value takes part with its limits, which are 0 and 1 if it has no rows. A group
    without limits takes no part. With fewer than two values all is NaN.
    """
    limits_of_rates = []
    for rate in rates:
        # A pair in the other order has the same difference with the other sign.
        first, second = np.triu_indices(rate.pointwise.value.shape[-1], 1)
        shared = rate.correlation
        shared = shared if isinstance(shared, float) else shared[..., first, second]
        wide, pointwise = rate.simultaneous, rate.pointwise
        sizes = size_limits_of_pairs(
            wide.take(first),
            pointwise.take(first),
            wide.take(second),
            pointwise.take(second),
            shared,
        )
        limits_of_rates.append([np.fmax.reduce(array, axis=-1, initial=np.nan) for array in sizes])
    value, lower, upper = (np.fmax.reduce(arrays) for arrays in zip(*limits_of_rates, strict=True))
    return Limits(value, np.clip(lower, 0, None), np.where(np.isnan(value), np.nan, upper))


def gap_of_noise(rates: Limits, *, level: float = 0.95) -> float:
    """Return how large the largest gap would be on average, from noise alone, with equal rates.

    Parameters
    ----------
    rates : the rates of G groups with limits (G,); groups without a value or limits are left out.
    level : the level of the limits.

    Returns
    -------
    The mean range of independent normals whose standard deviations are those of the rates; NaN of
    two groups or fewer, whose difference is signed.

    Notes
    -----
    The mean of the largest less that of the smallest is the integral over x of
    1 - P(all below x) - P(all above x).
    """
    error = (rates.upper - rates.lower) / (2 * quantile(level))
    error = error[np.isfinite(error) & np.isfinite(rates.value)]
    if len(error) < 3 or not error.max():
        return float("nan")
    points = np.linspace(-8, 8, 801) * error.max()
    below = ndtr(points[:, None] / np.maximum(error, 1e-9 * error.max()))
    return float(np.trapezoid(1 - below.prod(axis=1) - (1 - below).prod(axis=1), points))


def size_limits_of_pairs(
    first_wide: Limits,
    first: Limits,
    second_wide: Limits,
    second: Limits,
    correlation: Floats | float = 0.0,
) -> tuple[Floats, Floats, Floats]:
    """Return the sizes of differences of pairs, with their lower and upper limits.

    Parameters
    ----------
    first_wide, second_wide : both rates with simultaneous limits, which give the lower limits.
    first, second : both rates with pointwise limits, which give the upper limits.
    correlation : the correlations of the two rates' errors.
    """
    wide = difference_limits(first_wide, second_wide, correlation)
    pointwise = difference_limits(first, second, correlation)
    upper = np.maximum(pointwise.upper, -pointwise.lower)
    if np.isnan(upper).any():
        furthest = np.maximum(first.upper - second.lower, second.upper - first.lower)
        upper = np.where(np.isnan(upper), furthest, upper)
    return np.abs(wide.value), np.maximum(wide.lower, -wide.upper), upper


def probability_below(
    posterior: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    epsilon: ArrayLike,
    *,
    level: float = 0.95,
) -> Floats:
    """Return posterior probabilities that gaps are under epsilon, bounded by their intervals.

    Parameters
    ----------
    posterior : (...) the probability according to a posterior. It may be more extreme than data of
        this size support: with many small groups the prior implies that some two are far apart,
        and with one small group that it is like the others.
    lower, upper : (...) the limits of the gaps; NaN where there are none.
    epsilon : the gap that matters.
    level : the level of the intervals.

    Returns
    -------
    The probabilities (...). If the interval contains epsilon, they are clipped to
    [1 - level, level]. If the interval is above epsilon they are at most 1 - level, and if it is
    under epsilon at least level. So, whatever the posterior, a probability is beyond these bounds
    only if the interval excludes epsilon, which happens falsely no more often than the interval
    fails on that side.
    """
    risk = min(1 - level, 0.5)
    above, under = np.asarray(lower) > epsilon, np.asarray(upper) < epsilon
    least = np.where(under, 1 - risk, np.where(above, 0.0, risk))
    most = np.where(above, risk, np.where(under, 1.0, 1 - risk))
    probability: Floats = np.clip(np.asarray(posterior, float), least, most)
    return probability


_BLOCK = 1 << 16  # pairs that are compared at once


def surest_gap(rates: GroupLimits) -> tuple[Limits, int, int]:
    """Return the largest gap of one rate of many groups (G,), and the two most surely apart.

    Like :func:`largest_gap`, but block by block, for which less memory is needed.

    Returns
    -------
    The gap, and the positions of the lower and of the higher group of the pair whose difference has
    the largest lower bound; -1 with fewer than two values.
    """
    groups = len(rates.pointwise.value)
    step = max(1, _BLOCK // groups)
    wide, pointwise = rates.simultaneous, rates.pointwise
    surest, upper, low, high = -np.inf, -np.inf, -1, -1
    for start in range(0, groups, step):
        rows = np.arange(start, min(start + step, groups))
        rows_wide, rows_pointwise = (
            Limits(*(limit[rows, None] for limit in limits)) for limits in (wide, pointwise)
        )
        _, lowers, uppers = size_limits_of_pairs(rows_wide, rows_pointwise, wide, pointwise)
        lowers[rows - start, rows] = uppers[rows - start, rows] = np.nan  # a group and itself
        upper = np.fmax(upper, np.fmax.reduce(uppers, axis=None))
        furthest = np.where(np.isnan(lowers), -np.inf, lowers)
        row, column = np.unravel_index(int(furthest.argmax()), furthest.shape)
        if furthest[row, column] > surest:
            surest, low, high = furthest[row, column], start + int(row), int(column)
    if low < 0:
        return Limits(*map(np.asarray, (np.nan, np.nan, np.nan))), low, high
    values = rates.pointwise.value
    if values[low] > values[high]:
        low, high = high, low
    defined = values[~np.isnan(values)]
    return Limits(*map(np.asarray, (np.ptp(defined), max(surest, 0.0), upper))), low, high


def smallest_ratio(rates: GroupLimits) -> Limits:
    """Return the smallest rate of any group over the largest, as an interval within [0, 1].

    The mirror image of :func:`largest_gap`: the upper limit is the smallest simultaneous upper
    limit of any pair, and the lower limit the smallest pointwise lower limit. If every rate is 0
    the value is NaN and the limits are 0 and 1.
    """
    wide, pointwise = (
        ratio_limits(*pairs(array), rates.correlation)
        for array in (rates.simultaneous, rates.pointwise)
    )
    is_pair = ~np.eye(wide.value.shape[-1], dtype=bool)
    smallest, largest = rates.pointwise.value.min(axis=-1), rates.pointwise.value.max(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.where(largest > 0, smallest / largest, np.nan)
    upper = np.where(is_pair, wide.upper, np.inf).min(axis=(-2, -1))
    lower = np.where(is_pair, pointwise.lower, np.inf).min(axis=(-2, -1))
    return Limits(value, np.fmin(lower, np.fmin(value, 1)), np.fmax(np.fmin(upper, 1), value))


def leads(rates: GroupLimits) -> Floats:
    """Return lower limits of how much higher the first rate of every ordered pair is.

    Returns
    -------
    (..., G, G) lower limits of differences, which all hold at once, at the level of the limits. The
    first group's rate is surely higher if the lower limit is above 0.
    """
    differences = difference_limits(*pairs(rates.simultaneous), rates.correlation)
    lower: Floats = differences.lower
    return lower


def distance_limits(
    distance: ArrayLike, size: ArrayLike, *, level: float = 0.95, known: bool = True
) -> Limits:
    """Return the largest distance between two groups' distribution functions, with its interval.

    The observed distance is never 0, even if the distributions are equal, so its interval is
    folded: the lower limit is the largest simultaneous lower limit of any pair, and the upper limit
    the largest pointwise upper limit.

    Parameters
    ----------
    distance : (..., G, G) distances between the empirical distribution functions of any two groups
        (Kolmogorov and Smirnov's), or of means of distribution functions, one per row.
    size : (..., G) rows of each group, at least 1.
    level : the level of the interval.
    known : whether the distance of each pair is known. If not, all distances are equal to the
        largest, which may be that of the two smallest groups.

    Notes
    -----
    The lower limit of a pair is its distance less Massart's (1990) bound of the largest error
    anywhere, with the error rate divided among the pairs. The upper limit adds the error at the
    point where the true distance is largest; the standard error of a share there is at most 1/2
    over the root of the rows.
    """
    rows, distances = np.asarray(size, float), np.asarray(distance, float)
    groups = rows.shape[-1]
    is_pair = ~np.eye(groups, dtype=bool)
    error = np.sqrt(1 / rows[..., :, None] + 1 / rows[..., None, :])
    if not known:
        error = np.where(is_pair, error, 0).max(axis=(-2, -1), keepdims=True)
    massart = np.sqrt(np.log(groups * (groups - 1) / (1 - level)) / 2)
    value, lower, upper = (
        np.where(is_pair, array, -np.inf).max(axis=(-2, -1))
        for array in (
            distances,
            distances - massart * error,
            distances + quantile(level) / 2 * error,
        )
    )
    return Limits(value, np.clip(lower, 0, value), np.clip(upper, None, 1))
