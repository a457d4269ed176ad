"""Scores for a classifier of margins that nobody calibrated: the sign is all they are good for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, clone

Array = NDArray[np.float64]


class Margin(BaseEstimator):
    """One classifier; its score is the logistic function of the margin, over 1/2 where positive."""

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> Margin:
        """Fit the classifier."""
        self.fitted_ = clone(self.classifier).fit(X, y, sample_weight)
        self.classes_ = self.fitted_.classes_
        return self

    def predict_proba(self, X: Array) -> Array:
        """Return the (n, 2) scores of labels 0 and 1, which are no probabilities."""
        p = expit(self.fitted_.decision_function(X))
        return np.column_stack([1 - p, p])

    def predict(self, X: Array) -> Array:
        """Return labels: the side of the margin."""
        return np.asarray(self.fitted_.predict(X), np.float64)
