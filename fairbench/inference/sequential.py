"""Intervals of a rate, and of a mean of bounded values, that hold at every look."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from scipy.special import betaln, xlog1py, xlogy

from fairbench.core.arrays import Floats
from fairbench.inference.rates import Limits

_HALVINGS = 40
# Sizes of the bets on a mean, each half of the one before; all bets have the same stake.
_BETS = 0.5 ** np.arange(1, 11)
_COST = -np.log1p(-_BETS) - _BETS  # per squared value (Fan, Grama and Liu 2015)


def log_evidence_of_rate(successes: ArrayLike, size: ArrayLike, rate: ArrayLike) -> Floats:
    """Return the logarithm of the evidence against a rate.

    The evidence is the likelihood of the counts, averaged over Beta(1/2, 1/2), divided by that of
    the rate (Robbins 1970; Howard et al. 2021). If the rate is true, the logarithm ever reaches
    log(1 / a) with a probability of at most a.
    """
    x, n, p = (np.asarray(array, float) for array in (successes, size, rate))
    averaged = betaln(x + 0.5, n - x + 0.5) - betaln(0.5, 0.5)
    return averaged - xlogy(x, p) - xlog1py(n - x, -p)


def rate_sequence(successes: ArrayLike, size: ArrayLike, needed: ArrayLike) -> Limits:
    """Return rates with intervals that hold at every look.

    Parameters
    ----------
    needed : the logarithm of the evidence that excludes a rate: log(1 / a) for a confidence of
        1 - a at all looks together.
    """
    x, n, reach = np.broadcast_arrays(
        *(np.asarray(array, float) for array in (successes, size, needed))
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.where(n > 0, x / n, np.nan)

    def excluded(rate: Floats) -> NDArray[np.bool_]:
        """Return whether the evidence excludes rates."""
        return log_evidence_of_rate(x, n, rate) >= reach

    inside = np.where(n > 0, value, 0.5)
    lower = _last_excluded(excluded, np.zeros(x.shape), inside)
    upper = _last_excluded(excluded, np.ones(x.shape), inside)
    return Limits(value, lower, upper)


class Sums(NamedTuple):
    """Sums of values between -1 and 1.

    Attributes
    ----------
    size : numbers of values.
    total : their sums.
    squares : the sums of their squares.
    """

    size: ArrayLike
    total: ArrayLike
    squares: ArrayLike

    def at(self, index: int) -> Sums:
        """Return the sums at one position of all arrays."""
        return Sums(*(np.asarray(array)[index] for array in self))

    def limits(self, needed: ArrayLike) -> Limits:
        """Return the means with intervals that hold at every look; see :func:`mean_sequence`."""
        return mean_sequence(self, needed)

    def outside(self, lower: Floats, upper: Floats, needed: Floats) -> NDArray[np.bool_]:
        """Return whether the evidence that the mean is outside the bounds reaches `needed`."""
        mirrored = Sums(self.size, -np.asarray(self.total), self.squares)
        below = log_evidence_above(mirrored, -lower) >= needed
        return (log_evidence_above(self, upper) >= needed) | below


def log_evidence_above(sums: Sums, mean: ArrayLike) -> Floats:
    """Return the logarithm of the evidence that values are above a mean, on average so far.

    Notes
    -----
    Each value x >= -1 of mean m has E exp(b x - (-log(1 - b) - b) x²) <= exp(b m) for any bet b in
    [0, 1) (Fan, Grama and Liu 2015; Howard et al. 2021): the product over the values, averaged over
    the bets, ever reaches 1 / a with a probability of at most a, whatever each value's mean is, as
    long as they average to no more than what is claimed.
    """
    n, total, squares, claimed = (
        np.asarray(array, float)[..., None] for array in (*sums, np.asarray(mean, float))
    )
    won = _BETS * (total - n * claimed) - _COST * squares
    return np.logaddexp.reduce(won, axis=-1) - np.log(len(_BETS))


def mean_sequence(sums: Sums, needed: ArrayLike) -> Limits:
    """Return means of values between -1 and 1 with intervals that hold at every look.

    Parameters
    ----------
    needed : the logarithm of the evidence that excludes a mean on either side: log(2 / a) for a
        confidence of 1 - a at all looks together.
    """
    n, total, squares, reach = np.broadcast_arrays(
        *(np.asarray(array, float) for array in (*sums, needed))
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.where(n > 0, total / n, np.nan)

    def excludes(signed_total: Floats) -> Callable[[Floats], NDArray[np.bool_]]:
        """Return the function that tells whether values with this total exclude lower means."""
        return lambda mean: log_evidence_above(Sums(n, signed_total, squares), mean) >= reach

    inside = np.where(n > 0, value, 0.0)
    outermost = -np.ones(n.shape)
    lower = _last_excluded(excludes(total), outermost, inside)
    upper = -_last_excluded(excludes(-total), outermost, -inside)
    return Limits(value, lower, upper)


def _last_excluded(
    excluded: Callable[[Floats], NDArray[np.bool_]], out: Floats, inside: Floats
) -> Floats:
    """Return the last excluded value on the way from `out` to `inside`, by bisection."""
    for _ in range(_HALVINGS):
        middle = (out + inside) / 2
        further = excluded(middle)
        out, inside = np.where(further, middle, out), np.where(further, inside, middle)
    return out


def labels_until_above(mean: float, square: float, bound: float, needed: float) -> float:
    """Return the number of values after which a mean above a bound is found, with expected sums.

    Parameters
    ----------
    mean : the mean of the values.
    square : the mean of their squares.
    bound : the bound.
    needed : the logarithm of the evidence, as in :func:`mean_sequence`.
    """
    size = np.geomspace(1, 1e8, 4000)
    evidence = log_evidence_above(Sums(size, size * mean, size * square), bound)
    reached = np.flatnonzero(evidence >= needed)
    return float(size[reached[0]]) if mean > bound and len(reached) else float("inf")


# Intervals of rates that hold whenever one stops, and of the group that was found to be extreme.
#
# Who looks after every label and stops when the answer pleases has made many attempts. An
# interval for a number of labels fixed beforehand is then wrong too often; a confidence sequence
# is not: its intervals hold at all numbers of labels together, whatever decided which label was
# next.


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
    :func:`fairbench.inference.sequential.rate_sequence`. It takes 1.6 times the width of an
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
