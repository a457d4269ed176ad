"""How many labels would have to be wrong for a verdict not to hold.

The wrong labels may be any. The verdict is computed again from the corrected labels, with the same
intervals at the same level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import floor, log10

import numpy as np

from fairbench.audits.findings import LARGE, SMALL
from fairbench.audits.gaps import NEEDS_NO_LABELS, Bounds, Gap
from fairbench.evaluation.group_intervals import CountIntervals
from fairbench.evaluation.groups import GroupCounts
from fairbench.evaluation.labelled_intervals import LabelledIntervals
from fairbench.inference.partial.flips import FlippedVerdict, Tipping, wrong_counts, wrong_rows
from fairbench.inference.rates import rate_limits


def with_tipping(gaps: Sequence[Gap], counted: Sequence[GroupCounts], bounds: Bounds) -> list[Gap]:
    """Return gaps with how many wrong labels would undo each verdict that rests on labels.

    Gaps of weighted or clustered rows, and those of the papers' posterior, stay as they are.
    """
    by_name = {of_groups.attribute: of_groups for of_groups in counted}
    return [
        replace(gap, tipping=_tipping(gap, by_name[gap.attribute], bounds))
        if gap.verdict in (SMALL, LARGE) and not gap.assumed and gap.metric != NEEDS_NO_LABELS
        else gap
        for gap in gaps
    ]


def _tipping(gap: Gap, counted: GroupCounts, bounds: Bounds) -> Tipping | None:
    """Return how many wrong labels would undo a verdict; None where intervals do not allow it."""
    intervals = counted.intervals
    limits = rate_limits
    if isinstance(intervals, LabelledIntervals):
        limits = intervals.of_counts
        possible = [
            wrong_rows(intervals.labels.of_group(group), gap.rate) for group in gap.compared
        ]
    elif type(intervals) is CountIntervals:
        possible = [wrong_counts(counted.counts[group], gap.rate) for group in gap.compared]
    else:
        return None
    labels = np.asarray(counted.counts).sum(axis=-1)[gap.compared]
    verdict = FlippedVerdict(
        gap.verdict == LARGE, possible, labels, bounds.epsilon, bounds.risk, limits
    )
    return verdict.tipping(gap.names, gap.answer.named[::-1])


def tipping_clause(tipping: Tipping | None) -> str:
    """Return the clause after "unless": which labels would have to be wrong to undo a verdict.

    Empty where no number of wrong labels would undo it.
    """
    if tipping is None or not tipping.alone:
        return ""
    name, share = tipping.alone[0]
    if not share:
        return f"a single label of {name} is wrong"
    clause = f"more than {_percent(share)} of the labels of {name} are wrong"
    if tipping.together and tipping.together < share:
        every = "both groups" if len(tipping.groups) == 2 else "every group"
        clause += f", or more than {_percent(tipping.together)} of those of {every} at once"
    return clause


def _percent(share: float) -> str:
    """Return a share of at most 1 in percent with two digits, never rounded up."""
    digits = max(1 - floor(log10(100 * share)), 0)
    return f"{floor(100 * share * 10**digits + 1e-9) / 10**digits:g} %"
