"""What estimators that minimise any loss share: how raw scores become predictions.

A raw score is what a network or its trees add up; the `link` of a loss makes it a probability, a
mean, or a mean and a standard deviation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from fairbench.data.features import Frame, Unit
from fairbench.experiments.contracts import Loss

Array = NDArray[np.float64]


class LinkedEstimator(BaseEstimator, ABC):
    """An estimator with the methods of scikit-learn's interface that its `loss` allows."""

    loss: Loss

    @abstractmethod
    def linked(self, X: Frame) -> Array:
        """Return the (n, k) probabilities, means, or means and standard deviations of rows."""

    @available_if(lambda self: self.loss.classes > 0)
    def predict_proba(self, X: Frame) -> Array:
        """Return the (n, C) probabilities of the classes."""
        p = self.linked(X)
        return p if self.loss.outputs > 1 else np.column_stack([1 - p[:, 0], p[:, 0]])

    @available_if(lambda self: self.loss.outputs == 2 and not self.loss.classes)
    def predict_distribution(self, X: Frame) -> Array:
        """Return the (n, 2) means and standard deviations."""
        return self.linked(X)

    def predict(self, X: Frame) -> Array:
        """Return labels (of a tie the first), values or means."""
        if self.loss.classes:
            label: Array = self.predict_proba(X).argmax(axis=1).astype(np.float64)
            return label
        return self.linked(X)[:, 0]


def link(scores: Array, loss: Loss, unit: Unit) -> Array:
    """Return predictions (..., k) of raw scores (..., k): probabilities, means, or means and sds.

    Parameters
    ----------
    unit : the one the labels were standardised to; probabilities have none.
    """
    flat = loss.link(scores.reshape(-1, scores.shape[-1]))
    if not loss.classes:
        flat = unit.distribution(flat) if loss.outputs == 2 else unit.mean(flat)
    return flat.reshape(scores.shape)


def mixture(members: Array, loss: Loss) -> Array:
    """Return predictions (n, k) of the mixture of M members (M, n, k): their mean, and its sd."""
    mean: Array = members.mean(axis=0)
    if loss.classes or loss.outputs == 1:
        return mean
    means, sds = np.moveaxis(members, -1, 0)
    return np.column_stack([mean[:, 0], np.sqrt((sds**2).mean(axis=0) + means.var(axis=0))])
