"""Intervals of largest gaps and smallest ratios between groups, and which pairs of groups differ.

The largest gap between observed rates is hardly ever 0, even if all true rates are equal. Therefore
the intervals of the pairs' signed differences are folded: the lower limit of the gap is the largest
lower limit of the size of any pair's difference, and its upper limit the largest upper limit. The
same holds of rates standardised to one mix of strata (:class:`StandardisedRates`), and of shares of
the first ranks and of exposure (:func:`weighted_shares`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from fairbench.core.arrays import Codes, Floats, Mask, divide
from fairbench.inference.rates import (
    Limits,
    difference_limits,
    last_holding,
    mean_limits,
    probability_ratio_below,
    quantile,
    rate_limits,
    ratio_limits,
)
from fairbench.inference.survey import Design, SurveyCounts, effective_size, sums
from fairbench.metrics.registry import Rate, selection_rate


def _between(correlation: Floats | float, *places: Any) -> Floats | float:
    """Return the correlations at places of the last axes; a number is that of all pairs."""
    return correlation if isinstance(correlation, float) else correlation[(..., *places)]


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
        cls, successes: ArrayLike, size: ArrayLike, level: float = 0.95, *, rates: int = 1
    ) -> GroupLimits:
        """Return the limits of rates from counts (..., G).

        Parameters
        ----------
        successes, size : numbers of successes and of rows.
        level : the level of the intervals.
        rates : how many different rates the statements of all pairs are about, such as 2 for
            equalized odds.
        """
        return cls.at(lambda single: rate_limits(successes, size, level=single), level, rates=rates)

    @classmethod
    def at(
        cls,
        limits: Callable[[float], Limits],
        level: float = 0.95,
        correlation: Floats | float = 0.0,
        *,
        rates: int = 1,
    ) -> GroupLimits:
        """Return the limits (..., G) that a function makes of a level, single and of all pairs."""
        pointwise = limits(level)
        wider = simultaneous_level(level, pointwise.value.shape[-1], rates)
        return cls(pointwise, pointwise if wider == level else limits(wider), correlation)

    def row(self, index: int) -> GroupLimits:
        """Return the limits at one position of the first axis."""
        row, shared = itemgetter(index), self.correlation
        shared = shared if isinstance(shared, float) else row(shared)
        return GroupLimits(self.pointwise.apply(row), self.simultaneous.apply(row), shared)

    def both(self, groups: Any) -> tuple[Limits, Limits]:
        """Return the pointwise and the simultaneous limits of some groups."""
        return self.pointwise.take(groups), self.simultaneous.take(groups)

    def take(self, groups: NDArray[Any] | list[int]) -> GroupLimits:
        """Return the limits of some groups alone, by their positions or a mask of all."""
        places = np.arange(self.pointwise.value.shape[-1])[groups]
        shared = _between(self.correlation, places[:, None], places)
        return GroupLimits(*self.both(groups), shared)

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
        return GroupLimits(
            self.pointwise.where(groups, nothing),
            self.simultaneous.where(groups, nothing),
            self.correlation,
        )

    @property
    def leads(self) -> Floats:
        """Lower limits (..., G, G) of how much higher the first rate of every ordered pair is.

        They are of differences, and all hold at once, at the level of the limits. The first group's
        rate is surely higher if the lower limit is above 0.
        """
        return difference_limits(*pairs(self.simultaneous), self.correlation).lower


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
    return float(2 * ndtr(_range_quantile(shared, groups) / np.sqrt(2)) - 1)


def simultaneous_levels(level: float, groups: ArrayLike, rates: int = 1) -> Floats:
    """Return :func:`simultaneous_level` for each element of an array of numbers of groups."""
    distinct, index = np.unique(groups, return_inverse=True)
    levels = [simultaneous_level(level, int(count), rates) for count in distinct]
    return np.reshape(np.array(levels)[index], np.shape(groups))


@lru_cache(maxsize=512)
def _range_quantile(level: float, groups: int) -> float:
    """Return a quantile of the range of `groups` standard normals, Tukey's q.

    Notes
    -----
    The range of k normals has the distribution function H(q), the integral of
    k phi(z) (Phi(z) - Phi(z - q))^(k-1), which is taken by the trapezoidal rule.
    """

    def is_less(logarithm: Floats) -> NDArray[np.bool_]:
        """Return whether the upper tail at a log quantile is larger than 1 - level."""
        between = _BELOW - ndtr(_NORMALS - np.exp(logarithm))
        return 1 - between ** (groups - 1) @ (groups * _DENSITY) > 1 - level

    return float(np.exp(last_holding(is_less, -40.0, 5.0, 60)))


_NORMALS, _STEP = np.linspace(-8.5, 8.5, 171, retstep=True)
_BELOW = ndtr(_NORMALS)
_DENSITY = _STEP * np.exp(-(_NORMALS**2) / 2) / np.sqrt(2 * np.pi)


def pairs(limits: Limits) -> tuple[Limits, Limits]:
    """Return the limits of the first and of the second group of every ordered pair, (..., G, G)."""
    return (
        limits.apply(lambda limit: limit[..., :, None]),
        limits.apply(lambda limit: limit[..., None, :]),
    )


def largest_gap(rates: GroupLimits) -> Limits:
    """Return the largest difference between two of G groups (..., G) in a rate, as an interval.

    Of several rates (equalized odds), whose limits are made with that number of `rates`, the gap
    and its limits are the largest of those of each.

    Returns
    -------
    The gap. Its lower limit is the largest simultaneous lower limit of all pairs. Its upper limit
    is the largest pointwise upper limit of any pair; it needs no correction, because it fails only
    if the limit of one pair, the truly widest, fails. The observed gap always lies inside.

    A group without a value takes part with its limits, which are 0 and 1 if it has no rows. A group
    without limits takes no part. With fewer than two values all is NaN.
    """
    # A pair in the other order has the same difference with the other sign.
    first, second = np.triu_indices(rates.pointwise.value.shape[-1], 1)
    one, other = rates.both(first), rates.both(second)
    sizes = _size_limits_of_pairs(one, other, _between(rates.correlation, first, second))
    value, lower, upper = (np.fmax.reduce(array, axis=-1, initial=np.nan) for array in sizes)
    return Limits(value, np.clip(lower, 0, None), np.where(np.isnan(value), np.nan, upper))


_FEW = 30  # rows


def compared_means(
    first: Limits, second: Limits, rows: ArrayLike, correlation: ArrayLike = 0.0
) -> Limits:
    """Return the means of two rates of groups (..., G), with limits from which gaps are made.

    The errors of few rows are skewed, and limits joined as those of a single mean would then be too
    narrow for the extremes of many groups: widths add where a rate has fewer than 30 rows.

    Parameters
    ----------
    rows : (2, ..., G) how many rows each rate rests on.
    correlation : the correlation of the errors of the two rates of a group.
    """
    few = (np.asarray(rows) < _FEW).any(axis=0)
    return mean_limits(first, second, np.where(few, 1.0, correlation))


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


def _size_limits_of_pairs(
    one: tuple[Limits, Limits], other: tuple[Limits, Limits], correlation: Floats | float = 0.0
) -> tuple[Floats, Floats, Floats]:
    """Return the sizes of differences of pairs, with their lower and upper limits.

    Parameters
    ----------
    one, other : both rates with pointwise limits, which give the upper limits, and with
        simultaneous ones, which give the lower limits.
    correlation : the correlations of the two rates' errors.
    """
    first, second = one[0], other[0]
    pointwise, wide = map(difference_limits, one, other, (correlation, correlation))
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
    return np.clip(np.asarray(posterior, float), least, most)


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
    surest, upper, low, high = -np.inf, -np.inf, -1, -1
    for start in range(0, groups, step):
        rows = np.arange(start, min(start + step, groups))
        both = rates.both(rows[:, None]), rates.both(slice(None))
        _, lowers, uppers = _size_limits_of_pairs(*both)
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
    value = divide(smallest, largest)
    upper = np.where(is_pair, wide.upper, np.inf).min(axis=(-2, -1))
    lower = np.where(is_pair, pointwise.lower, np.inf).min(axis=(-2, -1))
    return Limits(value, np.fmin(lower, np.fmin(value, 1)), np.fmax(np.fmin(upper, 1), value))


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
    ends = distances, distances - massart * error, distances + quantile(level) / 2 * error
    value, lower, upper = (np.where(is_pair, end, -np.inf).max(axis=(-2, -1)) for end in ends)
    return Limits(value, np.clip(lower, 0, value), np.clip(upper, None, 1))


# Adverse impact ratios: the rates of groups divided by that of a reference group.
#
# The reference group may be given, or be the one with the highest rate. Noisy rates do not show
# for certain which group that is: the interval of a ratio to the highest rate allows for every
# candidate.

FOUR_FIFTHS = 0.8


def ratios_to_group(
    rates: Limits,
    reference: int,
    *,
    level: float = 0.95,
    correlation: Floats | float = 0.0,
) -> tuple[Limits, Floats]:
    """Return the ratios to the rate of one group that was chosen independently of the rates.

    Parameters
    ----------
    rates : (..., G) the rates with limits at that level.
    reference : the index of the group that others are compared with.
    level : the level of the intervals.
    correlation : (..., G, G) correlations of the groups' errors, where groups share clusters.

    Returns
    -------
    ratios : (..., G) the ratios with limits; NaN where the rate of the reference group is 0.
    below : (..., G) the confidence that a ratio is under four fifths, from the confidence
        distribution of the same interval: 2.5 % if the lower limit of the 95 % interval equals the
        bound, 97.5 % if the upper limit does. The statement "under the bound", made if the
        confidence is 95 % or more, is wrong in at most one case of twenty; so is its opposite, made
        at 5 % or less.
    """
    of_group = rates.take([reference])
    shared = _between(correlation, reference)
    ratios = ratio_limits(rates, of_group, shared)
    below = probability_ratio_below(rates, of_group, FOUR_FIFTHS, level=level, correlation=shared)
    for ratio in ratios:
        ratio[..., reference] = 1.0
    below[..., reference] = 0.0
    return ratios, below


def ratios_to_highest(
    at: Callable[[float], Limits],
    highest: Mask,
    *,
    level: float = 0.95,
    correlation: Floats | float = 0.0,
) -> tuple[Limits, Floats, NDArray[np.intp]]:
    """Return the ratios to the highest rate of any group, whichever that truly is.

    Parameters
    ----------
    at : a function that returns the rates (..., G) with limits at a level. It is asked for a second
        one, too, at which a group's ratios to all that it is compared with hold at once
        (Bonferroni).
    highest : (G,) which of the groups may be the one compared with, two or more.
    level : as in :func:`ratios_to_group`.
    correlation : (..., G, G) correlations of the groups' errors, where groups share clusters.

    Returns
    -------
    ratios, below : (..., G) as :func:`ratios_to_group` returns them.
    reference : (...) the index of the group of the highest rate.

    Notes
    -----
    A ratio to the highest rate is the smallest of the ratios to all others. Its upper limit is the
    smallest simultaneous upper limit. Its lower limit is the smallest pointwise lower limit, which
    needs no correction, as the highest rate is that of one group. `below` follows from the
    simultaneous limits if it is over one half, and from the pointwise ones if it is under; if they
    disagree it is one half.
    """
    compared = highest & ~np.eye(len(highest), dtype=bool)  # (G, G) whom each is compared with
    rivals = int(compared.sum(axis=1).max())
    wider_level = 1 - (1 - level) / rivals
    rates, wider = at(level), at(wider_level)

    def below_any(rates: Limits, level: float) -> Floats:
        """Return how sure it is that the surest of the ratios compared is under four fifths."""
        below = probability_ratio_below(
            *pairs(rates), FOUR_FIFTHS, level=level, correlation=correlation
        )
        return np.where(compared, below, 0.0).max(axis=-1)

    pointwise = ratio_limits(*pairs(rates), correlation)
    upper = ratio_limits(*pairs(wider), correlation).upper
    among = np.where(highest, rates.value, -np.inf)
    top = among.max(axis=-1, keepdims=True)
    value = divide(rates.value, top)
    most = np.where(highest, 1.0, np.inf)
    smallest = (np.where(compared, end, np.inf).min(axis=-1) for end in (pointwise.lower, upper))
    ratios = Limits(value, *(np.minimum(limit, most) for limit in smallest))
    single, simultaneous = below_any(rates, level), 1 - rivals * (1 - below_any(wider, wider_level))
    below = np.clip(0.5, np.minimum(simultaneous, single), np.maximum(simultaneous, single))
    return ratios, below, among.argmax(axis=-1)


# Two classifiers on the same rows: differences of their rates, and of their gaps between groups.
#
# A row is in one of eight cells: its label and both decisions. All intervals are closed forms of
# the counts of these cells, with the limits of :mod:`fairbench.inference.rates`.

CELLS = 8
# The position in (TN, FP, FN, TP) of each cell for the first classifier, and for the second.
_FIRST, _SECOND = np.array([0, 0, 1, 1, 2, 2, 3, 3]), np.array([0, 1, 0, 1, 2, 3, 2, 3])


def cells_of(
    label: ArrayLike, first: ArrayLike, second: ArrayLike, group: ArrayLike, *, groups: int
) -> NDArray[Any]:
    """Return how many rows of each group are in each cell, (G, 8).

    Parameters
    ----------
    label, first, second : (n,) 0 or 1: the label, and the decisions of the two classifiers.
    group : (n,) codes from 0 to G - 1.
    """
    cell = 4 * np.asarray(label, int) + 2 * np.asarray(first, int) + np.asarray(second, int)
    counts = np.bincount(np.asarray(group, int) * CELLS + cell, minlength=groups * CELLS)
    return counts.reshape(groups, CELLS).astype(np.int64)


def _weights(rate: Rate, position: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the weights of the cells (8,) in the numerator and denominator of a rate.

    Parameters
    ----------
    rate : the rate.
    position : (8,) of each cell, its position in a classifier's confusion table.
    """
    return np.array(rate.numerator, float)[position], np.array(rate.denominator, float)[position]


