"""Metrics of uncertainties: whether errors are as large as they say, and what abstaining changes.

The spread diagram (:func:`spread_diagram`), abstention (:func:`rows_kept`,
:func:`area_under_risk_coverage`, :func:`feature_shift`), and the parts of uncertainty, by group and
among similar people (:func:`variance_decomposition`, :class:`GroupMeans`,
:func:`individual_fairness`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from fairbench.core.arrays import Floats, divide
from fairbench.metrics.probability import spearman
from fairbench.metrics.regression import normal_quantile


@dataclass(frozen=True)
class Spread:
    """Per group of rows with like uncertainty: size, mean uncertainty, sd of the residuals."""

    size: NDArray[np.int64]
    predicted: NDArray[np.float64]
    empirical: NDArray[np.float64]

    def error(self) -> float:
        """Return the size-weighted mean of |empirical sd - mean predicted uncertainty|."""
        return float(np.average(np.abs(self.empirical - self.predicted), weights=self.size))

    def rank_correlation(self) -> float:
        """Return Spearman's correlation of the two; NaN where either is constant."""
        return spearman(_without_rounding(self.predicted), _without_rounding(self.empirical))


def spread_diagram(residual: ArrayLike, uncertainty: ArrayLike, groups: int) -> Spread:
    """Group rows by predicted uncertainty and compare (FairlyUncertain, Figures 3 and 20-24).

    Parameters
    ----------
    residual : (n,) target minus predicted probability or mean (or minus the hard label).
    uncertainty : (n,) predicted uncertainty; rows with equal uncertainty are exchangeable, so
        each counts with their mean residual moments, wherever a group boundary falls.
    groups : number of groups of equal size; at most n.
    """
    r, u = np.asarray(residual, float), np.asarray(uncertainty, float)
    order = np.argsort(u, kind="stable")
    r, u = r[order], u[order]
    centre = _mean_over_ties(u, r)
    within = _mean_over_ties(u, (r - centre) ** 2)
    count = min(groups, len(u))
    size = np.full(count, len(u) // count) + (np.arange(count) < len(u) % count)
    starts = np.cumsum(size) - size

    def means(values: Floats) -> Floats:
        return np.asarray(np.add.reduceat(values, starts) / size)

    variance = means(within) + means((centre - np.repeat(means(centre), size)) ** 2)
    return Spread(size=size, predicted=means(u), empirical=np.sqrt(variance))


def _mean_over_ties(key: ArrayLike, values: ArrayLike) -> Floats:
    """Return, per row, the mean of `values` over the rows with the same `key`."""
    block = np.unique(np.asarray(key, float), return_inverse=True, equal_nan=False)[1]
    return (np.bincount(block, np.asarray(values, float)) / np.bincount(block))[block]


def _without_rounding(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `values` to ten digits of the largest, so that means of equal numbers are equal."""
    scale = float(np.abs(values).max())
    return np.round(values / scale, 10) if scale > 0 else values


# Abstaining on the most uncertain rows: which are kept, their error, and how they differ.


def rows_kept(rows: ArrayLike, rate: ArrayLike) -> Floats:
    """Return how many of some rows are kept when a share `rate` of them is abstained on."""
    size, share = np.asarray(rows, float), np.asarray(rate, float)
    return np.asarray(np.maximum(size - np.round(share * size), 1))


def keep_weights(uncertainty: ArrayLike, rate: ArrayLike) -> Floats:
    """Return the share (n,) of each row that is kept when a share `rate` of rows is abstained on.

    For several rates (K,) the shares are (K, n). The least uncertain rows are kept, at least one.
    Rows tied at the boundary all have the share of them that is kept: the expectation if ties are
    broken at random. A method with few distinct values thus abstains on exactly the given share,
    and the order of rows does not matter.
    """
    values = np.asarray(uncertainty, float)
    kept = rows_kept(len(values), np.asarray(rate, float)[..., None])
    _, block, size = np.unique(values, return_inverse=True, return_counts=True, equal_nan=False)
    before = np.cumsum(size) - size
    return np.clip((kept - before) / size, 0, 1)[..., block]


def area_under_risk_coverage(loss: ArrayLike, uncertainty: ArrayLike) -> float:
    """Return the mean, over coverages 1/n .. 1, of the mean loss of the rows kept.

    Geifman, El-Yaniv 2017; the lower, the better the uncertainty ranks the errors. Tied rows count
    with their mean loss.
    """
    u = np.asarray(uncertainty, float)
    ordered = _mean_over_ties(u, loss)[np.argsort(u, kind="stable")]
    return float((np.cumsum(ordered) / np.arange(1, len(ordered) + 1)).mean())


def feature_shift(features: pd.DataFrame, weights: ArrayLike) -> Floats:
    """Return the 1-Wasserstein distance of each feature between all rows and the rows kept.

    FairlyUncertain, Figures 5 and 14-19. Distances have no unit: numeric features are measured in
    their standard deviation over all rows, so that a shift of the mean alone is a standardised
    mean difference; between categories, and between True and False, every distance is 1, so that
    theirs is the total variation. Missing values are a category of their own, and left out of
    numeric features.

    Parameters
    ----------
    features : (n, d) numeric, boolean or categorical columns.
    weights : (n,) or (k, n), how much of each row is kept, as
        :func:`fairbench.metrics.uncertainty.keep_weights` has it.

    Returns
    -------
    (d,) or (k, d) distances, at least 0; NaN where a feature has no value in the rows kept.
    """
    kept = np.atleast_2d(np.asarray(weights, float))
    shifts = [_shift(features.iloc[:, i], kept) for i in range(features.shape[1])]
    stacked = np.stack(shifts, axis=1) if shifts else np.empty((len(kept), 0))
    return stacked if np.ndim(weights) > 1 else stacked[0]


def _shift(column: pd.Series, kept: Floats) -> Floats:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return _total_variation(column.cat.codes.to_numpy(np.int64) + 1, kept)
    if pd.api.types.is_bool_dtype(column.dtype):
        return _total_variation(pd.factorize(column)[0] + 1, kept)
    return _standardised_wasserstein(column.to_numpy(np.float64, na_value=np.nan), kept)


def _total_variation(codes: NDArray[np.int64], kept: Floats) -> Floats:
    """Return half the summed absolute differences of the categories' shares, (k,)."""
    everyone = np.bincount(codes) / len(codes)
    counts = np.stack([np.bincount(codes, weights=row, minlength=len(everyone)) for row in kept])
    shares = counts / counts.sum(axis=1, keepdims=True)
    return np.abs(shares - everyone).sum(axis=1) / 2


def _standardised_wasserstein(values: Floats, kept: Floats) -> Floats:
    """Return the area between the two distribution functions over the sd of `values`, (k,)."""
    present = ~np.isnan(values)
    values = values[present]
    kept = kept[:, present]
    total = kept.sum(axis=1)
    if not len(values) or not (sd := values.std()):
        return np.where(total > 0, 0.0, np.nan)
    order = np.argsort(values)
    below = np.cumsum(kept[:, order], axis=1)[:, :-1]
    everyone = np.arange(1, len(values)) / len(values)
    gap = np.abs(divide(below, total[:, None]) - everyone)
    return gap @ np.diff(values[order]) / sd


# Uncertainty: its parts, its means by group, and how alike like people's predictions are.


class _Decomposition(NamedTuple):
    """The uncertainty within the members' predictions and that between them, each (n,)."""

    aleatoric: Floats
    epistemic: Floats

    @property
    def predictive(self) -> Floats:
        """The sum of the two."""
        return self.aleatoric + self.epistemic


def variance_decomposition(members: ArrayLike) -> _Decomposition:
    """Return the two parts of the label's variance, summed over the classes (Kwon et al. 2020).

    Aleatoric is the mean over members of P_m (1 - P_m), epistemic that of (P_m - Pbar)^2; their
    sum is Pbar (1 - Pbar). With two classes each is twice that of class 1, and at most 1/2.

    Parameters
    ----------
    members : (M, n) probabilities of class 1, or (M, n, C) of all classes.

    Examples
    --------
    >>> variance_decomposition([[0.5, 0.0], [0.5, 1.0]])
    _Decomposition(aleatoric=array([0.5, 0. ]), epistemic=array([0. , 0.5]))
    """
    p = np.asarray(members, float)
    aleatoric, epistemic = (p * (1 - p)).mean(axis=0), ((p - _mean(p)) ** 2).mean(axis=0)
    if p.ndim == 2:
        return _Decomposition(2 * aleatoric, 2 * epistemic)
    return _Decomposition(aleatoric.sum(axis=-1), epistemic.sum(axis=-1))


def entropy_decomposition(members: ArrayLike) -> _Decomposition:
    """Return the two parts of the predictive entropy in nats (Depeweg et al. 2018, equation 5).

    Aleatoric is the members' mean entropy, epistemic the mutual information of label and member,
    the mean divergence of a member from the members' mean.

    Parameters
    ----------
    members : (M, n) probabilities of class 1, or (M, n, C) of all classes.
    """
    from scipy.special import entr, rel_entr

    p = np.asarray(members, float)
    if p.ndim == 2:
        p = np.stack([1 - p, p], axis=-1)
    # A mean of next to nothing must not become 0, of which the divergence is infinite.
    mean = np.maximum(_mean(p), np.finfo(float).tiny)
    divergence = rel_entr(p, mean).sum(axis=-1).mean(axis=0)
    # Rounding leaves a divergence of 0 a few 1e-17 under it.
    return _Decomposition(entr(p).sum(axis=-1).mean(axis=0), np.maximum(divergence, 0))


def _mean(members: Floats) -> Floats:
    """Return the members' mean, exact where they are identical."""
    return members[0] + (members - members[0]).mean(axis=0)


@dataclass(frozen=True, eq=False)
class GroupMeans:
    """The means (..., G, V) of V kinds of values in G groups, reference first.

    The posterior of a mean is taken to be normal on the logarithmic scale, as its size and skewness
    suggest, that of a difference to be normal: of means of many rows, both are.

    Attributes
    ----------
    size : (..., G) rows of each group.
    mean, error : (..., G, V) means, and their standard errors; NaN where there are none.
    """

    size: NDArray[np.int64]
    mean: Floats
    error: Floats

    @classmethod
    def of(cls, values: Floats, group: NDArray[np.integer], groups: int) -> GroupMeans:
        """Return the means of `values` (n, V) at least 0 by `group` (n,), one of `groups`."""
        size = np.bincount(group, minlength=groups)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = _sums(values, group, groups) / size[:, None]
            squares = _sums((values - mean[group]) ** 2, group, groups)
            error = np.sqrt(squares / (size * (size - 1.0))[:, None])
        return cls(size, mean, error)

    def shaped(self, splits: int) -> GroupMeans:
        """Return the means (S G, V) of groups of several splits as (S, G, V)."""
        mean, error = (each.reshape(splits, -1, each.shape[-1]) for each in (self.mean, self.error))
        return GroupMeans(self.size.reshape(splits, -1), mean, error)

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Return the ends (..., G, V) of the means' intervals."""
        return _log_interval(self.mean, self._log_error, level)

    def difference(self, level: float) -> tuple[Floats, Floats, Floats]:
        """Return every mean less the reference's, with the ends of its interval, (..., G, V)."""
        value = self.mean - self.mean[..., :1, :]
        half = normal_quantile(level) * np.hypot(self.error, self.error[..., :1, :])
        return value, value - half, value + half

    def ratio(self, level: float) -> tuple[Floats, Floats, Floats]:
        """Return every mean over the reference's, and the ends of its interval, (..., G, V) each.

        The log response ratio of Hedges, Gurevitch and Curtis (1999).
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            value = self.mean / self.mean[..., :1, :]
            return value, *_log_interval(value, self._ratio_log_error, level)

    def ratio_outside(self, band: float) -> Floats:
        """Return the probability (..., G, V) that the ratio is further than `band` from 1."""
        with np.errstate(invalid="ignore", divide="ignore"):
            log_ratio, error = np.log(self.mean / self.mean[..., :1, :]), self._ratio_log_error
            below = np.log(1 - band) if band < 1 else -np.inf
            above = ndtr((log_ratio - np.log1p(band)) / error)
            return ndtr((below - log_ratio) / error) + above

    @property
    def _log_error(self) -> Floats:
        return np.where(self.mean == 0, 0, divide(self.error, self.mean))

    @property
    def _ratio_log_error(self) -> Floats:
        return np.hypot(self._log_error, self._log_error[..., :1, :])


def _sums(values: Floats, group: NDArray[np.integer], groups: int) -> Floats:
    return np.stack([np.bincount(group, column, groups) for column in values.T], axis=1)


def _log_interval(value: Floats, log_error: Floats, level: float) -> tuple[Floats, Floats]:
    factor = np.exp(normal_quantile(level) * log_error)
    return value / factor, value * factor


def individual_fairness(features: ArrayLike, k: int) -> Callable[[Floats], Floats]:
    """Return how alike values (n,) are to those of the `k` nearest neighbours of rows (n, d).

    Neighbours are found by Euclidean distance. Rows on one point are each other's neighbours; of
    other points at equal distances the search takes any.

    Returns
    -------
    A function from values to (n, k): 1 - |value - mean of its 1, 2 ... k nearest neighbours'
    values|. Rows on the point where the neighbourhood ends count with their mean, in whatever order
    they come. NaN where there are fewer other rows.

    Notes
    -----
    Kuzucu et al. (2024), section 4.3, after the consistency of Zemel et al. (2013): 1 is fair.
    """
    from sklearn.neighbors import NearestNeighbors

    # Adding 0 makes -0 and 0 the same bytes.
    rows = np.ascontiguousarray(np.asarray(features, np.float32) + np.float32(0))
    keys = rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).ravel()
    _, first, point = np.unique(keys, return_index=True, return_inverse=True)
    # Of every point the nearest other ones, the nearest first; -1 where there are none.
    nearest_points = np.full((len(first), k), -1)
    if found := min(k, len(first) - 1):
        search = NearestNeighbors(n_neighbors=found, algorithm="brute").fit(rows[first])
        nearest_points[:, :found] = search.kneighbors(return_distance=False)
    size, nearest = np.append(np.bincount(point), 0), nearest_points[point]
    # Of every row, how many others lie on its own point, on the nearest other one, ...
    reach = np.column_stack([size[point] - 1, size[nearest]]).cumsum(axis=1)
    flat = np.minimum(reach, k) + (k + 1) * np.arange(len(rows))[:, None]
    ends = np.bincount(flat.ravel(), minlength=(k + 1) * len(rows)).reshape(len(rows), k + 1)
    place = ends[:, :k].cumsum(axis=1)

    def fairness(values: Floats) -> Floats:
        total = np.append(np.bincount(point, values), 0.0)
        with np.errstate(invalid="ignore"):
            mean, own = total / size, (total[point] - values) / (size[point] - 1)
        candidates = np.column_stack([own, mean[nearest], np.full(len(values), np.nan)])
        drawn = np.take_along_axis(candidates, place, axis=1)
        return 1 - np.abs(values[:, None] - drawn.cumsum(axis=1) / np.arange(1, k + 1))

    return fairness
