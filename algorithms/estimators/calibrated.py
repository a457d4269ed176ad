"""Probabilities for a classifier of margins: Platt's sigmoid on out-of-fold margins."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold

from fairbench.core.errors import UserError

Array = NDArray[np.float64]


class Calibrated(BaseEstimator):
    """One classifier of all rows; its sigmoid is fitted to margins of `folds` held-out folds.

    The folds are drawn from the seed, and are fewer where a class has fewer rows.
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
