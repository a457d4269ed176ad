"""Standardised rates: groups compared within strata, such as bands of age, with one mix of strata.

Let ``p_gk`` be a rate of group g in stratum k, and ``w_k`` the share of the stratum among all
people that the rate is of: of everyone for a selection rate, of those whose label is 1 for a true
positive rate, of those predicted 1 for precision. The standardised rate of a group is

    P_g = sum over k of w_k p_gk,

what its rate would be if it had everyone's mix of strata (direct standardisation). The standardised
difference of two groups is the weighted mean of their differences within strata,

    P_a - P_b = sum over k of w_k (p_ak - p_bk).

Two groups are compared over the strata in which both have rows that the rate is of; the weights are
those of these strata alone, and add up to 1. A pair of groups so has its own strata, and its own
two standardised rates.

**The error of P_g.** The strata are a sample like everything else: the share ``w_k`` of this sample
stands for that of the population. Given which rows are in which group and stratum, the
counts in the cells are independent and binomial, and unbiased whatever the shares are, so that

    Var P_g = sum w_k^2 p_gk (1 - p_gk) / n_gk  +  sum w_k (p_gk - P_g)^2 / n,

where n are the rows of all groups in these strata. The second part is that of the shares. It is
common to both groups: the covariance of P_a and P_b is sum w_k (p_ak - P_a)(p_bk - P_b) / n.

A cell of a row or two says nothing of its own variance: p (1 - p) of one row is always 0. So the
rate in a cell is drawn towards that of the whole group by the weight of one row, q = (x + r) /
(n_gk + 1), where r is the group's rate in all strata; what that takes from the mean of q (1 - q)
where the strata are alike is given back. Of a single stratum nothing changes.

**Limits.** P_g is a weighted rate: a row of cell (g, k) weighs w_k / n_gk. Its limits are those of
a rate of an effective number of rows (:func:`fairbench.inference.rates.rate_limits`), which is at
most Kish's unless strata tell much of the outcome: then it is P (1 - P) / Var P as far as that
still holds with one more event in the row that weighs most, as the events that did not happen in
heavy cells are not seen. Differences and ratios follow by the method of variance estimates
recovery with the covariance above. With one stratum all of it is what it is without strata.

MOVER over strata (Zou and Donner 2008), which recovers the variance of every cell from its own
limits, fails where cells are small: at x = 0 the limit on one side is no distance away, in half of
all cells. In 40 strata it covers 91 %, and it is wider than this where rates are rare. The
classical interval, of normal quantiles and sums of p (1 - p) / n, covers 30 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairbench.core.arrays import Floats, Mask
from fairbench.inference.gaps import simultaneous_levels, size_limits_of_pairs
from fairbench.inference.rates import Limits, difference_limits, rate_limits, ratio_limits
from fairbench.inference.survey import effective_size


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

        The symbols are those of the module's documentation.

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
            cell_variance = (weight * row_weight * _spread(x, n)).sum(axis=-1)
            variance = cell_variance + share_variance
            effective = _effective_rows(value, variance, row_weight, n)
            product = np.sqrt(variance * variance.swapaxes(-1, -2))
            correlation = np.where(product > 0, covariance / product, 0.0)
            covered = total / everyone.sum(axis=-1)
        return cls(
            value=value,
            effective=effective,
            correlation=np.clip(correlation, -1, 1),
            rows=n.sum(axis=-1).astype(np.int64),
            covered=covered,
        )

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
        return difference_limits(*_pairs(self.limits(level=level)), self.correlation)

    def ratios(self, *, level: ArrayLike = 0.95) -> Limits:
        """Return the first rate of each pair over the second, with limits."""
        return ratio_limits(*_pairs(self.limits(level=level)), self.correlation)

    def compared(self, minimum: int = 1) -> Mask:
        """Return the pairs (..., G, G) of two groups that both have at least so many rows."""
        fewest = np.minimum(self.rows, self.rows.swapaxes(-1, -2))
        return (fewest >= max(minimum, 1)) & ~np.eye(self.rows.shape[-1], dtype=bool)


def _spread(x: Floats, n: Floats) -> Floats:
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


def _pairs(limits: Limits) -> tuple[Limits, Limits]:
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
        first, second = _pairs(rates.limits(level=level))
        wider_level = _wider(pairs, level, len(several))
        first_wide, second_wide = _pairs(rates.limits(level=wider_level))
        limits = size_limits_of_pairs(first_wide, first, second_wide, second, rates.correlation)
        gaps.append(
            [np.fmax.reduce(np.where(pairs, array, np.nan), axis=(-2, -1)) for array in limits]
        )
        lead = difference_limits(first_wide, second_wide, rates.correlation).lower
        leads.append(np.where(pairs, lead, np.nan))
    value, lower, upper = (np.fmax.reduce(arrays) for arrays in zip(*gaps, strict=True))
    return Limits(value, np.clip(lower, 0, None), upper), np.fmax.reduce(leads)


def smallest_ratio(rates: StandardisedRates, compared: Mask, *, level: float = 0.95) -> Limits:
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
