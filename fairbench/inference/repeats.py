"""A whole run: what its hold-out repeats or folds, which share rows, say together.

What is estimated is the mean over these very fits of what each makes of new people. Of a test set
the variance is known from its rows, so that no more is needed than which rows the splits share:
two hold-outs test some in common, and folds of one partition test every row once and are judged as
one test set (Bayle et al. 2020, NeurIPS 33). Nadeau and Bengio's variance, (1/J + tested/trained)
of that between the repeats (2003, Machine Learning 52, equation 9), is the same one, learned from
how the repeats differ, and is taken where the rows may say too little. It is not the variance over
new training sets: how a metric hangs on the rows that were trained on is not seen in fits that
share most of them, and of a selection rate it is the larger part.

What is averaged are signed quantities, of counts and of rates; what folds them, such as the largest
gap, is taken of averages and never averaged itself, as chance widens the gap of any repeat.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fairbench.core.arrays import Floats
from fairbench.inference.comparing.ranking import posterior_draws, student_draws
from fairbench.inference.gaps import GroupLimits, pairs, simultaneous_level, smallest_ratio
from fairbench.inference.rates import Limits, difference_limits, rate_limits, ratio_limits


def mean_table_draws(
    tables: Floats, test_share: float, *, draws: int, generator: np.random.Generator
) -> Floats:
    """Draw the expectation of confusion tables, given one for each repeat.

    Parameters
    ----------
    tables : (J, ...) counts of every repeat, J at least 2; the last axes are cells.
    test_share : the share of the rows that a repeat tests; 0 for repeats that are independent.

    Returns
    -------
    (draws, ...) shares of cells around their means, from a multivariate Student t with J - 1
    degrees of freedom and the corrected covariance of the repeats: the margin of any linear
    quantity, such as a difference of accuracies, is the Bayesian correlated t-test (Corani and
    Benavoli 2015). Cells below 0, of which there are some where they are rare, are cut off at 0.
    """
    repeats, shape = len(tables), tables.shape[1:]
    flat = np.asarray(tables, float).reshape(repeats, -1)
    drawn = posterior_draws(flat, test_share, student_draws(repeats, draws, generator))
    return np.maximum(drawn, 0).reshape(draws, *shape)


_LEAST = 0.5


def no_narrower(draws: Floats, counted: Floats) -> Floats:
    """Return draws stretched to at least half the spread that the counts alone would give.

    A few repeats may differ by nothing although they test few rows, and would then say that all is
    certain. Half the spread binds by chance in one case of a hundred, with ten repeats.

    Parameters
    ----------
    draws : (T, m) of m quantities.
    counted : (T', m) draws of the same quantities from the effective counts of all repeats.
    """
    spread, least = _spread(draws), _LEAST * _spread(counted)
    if (spread > 0).all() and (spread >= least).all():
        return draws
    centre = np.median(draws, axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        stretched: Floats = centre + (draws - centre) * (least / spread)
    # Draws without any spread cannot be stretched: they become those of the counts, half as wide.
    moved = centre + _LEAST * (counted - np.median(counted, axis=0))
    widened = np.where(spread >= least, draws, stretched)
    return np.where(spread > 0, widened, moved[np.arange(len(draws)) % len(moved)])


def _spread(draws: Floats) -> Floats:
    """Return half the distance between the 16 % and the 84 % quantile, (T, m) -> (m,)."""
    ends = np.quantile(draws, (0.16, 0.84), axis=0)
    half: Floats = (ends[1] - ends[0]) / 2
    return half


REPEATS, FOLDS, SAME, ONE = "repeats", "folds", "same", "one"
# What the interval of a run is of, in words.
ESTIMANDS: Mapping[str, str] = MappingProxyType(
    {
        REPEATS: "the fits of these repeats",
        FOLDS: "the fits of these folds",
        SAME: "the fits of these repeats",
        ONE: "this fit",
    }
)


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

    @property
    def estimand(self) -> str:
        """The name of what the interval of a mean over these splits estimates."""
        return ESTIMANDS[self.kind]

    def variance(self, splits: Floats) -> Floats:
        """Return the variance of a mean over so many splits over that of one, given its fit.

        Two hold-outs have the share that each tests in common; folds have no row in common, and
        every repeat of them tests all rows. Beside that the errors of rows that one split tests and
        another trains on are alike (:func:`crossing`).
        """
        if self.kind == REPEATS:
            shared = self.test_share * crossing((1 - self.test_share) ** 2)
            return 1 / splits + (1 - 1 / splits) * shared
        if self.kind == FOLDS:
            return self.repeats / splits * crossing(1.0)
        return np.ones_like(splits)

    def corrected_variance(self, splits: Floats) -> Floats:
        """Return the variance of a mean over so many splits over that between them.

        It is Nadeau and Bengio's: 1/J + (1 - 1/J) share, over the (1 - share) by which hold-outs
        differ that share so many rows. That their fits differ too makes it careful.
        """
        return 1 / splits + self.test_share / (1 - self.test_share)


def crossing(pairs: float) -> float:
    """Return how much more the rows' part of a mean varies as others test what a split trains on.

    Parameters
    ----------
    pairs : the share of the pairs of tested rows of which each is trained on where the other is
        tested; all pairs of different folds.

    Notes
    -----
    Errors of two such rows are alike where a fit hangs on single rows: with nearest neighbours and
    deep trees, whose closest rows decide of each other, and with any learner where there is little
    to learn, as what one fold has too much of the others lack. How much is not seen in the folds
    (Bengio and Grandvalet 2004, JMLR 5). Folds' counts of correlation rho are inflated by
    1 + (K - 1) rho (Barrainkua et al. 2024, AISTATS), by 1.5 in the middle of the correlations up
    to 1/K where there are many folds. In simulations stable learners need 1, deep trees and nearest
    neighbours up to 1.5, and any where there is nothing to learn 1.75: their intervals, a twelfth
    short, still hold in 93 of 100 runs.
    """
    return 1 + pairs / 2


def mean_limits(
    values: Floats,
    lower: Floats,
    upper: Floats,
    splits: Splits,
    *,
    level: float = 0.95,
    ratio: NDArray[np.bool_] | None = None,
    chance: Floats | None = None,
) -> Limits:
    """Return means over the S splits of a run with intervals.

    Their width follows from those of the splits' own intervals. Hold-out repeats have the corrected
    resampled t interval where that is wider: where little is learned, what a mean loss varies by is
    how fits differ. So have folds of fits that may be no better than chance.

    Parameters
    ----------
    values, lower, upper : (..., S) values of every split with the ends of its interval; splits
        without a value are left out.
    ratio : (...) which values are ratios, whose logarithms are averaged for the interval.
    chance : (...) what values are of fits that have learned nothing; NaN of other metrics.

    Returns
    -------
    Limits (...); NaN where neither repeats nor the splits' own intervals say anything.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = [
            array if ratio is None else np.where(ratio[..., None], np.log(array), array)
            for array in (values, lower, upper)
        ]
        mean, count = finite_mean(scaled[0]), np.isfinite(scaled[0]).sum(axis=-1)
        shrunk = splits.variance(np.maximum(count, 1.0))
        below, above = (
            np.sqrt(shrunk * finite_mean((scaled[0] - ends) ** 2)) for ends in scaled[1:]
        )
        half = _corrected_half_widths(scaled[0], splits, level)
        if splits.kind != REPEATS:
            away = np.nan if chance is None else np.abs(mean - chance)
            near = (splits.kind == FOLDS) & (away <= half) & np.isfinite(below)
            half = np.where(near, half, np.nan)
        limits = Limits(mean, mean - np.fmax(half, below), mean + np.fmax(half, above))
        if ratio is None:
            return limits
        # Logarithms are of ratios alone: the exponential of another value could be infinite.
        logs = (np.where(ratio, limit, 0.0) for limit in limits)
        return Limits(
            *(np.where(ratio, np.exp(log), end) for log, end in zip(logs, limits, strict=True))
        )