def rates_of(cells: Floats, rate: Rate, *, level: float) -> tuple[Limits, Limits]:
    """Return a rate of both classifiers in every group, from cells (G, 8)."""
    first, second = (
        rate_limits(cells @ numerator, cells @ denominator, level=level)
        for numerator, denominator in (_weights(rate, _FIRST), _weights(rate, _SECOND))
    )
    return first, second


def difference(cells: Floats, rate: Rate, *, level: float) -> Limits:
    """Return the second classifier's rate less the first's in every group, (G,).

    Notes
    -----
    Where both rates are of the same rows, the difference is the share of rows that the second alone
    has right less that of the first alone: two shares of a multinomial, joined by the method of
    variance estimates recovery with their correlation. A precision is of the rows that a classifier
    selects; there the rates themselves are joined, with the correlation of their errors.
    """
    numerator, denominator = _weights(rate, _FIRST)
    other_numerator, other_denominator = _weights(rate, _SECOND)
    if (denominator == other_denominator).all():
        only_second = cells @ np.clip(other_numerator - numerator, 0, 1)
        only_first = cells @ np.clip(numerator - other_numerator, 0, 1)
        return difference_of_shares(only_second, only_first, cells @ denominator, level=level)
    first, second = rates_of(cells, rate, level=level)
    return difference_limits(second, first, _correlation(cells, rate))


