"""Losses as functions of raw scores: value, gradient, curvature, and the link to predictions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from fairbench.data.dataset import Task
from fairbench.experiments.contracts import Loss

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Binomial:
    """Negative log-likelihood of a 0 / 1 label; the raw score is the log odds."""

    name = "binomial"
    outputs = 1
    is_gradient_of_value = True
    scale_detached_from_trunk = False
    curvature_has_unit = False
    vector_leaves = False

    def initial(self, y: Array, weight: Array | None = None) -> Array:
        """Return the log odds of the mean label, which is kept off 0 and 1."""
        return np.array([logit(np.clip(np.average(y, weights=weight), 1e-6, 1 - 1e-6))])

    def value(self, y: Array, raw: Array) -> Array:
        """Return log(1 + e^f) - y f."""
        score = raw[:, 0]
        loss: Array = np.logaddexp(0, score) - y * score
        return loss

    def gradient(self, y: Array, raw: Array) -> Array:
        """Return p - y."""
        return self.link(raw) - y[:, None]

    def curvature(self, y: Array, raw: Array) -> Array:
        """Return p (1 - p)."""
        p = self.link(raw)
        return p * (1 - p)

    def link(self, raw: Array) -> Array:
        """Return the probability of label 1."""
        p: Array = expit(raw)
        return p


@dataclass(frozen=True)
class SquaredError:
    """Half the squared error; the raw score is the mean."""

    name = "squared_error"
    outputs = 1
    is_gradient_of_value = True
    scale_detached_from_trunk = False
    curvature_has_unit = False
    vector_leaves = False

    def initial(self, y: Array, weight: Array | None = None) -> Array:
        """Return the mean."""
        return np.array([np.average(y, weights=weight)])

    def value(self, y: Array, raw: Array) -> Array:
        """Return (f - y)^2 / 2."""
        return (raw[:, 0] - y) ** 2 / 2

    def gradient(self, y: Array, raw: Array) -> Array:
        """Return f - y."""
        return raw - y[:, None]

    def curvature(self, y: Array, raw: Array) -> Array:
        """Return 1."""
        return np.ones_like(raw)

    def link(self, raw: Array) -> Array:
        """Return the mean."""
        return raw


def default_loss(task: Task) -> Loss:
    """Return the loss of a plain model: the likelihood of a label, or squared error."""
    return Binomial() if task is Task.BINARY else SquaredError()
