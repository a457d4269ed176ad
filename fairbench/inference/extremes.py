"""Which groups are the extreme ones: ranks, and probabilities of being among the first m."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.inference.posterior import central_interval

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ranks:
    """The places of G groups in an order, rank 1 being the extreme one.

    Attributes
    ----------
    mean, lower, upper : (G,) expected rank, and its central interval.
    first : (G,) probability of rank 1.
    among : (G,) probability of one of the first m ranks; sums to m.
    """

    mean: Floats
    lower: Floats
    upper: Floats
    first: Floats
    among: Floats


def ranks(draws: Floats, *, m: int = 1, largest: bool = True, level: float = 0.95) -> Ranks:
    """Return the ranks of groups by joint draws of a quantity, such as the accuracy.

    Parameters
    ----------
    draws : (T, G) finite; equal values are ranked in the order of the groups.
    m : how many ranks `among` counts.
    largest : rank 1 has the largest value (cost, calibration error) or the smallest (accuracy).
    """
    order = np.argsort(-draws if largest else draws, axis=1, kind="stable")
    rank = np.empty(order.shape, np.float64)
    np.put_along_axis(rank, order, np.arange(1.0, draws.shape[1] + 1)[None], axis=1)
    lower, upper = central_interval(rank, level)
    shares = ((rank <= limit).mean(axis=0) for limit in (1, m))
    return Ranks(rank.mean(axis=0), lower, upper, *shares)


def equivalence(first: Floats, second: Floats, *, rope: float) -> Floats:
    """Return P(first < second), P(practically equivalent), P(first > second) by paired draws.

    Parameters
    ----------
    first, second : (T, ...) draws.
    rope : the largest difference that does not matter in practice.

    Returns
    -------
    (3, ...) probabilities that sum to 1 over the first axis.
    """
    difference = first - second
    less, greater = (difference < -rope).mean(axis=0), (difference > rope).mean(axis=0)
    return np.stack([less, 1 - less - greater, greater])