def difference_of_shares(
    first: Floats, second: Floats, size: Floats, *, level: float = 0.95
) -> Limits:
    """Return the difference of two shares of the same rows, from what differs between them.

    Parameters
    ----------
    first, second : numbers of rows that only the first has right, and only the second, of any
        shape.
    size : numbers of rows in all.
    level : the level of the intervals.
    """
    gained, lost = (rate_limits(count, size, level=level) for count in (first, second))
    # The correlation of two shares of the same rows that exclude each other.
    p, q = (first + 0.5) / (size + 1.5), (second + 0.5) / (size + 1.5)
    shared = -np.sqrt(p * q / ((1 - p) * (1 - q)))
    return difference_limits(gained, lost, shared)


def _correlation(cells: Floats, rate: Rate) -> Floats:
    """Return the correlation (G,) of the errors of both classifiers' rates.

    It is that of the linearised rates, with half a row more in every cell, so that no two
    classifiers are taken to agree for ever because they agree on few rows.
    """
    counts = cells + 0.5
    scores = []
    for position in (_FIRST, _SECOND):
        numerator, denominator = _weights(rate, position)
        share = (counts @ numerator) / (counts @ denominator)
        scores.append(numerator - share[:, None] * denominator)
    first, second = scores
    variance, other_variance, covariance = (
        (counts * a * b).sum(axis=1) for a, b in ((first, first), (second, second), (first, second))
    )
    return covariance / np.sqrt(variance * other_variance)


