"""A question asked while rows are labelled: its figures, its answer, and which rows are next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import compress
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from fairbench.audits.assessment import rows_of
from fairbench.audits.gaps import FEWEST_LABELS
from fairbench.audits.labelling.session import (
    ACCURACY,
    PREDICTED,
    Answer,
    Session,
    State,
    StateFile,
    open_session,
)
from fairbench.audits.question import Options, check_unchanged
from fairbench.audits.table import AuditTable
from fairbench.core.arrays import Floats, Rows, rng
from fairbench.core.errors import UserError, check_choice, check_minimum, unknown_name
from fairbench.core.files import file_sha256
from fairbench.core.text import count, interval, number, probability, shortened
from fairbench.data.tables import check_file, names_in, read_any_table
from fairbench.evaluation.findings import (
    GAP,
    LARGE,
    LEVEL,
    NOT_MEASURED,
    OPEN,
    QUESTION_RATE,
    SMALL,
    Finding,
    Measure,
)
from fairbench.evaluation.intervals import GapInterval, LabelledIntervals
from fairbench.evaluation.some_labels import (
    LabelledMeans,
    LabelledMeasure,
    LabelledRates,
    expected_rates,
    one_group,
)
from fairbench.inference.active import (
    STRATEGIES,
    BetaArms,
    Estimation,
    GroupPosterior,
    Highest,
    LeastCalibrated,
    LeastKnown,
    Lowest,
    NormalArms,
    Reward,
    WidestGap,
    next_arms,
)
from fairbench.inference.gaps import GroupLimits, largest_gap, simultaneous_level
from fairbench.inference.posterior import Beta, ranks
from fairbench.inference.rates import Limits, candidates, found_limits, together
from fairbench.inference.survey import needs_no_label
from fairbench.metrics.registry import BINARY, REGRESSION, Metric, metrics_of

REGRESSION_METRIC = "mae"
_OF_CLASSES = ("accuracy", "error_rate", "brier_score")
_SHARES = ("accuracy", "error_rate")  # rates in which every row of a group counts


def askable(session: Session) -> Mapping[str, Metric]:
    """Return the metrics about which labels of a table carry information, by name."""
    columns = {"prediction"} | ({"score"} if session.table.score is not None else set())
    metrics = metrics_of(BINARY, "rate", "mean", "auc")
    if session.classes:
        return {name: metrics[name] for name in _OF_CLASSES}
    if session.predicted is not None:
        metrics = metrics_of(REGRESSION, "mean", "root_mean", "explained")
    return {
        name: metric
        for name, metric in metrics.items()
        if columns.issuperset(metric.needs)
        and name != "mean_prediction"
        and not (metric.rates and all(map(needs_no_label, metric.rates)))
    }


def metric_named(name: str, session: Session) -> str:
    """Return the name of a metric that questions can be about; of a gap in a rate, that rate.

    Raises
    ------
    UserError : if no question can be about this metric; the message lists those that can.
    """
    names = askable(session)
    gap = metrics_of(BINARY, "widest", "difference", "ratio").get(name)
    rates = [rate.name for rate in gap.rates] if gap is not None else []
    if len(rates) > 1:
        raise UserError(
            f"metric={name} is of {' and '.join(rates)}: ask about one of them, with question=gap"
        )
    if rates and rates[0] in names:
        return rates[0]
    check_choice("metric", name, names)
    return name


def measure(session: Session, name: str = "") -> LabelledMeasure:
    """Return a metric in the groups among which rows are chosen; by default the question's."""
    metric = askable(session)[metric_named(name or session.state.metric, session)]
    table = session.table
    known = table.known
    if metric.interval == "rate":
        intervals = _label_intervals(replace(table, sampling=None), session.state.by, session.arms)
        expected = expected_rates(
            metric, table.score, table.prediction, session.codes, groups=len(session.names)
        )
        return LabelledRates(metric, intervals, expected)
    predicted = table.prediction.astype(float) if session.predicted is None else session.predicted
    columns = {"prediction": predicted[known]}
    if table.score is not None:
        columns["score"] = table.score[known]
    groups = session.arms.iloc[known].reset_index(drop=True)
    return LabelledMeans(metric, table.label[known], columns, groups)


