"""Losses, with what learners need to minimise them: value, gradient and curvature.

A raw score is what a tree or a network adds up, before it is made a probability or a scale.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, logit, softmax

from fairbench.data.dataset import Task
from fairbench.experiments.contracts import Loss

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Binomial(Loss):
    """Negative log-likelihood of a 0 / 1 label; the raw score is the log odds."""

    name = "binomial"
    classes = 2

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
class Softmax(Loss):
    """Negative log-likelihood of one of C classes; the raw scores are log probabilities, unscaled.

    A number added to all scores of a row changes nothing: they start with a sum of 0.
    """

    classes: int = 3

    name = "softmax"

    @property
    def outputs(self) -> int:
        """A raw score a class."""
        return self.classes

    def initial(self, y: Array, weight: Array | None = None) -> Array:
        """Return the logs of the classes' shares, which are kept off 0, less their mean."""
        share = np.bincount(y.astype(np.intp), weight, minlength=self.classes)
        log_share = np.log(np.maximum(share / share.sum(), 1e-6))
        start: Array = log_share - log_share.mean()
        return start

    def value(self, y: Array, raw: Array) -> Array:
        """Return -log p of the label's class."""
        label = y.astype(np.intp)[:, None]
        loss: Array = -np.take_along_axis(log_softmax(raw, axis=1), label, axis=1)[:, 0]
        return loss

    def gradient(self, y: Array, raw: Array) -> Array:
        """Return p_k - 1(y = k)."""
        gradient: Array = self.link(raw) - (y[:, None] == np.arange(self.classes))
        return gradient

    def curvature(self, y: Array, raw: Array) -> Array:
        """Return 2 p_k (1 - p_k), twice the second derivative.

        The scores of a row move together: a step in each by its own second derivative can go too
        far. The diagonal matrix of these is not less than the matrix of second derivatives, whose
        rows sum to p_k (1 - p_k) off the diagonal, too. XGBoost's own objective has the same.
        """
        p = self.link(raw)
        curvature: Array = np.maximum(2 * p * (1 - p), 1e-16)
        return curvature

    def link(self, raw: Array) -> Array:
        """Return the probabilities of the classes."""
        p: Array = softmax(raw, axis=1)
        return p


@dataclass(frozen=True)
class SquaredError(Loss):
    """Half the squared error; the raw score is the mean."""

    name = "squared_error"

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


# The log of a standard deviation is kept within this distance of 0, so that neither a variance
# nor a squared residual over it overflows, in single precision too.
_BOUND = 30.0
_HALF_LOG_TWO_PI = 0.5 * float(np.log(2 * np.pi))
_REFERENCE_START = 0.5
NORMAL_LOSSES = tuple(
    f"{kind}_nll{reference}"
    for reference in ("", "_reference")
    for kind in ("normal", "beta", "faithful")
)


