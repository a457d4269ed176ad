"""Which of several algorithms are better: every pair, ranks, and the probability to be best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.inference.repeats import StudentDraws, posterior_draws

# The verdicts of every comparison of methods, runs and models: of the first against the other.
BETTER, WORSE, ALIKE, OPEN = "better", "worse", "alike", "open"


@dataclass(frozen=True, eq=False)
class Pairs:
    """Probabilities of the events of every pair of R algorithms, (R, R) each, NaN on the diagonal.

    Attributes
    ----------
    outperforms : P(row >> column), better in some objective and worse in none.
    equivalent : P(row ~ column), practically equivalent in all.
    traded : P(each is better in some objective).
    """

    outperforms: Floats
    equivalent: Floats
    traded: Floats

    def verdicts(self, certainty: float) -> NDArray[np.str_]:
        """Return the verdict on the row of every pair (R, R) that is at least so probable."""
        events = {BETTER: self.outperforms, WORSE: self.outperforms.T, ALIKE: self.equivalent}
        return np.select([event >= certainty for event in events.values()], list(events), OPEN)


def outperforms(values: Floats, rope: Floats) -> NDArray[np.bool_]:
    """Return, for every pair, whether known values of the row outperform the column's.

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
    return 1 + beats.sum(axis=0)


def in_order(ranks: NDArray[np.int64], outperforms: Floats) -> NDArray[np.intp]:
    """Return positions by rank; of a tie first who more likely outperforms than is outperformed.

    Parameters
    ----------
    ranks : (R,) ranks, as `ranking` returns them.
    outperforms : (R, R) probabilities P(row >> column); the diagonal is not looked at.
    """
    is_pair = (ranks[:, None] == ranks) & ~np.eye(len(ranks), dtype=bool)
    ahead = np.where(is_pair, outperforms - outperforms.T, 0.0)
    return np.lexsort((-ahead.sum(axis=1), -(ahead > 0).sum(axis=1), ranks))


def standings(
    values: Floats,
    test_share: float,
    *,
    rope: float,
    draws: StudentDraws,
) -> tuple[Floats, Floats]:
    """Return the probabilities that each of M methods is the best, or practically as good.

    The methods were measured in the same splits.

    Parameters
    ----------
    values : (R, M) finite; in split r, the value of method m, the larger the better.
    test_share : the share of the rows that a split tests, which sets how much splits overlap.
    rope : the largest difference that does not matter in practice, in the unit of `values`.
    draws : draws made by :func:`student_draws` for R splits.

    Returns
    -------
    best : (M,) probability of having the largest expected value; equal methods share it.
    near : (M,) probability that the expected value is within the rope of the largest.

    Both are NaN of a single split, which says nothing of how values vary.
    """
    splits, methods = values.shape
    if splits < 2:
        return np.full(methods, np.nan), np.full(methods, np.nan)
    # Rounding must not decide between methods that are equal in every split.
    distinct, column, copies = np.unique(values, axis=1, return_inverse=True, return_counts=True)
    drawn = posterior_draws(distinct, test_share, draws).T
    largest = drawn.max(axis=0)
    is_largest = drawn == largest
    is_largest[1:] &= ~np.logical_or.accumulate(is_largest)[:-1]  # of equal ones the first
    wins, near = (
        np.count_nonzero(array, axis=1) / drawn.shape[1]
        for array in (is_largest, drawn >= largest - rope)
    )
    column = column.reshape(-1)
    return (wins / copies)[column], near[column]
