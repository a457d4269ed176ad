"""Losses of a normal label: the raw scores are its mean and the log of its standard deviation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# The log of a standard deviation is kept within this distance of 0, so that neither a variance
# nor a squared residual over it overflows, in single precision too.
_BOUND = 30.0
_HALF_LOG_TWO_PI = 0.5 * float(np.log(2 * np.pi))


@dataclass(frozen=True)
class NormalNLL:
    """Negative log-likelihood of a normal label, with the curvature of Fisher scoring."""

    name = "normal_nll"
    outputs = 2
    is_gradient_of_value = True
    scale_detached_from_trunk = False
    curvature_has_unit = True
    vector_leaves = False

    def initial(self, y: Array, weight: Array | None = None) -> Array:
        """Return the mean and the log of the standard deviation."""
        return normal_start(y, weight)

    def value(self, y: Array, raw: Array) -> Array:
        """Return the negative log-likelihood."""
        return normal_value(y, raw)

    def gradient(self, y: Array, raw: Array) -> Array:
        """Return the derivative of `value`."""
        return normal_gradient(y, raw)

    def curvature(self, y: Array, raw: Array) -> Array:
        """Return the Fisher information."""
        return normal_curvature(raw)

    def link(self, raw: Array) -> Array:
        """Return mean and standard deviation."""
        return normal_link(raw)


@dataclass(frozen=True)
class BetaNLL:
    """The likelihood's gradient times sd^(2 beta), a weight that is not differentiated.

    Seitzer et al. 2022; `beta` = 0 is the likelihood, 1 gives the mean the gradient of squared
    error. No scalar has this gradient: a fit is judged by its likelihood.
    """

    beta: float = 0.5

    name = "beta_nll"
    outputs = 2
    is_gradient_of_value = False
    scale_detached_from_trunk = False
    curvature_has_unit = True
    vector_leaves = False

    def initial(self, y: Array, weight: Array | None = None) -> Array:
        """Return the mean and the log of the standard deviation."""
        return normal_start(y, weight)

    def value(self, y: Array, raw: Array) -> Array:
        """Return the negative log-likelihood."""
        return normal_value(y, raw)

    def gradient(self, y: Array, raw: Array) -> Array:
        """Return the weighted gradient of the likelihood."""
        return normal_gradient(y, raw) * self._weight(raw)

    def curvature(self, y: Array, raw: Array) -> Array:
        """Return the weighted Fisher information."""
        return normal_curvature(raw) * self._weight(raw)

    def link(self, raw: Array) -> Array:
        """Return mean and standard deviation."""
        return normal_link(raw)

    def _weight(self, raw: Array) -> Array:
        weight: Array = np.exp(2 * self.beta * log_sd(raw))[:, None]
        return weight


@dataclass(frozen=True)
class FaithfulNLL:
    """Squared error for the mean, the likelihood for the scale (Stirn et al. 2023).

    No scalar has this gradient: a fit is judged by its likelihood.
    """

    name = "faithful_nll"
    outputs = 2
    is_gradient_of_value = False
    scale_detached_from_trunk = True
    curvature_has_unit = False
    vector_leaves = False

    def initial(self, y: Array, weight: Array | None = None) -> Array:
        """Return the mean and the log of the standard deviation."""
        return normal_start(y, weight)

    def value(self, y: Array, raw: Array) -> Array:
        """Return the negative log-likelihood."""
        return normal_value(y, raw)

    def gradient(self, y: Array, raw: Array) -> Array:
        """Return (m - y, 1 - r^2)."""
        return np.column_stack([raw[:, 0] - y, normal_gradient(y, raw)[:, 1]])

    def curvature(self, y: Array, raw: Array) -> Array:
        """Return (1, 2)."""
        return np.tile([1.0, 2.0], (len(raw), 1))

    def link(self, raw: Array) -> Array:
        """Return mean and standard deviation."""
        return normal_link(raw)


def log_sd(raw: Array) -> Array:
    """Return the second raw score, bounded: the log of the standard deviation, (n,)."""
    bounded: Array = np.clip(raw[:, 1], -_BOUND, _BOUND)
    return bounded


def moments(y: Array, weight: Array | None = None) -> tuple[float, float]:
    """Return the weighted mean and population standard deviation."""
    mean = float(np.average(y, weights=weight))
    return mean, float(np.sqrt(np.average((y - mean) ** 2, weights=weight)))


def normal_start(y: Array, weight: Array | None = None) -> Array:
    """Return mean and log standard deviation, bounded where all values are equal."""
    mean, sd = moments(y, weight)
    return np.array([mean, np.log(max(sd, np.exp(-_BOUND)))])


def normal_value(y: Array, raw: Array) -> Array:
    """Return the negative log-likelihood s + r^2 / 2 + log(2 pi) / 2, with r = (y - m) / sd."""
    s = log_sd(raw)
    loss: Array = s + ((y - raw[:, 0]) * np.exp(-s)) ** 2 / 2 + _HALF_LOG_TWO_PI
    return loss


def normal_gradient(y: Array, raw: Array) -> Array:
    """Return (-r / sd, 1 - r^2)."""
    precision = np.exp(-log_sd(raw))
    r = (y - raw[:, 0]) * precision
    return np.column_stack([-r * precision, 1 - r * r])


def normal_curvature(raw: Array) -> Array:
    """Return the Fisher information (1 / sd^2, 2).

    The observed second derivative with respect to s, 2 r^2, vanishes where r does.
    """
    precision = np.exp(-log_sd(raw))
    return np.column_stack([precision * precision, np.full(len(raw), 2.0)])


def normal_link(raw: Array) -> Array:
    """Return mean and standard deviation."""
    return np.column_stack([raw[:, 0], np.exp(log_sd(raw))])
