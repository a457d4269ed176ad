"""The questions that labels can answer: what a label teaches, and what labels say, in sentences.

Which group gets the next label, and when labelling ends, depends on what labels said before. Rows
within a group are drawn at random, so a group's labels are the first of a random sequence; only how
many there are was chosen. Intervals that hold at all numbers together are not moved by that. Where
the number of all labels was said beforehand, those of a fixed number hold too (measured, as every
group gets half of an equal share), and are narrower.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import pandas as pd

from fairbench.audits.findings import (
    LARGE,
    LEVEL,
    OPEN,
    QUESTION_RATE,
    SMALL,
    answer_gap,
)
from fairbench.audits.gaps import FEWEST_LABELS
from fairbench.audits.labelling.measures import group_figures, measure
from fairbench.audits.labelling.session import Rows, Session
from fairbench.audits.labelling.state import ACCURACY
from fairbench.core.arrays import Floats
from fairbench.core.errors import UserError
from fairbench.core.formats import count, interval, number, probability
from fairbench.core.seeds import rng
from fairbench.evaluation.group_intervals import GapInterval
from fairbench.evaluation.labelled_measures import LabelledMeasure, LabelledRates
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

_GUESS = "Best guess so far, which only steers what is labelled next"


@dataclass(frozen=True, eq=False)
class QuestionAnswer:
    """What labels say to a question.

    Attributes
    ----------
    found : the group that looks worst, or furthest from the scores, or both that are furthest
        apart; none where no group is looked for.
    possible : the groups that it may be: all others have labels enough and surely are not.
    settled : whether the question is answered, so that labelling may stop.
    sentences : the same for a reader.
    """

    found: Sequence[str]
    possible: Sequence[str]
    settled: bool
    sentences: Sequence[str]


@dataclass(frozen=True, eq=False)
class Question(ABC):
    """A question about a metric of groups, and how labels answer it.

    Attributes
    ----------
    of_accuracy, of_metric : the question as a sentence, with a place for the metric.
    certainty : what a label changes, in short.
    """

    session: Session
    about: LabelledMeasure
    of_accuracy: ClassVar[str]
    of_metric: ClassVar[str]
    certainty: ClassVar[str]

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
    def certain(self, known: GroupPosterior, group: int, before: GroupPosterior) -> float:
        """Return how certain the answer of `before` is by now, as far as it is about a group."""

    def why(self, known: GroupPosterior, group: int) -> str:
        """Say what a label of this group would do: how certain the answer is, now and after it."""
        after = (known, known.after(group, up=True), known.after(group, up=False))
        now, up, down = (self.certain(label, group, known) for label in after)
        right = self.about.metric.name == ACCURACY
        ups, downs = ("right", "wrong") if right else ("up", "down")
        return f"{self.certainty} {now:.3f}; {up:.3f} if {ups}, {down:.3f} if {downs}"

    def limits(self, *, whenever: bool) -> Limits:
        """Return the metric (A,) with the intervals that are printed.

        Parameters
        ----------
        whenever : whether they are to hold whenever one stops labelling.
        """
        return self.about.limits(LEVEL, whenever=whenever)

    def groups(self) -> pd.DataFrame:
        """Return the metric in every group, see :func:`group_figures`."""
        return group_figures(self.session, self.about, self.limits)

    def answer(self) -> QuestionAnswer:
        """Return what labels say, with what that means for whoever labels."""
        answered = self.answered(self.limits(whenever=self.session.state.whenever))
        more = [*_short(self.session), _stopping(self.session, settled=answered.settled)]
        return replace(answered, sentences=[*answered.sentences, *more])

    @abstractmethod
    def answered(self, limits: Limits) -> QuestionAnswer:
        """Return what labels say, of the metric with its `limits`, in a sentence."""


class _Worst(Question):
    """In which group a metric is worst."""

    of_accuracy = "In which group are predictions least often right?"
    of_metric = "In which group is the {} worst?"
    certainty = "P(worst)"
    of_limits = ""  # what limits are of, as a sentence

    @property
    def lowest(self) -> bool:
        """Whether the lowest figure is looked for, rather than the highest."""
        metric = self.about.metric
        if metric.better not in ("higher", "lower"):
            raise UserError(
                f"question=worst needs a metric of which more is better or worse, and "
                f"{metric.name} is neither: ask question=gap or question=each"
            )
        return metric.better == "higher"

    def reward(self) -> Reward:
        return Lowest() if self.lowest else Highest()

    def compared(self, limits: Limits) -> Limits:
        """Return what is compared of a metric (..., A), with its limits."""
        return limits

    def _chances(self, known: GroupPosterior) -> Floats:
        compared = self.compared(Limits(known.draws, known.draws, known.draws)).value
        return ranks(compared, largest=not self.lowest).first

    def now(self, known: GroupPosterior) -> str:
        chances = self._chances(known)
        best = int(chances.argmax())
        name = self.session.names[best]
        return f"{_GUESS}: {name}, with probability {probability(chances[best])}"

    def certain(self, known: GroupPosterior, group: int, before: GroupPosterior) -> float:
        return float(self._chances(known)[group])

    def _together(self, level: float, *, whenever: bool) -> Limits:
        """Return what is compared with limits that hold for all groups together."""
        single = together(level, len(self.session.names))
        return self.compared(self.about.limits(single, whenever=whenever))

    def limits(self, *, whenever: bool) -> Limits:
        single = self.compared(super().limits(whenever=whenever))
        return found_limits(single, self._together(LEVEL, whenever=whenever), lowest=self.lowest)

    def answered(self, limits: Limits) -> QuestionAnswer:
        names, lowest = self.session.names, self.lowest
        sure = self._together(1 - QUESTION_RATE, whenever=self.session.state.whenever)
        possible = candidates(sure, lowest=lowest) | self.session.few
        order = limits.value if lowest else -limits.value
        extreme = int(np.where(np.isnan(order), np.inf, order).argmin())
        value, lower, upper = limits.at(extreme)
        name, others = names[extreme], int(possible.sum()) - 1
        estimate = f"({self.about.metric.label} {number(value)}, {_shown_interval(lower, upper)})"
        if np.isnan(value):
            sentence = "No label says anything yet."
        elif not others:
            sentence = f"It is {name}, surely {estimate}."
        else:
            groups = "groups" if others > 1 else "group"
            sentence = (
                f"It looks like {name} {estimate}; {count(others)} other {groups} may still be it."
            )
        sentence = self.of_limits.format(self.about.metric.label) + sentence
        return QuestionAnswer([name], list(compress(names, possible)), not others, [sentence])


class _Calibration(_Worst):
    """In which group scores are furthest from the truth."""

    of_accuracy = "In which group are scores furthest from how often predictions are right?"
    of_metric = "In which group is the {} furthest from what scores foretell?"
    certainty = "P(furthest)"
    of_limits = "Distances are of the {} from what scores say. "
    lowest = False

    @property
    def foretold(self) -> Floats:
        """What scores say that a rate is in each group, (A,).

        Raises
        ------
        UserError : there are no scores, or the metric is no rate.
        """
        if not isinstance(self.about, LabelledRates):
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

    def compared(self, limits: Limits) -> Limits:
        value, lower, upper = (figures - self.foretold for figures in limits)
        nearest = np.maximum(np.maximum(lower, -upper), 0.0)
        return Limits(np.abs(value), nearest, np.maximum(np.abs(lower), np.abs(upper)))


class _Gap(Question):
    """Whether the two groups that are furthest apart really differ.

    As in the report, a gap is large where one group is surely ahead of another: that some two of
    many groups differ is likely of any that are little known.
    """

    of_accuracy = of_metric = "Does the {} of any two groups differ by more than epsilon?"
    certainty = "P(gap)"

    @property
    def epsilon(self) -> float:
        """The gap that matters."""
        return self.session.state.options.epsilon

    def reward(self) -> Reward:
        if isinstance(self.about, LabelledRates):
            return WidestGap(self.epsilon)
        return LeastKnown(np.ones(len(self.session.names)), furthest=True)

    def now(self, known: GroupPosterior) -> str:
        low, high = known.furthest_apart(self.epsilon)
        beyond = known.beyond(low, high, self.epsilon)
        none = float((np.ptp(known.draws, axis=1) < self.epsilon).mean())
        names = self.session.names
        return (
            f"{_GUESS}: {names[low]} is behind {names[high]} by more than {self.epsilon:g} with "
            f"probability {probability(beyond)}, and no two differ by that much with "
            f"{probability(none)}"
        )

    def certain(self, known: GroupPosterior, group: int, before: GroupPosterior) -> float:
        return known.beyond(*before.furthest_apart(self.epsilon), self.epsilon)

    def answered(self, limits: Limits) -> QuestionAnswer:
        names, session, seen = self.session.names, self.session, ~np.isnan(limits.value)
        if seen.sum() < 2:
            return QuestionAnswer([], names, False, ["Fewer than two groups have labels."])

        def at_level(level: float) -> GroupLimits:
            levels = level, simultaneous_level(level, len(names))
            whenever = session.state.whenever
            single, joint = (self.about.limits(reach, whenever=whenever) for reach in levels)
            return GroupLimits(single.take(seen), joint.take(seen))

        value, lower, upper = map(float, largest_gap(at_level(LEVEL)))
        verdict = answer_gap(
            lambda level: GapInterval.of(at_level(level)),
            self.epsilon,
            QUESTION_RATE,
            may_be_small=bool(seen.all()) and not session.few.any(),
        ).verdict
        pair = names[np.nanargmin(limits.value)], names[np.nanargmax(limits.value)]
        sentence = (
            f"{_GAP_VERDICTS[verdict]} by more than {self.epsilon:g}: the largest gap is "
            f"{number(value)}, {_shown_interval(lower, upper)}; {pair[0]} and {pair[1]} look "
            "furthest apart."
        )
        return QuestionAnswer(pair, names, verdict != OPEN, [sentence])


_GAP_VERDICTS = {
    LARGE: "Yes, some two differ",
    SMALL: "No two differ",
    OPEN: "Open whether any two differ",
}


class _Each(Question):
    """How large a metric is in every group."""

    of_accuracy = "How often are predictions right in each group?"
    of_metric = "What is the {} of each group?"
    certainty = "±"

    def reward(self) -> Reward:
        share = self.session.sizes / self.session.sizes.sum()
        return Estimation(share) if isinstance(self.about, LabelledRates) else LeastKnown(share)

    def now(self, known: GroupPosterior) -> str:
        halves = [known.half_width(group) for group in range(len(self.session.names))]
        widest = int(np.argmax(halves))
        name, half = self.session.names[widest], halves[widest]
        return f"So far: known least of {name}, where the interval is ± {half:.3f}"

    def certain(self, known: GroupPosterior, group: int, before: GroupPosterior) -> float:
        return known.half_width(group)

    def answered(self, limits: Limits) -> QuestionAnswer:
        sentence = "Every group's interval holds 95 % of the time, each by itself."
        return QuestionAnswer([], self.session.names, not self.session.few.any(), [sentence])


QUESTIONS: Mapping[str, type[Question]] = MappingProxyType(
    {"worst": _Worst, "gap": _Gap, "each": _Each, "calibration": _Calibration}
)


def question_of(session: Session) -> Question:
    """Return the question of a session."""
    return QUESTIONS[session.state.question](session, measure(session))


def _shown_interval(lower: float, upper: float) -> str:
    """Return an interval as part of a sentence."""
    if not np.isfinite(upper - lower):
        return "of too few labels for an interval"
    return f"95 % interval {interval(lower, upper)}"


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
