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
    sentences : the answer for a reader.
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
    of_accuracy, of_metric : the question as a sentence, in which braces stand for the metric.
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
        """Return the current certainty of the answer of `before`, for one group."""

    def why(self, known: GroupPosterior, group: int) -> str:
        """Say what a label of this group would do: how certain the answer is, now and after it."""
        after = (known, known.after(group, up=True), known.after(group, up=False))
        now, up, down = (self.certain(label, group, known) for label in after)
        right = self.about.metric.name == ACCURACY
        ups, downs = ("right", "wrong") if right else ("up", "down")
        return f"{self.certainty} {now:.3f}; {up:.3f} if {ups}, {down:.3f} if {downs}"

    def limits(self, *, anytime_valid: bool) -> Limits:
        """Return the metric (A,) with the intervals that are printed.

        Parameters
        ----------
        anytime_valid : whether they hold whenever labelling is stopped.
        """
        return self.about.limits(LEVEL, anytime_valid=anytime_valid)

    def groups(self) -> pd.DataFrame:
        """Return the metric in every group, see :func:`group_figures`."""
        return group_figures(self.session, self.about, self.limits)

    def answer(self) -> QuestionAnswer:
        """Return what labels say, with what that means for whoever labels."""
        answer = self.answer_from(self.limits(anytime_valid=self.session.state.anytime_valid))
        more = [*_too_few_labels(self.session), _stopping(self.session, settled=answer.settled)]
        return replace(answer, sentences=[*answer.sentences, *more])

    @abstractmethod
    def answer_from(self, limits: Limits) -> QuestionAnswer:
        """Return the answer that the intervals of the metric (A,) give, with one sentence."""


class _Worst(Question):
    """In which group a metric is worst."""

    of_accuracy = "In which group are predictions least often right?"
    of_metric = "In which group is the {} worst?"
    certainty = "P(worst)"
    of_limits = ""  # a sentence on what the limits are about

    @property
    def lowest(self) -> bool:
        """Whether the lowest value is looked for, rather than the highest."""
        metric = self.about.metric
        if metric.better not in ("higher", "lower"):
            raise UserError(
                f"question=worst needs a metric of which more is better or worse, and "
                f"{metric.name} is neither: ask question=gap or question=each"
            )
        return metric.better == "higher"

    def reward(self) -> Reward:
        return Lowest() if self.lowest else Highest()

    def quantity(self, limits: Limits) -> Limits:
        """Return the quantity that groups are compared by, of a metric (..., A) with limits."""
        return limits

    def _chances(self, known: GroupPosterior) -> Floats:
        """Return the probability (A,) that each group is the one that is looked for."""
        draws = self.quantity(Limits(known.draws, known.draws, known.draws)).value
        return ranks(draws, largest=not self.lowest).first

    def now(self, known: GroupPosterior) -> str:
        chances = self._chances(known)
        best = int(chances.argmax())
        name = self.session.names[best]
        return f"{_GUESS}: {name}, with probability {probability(chances[best])}"

    def certain(self, known: GroupPosterior, group: int, before: GroupPosterior) -> float:
        return float(self._chances(known)[group])

    def _joint_limits(self, level: float, *, anytime_valid: bool) -> Limits:
        """Return the quantity with limits that hold for all groups together."""
        single_level = together(level, len(self.session.names))
        return self.quantity(self.about.limits(single_level, anytime_valid=anytime_valid))

    def limits(self, *, anytime_valid: bool) -> Limits:
        single = self.quantity(super().limits(anytime_valid=anytime_valid))
        joint = self._joint_limits(LEVEL, anytime_valid=anytime_valid)
        return found_limits(single, joint, lowest=self.lowest)

    def answer_from(self, limits: Limits) -> QuestionAnswer:
        """Return the group that looks worst, and which others it may be."""
        names = self.session.names
        sure_limits = self._joint_limits(
            1 - QUESTION_RATE, anytime_valid=self.session.state.anytime_valid
        )
        possible = candidates(sure_limits, lowest=self.lowest) | self.session.few
        ascending = limits.value if self.lowest else -limits.value
        extreme = int(np.where(np.isnan(ascending), np.inf, ascending).argmin())
        n_others = int(possible.sum()) - 1
        estimate = limits.at(extreme)
        return QuestionAnswer(
            found=[names[extreme]],
            possible=list(compress(names, possible)),
            settled=not n_others,
            sentences=[self._extreme_sentence(names[extreme], estimate, n_others)],
        )

    def _extreme_sentence(
        self, name: str, estimate: tuple[float, float, float], n_others: int
    ) -> str:
        """Say which group looks worst, and how many others it may be.

        Parameters
        ----------
        name : the group that looks worst.
        estimate : its value, and the lower and upper limit.
        n_others : how many other groups may still be the worst.
        """
        value, lower, upper = estimate
        value_text = f"({self.about.metric.label} {number(value)}, {_shown_interval(lower, upper)})"
        if np.isnan(value):
            sentence = "No label says anything yet."
        elif not n_others:
            sentence = f"It is {name}, surely {value_text}."
        else:
            groups = "groups" if n_others > 1 else "group"
            sentence = (
                f"It looks like {name} {value_text}; {count(n_others)} other {groups} may still be "
                "it."
            )
        return self.of_limits.format(self.about.metric.label) + sentence