def gap_change(cells: Floats, rate: Rate, *, level: float = 0.95) -> Limits:
    """Return by how much the second classifier's largest gap of a rate is larger than the first's.

    Parameters
    ----------
    cells : (G, 8) counts of the groups that are compared; each has rows in the rate's denominator.
    rate : the rate.
    level : the level of the interval.

    Notes
    -----
    Of two groups, with s the sum of both classifiers' signed gaps and d their difference, the sizes
    of the gaps differ by the sign of s d times the smaller of |s| and |d|. Where the sign of s is
    sure, that is d alone, in which what the classifiers have in common cancels. Of more groups, the
    largest gaps differ by what lies between the ends of their own intervals, and by no more than
    the groups' changes differ from each other.
    """
    if len(cells) == 2:
        return _change_of_two(cells, rate, level)
    counts = ([cells @ weights for weights in _weights(rate, at)] for at in (_FIRST, _SECOND))
    first, second = (largest_gap(GroupLimits.of(x, n, level)) for x, n in counts)
    changes = difference(cells, rate, level=level)
    reach = largest_gap(GroupLimits(changes, changes)).upper
    lower, upper = second.lower - first.upper, second.upper - first.lower
    return Limits(second.value - first.value, np.maximum(lower, -reach), np.minimum(upper, reach))


