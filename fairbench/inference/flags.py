"""Flags for groups that differ, and certificates that hold for all groups at once.

In a table of hundreds of comparisons, some differences are due to chance. Flags are chosen so that
on average at most a given share of them is wrong (the false discovery rate). Certificates are
statements about all groups that are wrong in at most 5 % of audits.

References
----------
Benjamini & Hochberg 1995; Benjamini & Yekutieli 2001 (tests that depend on each other).
Berger 1982, Multiparameter hypothesis testing and acceptance sampling (all groups at once).
Cherian & Candes 2024, Statistical inference for fairness auditing.
Holm 1979, A simple sequentially rejective multiple test procedure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from fairbench.core.arrays import Floats, Mask

_CELLS = 1 << 20  # cells of one block of tests
_REACH = 9.0  # standard deviations from the mean, beyond which counts have no weight


def same_rate(
    successes: ArrayLike, sizes: ArrayLike, other_successes: ArrayLike, other_sizes: ArrayLike
) -> Floats:
    """Return two-sided p-values of Fisher's exact test with mid-p that two rates are the same.

    Parameters
    ----------
    successes, sizes, other_successes, other_sizes : counts whose shapes broadcast.

    Returns
    -------
    Twice the smaller tail, at most 1; 1 where either side is empty.
    """
    counts = (successes, sizes, other_successes, other_sizes)
    arrays = np.broadcast_arrays(*(np.asarray(count, np.float64) for count in counts))
    shape = arrays[0].shape
    y, n, z, m = (array.ravel() for array in arrays)
    start, width = _window(y, n, z, m)
    p_values = np.ones(len(y))
    order = np.argsort(width, kind="stable")
    at = 0
    while at < len(order):
        size = max(1, int(_CELLS // width[order[min(at + 4096, len(order) - 1)]]))
        block = order[at : at + min(size, 4096)]
        p_values[block] = _mid_p(y[block], n[block], z[block], m[block], start[block])
        at += len(block)
    return p_values.reshape(shape)


def _window(y: Floats, n: Floats, z: Floats, m: Floats) -> tuple[Floats, Floats]:
    """Return the first count with any weight given the margins, and how many there are."""
    positives, everyone = y + z, np.maximum(n + m, 1)
    mean = n * positives / everyone
    variance = mean * m * (everyone - positives) / (everyone * np.maximum(everyone - 1, 1))
    reach = _REACH * np.sqrt(variance) + 3
    low, high = np.maximum(0, positives - m), np.minimum(n, positives)
    start = np.maximum(low, np.minimum(y, np.floor(mean - reach)))
    stop = np.minimum(high, np.maximum(y, np.ceil(mean + reach)))
    return start, stop - start + 1


def _mid_p(y: Floats, n: Floats, z: Floats, m: Floats, start: Floats) -> Floats:
    """Sum hypergeometric probabilities, each from the one before it."""
    width = int(_window(y, n, z, m)[1].max())
    positives = (y + z)[:, None]
    count = start[:, None] + np.arange(width)
    before = count[:, :-1]
    top = np.maximum(positives - before, 0) * np.maximum(n[:, None] - before, 0)
    bottom = count[:, 1:] * np.maximum(m[:, None] - positives + count[:, 1:], 1)
    with np.errstate(divide="ignore"):
        log = np.concatenate([np.zeros((len(y), 1)), np.cumsum(np.log(top / bottom), 1)], 1)
    weight = np.exp(log - log.max(axis=1, keepdims=True))
    at = weight * (count == y[:, None]) / 2
    lower = (weight * (count < y[:, None]) + at).sum(axis=1)
    upper = (weight * (count > y[:, None]) + at).sum(axis=1)
    p_values: Floats = np.minimum(1, 2 * np.minimum(lower, upper) / (lower + upper))
    return p_values


def differs_from_rest(successes: ArrayLike, sizes: ArrayLike) -> Floats:
    """Return for each group (..., G) the p-value of having the same rate as everyone else."""
    y, n = np.asarray(successes, np.float64), np.asarray(sizes, np.float64)
    rest = y.sum(axis=-1, keepdims=True) - y, n.sum(axis=-1, keepdims=True) - n
    return same_rate(y, n, *rest)


def at_least_p_values(successes: ArrayLike, sizes: ArrayLike, floor: float) -> Floats:
    """Return for each group the one-sided mid-p value of a rate of at least `floor`."""
    y, n = np.asarray(successes, np.float64), np.asarray(sizes, np.float64)
    return np.where(n > 0, binomial_mid_tail(y, n, floor), 1.0)


def binomial_mid_tail(count: ArrayLike, size: ArrayLike, rate: ArrayLike) -> Floats:
    """Return P(Y < count) + P(Y = count) / 2 of a binomial variable Y."""
    y, n = np.asarray(count, np.float64), np.asarray(size, np.float64)
    less = special.betainc(n - y + 1, np.maximum(y, 1), 1 - np.asarray(rate))  # P(Y < y)
    at_most = special.betainc(np.maximum(n - y, 1), y + 1, 1 - np.asarray(rate))
    less, at_most = np.where(y > 0, less, 0), np.where(y < n, at_most, 1)
    return np.asarray((less + at_most) / 2)


def flag(p_values: ArrayLike, rate: float = 0.1, *, overlapping: bool = False) -> Mask:
    """Return which comparisons to flag, so that at most a share `rate` is wrong on average.

    Pass all comparisons that a reader scans for striking ones in one call: every group, pair,
    attribute and metric.

    Parameters
    ----------
    p_values : any shape; NaN is never flagged and not counted.
    rate : the false discovery rate.
    overlapping : whether comparisons may depend on each other in any way, as those of groups that
        share people, or of several metrics of the same rows, do. Benjamini and Yekutieli's
        procedure then replaces Benjamini and Hochberg's; it flags less.
    """
    return adjusted_p_values(p_values, overlapping=overlapping) <= rate


def adjusted_p_values(p_values: ArrayLike, *, overlapping: bool = False) -> Floats:
    """Return the smallest false discovery rates at which each would be flagged; NaN stays."""
    p = np.asarray(p_values, np.float64)
    result = np.full(p.shape, np.nan)
    defined = ~np.isnan(p)
    order = np.argsort(p[defined])
    ranks = np.arange(1, len(order) + 1)
    ratio = p[defined][order] * len(order) / ranks
    if overlapping and len(order):
        ratio *= (1 / ranks).sum()
    least = np.minimum.accumulate(ratio[::-1])[::-1]
    values = np.empty(len(order))
    values[order] = np.minimum(1, least)
    result[defined] = values
    return result


@dataclass(frozen=True)
class Certificate:
    """A confidence bound on the rates of all groups, and the group that determines it."""

    bound: float
    group: int


def lower_limits(
    successes: ArrayLike, sizes: ArrayLike, level: float = 0.95, *, simultaneous: bool = True
) -> Floats:
    """Return exact one-sided lower limits of rates (G,); 0 for an empty group.

    With `simultaneous` all of them hold at once with probability `level` (Bonferroni, which needs
    no independence); without, each on its own.
    """
    y, n = np.asarray(successes, np.float64), np.asarray(sizes, np.float64)
    error = (1 - level) / (len(y) if simultaneous else 1)
    limits = special.betaincinv(np.maximum(y, 1), n - y + 1, error)
    return np.where(y > 0, limits, 0.0)


def all_at_least(successes: ArrayLike, sizes: ArrayLike, level: float = 0.95) -> Certificate:
    """Certify "no group's rate is under c" with the largest c that holds with confidence `level`.

    c is the smallest of the groups' one-sided limits, without a correction: the statement is false
    only if the truly worst group is under c, and then that group's own limit has failed. So the
    error rate is that of one limit, for any number of groups, overlapping or not.
    """
    limits = lower_limits(successes, sizes, level, simultaneous=False)
    worst = int(limits.argmin())
    return Certificate(float(limits[worst]), worst)


def all_at_most(successes: ArrayLike, sizes: ArrayLike, level: float = 0.95) -> Certificate:
    """Certify "no group's rate is over c" in the same way."""
    y, n = np.asarray(successes, np.float64), np.asarray(sizes, np.float64)
    mirrored = all_at_least(n - y, n, level)
    return Certificate(1 - mirrored.bound, mirrored.group)


def surely_over(successes: ArrayLike, sizes: ArrayLike, floor: float, level: float = 0.95) -> Mask:
    """Return groups whose rates are over `floor`; with probability `level` all of them are.

    Holm's procedure with exact one-sided tests needs no independence, and never returns fewer
    groups than simultaneous limits do.
    """
    y, n = np.asarray(successes, np.float64), np.asarray(sizes, np.float64)
    p_values = np.where(y > 0, special.betainc(np.maximum(y, 1), n - y + 1, floor), 1.0)
    order = np.argsort(p_values)
    passes = p_values[order] <= (1 - level) / np.arange(len(order), 0, -1)
    is_over = np.zeros(len(order), bool)
    is_over[order] = np.logical_and.accumulate(passes)
    return is_over
