"""Scores for a classifier of margins: Platt's sigmoid on out-of-fold margins, or the bare sign."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold

from fairbench.components.algorithms.estimators.weighted import Weighted
from fairbench.core.errors import UserError

Array = NDArray[np.float64]


class Calibrated(BaseEstimator):
    """A classifier whose margins become probabilities by a sigmoid, fitted on held-out folds.

    The classifier itself is fitted to all rows.

    The `folds` folds are drawn from the seed, and are fewer where a class has fewer rows.
    """

    def __init__(self, classifier: Any, folds: int, seed: int) -> None:
        self.classifier = classifier
        self.folds = folds
        self.seed = seed

    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> Calibrated:
        """Fit the classifier and its sigmoid."""
        labels, counts = np.unique(y, return_counts=True)
        if len(labels) < 2 or counts.min() < 2:
            raise UserError(
                "a support vector machine is calibrated on held-out folds, and needs two training "
                f"rows of each class; class {labels[counts.argmin()]:g} has {counts.min()}"
            )
        folds = StratifiedKFold(
            min(self.folds, int(counts.min())), shuffle=True, random_state=self.seed
        )
        calibrated = CalibratedClassifierCV(self.classifier, cv=folds, ensemble=False)
        self.fitted_ = calibrated.fit(X, y, sample_weight)
        self.classes_ = self.fitted_.classes_
        return self

    def predict_proba(self, X: Array) -> Array:
        """Return the (n, 2) probabilities of labels 0 and 1."""
        probabilities: Array = self.fitted_.predict_proba(X)
        return probabilities

    def predict(self, X: Array) -> Array:
        """Return labels: the class of the greater probability, ties 0."""
        return (self.predict_proba(X)[:, 1] > 0.5).astype(np.float64)


class Margin(BaseEstimator):
    """One classifier that nobody calibrates: the sign is all that its scores are good for.

    They are the logistic function of the margin, over 1/2 where it is positive.
    """

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


def scored(machine: Any, folds: int, seed: int) -> Weighted:
    """Return a classifier of margins that gives scores: calibrated on `folds` folds, if any."""
    return Weighted(Calibrated(machine, folds, seed) if folds else Margin(machine))
