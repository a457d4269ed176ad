"""Removes from features what tells two groups with the same label apart (Donini et al. 2018)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from fairbench.components.algorithms.estimators.ferm import mean_difference

Array = NDArray[np.float64]


class WithoutDirection(BaseEstimator):
    """A linear estimator of x - (v'x) u, where u is the difference of means and v'u = 1.

    Every linear function of that has the same mean for the rows of `label` of both groups. With
    ``substitution`` v picks the feature of the largest |u_i|, which so drops out (equation 14);
    with ``projection`` v is u / |u|², and the penalty of the weights is that of the constrained
    problem itself.
    """

    def __init__(self, estimator: Any, representation: str, label: int = 1) -> None:
        self.estimator = estimator
        self.representation = representation
        self.label = label

    def fit(
        self, X: Array, y: Array, groups: NDArray[Any], sample_weight: Array | None = None
    ) -> WithoutDirection:
        """Fit to rows, labels 0 and 1, and groups 0 and 1."""
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        self.direction_ = mean_difference(groups, y == self.label, weight) @ X
        self.reader_ = self._reader(self.direction_)
        self.estimator.fit(self.transform(X), y, sample_weight=sample_weight)
        return self

    def _reader(self, u: Array) -> Array:
        if not u.any():
            return np.zeros_like(u)
        if self.representation == "projection":
            return u / (u @ u)
        largest = np.abs(u).argmax()
        return np.where(np.arange(len(u)) == largest, 1 / u[largest], 0)

    def transform(self, X: Array) -> Array:
        """Return the (n, d) features that the estimator sees."""
        return X - np.outer(X @ self.reader_, self.direction_)

    def predict_proba(self, X: Array) -> Array:
        """Return the (n, 2) probabilities of labels 0 and 1."""
        probabilities: Array = self.estimator.predict_proba(self.transform(X))
        return probabilities
