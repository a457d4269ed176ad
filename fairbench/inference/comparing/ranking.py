"""Which of several algorithms are better: every pair, ranks, and the probability to be best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.inference.comparing.selection import Candidates, critical, surely_larger

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

    outperforms: Floats
    equivalent: Floats
    traded: Floats

    def verdicts(self, certainty: float) -> NDArray[np.str_]:
        """Return the event of every pair (R, R) that has at least this probability, for the row."""
        events = {
            BETTER: self.outperforms,
            WORSE: self.outperforms.T,
            EQUIVALENT: self.equivalent,
            TRADED: self.traded,
        }
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
    ranks: NDArray[np.int64] = 1 + beats.sum(axis=0)
    return ranks


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


@dataclass(frozen=True, eq=False)
class Standings:
    """The probabilities that each of M methods is the best, or as good as the best in practice.

    Attributes
    ----------
    best : (M,) probability of having the largest expected value; equal methods share it.
    near : (M,) probability that the expected value is within the rope of the largest.
    """

    best: Floats
    near: Floats


def standings(
    values: Floats,
    test_share: float,
    *,
    rope: float,
    draws: StudentDraws,
) -> Standings:
    """Return the standings of methods that were measured in the same splits.

    Parameters
    ----------
    values : (R, M) finite; in split r, the value of method m, the larger the better.
    test_share : the share of the rows that a split tests, which sets how much splits overlap.
    rope : the largest difference that does not matter in practice, in the unit of `values`.
    draws : draws made by :func:`student_draws` for R splits.

    Returns
    -------
    The standings; NaN of a single split, which says nothing of how values vary.
    """
    splits, methods = values.shape
    if splits < 2:
        return Standings(np.full(methods, np.nan), np.full(methods, np.nan))
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
    return Standings((wins / copies)[column], near[column])


@dataclass(frozen=True, eq=False)
class StudentDraws:
    """The random numbers of T draws from a posterior of R splits, whatever was measured in them.

    Attributes
    ----------
    normal : (R, T) standard normals.
    chisquare : (T,) with R - 1 degrees of freedom.
    """

    normal: Floats
    chisquare: Floats


def student_draws(splits: int, draws: int, generator: np.random.Generator) -> StudentDraws:
    """Return draws for quantities measured in `splits` splits, 2 at least."""
    normal = generator.standard_normal((draws, splits)).T
    return StudentDraws(normal, generator.chisquare(splits - 1, size=draws))


def posterior_draws(values: Floats, test_share: float, draws: StudentDraws) -> Floats:
    """Draw the expected values of methods from their joint posterior.

    A multivariate Student t with R - 1 degrees of freedom, the means as its location and
    (1/R + rho / (1 - rho)) S as its scale: S is the methods' covariance over splits, and the second
    summand is Nadeau and Bengio's (2003, Machine Learning 52, equation 9) for splits that share
    training rows. Each difference of two has the Bayesian correlated t-test (Corani and Benavoli
    2015; Benavoli et al. 2017, JMLR 18, equation 6) as its margin, which is
    :func:`probability_better`. That the methods share one degree of freedom count is a choice: S
    has rank R - 1 at most, and few splits say little of how many methods vary together.

    Parameters
    ----------
    values : (R, M), R at least 2.
    test_share : rho, between 0 (independent splits) and 1, both excluded at the top.
    draws : draws made by :func:`student_draws` for R splits.

    Returns
    -------
    (T, M) values, a view of an array with the draws last: sums and maxima over methods run over
    contiguous memory.
    """
    splits = len(values)
    location = values.mean(axis=0)
    drawn: Floats = (values - location).T @ draws.normal
    drawn *= np.sqrt(inflation(splits, test_share) / draws.chisquare)
    drawn += location[:, None]
    return drawn.T


def probability_better(
    first: Floats, second: Floats, test_share: float, *, rope: float = 0.0
) -> float:
    """Return P(expected value of the first - the second > rope), in closed form.

    Parameters
    ----------
    first, second : (R,) values in the same splits, R at least 2.
    """
    from scipy import stats

    difference = first - second
    scale = np.sqrt(inflation(len(difference), test_share) * difference.var(ddof=1))
    distance = difference.mean() - rope
    if scale == 0:
        return float(distance > 0)
    return float(stats.t.cdf(distance / scale, len(difference) - 1))


def inflation(splits: int, test_share: float) -> float:
    """Return the factor from the variance over overlapping splits to that of their mean."""
    return 1 / splits + test_share / (1 - test_share)


_RIVALS = 20


def not_told_from_best(candidates: Candidates, *, level: float = 0.95) -> NDArray[np.bool_]:
    """Return which candidates (k,) may be the best within the bounds.

    The truly best one is among them with at least this probability. A candidate is left out where
    one of its values is surely beyond its bound, or where another candidate is surely within and
    its objective surely smaller; candidates are compared by the error of their difference, as they
    are judged on the same rows (Gupta 1965; Hsu 1984, "multiple comparisons with the best", with
    Bonferroni's critical value). The twenty smallest objectives are compared with all others.
    """
    count, m = candidates.differences.shape
    spent = 1 - level
    bounded = max(int(np.isfinite(candidates.bounds).sum()), 1)
    beyond = critical(0.2 * spent / bounded)
    # Of a rival one statement can be wrong: that it is within, or, where it is, that it is smaller.
    per_rival = 0.8 * spent / max(count - 1, 1)
    reach = critical(per_rival / ((1 + candidates.folded) * m))
    surely = critical(per_rival)
    spread = candidates.value_errors
    kept = (candidates.values - beyond * spread <= candidates.bounds).all(axis=1)
    within = (candidates.values + surely * spread <= candidates.bounds).all(axis=1)
    within |= np.isinf(candidates.bounds).all()
    rivals = np.flatnonzero(within)
    rivals = rivals[np.argsort(candidates.objectives[rivals], kind="stable")][:_RIVALS]
    for rival in rivals:
        kept &= ~_behind(candidates, int(rival), reach)
    return np.asarray(kept)


def larger_than(candidates: Candidates, index: int, *, level: float = 0.95) -> NDArray[np.bool_]:
    """Return whose objectives (k,) are surely larger than one candidate's, all at once."""
    count, m = candidates.differences.shape
    statements = (1 + candidates.folded) * m * max(count - 1, 1)
    return _behind(candidates, index, critical((1 - level) / statements))


def _behind(candidates: Candidates, index: int, reach: float) -> NDArray[np.bool_]:
    """Return whose objectives (k,) are larger than one candidate's by more than their errors."""
    possible = np.ones((candidates.differences.shape[1], 2), bool)
    possible[:, 1] = candidates.folded
    behind = surely_larger(candidates, index, possible, reach) > 0
    behind[index] = False
    return np.asarray(behind)