def _change_of_two(cells: Floats, rate: Rate, level: float) -> Limits:
    """Return how much the gap between two groups changes, with its limits.

    With the groups' differences d and d' of the two sets of predictions, the change |d'| - |d| is
    the smaller in size of d' - d and d' + d, with the sign of their product.
    """
    change = difference(cells, rate, level=level)
    apart = difference_limits(change.take(1), change.take(0))
    first, second = rates_of(cells, rate, level=level)
    total = difference_limits(second, first.mirrored, -_correlation(cells, rate))
    together = difference_limits(total.take(1), total.take(0))
    corners = [
        _smaller(float(end_apart), float(end_together))
        for end_apart in (apart.lower, apart.upper)
        for end_together in (together.lower, together.upper)
    ]
    # Within the rectangle the smaller of the two is monotone between the axes, and 0 on them.
    crosses = any(array.lower < 0 < array.upper for array in (apart, together))
    ends = [*corners, 0.0] if crosses else corners
    value = _smaller(float(apart.value), float(together.value))
    return Limits(np.asarray(value), np.asarray(min(ends)), np.asarray(max(ends)))


def _smaller(first: float, second: float) -> float:
    """Return the smaller size of two numbers, with the sign of their product."""
    return float(np.sign(first) * np.sign(second) * min(abs(first), abs(second)))


# Standardised rates: groups compared within strata, such as bands of age, with one mix of strata.
#
# Let ``p_gk`` be a rate of group g in stratum k, and ``w_k`` the share of the stratum among all
# people that the rate is of: of everyone for a selection rate, of those whose label is 1 for a true
# positive rate, of those predicted 1 for precision. The standardised rate of a group is
#
#     P_g = sum over k of w_k p_gk,
#
# what its rate would be if it had everyone's mix of strata (direct standardisation). The
# standardised difference of two groups is the weighted mean of their differences within strata,
#
#     P_a - P_b = sum over k of w_k (p_ak - p_bk).
#
# Two groups are compared over the strata in which both have rows that the rate is of; the weights
# are those of these strata alone, and add up to 1. A pair of groups so has its own strata, and its
# own two standardised rates.
#
# **The error of P_g.** The strata are a sample like everything else: the share ``w_k`` of this
# sample stands for that of the population. Given which rows are in which group and stratum, the
# counts in the cells are independent and binomial, and unbiased whatever the shares are, so that
#
#     Var P_g = sum w_k^2 p_gk (1 - p_gk) / n_gk  +  sum w_k (p_gk - P_g)^2 / n,
#
# where n are the rows of all groups in these strata. The second part is that of the shares. It is
# common to both groups: the covariance of P_a and P_b is sum w_k (p_ak - P_a)(p_bk - P_b) / n.
#
# A cell of a row or two says nothing of its own variance: p (1 - p) of one row is always 0. So the
# rate in a cell is drawn towards that of the whole group by the weight of one row, q = (x + r) /
# (n_gk + 1), where r is the group's rate in all strata; what that takes from the mean of q (1 - q)
# where the strata are alike is given back. Of a single stratum nothing changes.
#
# **Limits.** P_g is a weighted rate: a row of cell (g, k) weighs w_k / n_gk. Its limits are those
# of a rate of an effective number of rows (:func:`fairbench.inference.rates.rate_limits`), which is
# at most Kish's unless strata tell much of the outcome: then it is P (1 - P) / Var P as far as that
# still holds with one more event in the row that weighs most, as the events that did not happen in
# heavy cells are not seen. Differences and ratios follow by the method of variance estimates
# recovery with the covariance above. With one stratum all of it is what it is without strata.
#
# MOVER over strata (Zou and Donner 2008), which recovers the variance of every cell from its own
# limits, fails where cells are small: at x = 0 the limit on one side is no distance away, in half
# of all cells. In 40 strata it covers 91 %, and it is wider than this where rates are rare. The
# classical interval, of normal quantiles and sums of p (1 - p) / n, covers 30 %.


