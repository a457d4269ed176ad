"""Intervals of rates, and of differences and ratios of two rates, that hold for few rows too.

Everything is a closed form of counts, of any shape: no draws. A rate's limits are the modified
Jeffreys limits, of few rows nearer to the exact ones; those of differences and ratios follow from
them by the method of variance estimates recovery (MOVER), which takes any limits that hold. The
last part has wider intervals that hold at every look (:func:`rate_sequence`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from scipy.special import betaln, xlog1py, xlogy

from fairbench.core.arrays import Floats, divide
from fairbench.metrics.regression import normal_quantile

# Rows up to which a rate's limits are halfway to the exact ones, and from which on Jeffreys'.
_FEW, _MANY = 30, 90


class Limits(NamedTuple):
    """Estimates with the two ends of their intervals, arrays of one shape."""

    value: Floats
    lower: Floats
    upper: Floats

    def take(self, group: Any) -> Limits:
        """Return these limits at some positions of the last axis."""
        return Limits(*(array[..., group] for array in self))

    def apply(self, function: Callable[[Floats], Floats]) -> Limits:
        """Return the limits of which each array is what a function makes of it."""
        return Limits(*map(function, self))

    def where(self, condition: NDArray[np.bool_], others: Limits) -> Limits:
        """Return these limits where a condition holds, and others elsewhere."""
        return Limits(*(np.where(condition, *pair) for pair in zip(self, others, strict=True)))

    def weighted(self, success: ArrayLike, failure: ArrayLike) -> Limits:
        """Return the limits of s p / (s p + f (1 - p)), which grows with p, from those of p.

        The F1 score is such a share, of the rows that are positive or predicted so, with weights 2
        and 1.
        """
        s, f = np.asarray(success), np.asarray(failure)
        return self.apply(lambda p: np.where(s == f, p, s * p / (s * p + f * (1 - p))))

    @property
    def mirrored(self) -> Limits:
        """The limits of the negative values."""
        return Limits(-self.value, -self.upper, -self.lower)

    def at(self, index: int) -> tuple[float, float, float]:
        """Return the estimate at one position of a single axis, with its limits, as numbers."""
        return float(self.value[index]), float(self.lower[index]), float(self.upper[index])


def rate_limits(successes: ArrayLike, size: ArrayLike, *, level: ArrayLike = 0.95) -> Limits:
    """Return rates with their modified Jeffreys intervals, of few rows nearer to the exact ones.

    Parameters
    ----------
    successes, size : counts of any shapes that broadcast, with 0 <= successes <= size; they need
        not be whole numbers, such as weighted counts scaled to their effective size.
    level : the level of the intervals; an array of levels broadcasts with the counts.

    Returns
    -------
    The rates and both limits. Of no rows, the rate is NaN and the interval is [0, 1].

    Raises
    ------
    ValueError : a level that is not between 0 and 1.

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
    levels = np.asarray(level, float)
    if not ((levels >= 0) & (levels <= 1)).all():
        raise ValueError(f"level is {level!r}: it must be between 0 and 1, such as 0.95")
    x, n, tail = np.broadcast_arrays(
        np.asarray(successes, float), np.asarray(size, float), (1 - levels) / 2
    )
    value = divide(x, n)
    # The upper limits are the mirror image of the lower ones of n - x.
    lower, mirrored = _lower_limit(*np.broadcast_arrays(np.stack([x, n - x]), n, tail))
    # Rounding must not put a rate outside its interval.
    return Limits(value, np.fmin(lower, value), np.fmax(1 - mirrored, value))


def _pseudo_count(size: ArrayLike) -> Floats:
    """Return c: the lower limit of x of so many rows is a quantile of Beta(x + c, n - x + 1 - c).

    The upper one is that of Beta(x + 1 - c, n - x + c): Jeffreys' limits have c = 1/2, those of
    Clopper and Pearson c = 0.
    """
    return 0.5 - 0.25 * np.clip((_MANY - np.asarray(size, float)) / (_MANY - _FEW), 0, 1)


def _lower_limit(x: Floats, n: Floats, tail: Floats) -> Floats:
    """Return the lower limits of rates, which have the probability `tail` each.

    They are Jeffreys', of few rows nearer to the exact ones (Clopper and Pearson), which they are
    up to x = 1, and at x = n; see :func:`rate_limits`. Between 1 and 2 successes, and between 1 and
    0 failures, the two are mixed linearly.
    """
    c = _pseudo_count(n)
    lower = special.betaincinv(x + c, np.maximum(n - x, 0) + 1 - c, tail)
    lower = np.where(n > 0, lower, 0.0)
    share = np.clip(x - 1, 0, 1) * np.clip(n - x, 0, 1)  # of Jeffreys'
    edge = share < 1
    if edge.any():
        x_edge, n_edge, share_edge = x[edge], n[edge], share[edge]
        failures = np.maximum(n_edge - x_edge, 0)
        exact = special.betaincinv(np.maximum(x_edge, 1e-300), failures + 1, tail[edge])
        exact = np.where((x_edge > 0) & (n_edge > 0), exact, 0.0)
        lower[edge] = share_edge * lower[edge] + (1 - share_edge) * exact
    return lower


