"""Intervals of rates, and of differences and ratios of two rates, that hold for few rows too.

Everything is a closed form of counts, of any shape: no draws. A rate's limits are the modified
Jeffreys limits, of few rows nearer to the exact ones; those of differences and ratios follow from
them by the method of variance estimates recovery (MOVER), which takes any limits that hold.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from fairbench.core.arrays import Floats

# Rows up to which a rate's limits are halfway to the exact ones, and from which on Jeffreys'.
_FEW, _MANY = 30, 90


class Limits(NamedTuple):
    """Estimates with the two ends of their intervals, arrays of one shape."""

    value: Floats
    lower: Floats
    upper: Floats

    def take(self, group: Any) -> Limits:
        """Return these limits at some positions of the last axis."""
        return Limits(*(end[..., group] for end in self))

    def at(self, place: int) -> tuple[float, float, float]:
        """Return one estimate of a single axis, with both ends, as plain numbers."""
        return float(self.value[place]), float(self.lower[place]), float(self.upper[place])


def rate_limits(successes: ArrayLike, size: ArrayLike, *, level: ArrayLike = 0.95) -> Limits:
    """Return rates with their modified Jeffreys intervals, of few rows nearer to the exact ones.

    Parameters
    ----------
    successes, size : counts of any shapes that broadcast; they need not be whole numbers, such as
        weighted counts scaled to their effective size.
    level : of the intervals; several broadcast with the counts.

    Returns
    -------
    The rates and both ends. Of no rows, the rate is NaN and the interval is [0, 1].

    Notes
    -----
    Brown, Cai and DasGupta (2001), "Interval estimation for a binomial proportion": quantiles of
    Beta(x + 1/2, n - x + 1/2), but the exact limits of Clopper and Pearson where the Jeffreys limit
    fails: at both ends for x = 0 and x = n, at the lower for x = 1 and at the upper for x = n - 1.
    Between whole numbers the two are mixed linearly, so that nothing jumps.

    At rates where both ends fail at once, Jeffreys' limits of few rows cover 90 to 93 %. So the
    lower limit of 30 rows or fewer is the quantile of Beta(x + 1/4, n - x + 3/4), halfway
    between Jeffreys' and Clopper and Pearson's Beta(x, n - x + 1), and Jeffreys' own from
    90 rows on. By enumeration, the 95 % intervals of 1 to 90 rows then cover every rate
    at least 92.9 % of the time, and are 5 % wider at up to 50 rows. Of more rows, the worst rate is
    one at which some seven are expected: 92.4 % of 1,000 rows, 92.3 % in the limit.

    Examples
    --------
    >>> rate_limits(1, 20).lower.round(4).item()
    0.0013
    >>> rate_limits(4, 10).lower.round(4).item()
    0.137
    """
    tails = (1 - np.asarray(level, float)) / 2
    x, n, tail = np.broadcast_arrays(np.asarray(successes, float), np.asarray(size, float), tails)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.where(n > 0, x / n, np.nan)
    # The upper limits are the mirror image of the lower ones of n - x.
    lower, opposite = _lower(*np.broadcast_arrays(np.stack([x, n - x]), n, tail))
    # Rounding must not put a rate outside its interval.
    return Limits(value, np.fmin(lower, value), np.fmax(1 - opposite, value))


def _pseudo_count(size: ArrayLike) -> Floats:
    """Return c: the lower limit of x of so many rows is a quantile of Beta(x + c, n - x + 1 - c).

    The upper one is that of Beta(x + 1 - c, n - x + c): Jeffreys' limits have c = 1/2, those of
    Clopper and Pearson c = 0.
    """
    few: Floats = np.clip((_MANY - np.asarray(size, float)) / (_MANY - _FEW), 0, 1)
    return 0.5 - 0.25 * few


def _lower(x: Floats, n: Floats, tail: Floats) -> Floats:
    """Return the lower limits."""
    added = _pseudo_count(n)
    inner = special.betaincinv(x + added, np.maximum(n - x, 0) + 1 - added, tail)
    inner_share = np.clip(x - 1, 0, 1) * np.clip(n - x, 0, 1)
    edge = inner_share < 1
    lower: Floats = np.where(n > 0, inner, 0.0)
    if edge.any():
        counts, rows, share = x[edge], n[edge], inner_share[edge]
        inside = np.maximum(counts, 1e-300)
        exact = special.betaincinv(inside, np.maximum(rows - counts, 0) + 1, tail[edge])
        exact = np.where((counts > 0) & (rows > 0), exact, 0.0)
        lower[edge] = share * lower[edge] + (1 - share) * exact
    return lower


_ENOUGH = 4.0  # successes and failures
_UNDER = np.linspace(0, _ENOUGH, 81)


def quick_limits(counts: Floats, size: Floats, *, level: float = 0.95) -> Limits:
    """Return the limits of :func:`rate_limits` of counts (W, G), to a hundredth of their width.

    Parameters
    ----------
    size : (G,).
    """
    counts, sizes = np.broadcast_arrays(counts, size)
    many = (counts >= _ENOUGH) & (sizes - counts >= _ENOUGH)
    lower, upper = np.empty_like(counts), np.empty_like(counts)
    lower[many], upper[many] = _quick_ends(counts[many], sizes[many], level)
    for group in np.flatnonzero(~many.all(axis=0)):
        rows, n = ~many[:, group], size[group]
        grid = np.unique(np.clip([_UNDER, n - _UNDER], 0, n))
        limits = rate_limits(grid, n, level=level)
        lower[rows, group] = np.interp(counts[rows, group], grid, limits.lower)
        upper[rows, group] = np.interp(counts[rows, group], grid, limits.upper)
    with np.errstate(invalid="ignore"):
        return Limits(counts / sizes, lower, upper)


def _quick_ends(counts: Floats, size: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the quantiles of Beta distributions that limits are, sixty times as fast.

    Abramowitz and Stegun (1964), "Handbook of Mathematical Functions", 26.5.22.
    """
    wide, added = -special.ndtri((1 - level) / 2), _pseudo_count(size)
    failures, bend = size - counts, (wide**2 - 3) / 6
    ends = []
    for sign, a in ((1, added), (-1, 1 - added)):
        low_inverse, high_inverse = 1 / (2 * (counts + a) - 1), 1 / (2 * (failures - a) + 1)
        mean = 2 / (low_inverse + high_inverse)
        spread = sign * wide * np.sqrt(mean + bend) / mean
        shift = (high_inverse - low_inverse) * (bend + 5 / 6 - 2 / (3 * mean))
        ratio = (failures + 1 - a) / (counts + a)
        ends.append(1 / (1 + ratio * np.exp(2 * (spread - shift))))
    return ends[0], ends[1]


