"""Alarms: a gap beyond epsilon, a gap that has changed, scores that are off in another way.

All quantities share what may go wrong: at most one watch in twenty ever gives a false alarm,
however long it goes on and however often is looked. A gap's share buys one family of intervals: of
all rows, and of the rows since each mark. While all of them hold, no alarm about the gap is false:
it is beyond epsilon where one of them is, and it has changed where that since a mark and that of
all rows up to the mark have nothing in common (Shekhar and Ramdas 2023, "Reducing sequential change
detection to sequential estimation").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairbench.audits.watching.counting import (
    Events,
    GapOf,
    ScoresOf,
    counts_now,
    gaps_watched,
    scores_watched,
    weights,
)
from fairbench.audits.watching.state import Alarm, Milestone, WatchState
from fairbench.inference.sequential.gaps import Pair, first_beyond, gap_limits, reaches
from fairbench.inference.sequential.means import Sums, log_evidence_above, mean_sequence

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

FALSE_ALARMS = 0.05  # the share of watches that may ever give a false alarm
OF_SCORES = 0.2  # of that, what is left to scores where they are watched
FROM_START = 0.9  # of a quantity's share, what is left to the interval of all rows
PASSED, CHANGED, DRIFTED = "passed", "changed", "drifted"


@dataclass(frozen=True)
class Budget:
    """What may go wrong, shared between what is watched."""

    gaps: int
    scores: int

    @classmethod
    def of(cls, state: WatchState) -> Budget:
        """Return that of a watch."""
        return cls(len(gaps_watched(state)), len(scores_watched(state)))

    @property
    def of_gap(self) -> float:
        """What may go wrong with one gap."""
        return FALSE_ALARMS * (1 - OF_SCORES * bool(self.scores)) / max(self.gaps, 1)

    @property
    def of_scores(self) -> float:
        """What may go wrong with one group's scores."""
        return FALSE_ALARMS * OF_SCORES / max(self.scores, 1)


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


def find_alarms(
    state: WatchState, events: Events, marks: Sequence[Milestone]
) -> tuple[list[Alarm], list[Milestone]]:
    """Return the alarms of new events that were not given before, and the new marks with limits.

    Parameters
    ----------
    state : before the events. marks : those the events add.
    """
    budget, alarms = Budget.of(state), []
    given = {(each.kind, each.about) for each in state.alarms}
    limits: list[dict[str, list[float | None]]] = [{} for _ in marks]
    grids = {name: _Grid.of(state, marks, name) for name in state.groups}
    watched = gaps_watched(state)
    for gap, found in zip(watched, _gap_limits(watched, grids, state, budget.of_gap), strict=True):
        grid = grids[gap.attribute]
        for at, row in zip(limits, found[len(state.marks) :], strict=True):
            at[gap.name] = [None if np.isnan(each) else round(float(each), 6) for each in row]
        alarms += list(_of_gap(gap, grid, state, events, found, budget.of_gap, given))
    for scores in scores_watched(state):
        if (DRIFTED, scores.name) not in given:
            alarms += list(_of_scores(scores, grids[scores.attribute], budget.of_scores))
    with_limits = [replace(each, limits=at) for each, at in zip(marks, limits, strict=True)]
    return sorted(alarms, key=lambda each: each.row), with_limits


@dataclass(frozen=True, eq=False)
class _Grid:
    """Sums at all marks (T, G, WIDTH), and which of them are compared: from one mark to another.

    Attributes
    ----------
    start, stop : positions of marks; every new one with every one before it.
    """

    marks: Sequence[Milestone]
    counts: Floats
    start: NDArray[np.int64]
    stop: NDArray[np.int64]

    @classmethod
    def of(cls, state: WatchState, marks: Sequence[Milestone], attribute: str) -> _Grid:
        every = [*state.marks, *marks]
        counts = np.array([each.counts[attribute] for each in every], float)
        old = len(state.marks)
        stop, start = np.tril_indices(len(every), -1)
        return cls(every, counts, start[stop >= old], stop[stop >= old])

    @property
    def since(self) -> Floats:
        """The sums from one mark to the other."""
        return self.counts[self.stop] - self.counts[self.start]

    def first(self, reached: Bools) -> int | None:
        """Return the earliest of the comparisons that reach what they need."""
        places = np.flatnonzero(reached)
        return int(places[self.stop[places].argmin()]) if len(places) else None

    def alarm(
        self, kind: str, about: str, place: int, ends: tuple[float, float],
        before: tuple[float, float] | None = None,
    ) -> Alarm:  # fmt: skip
        """Return the alarm of a comparison."""
        mark, since = self.marks[self.stop[place]], self.marks[self.start[place]].row
        return Alarm(kind, about, mark.row, mark.period, mark.look, since, *ends, before)


