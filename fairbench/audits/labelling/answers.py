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
import pandas as pd

from fairbench.audits.gaps import FEWEST_LABELS
from fairbench.audits.labelling.measures import LEVEL, Measure, askable, measure
from fairbench.audits.labelling.questions import Question, Verdict
from fairbench.audits.labelling.session import Session
from fairbench.core.formats import count
from fairbench.inference.rates import Limits


@dataclass(frozen=True, eq=False)
class Answer:
    """What labels say to a question, in words and by group; see :func:`group_figures`."""

    verdict: Verdict
    sentences: Sequence[str]
    groups: pd.DataFrame


def answer(question: Question) -> Answer:
    """Return what labels say to a question."""
    session = question.session
    verdicts = [question.verdict(whenever=whenever) for whenever in (False, True)]
    verdict = verdicts[session.state.whenever]
    sentences = [verdict.sentence, *_short(session), _stopping(session, settled=verdict.settled)]
    fixed, whenever = (each.limits for each in verdicts)
    return Answer(verdict, sentences, group_figures(question.about, fixed, whenever))


def group_figures(about: Measure, fixed: Limits, whenever: Limits) -> pd.DataFrame:
    """Return a metric in every group.

    Parameters
    ----------
    fixed, whenever : with the intervals of a number of labels that was said before the first, and
        with those that hold whenever one stops.

    Returns
    -------
    A row a group: its labelled rows `labels`, of them the `rows` that the metric rests on, its
    value, the interval from `lower` to `upper` that holds for how labelling was stopped (NaN of too
    few labels), both intervals, and whether the group has too `few` labels to be called fine.
    """
    session, ends = about.session, {}
    for name, limits in (("fixed", fixed), ("whenever", whenever)):
        none = ~np.isfinite(limits.upper - limits.lower)
        lower, upper = (np.where(none, np.nan, end).tolist() for end in limits[1:])
        ends[name] = list(zip(lower, upper, strict=True))
    lower, upper = zip(*ends["whenever" if session.state.whenever else "fixed"], strict=True)
    return pd.DataFrame(
        {
            "group": session.names,
            "labels": session.labels,
            "rows": about.rows,
            "value": fixed.value,
            "lower": lower,
            "upper": upper,
            **ends,
            "few": session.few,
        }
    )


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


@dataclass(frozen=True, eq=False)
class Figures:
    """A metric in all groups, each by itself, and of everyone where that is a mean of theirs."""

    metric: str
    label: str
    groups: pd.DataFrame
    everyone: tuple[float, float, float] | None


def figures(session: Session) -> list[Figures]:
    """Return every metric that labels say something of, in the groups that were chosen among."""
    metrics = []
    for name, metric in askable(session).items():
        about = measure(replace(session, state=replace(session.state, metric=name)))
        fixed, whenever = (about.limits(LEVEL, whenever=when) for when in (False, True))
        everyone = about.everyone(LEVEL, whenever=session.state.whenever)
        groups = group_figures(about, fixed, whenever)
        metrics.append(Figures(name, metric.label, groups, everyone))
    return metrics
