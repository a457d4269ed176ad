"""Gaussian approximations of the posterior of calibration parameters, at several prior spreads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, ndtri
from scipy.stats import qmc

from fairbench.inference.few_labels.calibration import Calibration, sigmoid

Floats = NDArray[np.float64]
# In units of the prior's scale.
_SMALLEST_SPREAD, _LARGEST = 1e-3, 10.0
_DEGREES, _WIDENING = 5, 0.1
_MOST_STEPS, _LONGEST_STEP, _TOLERANCE = 30, 1.0, 1e-2


@dataclass(frozen=True)
class Nodes:
    """The prior of all groups' parameters at J values of the spreads, the means integrated out.

    Attributes
    ----------
    spread : (J, D) the spreads sigma; a model whose groups share nothing has one node of NaN.
    log_weight : (J,) log of the spreads' prior density over that the nodes were drawn from.
    precision : (J, P, P) prior precisions of the P = G D parameters, group by group.
    log_determinant : (J,) of the precisions.
    """

    spread: Floats
    log_weight: Floats
    precision: Floats
    log_determinant: Floats

    @classmethod
    def of(
        cls, model: Calibration, n_groups: int, count: int, generator: np.random.Generator
    ) -> Nodes:
        """Place Sobol nodes on the half-normal priors of the spreads."""
        if model.spread_sd is None:
            return cls._at(model, n_groups, np.full((1, model.size), np.nan), np.zeros(1))
        uniform = qmc.Sobol(model.size, rng=generator).random(count)
        spread = np.maximum(ndtri((1 + uniform) / 2), _SMALLEST_SPREAD)
        return cls._at(model, n_groups, spread * np.array(model.spread_sd), np.zeros(count))

    @classmethod
    def _at(cls, model: Calibration, n_groups: int, spread: Floats, log_weight: Floats) -> Nodes:
        precision = _precisions(model, n_groups, spread)
        return cls(spread, log_weight, precision, np.linalg.slogdet(precision)[1])

    def refined(
        self, model: Calibration, evidence: Floats, generator: np.random.Generator
    ) -> Nodes:
        """Place as many nodes where the labels want them, Student t in the logarithms.

        Parameters
        ----------
        evidence : (J,) share of the posterior found at each node, summing to 1.
        """
        if model.spread_sd is None:
            return self
        scale = np.array(model.spread_sd)
        logs = np.log(self.spread / scale)
        centre = evidence @ logs
        covariance = (logs - centre).T @ (evidence[:, None] * (logs - centre))
        factor = np.linalg.cholesky(covariance + _WIDENING * np.eye(model.size))
        uniform = qmc.Sobol(model.size + 1, rng=generator).random(len(logs))
        stretch = np.sqrt(_DEGREES / chdtri(_DEGREES, uniform[:, -1:]))
        standard = ndtri(uniform[:, :-1]) * stretch
        logs = np.clip(centre + standard @ factor.T, np.log(_SMALLEST_SPREAD), np.log(_LARGEST))
        distance = (standard**2).sum(axis=1)
        log_prior = (logs - np.exp(2 * logs) / 2).sum(axis=1)
        log_weight = log_prior + (_DEGREES + model.size) / 2 * np.log1p(distance / _DEGREES)
        n_groups = self.precision.shape[1] // model.size
        return self._at(model, n_groups, np.exp(logs) * scale, log_weight)


def _precisions(model: Calibration, n_groups: int, spread: Floats) -> Floats:
    """Return the inverse of sigma^2 I + mean_sd^2 11' for each parameter, interleaved."""
    mean_variance = np.array(model.mean_sd) ** 2
    if model.spread_sd is None:
        return np.diag(np.tile(1 / mean_variance, n_groups))[None]
    within = 1 / spread**2
    shared = within**2 * mean_variance / (1 + n_groups * mean_variance * within)
    size = n_groups * model.size
    precision = np.zeros((len(spread), n_groups, model.size, n_groups, model.size))
    for k in range(model.size):
        precision[:, :, k, :, k] = -shared[:, k, None, None]
        precision[:, range(n_groups), k, range(n_groups), k] += within[:, k, None]
    return precision.reshape(len(spread), size, size)


def modes(model: Calibration, nodes: Nodes, design: Floats, label: Floats) -> tuple[Floats, Floats]:
    """Return the posterior mode and precision at every node, by Fisher scoring.

    Parameters
    ----------
    design : (P, L) design matrix of the labelled rows.
    label : (L,) their labels.

    Returns
    -------
    mode : (J, P). precision : (J, P, P).
    """
    theta = np.zeros(nodes.precision.shape[:2])
    for _ in range(_MOST_STEPS):
        gradient, precision = _local(model, nodes, theta, design, label)
        step = np.linalg.solve(precision, gradient[..., None])[..., 0]
        theta = theta + np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
        if np.abs(step).max() < _TOLERANCE:
            break
    return theta, _local(model, nodes, theta, design, label)[1]


def _local(
    model: Calibration, nodes: Nodes, theta: Floats, design: Floats, label: Floats
) -> tuple[Floats, Floats]:
    """Return gradient and curvature of the log posterior at (J, P) parameters.

    The curvature is positive definite: the Fisher information, and of what the observed one has
    besides only what adds to it.
    """
    coefficients = model.flat_coefficients(theta)
    # The derivative of a coefficient: itself for a slope exp(theta), 1 for the intercept.
    scale = coefficients.copy()
    scale[:, model.size - 1 :: model.size] = 1
    probability = sigmoid(coefficients @ design)
    weight = probability * (1 - probability)
    pull = np.matmul(nodes.precision, theta[..., None])[..., 0]
    push = scale * ((label - probability) @ design.T)
    information = np.matmul(design * weight[:, None, :], design.T)
    information *= scale[:, :, None] * scale[:, None, :]
    # exp(theta) is convex: where the labels push a slope down, that adds to the curvature.
    push_down = np.maximum(-push, 0)
    push_down[:, model.size - 1 :: model.size] = 0
    diagonal = np.arange(theta.shape[1])
    information[:, diagonal, diagonal] += push_down
    return push - pull, nodes.precision + information