def _corrected_half_widths(values: Floats, splits: Splits, level: float) -> Floats:
    """Return half the corrected t intervals of means over splits; NaN of fewer than two."""
    count = np.isfinite(values).sum(axis=-1).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        squared = np.where(np.isfinite(values), values - finite_mean(values)[..., None], 0.0) ** 2
        variance = squared.sum(axis=-1) / (count - 1) * splits.corrected_variance(count)
        quantile = special.stdtrit(np.maximum(count - 1, 1), (1 + level) / 2)
        varies = (count > 1) & (variance > 0)  # of fits that do not differ, nothing is known
        return np.where(varies, quantile * np.sqrt(variance), np.nan)


def finite_mean(values: Floats) -> Floats:
    """Return the means of the finite values (..., S) over the last axis; NaN where none is."""
    finite = np.isfinite(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Floats = np.where(finite, values, 0).sum(axis=-1) / finite.sum(axis=-1)
    return mean


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

    def limits(self, *, together: bool = False) -> Limits:
        """Return the rates' means (..., G) with the limits of their effective counts.

        Parameters
        ----------
        together : whether limits are wider, so that statements of all pairs of groups hold at once.
        """
        size, level = self.effective_size, self.level
        if together:
            level = simultaneous_level(level, self.values.shape[-2], self.rates)
        mean = finite_mean(self.values)
        counted = rate_limits(np.nan_to_num(mean) * size, size, level=level)
        return Limits(mean, counted.lower, counted.upper)

    def differences(self, *, together: bool = False) -> Limits:
        """Return the mean differences of all ordered pairs of groups, (..., G, G)."""
        mean = finite_mean(self.values[..., :, None, :] - self.values[..., None, :, :])
        counted = difference_limits(*pairs(self.limits(together=together)))
        below, above = counted.value - counted.lower, counted.upper - counted.value
        return Limits(mean, np.clip(mean - below, -1, None), np.clip(mean + above, None, 1))

    def against_first(self) -> Limits:
        """Return the mean differences of every other group from the first, (..., G - 1)."""
        return Limits(*(difference[..., 1:, 0] for difference in self.differences()))

    @cached_property
    def effective_size(self) -> Floats:
        """How many rows of one split the means are worth, as far as their counts go, (..., G)."""
        counted = np.isfinite(self.values) & (self.sizes > 0)
        count = np.isfinite(self.values).sum(axis=-1).astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            harmonic = count / np.where(counted, 1 / self.sizes, 0).sum(axis=-1)
            size: Floats = harmonic / self.splits.variance(np.maximum(count, 1))
        return np.nan_to_num(size)


def largest_mean_gap(*rates: RunRates) -> Limits:
    """Return the largest difference between two groups' means, in any of several rates.

    The differences are averaged over the splits with their signs and then folded, as
    :func:`fairbench.inference.gaps.largest_gap` folds them: the gap of the mean differences is no
    larger than the mean of the gaps, which chance widens in every split.
    """
    single = [rate.differences() for rate in rates]
    wider = [rate.differences(together=True) for rate in rates]
    apart = ~np.eye(single[0].value.shape[-1], dtype=bool)  # no group from itself
    value, lower, upper = (
        np.max([np.nanmax(end[..., apart], axis=-1) for end in ends], axis=0)
        for ends in (
            [limits.value for limits in single],
            [limits.lower for limits in wider],
            [limits.upper for limits in single],
        )
    )
    return Limits(value, np.clip(lower, 0, None), upper)


def mean_ratios(rates: RunRates) -> Limits:
    """Return every other group's mean rate over the first group's, (..., G - 1)."""
    limits = rates.limits()
    return ratio_limits(limits.take(slice(1, None)), limits.take(slice(0, 1)))


def smallest_mean_ratio(rates: RunRates) -> Limits:
    """Return the smallest mean rate of any group over the largest."""
    return smallest_ratio(GroupLimits(rates.limits(), rates.limits(together=True)))
