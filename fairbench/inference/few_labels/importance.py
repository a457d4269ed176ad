"""Draws of calibration parameters: Gaussian approximations, and importance sampling from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, ndtri

from fairbench.core.arrays import Floats
from fairbench.core.errors import UserError, check_minimum
from fairbench.inference.few_labels.calibration import Calibration, log_likelihood, sigmoid

# The range of spreads, in units of the prior's scale.
_SMALLEST_SPREAD, _LARGEST = 1e-3, 10.0
_DEGREES = 5  # of the Student t that nodes are moved by: heavy tails keep their weights bounded
# Variance added to that of the logarithms of spreads when nodes are moved. The evidence of 64 nodes
# may lie on a few of them, or on one: the new nodes then still spread beyond them, and the
# covariance has a Cholesky factor.
_WIDENING = 0.1
_MOST_STEPS, _LONGEST_STEP, _TOLERANCE = 30, 1.0, 1e-2  # of Fisher scoring


Fill: TypeAlias = Callable[[int, int, np.random.Generator], Floats]


def sobol(columns: int, rows: int, generator: np.random.Generator) -> Floats:
    """Return (rows, columns) numbers that fill (0, 1) evenly: a scrambled Sobol set."""
    from scipy.stats import qmc

    return np.asarray(qmc.Sobol(columns, rng=generator).random(rows))


def kronecker(columns: int, rows: int, generator: np.random.Generator) -> Floats:
    """Return (rows, columns) numbers that fill (0, 1) evenly: multiples of irrational numbers.

    Notes
    -----
    Roberts (2018), a Kronecker sequence by powers of the root of x^(d+1) = x + 1, shifted at random
    (Cranley & Patterson 1976). Sobol's set fills many columns better, but ``scipy.stats`` takes
    longer to import than a million rows to count.
    """
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** (1 / (columns + 1))
    steps = root ** -np.arange(1.0, columns + 1)
    points = generator.random(columns) + np.outer(np.arange(1, rows + 1), steps)
    inside: Floats = np.clip(points % 1, 1e-12, 1 - 1e-12)
    return inside


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
        cls,
        model: Calibration,
        n_groups: int,
        count: int,
        generator: np.random.Generator,
        fill: Fill = sobol,
    ) -> Nodes:
        """Place nodes evenly on the half-normal priors of the spreads."""
        if model.spread_sd is None:
            return cls._of_spreads(model, n_groups, np.full((1, model.size), np.nan), np.zeros(1))
        uniform = fill(model.size, count, generator)
        spread = np.maximum(ndtri((1 + uniform) / 2), _SMALLEST_SPREAD)
        return cls._of_spreads(model, n_groups, spread * np.array(model.spread_sd), np.zeros(count))

    @classmethod
    def _of_spreads(
        cls, model: Calibration, n_groups: int, spread: Floats, log_weight: Floats
    ) -> Nodes:
        """Return the nodes at given spreads."""
        precision = _precisions(model, n_groups, spread)
        return cls(spread, log_weight, precision, np.linalg.slogdet(precision)[1])

    def refine(
        self,
        model: Calibration,
        evidence: Floats,
        generator: np.random.Generator,
        fill: Fill = sobol,
    ) -> Nodes:
        """Return as many nodes where the evidence is, Student t in the logarithms of spreads.

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
        uniform = fill(model.size + 1, len(logs), generator)
        stretch = np.sqrt(_DEGREES / chdtri(_DEGREES, uniform[:, -1:]))
        standard = ndtri(uniform[:, :-1]) * stretch
        logs = np.clip(centre + standard @ factor.T, np.log(_SMALLEST_SPREAD), np.log(_LARGEST))
        distance = (standard**2).sum(axis=1)
        log_prior = (logs - np.exp(2 * logs) / 2).sum(axis=1)
        log_weight = log_prior + (_DEGREES + model.size) / 2 * np.log1p(distance / _DEGREES)
        n_groups = self.precision.shape[1] // model.size
        return self._of_spreads(model, n_groups, np.exp(logs) * scale, log_weight)


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


