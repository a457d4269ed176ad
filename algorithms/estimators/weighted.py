"""Scikit-learn estimators that leave out rows of weight 0."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if

from fairbench.data.features import Unit

Array = NDArray[np.float64]


class Weighted(BaseEstimator):
    """An estimator that sees the rows of positive weight, and their weights unless all are 1.

    Leaving rows out is not the same as a weight of 0 to what splits, counts or calibrates rows. A
    solver that stops at its limit of iterations has done what it was asked to. Of several
    `classes`, one that no row has gets probability 0. Values are standardised if `standardise`,
    and else if their own unit is too small or too large for thresholds that are fixed numbers.
    """

    def __init__(self, estimator: Any, classes: int = 0, *, standardise: bool = False) -> None:
        self.estimator = estimator
        self.classes = classes
        self.standardise = standardise

    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> Weighted:
        """Fit to labels or values `y`."""
        weights = {}
        if sample_weight is not None:
            rows = np.flatnonzero(sample_weight > 0)
            X, y, kept = X[rows], y[rows], sample_weight[rows]
            if (kept != 1).any():
                weights = {"sample_weight": kept}
        unit = Unit.of if self.standardise else Unit.of_target
        self.unit_ = unit(y, weights.get("sample_weight"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.fitted_ = clone(self.estimator).fit(X, self.unit_.standard(y), **weights)
        self.classes_ = getattr(self.fitted_, "classes_", None)
        return self

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: Array) -> Array:
        """Return the (n, C) probabilities of the classes."""
        p = np.asarray(self.fitted_.predict_proba(X), np.float64)
        if p.shape[1] >= self.classes:
            return p
        every = np.zeros((len(p), self.classes))
        every[:, self.fitted_.classes_.astype(np.intp)] = p
        return every

    def predict(self, X: Array) -> Array:
        """Return labels or values."""
        return self.unit_.mean(np.asarray(self.fitted_.predict(X), np.float64))
