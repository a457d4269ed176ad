"""What labels say to the question that they were chosen for, with intervals that hold all the same.

Which group gets the next label, and when labelling ends, depends on what labels said before. Rows
within a group are drawn at random, so a group's labels are the first of a random sequence; only how
many there are was chosen. Intervals that hold at all numbers together are not moved by that. Where
the number of all labels was said beforehand, those of a fixed number hold too (measured, as every
group gets half of an equal share), and are narrower.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from fairbench.audits.gaps import FEWEST_LABELS
from fairbench.audits.labelling.measures import LEVEL, Measure, RateMeasure, askable, measure
from fairbench.audits.labelling.questions import QUESTIONS, foretold, lowest_is_worst
from fairbench.audits.labelling.session import Session
from fairbench.core.formats import count, interval, number
from fairbench.inference.active.intervals import candidates, found_limits, together
from fairbench.inference.gaps import GroupLimits, largest_gap, simultaneous_level
from fairbench.inference.rates import Limits

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class GroupFigure:
    """The metric in one group.

    Attributes
    ----------
    labels : labelled rows of the group; `rows` are those that the metric rests on.
    lower, upper : the interval that holds for how labelling was stopped; NaN of too few labels.
    fixed : the interval of a number of labels that was said before the first.
    whenever : the interval that holds whenever one stops.
    few : whether there are too few labels for the group to be called fine.
    """

    group: str
    labels: int
    rows: int
    value: float
    lower: float
    upper: float
    fixed: tuple[float, float]
    whenever: tuple[float, float]
    few: bool


@dataclass(frozen=True)
class QuestionAnswer:
    """What labels say to a question.

    Attributes
    ----------
    found : the group that looks worst, or furthest from the scores, or both that are furthest
        apart; empty where no group is looked for.
    possible : the groups that it may be: all others have labels enough and surely are not.
    settled : whether the question is answered, so that labelling may stop.
    sentences : the same in words.
    stop : at how many answers labelling stops, 0 where that was not said; `answers` there are.
    whenever : whether figures hold whenever one stops.
    """

    question: str
    metric: str
    asked: str
    found: Sequence[str]
    possible: Sequence[str]
    settled: bool
    sentences: Sequence[str]
    stop: int
    answers: int
    whenever: bool
    groups: Sequence[GroupFigure]


@dataclass(frozen=True, eq=False)
class _Evidence:
    """A measure with its limits in all groups, of one way to stop.

    Attributes
    ----------
    single, all_together : of each group by itself, and of all groups together.
    """

    session: Session
    about: Measure
    whenever: bool
    single: Limits
    all_together: Limits

    @classmethod
    def of(cls, session: Session, about: Measure, *, whenever: bool) -> _Evidence:
        level = together(LEVEL, len(session.names))
        single, wider = (about.limits(each, whenever=whenever) for each in (LEVEL, level))
        return cls(session, about, whenever, single, wider)

    @property
    def few(self) -> NDArray[np.bool_]:
        session = self.session
        known = session.codes[session.table.known]
        return np.bincount(known, minlength=len(session.names)) < FEWEST_LABELS


@dataclass(frozen=True, eq=False)
class _Found:
    """What is found of a question: groups by position, the limits to print, and a sentence."""

    groups: Sequence[int]
    possible: NDArray[np.bool_]
    settled: bool
    limits: Limits
    sentence: str


def answer(session: Session) -> QuestionAnswer:
    """Return what labels say to the question of a session."""
    about, state = measure(session), session.state
    answering = _ANSWERS[state.question]
    each = {
        whenever: answering(_Evidence.of(session, about, whenever=whenever))
        for whenever in (False, True)
    }
    evidence, found = _Evidence.of(session, about, whenever=state.whenever), each[state.whenever]
    names = np.array(session.names, object)
    return QuestionAnswer(
        state.question,
        state.metric,
        QUESTIONS[state.question].asks(about),
        [str(names[g]) for g in found.groups],
        [str(name) for name in names[found.possible]],
        found.settled,
        [found.sentence, *_short(evidence), _stopping(session, settled=found.settled)],
        state.stop,
        len(state.labels),
        state.whenever,
        list(_figures(evidence, found.limits, each[False].limits, each[True].limits)),
    )


def _figures(
    evidence: _Evidence, printed: Limits, fixed: Limits, whenever: Limits
) -> list[GroupFigure]:
    session, few = evidence.session, evidence.few.tolist()
    labels = np.bincount(session.codes[session.table.known], minlength=len(session.names))
    return [
        GroupFigure(
            name,
            int(labels[g]),
            int(evidence.about.rows[g]),
            float(printed.value[g]),
            *_ends(printed, g),
            _ends(fixed, g),
            _ends(whenever, g),
            few[g],
        )
        for g, name in enumerate(session.names)
    ]


def _ends(limits: Limits, group: int) -> tuple[float, float]:
    """Return both ends of an interval, NaN where there is none."""
    lower, upper = float(limits.lower[group]), float(limits.upper[group])
    return (lower, upper) if np.isfinite(upper - lower) else (np.nan, np.nan)


def _shown(lower: float, upper: float) -> str:
    if not np.isfinite(upper - lower):
        return "of too few labels for an interval"
    return f"95 % interval {interval(lower, upper)}"


def _worst(evidence: _Evidence) -> _Found:
    lowest = lowest_is_worst(evidence.about)
    possible = candidates(evidence.all_together, lowest=lowest) | evidence.few
    limits = found_limits(evidence.single, evidence.all_together, lowest=lowest)
    value = np.where(np.isnan(limits.value), np.inf if lowest else -np.inf, limits.value)
    worst = int(value.argmin() if lowest else value.argmax())
    settled = bool(possible.sum() == 1)
    return _Found([worst], possible, settled, limits, _of_one(evidence, worst, possible, limits))


def _of_one(evidence: _Evidence, found: int, possible: NDArray[np.bool_], limits: Limits) -> str:
    """Say which group it is, with its figure, or which groups it may be."""
    names, others = evidence.session.names, int(possible.sum()) - 1
    if np.isnan(limits.value[found]):
        return "No label says anything yet."
    ends = _shown(float(limits.lower[found]), float(limits.upper[found]))
    shown = f"{evidence.about.metric.label} {number(limits.value[found])}, {ends}"
    if not others:
        return f"It is {names[found]}, surely ({shown})."
    more = f"{count(others)} other group{'s' * (others > 1)} may still be it"
    return f"It looks like {names[found]} ({shown}); {more}."


def _calibration(evidence: _Evidence) -> _Found:
    away = foretold(evidence.about)
    single, wider = (_distance(each, away) for each in (evidence.single, evidence.all_together))
    possible = candidates(wider, lowest=False) | evidence.few
    limits = found_limits(single, wider, lowest=False)
    furthest = int(np.nan_to_num(single.value, nan=-1.0).argmax())
    settled = bool(possible.sum() == 1)
    of = f"Distances are of the {evidence.about.metric.label} from what scores say."
    sentence = f"{of} {_of_one(evidence, furthest, possible, limits)}"
    return _Found([furthest], possible, settled, limits, sentence)


def _distance(limits: Limits, centre: Floats) -> Limits:
    """Return the distances of limits from points."""
    lower, upper = limits.lower - centre, limits.upper - centre
    return Limits(
        np.abs(limits.value - centre),
        np.maximum(np.maximum(lower, -upper), 0.0),
        np.maximum(np.abs(lower), np.abs(upper)),
    )


def _gap(evidence: _Evidence) -> _Found:
    session, about = evidence.session, evidence.about
    epsilon, groups = session.state.options.epsilon, len(session.names)
    wider = about.limits(simultaneous_level(LEVEL, groups), whenever=evidence.whenever)
    limits = evidence.single
    seen = ~np.isnan(limits.value)
    everyone = np.ones(groups, bool)
    if seen.sum() < 2:
        return _Found([], everyone, False, limits, "Fewer than two groups have labels.")
    gap = largest_gap(GroupLimits(limits.take(seen), wider.take(seen)))
    value, lower, upper = map(float, gap)
    order = np.where(seen, limits.value, np.nan)
    pair = [int(np.nanargmin(order)), int(np.nanargmax(order))]
    large, small = lower > epsilon, upper < epsilon and not evidence.few.any() and bool(seen.all())
    low, high = (session.names[g] for g in pair)
    shown = f"the largest gap is {number(value)}, {_shown(lower, upper)}"
    said = (
        f"Yes, some two differ by more than {epsilon:g}"
        if large
        else f"No two differ by {epsilon:g}"
        if small
        else f"Open whether any two differ by more than {epsilon:g}"
    )
    sentence = f"{said}: {shown}; {low} and {high} look furthest apart."
    return _Found(pair, everyone, large or small, limits, sentence)


def _each(evidence: _Evidence) -> _Found:
    limits = evidence.single
    few = evidence.few
    said = "Every group's interval holds 95 % of the time, each by itself."
    return _Found([], np.ones(len(few), bool), not few.any(), limits, said)


_ANSWERS: Mapping[str, Callable[[_Evidence], _Found]] = MappingProxyType(
    {"worst": _worst, "gap": _gap, "each": _each, "calibration": _calibration}
)


def _short(evidence: _Evidence) -> list[str]:
    """Name the groups that have too few labels to be called fine."""
    session, few = evidence.session, np.flatnonzero(evidence.few)
    if not len(few):
        return []
    labels = np.bincount(session.codes[session.table.known], minlength=len(session.names))
    if len(few) == len(session.names):
        return [f"Every group has too few labels to be called fine, which takes {FEWEST_LABELS}."]
    listed = ", ".join(f"{session.names[g]} ({labels[g]})" for g in few)
    return [f"Too few labels to be called fine, which takes {FEWEST_LABELS}: {listed}."]


def _stopping(session: Session, *, settled: bool) -> str:
    """Say whether labelling may stop, and what stopping does to the intervals."""
    state = session.state
    if not state.whenever:
        return (
            f"The {count(state.stop)} labels that were said before the first one are there: stop "
            "here. Intervals are those of a fixed number of labels."
        )
    go_on = (
        "The question is settled, and you may stop" if settled else "You may stop whenever you like"
    )
    at_all = f"{go_on}: these intervals hold at all numbers of labels together"
    if not state.stop:
        return f"{at_all}, so that looking often does them no harm."
    left = state.stop - len(state.labels)
    if left > 0:
        return f"{at_all}. At {count(state.stop)}, {count(left)} from here, they become narrower."
    return f"{at_all}. There are {count(-left)} more than the {count(state.stop)} that were said."


@dataclass(frozen=True)
class Figures:
    """A metric in all groups, each by itself, and of everyone where that is a mean of theirs."""

    metric: str
    label: str
    groups: Sequence[GroupFigure]
    everyone: tuple[float, float, float] | None


def figures(session: Session) -> list[Figures]:
    """Return every metric that labels say something of, in the groups that were chosen among."""
    found = []
    for name, metric in askable(session).items():
        about = measure(replace(session, state=replace(session.state, metric=name)))
        fixed, whenever = (about.limits(LEVEL, whenever=each) for each in (False, True))
        evidence = _Evidence.of(session, about, whenever=session.state.whenever)
        groups = _figures(evidence, evidence.single, fixed, whenever)
        is_mean = metric.interval == "mean" or name in _SHARES
        everyone = _everyone(evidence) if is_mean else None
        found.append(Figures(name, metric.label, groups, everyone))
    return found


_SHARES = ("accuracy", "error_rate")  # rates in which every row of a group counts


def _everyone(evidence: _Evidence) -> tuple[float, float, float] | None:
    """Return the metric of all rows, with an interval; None if a group has no label.

    Of a mean of losses it is the mean of the groups by their rows: the distances to the ends of
    independent intervals add as their squares (Zou and Donner 2008).
    """
    session, about, limits = evidence.session, evidence.about, evidence.single
    if np.isnan(limits.value).any():
        return None
    if isinstance(about, RateMeasure):
        return about.everyone(LEVEL, whenever=evidence.whenever).at(0)
    share = session.sizes / session.sizes.sum()
    value = float(share @ limits.value)
    below, above = limits.value - limits.lower, limits.upper - limits.value
    down, up = (float(np.sqrt(((share * each) ** 2).sum())) for each in (below, above))
    return value, value - down, value + up
