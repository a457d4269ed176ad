"""Effective counts: how many independent rows folds that overlap, or weighted rows, count as.

K fold counts that share a correlation rho have the variance of 1 / (1 + (K - 1) rho) as many
independent rows: the shrinkage (Barrainkua et al. 2024, section 4). Rows of unequal weight, or of
clusters, have an effective size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from fairbench.core.arrays import Floats

PRIOR = 0.5  # how much of a cluster a variance is mixed with that sees few events


def effective_counts(fold_counts: NDArray[Any], shrinkage: float | Floats) -> Floats:
    """Return (..., C) effective counts of (K, ..., C) counts of K folds (Definition 2.2).

    Parameters
    ----------
    shrinkage : one number, or an array that broadcasts against the sum (per group: (G, 1)).
    """
    summed: Floats = np.asarray(fold_counts, float).sum(axis=0) * shrinkage
    return summed


def shrinkage(rho: float | Floats, folds: int) -> Floats:
    """Return 1 / (1 + (K - 1) rho), with rho clipped to [-1/K, 1].

    Under the lower end the variance would vanish or turn negative; there the shrinkage is K.
    """
    return np.asarray(1 / (1 + (folds - 1) * clip_correlation(rho, folds)))


def clip_correlation(rho: float | Floats, folds: int) -> Floats:
    """Return rho within [-1/K, 1], where the variance of a mean of K folds stays positive."""
    return np.clip(rho, -1 / folds, 1)


def mean_shrinkage(folds: int) -> float:
    """Return the shrinkage averaged over rho in [0, 1/K]: 0.713 for ten folds."""
    width = (folds - 1) / folds
    return float(np.log1p(width) / width)


def overestimated_variance(halves: Floats) -> Floats:
    """Return the conservative variance of a metric from J half-splits, (J, 2, ...) -> (...).

    ``halves[j]`` are the metric's estimates from the two disjoint halves of split j;
    Var_over = (1 / 2J) sum_j (theta_j - theta_j^c)^2.
    """
    variance: Floats = ((halves[:, 0] - halves[:, 1]) ** 2).mean(axis=0) / 2
    return variance


def variance_ratio(halves: Floats, reference: Floats, *, pooled: bool = False) -> Floats:
    """Return r_s = Var_over(A1) / Var_over(A0), one for each objective and group s (equation 3).

    Parameters
    ----------
    halves, reference : (J, 2, ...) estimates of the learner and of the reference learner on the
        same half-splits, the last axes objectives and groups.
    pooled : return the mean over objectives and groups, as for a correlation that is the same in
        all groups.

    Returns
    -------
    A ratio whose two variances are 0 or undefined is NaN, and left out of the mean.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = overestimated_variance(halves) / overestimated_variance(reference)
    return np.asarray(np.nanmean(ratio)) if pooled else ratio


def relative_rho(ratio: float | Floats, folds: int, rho_0: float | None = None) -> Floats:
    """Return rho_rel = ((r - 1) + r (K - 1) rho_0) / (K - 1), the reference's rho_0 1/K by default.

    It is what makes the learner's variance r times the reference's (equation 3; the paper's text
    prints r upside down in one place).
    """
    start = 1 / folds if rho_0 is None else rho_0
    ratio = np.asarray(ratio, float)
    return clip_correlation(((ratio - 1) + ratio * (folds - 1) * start) / (folds - 1), folds)


def mean_relative_shrinkage(ratio: float | Floats, folds: int) -> Floats:
    """Return the shrinkage averaged over rho in [0, rho_rel] (rho_rel up).

    It reproduces the areas of the paper's Table 12.1, to 1 % in the mean.
    """
    inflation = (folds - 1) * relative_rho(ratio, folds)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(inflation == 0, 1.0, np.log1p(inflation) / inflation)


def half_splits(
    rows: int, splits: int, generator: np.random.Generator
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield `splits` random halvings of `rows` rows, each as two disjoint sorted arrays."""
    for _ in range(splits):
        order = generator.permutation(rows)
        yield np.sort(order[: rows // 2]), np.sort(order[rows // 2 : rows // 2 * 2])


def effective_size(
    rate: ArrayLike,
    variance: ArrayLike,
    *,
    rows: ArrayLike,
    kish: ArrayLike,
    share: ArrayLike,
    units: ArrayLike,
    level: float = 0.95,
) -> Floats:
    """Return how many equally weighted, independent rows would tell as much about a rate.

    Parameters
    ----------
    rate : weighted rates p, of any shape; the others broadcast with it.
    variance : sums over clusters of squared linearised scores.
    rows : how many rows n the rate rests on.
    kish : Kish's effective number of these rows, (sum w)^2 / sum w^2.
    share : the weighted mean share of a cluster: sum over clusters of their weight squared, over
        the whole weight squared (1 / n where nothing is clustered or weighted).
    units : in how many clusters these rows are.

    Notes
    -----
    p (1 - p) / variance, with three guards. Where few rows are events, the variance sees too few of
    their clusters to be relied on (with no event it is 0): it is mixed with half an event whose
    whole cluster shares it, the worst case. The size is at most Kish's, as the weights of the
    events that did not happen are not seen. And it is reduced by the squared ratio of t quantiles
    for the few clusters that the variance is known from (Korn and Graubard 1998). Of rows of equal
    weight without clusters it is n exactly.
    """
    p, n, units = np.asarray(rate, float), np.asarray(rows, float), np.asarray(units, float)
    share = np.asarray(share, float)
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = (p * (1 - p) + PRIOR * share) / n
        effect = (np.asarray(variance, float) + PRIOR * share**2) / expected
        size = np.minimum(n / effect, kish)
        tail = (1 + level) / 2
        t = special.stdtrit(np.maximum([n - 1, units - 1], 1), tail)
        size = size * (t[0] / t[1]) ** 2
    return np.where(n > 0, size, 0.0)