def estimate_for_everyone(
    session: Session, about: LabelledMeasure
) -> tuple[float, float, float] | None:
    """Return a metric of all rows with its interval, as a report on the labels has it.

    Each label is weighted by how many rows of its group it stands for. The groups' anytime-valid
    intervals of rates cannot simply be combined: with ten groups, the combined interval missed at
    some number of labels in 10 to 38 % of runs. None for a rate whose denominator is not all rows,
    for an area, and if a group has no label.
    """
    anytime_valid = session.state.anytime_valid
    if isinstance(about, LabelledMeans):
        return about.everyone(session.sizes, LEVEL, anytime_valid=anytime_valid)
    if about.metric.name not in _SHARES or not session.labels.all():
        return None
    audited = session.audited()
    about = replace(about, intervals=_label_intervals(audited, "", one_group(len(audited))))
    return about.limits(LEVEL, anytime_valid=anytime_valid).at(0)


def _label_intervals(table: AuditTable, attribute: str, groups: pd.Series) -> LabelledIntervals:
    """Return the intervals of the groups of an attribute, from the labels so far."""
    counted = rows_of(table).labelled_counts(attribute, groups, rng(0, "measure"), LEVEL)
    assert isinstance(counted.intervals, LabelledIntervals)
    return counted.intervals


def group_figures(
    session: Session, about: LabelledMeasure, limits: Callable[..., Limits]
) -> pd.DataFrame:
    """Return a metric in every group.

    Parameters
    ----------
    limits : a function of ``anytime_valid=`` that returns the metric (A,) with intervals. If true,
        they hold whenever labelling stops; otherwise, at a number of labels that was fixed before
        the first one.

    Returns
    -------
    A row for each group: ``labels``, its number of labels; ``rows``, how many of these rows are in
    the metric's denominator; ``value``; ``lower`` and ``upper``, the interval that is valid for the
    way in which labelling was stopped (NaN if there are too few labels); ``fixed`` and
    ``whenever``, the intervals for a fixed number of labels and for any stopping time; and ``few``,
    whether the group has too few labels to be called fine.
    """
    intervals = {}
    for name in ("fixed", "whenever"):
        value, *interval = limits(anytime_valid=name == "whenever")
        lacks_interval = ~np.isfinite(interval[1] - interval[0])
        lower_and_upper = (np.where(lacks_interval, np.nan, limit).tolist() for limit in interval)
        intervals[name] = list(zip(*lower_and_upper, strict=True))
    valid_kind = "whenever" if session.state.anytime_valid else "fixed"
    lower, upper = zip(*intervals[valid_kind], strict=True)
    columns = {
        "group": session.names,
        "labels": session.labels,
        "rows": about.rows,
        "value": value,
        "lower": lower,
        "upper": upper,
        **intervals,
        "few": session.few,
    }
    return pd.DataFrame(columns)


# The questions that labels can answer: what a label teaches, and what labels say, in sentences.
#
# Which group gets the next label, and when labelling ends, depends on what labels said before.
# Rows within a group are drawn at random, so a group's labels are the first of a random sequence;
# only how many there are was chosen. Intervals that hold at all numbers together are not moved by
# that. Where the number of all labels was said beforehand, those of a fixed number hold too
# (measured, as every group gets half of an equal share), and are narrower.

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
        return ranks(draws, largest=not self.lowest)["first"]

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
        metric = self.about.metric
        question = Finding(GAP, self.session.state.by, metric.label, NOT_MEASURED)
        asked = Measure(
            replace(question, bound=self.epsilon),
            gap=lambda level: GapInterval.of(limits_at(level)),
            may_be_small=bool(has_labels.all()) and not self.session.few.any(),
        )
        verdict = asked.answered(QUESTION_RATE).verdict
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


# Checks the labels that a person gives against the table and earlier labels, and stores them.

# What of a state may be asked for anew: the fields of it that are options of a command.
ASKED = ("question", "strategy", "metric", "stop")


