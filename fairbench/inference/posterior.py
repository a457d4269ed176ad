"""The Dirichlet posterior of confusion counts (Barrainkua et al., AISTATS 2024, section 3)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def posterior_draws(
    counts: NDArray[Any], draws: int, generator: np.random.Generator, *, alpha: float = 1.0
) -> NDArray[np.float64]:
    """Draw cell probabilities from Dir(alpha + counts), independently per group.

    Parameters
    ----------
    counts : (..., G, 4) counts; need not be whole numbers (effective counts).
    draws : number of draws T.
    alpha : prior pseudo-count of every cell (1 uniform, 1/2 Jeffreys).

    Returns
    -------
    (T, ..., G, 4) probabilities that sum to 1 over the last axis: normalised gamma variates. It
    is a view of an array with the draws last, so that sums over cells and groups run over
    contiguous memory.
    """
    shape = np.moveaxis(np.asarray(counts, float) + alpha, -1, 0)[..., None]
    gammas = generator.standard_gamma(shape, size=(*shape.shape[:-1], draws))
    gammas /= gammas.sum(axis=0)
    return np.moveaxis(gammas, (-1, 0), (0, -1))


def resampled_counts(
    counts: NDArray[Any], draws: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Draw (T, G, 4) multinomial counts around the observed shares (parametric bootstrap)."""
    size = counts.sum(axis=-1)
    shares = counts / np.maximum(size, 1)[..., None]
    shares[size == 0, 0] = 1.0
    resampled: NDArray[np.int64] = generator.multinomial(
        size.astype(np.int64), shares, size=(draws, *size.shape)
    )
    return resampled


def central_interval(
    samples: NDArray[np.float64], level: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the equal-tailed interval over axis 0, order statistics without interpolation.

    A draw that is NaN sorts last and so widens nothing below; columns with any NaN are NaN.
    """
    draws = samples.shape[0]
    low = round((1 - level) / 2 * (draws - 1))
    ends = np.partition(np.moveaxis(samples, 0, -1), (low, draws - 1 - low), axis=-1)
    # NaN sorts last, so the last order statistic of a row tells whether it has any.
    invalid = np.isnan(samples).any(axis=0)
    lower, upper = ends[..., low].copy(), ends[..., draws - 1 - low].copy()
    lower[invalid] = upper[invalid] = np.nan
    return lower, upper