_ENOUGH = 4.0  # successes and failures from which on quick limits are accurate
_UNDER = np.linspace(0, _ENOUGH, 81)  # counts under that, between which limits are interpolated


def quick_limits(counts: Floats, size: Floats, *, level: float = 0.95) -> Limits:
    """Return the limits of :func:`rate_limits` to a hundredth of their width.

    Parameters
    ----------
    counts : (W, G) numbers of successes.
    size : (G,) numbers of rows.
    level : the level of the intervals.
    """
    counts, sizes = np.broadcast_arrays(counts, size)
    many = (counts >= _ENOUGH) & (sizes - counts >= _ENOUGH)
    lower, upper = np.empty_like(counts), np.empty_like(counts)
    lower[many], upper[many] = _quick_quantiles(counts[many], sizes[many], level)
    for group in np.flatnonzero(~many.all(axis=0)):
        few, n = ~many[:, group], size[group]
        grid = np.unique(np.clip([_UNDER, n - _UNDER], 0, n))
        limits = rate_limits(grid, n, level=level)
        lower[few, group] = np.interp(counts[few, group], grid, limits.lower)
        upper[few, group] = np.interp(counts[few, group], grid, limits.upper)
    return Limits(divide(counts, sizes), lower, upper)


def _quick_quantiles(counts: Floats, size: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the lower and upper limits of rates by an approximation, sixty times as fast.

    Notes
    -----
    Abramowitz and Stegun (1964), "Handbook of Mathematical Functions", 26.5.22: the quantile of
    Beta(a', b') is about a' / (a' + b' exp(2 w)), where, with the normal quantile z::

        lambda = (z^2 - 3) / 6
        h = 2 / (1 / (2 a' - 1) + 1 / (2 b' - 1))
        w = z sqrt(h + lambda) / h
            - (1 / (2 b' - 1) - 1 / (2 a' - 1)) (lambda + 5/6 - 2 / (3 h))

    Here a' = x + c and b' = n - x + 1 - c of the lower limit, with c of :func:`_pseudo_count`.
    """
    z = -special.ndtri((1 - level) / 2)
    c = _pseudo_count(size)
    failures = size - counts
    lambda_ = (z**2 - 3) / 6

    def beta_quantile(sign: int, added: Floats) -> Floats:
        inverse_a = 1 / (2 * (counts + added) - 1)
        inverse_b = 1 / (2 * (failures - added) + 1)
        h = 2 / (inverse_a + inverse_b)
        spread = sign * z * np.sqrt(h + lambda_) / h
        shift = (inverse_b - inverse_a) * (lambda_ + 5 / 6 - 2 / (3 * h))
        odds_ratio = (failures + 1 - added) / (counts + added)
        return np.asarray(1 / (1 + odds_ratio * np.exp(2 * (spread - shift))))

    return beta_quantile(1, c), beta_quantile(-1, 1 - c)


def difference_limits(first: Limits, second: Limits, correlation: ArrayLike = 0.0) -> Limits:
    """Return the differences first - second with their intervals.

    Parameters
    ----------
    first, second : the two rates with their limits.
    correlation : the correlation of the errors of the two rates, where both are estimated from the
        same clusters.

    Notes
    -----
    Newcombe (1998), method 10, with other limits; in general Zou and Donner (2008),
    "Construction of confidence limits about effect measures: a general approach".
    """
    value = first.value - second.value
    return Limits(
        value,
        value - _combine(first.value - first.lower, second.upper - second.value, correlation),
        value + _combine(first.upper - first.value, second.value - second.lower, correlation),
    )


def _combine(first: Floats, second: Floats, correlation: ArrayLike) -> Floats:
    """Return sqrt(a^2 - 2 r a b + b^2): the half-width of a difference from those of two rates."""
    r = np.asarray(correlation)
    half_width = np.hypot(first, second)
    if not r.any():
        return half_width
    return np.sqrt(np.maximum(half_width**2 - 2 * r * first * second, 0))


def mean_limits(first: Limits, second: Limits, correlation: ArrayLike = 0.0) -> Limits:
    """Return the means of two rates with their intervals, made like those of differences."""
    total = difference_limits(first, second.mirrored, -np.asarray(correlation))
    return total.apply(lambda limit: limit / 2)


def weighted_sum_limits(rates: Limits, weight: Floats, correlation: Floats) -> Limits:
    """Return weighted sums (...) of K rates with their intervals, made like those of differences.

    Parameters
    ----------
    rates : (..., K) the rates with their limits.
    weight : (K,) the weights, each above or below 0.
    correlation : (..., K, K) the correlations of the rates' errors.
    """
    up, down = rates.upper - rates.value, rates.value - rates.lower
    signed_correlation = correlation * np.sign(weight)[:, None] * np.sign(weight)
    size = np.abs(weight)
    value = (weight * rates.value).sum(axis=-1)

    def combine(half_widths: Floats) -> Floats:
        scaled = size * half_widths
        squared = np.einsum("...i,...ij,...j->...", scaled, signed_correlation, scaled)
        return np.asarray(np.sqrt(np.maximum(squared, 0)))

    lower = value - combine(np.where(weight > 0, down, up))
    upper = value + combine(np.where(weight > 0, up, down))
    return Limits(value, lower, upper)


def ratio_limits(first: Limits, second: Limits, correlation: ArrayLike = 0.0) -> Limits:
    """Return the ratios first / second with their intervals.

    Parameters
    ----------
    first, second : the two rates with their limits.
    correlation : the correlation of the errors of the two rates, where both are estimated from the
        same clusters.

    Returns
    -------
    The ratios, NaN where the second rate is 0, with limits. The limits exist all the same: the
    upper one is infinite where the second rate may be 0. Of two rates of 0 the interval is from 0
    to infinity.

    Notes
    -----
    Donner and Zou (2012), "Closed-form confidence intervals for functions of the normal mean and
    standard deviation", section 2: the ratios t at which the interval of p - t q ends at 0. With
    the lower limit l of p, the upper limit u of q and the correlation r, the lower limit is the
    smaller root of::

        A t^2 - 2 B t + C = 0,  A = u (2 q - u),  B = p q - r (p - l) (u - q),  C = l (2 p - l)

    written as C / (B + sqrt(B^2 - A C)), in which nothing cancels. The upper limit is the larger
    root (B + sqrt(B^2 - A C)) / A with the upper limit of p for l and the lower one of q for u.
    """
    p, q, r = first.value, second.value, np.asarray(correlation)
    b_lower = p * q - r * (p - first.lower) * (second.upper - q)
    b_upper = p * q - r * (first.upper - p) * (q - second.lower)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = divide(p, q)
        c_lower = first.lower * (2 * p - first.lower)
        a_lower = second.upper * (2 * q - second.upper)
        root = b_lower + np.sqrt(np.maximum(b_lower**2 - a_lower * c_lower, 0))
        lower = np.where(c_lower > 0, c_lower / root, 0.0)
        c_upper = first.upper * (2 * p - first.upper)
        a_upper = second.lower * (2 * q - second.lower)
        larger_root = b_upper + np.sqrt(np.maximum(b_upper**2 - a_upper * c_upper, 0))
        upper = np.where(a_upper > 0, larger_root / a_upper, np.inf)
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
    first, second : the two rates with their limits.
    ratio : the ratio.
    level : the level of the limits.
    correlation : the correlation of the errors of the two rates.
    """
    difference = first.value - ratio * second.value
    # Half-widths on the sides on which the difference would become 0.
    of_first = np.where(difference > 0, first.value - first.lower, first.upper - first.value)
    of_second = np.where(difference > 0, second.upper - second.value, second.value - second.lower)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = _combine(of_first, ratio * of_second, correlation) / quantile(level)
        z = difference / error
    return special.ndtr(-np.where(difference == 0, 0, z))


quantile = normal_quantile  # of a two-sided interval: 1.96 at 95 %


def last_holding(
    holds: Callable[[Floats], NDArray[np.bool_]],
    start: ArrayLike,
    end: ArrayLike,
    halvings: int = 40,
) -> Floats:
    """Return the last values on the way from `start` to `end` of which something holds.

    By bisection: it holds of the start and of all values up to one, and of none behind that.
    """
    holding, failing = np.asarray(start, float), np.asarray(end, float)
    for _ in range(halvings):
        middle = (holding + failing) / 2
        further = holds(middle)
        holding, failing = np.where(further, middle, holding), np.where(further, failing, middle)
    return holding


# Intervals of a rate that hold at every look.


def rate_sequence(successes: ArrayLike, size: ArrayLike, needed: ArrayLike) -> Limits:
    """Return rates with intervals that hold at every look.

    Parameters
    ----------
    needed : the logarithm of the evidence that excludes a rate: log(1 / a) for a confidence of
        1 - a at all looks together.

    Notes
    -----
    The evidence against a rate is the likelihood of the counts, averaged over Beta(1/2, 1/2),
    divided by that of the rate (Robbins 1970; Howard et al. 2021). If the rate is true, its
    logarithm ever reaches log(1 / a) with a probability of at most a.
    """
    x, n, reach = np.broadcast_arrays(
        *(np.asarray(array, float) for array in (successes, size, needed))
    )
    value = divide(x, n)
    averaged = betaln(x + 0.5, n - x + 0.5) - betaln(0.5, 0.5)

    def excluded(rate: Floats) -> NDArray[np.bool_]:
        """Return whether the evidence excludes rates."""
        return averaged - xlogy(x, rate) - xlog1py(n - x, -rate) >= reach

    inside = np.where(n > 0, value, 0.5)
    lower = last_holding(excluded, np.zeros(x.shape), inside)
    upper = last_holding(excluded, np.ones(x.shape), inside)
    return Limits(value, lower, upper)