def begin(
    file: StateFile, options: Options, asked: Mapping[str, Any], by: Sequence[str] = ()
) -> Session:
    """Write the first state of an audit, and open it.

    Parameters
    ----------
    file : the file of the state.
    options : the options of the audit.
    asked : values of fields of the state, of those in :data:`ASKED`.
    by : the columns whose groups rows are chosen among, all columns of groups by default.

    Raises
    ------
    UserError : the options describe no audit, or the file of predictions is not as they say.
    """
    digest = file_sha256(options.path) if options.path.is_file() else ""
    session = open_session(State(options, digest, by=_by(by, options)))
    state = replace(session.state, rows=len(session.table))
    if session.predicted is not None:
        state = replace(state, metric=REGRESSION_METRIC)
    session = _with_question(replace(session, state=state), asked)
    file.create(session.state)
    return session


def go_on(
    file: StateFile,
    options: Options,
    given: Collection[str],
    asked: Mapping[str, Any],
    by: Sequence[str] = (),
) -> Session:
    """Open the state there is, with another question or strategy where one is asked for.

    Parameters
    ----------
    given : the names of the options that the command line gave; the others are the state's.
    asked, by : the same parameters as of `begin`.

    Raises
    ------
    UserError : what was given is another audit, or the predictions have changed.
    """
    session = _with_question(resume(file, options.path), asked)
    state = session.state
    differs = ["by"] if by and _by(by, state.options) != state.by else []
    check_unchanged(file.path, state.options, options, given, also=differs)

    def change(now: State) -> State:
        """Change the fields that are asked for in the state as it is now."""
        # Others may have changed the state since it was read. Keep their changes, except in the
        # fields that are asked for.
        _check_same(file, now, state)
        if "stop" in asked:
            _check_stop(state.stop, now)
        of = now if options.path == Path() else state
        return replace(now, options=of.options, **{name: getattr(state, name) for name in asked})

    file.change(change)
    return session


def resume(file: StateFile, path: Path) -> Session:
    """Open the state there is; its predictions are in `path` by now, unless that is empty.

    Raises
    ------
    UserError : it is empty, and the state names a file outside of its folder.
    """
    state = file.read()
    check_choice(f"question in {file.path}", state.question, QUESTIONS)
    check_choice(f"strategy in {file.path}", state.strategy, ONE_AT_A_TIME)
    path = file.path_in_folder(state.options.path) if path == Path() else path
    return open_session(replace(state, options=replace(state.options, path=path)))


def _with_question(session: Session, asked: Mapping[str, Any]) -> Session:
    """Return the session with the question and strategy that are asked for."""
    before = session.state
    state = replace(before, **asked)
    if "metric" in asked:
        state = replace(state, metric=metric_named(state.metric, session))
    check_choice("question", state.question, QUESTIONS)
    check_choice("strategy", state.strategy, ONE_AT_A_TIME)
    _check_stop(state.stop, before)
    check_minimum("stop", state.stop, 0)
    session = replace(session, state=state)
    question_of(session).reward()  # refuses a question that this table cannot answer
    return session


def _check_stop(stop: int, state: State) -> None:
    """Refuse a change of stop=, the number of labels to stop at, after the first label."""
    if stop != state.stop and state.labels:
        raise UserError(
            f"stop={stop} comes too late: at how many labels to stop is said before the first "
            f"one, and there are {len(state.labels)}"
        )


def _check_same(file: StateFile, now: State, before: State) -> None:
    """Refuse a state that has become that of another table since it was read."""
    if now.sha256 != before.sha256:
        raise UserError(f"{file.path} has become the state of another table meanwhile")


def _by(names: Sequence[str], options: Options) -> str:
    """Return the attribute whose groups rows are chosen among, of some columns of groups or all."""
    for name in names:
        if name not in options.group:
            raise unknown_name("group in by=", name, options.group)
    if len(names) not in (0, 1, 2, len(options.group)):
        raise UserError("by= names one column of group=, two, or all of them")
    kept = [name for name in options.group if name in names or not names]
    return " x ".join(kept) or PREDICTED


