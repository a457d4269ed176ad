"""Two classifiers on the same rows: differences of their rates, and of their gaps between groups.

A row is in one of eight cells: its label and both decisions. All intervals are closed forms of the
counts of these cells, with the limits of :mod:`fairbench.inference.rates`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairbench.core.arrays import Floats
from fairbench.inference.gaps import GroupLimits, largest_gap
from fairbench.inference.rates import Limits, difference_limits, rate_limits
from fairbench.metrics.rates import Rate

CELLS = 8
# The position in (TN, FP, FN, TP) of each cell for the first classifier, and for the second.
_FIRST, _SECOND = np.array([0, 0, 1, 1, 2, 2, 3, 3]), np.array([0, 1, 0, 1, 2, 3, 2, 3])


def cells_of(
    label: ArrayLike, first: ArrayLike, second: ArrayLike, group: ArrayLike, *, groups: int
) -> Floats:
    """Return how many rows of each group are in each cell, (G, 8).

    Parameters
    ----------
    label, first, second : (n,) 0 or 1: the label, and the decisions of the two classifiers.
    group : (n,) codes from 0 to G - 1.
    """
    cell = 4 * np.asarray(label, int) + 2 * np.asarray(first, int) + np.asarray(second, int)
    counts = np.bincount(np.asarray(group, int) * CELLS + cell, minlength=groups * CELLS)
    return counts.reshape(groups, CELLS).astype(np.float64)


def _weights(rate: Rate, position: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the weights of the cells (8,) in the numerator and denominator of a rate.

    Parameters
    ----------
    rate : the rate.
    position : (8,) of each cell, its position in a classifier's confusion table.
    """
    return np.array(rate.numerator, float)[position], np.array(rate.denominator, float)[position]


def rates_of(cells: Floats, rate: Rate, *, level: float) -> tuple[Limits, Limits]:
    """Return a rate of both classifiers in every group, from cells (G, 8)."""

    def limits(position: NDArray[np.int64]) -> Limits:
        numerator, denominator = _weights(rate, position)
        return rate_limits(cells @ numerator, cells @ denominator, level=level)

    return limits(_FIRST), limits(_SECOND)


def difference(cells: Floats, rate: Rate, *, level: float) -> Limits:
    """Return the second classifier's rate less the first's in every group, (G,).

    Notes
    -----
    Where both rates are of the same rows, the difference is the share of rows that the second alone
    has right less that of the first alone: two shares of a multinomial, joined by the method of
    variance estimates recovery with their correlation. A precision is of the rows that a classifier
    selects; there the rates themselves are joined, with the correlation of their errors.
    """
    numerator, denominator = _weights(rate, _FIRST)
    other_numerator, other_denominator = _weights(rate, _SECOND)
    if (denominator == other_denominator).all():
        only_second = cells @ np.clip(other_numerator - numerator, 0, 1)
        only_first = cells @ np.clip(numerator - other_numerator, 0, 1)
        return difference_of_shares(only_second, only_first, cells @ denominator, level=level)
    first, second = rates_of(cells, rate, level=level)
    return difference_limits(second, first, correlation(cells, rate))


def difference_of_shares(
    first: Floats, second: Floats, size: Floats, *, level: float = 0.95
) -> Limits:
    """Return the difference of two shares of the same rows, from what differs between them.

    Parameters
    ----------
    first, second : numbers of rows that only the first has right, and only the second, of any
        shape.
    size : numbers of rows in all.
    level : the level of the intervals.
    """
    gained, lost = (rate_limits(count, size, level=level) for count in (first, second))
    return difference_limits(gained, lost, _of_multinomial(first, second, size))


def _of_multinomial(first: Floats, second: Floats, size: Floats) -> Floats:
    """Return the correlation of two shares of the same rows that exclude each other."""
    p, q = (first + 0.5) / (size + 1.5), (second + 0.5) / (size + 1.5)
    shared: Floats = -np.sqrt(p * q / ((1 - p) * (1 - q)))
    return shared


def correlation(cells: Floats, rate: Rate) -> Floats:
    """Return the correlation (G,) of the errors of both classifiers' rates.

    It is that of the linearised rates, with half a row more in every cell, so that no two
    classifiers are taken to agree for ever because they agree on few rows.
    """
    counts = cells + 0.5
    scores = []
    for position in (_FIRST, _SECOND):
        numerator, denominator = _weights(rate, position)
        share = (counts @ numerator) / (counts @ denominator)
        scores.append(numerator - share[:, None] * denominator)
    first, second = scores
    variance, other_variance, covariance = (
        (counts * a * b).sum(axis=1) for a, b in ((first, first), (second, second), (first, second))
    )
    joint: Floats = covariance / np.sqrt(variance * other_variance)
    return joint


def gap_change(cells: Floats, rate: Rate, *, level: float = 0.95) -> Limits:
    """Return by how much the second classifier's largest gap of a rate is larger than the first's.

    Parameters
    ----------
    cells : (G, 8) counts of the groups that are compared; each has rows in the rate's denominator.
    rate : the rate.
    level : the level of the interval.

    Notes
    -----
    Of two groups, with s the sum of both classifiers' signed gaps and d their difference, the sizes
    of the gaps differ by the sign of s d times the smaller of |s| and |d|. Where the sign of s is
    sure, that is d alone, in which what the classifiers have in common cancels. Of more groups, the
    largest gaps differ by what lies between the ends of their own intervals, and by no more than
    the groups' changes differ from each other.
    """
    if len(cells) == 2:
        return _change_of_two(cells, rate, level)
    first, second = (
        largest_gap(_group_limits(cells, rate, position, level)) for position in (_FIRST, _SECOND)
    )
    changes = difference(cells, rate, level=level)
    reach = largest_gap(GroupLimits(changes, changes)).upper
    lower, upper = second.lower - first.upper, second.upper - first.lower
    return Limits(second.value - first.value, np.maximum(lower, -reach), np.minimum(upper, reach))


def _group_limits(
    cells: Floats, rate: Rate, position: NDArray[np.int64], level: float
) -> GroupLimits:
    """Return a classifier's rates in every group with their limits."""
    numerator, denominator = _weights(rate, position)
    return GroupLimits.of(cells @ numerator, cells @ denominator, level=level)


def _change_of_two(cells: Floats, rate: Rate, level: float) -> Limits:
    """Return how much the gap between two groups changes, with its limits.

    With the groups' differences d and d' of the two sets of predictions, the change |d'| - |d| is
    the smaller in size of d' - d and d' + d, with the sign of their product.
    """
    change = difference(cells, rate, level=level)
    apart = difference_limits(change.take(1), change.take(0))
    first, second = rates_of(cells, rate, level=level)
    mirrored = Limits(-first.value, -first.upper, -first.lower)
    total = difference_limits(second, mirrored, -correlation(cells, rate))
    together = difference_limits(total.take(1), total.take(0))
    corners = [
        _smaller(float(end_apart), float(end_together))
        for end_apart in (apart.lower, apart.upper)
        for end_together in (together.lower, together.upper)
    ]
    # Within the rectangle the smaller of the two is monotone between the axes, and 0 on them.
    crosses = any(array.lower < 0 < array.upper for array in (apart, together))
    ends = [*corners, 0.0] if crosses else corners
    value = _smaller(float(apart.value), float(together.value))
    return Limits(np.asarray(value), np.asarray(min(ends)), np.asarray(max(ends)))


def _smaller(first: float, second: float) -> float:
    """Return the smaller size of two numbers, with the sign of their product."""
    return float(np.sign(first) * np.sign(second) * min(abs(first), abs(second)))
