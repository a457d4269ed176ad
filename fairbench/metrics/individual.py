"""Individual fairness: whether like individuals are treated alike, among nearest neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


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