@dataclass(frozen=True)
class NormalLoss(Loss):
    """Losses of a normal label; the raw scores are its mean m and log s of its standard deviation.

    ``normal_nll`` is the negative log-likelihood, with the curvature of Fisher scoring.
    ``beta_nll`` multiplies its gradient with sd^(2 beta), a weight that is not differentiated:
    `beta` = 0 is the likelihood, 1 gives the mean the gradient of squared error (Seitzer et al.
    2022). ``faithful_nll`` is squared error for the mean, the likelihood for the scale (Stirn et
    al. 2023). No scalar has the gradient of these two: a fit is judged by its likelihood.

    Those that end in ``_reference`` are what the reference implementation of FairlyUncertain fits.
    Its comments give the loss 2 log(sd) + r^2 / 2, of which it takes the derivative of 2 log(sd) to
    be 2 sd (it is 2 / sd), its second derivative to be 2, and beside it the observed 3 r^2 / sd^2.
    The raw score is the standard deviation itself, with nothing to keep it positive: it starts at
    1/2, as the mean does, and both share their trees. What results can be NaN, zero or negative; it
    is the likelihood of nothing, and kept to reproduce the published tables.
    """

    name: str = "normal_nll"
    beta: float = 0.5

    outputs = 2

    @property
    def vector_leaves(self) -> bool:
        """The reference grows trees of both scores."""
        return self.name.endswith("_reference")

    @property
    def scale_detached_from_trunk(self) -> bool:
        """The mean of a faithful network is that of a network of the mean alone."""
        return self.name == "faithful_nll"

    @property
    def curvature_has_unit(self) -> bool:
        """Only constants have no unit; the reference's, which has one, is fitted as it is."""
        return self.name in ("normal_nll", "beta_nll")

    def initial(self, y: Array, weight: Array | None = None) -> Array:
        """Return mean and log standard deviation, bounded; of the reference 1/2 for both."""
        if self.vector_leaves:
            return np.full(2, _REFERENCE_START)
        mean = float(np.average(y, weights=weight))
        sd = float(np.sqrt(np.average((y - mean) ** 2, weights=weight)))
        return np.array([mean, np.log(max(sd, np.exp(-_BOUND)))])

    def value(self, y: Array, raw: Array) -> Array:
        """Return s + r^2 / 2 + log(2 pi) / 2 with r = (y - m) / sd; NaN without a positive sd."""
        if self.vector_leaves:
            sd = np.where(raw[:, 1] > 0, raw[:, 1], np.nan)
            loss: Array = np.log(sd * np.sqrt(2 * np.pi)) + ((y - raw[:, 0]) / sd) ** 2 / 2
            return loss
        s = _log_sd(raw)
        loss = s + ((y - raw[:, 0]) * np.exp(-s)) ** 2 / 2 + _HALF_LOG_TWO_PI
        return loss

    def gradient(self, y: Array, raw: Array) -> Array:
        """Return (-r / sd, 1 - r^2), weighted, or its first column replaced by m - y."""
        gradient = _reference_gradient(y, raw) if self.vector_leaves else _gradient(y, raw)
        if self.name.startswith("faithful"):
            return np.column_stack([raw[:, 0] - y, gradient[:, 1]])
        return self._weighted(gradient, raw)

    def curvature(self, y: Array, raw: Array) -> Array:
        """Return the Fisher information (1 / sd^2, 2), weighted, or its first column 1."""
        curvature = _reference_curvature(y, raw) if self.vector_leaves else _information(raw)
        if self.name.startswith("faithful"):
            return np.column_stack([np.ones(len(raw)), curvature[:, 1]])
        return self._weighted(curvature, raw)

    def link(self, raw: Array) -> Array:
        """Return mean and standard deviation; of the reference the scores as they are."""
        if self.vector_leaves:
            return raw
        return np.column_stack([raw[:, 0], np.exp(_log_sd(raw))])

    def _weighted(self, values: Array, raw: Array) -> Array:
        """Return sd^(2 beta) times the values; the reference has beta = 1/2, whatever its sign."""
        if not self.name.startswith("beta"):
            return values
        if self.vector_leaves:
            return values * raw[:, 1:]
        return values * np.exp(2 * self.beta * _log_sd(raw))[:, None]


def _log_sd(raw: Array) -> Array:
    """Return the second raw score, bounded: the log of the standard deviation, (n,)."""
    bounded: Array = np.clip(raw[:, 1], -_BOUND, _BOUND)
    return bounded


def _gradient(y: Array, raw: Array) -> Array:
    """Return (-r / sd, 1 - r^2)."""
    precision = np.exp(-_log_sd(raw))
    r = (y - raw[:, 0]) * precision
    return np.column_stack([-r * precision, 1 - r * r])


def _information(raw: Array) -> Array:
    """Return the Fisher information (1 / sd^2, 2).

    The observed second derivative with respect to s, 2 r^2, vanishes where r does.
    """
    precision = np.exp(-_log_sd(raw))
    return np.column_stack([precision * precision, np.full(len(raw), 2.0)])


def _reference_gradient(y: Array, raw: Array) -> Array:
    """Return (-r / sd, 2 sd - r^2 / sd)."""
    error, sd = raw[:, 0] - y, raw[:, 1]
    with np.errstate(all="ignore"):
        return np.column_stack([error / sd**2, 2 * sd - error**2 / sd**3])


def _reference_curvature(y: Array, raw: Array) -> Array:
    """Return (1 / sd^2, 2 + 3 r^2 / sd^2)."""
    error, sd = raw[:, 0] - y, raw[:, 1]
    with np.errstate(all="ignore"):
        return np.column_stack([1 / sd**2, 2 + 3 * error**2 / sd**4])


def default_loss(task: Task, classes: int = 2) -> Loss:
    """Return the loss of a plain model: the likelihood of a label, or squared error."""
    return SquaredError() if task is Task.REGRESSION else _likelihood(task, classes)


def distribution_loss(task: Task, classes: int = 2) -> Loss:
    """Return the likelihood of a label, or of a value with a standard deviation of its own."""
    return NormalLoss() if task is Task.REGRESSION else _likelihood(task, classes)


def _likelihood(task: Task, classes: int) -> Loss:
    return Binomial() if task is Task.BINARY else Softmax(classes)