def modes(
    model: Calibration,
    nodes: Nodes,
    design: Floats,
    label: Floats,
    weight: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Return the posterior mode and precision at every node, by Fisher scoring.

    Parameters
    ----------
    design : (P, L) design matrix of the labelled rows.
    label : (L,) their labels.
    weight : (L,) rows that each label stands for; one each, if left out.

    Returns
    -------
    mode : (J, P)
    precision : (J, P, P)
    """
    theta = np.zeros(nodes.precision.shape[:2])
    for _ in range(_MOST_STEPS):
        gradient, precision = _local(model, nodes, theta, design, label, weight)
        step = np.linalg.solve(precision, gradient[..., None])[..., 0]
        theta = theta + np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
        if np.abs(step).max() < _TOLERANCE:
            break
    return theta, _local(model, nodes, theta, design, label, weight)[1]


def _local(
    model: Calibration,
    nodes: Nodes,
    theta: Floats,
    design: Floats,
    label: Floats,
    weight: Floats | None,
) -> tuple[Floats, Floats]:
    """Return gradient and curvature of the log posterior at (J, P) parameters.

    The curvature is the Fisher information, plus those terms of the observed information that are
    positive: so it is always positive definite.
    """
    coefficients = model.flat_coefficients(theta)
    # The derivative of a coefficient: itself for a slope exp(theta), 1 for others.
    scale = np.ones_like(coefficients) if model.signed else coefficients.copy()
    scale[:, model.size - 1 :: model.size] = 1
    probability = sigmoid(coefficients @ design)
    variance = probability * (1 - probability)
    residual = label - probability
    if weight is not None:
        variance, residual = variance * weight, residual * weight
    pull = np.matmul(nodes.precision, theta[..., None])[..., 0]
    push = scale * (residual @ design.T)
    information = np.matmul(design * variance[:, None, :], design.T)
    information *= scale[:, :, None] * scale[:, None, :]
    # exp(theta) is convex: where the labels push a slope down, that adds to the curvature.
    push_down = np.zeros_like(push) if model.signed else np.maximum(-push, 0)
    push_down[:, model.size - 1 :: model.size] = 0
    diagonal = np.arange(theta.shape[1])
    information[:, diagonal, diagonal] += push_down
    return push - pull, nodes.precision + information


def effective_size(weights: Floats) -> float:
    """Return the effective number of draws behind weights (T,), (sum w)^2 / sum w^2."""
    return float(weights.sum() ** 2 / (weights**2).sum())


def smooth_tail(weights: Floats) -> tuple[Floats, float]:
    """Return importance weights (T,) with a smoothed tail, and the tail's Pareto shape k.

    The largest min(T / 5, 3 sqrt T) weights give way to quantiles of a generalised Pareto
    distribution fitted to them, none beyond the largest (Vehtari et al. 2024). Above k = 0.7 an
    estimate is not to be trusted. A tail of equal weights has k = -inf.
    """
    size = len(weights)
    tail = int(min(size / 5, 3 * np.sqrt(size)))
    order = np.argsort(weights)
    cutoff, largest = weights[order[-tail - 1]], order[-tail:]
    excesses = np.maximum(weights[largest] - cutoff, 1e-300)
    if tail < 5 or excesses[-1] <= 1e-12 * weights.max():
        return weights, float("-inf")
    shape, scale = _fit_pareto(excesses)
    # A weak prior around 1/2 steadies the fit of a short tail.
    shape = (tail * shape + 10 * 0.5) / (tail + 10)
    level = (np.arange(tail) + 0.5) / tail
    quantiles = scale * np.expm1(-shape * np.log1p(-level)) / shape
    result = weights.copy()
    result[largest] = np.minimum(cutoff + quantiles, weights.max())
    return result, float(shape)


def _fit_pareto(excesses: Floats) -> tuple[float, float]:
    """Fit a generalised Pareto to sorted excesses (Zhang, Stephens 2009): shape and scale."""
    n = len(excesses)
    candidates = 30 + int(np.sqrt(n))
    quartile = excesses[int(n / 4 + 0.5) - 1]
    steps = 1 - np.sqrt(candidates / (np.arange(1, candidates + 1) - 0.5))
    theta = 1 / excesses[-1] + steps / (3 * max(quartile, 1e-300))
    shapes = np.log1p(-theta[:, None] * excesses).mean(axis=1)
    profile = n * (np.log(-theta / shapes) - shapes - 1)
    posterior = np.exp(profile - profile.max())
    best = (theta * posterior).sum() / posterior.sum()
    shape = float(np.log1p(-best * excesses).mean())
    return shape, float(-shape / best)


_SPREAD_NODES = 64
_PROPOSAL_DEGREES = 7  # of the Student t that draws come from: tails heavier than the posterior's


@dataclass(frozen=True)
class Proposal:
    """The proposal distribution shared by all posteriors of one model and number of groups.

    Attributes
    ----------
    nodes : J nodes of the spreads.
    normal : (J, M, P) standard normals on an even set, with T = J M draws in all.
    stretch : (J, M, 1) factors that turn them into Student t.
    """

    model: Calibration
    nodes: Nodes
    normal: Floats
    stretch: Floats
    fill: Fill = sobol

    @classmethod
    def of(
        cls,
        model: Calibration,
        n_groups: int,
        draws: int,
        generator: np.random.Generator,
        fill: Fill = sobol,
    ) -> Proposal:
        """Draw the shared even set.

        Raises
        ------
        UserError : a number of draws that is no power of two, or under 128.
        """
        check_minimum("draws", draws, 2 * _SPREAD_NODES)
        if draws & (draws - 1):
            raise UserError(f"draws is {draws}; it must be a power of two, such as 2048")
        nodes = Nodes.of(model, n_groups, _SPREAD_NODES, generator, fill)
        size = n_groups * model.size
        uniform = fill(size + 1, draws, generator)
        uniform = np.clip(uniform, 1e-12, 1 - 1e-12).reshape(len(nodes.spread), -1, size + 1)
        stretch = np.sqrt(_PROPOSAL_DEGREES / chdtri(_PROPOSAL_DEGREES, uniform[..., -1:]))
        return cls(model, nodes, ndtri(uniform[..., :-1]), stretch, fill)

    def refine(self, weights: Floats, generator: np.random.Generator) -> Proposal:
        """Return the proposal with its nodes moved to where weights (T,) are."""
        evidence = weights.reshape(len(self.nodes.spread), -1).sum(axis=1) / weights.sum()
        return replace(self, nodes=self.nodes.refine(self.model, evidence, generator, self.fill))

    def spread(self, positions: NDArray[np.int64]) -> Floats:
        """Return the spreads (C, D) behind draws at `positions` of all T."""
        spread: Floats = self.nodes.spread[positions // self.normal.shape[1]]
        return spread


def propose(
    proposal: Proposal, design: Floats, label: Floats, weight: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return parameters (T, P) and their log weights (T,): posterior over proposal."""
    mode, precision = modes(proposal.model, proposal.nodes, design, label, weight)
    factor = np.linalg.cholesky(precision)
    offset = np.matmul(proposal.normal * proposal.stretch, np.linalg.inv(factor))
    theta = mode[:, None, :] + offset
    pull = (np.matmul(theta, proposal.nodes.precision) * theta).sum(axis=-1)
    log_prior = (proposal.nodes.log_determinant[:, None] - pull) / 2
    size = theta.shape[-1]
    distance = ((proposal.normal * proposal.stretch) ** 2).sum(axis=-1)
    log_density = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=-1)[:, None]
    log_density = log_density - (_PROPOSAL_DEGREES + size) / 2 * np.log1p(
        distance / _PROPOSAL_DEGREES
    )
    log_density = log_density - proposal.nodes.log_weight[:, None]
    flat = theta.reshape(-1, size)
    coefficients = proposal.model.flat_coefficients(flat)
    likelihood = log_likelihood(coefficients, design, label, weight)
    return flat, likelihood + (log_prior - log_density).ravel()


def resample(weights: Floats, draws: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Return positions drawn in proportion to weights, systematically, in random order."""
    cumulative = np.cumsum(weights)
    levels = (np.arange(draws) + generator.random()) / draws * cumulative[-1]
    positions = np.minimum(np.searchsorted(cumulative, levels), len(weights) - 1)
    return generator.permutation(positions).astype(np.int64)
