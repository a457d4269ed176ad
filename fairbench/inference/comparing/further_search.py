"""An upper bound of the gain from further search that holds at any stopping time.

Candidates are independent draws from one stated distribution, judged one after the other on the
same rows; the best so far is kept. The probability that a draw is better than the best of t is
unknown, but small for large t. The bound below holds for all t at once, also if the search is
stopped because of it, at a budget or by hand (Hays, Laufer, Barocas and Raghavan,
"Statistical Guarantees in the Search for Less Discriminatory Algorithms", ICLR 2026,
arXiv 2512.23943, lemma 3.2 and algorithm 1).

Why it holds. The chance that one more draw is below the best of t is stochastically at most the
smallest V of t uniform numbers. For each v, 1{V > v} / (1 - v)^t is a martingale in t that
begins at 1, and so is its mean over v between 0 and 1, ((1 - V)^-(t - 1) - 1) / (t - 1). By
Ville's inequality it is ever above 1 / risk with a chance of at most `risk`; solved for V, this is
the bound. Draws that fail, or that may not be used, count as draws that are never the best.

The gain is bounded as well. A further draw changes nothing unless it is the new best, and then
lowers the gap by at most the present gap, since no gap is below 0. The paper multiplies the chance
by the observed gap, and assumes that the bias of the choice does not shrink. Here it is multiplied
by an upper limit of the true gap, from rows that were not used in the choice, which needs no such
assumption.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fairbench.core.arrays import Floats


def chance_of_better(tried: ArrayLike, *, risk: float) -> Floats:
    """Return an upper bound of the chance that one more draw is better than all so far.

    Parameters
    ----------
    tried : how many draws there were, at least 1; a number or an array of numbers.
    risk : the chance that the truth is ever above the bound, over all numbers of draws.
    """
    before = np.asarray(tried, float) - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = -np.expm1(-np.log1p(before / risk) / before)
    return np.asarray(np.where(before > 0, bound, -np.expm1(-1 / risk)))


def further_gain(gap: ArrayLike, chance: ArrayLike, *, more: int = 1) -> Floats:
    """Return an upper bound of the expected amount by which further draws lower the gap.

    Parameters
    ----------
    gap : the gap of the best so far, or an upper limit of it.
    chance : an upper bound of the chance that one more draw is better.
    more : how many further draws there are.
    """
    none_better = (1 - np.asarray(chance, float)) ** more
    return np.asarray(gap * (1 - none_better))


def is_enough(gap: float, tried: int, *, worth: float, risk: float) -> bool:
    """Return whether one more draw lowers the gap, on average, by less than it is worth.

    Parameters
    ----------
    gap : the observed gap of the best so far.
    tried : how many draws there were.
    worth : the smallest lowering of the gap for which another candidate is made.
    risk : the chance that the bound fails, as in :func:`chance_of_better`.
    """
    if tried < 1:
        return False
    return bool(further_gain(gap, chance_of_better(tried, risk=risk)) < worth)


def least_gap(gaps: ArrayLike, errors: ArrayLike, *, within: float) -> int:
    """Return the index of the smallest gap whose error is at most `within` above the first's.

    Parameters
    ----------
    gaps, errors : (k,) values of the model in use, which comes first, and of the candidates; NaN
        for candidates that cannot be used. The model in use stays if none has a smaller gap; of
        equal gaps, the one with the smaller error is taken.
    within : the largest additional error that is allowed.
    """
    gap, error = np.asarray(gaps, float), np.asarray(errors, float)
    allowed = np.isfinite(gap) & (error <= error[0] + within + _ROUNDING)
    allowed[0] = True
    order = np.lexsort((np.arange(len(gap)) > 0, error, np.where(allowed, gap, np.inf)))
    return int(order[0]) if gap[order[0]] < gap[0] else 0


_ROUNDING = 1e-9
