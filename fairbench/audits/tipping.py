"""How many labels would have to be wrong for a verdict not to hold.

The verdict is given again from what the labels would be if the wrong ones, whichever they are, were
put right: the same intervals, the same level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import floor, log10

import numpy as np
from numpy.typing import NDArray

from fairbench.audits.findings import LARGE, SMALL
from fairbench.audits.gaps import NEEDS_NO_LABELS, RATE_OF, Bounds, Gap
from fairbench.evaluation.group_intervals import CountIntervals
from fairbench.evaluation.groups import Counted
from fairbench.evaluation.labelled_intervals import LabelledIntervals
from fairbench.inference.few_labels.assisted import LabelledRows
from fairbench.inference.gaps import simultaneous_level
from fairbench.inference.partial.flips import Tipping, corrected, tipping_point
from fairbench.inference.rates import Limits, difference_limits, rate_limits
from fairbench.metrics.rates import FN, FP, TN, TP, Rate, binary_confusion

Floats = NDArray[np.float64]
# Of a number of wrong labels, and 1 or -1: the successes and sizes of a rate that labels then are
# worth, in ways that make it large or small.
Possible = Callable[[int, int], tuple[Floats, Floats]]

_SPLITS = 9  # ways to split wrong labels between positive and negative decisions
_PARTS = 1000  # of a share, where all groups' labels may be wrong at once


def with_tipping(gaps: Sequence[Gap], counted: Sequence[Counted], bounds: Bounds) -> list[Gap]:
    """Return gaps with how many wrong labels would undo each verdict that rests on labels.

    Nothing is said of weighted rows, of clusters, and of the papers' posterior.
    """
    by_name = {each.attribute: each for each in counted}
    return [_told(gap, by_name[gap.attribute], bounds) for gap in gaps]


def _told(gap: Gap, counted: Counted, bounds: Bounds) -> Gap:
    intervals, rate = counted.intervals, RATE_OF[gap.metric]
    if gap.assumed or gap.metric == NEEDS_NO_LABELS or gap.verdict not in (SMALL, LARGE):
        return gap
    if isinstance(intervals, LabelledIntervals):
        possible = [_of_rows(intervals.labels.of_group(g), rate) for g in gap.compared]
        labels = np.bincount(
            intervals.labels.group[intervals.labels.rows], minlength=len(counted.groups)
        )
    elif type(intervals) is CountIntervals:
        possible = [partial(_of_counts, counted.counts[g], rate) for g in gap.compared]
        labels = counted.counts.sum(axis=-1)
    else:
        return gap
    names = [counted.groups[g] for g in gap.compared]
    verdict = _Verdict(gap.verdict == LARGE, possible, labels[gap.compared], bounds)
    if isinstance(intervals, LabelledIntervals):
        verdict = replace(verdict, limits=intervals.of_counts)
    named = (gap.answer.low, gap.answer.high)
    return replace(gap, tipping=verdict.tipping(names, named))


def _of_counts(
    counts: NDArray[np.int64], rate: Rate, wrong: int, side: int
) -> tuple[Floats, Floats]:
    """Return the successes and sizes of a rate that wrong labels may hide, to either side."""
    tables = corrected(counts, wrong, splits=_SPLITS)
    return rate.successes(tables), rate.size(tables)


def _of_rows(labels: LabelledRows, rate: Rate) -> Possible:
    """Return the same where scores help: which rows are wrong matters too.

    Wrong labels are looked for from either end of the scores.
    """
    order = np.argsort(labels.score[labels.rows], kind="stable")
    decision, label = labels.decision[labels.rows], labels.label
    (counts,) = binary_confusion(label, decision, np.zeros_like(label), n_groups=1)
    # From a cell of the table, the rows in the order in which they are wrong.
    cells = [order[(2 * label + decision)[order] == cell] for cell in (TN, FP, FN, TP)]

    def possible(wrong: int, side: int) -> tuple[Floats, Floats]:
        tables = corrected(counts, wrong).astype(np.int64)
        values = side * rate(tables)
        ends = tables if np.isnan(values).any() else tables[[int(values.argmax())]]
        found = [
            _after(labels, _flipped(label, cells, table - counts, low), rate)
            for table in ends
            for low in (True, False)
        ]
        successes, sizes = np.array(found).T
        return successes, sizes

    return possible


def _flipped(
    label: NDArray[np.int64], cells: Sequence[NDArray[np.int64]], moved: Floats, low: bool
) -> NDArray[np.int64]:
    """Return labels with those of the lowest or the highest scores in each cell changed."""
    changed = label.copy()
    for cell in (TN, FP, FN, TP):
        number = int(max(-moved[cell], 0))
        rows = cells[cell][:number] if low else cells[cell][len(cells[cell]) - number :]
        changed[rows] = 1 - changed[rows]
    return changed


def _after(labels: LabelledRows, changed: NDArray[np.int64], rate: Rate) -> tuple[float, float]:
    (successes,), (sizes,) = replace(labels, label=changed).effective_counts([rate])
    return float(successes[0]), float(sizes[0])


@dataclass(frozen=True, eq=False)
class _Verdict:
    """A verdict on the gap of G groups, given again with wrong labels.

    Attributes
    ----------
    large : that two groups surely differ by more than epsilon; else, that none do.
    possible : of each group, what a rate may be if a number of its labels is wrong.
    labels : (G,) how many there are.
    limits : makes the interval of a rate from counts, as those of the verdict were made.
    found : limits that were made before, by group, number of wrong labels, and side.
    """

    large: bool
    possible: Sequence[Possible]
    labels: NDArray[np.int64]
    bounds: Bounds
    limits: Callable[..., Limits] = rate_limits
    found: dict[tuple[int, int, int], Limits] = field(default_factory=dict)

    def tipping(self, names: Sequence[str], named: tuple[int, int]) -> Tipping:
        """Return with how many wrong labels the verdict still holds.

        Parameters
        ----------
        named : the groups of which it says that the second is ahead, if it says that of any.
        """
        groups: Sequence[int] = range(len(names))
        if self.large:
            groups = named if self._margin(named, {}) > 0 else self._surest()
        alone = []
        for g in groups:
            wrong = partial(self._one_wrong, groups, g)
            most = tipping_point(wrong, int(self.labels[g]))
            if most is not None:
                alone.append((names[g], max(most, 0) / int(self.labels[g])))
        parts = tipping_point(partial(self._all_wrong, groups), _PARTS)
        together = None if parts is None else max(parts, 0) / _PARTS
        concerned = [names[g] for g in groups]
        return Tipping(sorted(alone, key=lambda each: each[1]), together, concerned)

    def _one_wrong(self, groups: Sequence[int], group: int, wrong: int) -> float:
        return self._margin(groups, {group: wrong})

    def _all_wrong(self, groups: Sequence[int], parts: int) -> float:
        return self._margin(groups, {g: parts * int(self.labels[g]) // _PARTS for g in groups})

    def _margin(self, groups: Sequence[int], wrong: dict[int, int]) -> float:
        """Return by how much the verdict holds with numbers of wrong labels in some groups."""
        epsilon = self.bounds.epsilon
        if self.large:
            low, high = groups
            largest, least = (
                self._limits(low, wrong.get(low, 0), 1),
                self._limits(high, wrong.get(high, 0), -1),
            )
            return float(_difference(least, largest).lower.min()) - epsilon
        of, every = list(groups), {}
        for side in (1, -1):
            limits = [self._limits(g, wrong.get(g, 0), side) for g in of]
            places = np.repeat(of, [len(each.value) for each in limits])
            every[side] = (places, _together(limits))
        widest = []
        for g in wrong or groups:
            for first, second in ((1, -1), (-1, 1)):
                (mine, one), (others, other) = every[first], every[second]
                gap = _difference(one.take(mine == g), other.take(others != g))
                widest.append(gap.upper.max() if first > 0 else -gap.lower.min())
        return epsilon - float(max(widest))

    def _surest(self) -> tuple[int, int]:
        """Return the groups of which the second is the most surely ahead."""
        groups = range(len(self.labels))
        pairs = [(a, b) for a in groups for b in groups if a != b]
        margins = [self._margin(pair, {}) for pair in pairs]
        return pairs[int(np.argmax(margins))]

    def _limits(self, group: int, wrong: int, side: int) -> Limits:
        """Return the most extreme of what a group's rate may be, to one side; each is made once."""
        key = (group, wrong, side if wrong else 0)
        if key not in self.found:
            self.found[key] = self._made(group, wrong, side)
        return self.found[key]

    def _made(self, group: int, wrong: int, side: int) -> Limits:
        # Most ways to be wrong come to the same.
        successes, sizes = np.unique(self.possible[group](wrong, side), axis=1)
        limits = self.limits(successes, sizes, level=self._level)
        # Without a row of its denominator, a rate may be anything.
        unknown = np.isnan(limits.value)
        limits = Limits(np.where(unknown, 0.5, limits.value), limits.lower, limits.upper)
        ends = [end for each in limits for end in (int(each.argmin()), int(each.argmax()))]
        return limits.take(sorted(set(ends)))

    @property
    def _level(self) -> float:
        if self.large:
            return simultaneous_level(1 - self.bounds.risk, len(self.labels))
        return 1 - 2 * self.bounds.risk


def _together(limits: Sequence[Limits]) -> Limits:
    return Limits(*(np.concatenate(each) for each in zip(*limits, strict=True)))


def _difference(first: Limits, second: Limits) -> Limits:
    """Return all differences of what may be true of two groups."""
    one = Limits(*(each[:, None] for each in first))
    other = Limits(*(each[None, :] for each in second))
    return difference_limits(one, other)


def _percent(share: float) -> str:
    """Return a share of at most 1 in percent with two digits, never rounded up."""
    digits = max(1 - floor(log10(100 * share)), 0)
    return f"{floor(100 * share * 10**digits + 1e-9) / 10**digits:g} %"


def unless(gap: Gap) -> str:
    """Return which labels would have to be wrong for a verdict not to hold; nothing, if none."""
    tipping = gap.tipping
    if tipping is None or not tipping.alone:
        return ""
    name, share = tipping.alone[0]
    if not share:
        return f"a single label of {name} is wrong"
    words = f"more than {_percent(share)} of the labels of {name} are wrong"
    if tipping.together and tipping.together < share:
        every = "both groups" if len(tipping.groups) == 2 else "every group"
        words += f", or more than {_percent(tipping.together)} of those of {every} at once"
    return words
