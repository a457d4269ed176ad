"""Losses as functions of raw scores: value, gradient, curvature, and the link to predictions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Array = NDArray[np.float64]


class Loss(Protocol):
    """A loss of raw scores (n, k); `gradient` and `curvature` define it."""

    name: str
    outputs: int

    def value(self, y: Array, raw: Array) -> Array:
        """Return each row's loss, (n,)."""
        ...

    def gradient(self, y: Array, raw: Array) -> Array:
        """Return the derivative with respect to the raw scores, (n, k)."""
        ...

    def curvature(self, y: Array, raw: Array) -> Array:
        """Return a positive second derivative (or Fisher information), (n, k)."""
        ...

    def link(self, raw: Array) -> Array:
        """Return the prediction: a probability, or the mean."""
        ...


class Binomial:
    """Negative log-likelihood of a 0 / 1 label; the raw score is the log odds."""

    name = "binomial"
    outputs = 1

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


class SquaredError:
    """Half the squared error; the raw score is the mean."""

    name = "squared_error"
    outputs = 1

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


LOSSES: Mapping[str, Loss] = MappingProxyType(
    {loss.name: loss for loss in (Binomial(), SquaredError())}
)
