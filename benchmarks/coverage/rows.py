"""Competitors' intervals of means of per-row losses, (R, n) each: normal, and by the bootstrap."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.simulate import LEVEL, Interval
from fairbench.inference.rates import quantile

Array = NDArray[np.float64]
BOOTSTRAP = "bootstrap"
RESAMPLES = 400


def mean_normal(losses: Array, minus: Array | None = None) -> Interval:
    """Return the normal intervals of means, less those of another group's losses."""
    value, variance = losses.mean(axis=1), losses.var(axis=1, ddof=1) / losses.shape[1]
    if minus is not None:
        value = value - minus.mean(axis=1)
        variance = variance + minus.var(axis=1, ddof=1) / minus.shape[1]
    half = quantile(LEVEL) * np.sqrt(variance)
    return value - half, value + half


def means_bootstrap(
    draw: np.random.Generator, losses: Array, minus: Array | None = None
) -> Interval:
    """Return the bootstrap's percentiles of means, less those of another group's losses.

    The resamples of all replications share their weights: replications stay independent of what
    their own rows are.
    """
    means = _resampled(draw, losses)
    if minus is not None:
        means = means - _resampled(draw, minus)
    tail = (1 - LEVEL) / 2
    lower, upper = np.quantile(means, [tail, 1 - tail], axis=0)
    return lower, upper


def weights(draw: np.random.Generator, rows: int) -> Array:
    """Return how often (T, n) each row is in each resample."""
    return draw.multinomial(rows, np.full(rows, 1 / rows), size=RESAMPLES).astype(float)


def _resampled(draw: np.random.Generator, losses: Array) -> Array:
    """Return (T, R) resampled means."""
    rows = losses.shape[1]
    means: Array = weights(draw, rows) @ losses.T / rows
    return means