@dataclass(frozen=True, eq=False)
class StandardisedRates:
    """The standardised rates of all pairs of G groups, (..., G, G): of the first in each pair.

    The one at (a, b) is of group a over the strata that it shares with group b, and that at (b, a)
    is what it is compared with. All are NaN of a pair that shares no stratum.

    Attributes
    ----------
    value : the standardised rates.
    effective : their effective numbers of rows.
    correlation : correlations of the errors of the two rates of a pair, which have the shares of
        strata in common.
    rows : numbers of rows of the first group in the rate's denominator.
    covered : the share of all people in the rate's denominator who are in the strata of a pair.
    """

    value: Floats
    effective: Floats
    correlation: Floats
    rows: NDArray[np.int64]
    covered: Floats

    @classmethod
    def of(
        cls, successes: ArrayLike, size: ArrayLike, *, mix: ArrayLike | None = None
    ) -> StandardisedRates:
        """Return the standardised rates from counts (..., G, K) in K strata.

        The symbols are those of the comment above.

        Parameters
        ----------
        successes, size : (..., G, K) numbers of rows in the rate's numerator and denominator.
        mix : (..., K) the rows of each stratum that make the mix, such as those of one of the
            groups; everyone if left out.
        """
        x, n = np.asarray(successes, float), np.asarray(size, float)
        shared = (n[..., :, None, :] > 0) & (n[..., None, :, :] > 0)
        everyone = (n.sum(axis=-2) if mix is None else np.asarray(mix, float))[..., None, None, :]
        with np.errstate(invalid="ignore", divide="ignore"):
            total = (shared * everyone).sum(axis=-1)
            weight = shared * everyone / total[..., None]
            n = np.where(shared, n[..., :, None, :], 0.0)
            x = np.where(shared, x[..., :, None, :], 0.0)
            rate = np.where(shared, x / n, 0.0)
            value = (weight * rate).sum(axis=-1)
            deviation = np.where(shared, rate - value[..., None], 0.0)
            share_variance = (weight * deviation**2).sum(axis=-1) / total
            products = weight * deviation * deviation.swapaxes(-2, -3)
            covariance = products.sum(axis=-1) / total
            row_weight = np.where(shared, weight / n, 0.0)
            cell_variance = (weight * row_weight * _cell_spread(x, n)).sum(axis=-1)
            variance = cell_variance + share_variance
            effective = _effective_rows(value, variance, row_weight, n)
            product = np.sqrt(variance * variance.swapaxes(-1, -2))
            correlation = np.where(product > 0, covariance / product, 0.0)
            covered = total / everyone.sum(axis=-1)
        rows = n.sum(axis=-1).astype(np.int64)
        return cls(value, effective, np.clip(correlation, -1, 1), rows, covered)

    def limits(self, *, level: ArrayLike = 0.95) -> Limits:
        """Return the standardised rates with their limits.

        Parameters
        ----------
        level : the level of the intervals; an array of levels broadcasts with the pairs.
        """
        limits = rate_limits(self.value * self.effective, self.effective, level=level)
        nothing = np.isnan(self.value)
        return Limits(self.value, *(np.where(nothing, np.nan, end) for end in limits[1:]))

    def differences(self, *, level: ArrayLike = 0.95) -> Limits:
        """Return the first rate of each pair less the second, with limits."""
        return difference_limits(*_of_pairs(self.limits(level=level)), self.correlation)

    def ratios(self, *, level: ArrayLike = 0.95) -> Limits:
        """Return the first rate of each pair over the second, with limits."""
        return ratio_limits(*_of_pairs(self.limits(level=level)), self.correlation)

    def compared(self, minimum: int = 1) -> Mask:
        """Return the pairs (..., G, G) of two groups that both have at least so many rows."""
        fewest = np.minimum(self.rows, self.rows.swapaxes(-1, -2))
        return (fewest >= max(minimum, 1)) & ~np.eye(self.rows.shape[-1], dtype=bool)


def _cell_spread(x: Floats, n: Floats) -> Floats:
    """Return p (1 - p) of every cell (..., K), with rates drawn towards that of all of them.

    Notes
    -----
    With N rows in all strata, whose rate is r, q = (x + r) / (n + 1). Where strata are alike, the
    mean of q (1 - q) is p (1 - p) times 1 - (n + 1 / N + 2 n / N) / (n + 1)^2, and that of
    r (1 - r) is p (1 - p) (1 - 1 / N); q (1 - q) is multiplied by the ratio of both.
    """
    total = n.sum(axis=-1, keepdims=True)
    q = (x + x.sum(axis=-1, keepdims=True) / total) / (n + 1)
    kept = 1 - (n + 1 / total + 2 * n / total) / (n + 1) ** 2
    correction = np.where(kept > 0, (1 - 1 / total) / kept, 1.0)
    return correction * q * (1 - q)


def _effective_rows(value: Floats, variance: Floats, row_weight: Floats, n: Floats) -> Floats:
    """Return the effective numbers of rows (...) of standardised rates.

    Parameters
    ----------
    value, variance : (...) the rates and their variances.
    row_weight : (..., K) the weight of a row of each stratum.
    n : (..., K) numbers of rows of each stratum.
    """
    n_rows = n.sum(axis=-1)
    share = (row_weight**2 * n).sum(axis=-1)
    as_weighted = effective_size(
        value, variance, rows=n_rows, kish=1 / share, share=share, units=n_rows
    )
    heaviest = row_weight.max(axis=-1)
    as_stratified = (value * (1 - value) + share) / (variance + heaviest**2)
    return np.maximum(as_weighted, as_stratified)


