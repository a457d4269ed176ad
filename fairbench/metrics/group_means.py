"""Uncertainty: its parts, its means by group, and how alike like people's predictions are."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

Values = NDArray[np.float64]


class Decomposition(NamedTuple):
    """The uncertainty within the members' predictions and that between them, each (n,)."""

    aleatoric: Values
    epistemic: Values

    @property
    def predictive(self) -> Values:
        """The sum of the two."""
        return self.aleatoric + self.epistemic


def variance_decomposition(members: ArrayLike) -> Decomposition:
    """Return the two parts of the label's variance, summed over the classes (Kwon et al. 2020).

    Aleatoric is the mean over members of P_m (1 - P_m), epistemic that of (P_m - Pbar)^2; their
    sum is Pbar (1 - Pbar). With two classes each is twice that of class 1, and at most 1/2.

    Parameters
    ----------
    members : (M, n) probabilities of class 1, or (M, n, C) of all classes.

    Examples
    --------
    >>> variance_decomposition([[0.5, 0.0], [0.5, 1.0]])
    Decomposition(aleatoric=array([0.5, 0. ]), epistemic=array([0. , 0.5]))
    """
    p = np.asarray(members, float)
    aleatoric, epistemic = (p * (1 - p)).mean(axis=0), ((p - _mean(p)) ** 2).mean(axis=0)
    if p.ndim == 2:
        return Decomposition(2 * aleatoric, 2 * epistemic)
    return Decomposition(aleatoric.sum(axis=-1), epistemic.sum(axis=-1))


def entropy_decomposition(members: ArrayLike) -> Decomposition:
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
    return Decomposition(entr(p).sum(axis=-1).mean(axis=0), np.maximum(divergence, 0))


def _mean(members: Values) -> Values:
    """Return the members' mean, exact where they are identical."""
    mean: Values = members[0] + (members - members[0]).mean(axis=0)
    return mean


Array = NDArray[np.float64]


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
    mean: Array
    error: Array

    @classmethod
    def of(cls, values: Array, group: NDArray[np.integer], groups: int) -> GroupMeans:
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

    def interval(self, level: float) -> tuple[Array, Array]:
        """Return the ends (..., G, V) of the means' intervals."""
        return _log_interval(self.mean, self._log_error, level)

    def difference(self, level: float) -> tuple[Array, Array, Array]:
        """Return every mean less the reference's, with the ends of its interval, (..., G, V)."""
        value = self.mean - self.mean[..., :1, :]
        half = _quantile(level) * np.hypot(self.error, self.error[..., :1, :])
        return value, value - half, value + half

    def ratio(self, level: float) -> tuple[Array, Array, Array]:
        """Return every mean over the reference's, and the ends of its interval, (..., G, V) each.

        The log response ratio of Hedges, Gurevitch and Curtis (1999).
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            value = self.mean / self.mean[..., :1, :]
            return value, *_log_interval(value, self._ratio_log_error, level)

    def ratio_outside(self, band: float) -> Array:
        """Return the probability (..., G, V) that the ratio is further than `band` from 1."""
        with np.errstate(invalid="ignore", divide="ignore"):
            log_ratio, error = np.log(self.mean / self.mean[..., :1, :]), self._ratio_log_error
            below = np.log(1 - band) if band < 1 else -np.inf
            outside: Array = ndtr((below - log_ratio) / error) + ndtr(
                (log_ratio - np.log1p(band)) / error
            )
        return outside

    @property
    def _log_error(self) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.mean == 0, 0, self.error / self.mean)

    @property
    def _ratio_log_error(self) -> Array:
        error: Array = np.hypot(self._log_error, self._log_error[..., :1, :])
        return error


def _sums(values: Array, group: NDArray[np.integer], groups: int) -> Array:
    return np.stack([np.bincount(group, column, groups) for column in values.T], axis=1)


def _log_interval(value: Array, log_error: Array, level: float) -> tuple[Array, Array]:
    factor = np.exp(_quantile(level) * log_error)
    return value / factor, value * factor


def _quantile(level: float) -> float:
    return NormalDist().inv_cdf((1 + level) / 2)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The nearest neighbours of n rows, which lie on P distinct points.

    Attributes
    ----------
    point : (n,) the point each row lies on.
    nearest : (P, k) every point's nearest other points, the nearest first; -1 where there are none.
    """

    point: NDArray[np.intp]
    nearest: NDArray[np.intp]

    @classmethod
    def of(cls, features: ArrayLike, k: int) -> Neighbours:
        """Return the `k` nearest neighbours (n, d), by Euclidean distance.

        Rows on one point are each other's neighbours. Of other points at equal distances the
        search takes any.
        """
        from sklearn.neighbors import NearestNeighbors

        points, point = _distinct(np.asarray(features, np.float32))
        nearest = np.full((len(points), k), -1)
        if found := min(k, len(points) - 1):
            search = NearestNeighbors(n_neighbors=found, algorithm="brute").fit(points)
            nearest[:, :found] = search.kneighbors(return_distance=False)
        return cls(point, nearest)

    def means(self, values: Array) -> Array:
        """Return the mean (n, k) of `values` (n,) over the 1, 2 ... k nearest of every row.

        Rows on the point where the neighbourhood ends count with their mean, in whatever order
        they come. NaN where there are fewer other rows.
        """
        size = np.append(np.bincount(self.point), 0)
        total = np.append(np.bincount(self.point, values), 0.0)
        with np.errstate(invalid="ignore"):
            mean, own = total / size, (total[self.point] - values) / (size[self.point] - 1)
        # Of every row, how many others lie on its own point, on the nearest other one, ...
        nearest = self.nearest[self.point]
        reach = np.column_stack([size[self.point] - 1, size[nearest]]).cumsum(axis=1)
        candidates = np.column_stack([own, mean[nearest]])
        k = self.nearest.shape[1]
        place = np.stack([(reach <= rank).sum(axis=1) for rank in range(k)], axis=1)
        candidates = np.column_stack([candidates, np.full(len(values), np.nan)])
        drawn = np.take_along_axis(candidates, place, axis=1)
        averages: Array = drawn.cumsum(axis=1) / np.arange(1, k + 1)
        return averages


def individual_fairness(values: Array, neighbours: Neighbours) -> Array:
    """Return 1 - |value - mean of its k nearest neighbours' values| of every row and k, (n, k).

    Kuzucu et al. (2024), section 4.3, after the consistency of Zemel et al. (2013): 1 is fair.
    """
    fairness: Array = 1 - np.abs(values[:, None] - neighbours.means(values))
    return fairness


def _distinct(features: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Return the distinct rows of `features`, and which of them each row is."""
    # Adding 0 makes -0 and 0 the same bytes.
    rows = np.ascontiguousarray(features + np.float32(0))
    keys = rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).ravel()
    _, first, point = np.unique(keys, return_index=True, return_inverse=True)
    return rows[first], point
