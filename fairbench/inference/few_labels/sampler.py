"""Posterior draws of calibration parameters: importance draws, or a slice sampler's at need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fairbench.core.arrays import Floats
from fairbench.inference.few_labels.calibration import Calibration, log_likelihood
from fairbench.inference.few_labels.importance import (
    Proposal,
    effective_size,
    propose,
    resample,
    smooth_tail,
)


def elliptical_slice(
    log_likelihood: Callable[[Floats], Floats],
    state: Floats,
    generator: np.random.Generator,
    *,
    warmup: int,
    keep: int,
    thin: int,
) -> Floats:
    """Draw from a posterior whose prior is independent standard normals.

    Parameters
    ----------
    log_likelihood : (C, Z) states -> (C,).
    state : (C, Z) where the chains start.
    warmup, keep, thin : steps before the first draw, draws of each chain, steps between them.

    Returns
    -------
    (keep, C, Z) draws.
    """
    level = log_likelihood(state)
    kept = []
    for step in range(warmup + keep * thin):
        state, level = _step(log_likelihood, state, level, generator)
        if step >= warmup and (step - warmup + 1) % thin == 0:
            kept.append(state)
    return np.stack(kept)


def chain_effective_size(chains: Floats) -> float:
    """Return the effective number of draws (K, C, P) of the worst parameter.

    From the variance of the chains' means, of which many chains give a good estimate.
    """
    kept, n_chains, _ = chains.shape
    of_means = chains.mean(axis=0).var(axis=0, ddof=1)
    total = chains.reshape(kept * n_chains, -1).var(axis=0, ddof=1)
    return float(min(kept * n_chains, (n_chains * total / of_means).min()))


def _step(
    log_likelihood: Callable[[Floats], Floats],
    state: Floats,
    level: Floats,
    generator: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Move every chain along its own ellipse, shrinking the bracket of those not yet accepted."""
    other = generator.standard_normal(state.shape)
    threshold = level - generator.standard_exponential(len(state))
    angle = generator.uniform(0, 2 * np.pi, len(state))
    lower, upper = angle - 2 * np.pi, angle.copy()
    state, level, start = state.copy(), level.copy(), state
    open_ = np.arange(len(state))
    while open_.size:
        turn = angle[open_, None]
        proposed = start[open_] * np.cos(turn) + other[open_] * np.sin(turn)
        value = log_likelihood(proposed)
        fits = value > threshold[open_]
        state[open_[fits]], level[open_[fits]] = proposed[fits], value[fits]
        open_ = open_[~fits]
        behind = angle[open_] < 0
        lower[open_[behind]], upper[open_[~behind]] = angle[open_[behind]], angle[open_[~behind]]
        angle[open_] = generator.uniform(lower[open_], upper[open_])
    return state, level


_ROUNDS = 3
_LARGEST_SHAPE, _SMALLEST_SHARE = 0.7, 0.2
_CHAINS, _WARMUP, _THIN = 128, 200, 20


@dataclass(frozen=True)
class Sample:
    """Equally weighted posterior draws of the parameters, (T, G D), with their effective size.

    Attributes
    ----------
    pareto_shape : tail of the importance weights.
    effective_size : how many independent draws these are worth.
    sampler : ``importance``, or ``elliptical_slice`` where importance draws cannot be trusted.
    """

    theta: Floats
    pareto_shape: float
    effective_size: float
    sampler: str


def sample(
    proposal: Proposal,
    design: Floats,
    label: Floats,
    generator: np.random.Generator,
    *,
    weight: Floats | None = None,
    chains: bool = True,
) -> Sample:
    """Draw the parameters given labels (L,) of rows with a (G D, L) design matrix.

    Importance draws count where the Pareto shape is at most 0.7 and the effective size a fifth of
    the draws; else the nodes of the spreads are moved, twice, before chains take over.

    Parameters
    ----------
    weight : (L,) rows that each label stands for; one each, if left out.
    chains : without them the first importance draws count, whatever they are worth.
    """
    for _ in range(_ROUNDS):
        theta, log_weights = propose(proposal, design, label, weight)
        weights, shape = smooth_tail(np.exp(log_weights - log_weights.max()))
        size = effective_size(weights)
        kept = resample(weights, len(theta), generator)
        trusted = shape <= _LARGEST_SHAPE and size >= _SMALLEST_SHARE * len(theta)
        if trusted or not chains:
            return Sample(theta[kept], shape, size, "importance")
        start, spread = theta[kept[:_CHAINS]], proposal.spread(kept[:_CHAINS])
        proposal = proposal.refine(weights, generator)
    model, draws = proposal.model, len(theta)

    def likelihood(theta: Floats) -> Floats:
        return log_likelihood(model.flat_coefficients(theta), design, label, weight)

    theta, size = _slice_draws(model, start, spread, likelihood, draws, generator)
    return Sample(theta, shape, size, "elliptical_slice")


def _slice_draws(
    model: Calibration,
    start: Floats,
    spread: Floats,
    likelihood: Callable[[Floats], Floats],
    draws: int,
    generator: np.random.Generator,
) -> tuple[Floats, float]:
    """Return (T, G D) draws of chains on the prior's normals, and their effective size.

    Parameters
    ----------
    start, spread : (C, G D) and (C, D) parameters the chains start from.
    likelihood : parameters (C, G D) -> log likelihood (C,).
    """
    chains, n_groups = len(start), start.shape[1] // model.size

    def parameters(z: Floats) -> Floats:
        return model.from_normals(z, n_groups).reshape(*z.shape[:-1], -1)

    z = elliptical_slice(
        lambda z: likelihood(parameters(z)),
        model.to_normals(start.reshape(chains, n_groups, model.size), spread, generator),
        generator,
        warmup=_WARMUP,
        keep=draws // chains,
        thin=_THIN,
    )
    theta = parameters(z)
    return theta.reshape(draws, -1), chain_effective_size(theta)