def weighted_share(limits: Limits, success: ArrayLike, failure: ArrayLike) -> Limits:
    """Return the limits of s p / (s p + f (1 - p)), which grows with p, from those of p.

    The F1 score is such a share, of the rows that are positive or predicted so, with weights 2
    and 1.
    """
    s, f = np.asarray(success), np.asarray(failure)
    return Limits(*(np.where(s == f, p, s * p / (s * p + f * (1 - p))) for p in limits))


def difference_limits(first: Limits, second: Limits, correlation: ArrayLike = 0.0) -> Limits:
    """Return the differences first - second with their intervals.

    Parameters
    ----------
    correlation : of the two rates' errors, where they are known from the same clusters.

    Notes
    -----
    Newcombe (1998), method 10, with other limits; in general Zou and Donner (2008),
    "Construction of confidence limits about effect measures: a general approach".
    """
    value = first.value - second.value
    return Limits(
        value,
        value - _joined(first.value - first.lower, second.upper - second.value, correlation),
        value + _joined(first.upper - first.value, second.value - second.lower, correlation),
    )


def _joined(first: Floats, second: Floats, correlation: ArrayLike) -> Floats:
    """Return the length of the difference of two distances whose errors are correlated."""
    r = np.asarray(correlation)
    joined: Floats = np.hypot(first, second)
    if r.any():
        joined = np.sqrt(np.maximum(joined**2 - 2 * r * first * second, 0))
    return joined