class _Calibration(_Worst):
    """In which group scores are furthest from the truth."""

    of_accuracy = "In which group are scores furthest from how often predictions are right?"
    of_metric = "In which group is the {} furthest from what scores foretell?"
    certainty = "P(furthest)"
    of_limits = "Distances are of the {} from what scores say. "
    lowest = False

    @property
    def foretold(self) -> Floats:
        """The rate (A,) of each group that the scores predict.

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

    def quantity(self, limits: Limits) -> Limits:
        """Return the distance of a rate (..., A) from the one that scores predict, with limits."""
        value, lower, upper = (of_metric - self.foretold for of_metric in limits)
        smallest = np.maximum(np.maximum(lower, -upper), 0.0)
        largest = np.maximum(np.abs(lower), np.abs(upper))
        return Limits(np.abs(value), smallest, largest)


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
        """Say which two groups look furthest apart, and how probably they differ by epsilon."""
        low, high = known.furthest_apart(self.epsilon)
        beyond = known.beyond(low, high, self.epsilon)
        none_differ = float((np.ptp(known.draws, axis=1) < self.epsilon).mean())
        names = self.session.names
        return (
            f"{_GUESS}: {names[low]} is behind {names[high]} by more than {self.epsilon:g} with "
            f"probability {probability(beyond)}, and no two differ by that much with "
            f"{probability(none_differ)}"
        )

    def certain(self, known: GroupPosterior, group: int, before: GroupPosterior) -> float:
        return known.beyond(*before.furthest_apart(self.epsilon), self.epsilon)

    def answer_from(self, limits: Limits) -> QuestionAnswer:
        """Return whether any two groups differ by more than epsilon, and which look it most."""
        names = self.session.names
        has_labels = ~np.isnan(limits.value)
        if has_labels.sum() < 2:
            return QuestionAnswer(
                found=[],
                possible=names,
                settled=False,
                sentences=["Fewer than two groups have labels."],
            )

        def limits_at(level: float) -> GroupLimits:
            """Return the pointwise and simultaneous intervals of the groups with labels."""
            anytime_valid = self.session.state.anytime_valid
            simultaneous = simultaneous_level(level, len(names))
            pointwise_limits = self.about.limits(level, anytime_valid=anytime_valid)
            joint_limits = self.about.limits(simultaneous, anytime_valid=anytime_valid)
            return GroupLimits(pointwise_limits.take(has_labels), joint_limits.take(has_labels))

        gap, lower, upper = map(float, largest_gap(limits_at(LEVEL)))
        verdict = answer_gap(
            lambda level: GapInterval.of(limits_at(level)),
            self.epsilon,
            QUESTION_RATE,
            may_be_small=bool(has_labels.all()) and not self.session.few.any(),
        ).verdict
        lowest = names[np.nanargmin(limits.value)]
        highest = names[np.nanargmax(limits.value)]
        sentence = (
            f"{_GAP_VERDICTS[verdict]} by more than {self.epsilon:g}: the largest gap is "
            f"{number(gap)}, {_shown_interval(lower, upper)}; {lowest} and {highest} look "
            "furthest apart."
        )
        return QuestionAnswer(
            found=(lowest, highest), possible=names, settled=verdict != OPEN, sentences=[sentence]
        )


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
        name = self.session.names[widest]
        return f"So far: known least of {name}, where the interval is ± {halves[widest]:.3f}"

    def certain(self, known: GroupPosterior, group: int, before: GroupPosterior) -> float:
        return known.half_width(group)

    def answer_from(self, limits: Limits) -> QuestionAnswer:
        return QuestionAnswer(
            found=[],
            possible=self.session.names,
            settled=not self.session.few.any(),
            sentences=["Every group's interval holds 95 % of the time, each by itself."],
        )


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


def _too_few_labels(session: Session) -> Iterator[str]:
    """Name the groups that have too few labels to be called fine."""
    groups = zip(session.names, session.labels, session.few, strict=True)
    with_few = [f"{name} ({labels})" for name, labels, few in groups if few]
    if len(with_few) == len(session.names):
        yield f"Every group has too few labels to be called fine, which takes {FEWEST_LABELS}."
    elif with_few:
        yield (
            f"Too few labels to be called fine, which takes {FEWEST_LABELS}: {', '.join(with_few)}."
        )


def _stopping(session: Session, *, settled: bool) -> str:
    """Say whether labelling may stop, and what stopping does to the intervals."""
    state = session.state
    if not state.anytime_valid:
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
    labels : how many rows to return at most.
    part : (k, m): rows of the k-th of m people who label at the same time.
    """
    state = session.state
    waiting = session.waiting(part)
    question = question_of(session)
    posterior = question.about.posterior.take(None)
    left = session.by_group(waiting)[None]
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
