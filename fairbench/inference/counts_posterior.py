"""Posterior and predictive draws of confusion tables, group by group and all at once."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.inference.posterior import posterior_draws

Array = NDArray[np.float64]

# Pseudo-counts of every confusion cell; the improper prior is the limit alpha -> 0.
PRIORS: Mapping[str, float] = MappingProxyType({"uniform": 1.0, "jeffreys": 0.5, "improper": 0.0})


def table_draws(
    counts: NDArray[Any],
    draws: int,
    generator: np.random.Generator,
    *,
    alpha: float = 1.0,
    predictive: bool = False,
) -> Array:
    """Draw confusion tables whose groups keep their observed sizes.

    Parameters
    ----------
    counts : (..., G, C) counts of C cells; need not be whole numbers (effective counts).
    draws : number of draws T.
    alpha : prior pseudo-count of every cell; 0 is the limit 0+, where an empty group is NaN.
    predictive : draw multinomial counts after the Dirichlet, as the published code does: the
        spread of another sample of this size rather than of the probabilities.

    Returns
    -------
    (T, ..., G, C) group size times Dir(alpha + counts), or counts. Because sizes are kept, a
    metric of everyone together weighs the groups by their observed shares.

    Notes
    -----
    Barrainkua et al., AISTATS 2024, section 3.
    """
    counts = np.asarray(counts, float)
    size = counts.sum(axis=-1)
    with np.errstate(invalid="ignore"):
        tables = posterior_draws(counts, draws, generator, alpha=alpha)
    if predictive:
        return _multinomial(tables, size, generator)
    tables *= size[..., None]
    return tables


def _multinomial(shares: Array, size: Array, generator: np.random.Generator) -> Array:
    """Draw counts of `size` rows, non-integer sizes rounded up or down at random."""
    shares = np.where(size[..., None] > 0, shares, 1 / shares.shape[-1])
    rows = np.floor(size + generator.random(shares.shape[:-1])).astype(np.int64)
    return generator.multinomial(rows, shares).astype(np.float64)