def row_labels(pairs: Iterable[tuple[str, str]], session: Session) -> dict[int, str]:
    """Return row -> label of pairs such as ``("17", "1")``, or ``("C-1042", "1")`` with id=.

    Raises
    ------
    UserError : a row that is no number, an identifier that no row has, or two labels of one row.
    """
    labels: dict[int, str] = {}
    for name, label in pairs:
        row = row_named(name, session)
        if labels.setdefault(row, label) != label:
            raise UserError(f"{session.name(row)} is given two labels")
    return labels


def row_named(name: str, session: Session) -> int:
    """Return the row, counted from 1, that a person means by its number or its identifier."""
    options = session.state.options
    if options.id:
        if name not in session.rows:
            raise unknown_name(f"{options.id} of {options.path.name}", name, session.rows)
        return session.rows[name]
    if not name.isdecimal():
        raise UserError(f"'{shortened(name)}' is no row: rows are whole numbers, counted from 1")
    return int(name)


def pairs_in(path: Path, session: Session) -> list[tuple[str, str]]:
    """Return the rows or identifiers in a file of labels, each with its label.

    Rows are in the column ``row``, identifiers in that of ``id=``; labels are in the column
    ``label``, or in one of the target's name. Any file that an audit reads will do.

    Raises
    ------
    UserError : no such file or column.
    """
    options = session.state.options
    keys = [options.id, "row"] if options.id else ["row"]
    check_file(path)
    wanted = [(key, label) for key in keys for label in ("label", options.target) if label]
    present = [columns for columns in wanted if {*columns} <= {*names_in(path, columns)}]
    if not present:
        names = names_in(path, wanted[0])
        names_text = ", ".join(shortened(name, 30) for name in names[:8])
        keys_text = " or ".join(dict.fromkeys(keys))
        raise UserError(f"{path.name}: columns {keys_text} and label are needed, not {names_text}")
    key, label = present[0]
    # Where a file lists rows that are still to be labelled, they are no answers.
    frame = read_any_table(path, present[0])
    answered = frame[[key, label]].loc[lambda texts: texts[label] != ""]
    pairs = list(answered.itertuples(index=False, name=None))
    if key == "row" and options.id:
        return [(_identifier(row, session), text) for row, text in pairs]
    return pairs


def _identifier(row: str, session: Session) -> str:
    """Return the identifier of a row, by its number as text."""
    if not (row.isdecimal() and 1 <= int(row) <= len(session.ids)):
        raise UserError(f"row {shortened(row)} does not exist: there are 1 to {len(session.ids)}")
    return session.ids[int(row) - 1]


def store(
    file: StateFile, session: Session, labels: Mapping[int, str], *, overwrite: bool = False
) -> Sequence[Answer]:
    """Store labels, all or none, and return those that are new.

    Parameters
    ----------
    labels : row -> label, checked.

    Raises
    ------
    UserError : another label is there, perhaps since a moment ago, and `overwrite` is false; or
        the state has become that of another table.
    """
    rows_in_file = {int(index) + 1 for index in session.table.known} - {*session.state.labels}
    in_file = {row: session.label_in_file(row - 1) for row in rows_in_file}
    time = datetime.now(UTC).isoformat(timespec="seconds")
    new: list[Answer] = []

    def change(state: State) -> State:
        """Add the labels that are new to the state as it is now."""
        _check_same(file, state, session.state)
        before = {**in_file, **state.labels}
        for row, label in labels.items():
            if before.get(row) == label:
                continue
            if before.get(row) and not overwrite:
                raise UserError(
                    f"{session.name(row)} is labelled {before[row]} already; overwrite=true "
                    "replaces it"
                )
            new.append(Answer(row, label, time))
        # A third name is refused, which two people can bring about where one was still open.
        names = {*before.values(), *labels.values(), session.table.labels[1]} - {""}
        if session.label_texts is None and len(names) > 2:
            raise UserError(f"labels would have three names: {', '.join(sorted(names))}")
        # The file of predictions may be found in another place by now.
        return replace(state, options=session.state.options).with_answers(tuple(new))

    file.change(change)
    return new
