"""Gaussian approximations of the calibration parameters, one per node of the spreads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import qmc

from fairbench.assessment.few_labels.calibration import Calibration, sigmoid

Floats = NDArray[np.float64]
_SMALLEST_SPREAD = 1e-3
_MOST_STEPS, _LONGEST_STEP, _TOLERANCE = 30, 1.0, 1e-2


@dataclass(frozen=True)
class Nodes:
    """The prior of all groups' parameters at J values of the spreads, the means integrated out.

    Attributes
    ----------
    spread : (J, D) the spreads sigma; a model whose groups share nothing has one node of NaN.
    precision : (J, P, P) prior precisions of the P = G D parameters, group by group.
    log_determinant : (J,) of the precisions.
    """

    spread: Floats
    precision: Floats
    log_determinant: Floats

    @classmethod
    def of(
        cls, model: Calibration, n_groups: int, count: int, generator: np.random.Generator
    ) -> Nodes:
        """Place Sobol nodes on the half-normal priors of the spreads."""
        spread = _spreads(model, count, generator)
        precision = _precisions(model, n_groups, spread)
        return cls(spread, precision, np.linalg.slogdet(precision)[1])


def _spreads(model: Calibration, count: int, generator: np.random.Generator) -> Floats:
    if model.spread_sd is None:
        return np.full((1, model.size), np.nan)
    uniform = qmc.Sobol(model.size, rng=generator).random(count)
    half_normal = ndtri((1 + uniform) / 2)
    floored: Floats = np.maximum(half_normal, _SMALLEST_SPREAD) * np.array(model.spread_sd)
    return floored


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
    mode : (J, P). precision : (J, P, P), prior's plus Fisher information at the mode.
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
    """Return gradient and Fisher information of the log posterior at (J, P) parameters."""
    coefficients = model.flat_coefficients(theta)
    # The derivative of a coefficient: itself for a slope exp(theta), 1 for the intercept.
    scale = coefficients.copy()
    scale[:, model.size - 1 :: model.size] = 1
    probability = sigmoid(coefficients @ design)
    weight = probability * (1 - probability)
    pull = np.matmul(nodes.precision, theta[..., None])[..., 0]
    gradient = scale * ((label - probability) @ design.T) - pull
    information = np.matmul(design * weight[:, None, :], design.T)
    information *= scale[:, :, None] * scale[:, None, :]
    return gradient, nodes.precision + information
