"""What a watch knows by now, and how late its alarms may be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fairbench.audits.findings import LARGE, OPEN, PASSED, SMALL, WATCHED, Finding
from fairbench.audits.gaps import RATE_NAMES
from fairbench.audits.watching.alarms import (
    FALSE_ALARMS,
    needed,
    risk_of_gap,
    risk_of_scores,
)
from fairbench.audits.watching.counting import (
    GapOf,
    counts_now,
    gaps_watched,
    scores_watched,
    weights,
)
from fairbench.audits.watching.state import Alarm, WatchState
from fairbench.core.formats import count
from fairbench.inference.sequential.gaps import rows_until_beyond
from fairbench.inference.sequential.means import labels_until_above, rate_sequence

Floats = NDArray[np.float64]
BEYOND = 0.05  # how much a gap or scores go further in what is said of how late an alarm may be
NEVER = float("inf")


@dataclass(frozen=True)
class GapNow:
    """A gap of all rows so far, and the rows until alarms about it."""

    gap: str
    attribute: str
    metric: str
    value: float  # the second group's rate less the first's
    lower: float
    upper: float
    verdict: str  # of the interval, and ``large`` after an alarm
    first: float = NEVER  # rows until one 0.05 beyond epsilon from the first row on is found
    next: float = NEVER  # further rows until one is found that begins now
    change: float = NEVER  # further rows until a change by 0.05 is found


@dataclass(frozen=True)
class RateNow:
    """A rate of a group of all rows so far."""

    attribute: str
    group: str
    metric: str
    rows: float
    value: float
    lower: float
    upper: float


@dataclass(frozen=True)
class ScoresNow:
    """How far labels are from a group's scores on average, and rows until a drift by 0.05."""

    scores: str
    attribute: str
    labels: float
    value: float
    lower: float
    upper: float
    drift: float


def gaps_now(state: WatchState) -> list[GapNow]:
    """Return every gap that is watched."""
    counts, gaps, scores = counts_now(state), gaps_watched(state), scores_watched(state)
    risk = risk_of_gap(len(gaps), len(scores))
    return [_gap(gap, counts[gap.attribute], state, risk) for gap in gaps]


def findings_of(state: WatchState, gaps: Sequence[GapNow]) -> list[Finding]:
    """Return what is said: every alarm so far, then the gaps that gave none.

    Alarms share an error rate over all looks; the intervals of gaps hold together at every look.
    """
    alarms = [alarm_finding(alarm, state) for alarm in state.alarms]
    others = [
        Finding(
            WATCHED,
            gap.attribute,
            RATE_NAMES[gap.metric],
            gap.verdict,
            (gap.gap,),
            value=gap.value,
            lower=gap.lower,
            upper=gap.upper,
            bound=state.options.epsilon,
            n=state.rows,
            scope=_of_rows(0),
        )
        for gap in gaps
        if gap.verdict != LARGE
    ]
    return alarms + others


def alarm_finding(alarm: Alarm, state: WatchState) -> Finding:
    """Return what an alarm says."""
    when = f"row {count(alarm.row)}" + (f", {alarm.period}" if alarm.period else "")
    return Finding(
        alarm.kind,
        "",
        alarm.about,
        LARGE,
        lower=alarm.lower,
        upper=alarm.upper,
        values=alarm.before or (),
        bound=state.options.epsilon,
        n=alarm.row,
        scope=f"{_of_rows(alarm.since)}, found at {when}",
    )


def _of_rows(since: int) -> str:
    return f"of the rows after row {count(since)}" if since else "of all rows so far"


def _gap(gap: GapOf, counts: Floats, state: WatchState, risk: float) -> GapNow:
    last, epsilon = state.marks[-1], state.options.epsilon
    value, lower, upper = (np.nan if end is None else end for end in last.limits[gap.name])
    small = -epsilon < lower and upper < epsilon
    alarmed = any((alarm.kind, alarm.about) == (PASSED, gap.name) for alarm in state.alarms)
    verdict = LARGE if alarmed else SMALL if small else OPEN
    now = GapNow(gap.name, gap.attribute, gap.metric, value, lower, upper, verdict)
    first, size, second, other = (float(np.asarray(part)) for part in gap.pair(counts, 0.5)[:4])
    if not size or not other:
        return now
    low, high = sorted((first / size, second / other))
    share, rows = size / (size + other), last.row / (size + other)

    def until(distance: float, bound: float, marks: int) -> float:
        """Return the rows until rates of a distance, about there, are surely beyond a bound."""
        start, reach = max(min(low, 1 - distance), 0.0), float(needed(risk, marks))
        return rows * rows_until_beyond(start, start + distance, share, bound, reach)

    far, marks = epsilon + BEYOND, len(state.marks)
    # What is found sooner is a gap that grows; of the mirror image the upper end is the lower one.
    end = upper if second / other >= first / size else -lower
    return replace(
        now,
        first=until(far, epsilon, 0),
        next=until(far, epsilon, marks),
        change=until(high - low + BEYOND, end, marks),
    )


def rates_now(state: WatchState) -> Iterator[RateNow]:
    """Yield every rate of every group; all intervals hold together."""
    number = sum(map(len, state.groups.values())) * len(state.options.watched)
    for name, counts in counts_now(state).items():
        for metric in state.options.watched:
            successes, size = (counts @ weights(metric)).T
            limits = rate_sequence(successes, size, np.log(number / FALSE_ALARMS))
            for place, group in enumerate(state.groups[name]):
                yield RateNow(name, group, metric, float(size[place]), *limits.at(place))


def scores_now(state: WatchState) -> Iterator[ScoresNow]:
    """Yield the scores of every group."""
    every, counts, marks = scores_watched(state), counts_now(state), state.marks
    risk = risk_of_scores(len(every))
    for scores in every:
        sums, drift = scores.sums(counts[scores.attribute]), NEVER
        value, lower, upper = map(float, sums.limits(needed(risk)))
        size, squares = float(np.asarray(sums.size)), float(np.asarray(sums.squares))
        if size:
            reach = float(needed(risk, len(marks)))
            labels = labels_until_above(value + BEYOND, squares / size, upper, reach)
            drift = labels * marks[-1].row / size
        yield ScoresNow(scores.name, scores.attribute, size, value, lower, upper, drift)
