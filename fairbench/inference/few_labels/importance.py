"""Importance sampling of calibration parameters, from Student t proposals around the modes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, ndtri
from scipy.stats import qmc

from fairbench.core.checks import check_minimum
from fairbench.core.errors import UserError
from fairbench.inference.few_labels.calibration import Calibration, log_likelihood
from fairbench.inference.few_labels.laplace import Nodes, modes

Floats = NDArray[np.float64]


def effective_size(weights: Floats) -> float:
    """Return the effective number of draws behind weights (T,), (sum w)^2 / sum w^2."""
    return float(weights.sum() ** 2 / (weights**2).sum())


def smoothed(weights: Floats) -> tuple[Floats, float]:
    """Smooth the tail of importance weights (T,); return them and the tail's Pareto shape k.

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
    shape, scale = _fit(excesses)
    # A weak prior around 1/2 steadies the fit of a short tail.
    shape = (tail * shape + 10 * 0.5) / (tail + 10)
    level = (np.arange(tail) + 0.5) / tail
    quantiles = scale * np.expm1(-shape * np.log1p(-level)) / shape
    result = weights.copy()
    result[largest] = np.minimum(cutoff + quantiles, weights.max())
    return result, float(shape)


def _fit(excesses: Floats) -> tuple[float, float]:
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
_DEGREES = 7


@dataclass(frozen=True)
class Proposal:
    """The proposal distribution shared by all posteriors of one model and number of groups.

    Attributes
    ----------
    nodes : J nodes of the spreads.
    normal : (J, M, P) standard normals on a Sobol set, with T = J M draws in all.
    stretch : (J, M, 1) what makes them Student t.
    """

    model: Calibration
    nodes: Nodes
    normal: Floats
    stretch: Floats

    @classmethod
    def of(
        cls, model: Calibration, n_groups: int, draws: int, generator: np.random.Generator
    ) -> Proposal:
        """Draw the shared Sobol set.

        Raises
        ------
        UserError : a number of draws that is no power of two, or under 128.
        """
        check_minimum("draws", draws, 2 * _SPREAD_NODES)
        if draws & (draws - 1):
            raise UserError(f"draws is {draws}; it must be a power of two, such as 2048")
        nodes = Nodes.of(model, n_groups, _SPREAD_NODES, generator)
        size = n_groups * model.size
        uniform = qmc.Sobol(size + 1, rng=generator).random(draws)
        uniform = np.clip(uniform, 1e-12, 1 - 1e-12).reshape(len(nodes.spread), -1, size + 1)
        stretch = np.sqrt(_DEGREES / chdtri(_DEGREES, uniform[..., -1:]))
        return cls(model, nodes, ndtri(uniform[..., :-1]), stretch)

    def refined(self, weights: Floats, generator: np.random.Generator) -> Proposal:
        """Return the proposal with its nodes moved to where weights (T,) are."""
        evidence = weights.reshape(len(self.nodes.spread), -1).sum(axis=1) / weights.sum()
        return replace(self, nodes=self.nodes.refined(self.model, evidence, generator))

    def spread(self, positions: NDArray[np.int64]) -> Floats:
        """Return the spreads (C, D) behind draws at `positions` of all T."""
        behind: Floats = self.nodes.spread[positions // self.normal.shape[1]]
        return behind


def propose(proposal: Proposal, design: Floats, label: Floats) -> tuple[Floats, Floats]:
    """Return parameters (T, P) and their log weights (T,): posterior over proposal."""
    mode, precision = modes(proposal.model, proposal.nodes, design, label)
    factor = np.linalg.cholesky(precision)
    offset = np.matmul(proposal.normal * proposal.stretch, np.linalg.inv(factor))
    theta = mode[:, None, :] + offset
    pull = (np.matmul(theta, proposal.nodes.precision) * theta).sum(axis=-1)
    log_prior = (proposal.nodes.log_determinant[:, None] - pull) / 2
    size = theta.shape[-1]
    distance = ((proposal.normal * proposal.stretch) ** 2).sum(axis=-1)
    log_density = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=-1)[:, None]
    log_density = log_density - (_DEGREES + size) / 2 * np.log1p(distance / _DEGREES)
    log_density = log_density - proposal.nodes.log_weight[:, None]
    flat = theta.reshape(-1, size)
    coefficients = proposal.model.flat_coefficients(flat)
    return flat, log_likelihood(coefficients, design, label) + (log_prior - log_density).ravel()


def resampled(weights: Floats, draws: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Return positions drawn in proportion to weights, systematically, in random order."""
    cumulative = np.cumsum(weights)
    places = (np.arange(draws) + generator.random()) / draws * cumulative[-1]
    positions = np.minimum(np.searchsorted(cumulative, places), len(weights) - 1)
    return generator.permutation(positions).astype(np.int64)
