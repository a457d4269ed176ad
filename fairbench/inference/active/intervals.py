"""Intervals of rates that hold whenever one stops, and of the group that was found to be extreme.

Who looks after every label and stops when the answer pleases has made many attempts. An interval
for a number of labels fixed beforehand is then wrong too often; a confidence sequence is not: its
intervals hold at all numbers of labels together, whatever decided which label was next.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from fairbench.core.arrays import Floats
from fairbench.inference.rates import Limits
from fairbench.inference.sequential.means import rate_sequence


def sequence_limits(successes: ArrayLike, size: ArrayLike, *, level: ArrayLike = 0.95) -> Limits:
    """Return rates with intervals that hold at all sizes together.

    Parameters
    ----------
    successes, size : counts, as in :func:`fairbench.inference.rates.rate_limits`, which is to be
        used where the size was fixed beforehand.
    level : the probability that no interval of a growing sample ever misses the rate.

    Returns
    -------
    The rates and both ends. Of no rows, the rate is NaN and the interval is [0, 1].

    Notes
    -----
    Robbins (1970), "Statistical methods related to the law of the iterated logarithm"; see
    :func:`fairbench.inference.sequential.means.rate_sequence`. It takes 1.6 times the width of an
    interval of a fixed size at 30 rows, 1.75 times at 300.
    """
    return rate_sequence(successes, size, -np.log1p(-np.asarray(level, float)))


def together(level: float, groups: int) -> float:
    """Return the level of each group's interval at which the intervals of all groups hold together.

    The groups have no row in common (Šidák 1967).
    """
    return float(level ** (1 / max(groups, 1)))


def found_limits(single: Limits, all_together: Limits, *, lowest: bool) -> Limits:
    """Return the interval that holds for whichever group is found to be the extreme one.

    The group that looks worst of many looks worse than it is, as it was chosen for that. So the
    end on the side of the others is that of an interval which holds for all groups together; the
    other end needs no correction, since being chosen moves nothing to its side.

    Parameters
    ----------
    single, all_together : limits (G,) of each group by itself, and of all together.
    lowest : whether the group of the lowest value is looked for, rather than of the highest.
    """
    lower = single.lower if lowest else all_together.lower
    upper = all_together.upper if lowest else single.upper
    return Limits(single.value, lower, upper)


def candidates(all_together: Limits, *, lowest: bool) -> NDArray[np.bool_]:
    """Return which groups (G,) may be the lowest (or highest): the others surely are not."""
    if lowest:
        return np.asarray(all_together.lower <= all_together.upper.min())
    return np.asarray(all_together.upper >= all_together.lower.max())


START = 30.0


def lasting_level(level: float, rows: ArrayLike) -> Floats:
    """Return the level at which an interval of a fixed number of rows is one of a sequence.

    Of means that are no rates: the intervals of all numbers of rows then hold together, as far as
    means of :data:`START` rows and more are normal. They are narrowest, 1.6 times the width of
    one interval, from a hundred rows to a thousand. Of three rows and fewer it is the level next
    to one that a quantile can be taken of: eight standard errors.

    Notes
    -----
    Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024), "Time-uniform central limit theory and
    asymptotic confidence sequences", whose normal mixture is as much information as 30 rows.
    """
    n = np.maximum(np.asarray(rows, float), 1.0)
    reach = np.sqrt((n + START) / n * np.log((n + START) / (START * (1 - level) ** 2)))
    return np.asarray(np.minimum(1 - 2 * special.ndtr(-reach), 1 - np.finfo(float).eps))
