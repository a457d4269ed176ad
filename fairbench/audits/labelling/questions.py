"""The questions that labels can answer: what a label teaches, and what labels say, in sentences.

Which group gets the next label, and when labelling ends, depends on what labels said before. Rows
within a group are drawn at random, so a group's labels are the first of a random sequence; only how
many there are was chosen. Intervals that hold at all numbers together are not moved by that. Where
the number of all labels was said beforehand, those of a fixed number hold too (measured, as every
group gets half of an equal share), and are narrower.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.findings import LEVEL, QUESTION_RATE
from fairbench.audits.gaps import FEWEST_LABELS
from fairbench.audits.labelling.measures import Measure, RateMeasure, askable, measure
from fairbench.audits.labelling.session import Rows, Session
from fairbench.audits.labelling.state import ACCURACY
from fairbench.core.errors import UserError
from fairbench.core.formats import count, interval, number, probability
from fairbench.core.seeds import rng
from fairbench.inference.active.arms import BetaArms, NormalArms
from fairbench.inference.active.intervals import candidates, found_limits, together
from fairbench.inference.active.lookahead import GroupPosterior
from fairbench.inference.active.rewards import (
    Estimation,
    Highest,
    LeastCalibrated,
    LeastKnown,
    Lowest,
    Reward,
    WidestGap,
)
from fairbench.inference.active.strategies import STRATEGIES, next_arms
from fairbench.inference.beta import Beta
from fairbench.inference.gaps import GroupLimits, largest_gap, simultaneous_level
from fairbench.inference.rates import Limits
from fairbench.inference.reliability import ranks

Floats = NDArray[np.float64]
_SURE = 1 - QUESTION_RATE  # the level at which limits of all groups together settle a question


@dataclass(frozen=True, eq=False)
class QuestionAnswer:
    """What labels say to a question.

    Attributes
    ----------
    found : the group that looks worst, or furthest from the scores, or both that are furthest
        apart; none where no group is looked for.
    possible : the groups that it may be: all others have labels enough and surely are not.
    settled : whether the question is answered, so that labelling may stop.
    limits : (A,) to print. sentences : the same in words.
    """

    found: Sequence[str]
    possible: Sequence[str]
    settled: bool
    limits: Limits
    sentences: Sequence[str]


@dataclass(frozen=True, eq=False)
class Question(ABC):
    """A question about a metric of groups, and how labels answer it.

    Attributes
    ----------
    of_accuracy, of_metric : the question as a sentence, with a place for the metric.
    certainty : what a label changes, in short.
    """

    about: Measure
    of_accuracy: ClassVar[str]
    of_metric: ClassVar[str]
    certainty: ClassVar[str]

    @property
    def session(self) -> Session:
        """The labels so far."""
        return self.about.session

    @property
    def sentence(self) -> str:
        """The question as a sentence."""
        right = self.about.metric.name == ACCURACY
        return (self.of_accuracy if right else self.of_metric).format(self.about.metric.label)

    @abstractmethod
    def reward(self) -> Reward:
        """Return the expected reward of a label in each group.

        Raises
        ------
        UserError : this cannot be asked of this table, or of this metric.
        """

    def known(self) -> GroupPosterior:
        """Return what is known so far."""
        generator = rng(self.session.state.options.seed, "what a label would settle")
        return GroupPosterior.of(self.about.posterior, generator)

    @abstractmethod
    def now(self, known: GroupPosterior) -> str:
        """Say what is known so far."""

    @abstractmethod
    def certain(self, known: GroupPosterior, group: int) -> Callable[[GroupPosterior], float]:
        """Return what tells how certain the answer is, as far as it is about this group."""

    def why(self, known: GroupPosterior, group: int) -> str:
        """Say what a label of this group would do: how certain the answer is, now and after it."""
        certain = self.certain(known, group)
        up, down = (certain(known.after(group, up=raised)) for raised in (True, False))
        right = self.about.metric.name == ACCURACY
        ups, downs = ("right", "wrong") if right else ("up", "down")
        return f"{self.certainty} {certain(known):.3f}; {up:.3f} if {ups}, {down:.3f} if {downs}"

    @abstractmethod
    def answer(self, *, whenever: bool) -> QuestionAnswer:
        """Return what labels say, in a sentence.

        Parameters
        ----------
        whenever : whether limits are to hold whenever one stops labelling.
        """


class _Extreme(Question):
    """In which group a figure is the highest, or the lowest."""

    of_limits = ""  # what limits are of, as a sentence

    @property
    def lowest(self) -> bool:
        return False

    def compared(self, figures: Floats) -> Floats:
        """Return what of figures (..., A) is compared."""
        return figures

    def compared_limits(self, limits: Limits) -> Limits:
        """Return that with its limits."""
        return limits

    def _chances(self, known: GroupPosterior) -> Floats:
        return ranks(self.compared(known.draws), largest=not self.lowest).first

    def now(self, known: GroupPosterior) -> str:
        chances = self._chances(known)
        best = int(chances.argmax())
        return f"{self.session.names[best]}, with probability {probability(chances[best])}"

    def certain(self, known: GroupPosterior, group: int) -> Callable[[GroupPosterior], float]:
        return lambda known: float(self._chances(known)[group])

    def answer(self, *, whenever: bool) -> QuestionAnswer:
        names, lowest = self.session.names, self.lowest
        single, wider, sure = (
            self.compared_limits(self.about.limits(level, whenever=whenever))
            for level in (LEVEL, *(together(of_all, len(names)) for of_all in (LEVEL, _SURE)))
        )
        possible = candidates(sure, lowest=lowest) | self.session.few
        limits = found_limits(single, wider, lowest=lowest)
        order = limits.value if lowest else -limits.value
        extreme = int(np.where(np.isnan(order), np.inf, order).argmin())
        value, lower, upper = limits.at(extreme)
        name, others = names[extreme], int(possible.sum()) - 1
        shown = f"({self.about.metric.label} {number(value)}, {shown_interval(lower, upper)})"
        if np.isnan(value):
            said = "No label says anything yet."
        elif not others:
            said = f"It is {name}, surely {shown}."
        else:
            more = f"{count(others)} other group{'s' * (others > 1)} may still be it"
            said = f"It looks like {name} {shown}; {more}."
        said = self.of_limits.format(self.about.metric.label) + said
        return QuestionAnswer([name], list(compress(names, possible)), not others, limits, [said])


class _Worst(_Extreme):
    """In which group a metric is worst."""

    of_accuracy = "In which group are predictions least often right?"
    of_metric = "In which group is the {} worst?"
    certainty = "P(worst)"

    @property
    def lowest(self) -> bool:
        metric = self.about.metric
        if metric.better not in ("higher", "lower"):
            raise UserError(
                f"question=worst needs a metric of which more is better or worse, and "
                f"{metric.name} is neither: ask question=gap or question=each"
            )
        return metric.better == "higher"

    def reward(self) -> Reward:
        return Lowest() if self.lowest else Highest()


class _Calibration(_Extreme):
    """In which group scores are furthest from the truth."""

    of_accuracy = "In which group are scores furthest from how often predictions are right?"
    of_metric = "In which group is the {} furthest from what scores foretell?"
    of_limits = "Distances are of the {} from what scores say. "
    certainty = "P(furthest)"

    @property
    def foretold(self) -> Floats:
        """What scores say that a rate is in each group, (A,).

        Raises
        ------
        UserError : there are no scores, or the metric is no rate.
        """
        if not isinstance(self.about, RateMeasure):
            raise UserError(
                f"question=calibration compares a rate with the scores, and "
                f"{self.about.metric.name} is none: ask about a rate, or question=worst, gap or "
                "each"
            )
        if self.session.table.score is None:
            raise UserError("question=calibration needs scores: name their column, score=...")
        return self.about.expected

    def reward(self) -> Reward:
        return LeastCalibrated(self.foretold)

    def compared(self, figures: Floats) -> Floats:
        return np.abs(figures - self.foretold)

    def compared_limits(self, limits: Limits) -> Limits:
        lower, upper = limits.lower - self.foretold, limits.upper - self.foretold
        nearest = np.maximum(np.maximum(lower, -upper), 0.0)
        furthest = np.maximum(np.abs(lower), np.abs(upper))
        return Limits(self.compared(limits.value), nearest, furthest)


class _Gap(Question):
    """Whether the two groups that are furthest apart really differ.

    As in the report, a gap is large where one group is surely ahead of another: that some two of
    many groups differ is likely of any that are little known.
    """

    of_accuracy = of_metric = "Does the {} of any two groups differ by more than epsilon?"
    certainty = "P(gap)"

    @property
    def epsilon(self) -> float:
        return self.session.state.options.epsilon

    def reward(self) -> Reward:
        if isinstance(self.about, RateMeasure):
            return WidestGap(self.epsilon)
        return LeastKnown(np.ones(len(self.session.names)), furthest=True)

    def now(self, known: GroupPosterior) -> str:
        low, high = known.furthest_apart(self.epsilon)
        beyond = known.beyond(low, high, self.epsilon)
        none = float((np.ptp(known.draws, axis=1) < self.epsilon).mean())
        names = self.session.names
        return (
            f"{names[low]} is behind {names[high]} by more than {self.epsilon:g} with probability "
            f"{probability(beyond)}, and no two differ by that much with {probability(none)}"
        )

    def certain(self, known: GroupPosterior, group: int) -> Callable[[GroupPosterior], float]:
        low, high = known.furthest_apart(self.epsilon)
        return lambda known: known.beyond(low, high, self.epsilon)

    def answer(self, *, whenever: bool) -> QuestionAnswer:
        names = self.session.names
        levels = (LEVEL, *(simultaneous_level(level, len(names)) for level in (LEVEL, _SURE)))
        limits, wider, sure = (self.about.limits(level, whenever=whenever) for level in levels)
        seen = ~np.isnan(limits.value)
        if seen.sum() < 2:
            said = "Fewer than two groups have labels."
            return QuestionAnswer([], names, settled=False, limits=limits, sentences=[said])
        gap, surely = (
            largest_gap(GroupLimits(limits.take(seen), joint.take(seen))) for joint in (wider, sure)
        )
        value, lower, upper = map(float, gap)
        pair = names[np.nanargmin(limits.value)], names[np.nanargmax(limits.value)]
        large = float(surely.lower) > self.epsilon
        # One end of a 95 % interval is wrong as seldom as the answer may be.
        small = upper < self.epsilon and not self.session.few.any() and bool(seen.all())
        said = (
            f"Yes, some two differ by more than {self.epsilon:g}"
            if large
            else f"No two differ by more than {self.epsilon:g}"
            if small
            else f"Open whether any two differ by more than {self.epsilon:g}"
        )
        said = (
            f"{said}: the largest gap is {number(value)}, {shown_interval(lower, upper)}; "
            f"{pair[0]} and {pair[1]} look furthest apart."
        )
        return QuestionAnswer(pair, names, large or small, limits, [said])


class _Each(Question):
    """How large a metric is in every group."""

    of_accuracy = "How often are predictions right in each group?"
    of_metric = "What is the {} of each group?"
    certainty = "±"

    def reward(self) -> Reward:
        share = self.session.sizes / self.session.sizes.sum()
        return Estimation(share) if isinstance(self.about, RateMeasure) else LeastKnown(share)

    def now(self, known: GroupPosterior) -> str:
        lower, upper = known.posterior.interval()
        widest = int((upper - lower).argmax())
        half = (upper - lower)[widest] / 2
        return f"known least of {self.session.names[widest]}, where the interval is ± {half:.3f}"

    def certain(self, known: GroupPosterior, group: int) -> Callable[[GroupPosterior], float]:
        return lambda known: known.half_width(group)

    def answer(self, *, whenever: bool) -> QuestionAnswer:
        limits = self.about.limits(LEVEL, whenever=whenever)
        said = "Every group's interval holds 95 % of the time, each by itself."
        return QuestionAnswer([], self.session.names, not self.session.few.any(), limits, [said])


DEFAULT_QUESTION, DEFAULT_STRATEGY = "worst", "top_two"
QUESTIONS: Mapping[str, type[Question]] = MappingProxyType(
    {"worst": _Worst, "gap": _Gap, "each": _Each, "calibration": _Calibration}
)


def question_of(session: Session) -> Question:
    """Return the question of a session."""
    return QUESTIONS[session.state.question](measure(session))


def shown_interval(lower: float, upper: float) -> str:
    """Return an interval as part of a sentence."""
    if not np.isfinite(upper - lower):
        return "of too few labels for an interval"
    return f"95 % interval {interval(lower, upper)}"


def answer(question: Question) -> tuple[QuestionAnswer, pd.DataFrame]:
    """Return what labels say to a question, and the metric in every group (`group_figures`)."""
    session = question.session
    fixed, whenever = (question.answer(whenever=lasting) for lasting in (False, True))
    said = whenever if session.state.whenever else fixed
    sentences = [*said.sentences, *_short(session), _stopping(session, settled=said.settled)]
    groups = group_figures(question.about, fixed.limits, whenever.limits)
    return replace(said, sentences=sentences), groups


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
        fixed, whenever = (about.limits(LEVEL, whenever=lasting) for lasting in (False, True))
        everyone = about.everyone(LEVEL, whenever=session.state.whenever)
        groups = group_figures(about, fixed, whenever)
        metrics.append(Figures(name, metric.label, groups, everyone))
    return metrics


# Multiple play is a strategy of studies, where several arms are labelled at once.
ONE_AT_A_TIME = tuple(name for name in STRATEGIES if name != "multiple_play")
# These do not look at labels.
_BLIND = ("random", "random_arm")
# Every group gets at least this much of an equal share of the labels. A strategy drops groups that
# looked well early on, by luck as it may be, and their luck is never corrected: with four groups
# and 1000 labels, 92 % of 95 % intervals held, and 84 % of everyone's. With this share 95 % do, and
# the least accurate group is found as often.
LEAST_SHARE = 0.5


def next_rows(session: Session, labels: int, part: tuple[int, int] = (1, 1)) -> Rows:
    """Return the positions of up to so many rows to label; the same ones for the same state.

    Groups are chosen one after the other, as if the labels before were not known yet.

    Parameters
    ----------
    part : (k, m): rows of the k-th of m people who label at the same time.
    """
    state, waiting = session.state, session.waiting(part)
    question = question_of(session)
    posterior, left = question.about.posterior.take(None), session.by_group(waiting)[None]
    arms = next_arms(
        BetaArms(posterior, left) if isinstance(posterior, Beta) else NormalArms(posterior, left),
        question.reward(),
        state.strategy,
        rng(state.options.seed, "next", len(state.answers), *part),
        labels=labels,
        given=session.by_group(session.answered),
        least_share=0.0 if state.strategy in _BLIND else LEAST_SHARE,
    )
    queues = [iter(waiting[session.codes[waiting] == arm]) for arm in range(len(session.names))]
    return np.array([next(queues[arm]) for arm in arms], np.int64)
