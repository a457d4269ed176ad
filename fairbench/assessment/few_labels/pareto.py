"""How far importance weights can be trusted: effective size and the Pareto tail shape."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def effective_size(weights: Floats) -> float:
    """Return the effective number of draws behind weights (T,), (sum w)^2 / sum w^2."""
    return float(weights.sum() ** 2 / (weights**2).sum())


def pareto_shape(weights: Floats) -> float:
    """Return the shape k of the generalised Pareto tail of weights (T,) (Vehtari et al. 2024).

    The largest min(T / 5, 3 sqrt T) weights are fitted; above 0.7 an estimate is not to be
    trusted, above 0.5 its error falls slower than that of a plain average. Equal weights: -inf.
    """
    size = len(weights)
    tail = int(min(size / 5, 3 * np.sqrt(size)))
    largest = np.partition(weights, (size - tail - 1, size - tail))
    excesses = np.sort(largest[size - tail :] - largest[size - tail - 1])
    if tail < 5 or excesses[-1] <= 1e-12 * weights.max():
        return float("-inf")
    shape = _fit(np.maximum(excesses, 1e-300))
    # A weak prior around 1/2 steadies the fit of a short tail.
    return float((tail * shape + 10 * 0.5) / (tail + 10))


def _fit(excesses: Floats) -> float:
    """Fit a generalised Pareto to sorted excesses (Zhang, Stephens 2009); return its shape."""
    n = len(excesses)
    candidates = 30 + int(np.sqrt(n))
    quartile = excesses[int(n / 4 + 0.5) - 1]
    steps = 1 - np.sqrt(candidates / (np.arange(1, candidates + 1) - 0.5))
    theta = 1 / excesses[-1] + steps / (3 * max(quartile, 1e-300))
    shapes = np.log1p(-theta[:, None] * excesses).mean(axis=1)
    profile = n * (np.log(-theta / shapes) - shapes - 1)
    posterior = np.exp(profile - profile.max())
    best = (theta * posterior).sum() / posterior.sum()
    return float(np.log1p(-best * excesses).mean())
