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

# Whether wrong labels become 1 (1) or 0 (-1), at positive decisions and at negative ones.
_DIRECTIONS = ((1, 1), (1, -1), (-1, 1), (-1, -1))


def correct_counts(counts: ArrayLike, wrong: ArrayLike, *, splits: int = 2) -> Floats:
    """Return the confusion counts that could be true if so many labels are wrong.

    Parameters
    ----------
    counts : (..., 4) counts of one group, TN, FP, FN, TP; or shares of them.
    wrong : (...) the largest number of wrong labels, or the largest share of all.
    splits : in how many ways the wrong labels are split between rows decided positive and negative;
        with more than two, labels are counted and not divided.

    Returns
    -------
    (4 * splits, ..., 4) with two splits, the corners of what is possible: every other table is a
    mean of these and of the one that is given.
    """
    table, most_wrong = np.asarray(counts, float), np.asarray(wrong, float)
    among_positive = np.multiply.outer(np.linspace(0, 1, splits), most_wrong)
    among_positive = among_positive if splits == 2 else np.floor(among_positive)
    return np.concatenate(
        [_change_labels(table, most_wrong, way, among_positive) for way in _DIRECTIONS]
    )


def _change_labels(
    table: Floats, most_wrong: Floats, directions: tuple[int, int], among_positive: Floats
) -> Floats:
    """Return counts with labels changed, `among_positive` of them at positive decisions.

    Parameters
    ----------
    table : (..., 4) the counts.
    most_wrong : (...) how many labels are changed, as far as there are such rows.
    directions : whether labels become 1 (1) or 0 (-1), at positive and at negative decisions.
    among_positive : (splits, ...) how many of the changed labels are at positive decisions.
    """
    positive_room = table[..., FP if directions[0] > 0 else TP]
    negative_room = table[..., TN if directions[1] > 0 else FN]
    n_negative = np.minimum(most_wrong - np.minimum(among_positive, positive_room), negative_room)
    n_positive = np.minimum(most_wrong - n_negative, positive_room)
    positive, negative = directions[0] * n_positive, directions[1] * n_negative
    changes = {TN: -negative, FP: -positive, FN: negative, TP: positive}
    return np.stack([table[..., cell] + changes[cell] for cell in (TN, FP, FN, TP)], axis=-1)


def flip_bounds(rate: Rate, counts: ArrayLike, wrong: ArrayLike) -> tuple[Floats, Floats]:
    """Return the least and the largest value that a rate may have if so many labels are wrong.

    Parameters
    ----------
    rate : the rate.
    counts : (..., 4) TN, FP, FN, TP, or shares.
    wrong : (...) the largest number of wrong labels, or the largest share.

    Notes
    -----
    A rate is a ratio of two sums of cells, so it is largest at a corner of what is possible
    (linear-fractional programming; Charnes & Cooper 1962). NaN where no table has the rate.
    """
    values = rate(correct_counts(counts, wrong))
    undefined = np.isnan(values).all(axis=0)
    lower = np.where(undefined, np.nan, np.fmin.reduce(values, axis=0))
    upper = np.where(undefined, np.nan, np.fmax.reduce(values, axis=0))
    return lower, upper


@dataclass(frozen=True)
class Tipping:
    """With how many wrong labels a verdict still holds, whichever labels they are.

    Attributes
    ----------
    alone : for each group whose labels can undo the verdict, its name and the largest share of its
        labels that may be wrong, if all other groups' labels are right; the smallest share first.
    together : the largest share of the labels of every group that may be wrong at once; None where
        no share undoes the verdict.
    groups : the groups that the verdict is about; if one is ahead, it is the second.
    """

    alone: Sequence[tuple[str, float]]
    together: float | None
    groups: Sequence[str]


