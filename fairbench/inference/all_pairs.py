"""Every pair of several algorithms: how probably one is better, or neither is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
BETTER, WORSE, EQUIVALENT, TRADED, OPEN = "better", "worse", "equivalent", "traded", "undecided"


@dataclass(frozen=True, eq=False)
class Pairs:
    """Probabilities of the events of every pair of R algorithms, (R, R) each, NaN on the diagonal.

    Attributes
    ----------
    outperforms : P(row >> column), better in some objective and worse in none.
    equivalent : P(row ~ column), practically equivalent in all.
    traded : P(each is better in some objective).
    """

    outperforms: Array
    equivalent: Array
    traded: Array

    def verdicts(self, certainty: float) -> NDArray[np.str_]:
        """Say of every pair (R, R) which event has at least this probability, for the row."""
        events = {
            BETTER: self.outperforms,
            WORSE: self.outperforms.T,
            EQUIVALENT: self.equivalent,
            TRADED: self.traded,
        }
        return np.select([each >= certainty for each in events.values()], list(events), OPEN)


def outperforms(values: Array, rope: Array) -> NDArray[np.bool_]:
    """Say of every pair whether known values of the row outperform the column's.

    Parameters
    ----------
    values : (R, m) objectives, the larger the better.
    rope : (m,) largest differences that are practically equivalent.
    """
    difference = values[:, None] - values[None]
    better, worse = (difference > rope).any(axis=-1), (difference < -rope).any(axis=-1)
    return np.asarray(better & ~worse)


def ranking(outperforms: NDArray[np.float64], certainty: float = 0.95) -> NDArray[np.int64]:
    """Return each algorithm's rank: 1 plus the number of algorithms that outperform it.

    Parameters
    ----------
    outperforms : (R, R) probabilities P(row >> column); the diagonal is not looked at.
    certainty : the probability from which one algorithm counts as outperforming another.

    Returns
    -------
    (R,) ranks; algorithms that the same number of others outperform are tied. An algorithm that
    trades one objective for another outperforms nobody by it.
    """
    beats = outperforms >= certainty
    np.fill_diagonal(beats, False)
    ranks: NDArray[np.int64] = 1 + beats.sum(axis=0)
    return ranks
