"""Alarms: a gap beyond epsilon, a gap that has changed, scores that are off in another way.

All quantities share what may go wrong: at most one watch in twenty ever gives a false alarm,
however long it goes on and no matter how often you look. A quantity's share buys one family of
intervals (:mod:`fairbench.inference.sequential.restarts`). While all of them hold, no alarm about
it is false: a gap is beyond epsilon where one of them is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fairbench.audits.findings import CHANGED, DRIFTED, PASSED
from fairbench.audits.watching.counting import NewCounts, Quantity, quantities, sums_now
from fairbench.audits.watching.state import Alarm, Milestone, WatchState
from fairbench.core.arrays import Floats
from fairbench.inference.sequential.gaps import Pair, first_beyond
from fairbench.inference.sequential.means import Sums
from fairbench.inference.sequential.restarts import log_evidence_needed


class _Comparisons:
    """All marks, and which of them are compared: every new one with every one before it.

    Attributes
    ----------
    marks : the T marks, the new ones last.
    sums : attribute -> (T, G, WIDTH) the sums at all marks.
    start, stop : (P,) positions of the earlier and the later mark of each pair.
    """

    def __init__(self, state: WatchState, new: Sequence[Milestone]) -> None:
        """Collect the marks' sums, and all pairs of marks whose later one is new."""
        self.marks = [*state.marks, *new]
        self.sums = {
            name: np.array([mark.counts[name] for mark in self.marks], float)
            for name in state.groups
        }
        stop, start = np.tril_indices(len(self.marks), -1)
        is_new = stop >= len(state.marks)
        self.start, self.stop = start[is_new], stop[is_new]

    def ends(self, quantity: Quantity) -> tuple[Floats, Floats]:
        """Return both limits (T,) of a quantity's interval, of all rows up to each mark."""
        if quantity.metric:
            limits = [mark.limits[quantity.name] for mark in self.marks]
            _, lower, upper = np.array(limits, float).T  # None becomes NaN
        else:
            (sums,) = quantity.of(self.sums[quantity.attribute])
            _, lower, upper = Sums(*sums).limits(log_evidence_needed(quantity.risk))
        return lower, upper

    def first_alarm(
        self, kind: str, quantity: Quantity, lower: Floats, upper: Floats
    ) -> list[Alarm]:
        """Return the earliest alarm, if any, of the rows since a mark alone.

        Parameters
        ----------
        kind : ``passed``, ``changed`` or ``drifted``.
        lower, upper : (T,) by mark, the limits beyond which the rows after it raise an alarm.
        """
        sums = self.sums[quantity.attribute]
        since = quantity.since(sums[self.start], sums[self.stop])
        reach = log_evidence_needed(quantity.risk, self.start + 1)
        is_outside = since.outside(lower[self.start], upper[self.start], reach)
        pairs_outside = np.flatnonzero(is_outside)
        if not len(pairs_outside):
            return []
        pair = pairs_outside[self.stop[pairs_outside].argmin()]
        limits = since.at(pair).limits(reach[pair])
        start = self.start[pair]
        mark = self.marks[self.stop[pair]]
        return [
            Alarm(
                kind=kind,
                about=quantity.name,
                row=mark.row,
                period=mark.period,
                look=mark.look,
                since=self.marks[start].row,
                lower=float(limits.lower),
                upper=float(limits.upper),
                before=None if kind == PASSED else (float(lower[start]), float(upper[start])),
            )
        ]


def find_alarms(state: WatchState, new: NewCounts, marks: Sequence[Milestone]) -> list[Alarm]:
    """Return the alarms of what is new that were not given before.

    Parameters
    ----------
    state : the state before what is new.
    new : the new events.
    marks : the marks that they add, with limits.
    """
    gaps, scores = quantities(state)
    comparisons = _Comparisons(state, marks)
    already_given = {(alarm.kind, alarm.about) for alarm in state.alarms}
    epsilon = np.full(len(comparisons.marks), state.options.epsilon)
    alarms = []
    for quantity in (*gaps, *scores):
        if quantity.metric and (PASSED, quantity.name) not in already_given:
            passed = _passed_from_start(quantity, state, new, marks[-1].look)
            passed += comparisons.first_alarm(PASSED, quantity, -epsilon, epsilon)
            alarms += sorted(passed, key=lambda alarm: alarm.row)[:1]
        kind = CHANGED if quantity.metric else DRIFTED
        if (kind, quantity.name) not in already_given:
            alarms += comparisons.first_alarm(kind, quantity, *comparisons.ends(quantity))
    return sorted(alarms, key=lambda alarm: alarm.row)


def with_limits(state: WatchState, marks: Sequence[Milestone]) -> list[Milestone]:
    """Return marks with the value and the interval of each gap, of all rows up to them."""
    gaps, _ = quantities(state)
    pairs = [
        gap.pair(np.array([mark.counts[gap.attribute] for mark in marks]), state.shares[gap.name])
        for gap in gaps
    ]
    together = Pair(*np.moveaxis(np.array(pairs), 1, 0)).limits(log_evidence_needed(gaps[0].risk))
    limits = np.moveaxis(np.array(together), 0, -1)  # (N, T, 3)
    plain = limits.round(6).astype(object)
    plain[np.isnan(limits)] = None
    return [
        replace(mark, limits={gap.name: ends for gap, ends in zip(gaps, at_mark, strict=True)})
        for mark, at_mark in zip(marks, plain.swapaxes(0, 1).tolist(), strict=True)
    ]


def _passed_from_start(gap: Quantity, state: WatchState, new: NewCounts, look: str) -> list[Alarm]:
    """Look after every row whether the gap of all rows so far is beyond epsilon."""
    before = sums_now(state)[gap.attribute]
    codes = new.codes[gap.attribute]
    sums_by_group = [
        before[group] + np.where(codes[:, None] == group, new.sums, 0.0).cumsum(axis=0)
        for group in gap.groups
    ]
    sums = np.stack(sums_by_group, axis=1)
    pair = replace(gap, groups=(0, 1)).pair(sums, state.shares[gap.name])
    reach = float(log_evidence_needed(gap.risk))
    first_rows = [
        first_beyond(direction, state.options.epsilon, reach)
        for direction in (pair, pair.swapped())
    ]
    index = min((row for row in first_rows if row is not None), default=None)
    if index is None:
        return []
    event = new.events.iloc[index]
    limits = pair.at(index).limits(reach)
    return [
        Alarm(
            kind=PASSED,
            about=gap.name,
            row=int(event["row"]),
            period=str(event["period"]),
            look=look,
            since=0,
            lower=float(limits.lower),
            upper=float(limits.upper),
        )
    ]