def tipping_point(margin: Callable[[int], float], labels: int) -> int | None:
    """Return the largest number of wrong labels with which a verdict still holds.

    Parameters
    ----------
    margin : by how much the verdict holds with a number of wrong labels, whichever labels they
        are; at 0 and under, it does not. More wrong labels never make it larger.
    labels : how many labels there are.

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
    low_margin, high_margin = margin(low), margin(high)
    if low_margin <= 0:
        return -1
    if high_margin > 0:
        return None
    previous_side = 0
    while high - low > max(1, low // 50):
        root = low + low_margin / (low_margin - high_margin) * (high - low)
        middle = min(max(round(root), low + 1), high - 1)
        middle_margin = margin(middle)
        side = 1 if middle_margin > 0 else -1
        # Illinois: an end that stays twice in a row has its margin halved.
        if side > 0:
            low, low_margin = middle, middle_margin
            if previous_side == side:
                high_margin = high_margin / 2
        else:
            high, high_margin = middle, middle_margin
            if previous_side == side:
                low_margin = low_margin / 2
        previous_side = side
    return low


# The function of a number of wrong labels and a side (1 for a large rate, -1 for a small one) that
# returns the effective successes and sizes of a rate in each way to be wrong that is tried.
PossibleCounts: TypeAlias = Callable[[int, int], tuple[Floats, Floats]]
_SHARE_STEPS = 1000  # of 0 to 1, where a share of all groups' labels is wrong
_SPLITS = 9  # ways to split wrong labels between positive and negative decisions


def wrong_counts(counts: NDArray[np.int64], rate: Rate) -> PossibleCounts:
    """Return the counts that a rate of one group may have, where all its rows have labels.

    Parameters
    ----------
    counts : (4,) the confusion counts of the group.
    rate : the rate.
    """

    def possible(wrong: int, side: int) -> tuple[Floats, Floats]:
        tables = correct_counts(counts, wrong, splits=_SPLITS)
        return rate.successes(tables), rate.size(tables)

    return possible


def wrong_rows(labels: LabelledRows, rate: Rate) -> PossibleCounts:
    """Like :func:`wrong_counts`, but also chooses which rows are wrong, by their scores.

    Effective counts from few labels and scores depend on which rows are wrong. In every cell of the
    confusion table the rows of the lowest scores are tried, and those of the highest.
    """
    by_score = np.argsort(labels.score[labels.rows], kind="stable")
    decision, label = labels.decision[labels.rows], labels.label
    (counts,) = binary_confusion(label, decision, np.zeros_like(label), n_groups=1)
    cell_of_row = 2 * label + decision
    rows_of_cell = [by_score[cell_of_row[by_score] == cell] for cell in (TN, FP, FN, TP)]

    def effective_counts(change: Floats, lowest: bool) -> tuple[float, float]:
        """Return effective counts with labels changed, of the lowest or of the highest scores."""
        changed = label.copy()
        n_changed = np.maximum(-change, 0).astype(int)
        for rows, number in zip(rows_of_cell, n_changed, strict=True):
            wrong = rows[:number] if lowest else rows[len(rows) - number :]
            changed[wrong] = 1 - changed[wrong]
        (successes,), (sizes,) = replace(labels, label=changed).effective_counts([rate])
        return float(successes[0]), float(sizes[0])

    def possible(wrong: int, side: int) -> tuple[Floats, Floats]:
        tables = correct_counts(counts, wrong).astype(np.int64)
        values = side * rate(tables)
        tried = tables if np.isnan(values).any() else tables[[int(values.argmax())]]
        found = [
            effective_counts(table - counts, lowest) for table in tried for lowest in (True, False)
        ]
        successes, sizes = np.array(found).T
        return successes, sizes

    return possible


@dataclass(frozen=True, eq=False)
class FlippedVerdict:
    """A verdict on the gap of G groups, repeated with wrong labels.

    Attributes
    ----------
    large : whether the verdict is that two groups surely differ by more than epsilon; otherwise it
        is that none do.
    possible : for each group, the counts that its rate may have if a number of labels is wrong.
    labels : (G,) numbers of labels.
    epsilon : the gap that matters.
    risk : the probability with which the verdict may be wrong.
    limits : makes the interval of a rate from counts, as those of the verdict were made.
    cache : limits that were made before, by group, number of wrong labels, and side.
    """

    large: bool
    possible: Sequence[PossibleCounts]
    labels: NDArray[np.int64]
    epsilon: float
    risk: float
    limits: Callable[..., Limits] = rate_limits
    cache: dict[tuple[int, int, int], Limits] = field(default_factory=dict)

    def tipping(self, names: Sequence[str], told_apart: Sequence[int]) -> Tipping:
        """Return with how many wrong labels the verdict still holds.

        Parameters
        ----------
        names : (G,) the names of the groups.
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

        def all_wrong(steps: int) -> float:
            wrong = {g: steps * int(self.labels[g]) // _SHARE_STEPS for g in groups}
            return self._margin(groups, wrong)

        alone = []
        for g in groups:
            n_labels = int(self.labels[g])
            most_wrong = tipping_point(partial(one_wrong, g), n_labels)
            if most_wrong is not None:
                alone.append((names[g], max(most_wrong, 0) / n_labels))
        steps = tipping_point(all_wrong, _SHARE_STEPS)
        return Tipping(
            alone=sorted(alone, key=lambda name_and_share: name_and_share[1]),
            together=None if steps is None else max(steps, 0) / _SHARE_STEPS,
            groups=[names[g] for g in groups],
        )

    def _margin(self, groups: Sequence[int], wrong: Mapping[int, int]) -> float:
        """Return by how much the verdict on some groups holds with wrong labels.

        Parameters
        ----------
        groups : the groups that the verdict is about.
        wrong : how many labels of a group are wrong; groups that are left out have none.
        """

        def limits_of(some_groups: Sequence[int], side: int) -> Limits:
            each = [self._limits(g, wrong.get(g, 0), side) for g in some_groups]
            return Limits(*map(np.concatenate, zip(*each, strict=True)))

        def difference(first: Sequence[int], second: Sequence[int], side: int) -> Limits:
            """Return all differences with the first groups' rates large (1) or small (-1)."""
            first_limits, second_limits = limits_of(first, side), limits_of(second, -side)
            first_column = Limits(*(array[:, None] for array in first_limits))
            return difference_limits(first_column, second_limits)

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
        """Return the extreme limits of a group's rate with wrong labels, to one side; cached."""
        key = (group, wrong, side if wrong else 0)
        if key not in self.cache:
            level = 1 - 2 * self.risk
            if self.large:
                level = simultaneous_level(1 - self.risk, len(self.labels))
            # Most ways to be wrong come to the same.
            successes, sizes = np.unique(self.possible[group](wrong, side), axis=1)
            limits = self.limits(successes, sizes, level=level)
            # Without a row of its denominator, a rate may be anything.
            unknown = np.isnan(limits.value)
            limits = limits._replace(value=np.where(unknown, 0.5, limits.value))
            extremes = {
                int(index) for array in limits for index in (array.argmin(), array.argmax())
            }
            self.cache[key] = limits.take(sorted(extremes))
        return self.cache[key]
