"""Elliptical slice sampling of many chains at once (Murray, Adams, MacKay 2010)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


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
