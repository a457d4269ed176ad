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
    """Return the level of each group's interval at which the intervals of all groups hold at once.

    The groups have no row in common (Šidák 1967).
    """
    return float(level ** (1 / max(groups, 1)))


def found_limits(pointwise: Limits, simultaneous: Limits, *, lowest: bool) -> Limits:
    """Return intervals that hold for whichever group is found to be the extreme one.

    The observed value of the most extreme group is, on average, more extreme than its true value,
    because it was selected for that. So the limit towards the other groups is a simultaneous one;
    the other limit needs no correction, since selection biases the value only outwards.

    Parameters
    ----------
    pointwise, simultaneous : limits (G,) of each group by itself, and of all groups at once.
    lowest : whether the group with the lowest value is sought; otherwise that with the highest.
    """
    lower = pointwise.lower if lowest else simultaneous.lower
    upper = simultaneous.upper if lowest else pointwise.upper
    return Limits(pointwise.value, lower, upper)


def candidates(simultaneous: Limits, *, lowest: bool) -> NDArray[np.bool_]:
    """Return which groups (G,) may be the lowest (or highest): the others surely are not."""
    if lowest:
        return np.asarray(simultaneous.lower <= simultaneous.upper.min())
    return np.asarray(simultaneous.upper >= simultaneous.lower.max())


START = 30.0


def lasting_level(level: float, rows: ArrayLike) -> Floats:
    """Return the level at which an interval of a fixed number of rows is one of a sequence.

    It is for means that are not rates. The intervals of all numbers of rows then hold at once, if
    means of :data:`START` rows and more are normal. They are narrowest, 1.6 times the width of one
    interval, from a hundred rows to a thousand. With three rows or fewer the level is the largest
    of which a quantile exists, that of eight standard errors.

    Notes
    -----
    Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024), "Time-uniform central limit theory and
    asymptotic confidence sequences", whose normal mixture is as much information as 30 rows.
    """
    n = np.maximum(np.asarray(rows, float), 1.0)
    reach = np.sqrt((n + START) / n * np.log((n + START) / (START * (1 - level) ** 2)))
    return np.asarray(np.minimum(1 - 2 * special.ndtr(-reach), 1 - np.finfo(float).eps))
