"""From counts of the rows at hand to the population that they are a sample of."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.inference.posterior import posterior_draws

Floats = NDArray[np.float64]


def union(cells: pd.Series, labels: pd.Series) -> Floats:
    """Return which cells make up which group, (A, G) of 0 and 1."""
    shape = (len(labels.cat.categories), len(cells.cat.categories))
    pairs = labels.cat.codes.to_numpy(np.int64) * shape[1] + cells.cat.codes.to_numpy(np.int64)
    present = np.bincount(pairs, minlength=shape[0] * shape[1]).reshape(shape)
    return (present > 0).astype(np.float64)


def population_draws(
    counts: Floats, union: Floats, draws: int, generator: np.random.Generator
) -> Floats:
    """Draw cell probabilities (T, A, 4) of the population that rows with these counts come from.

    Parameters
    ----------
    counts : (T, G, 4) draws of counts, each followed by one draw of its own posterior; or
        (1, G, 4) known ones, followed by `draws`.
    """
    merged = np.einsum("ag,tgc->tac", union, counts)
    if len(merged) == 1:
        return posterior_draws(merged[0], draws, generator)
    drawn: Floats = posterior_draws(merged, 1, generator)[0]
    return drawn