def _of_pairs(limits: Limits) -> tuple[Limits, Limits]:
    """Return the limits of the first and of the second rate of every ordered pair."""
    return limits, limits.apply(lambda end: end.swapaxes(-1, -2))


def _wider(compared: Mask, level: float, rates: int) -> Floats:
    """Return the levels (..., 1, 1) at which the intervals of all pairs hold at once."""
    groups = np.maximum(compared.any(axis=-1).sum(axis=-1), 2)
    return simultaneous_levels(level, groups, rates)[..., None, None]


def largest_difference(
    several: Sequence[StandardisedRates],
    compared: Sequence[Mask],
    *,
    level: float = 0.95,
) -> tuple[Limits, Floats]:
    """Return the largest standardised difference of two groups in any of several rates, and leads.

    As in :func:`fairbench.inference.gaps.largest_gap`, the lower limit is the largest simultaneous
    lower limit of any pair, at the critical value of the studentised range, and the upper limit the
    largest pointwise upper limit of any pair.

    Parameters
    ----------
    several : each of the rates, such as both of equalized odds.
    compared : for each rate, the pairs that are compared.
    level : the level of the interval.

    Returns
    -------
    gap : the size of the difference (...) with its limits; NaN with no pair.
    leads : (..., G, G) lower limits of how much higher the first rate of each ordered pair is, the
        largest in any of the rates; all hold at once.
    """
    gaps, leads = [], []
    for rates, pairs in zip(several, compared, strict=True):
        pointwise = rates.differences(level=level)
        wide = rates.differences(level=_wider(pairs, level, len(several)))
        ends = (
            np.where(pairs, end, np.nan) for end in (pointwise.value, wide.lower, pointwise.upper)
        )
        gaps.append([np.fmax.reduce(end, axis=(-2, -1)) for end in ends])
        leads.append(np.where(pairs, wide.lower, np.nan))
    value, lower, upper = (np.fmax.reduce(arrays) for arrays in zip(*gaps, strict=True))
    return Limits(value, np.clip(lower, 0, None), upper), np.fmax.reduce(leads)


def smallest_standardised_ratio(
    rates: StandardisedRates, compared: Mask, *, level: float = 0.95
) -> Limits:
    """Return the smallest of the ratios of two standardised rates (...), within [0, 1].

    The mirror image of :func:`largest_difference`; NaN with no pair, or where all rates are 0.
    """
    pointwise = rates.ratios(level=level)
    wide = rates.ratios(level=_wider(compared, level, 1))
    value, upper, lower = (
        np.fmin.reduce(np.where(compared, array, np.nan), axis=(-2, -1))
        for array in (pointwise.value, wide.upper, pointwise.lower)
    )
    lower = np.fmin(lower, np.fmin(value, 1))
    return Limits(value, lower, np.fmax(np.minimum(upper, 1), value))


# Shares of groups among the first ranks of a ranking, and of the exposure that ranks give.
#
# If people are drawn independently, their groups are independent given the scores of a ranking. So
# a group's share of the first k ranks, or of exposure, is a weighted mean of independent events,
# whose limits are those of weighted rates. It is compared with the group's share of all rows, which
# is computed from the same events; the correlation of the two errors has a closed form.

_NEARLY = 0.9999  # the largest correlation whose inverse hyperbolic tangent is taken


def top_weights(score: Floats, lists: Codes, top: float) -> Floats:
    """Return which rows (n,) are among the first of their list: 1, 0, or between where scores tie.

    Parameters
    ----------
    score : (n,) the scores that order a list, the largest first.
    lists : (n,) the list 0 .. L - 1 that each row is in.
    top : how many rows of every list are the first; a number under 1 is a share of the list, of at
        least one row.
    """
    size = np.bincount(lists)
    most = np.maximum(np.round(top * size), 1) if top < 1 else np.minimum(top, size)
    return _over_ties(score, lists, lambda rank, which: (rank <= most[which]).astype(float))


def exposure_weights(score: Floats, lists: Codes) -> Floats:
    """Return the exposure (n,) of each row's rank: 1 / log2(1 + rank), the same for ties.

    The discount of the discounted cumulative gain (Järvelin and Kekäläinen 2002), as Singh and
    Joachims (2018), "Fairness of exposure in rankings", take it.
    """
    return _over_ties(score, lists, lambda rank, _: 1 / np.log2(1 + rank))


