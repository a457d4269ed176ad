"""How far rates can be off if a share of the labels is wrong, whichever they are.

A wrong label moves a row between true and false positives, or between true and false negatives:
decisions are what they are. The bounds are sharp: for each end, there are labels that attain it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairbench.core.arrays import Floats
from fairbench.inference.few_labels.assisted import LabelledRows
from fairbench.inference.gaps import simultaneous_level
from fairbench.inference.rates import Limits, difference_limits, rate_limits
from fairbench.metrics.rates import FN, FP, TN, TP, Rate, binary_confusion

# Of rows decided positive and negative: whether wrong labels become 1 or 0.
_WAYS = ((1, 1), (1, -1), (-1, 1), (-1, -1))


def corrected(counts: ArrayLike, wrong: ArrayLike, *, splits: int = 2) -> Floats:
    """Return the confusion counts that could be true if so many labels are wrong.

    Parameters
    ----------
    counts : (..., 4) of one group, TN, FP, FN, TP; or shares of them.
    wrong : (...) at most so many labels are wrong, or so large a share of all.
    splits : in how many ways the wrong labels are split between rows decided positive and negative;
        with more than two, labels are counted and not divided.

    Returns
    -------
    (4 * splits, ..., 4) with two splits, the corners of what is possible: every other table is a
    mean of these and of the one that is given.
    """
    table, most = np.asarray(counts, float), np.asarray(wrong, float)
    first = np.multiply.outer(np.linspace(0, 1, splits), most)
    first = first if splits == 2 else np.floor(first)
    return np.concatenate([_moved(table, most, ways, first) for ways in _WAYS])


def _moved(table: Floats, most: Floats, ways: tuple[int, int], first: Floats) -> Floats:
    """Return counts with labels changed, `first` of them among positive decisions if possible."""
    room = table[..., FP if ways[0] > 0 else TP]
    other_room = table[..., TN if ways[1] > 0 else FN]
    others = np.minimum(most - np.minimum(first, room), other_room)
    positive, negative = ways[0] * np.minimum(most - others, room), ways[1] * others
    moves = {TN: -negative, FP: -positive, FN: negative, TP: positive}
    return np.stack([table[..., cell] + moves[cell] for cell in (TN, FP, FN, TP)], axis=-1)


def flip_bounds(rate: Rate, counts: ArrayLike, wrong: ArrayLike) -> tuple[Floats, Floats]:
    """Return the least and the largest value that a rate may have if so many labels are wrong.

    Parameters
    ----------
    counts : (..., 4) TN, FP, FN, TP, or shares.
    wrong : (...) as many of them at most.

    Notes
    -----
    A rate is a ratio of two sums of cells, so it is largest at a corner of what is possible
    (linear-fractional programming; Charnes & Cooper 1962). NaN where no table has the rate.
    """
    values = rate(corrected(counts, wrong))
    none = np.isnan(values).all(axis=0)
    lower = np.where(none, np.nan, np.fmin.reduce(values, axis=0))
    upper = np.where(none, np.nan, np.fmax.reduce(values, axis=0))
    return lower, upper


@dataclass(frozen=True)
class Tipping:
    """With how many wrong labels a verdict still holds, whichever labels they are.

    Attributes
    ----------
    alone : of each group whose labels can undo the verdict, the largest share of them that may be
        wrong, if all other groups' labels are right; the smallest first.
    together : the largest share of the labels of every group that may be wrong at once; None where
        no share undoes the verdict.
    groups : those that the verdict is about; where it is that one is ahead, it is the second.
    """

    alone: Sequence[tuple[str, float]]
    together: float | None
    groups: Sequence[str]


def tipping_point(margin: Callable[[int], float], labels: int) -> int | None:
    """Return the largest number of wrong labels with which a verdict still holds.

    Parameters
    ----------
    margin : by how much a verdict holds with a number of wrong labels, whichever labels they are;
        at 0 and under, it does not. More wrong labels never make it larger.
    labels : how many there are.

    Returns
    -------
    None where the verdict holds even if all are wrong; -1 where it does not hold as it is. Of very
    many labels, the number may be too low by up to one in 50.

    Notes
    -----
    The margin's root by the Illinois method of false position (Dowell & Jarratt 1971), which needs
    few evaluations where the margin is almost straight.
    """
    low, high = 0, labels
    above, below = margin(low), margin(high)
    if above <= 0:
        return -1
    if below > 0:
        return None
    before = 0
    while high - low > max(1, low // 50):
        wanted = low + above / (above - below) * (high - low)
        middle = min(max(round(wanted), low + 1), high - 1)
        reached = margin(middle)
        side = 1 if reached > 0 else -1
        if side > 0:
            low, above, below = middle, reached, below / 2 if before == side else below
        else:
            high, below, above = middle, reached, above / 2 if before == side else above
        before = side
    return low


# Of a number of wrong labels, and 1 or -1: the successes and sizes of a rate that labels then are
# worth, in ways that make it large or small.
Possible: TypeAlias = Callable[[int, int], tuple[Floats, Floats]]
_PARTS = 1000  # of a share, where all groups' labels may be wrong at once
_SPLITS = 9  # ways to split wrong labels between positive and negative decisions


def wrong_counts(counts: NDArray[np.int64], rate: Rate) -> Possible:
    """Return what a rate may be where all rows of a group have labels, counted (4,)."""

    def possible(wrong: int, side: int) -> tuple[Floats, Floats]:
        tables = corrected(counts, wrong, splits=_SPLITS)
        return rate.successes(tables), rate.size(tables)

    return possible


def wrong_rows(labels: LabelledRows, rate: Rate) -> Possible:
    """Return the same of one group where scores help: which rows are wrong matters too.

    Wrong labels are looked for from either end of the scores.
    """
    order = np.argsort(labels.score[labels.rows], kind="stable")
    decision, label = labels.decision[labels.rows], labels.label
    (counts,) = binary_confusion(label, decision, np.zeros_like(label), n_groups=1)
    # From a cell of the table, the rows in the order in which they are wrong.
    cells = [order[(2 * label + decision)[order] == cell] for cell in (TN, FP, FN, TP)]

    def with_wrong(moved: Floats, low: bool) -> tuple[float, float]:
        """Return what the rate is worth with labels of the lowest, or highest, scores changed."""
        changed = label.copy()
        for rows, number in zip(cells, np.maximum(-moved, 0).astype(int), strict=True):
            wrong = rows[:number] if low else rows[len(rows) - number :]
            changed[wrong] = 1 - changed[wrong]
        (successes,), (sizes,) = replace(labels, label=changed).effective_counts([rate])
        return float(successes[0]), float(sizes[0])

    def possible(wrong: int, side: int) -> tuple[Floats, Floats]:
        tables = corrected(counts, wrong).astype(np.int64)
        values = side * rate(tables)
        ends = tables if np.isnan(values).any() else tables[[int(values.argmax())]]
        counted = [with_wrong(table - counts, low) for table in ends for low in (True, False)]
        successes, sizes = np.array(counted).T
        return successes, sizes

    return possible


@dataclass(frozen=True, eq=False)
class FlippedVerdict:
    """A verdict on the gap of G groups, given again with wrong labels.

    Attributes
    ----------
    large : that two groups surely differ by more than epsilon; else, that none do.
    possible : of each group, what a rate may be if a number of its labels is wrong.
    labels : (G,) how many there are.
    epsilon, risk : the gap that matters, and the probability with which the verdict may be wrong.
    limits : makes the interval of a rate from counts, as those of the verdict were made.
    made : limits that were made before, by group, number of wrong labels, and side.
    """

    large: bool
    possible: Sequence[Possible]
    labels: NDArray[np.int64]
    epsilon: float
    risk: float
    limits: Callable[..., Limits] = rate_limits
    made: dict[tuple[int, int, int], Limits] = field(default_factory=dict)

    def tipping(self, names: Sequence[str], told_apart: Sequence[int]) -> Tipping:
        """Return with how many wrong labels the verdict still holds.

        Parameters
        ----------
        told_apart : the two groups of which the verdict says that the second is ahead, if any.
        """
        groups: Sequence[int] = range(len(names))
        if self.large:
            # Without such groups, those of which the second is the most surely ahead.
            pairs = [(low, high) for low in groups for high in groups if low != high]
            sure = self._margin(told_apart, {}) > 0
            groups = told_apart if sure else max(pairs, key=lambda pair: self._margin(pair, {}))

        def one_wrong(group: int, wrong: int) -> float:
            return self._margin(groups, {group: wrong})

        def all_wrong(parts: int) -> float:
            return self._margin(groups, {g: parts * int(self.labels[g]) // _PARTS for g in groups})

        alone = []
        for g in groups:
            labels = int(self.labels[g])
            most = tipping_point(partial(one_wrong, g), labels)
            if most is not None:
                alone.append((names[g], max(most, 0) / labels))
        parts = tipping_point(all_wrong, _PARTS)
        together = None if parts is None else max(parts, 0) / _PARTS
        concerned = [names[g] for g in groups]
        return Tipping(sorted(alone, key=lambda share: share[1]), together, concerned)

    def _margin(self, groups: Sequence[int], wrong: Mapping[int, int]) -> float:
        """Return by how much the verdict holds with numbers of wrong labels in some groups."""

        def difference(first: Sequence[int], second: Sequence[int], side: int) -> Limits:
            """Return all differences where the first groups' rates may be large, or small."""
            first_limits, second_limits = (
                Limits(*map(np.concatenate, zip(*limits, strict=True)))
                for limits in (
                    [self._limits(g, wrong.get(g, 0), side) for g in first],
                    [self._limits(g, wrong.get(g, 0), -side) for g in second],
                )
            )
            return difference_limits(Limits(*(end[:, None] for end in first_limits)), second_limits)

        if self.large:
            low, high = groups
            return float(difference([high], [low], -1).lower.min()) - self.epsilon
        widest = []
        for g in wrong or groups:
            other_groups = [other for other in groups if other != g]
            widest.append(difference([g], other_groups, 1).upper.max())
            widest.append(-difference([g], other_groups, -1).lower.min())
        return self.epsilon - float(max(widest))

    def _limits(self, group: int, wrong: int, side: int) -> Limits:
        """Return the most extreme of what a group's rate may be, to one side; each is made once."""
        key = (group, wrong, side if wrong else 0)
        if key not in self.made:
            level = 1 - 2 * self.risk
            if self.large:
                level = simultaneous_level(1 - self.risk, len(self.labels))
            # Most ways to be wrong come to the same.
            successes, sizes = np.unique(self.possible[group](wrong, side), axis=1)
            limits = self.limits(successes, sizes, level=level)
            # Without a row of its denominator, a rate may be anything.
            unknown = np.isnan(limits.value)
            limits = limits._replace(value=np.where(unknown, 0.5, limits.value))
            ends = {int(place) for end in limits for place in (end.argmin(), end.argmax())}
            self.made[key] = limits.take(sorted(ends))
        return self.made[key]
