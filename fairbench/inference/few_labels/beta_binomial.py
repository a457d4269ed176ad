"""Beta posteriors of a rate per group, from the labelled rows alone (Ji et al. 2020, section 3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairbench.core.errors import UserError
from fairbench.metrics.rates import Counts, Rate

Floats = NDArray[np.float64]


def beta_parameters(counts: Counts, rate: Rate, prior: float = 1.0) -> tuple[Floats, Floats]:
    """Return the parameters of each group's Beta posterior, (..., 4) counts -> two (...).

    Parameters
    ----------
    prior : both parameters of the Beta prior: 1, uniform, is what the paper states; its tables
        agree with 1/2.

    Raises
    ------
    UserError : a rate that is no proportion of rows, such as the F1 score.
    """
    top, bottom = np.array(rate.numerator), np.array(rate.denominator)
    if (bottom > 1).any() or (top > bottom).any():
        raise UserError(f"{rate.name} is no proportion of rows; beta_binomial needs one")
    successes = counts @ top
    return prior + successes, prior + counts @ bottom - successes


def beta_binomial(
    counts: Counts,
    rate: Rate,
    generator: np.random.Generator,
    *,
    prior: float = 1.0,
    draws: int = 2048,
) -> Floats:
    """Draw a rate of every group from its Beta posterior, (..., G, 4) -> (T, ..., G)."""
    first, second = beta_parameters(counts, rate, prior)
    return generator.beta(first, second, size=(draws, *first.shape))
