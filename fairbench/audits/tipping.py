"""How many labels would have to be wrong for a verdict not to hold.

The verdict is given again from what the labels would be if the wrong ones, whichever they are, were
put right: the same intervals, the same level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
from fairbench.inference.partial.flips import FlippedVerdict, Possible, Tipping, corrected
from fairbench.inference.rates import rate_limits
from fairbench.metrics.rates import FN, FP, TN, TP, Rate, binary_confusion

Floats = NDArray[np.float64]
_SPLITS = 9  # ways to split wrong labels between positive and negative decisions


def with_tipping(gaps: Sequence[Gap], counted: Sequence[Counted], bounds: Bounds) -> list[Gap]:
    """Return gaps with how many wrong labels would undo each verdict that rests on labels.

    Nothing is said of weighted rows, of clusters, and of the papers' posterior.
    """
    by_name = {of_groups.attribute: of_groups for of_groups in counted}
    return [
        replace(gap, tipping=_tipping(gap, by_name[gap.attribute], bounds))
        if gap.verdict in (SMALL, LARGE) and not gap.assumed and gap.metric != NEEDS_NO_LABELS
        else gap
        for gap in gaps
    ]


def _tipping(gap: Gap, counted: Counted, bounds: Bounds) -> Tipping | None:
    intervals, rate, possible = counted.intervals, RATE_OF[gap.metric], list[Possible]()
    labels, limits = np.asarray(counted.counts).sum(axis=-1), rate_limits
    if isinstance(intervals, LabelledIntervals):
        limits = intervals.of_counts
        possible = [_of_rows(intervals.labels.of_group(g), rate) for g in gap.compared]
    elif type(intervals) is CountIntervals:
        possible = [partial(_of_counts, counted.counts[g], rate) for g in gap.compared]
    if not possible:
        return None
    verdict = FlippedVerdict(
        gap.verdict == LARGE, possible, labels[gap.compared], bounds.epsilon, bounds.risk, limits
    )
    return verdict.tipping(gap.names, (gap.answer.low, gap.answer.high))


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
        found = [with_wrong(table - counts, low) for table in ends for low in (True, False)]
        successes, sizes = np.array(found).T
        return successes, sizes

    return possible


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
