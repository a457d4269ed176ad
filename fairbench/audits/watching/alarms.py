"""Alarms: a gap beyond epsilon, a gap that has changed, scores that are off in another way.

All quantities share what may go wrong: at most one watch in twenty ever gives a false alarm,
however long it goes on and no matter how often you look. A gap's share buys one family of
intervals: of all rows, and of the rows since each mark. While all of them hold, no alarm about the gap is false:
it is beyond epsilon where one of them is, and it has changed where that since a mark and that of
all rows up to the mark have nothing in common (Shekhar and Ramdas 2023, "Reducing sequential change
detection to sequential estimation").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairbench.audits.findings import CHANGED, DRIFTED, PASSED
from fairbench.audits.watching.counting import (
    GapOf,
    NewCounts,
    ScoresOf,
    counts_now,
    gaps_watched,
    scores_watched,
)
from fairbench.audits.watching.state import Alarm, Milestone, WatchState
from fairbench.inference.sequential.gaps import Pair, first_beyond, gap_limits

Floats = NDArray[np.float64]

FALSE_ALARMS = 0.05  # the share of watches that may ever give a false alarm
OF_SCORES = 0.2  # of that, what is left to scores where they are watched
FROM_START = 0.9  # of a quantity's share, what is left to the interval of all rows


def risk_of_gap(gaps: int, scores: int) -> float:
    """Return what may go wrong with one gap, of so many that are watched beside scores."""
    return FALSE_ALARMS * (1 - OF_SCORES * bool(scores)) / max(gaps, 1)


def risk_of_scores(scores: int) -> float:
    """Return what may go wrong with one group's scores, of so many that are watched."""
    return FALSE_ALARMS * OF_SCORES / max(scores, 1)


def needed(risk: float, restart: ArrayLike = 0) -> Floats:
    """Return the logarithm of the evidence that an interval's end needs.

    Parameters
    ----------
    risk : what may go wrong with the quantity.
    restart : the interval is that of the rows since the so manieth mark; 0 for all rows.
    """
    k = np.asarray(restart, float)
    later = (1 - FROM_START) / np.maximum(k * (k + 1), 1)
    return np.log(2 / (risk * np.where(k == 0, FROM_START, later)))


class _Comparisons:
    """All marks, and which of them are compared: every new one with every one before it.

    Attributes
    ----------
    counts : attribute -> sums at all marks, (T, G, WIDTH). start, stop : (P,) positions of marks.
    """

    def __init__(self, state: WatchState, new: Sequence[Milestone]) -> None:
        self.marks = [*state.marks, *new]
        self.counts = {
            name: np.array([mark.counts[name] for mark in self.marks], float)
            for name in state.groups
        }
        stop, start = np.tril_indices(len(self.marks), -1)
        is_new = stop >= len(state.marks)
        self.start, self.stop = start[is_new], stop[is_new]

    def first_alarm(
        self, kind: str, watched: GapOf | ScoresOf, lower: Floats, upper: Floats, risk: float
    ) -> list[Alarm]:
        """Return the earliest alarm, if any, of the rows since a mark alone.

        Parameters
        ----------
        lower, upper : at each mark, (T,), what the quantity is below or above if there is one.
        """
        counts = self.counts[watched.attribute]
        since = watched.since(counts[self.start], counts[self.stop] - counts[self.start])
        reach, low, high = needed(risk, self.start + 1), lower[self.start], upper[self.start]
        places = np.flatnonzero(since.outside(low, high, reach))
        if not len(places):
            return []
        place = places[self.stop[places].argmin()]
        at = since.at(place).limits(reach[place])
        before = None if kind == PASSED else (float(low[place]), float(high[place]))
        mark, row = self.marks[self.stop[place]], self.marks[self.start[place]].row
        ends = float(at.lower), float(at.upper)
        return [Alarm(kind, watched.name, mark.row, mark.period, mark.look, row, *ends, before)]


def find_alarms(
    state: WatchState, new: NewCounts, marks: Sequence[Milestone]
) -> tuple[list[Alarm], list[Milestone]]:
    """Return the alarms of what is new that were not given before, and the new marks with limits.

    Parameters
    ----------
    state : before what is new. marks : those that it adds.
    """
    gaps, scores = gaps_watched(state), scores_watched(state)
    risk, risk_of_drift = risk_of_gap(len(gaps), len(scores)), risk_of_scores(len(scores))
    given = {(alarm.kind, alarm.about) for alarm in state.alarms}
    comparisons, alarms = _Comparisons(state, marks), []
    epsilon = np.full(len(comparisons.marks), state.options.epsilon)
    limits = _gap_limits(gaps, comparisons, state, risk)
    for gap, (_, lower, upper) in zip(gaps, limits, strict=True):
        if (PASSED, gap.name) not in given:
            passed = _passed_from_start(gap, state, new, marks[-1].look, risk)
            passed += comparisons.first_alarm(PASSED, gap, -epsilon, epsilon, risk)
            alarms += sorted(passed, key=lambda alarm: alarm.row)[:1]
        if (CHANGED, gap.name) not in given:
            alarms += comparisons.first_alarm(CHANGED, gap, lower, upper, risk)
    for watched in scores:
        if (DRIFTED, watched.name) not in given:
            sums = watched.sums(comparisons.counts[watched.attribute])
            _, lower, upper = sums.limits(needed(risk_of_drift))
            alarms += comparisons.first_alarm(DRIFTED, watched, lower, upper, risk_of_drift)
    with_limits = [
        replace(mark, limits={gap.name: _plain(limits[i, :, t]) for i, gap in enumerate(gaps)})
        for t, mark in enumerate(marks, start=len(state.marks))
    ]
    return sorted(alarms, key=lambda alarm: alarm.row), with_limits


def _plain(limits: Floats) -> list[float | None]:
    return [None if np.isnan(end) else round(float(end), 6) for end in limits]


def _gap_limits(
    gaps: Sequence[GapOf], comparisons: _Comparisons, state: WatchState, risk: float
) -> Floats:
    """Return value, lower and upper end of each gap, of all rows up to each mark, (N, 3, T)."""
    old = len(state.marks)
    before = [[mark.limits[gap.name] for mark in state.marks] for gap in gaps]
    pairs = [
        gap.pair(comparisons.counts[gap.attribute][old:], state.shares[gap.name]) for gap in gaps
    ]
    now = np.stack(gap_limits(Pair(*np.moveaxis(np.array(pairs), 1, 0)), needed(risk)), axis=1)
    known = np.array(before, float).reshape(len(gaps), old, 3)  # None becomes NaN
    return np.concatenate([known.swapaxes(1, 2), now], axis=2)


def _passed_from_start(
    gap: GapOf, state: WatchState, new: NewCounts, look: str, risk: float
) -> list[Alarm]:
    """Look after every row whether the gap of all rows so far is beyond epsilon."""
    before, codes = counts_now(state)[gap.attribute], new.codes[gap.attribute]
    sides = [
        before[group] + np.where(codes[:, None] == group, new.sums, 0.0).cumsum(axis=0)
        for group in (gap.first, gap.second)
    ]
    two = replace(gap, first=0, second=1)
    pair, reach = two.pair(np.stack(sides, axis=1), state.shares[gap.name]), float(needed(risk))
    places = [first_beyond(side, state.options.epsilon, reach) for side in (pair, pair.swapped())]
    place = min((place for place in places if place is not None), default=None)
    if place is None:
        return []
    row, period, at = int(new.row[place]), str(new.period[place]), pair.at(place).limits(reach)
    return [Alarm(PASSED, gap.name, row, period, look, 0, float(at.lower), float(at.upper))]
