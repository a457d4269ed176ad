"""How far importance weights can be trusted: effective size and the Pareto tail shape."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
