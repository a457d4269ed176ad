"""Thresholds of a score that cover a stated share of every one of several overlapping groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_WHOLE = 60  # scores of a cell up to which none is left out at first
# Solutions change only where the new row's weight passes a multiple of a hundredth, or of a small
# part of one; this is less than any such step.
_JUST_UNDER = 1e-3


def covering_threshold(
    scores: Sequence[Array], members: NDArray[np.bool_], own: NDArray[np.bool_], level: float
) -> float:
    """Return the largest score with which a new row still counts as covered.

    A linear function of the groups that a row is in is fitted to the calibration scores and to the
    new row's by quantile regression. The new row's score is unknown; it is covered if it is at most
    what is fitted to it. The scores for which this is so reach from below up to one threshold.

    Parameters
    ----------
    scores : of each of C cells, sorted; the rows of a cell are in the same groups.
    members : (C, G) which groups each cell is in.
    own : (G,) the groups that the new row is in.
    level : the share to be covered, whole percents.

    Returns
    -------
    The threshold, infinite where the rows of some group are too few for the level.

    Notes
    -----
    Gibbs, Cherian and Candès (2025), "Conformal prediction with conditional guarantees", section
    2.2 and its threshold without randomisation, which covers at least the level in each group. In
    the dual linear programme every score has a weight between -(1 - level) and level, and weights
    sum to 0 in each group. The new row's weight grows with its score, so the threshold is the slope
    of the optimum just before that weight reaches its bound. Scores far from where a cell is cut
    are left out and their weights set; where the cut turns out to lie among them, they are brought
    back, so that the solution is exact.
    """
    weight, sizes = level - _JUST_UNDER, np.array([len(each) for each in scores])
    if not _balanced(members, own, sizes, level, weight):
        return np.inf
    half = np.where(sizes <= _WHOLE, sizes, np.sqrt(sizes * level * (1 - level)) * 3 + 20)
    while True:
        middle = level * sizes
        low = np.clip(np.floor(middle - half), 0, sizes).astype(int)
        high = np.clip(np.ceil(middle + half), 0, sizes).astype(int)
        cut = _cuts(scores, members, own, level, weight, low, high)
        outside = np.ones(len(scores), bool)
        if cut is not None:
            outside = _passed(scores, members @ cut, low, high)
            if not outside.any():
                return float(own @ cut)
        half = np.where(outside, 4 * half, half)


def _balanced(
    members: NDArray[np.bool_],
    own: NDArray[np.bool_],
    sizes: NDArray[np.integer],
    level: float,
    weight: float,
) -> bool:
    """Say whether weights of the calibration rows can outweigh the new row in each group."""
    from scipy.optimize import linprog

    found = linprog(
        np.zeros(len(sizes)),
        A_eq=members.T.astype(float),
        b_eq=-weight * own,
        bounds=np.column_stack([-(1 - level) * sizes, level * sizes]),
    )
    return bool(found.status == 0)


def _cuts(
    scores: Sequence[Array],
    members: NDArray[np.bool_],
    own: NDArray[np.bool_],
    level: float,
    weight: float,
    low: NDArray[np.intp],
    high: NDArray[np.intp],
) -> Array | None:
    """Return the groups' parts (G,) of what is fitted; None where too many scores are left out."""
    from scipy.optimize import linprog

    near = [each[a:b] for each, a, b in zip(scores, low, high, strict=True)]
    cell = np.repeat(np.arange(len(scores)), high - low)
    above = np.array([len(each) for each in scores]) - high
    settled = level * above - (1 - level) * low
    found = linprog(
        -np.concatenate(near),
        A_eq=members[cell].T.astype(float),
        b_eq=-weight * own - settled @ members,
        bounds=(-(1 - level), level),
    )
    return -np.asarray(found.eqlin.marginals) if found.status == 0 else None


def _passed(
    scores: Sequence[Array], cut: Array, low: NDArray[np.intp], high: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Say of each cell whether its cut lies among the scores that were left out."""
    ends = [
        (each[a - 1] if a else -np.inf, each[b] if b < len(each) else np.inf)
        for each, a, b in zip(scores, low, high, strict=True)
    ]
    least, most = np.array(ends).T
    slack = 1e-9 * (1 + np.abs(cut))
    passed: NDArray[np.bool_] = (cut < least - slack) | (cut > most + slack)
    return passed
