"""Intervals of a whole run, whose hold-out repeats or folds share rows.

The estimand is the mean, over the fits of this run, of each fit's metric on new people. The
variance within a test set follows from its rows, so that only the overlap of the splits has to be
known: two hold-outs have some test rows in common, and the folds of one partition test every row
once and are judged as one test set (Bayle et al. 2020, NeurIPS 33). Nadeau and Bengio's variance,
(1/J + tested/trained) times the variance between the repeats (2003, Machine Learning 52, equation
9), is the same quantity estimated from how the repeats differ. It is used where the rows may show
too little. Neither is the variance over new training sets: fits that share most of their training
rows cannot show how a metric depends on them, which for a selection rate is the larger part.

Only signed quantities, such as counts and rates, are averaged. A quantity that folds signs, such as
the largest gap, is computed from averages and never averaged itself, because chance widens the gap
of every repeat.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fairbench.core.arrays import Floats, divide
from fairbench.inference.gaps import (
    GroupLimits,
    compared_means,
    pairs,
    simultaneous_level,
    smallest_ratio,
)
from fairbench.inference.rates import Limits, difference_limits, rate_limits, ratio_limits

# The posterior of means over splits that share training rows.

# The random numbers of T draws from a posterior of R splits, whatever was measured in them:
# standard normals (R, T), and chi-squares (T,) with R - 1 degrees of freedom.
StudentDraws: TypeAlias = tuple[Floats, Floats]


def student_draws(splits: int, draws: int, generator: np.random.Generator) -> StudentDraws:
    """Return draws for quantities measured in `splits` splits, 2 at least."""
    normal = generator.standard_normal((draws, splits)).T
    return normal, generator.chisquare(splits - 1, size=draws)


def posterior_draws(values: Floats, test_share: float, draws: StudentDraws) -> Floats:
    """Draw the expected values of methods from their joint posterior.

    A multivariate Student t with R - 1 degrees of freedom, the means as its location and
    (1/R + rho / (1 - rho)) S as its scale: S is the methods' covariance over splits, and the second
    summand is Nadeau and Bengio's (2003, Machine Learning 52, equation 9) for splits that share
    training rows. Each difference of two has the Bayesian correlated t-test (Corani and Benavoli
    2015; Benavoli et al. 2017, JMLR 18, equation 6) as its margin. That the methods share one
    degree of freedom count is a choice: S has rank R - 1 at most, and few splits say little of how
    many methods vary together.

    Parameters
    ----------
    values : (R, M), R at least 2.
    test_share : rho, between 0 (independent splits) and 1, both excluded at the top.
    draws : draws made by :func:`student_draws` for R splits.

    Returns
    -------
    (T, M) values, a view of an array with the draws last: sums and maxima over methods run over
    contiguous memory.
    """
    normal, chisquare = draws
    location = values.mean(axis=0)
    drawn: Floats = (values - location).T @ normal
    drawn *= np.sqrt(inflation(len(values), test_share) / chisquare)
    drawn += location[:, None]
    return drawn.T


def inflation(splits: Any, test_share: float) -> Any:
    """Return the factor from the variance over overlapping splits to that of their mean.

    Notes
    -----
    It is Nadeau and Bengio's factor 1/J + s / (1 - s), for J splits and the share s of test rows
    that two hold-outs have in common: the variance of the mean is 1/J + (1 - 1/J) s times that of
    one split, and the variance between splits is 1 - s times that of one split. It is conservative,
    as the variance between splits also contains that of their fits.
    """
    return 1 / splits + test_share / (1 - test_share)


def mean_table_draws(
    tables: Floats, test_share: float, *, draws: int, generator: np.random.Generator
) -> Floats:
    """Draw the expected confusion table from the posterior, given the table of each repeat.

    Parameters
    ----------
    tables : (J, ...) counts of every repeat, J at least 2; the last axes are cells.
    test_share : the share of the rows that a repeat tests; 0 for repeats that are independent.

    Returns
    -------
    (draws, ...) shares of cells around their means, from a multivariate Student t with J - 1
    degrees of freedom and the corrected covariance of the repeats: the margin of any linear
    quantity, such as a difference of accuracies, is the Bayesian correlated t-test (Corani and
    Benavoli 2015). Draws of rare cells can be below 0; they are set to 0.
    """
    repeats, shape = len(tables), tables.shape[1:]
    flat = np.asarray(tables, float).reshape(repeats, -1)
    cell_draws = posterior_draws(flat, test_share, student_draws(repeats, draws, generator))
    return np.maximum(cell_draws, 0).reshape(draws, *shape)


_LEAST = 0.5


def no_narrower(draws: Floats, counted: Floats) -> Floats:
    """Return draws stretched to at least half the spread that the counts alone would give.

    A few repeats may agree by chance although they test few rows; their draws would then show no
    uncertainty. With ten repeats the lower bound takes effect by chance in one case of a hundred.

    Parameters
    ----------
    draws : (T, m) draws of m quantities.
    counted : (T', m) draws of the same quantities from the effective counts of all repeats.
    """
    spread, least = half_widths(draws), _LEAST * half_widths(counted)
    if (spread > 0).all() and (spread >= least).all():
        return draws
    centre = np.median(draws, axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        stretched = centre + (draws - centre) * (least / spread)
    # Draws without any spread cannot be stretched: they become those of the counts, half as wide.
    moved = centre + _LEAST * (counted - np.median(counted, axis=0))
    widened = np.where(spread >= least, draws, stretched)
    return np.where(spread > 0, widened, moved[np.arange(len(draws)) % len(moved)])


def half_widths(draws: Floats) -> Floats:
    """Return half the distance between the 16 % and the 84 % quantile, (T, m) -> (m,)."""
    lower, upper = np.quantile(draws, (0.16, 0.84), axis=0)
    return (upper - lower) / 2


REPEATS, FOLDS, SAME, ONE = "repeats", "folds", "same", "one"
# By how much the correlation of folds inflates the variance: (K - 1) rho at rho = 1 / (2 K).
_MIDDLE_INFLATION = 0.5
# The estimand of a run's interval, in words.
ESTIMANDS: Mapping[str, str] = {
    REPEATS: "the fits of these repeats",
    FOLDS: "the fits of these folds",
    SAME: "the fits of these repeats",
    ONE: "this fit",
}


@dataclass(frozen=True)
class Splits:
    """How the S splits of a run share rows.

    Attributes
    ----------
    kind : ``repeats`` of a hold-out, ``folds`` that test every row once a repeat, ``same`` test
        rows in every repeat, or ``one`` split.
    repeats : how often the rows were divided.
    test_share : the share of the rows trained on or tested that a split tests.
    """

    kind: str
    repeats: int = 1
    test_share: float = 0.5

    def variance(self, splits: Floats) -> Floats:
        """Return the variance of a mean over `splits` splits, relative to that of one split.

        Fits are taken as given: only the test rows are random.

        Two hold-out test sets have an expected share `test_share` of their rows in common. Folds
        have no test row in common, and every repeat of them tests all rows. In both cases the
        errors are also correlated because splits train on each other's test rows
        (:func:`_cross_fold_inflation`).
        """
        if self.kind == REPEATS:
            shared = self.test_share * _cross_fold_inflation((1 - self.test_share) ** 2)
            return 1 / splits + (1 - 1 / splits) * shared
        if self.kind == FOLDS:
            return self.repeats / splits * _cross_fold_inflation(1.0)
        return np.ones_like(splits)


def _cross_fold_inflation(crossed_pairs: float) -> float:
    """Return the factor by which the variance of a mean over folds grows through shared rows.

    It grows because folds train on each other's test rows, which correlates their errors.

    Parameters
    ----------
    crossed_pairs : the share of pairs of test rows in which each row is in the training set of the
        fit that tests the other; 1 for the rows of different folds.

    Notes
    -----
    The errors of such a pair are correlated if a fit depends on single rows. Nearest neighbours and
    deep trees do: close rows predict each other. So does any learner if there is little to learn,
    because an outcome that is too frequent in one fold is too rare in the others. The folds
    themselves cannot show the correlation (Bengio and Grandvalet 2004, JMLR 5). A correlation rho
    between the counts of K folds multiplies the variance by 1 + (K - 1) rho (Barrainkua et al.
    2024, AISTATS). With many folds that is 1.5 at rho = 1 / (2 K), the middle of the possible
    correlations from 0 to 1 / K; hence `_MIDDLE_INFLATION`. In simulations stable learners need a
    factor of 1, deep trees and nearest neighbours one of up to 1.5, and any learner with nothing to
    learn 1.75. The intervals of the last are a twelfth too short, and still hold in 93 of 100 runs.
    """
    return 1 + _MIDDLE_INFLATION * crossed_pairs


def mean_limits(
    values: Floats,
    lower: Floats,
    upper: Floats,
    splits: Splits,
    *,
    level: float = 0.95,
    ratio: NDArray[np.bool_] | bool = False,
    chance: Floats | float = np.nan,
) -> Limits:
    """Return means over the S splits of a run with intervals.

    The width follows from the widths of the splits' own intervals. For hold-out repeats the
    corrected resampled t interval is taken where it is wider: if little is learned, a mean loss
    varies mostly because the fits differ. The same holds for folds whose fits may be no better than
    chance.

    Parameters
    ----------
    values, lower, upper : (..., S) the value of every split and the limits of its interval; splits
        without a value are left out.
    splits : how the splits share rows.
    level : the level of the intervals.
    ratio : (...) which values are ratios, whose logarithms are averaged for the interval.
    chance : (...) the value that a fit has which has learned nothing; NaN for metrics without one.

    Returns
    -------
    Limits (...); NaN where neither repeats nor the splits' own intervals say anything.
    """
    is_ratio = np.broadcast_to(ratio, values.shape[:-1])
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled_values, *scaled_limits = (
            np.where(is_ratio[..., None], np.log(array), array) for array in (values, lower, upper)
        )
        mean = finite_mean(scaled_values)
        count = np.isfinite(scaled_values).sum(axis=-1)
        relative_variance = splits.variance(np.maximum(count, 1.0))
        below, above = (
            np.sqrt(relative_variance * finite_mean((scaled_values - limit) ** 2))
            for limit in scaled_limits
        )
        half = _corrected_half_widths(scaled_values, splits, level)
        if splits.kind != REPEATS:
            may_be_chance = np.abs(mean - chance) <= half
            is_near = (splits.kind == FOLDS) & may_be_chance & np.isfinite(below)
            half = np.where(is_near, half, np.nan)
        limits = Limits(mean, mean - np.fmax(half, below), mean + np.fmax(half, above))
        # Only ratios are on the log scale: the exponential of another value could be infinite.
        return limits.apply(
            lambda limit: np.where(is_ratio, np.exp(np.where(is_ratio, limit, 0.0)), limit)
        )


def _corrected_half_widths(values: Floats, splits: Splits, level: float) -> Floats:
    """Return half widths (...) of the corrected t intervals of means of values (..., S).

    NaN where fewer than two splits have a value, or all of them have the same.
    """
    count = np.isfinite(values).sum(axis=-1).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        squared = np.where(np.isfinite(values), values - finite_mean(values)[..., None], 0.0) ** 2
        variance = squared.sum(axis=-1) / (count - 1) * inflation(count, splits.test_share)
        quantile = special.stdtrit(np.maximum(count - 1, 1), (1 + level) / 2)
        varies = (count > 1) & (variance > 0)  # equal values say nothing of their spread
        return np.where(varies, quantile * np.sqrt(variance), np.nan)


def finite_mean(values: Floats) -> Floats:
    """Return the means of the finite values (..., S) over the last axis; NaN where none is."""
    finite = np.isfinite(values)
    return divide(np.where(finite, values, 0).sum(axis=-1), finite.sum(axis=-1))


@dataclass(frozen=True, eq=False)
class RunRates:
    """A rate of G groups in the S splits of a run.

    Attributes
    ----------
    values : (..., G, S) the rates; NaN where a group has no rows.
    sizes : (..., G, S) numbers of rows of the rates.
    splits : how the splits share rows.
    level : the level of all intervals.
    rates : how many different rates a statement about the groups is about.
    """

    values: Floats
    sizes: Floats
    splits: Splits
    level: float = 0.95
    rates: int = 1

    def limits(self, *, simultaneous: bool = False) -> Limits:
        """Return the rates' means (..., G) with the limits of their effective counts.

        Parameters
        ----------
        simultaneous : whether to widen the limits, such that the statements of all pairs of groups
            hold at once.
        """
        size, level = self.effective_size, self.level
        if simultaneous:
            level = simultaneous_level(level, self.values.shape[-2], self.rates)
        mean = finite_mean(self.values)
        counted = rate_limits(np.nan_to_num(mean) * size, size, level=level)
        return Limits(mean, counted.lower, counted.upper)

    def differences(self, *, simultaneous: bool = False) -> Limits:
        """Return the mean differences of all ordered pairs of groups, (..., G, G)."""
        mean = finite_mean(self.values[..., :, None, :] - self.values[..., None, :, :])
        counted = difference_limits(*pairs(self.limits(simultaneous=simultaneous)))
        below, above = counted.value - counted.lower, counted.upper - counted.value
        return Limits(mean, np.clip(mean - below, -1, None), np.clip(mean + above, None, 1))

    def against_first(self) -> Limits:
        """Return the mean differences of every other group from the first, (..., G - 1)."""
        return Limits(*(difference[..., 1:, 0] for difference in self.differences()))

    def ratios_to_first(self) -> Limits:
        """Return every other group's mean rate over the first group's, (..., G - 1)."""
        limits = self.limits()
        return ratio_limits(limits.take(slice(1, None)), limits.take(slice(0, 1)))

    def smallest_ratio(self) -> Limits:
        """Return the smallest mean rate of any group over the largest."""
        return smallest_ratio(GroupLimits(self.limits(), self.limits(simultaneous=True)))

    @cached_property
    def effective_size(self) -> Floats:
        """The effective sizes (..., G) of the means: rows of one split with the same variance."""
        counted = np.isfinite(self.values) & (self.sizes > 0)
        count = np.isfinite(self.values).sum(axis=-1).astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            harmonic = count / np.where(counted, 1 / self.sizes, 0).sum(axis=-1)
            return np.nan_to_num(harmonic / self.splits.variance(np.maximum(count, 1)))


@dataclass(frozen=True, eq=False)
class RunMeans(RunRates):
    """The mean of two rates, `parts`, that rest on distinct rows of a group."""

    parts: tuple[RunRates, ...] = ()

    @classmethod
    def of(cls, *parts: RunRates) -> RunMeans:
        """Return the mean of two rates, whose levels are those of one rate."""
        first, second = parts
        values = (first.values + second.values) / 2
        return cls(values, first.sizes, first.splits, first.level, parts=parts)

    def limits(self, *, simultaneous: bool = False) -> Limits:
        """Return the means (..., G) over splits with limits, as of a single split's mean."""
        first, second = (part.limits(simultaneous=simultaneous) for part in self.parts)
        return compared_means(first, second, [part.effective_size for part in self.parts])


def largest_mean_gap(*rates: RunRates) -> Limits:
    """Return the largest difference between two groups' means, in any of several rates.

    Each rate has the groups in which it is defined: their numbers may differ between rates.

    The signed differences are averaged over the splits and then folded, as in
    :func:`fairbench.inference.gaps.largest_gap`. The gap of the mean differences is no larger than
    the mean of the gaps, because chance widens the gap of every split.
    """
    limits_of_rates = []
    for rate in rates:
        pointwise, wider = rate.differences(), rate.differences(simultaneous=True)
        is_pair = ~np.eye(pointwise.value.shape[-1], dtype=bool)
        ends = (pointwise.value, wider.lower, pointwise.upper)
        limits_of_rates.append(
            [np.fmax.reduce(array[..., is_pair], axis=-1, initial=np.nan) for array in ends]
        )
    value, lower, upper = np.max(limits_of_rates, axis=0)
    return Limits(value, np.clip(lower, 0, None), upper)
