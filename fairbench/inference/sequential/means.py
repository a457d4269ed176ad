"""Intervals of a rate, and of a mean of bounded values, that hold at every look."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
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
    evidence: Floats = averaged - xlogy(x, p) - xlog1py(n - x, -p)
    return evidence


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
        outside: NDArray[np.bool_] = (log_evidence_above(self, upper) >= needed) | below
        return outside


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
    evidence: Floats = np.logaddexp.reduce(won, axis=-1) - np.log(len(_BETS))
    return evidence


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
