"""The training parts of many cross-validations, and what standardising each on its own means.

A pipeline standardises every training part by its own means and deviations. A linear model of
features so standardised is one of the features as they are, under a penalty of its own: with
z = (x - mean) / sd and weights w, v = w / sd makes w'w a quadratic form of v. Features are so
computed once, and nothing is learnt from a test row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Folds:
    """B cross-validations of K folds each; a model is one of their F = B K training parts.

    Attributes
    ----------
    Z : (n, d + 1) features in units that keep numbers small, and a constant as the last column.
    fold : (B, n) the fold in which each row is tested.
    used : (F, n) whether a row is a training row.
    weight : (F, n) weights of the training rows, 0 for the others.
    common : (n,) mean weight of each row in the parts it trains.
    mean, sd : (F, d) of the training rows; a constant feature is not scaled, as in scikit-learn.
    """

    Z: Array
    fold: Rows
    used: NDArray[np.bool_]
    weight: Array
    common: Array
    mean: Array
    sd: Array

    @classmethod
    def of(cls, X: Array, fold: Rows, weight: Array | None = None) -> Folds:
        """Return the folds of features (n, d), of weight 1 unless weights (F, n) are given."""
        used = training(fold)
        marks = used.astype(float)
        weight = marks if weight is None else marks * weight
        units = np.where(np.ptp(X, axis=0) > 0, X.std(axis=0), 1)
        Z = np.column_stack([(X - X.mean(axis=0)) / units, np.ones(len(X))])
        rows = marks.sum(axis=1, keepdims=True)
        mean = marks @ Z[:, :-1] / rows
        variance = marks @ Z[:, :-1] ** 2 / rows - mean**2
        # What rounding leaves of a constant's variance is no spread.
        sd = np.where(variance > 1e-10, np.sqrt(np.maximum(variance, 0)), 1 / units)
        return cls(Z, fold, used, weight, weight.sum(axis=0) / marks.sum(axis=0), mean, sd)

    def downdated(self, curvature: Array) -> Array:
        """Return sum w_i c_i z_i z_i' over each part's training rows, (F, d + 1, d + 1).

        `curvature` is (n,) and the weights are the common ones: what test rows contribute is taken
        from the sum of all.
        """
        weighted = self.Z * (self.common * curvature)[:, None]
        total = weighted.T @ self.Z
        return np.stack([total - self.Z[test].T @ weighted[test] for test in ~self.used])

    def gram(self, curvature: Array, models: Rows) -> Array:
        """Return the same sums for some models, of their own curvatures (k, n) and weights."""
        weights = curvature * self.weight[models]
        return np.stack([(self.Z * weight[:, None]).T @ self.Z for weight in weights])


def training(fold: Rows) -> NDArray[np.bool_]:
    """Return whether each row trains each of the F models, (F, n), of folds (B, n)."""
    marks: NDArray[np.bool_] = fold[:, None, :] != np.arange(int(fold.max()) + 1)[:, None]
    return marks.reshape(-1, fold.shape[1])


def held_out(values: Array, fold: Rows) -> Array:
    """Return each row's value (F, n) by the model that did not see it, (B, n)."""
    per_fold = values.reshape(len(fold), -1, fold.shape[1])
    own: Array = np.take_along_axis(per_fold, fold[:, None, :], axis=1)[:, 0]
    return own


def times(matrices: Array, vectors: Array) -> Array:
    """Multiply F matrices (F, p, p) and vectors (F, p)."""
    products: Array = np.matmul(matrices, vectors[..., None])[..., 0]
    return products


def add_diagonals(matrices: Array, diagonals: Array) -> Array:
    """Return F matrices (F, p, p) with (F, p) added to their diagonals, in place."""
    places = np.arange(matrices.shape[-1])
    matrices[:, places, places] += diagonals
    return matrices