def _gap_limits(
    gaps: Sequence[GapOf], grids: Mapping[str, _Grid], state: WatchState, risk: float
) -> Floats:
    """Return value, lower and upper end of each gap, of all rows up to each mark, (N, T, 3)."""
    known = [[mark.limits[gap.name] for mark in state.marks] for gap in gaps]
    old = np.array(known, float).reshape(len(gaps), -1, 3)  # None becomes NaN
    pairs = [
        gap.pair(grids[gap.attribute].counts[len(state.marks) :], state.shares[gap.name])
        for gap in gaps
    ]
    every = [np.stack(np.broadcast_arrays(*sides)) for sides in zip(*pairs, strict=True)]
    every[-1] = every[-1].reshape(len(gaps), 1)
    limits = np.stack(gap_limits(Pair(*every), needed(risk)), axis=-1)
    return np.concatenate([old, limits], axis=1)


def _of_gap(
    gap: GapOf, grid: _Grid, state: WatchState, events: Events, limits: Floats, risk: float,
    given: set[tuple[str, str]],
) -> Iterator[Alarm]:  # fmt: skip
    if (PASSED, gap.name) not in given:
        both = (_from_start(gap, state, events, risk, grid), _since_mark(gap, grid, state, risk))
        found = [each for each in both if each is not None]
        yield from sorted(found, key=lambda each: each.row)[:1]
    if (CHANGED, gap.name) not in given:
        yield from _changed(gap, grid, limits, risk)


def _from_start(
    gap: GapOf, state: WatchState, events: Events, risk: float, grid: _Grid
) -> Alarm | None:
    """Look after every row whether the gap of all rows so far is beyond epsilon."""
    pair, epsilon = _streamed(gap, state, events), state.options.epsilon
    reach = float(needed(risk))
    found = [first_beyond(each, epsilon, reach) for each in (pair, pair.swapped())]
    at = min((each for each in found if each is not None), default=None)
    if at is None:
        return None
    here = Pair(*[*(np.asarray(each)[at] for each in pair[:4]), pair.share])
    _, lower, upper = map(float, gap_limits(here, reach))
    look = grid.marks[-1].look
    row, period = int(events.row[at]), str(events.period[at])
    return Alarm(PASSED, gap.name, row, period, look, 0, lower, upper)


def _streamed(gap: GapOf, state: WatchState, events: Events) -> Pair:
    """Return a gap's counts after each event."""
    before, codes = counts_now(state)[gap.attribute], events.codes[gap.attribute]
    sides = []
    for group in (gap.first, gap.second):
        for weight in weights(gap.metric):
            added = np.where(codes == group, events.sums @ weight, 0.0)
            sides.append(before[group] @ weight + np.cumsum(added))
    return Pair(*[*sides, np.asarray(state.shares[gap.name])])


def _since(gap: GapOf, grid: _Grid) -> Pair:
    """Return a gap's counts since each mark; the groups' shares are those up to it."""
    at = gap.pair(grid.counts[grid.start], 0.5)
    first, second = np.asarray(at.first_size), np.asarray(at.second_size)
    return gap.pair(grid.since, (first + 1) / (first + second + 2))


def _since_mark(gap: GapOf, grid: _Grid, state: WatchState, risk: float) -> Alarm | None:
    pair, reach = _since(gap, grid), needed(risk, grid.start + 1)
    epsilon = np.full(len(grid.start), state.options.epsilon)
    place = grid.first(reaches(pair, epsilon, reach) | reaches(pair.swapped(), epsilon, reach))
    return None if place is None else grid.alarm(PASSED, gap.name, place, _ends(pair, reach, place))


def _changed(gap: GapOf, grid: _Grid, limits: Floats, risk: float) -> Iterator[Alarm]:
    pair, reach = _since(gap, grid), needed(risk, grid.start + 1)
    _, lower, upper = limits[grid.start].T
    place = grid.first(reaches(pair, upper, reach) | reaches(pair.swapped(), -lower, reach))
    if place is not None:
        before = (float(lower[place]), float(upper[place]))
        yield grid.alarm(CHANGED, gap.name, place, _ends(pair, reach, place), before)


def _ends(pair: Pair, reach: Floats, place: int) -> tuple[float, float]:
    here = Pair(*(np.asarray(each)[place] for each in pair))
    _, lower, upper = map(float, gap_limits(here, reach[place]))
    return lower, upper


def _of_scores(scores: ScoresOf, grid: _Grid, risk: float) -> Iterator[Alarm]:
    """Look whether labels are off from scores by another amount since a mark than up to it."""
    sums, reach = scores.sums(grid.since), needed(risk, grid.start + 1)
    _, lower, upper = mean_sequence(scores.sums(grid.counts), needed(risk))
    mirrored = Sums(sums.size, -np.asarray(sums.total), sums.squares)
    above = log_evidence_above(sums, upper[grid.start]) >= reach
    below = log_evidence_above(mirrored, -lower[grid.start]) >= reach
    place = grid.first(above | below)
    if place is not None:
        here = Sums(*(np.asarray(each)[place] for each in sums))
        _, low, high = map(float, mean_sequence(here, reach[place]))
        at = grid.start[place]
        before = (float(lower[at]), float(upper[at]))
        yield grid.alarm(DRIFTED, scores.name, place, (low, high), before)
