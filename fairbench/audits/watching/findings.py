"""What a watch knows by now, how late its alarms may be, and both in whole sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.audits.findings import LARGE, OPEN, SMALL
from fairbench.audits.gaps import RATE_NAMES
from fairbench.audits.watching.alarms import (
    CHANGED,
    FALSE_ALARMS,
    PASSED,
    Budget,
    needed,
)
from fairbench.audits.watching.counting import (
    BLOCK,
    GapOf,
    ScoresOf,
    counts_now,
    gaps_watched,
    scores_watched,
    weights,
)
from fairbench.audits.watching.state import Alarm, WatchState
from fairbench.core.formats import count, interval, signed
from fairbench.inference.sequential.gaps import rows_until_beyond
from fairbench.inference.sequential.means import (
    Sums,
    log_evidence_above,
    mean_sequence,
    rate_sequence,
)

Floats = NDArray[np.float64]
BEYOND = 0.05  # how much a gap or scores go further in what is said of how late an alarm may be
NEVER = float("inf")


@dataclass(frozen=True)
class GapNow:
    """A gap of all rows so far, and the rows until alarms about it.

    Attributes
    ----------
    value, lower, upper : the second group's rate less the first's.
    verdict : of the interval, and ``large`` after an alarm.
    first : rows in which a gap of 0.05 beyond epsilon would have been found from the first row on.
    next : further rows until one is found that begins now. change : until a change by 0.05 is.
    """

    gap: GapOf
    value: float
    lower: float
    upper: float
    verdict: str
    first: float
    next: float
    change: float


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

    scores: ScoresOf
    labels: float
    value: float
    lower: float
    upper: float
    drift: float


@dataclass(frozen=True, eq=False)
class Findings:
    """What a watch knows by now.

    Attributes
    ----------
    new : the rows and labels that the last look added; none where there was nothing new.
    """

    state: WatchState
    new: tuple[int, int]
    gaps: Sequence[GapNow]
    rates: Sequence[RateNow]
    scores: Sequence[ScoresNow]


def findings(state: WatchState, before: tuple[int, int]) -> Findings:
    """Return what a state knows.

    Parameters
    ----------
    before : the rows and labels before the last look.
    """
    counts, budget = counts_now(state), Budget.of(state)
    last = state.marks[-1]
    new = (state.rows - before[0], last.labels - before[1])
    gaps = [_gap(each, counts[each.attribute], state, budget) for each in gaps_watched(state)]
    scores = [
        _scores(each, counts[each.attribute], state, budget) for each in scores_watched(state)
    ]
    return Findings(state, new, gaps, list(_rates(state, counts)), scores)


def _gap(gap: GapOf, counts: Floats, state: WatchState, budget: Budget) -> GapNow:
    last, epsilon = state.marks[-1], state.options.epsilon
    value, lower, upper = (np.nan if x is None else x for x in last.limits[gap.name])
    found = any(each.kind == PASSED and each.about == gap.name for each in state.alarms)
    small = -epsilon < lower and upper < epsilon
    verdict = LARGE if found else SMALL if small else OPEN
    pair = gap.pair(counts, state.shares[gap.name])
    first, size, second, other = (float(np.asarray(each)) for each in pair[:4])
    if not size or not other:
        return GapNow(gap, value, lower, upper, verdict, NEVER, NEVER, NEVER)
    low, high = first / size, second / other
    if high < low:  # the mirror image: what is found sooner is a gap that grows
        low, high, lower, upper = high, low, -upper, -lower
    share, each_row = size / (size + other), last.row / (size + other)
    start, now = (float(needed(budget.of_gap, k)) for k in (0, len(state.marks)))
    far, moved = epsilon + BEYOND, high - low + BEYOND
    rows = (
        rows_until_beyond(*_apart(low, far), share, epsilon, start) * each_row,
        rows_until_beyond(*_apart(low, far), share, epsilon, now) * each_row,
        rows_until_beyond(*_apart(low, moved), share, upper, now) * each_row,
    )
    ends = (lower, upper) if second / other >= first / size else (-upper, -lower)
    return GapNow(gap, value, *ends, verdict, *rows)


def _apart(low: float, distance: float) -> tuple[float, float]:
    """Return two rates of a distance, the lower one where it is as far as there is room."""
    low = min(low, 1 - distance)
    return max(low, 0.0), max(low, 0.0) + distance


def _rates(state: WatchState, counts: dict[str, Floats]) -> Iterator[RateNow]:
    number = sum(len(groups) for groups in state.groups.values()) * len(state.options.watched)
    reach = np.log(number / FALSE_ALARMS)
    for name, groups in state.groups.items():
        for metric in state.options.watched:
            successes, size = (counts[name] @ each for each in weights(metric))
            limits = rate_sequence(successes, size, reach)
            for i, group in enumerate(groups):
                ends = (float(each[i]) for each in limits)
                yield RateNow(name, group, metric, float(size[i]), *ends)


def _scores(scores: ScoresOf, counts: Floats, state: WatchState, budget: Budget) -> ScoresNow:
    sums = scores.sums(counts)
    value, lower, upper = map(float, mean_sequence(sums, needed(budget.of_scores)))
    size, squares = float(np.asarray(sums.size)), float(np.asarray(sums.squares))
    drift = NEVER
    if size:
        reach = float(needed(budget.of_scores, len(state.marks)))
        rows = _until(value + BEYOND, squares / size, upper, reach)
        drift = rows * state.marks[-1].row / size
    return ScoresNow(scores, size, value, lower, upper, drift)


def _until(mean: float, square: float, upper: float, reach: float) -> float:
    """Return the labels after which a mean above `upper` is found, if sums are as expected."""
    labels = np.geomspace(1, 1e8, 4000)
    evidence = log_evidence_above(Sums(labels, labels * mean, labels * square), upper)
    found = np.flatnonzero(evidence >= reach)
    return float(labels[found[0]]) if mean > upper and len(found) else NEVER


def alarm_sentence(alarm: Alarm, state: WatchState) -> str:
    """Return an alarm as a sentence."""
    ends = f"{signed(alarm.lower)} to {signed(alarm.upper)}"
    of = f"of the rows after row {count(alarm.since)}" if alarm.since else "of all rows so far"
    when = f"at row {count(alarm.row)}" + (f", {alarm.period}" if alarm.period else "")
    if alarm.kind == PASSED:
        epsilon = f"{state.options.epsilon:g}"
        return f"{alarm.about}: the gap is beyond {epsilon} ({ends} {of}; found {when})."
    assert alarm.before is not None
    earlier = f"{signed(alarm.before[0])} to {signed(alarm.before[1])} up to there"
    if alarm.kind == CHANGED:
        return f"{alarm.about}: the gap has changed ({ends} {of}, {earlier}; found {when})."
    return (
        f"{alarm.about}: they have drifted (labels less scores {ends} on average {of}, {earlier}; "
        f"found {when})."
    )


def small_sentences(found: Findings) -> Iterator[str]:
    """Yield a sentence for each gap that is surely small."""
    epsilon = found.state.options.epsilon
    for each in found.gaps:
        if each.verdict == SMALL:
            ends = interval(each.lower, each.upper)
            yield f"{each.gap.name}: the gap of all rows so far is under {epsilon:g} ({ends})."


def open_sentences(found: Findings) -> Iterator[str]:
    """Yield, for each attribute, what is open by now."""
    for name in found.state.groups:
        mine = [each for each in found.gaps if each.gap.attribute == name]
        still = [each for each in mine if each.verdict == OPEN]
        rates = dict.fromkeys(RATE_NAMES[each.gap.metric] for each in still)
        if still:
            yield (
                f"{name}: open whether the gap is beyond {found.state.options.epsilon:g} in "
                f"{', '.join(rates)} ({len(still)} of {len(mine)} gaps)."
            )


def basis(found: Findings) -> list[str]:
    """Return what was looked at, and how sure alarms are."""
    state, last = found.state, found.state.marks[-1]
    rows, labels = found.new
    seen = f"{count(state.rows)} rows, {count(last.labels)} of them with a label"
    new = f"{count(rows)} rows and {count(labels)} labels are" if rows or labels else "nothing is"
    what = f"{count(len(found.gaps))} gaps"
    if found.scores:
        what += f" and {count(len(found.scores))} mean errors of scores"
    return [
        f"Watched: {seen}; {new} new in {state.options.path.name}.",
        repeats_sentence(state),
        f"{what} are watched together: if none of them ever moves beyond its bound, at most one "
        "watch in twenty ever gives a false alarm, however often is looked. An alarm stays.",
    ]


def repeats_sentence(state: WatchState) -> str:
    """Say how many rows came again, and what tells them."""
    repeats = count(state.repeats)
    if state.options.id:
        return (
            f"Repeats: {repeats} rows had an identifier ({state.options.id}) that was seen before; "
            "each person or decision is counted once."
        )
    if state.once:
        return (
            f"Repeats: {repeats} rows are the same as an earlier one in every column that is read, "
            "far more than independent rows would be; they are counted once. If they are different "
            "people, name the column that tells them apart (id=) in another state."
        )
    return (
        "Repeats: no more rows are alike than chance brings about, so all are taken to be of "
        "different people; name a column of identifiers (id=) if one may come twice."
    )


def notes(found: Findings) -> list[str]:
    """Return what all of this assumes, and what it buys."""
    lines = [
        "Assumed: rows are independent of each other, and within a group neither the order in "
        "which rows come nor which labels are known has to do with what the labels are. Then, and "
        "only then, alarms are as seldom false as is said. Where bad outcomes are known "
        "sooner than good ones, rates are those of what is known.",
        "An interval of all rows so far is of a rate that stays as it is; once it moves, see what "
        "has changed. All gaps' intervals hold together at every look with 95 % confidence, and "
        "so do all rates'.",
        "Compared from the first row on after every row, and from each mark on at every later mark "
        f"(the end of a look, of a period, and at least every {BLOCK} rows or so).",
    ]
    if found.state.options.score and found.state.options.target:
        lines.append(
            "Scores drift where labels are off from them by another amount than before, on "
            "average over a group's rows that are decided one way. If scores are off by the same "
            "amount for the same people, and other people come, that is found as well."
        )
    if found.state.unwatched:
        rows = ", ".join(f"{name} ({count(n)} rows)" for name, n in found.state.unwatched.items())
        lines.append(
            f"Came after the first look, and are not watched: {rows}. Start another state to watch "
            "them, too."
        )
    return lines
