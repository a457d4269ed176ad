"""Hardt's rule for the labels of many training parts at once, without a linear programme each.

Two groups have the same pair of rates where the chances of the one are a linear map of those of the
other. Both lie in the unit square, so that the best pair is a corner of one square, or a point
where an edge of the one meets an edge of the other: 24 candidates, of which the cheapest that lies
in both is the optimum of the linear programme (Hardt et al. 2016).
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from fairbench.components.algorithms.interventions.hardt import equalised_odds
from fairbench.components.papers.uncertainty_matters.solvers.folds import Array

SLACK = 1e-9
FLAT = 1e-9  # rates that tell so little of the label are left to the linear programme
_CORNERS = np.array(list(product((0.0, 1.0), repeat=2)))


def rates_of(
    labels: NDArray[np.bool_], used: NDArray[np.bool_], y: Array, groups: NDArray[np.intp]
) -> Array:
    """Return shares of label h among training rows of group g and truth y, (F, g, y, h).

    Parameters
    ----------
    labels, used : (F, n) a model's labels of all rows, and which of them train it.
    y, groups : (n,) 0 and 1 each.
    """
    kinds = np.stack([(groups == g) & (y == truth) for g in (0, 1) for truth in (0, 1)], axis=1)
    positive = (labels & used).astype(float) @ kinds / (used.astype(float) @ kinds)
    shares: Array = np.stack([1 - positive, positive], axis=-1).reshape(-1, 2, 2, 2)
    return shares


def chances(rates: Array, value: Array) -> Array:
    """Return the probabilities of label 1 by part, group and label, (F, 2, 2).

    Parameters
    ----------
    rates : (F, 2, 2, 2) as :func:`rates_of` returns them.
    value : (F, 2) what a false positive costs and a true positive gains.
    """
    flat = (np.abs(np.linalg.det(rates)) < FLAT).any(axis=1)
    found = np.empty((len(rates), 2, 2))
    for part in np.flatnonzero(flat):
        found[part] = equalised_odds(rates[part], value[part])
    found[~flat] = _cheapest(rates[~flat], value[~flat])
    return found


def _cheapest(rates: Array, value: Array) -> Array:
    to_second = np.linalg.solve(rates[:, 1], rates[:, 0])
    first = np.concatenate(
        [
            np.broadcast_to(_CORNERS, (len(rates), 4, 2)),
            _CORNERS @ np.linalg.inv(to_second).swapaxes(1, 2),
            _crossings(to_second),
        ],
        axis=1,
    )
    second = first @ to_second.swapaxes(1, 2)
    both = np.stack([first, second], axis=2)
    cost = value[:, :1] * rates[:, 0, 0] - value[:, 1:] * rates[:, 0, 1]
    price = np.einsum("fch,fh->fc", first, cost)
    possible = ((both >= -SLACK) & (both <= 1 + SLACK)).all(axis=(2, 3))
    best = np.where(possible, price, np.inf).argmin(axis=1)
    chosen: Array = both[np.arange(len(rates)), best].clip(0, 1)
    return chosen


def _crossings(to_second: Array) -> Array:
    """Return where an edge of the first square meets one of the second's, (F, 16, 2)."""
    found = []
    for axis, at, other, bound in product((0, 1), (0.0, 1.0), (0, 1), (0.0, 1.0)):
        point = np.full((len(to_second), 2), at)
        with np.errstate(divide="ignore", invalid="ignore"):
            rest = bound - to_second[:, other, axis] * at
            point[:, 1 - axis] = rest / to_second[:, other, 1 - axis]
        found.append(np.where(np.abs(point) <= 2, point, -1.0))  # parallel edges: outside of both
    return np.stack(found, axis=1)