def mean_limits(first: Limits, second: Limits, correlation: ArrayLike = 0.0) -> Limits:
    """Return the means of two rates with their intervals, made as differences' are."""
    value, opposite = (first.value + second.value) / 2, -np.asarray(correlation)
    return Limits(
        value,
        value - _joined(first.value - first.lower, second.value - second.lower, opposite) / 2,
        value + _joined(first.upper - first.value, second.upper - second.value, opposite) / 2,
    )


def weighted_sum_limits(rates: Limits, weight: Floats, correlation: Floats) -> Limits:
    """Return weighted sums (...) of K rates (..., K) with their intervals, made alike.

    Parameters
    ----------
    weight : (K,), each above or below 0.
    correlation : (..., K, K) of the rates' errors.
    """
    up, down = rates.upper - rates.value, rates.value - rates.lower
    signed = correlation * np.sign(weight)[:, None] * np.sign(weight)
    size, value = np.abs(weight), (weight * rates.value).sum(axis=-1)
    reach = [
        np.einsum("...i,...ij,...j->...", size * array, signed, size * array)
        for array in (np.where(weight > 0, down, up), np.where(weight > 0, up, down))
    ]
    lower, upper = (np.sqrt(np.maximum(squared, 0)) for squared in reach)
    return Limits(value, value - lower, value + upper)


def ratio_limits(first: Limits, second: Limits, correlation: ArrayLike = 0.0) -> Limits:
    """Return the ratios first / second with their intervals.

    Parameters
    ----------
    correlation : of the two rates' errors, where they are known from the same clusters.

    Returns
    -------
    NaN ratios where the second rate is 0. The interval is there all the same: its lower end says
    how large the ratio is at least, and its upper end is infinite where the second rate may be 0.
    Of two rates of 0 it is from 0 to infinity.

    Notes
    -----
    Donner and Zou (2012), "Closed-form confidence intervals for functions of the normal mean and
    standard deviation", section 2: the ratios r at which the interval of first - r second ends at
    0, written so that nothing cancels.
    """
    p, q, r = first.value, second.value, np.asarray(correlation)
    product = p * q - r * (p - first.lower) * (second.upper - q)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.where(q > 0, p / q, np.nan)
        low = first.lower * (2 * p - first.lower)
        curve = second.upper * (2 * q - second.upper)
        root = product + np.sqrt(np.maximum(product**2 - curve * low, 0))
        lower = np.where(low > 0, low / root, 0.0)
        high = first.upper * (2 * p - first.upper)
        curve = second.lower * (2 * q - second.lower)
        product = p * q - r * (first.upper - p) * (q - second.lower)
        root = product + np.sqrt(np.maximum(product**2 - curve * high, 0))
        upper = np.where(curve > 0, root / curve, np.inf)
    missing = np.isnan(p) | np.isnan(q)
    lower, upper = np.where(missing, 0, lower), np.where(missing, np.inf, upper)
    return Limits(value, np.fmin(lower, value), np.fmax(upper, value))


def probability_ratio_below(
    first: Limits,
    second: Limits,
    ratio: float,
    *,
    level: float = 0.95,
    correlation: ArrayLike = 0.0,
) -> Floats:
    """Return how sure it is that first / second is under a ratio.

    It is 2.5 % where the 95 % interval of :func:`ratio_limits` begins at the ratio, and 97.5 %
    where it ends there: the confidence distribution of the same construction.

    Parameters
    ----------
    level : of the limits given.
    correlation : of the two rates' errors.
    """
    difference = first.value - ratio * second.value
    toward = np.where(difference > 0, first.value - first.lower, first.upper - first.value)
    away = np.where(difference > 0, second.upper - second.value, second.value - second.lower)
    with np.errstate(invalid="ignore", divide="ignore"):
        z = difference / (_joined(toward, ratio * away, correlation) / quantile(level))
    below: Floats = special.ndtr(-np.where(difference == 0, 0, z))
    return below


@lru_cache(maxsize=64)
def quantile(level: float) -> float:
    """Return the normal quantile of a two-sided interval, 1.96 at 95 %."""
    return float(special.ndtri((1 + level) / 2))
