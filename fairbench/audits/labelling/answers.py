"""What labels say to the question that they were chosen for, with intervals that hold all the same.

Which group gets the next label, and when labelling ends, depends on what labels said before. Rows
within a group are drawn at random, so a group's labels are the first of a random sequence; only how
many there are was chosen. Intervals that hold at all numbers together are not moved by that. Where
the number of all labels was said beforehand, those of a fixed number hold too (measured, as every
group gets half of an equal share), and are narrower.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairbench.audits.gaps import FEWEST_LABELS
from fairbench.audits.labelling.measures import LEVEL, Measure, askable, measure
from fairbench.audits.labelling.questions import question_of
from fairbench.audits.labelling.session import Session
from fairbench.core.formats import count
from fairbench.inference.rates import Limits


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
    """What labels say to a question; `found`, `possible` and `settled` are those of a verdict.

    Attributes
    ----------
    asked : the question, and `sentences` the answer in words.
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


def answer(session: Session) -> QuestionAnswer:
    """Return what labels say to the question of a session."""
    question, state = question_of(session), session.state
    verdicts = [question.verdict(whenever=whenever) for whenever in (False, True)]
    verdict = verdicts[state.whenever]
    return QuestionAnswer(
        state.question,
        state.metric,
        question.sentence,
        verdict.found,
        verdict.possible,
        verdict.settled,
        [verdict.sentence, *_short(session), _stopping(session, settled=verdict.settled)],
        state.stop,
        len(state.labels),
        state.whenever,
        _group_figures(question.about, *(each.limits for each in verdicts)),
    )


def _group_figures(about: Measure, fixed: Limits, whenever: Limits) -> list[GroupFigure]:
    session, rows = about.session, about.rows
    shown = whenever if session.state.whenever else fixed
    return [
        GroupFigure(
            name,
            int(session.labels[g]),
            int(rows[g]),
            float(fixed.value[g]),
            *_ends(shown, g),
            _ends(fixed, g),
            _ends(whenever, g),
            bool(session.few[g]),
        )
        for g, name in enumerate(session.names)
    ]


def _ends(limits: Limits, group: int) -> tuple[float, float]:
    """Return both ends of an interval, NaN where there is none."""
    _, lower, upper = limits.at(group)
    return (lower, upper) if np.isfinite(upper - lower) else (np.nan, np.nan)


def _short(session: Session) -> Iterator[str]:
    """Name the groups that have too few labels to be called fine."""
    groups = zip(session.names, session.labels, session.few, strict=True)
    listed = [f"{name} ({labels})" for name, labels, few in groups if few]
    if len(listed) == len(session.names):
        yield f"Every group has too few labels to be called fine, which takes {FEWEST_LABELS}."
    elif listed:
        yield (
            f"Too few labels to be called fine, which takes {FEWEST_LABELS}: {', '.join(listed)}."
        )


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
    metrics = []
    for name, metric in askable(session).items():
        about = measure(replace(session, state=replace(session.state, metric=name)))
        fixed, whenever = (about.limits(LEVEL, whenever=when) for when in (False, True))
        everyone = about.everyone(LEVEL, whenever=session.state.whenever)
        groups = _group_figures(about, fixed, whenever)
        metrics.append(Figures(name, metric.label, groups, everyone))
    return metrics