def _over_ties(score: Floats, lists: Codes, weight_of: Callable[[Floats, Codes], Floats]) -> Floats:
    """Return the weights of ranks from 1, averaged over the rows of one score in a list."""
    order = np.lexsort((-score, lists))
    sorted_lists, sorted_score = lists[order], score[order]
    list_start = np.searchsorted(sorted_lists, sorted_lists, side="left")
    ranks = (np.arange(len(order)) - list_start + 1).astype(float)
    weights = weight_of(ranks, sorted_lists)
    start = np.r_[True, (np.diff(sorted_lists) != 0) | (np.diff(sorted_score) != 0)]
    tie = np.cumsum(start) - 1
    means = np.bincount(tie, weights) / np.bincount(tie)
    row_weights = np.empty(len(order))
    row_weights[order] = means[tie]
    return row_weights


def weighted_shares(
    weight: Floats,
    codes: Codes,
    groups: int,
    *,
    lists: Codes | None = None,
    level: float = 0.95,
) -> tuple[Limits, Limits, Limits, Floats]:
    """Return the groups' shares of the weight of all ranks, compared with their shares of rows.

    Parameters
    ----------
    weight : (n,) the weights of the rows' ranks, such as those of :func:`top_weights`.
    codes : (n,) the group 0 .. G - 1 of each row.
    groups : G, the number of groups.
    lists : (n,) the list that each row is in, if there are several; lists and not rows are then
        drawn independently.

    Returns
    -------
    shares : (G,) the groups' shares of the weight of ranks, with limits.
    rows : (G,) their shares of all rows, with limits.
    ratios : (G,) the first over the second; 1 if both shares of a group are equal.
    below : (G,) the confidence that a ratio is under four fifths; see
        :func:`fairbench.inference.rates.probability_ratio_below`.
    """
    designs = (
        Design.of(len(weight), weight=weight, clusters=lists),
        Design.of(len(weight), clusters=lists),
    )
    limits: list[list[Limits]] = []
    correlation = []
    for g in range(groups):
        cell = np.where(codes == g, 3, 0).astype(np.intp)
        of_group, scores = [], []
        for design in designs:
            counts = SurveyCounts.of(cell, np.zeros(len(cell), np.intp), design, groups=1)
            of_group.append(counts.limits(selection_rate, level=level))
            away = (codes == g) - of_group[-1].value[0]
            scores.append(design.weight * away / design.weight.sum())
        limits.append(of_group)
        correlation.append(
            _correlation_of_rows(weight, *of_group)
            if lists is None
            else _correlation_of_lists(scores[0], scores[1], lists)
        )
    group_shares, all_rows = (
        Limits(*map(np.concatenate, zip(*of_groups, strict=True)))
        for of_groups in zip(*limits, strict=True)
    )
    shared = np.array(correlation)
    ratios = ratio_limits(group_shares, all_rows, shared)
    below = probability_ratio_below(
        group_shares, all_rows, FOUR_FIFTHS, level=level, correlation=shared
    )
    return group_shares, all_rows, ratios, below


def _correlation_of_rows(weight: Floats, share: Limits, rows: Limits) -> float:
    """Return the correlation of the errors of a weighted share and of the share of rows.

    If events are equally likely at all ranks, it is the root of Kish's effective number of rows
    over their number; half an event is added to each share, as it may be 0 by chance. The
    correlation is limited to that root: otherwise, with nearly equal weights, a share that is large
    by chance would have a correlation of nearly 1, and its ratio no error.
    """
    kish = float(weight.sum() ** 2 / (weight**2).sum())
    p, q = (
        (float(limits.value[0]) * size + 0.5) / (size + 1)
        for limits, size in ((share, kish), (rows, len(weight)))
    )
    return float(np.sqrt(kish / len(weight) * min(1.0, p * (1 - p) / (q * (1 - q)))))


def _correlation_of_lists(one: Floats, other: Floats, lists: Codes) -> float:
    """Like :func:`_correlation_of_rows`, where lists and not rows are independent.

    It is the correlation of the sums over lists of the rows' contributions to both errors, `one`
    and `other` (n,).

    A few lists hardly determine it, and too large a correlation would leave no error of the ratio.
    So it is lowered by its own standard error (Fisher 1921), and is -1 with three lists or fewer.
    """
    sums_of_one, sums_of_other = (
        sums(array, lists, int(lists.max()) + 1) for array in (one, other)
    )
    spread = np.sqrt((sums_of_one**2).sum() * (sums_of_other**2).sum())
    freedom = len(sums_of_one) - 3
    if freedom <= 0 or spread <= 0:
        return -1.0 if freedom <= 0 else 0.0
    correlation = np.clip((sums_of_one * sums_of_other).sum() / spread, -_NEARLY, _NEARLY)
    return float(np.tanh(np.arctanh(correlation) - 1 / np.sqrt(freedom)))
