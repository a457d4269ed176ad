"""A question asked while rows are labelled: its figures, answer, next rows and pages.

The pages are documents: the rows to label next and why, a row for the person who is to label it,
and the report with what its labels say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pandas as pd

from fairbench.audits import report
from fairbench.audits.gaps import FEWEST_LABELS
from fairbench.audits.kinds import document_of_table
from fairbench.audits.question import Options, check_unchanged
from fairbench.audits.table import AuditTable
from fairbench.core.arrays import Floats, Rows, rng
from fairbench.core.errors import UserError, check_choice, check_minimum
from fairbench.core.files import file_sha256
from fairbench.core.text import interval, number
from fairbench.evaluation import findings
from fairbench.evaluation.groups import GapInterval, LabelledIntervals
from fairbench.evaluation.some_labels import one_group
from fairbench.inference.gaps import GroupLimits, largest_gap, simultaneous_level
from fairbench.inference.posterior import ranks
from fairbench.inference.rates import Limits
from fairbench.metrics.registry import BINARY, REGRESSION, Metric, metrics_of
from fairbench.reporting.document import model
from fairbench.reporting.group_tables import named_table, sentence_of
from fairbench_label import active, estimates
from fairbench_label import session as sessions
from fairbench_label.session import ACCURACY, PREDICTED, Session, State, StateFile, open_session

_PAGE = "fairbench_label:labelling"
_said = partial(sentence_of, _PAGE)
REGRESSION_METRIC = "mae"
_OF_CLASSES = ("accuracy", "error_rate", "brier_score")
_DRAWS = 2000


def _askable(session: Session) -> Mapping[str, Metric]:
    """Return the metrics about which labels of a table carry information, by name."""
    metrics = metrics_of(BINARY, "rate", "mean", "auc")
    if session.classes:
        return {name: metrics[name] for name in _OF_CLASSES}
    if session.predicted is not None:
        metrics = metrics_of(REGRESSION, "mean", "root_mean", "explained")
    columns = {"prediction", "score"} if session.table.score is not None else {"prediction"}

    def is_known_by_labels(metric: Metric) -> bool:
        needs_none = metric.rates and all(rate.needs_no_label for rate in metric.rates)
        return columns.issuperset(metric.needs) and not needs_none

    of_model = {name: metric for name, metric in metrics.items() if name != "mean_prediction"}
    return {name: metric for name, metric in of_model.items() if is_known_by_labels(metric)}


def measure(session: Session, name: str = "") -> estimates.LabelledMeasure:
    """Return a metric in the groups among which rows are chosen; by default the question's."""
    name, metrics = name or session.state.metric, _askable(session)
    check_choice("metric", name, metrics)
    metric = metrics[name]
    table, known = session.table, session.table.known
    if metric.interval == "rate":
        intervals = _label_intervals(replace(table, sampling=None), session.state.by, session.arms)
        of_rows = table.score, table.prediction, session.codes
        expected = estimates.expected_rates(metric, *of_rows, groups=len(session.names))
        if session.state.anytime_valid:
            intervals = estimates.LastingIntervals.lasting(intervals)
        return estimates.LabelledRates(metric, intervals, expected)
    predicted = table.prediction.astype(float) if session.predicted is None else session.predicted
    columns = {"prediction": predicted[known]}
    if table.score is not None:
        columns["score"] = table.score[known]
    groups = session.arms.iloc[known].reset_index(drop=True)
    lasting = session.state.anytime_valid
    return estimates.LabelledMeans(metric, table.label[known], columns, groups, lasting)


def _estimate_for_everyone(
    session: Session, about: estimates.LabelledMeasure
) -> tuple[float, float, float] | None:
    """Return a metric of all rows with its interval, as a report on the labels has it.

    Each label is weighted by how many rows of its group it stands for. The groups' anytime-valid
    intervals of rates cannot simply be combined: with ten groups, the combined interval missed at
    some number of labels in 10 to 38 % of runs. None for an area, and if a group has no label.
    """
    if isinstance(about, estimates.LabelledMeans):
        return about.everyone(session.sizes, findings.LEVEL)
    if not session.labels.all():
        return None
    audited = session.audited()
    about = replace(about, intervals=_label_intervals(audited, "", one_group(len(audited))))
    return about.limits(findings.LEVEL).at(0)


def _label_intervals(table: AuditTable, attribute: str, groups: pd.Series) -> LabelledIntervals:
    """Return the intervals of the groups of an attribute, from the labels so far."""
    counted = table.as_chosen.labelled_counts(attribute, groups, rng(0, "measure"), findings.LEVEL)
    assert isinstance(counted.intervals, LabelledIntervals)
    return counted.intervals


def _group_figures(
    session: Session, about: estimates.LabelledMeasure, limits: Limits
) -> pd.DataFrame:
    """Return a metric (A,) with intervals in every group.

    Returns
    -------
    A row for each group: ``labels``, its number of labels; ``rows``, how many of these rows are in
    the metric's denominator; ``value``; ``lower`` and ``upper``, the interval that is valid for the
    way in which labelling was stopped (NaN if there are too few labels); and ``few``, whether the
    group has too few labels to be called fine.
    """
    figures = {"group": session.names, "labels": session.labels, "rows": about.rows}
    unknown = ~np.isfinite(limits.upper - limits.lower)
    lower, upper = (np.where(unknown, np.nan, end) for end in limits[1:])
    ends = {"value": limits.value, "lower": lower, "upper": upper}
    return pd.DataFrame({**figures, **ends, "few": session.few})


# The questions that labels can answer: what a label teaches, and what labels say, in sentences.
#
# Which group gets the next label, and when labelling ends, depends on what labels said before.
# Rows within a group are drawn at random, so a group's labels are the first of a random sequence;
# only how many there are was chosen. Intervals that hold at all numbers together are not moved by
# that. Where the number of all labels was said beforehand, those of a fixed number hold too
# (measured, as every group gets half of an equal share), and are narrower.


# What labels say to a question: found, the group that looks worst, or furthest from the scores, or
# both that are furthest apart; possible, the groups that it may be, as all others have labels
# enough and surely are not; settled, whether labelling may stop; and sentences, the answer.
_Answer: TypeAlias = dict[str, Any]


def _answered(found: Sequence[str], possible: Sequence[str], settled: bool, said: str) -> _Answer:
    return {"found": found, "possible": possible, "settled": settled, "sentences": [said]}


@dataclass(frozen=True, eq=False)
class Question(ABC):
    """A question about a metric of groups, and how labels answer it.

    Attributes
    ----------
    certainty : what `certain` returns, in short.
    """

    session: Session
    about: estimates.LabelledMeasure
    certainty: ClassVar[str]

    @property
    def sentence(self) -> str:
        """The question as a sentence."""
        of = ACCURACY if self.about.metric.name == ACCURACY else "metric"
        name = f"{self.session.state.question}_of_{of}"
        return _said(name, label=self.about.metric.label)

    @abstractmethod
    def reward(self) -> active.Reward:
        """Return the expected reward of a label in each group.

        Raises
        ------
        UserError : this cannot be asked of this table, or of this metric.
        """

    @property
    def draws(self) -> Floats:
        """Draws (T, A) of the metric in every group, of what is known of it so far."""
        generator = rng(self.session.state.options.seed, "what a label would settle")
        return self.about.posterior.draws(_DRAWS, generator)

    @abstractmethod
    def certain(self) -> Floats:
        """Return how certain the answer is by now, or how much is known, for each group (A,)."""

    def limits(self) -> Limits:
        """Return the metric (A,) with the intervals that are printed."""
        return self.about.limits(findings.LEVEL)

    def groups(self) -> pd.DataFrame:
        """Return the metric in every group, see :func:`_group_figures`."""
        return _group_figures(self.session, self.about, self.limits())

    def answer(self) -> _Answer:
        """Return what labels say, with what that means for whoever labels."""
        answer = self.answer_from(self.limits())
        answer["sentences"] += _too_few_labels(self.session)
        answer["sentences"].append(_stopping(self.session, settled=answer["settled"]))
        return answer

    @abstractmethod
    def answer_from(self, limits: Limits) -> _Answer:
        """Return the answer that the intervals of the metric (A,) give, with one sentence."""


class _Worst(Question):
    """In which group a metric is worst."""

    certainty = "P(worst)"
    of_limits = ""  # a sentence on what the limits are about

    @property
    def lowest(self) -> bool:
        """Whether the lowest value is looked for, rather than the highest."""
        metric = self.about.metric
        if metric.better not in ("higher", "lower"):
            raise UserError(_said("not_worst", metric=metric.name))
        return metric.better == "higher"

    def reward(self) -> active.Reward:
        return active.Lowest() if self.lowest else active.Highest()

    def quantity(self, limits: Limits) -> Limits:
        """Return the quantity that groups are compared by, of a metric (..., A) with limits."""
        return limits

    def certain(self) -> Floats:
        draws = self.quantity(Limits(*[self.draws] * 3)).value
        return ranks(draws, largest=not self.lowest)["first"]

    def _joint_limits(self, level: float) -> Limits:
        """Return the quantity with limits that hold for all groups together."""
        single_level = estimates.together(level, len(self.session.names))
        return self.quantity(self.about.limits(single_level))

    def limits(self) -> Limits:
        single, joint = self.quantity(super().limits()), self._joint_limits(findings.LEVEL)
        return estimates.found_limits(single, joint, lowest=self.lowest)

    def answer_from(self, limits: Limits) -> _Answer:
        """Return the group that looks worst, and which others it may be."""
        names = self.session.names
        sure_limits = self._joint_limits(1 - findings.QUESTION_RATE)
        possible = estimates.candidates(sure_limits, lowest=self.lowest) | self.session.few
        ascending = limits.value if self.lowest else -limits.value
        extreme = int(np.where(np.isnan(ascending), np.inf, ascending).argmin())
        others = int(possible.sum()) - 1
        value, lower, upper = limits.at(extreme)
        label = self.about.metric.label
        values = {
            "name": names[extreme],
            "figures": f"({label} {number(value)}, {_shown_interval(lower, upper)})",
            "others": others,
            "groups": "groups" if others > 1 else "group",
        }
        said = "worst_none" if np.isnan(value) else "worst_open" if others else "worst_found"
        sentence = self.of_limits.format(label) + _said(said, **values)
        return _answered([names[extreme]], list(compress(names, possible)), not others, sentence)


class _Calibration(_Worst):
    """In which group scores are furthest from the truth."""

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
        if not isinstance(self.about, estimates.LabelledRates):
            raise UserError(_said("no_rate", metric=self.about.metric.name))
        if self.session.table.score is None:
            raise UserError("question=calibration needs scores: name their column, score=...")
        return self.about.expected

    def reward(self) -> active.Reward:
        return active.LeastCalibrated(self.foretold)

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

    certainty = "P(gap)"

    @property
    def epsilon(self) -> float:
        """The gap that matters."""
        return self.session.state.options.epsilon

    def reward(self) -> active.Reward:
        if isinstance(self.about, estimates.LabelledRates):
            return active.WidestGap(self.epsilon)
        return active.LeastKnown(np.ones(len(self.session.names)), furthest=True)

    def certain(self) -> Floats:
        beyond = np.ptp(self.draws, axis=1) > self.epsilon
        return np.full(len(self.session.names), beyond.mean())

    def answer_from(self, limits: Limits) -> _Answer:
        """Return whether any two groups differ by more than epsilon, and which look it most."""
        names = self.session.names
        has_labels = ~np.isnan(limits.value)
        if has_labels.sum() < 2:
            return _answered([], names, False, "Fewer than two groups have labels.")

        def limits_at(level: float) -> GroupLimits:
            """Return the pointwise and simultaneous intervals of the groups with labels."""
            joint = self.about.limits(simultaneous_level(level, len(names)))
            return GroupLimits(self.about.limits(level).take(has_labels), joint.take(has_labels))

        gap, lower, upper = map(float, largest_gap(limits_at(findings.LEVEL)))
        label, by = self.about.metric.label, self.session.state.by
        asked = findings.Measure(
            findings.Finding(findings.GAP, by, label, findings.NOT_MEASURED, bound=self.epsilon),
            gap=lambda level: GapInterval.of(limits_at(level)),
            may_be_small=bool(has_labels.all()) and not self.session.few.any(),
        )
        verdict = asked.answered(findings.QUESTION_RATE).verdict
        found = names[np.nanargmin(limits.value)], names[np.nanargmax(limits.value)]
        told = {"verdict": _GAP_VERDICTS[verdict], "epsilon": self.epsilon, "gap": gap}
        sentence = _said("gap", interval=_shown_interval(lower, upper), found=found, **told)
        return _answered(found, names, verdict != findings.OPEN, sentence)


_GAP_VERDICTS = {
    findings.LARGE: "Yes, some two differ",
    findings.SMALL: "No two differ",
    findings.OPEN: "Open whether any two differ",
}


class _Each(Question):
    """How large a metric is in every group."""

    certainty = "±"

    def reward(self) -> active.Reward:
        share = self.session.sizes / self.session.sizes.sum()
        is_rate = isinstance(self.about, estimates.LabelledRates)
        return active.Estimation(share) if is_rate else active.LeastKnown(share)

    def certain(self) -> Floats:
        lower, upper = self.about.posterior.interval()
        return (upper - lower) / 2

    def answer_from(self, limits: Limits) -> _Answer:
        settled = not self.session.few.any()
        return _answered([], self.session.names, settled, _said("each"))


QUESTIONS: Mapping[str, type[Question]] = {
    "worst": _Worst, "gap": _Gap, "each": _Each, "calibration": _Calibration,
}  # fmt: skip


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
    groups = map("{} ({})".format, session.names, session.labels)
    if session.few.any():
        yield _said("few", enough=FEWEST_LABELS, groups=", ".join(compress(groups, session.few)))


def _stopping(session: Session, *, settled: bool) -> str:
    """Say whether labelling may stop, and what stopping does to the intervals."""
    state = session.state
    if not state.anytime_valid:
        return _said("stop_fixed", stop=state.stop)
    left = state.stop - len(state.labels)
    said = "stop_unsaid" if not state.stop else "stop_ahead" if left > 0 else "stop_passed"
    start = _said("stop_settled" if settled else "stop_open")
    return _said(said, start=start, stop=state.stop, left=left, more=-left)


# Multiple play is a strategy of studies, where several arms are labelled at once.
ONE_AT_A_TIME = tuple(active.STRATEGIES)
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
    own = session.order[part[0] - 1 :: part[1]]
    waiting = own[~session.done[own]]
    question = question_of(session)
    posterior = question.about.posterior.take(None)
    left = session.by_group(waiting)[None]
    arms = active.next_arms(
        active.BetaArms(posterior, left),
        question.reward(),
        state.strategy,
        rng(state.options.seed, "next", len(state.answers), *part),
        labels=labels,
        given=session.by_group(session.answered),
        least_share=0.0 if state.strategy in _BLIND else LEAST_SHARE,
    )
    queues = [iter(waiting[session.codes[waiting] == arm]) for arm in range(len(session.names))]
    return np.array([next(queues[arm]) for arm in arms], np.int64)


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
    metric = ACCURACY if session.predicted is None else REGRESSION_METRIC
    state = replace(session.state, rows=len(session.table), metric=metric)
    session = _with_question(replace(session, state=state), asked)
    file.create(session.state)
    return session


def go_on(
    file: StateFile,
    options: Any,
    given: Collection[str],
    asked: Mapping[str, Any],
    by: Sequence[str] = (),
) -> Session:
    """Open the state there is, with another question or strategy where one is asked for.

    Parameters
    ----------
    options : the options of this command, as they were written.
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
        sessions.check_same(file, now, state)
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
    state = replace(session.state, **asked)
    check_choice("question", state.question, QUESTIONS)
    check_choice("strategy", state.strategy, ONE_AT_A_TIME)
    _check_stop(state.stop, session.state)
    check_minimum("stop", state.stop, 0)
    session = replace(session, state=state)
    question_of(session).reward()  # refuses a question that this table cannot answer
    return session


def _check_stop(stop: int, state: State) -> None:
    """Refuse a change of stop=, the number of labels to stop at, after the first label."""
    if stop != state.stop and state.labels:
        raise UserError(_said("stop_late", stop=stop, labels=len(state.labels)))


def _by(names: Sequence[str], options: Options) -> str:
    """Return the attribute whose groups rows are chosen among, of some columns of groups or all."""
    for name in names:
        check_choice("group in by=", name, options.group)
    if len(names) not in (0, 1, 2, len(options.group)):
        raise UserError("by= names one column of group=, two, or all of them")
    kept = [name for name in options.group if name in names or not names]
    return " x ".join(kept) or PREDICTED


# The pages of labelling.


def next_rows_document(
    session: Session, labels: int, part: tuple[int, int], state: Path
) -> model.Document:
    """Return the rows to label next, their groups, and what a label would do.

    Parameters
    ----------
    labels, part : as in :func:`next_rows`.
    state : the file that labels are stored in.
    """
    rows = next_rows(session, labels, part).tolist()
    question = question_of(session)
    certain, identifier = question.certain(), session.state.options.id
    shown = [
        {
            "row": str(row + 1),
            "id": session.ids[row] if identifier else "",
            "group": session.names[group],
            "labels": int(session.labels[group]),
            "why": f"{question.certainty} {certain[group]:.3f}",
        }
        for row, group in zip(rows, session.codes[rows].tolist(), strict=True)
    ]
    about: dict[str, Any] = {"id": identifier, "without": [] if identifier else ["id"]}
    blocks: list[model.Block] = [model.Paragraph(f"So far, {session.progress}.")]
    if not rows:
        blocks.append(model.Paragraph("No row is left to label."))
    else:
        blocks += [
            named_table(_PAGE, "next", shown, **about),
            model.Paragraph(" ".join(question.answer()["sentences"]), "note"),
            model.Paragraph((model.Code(session.asking(state, rows[0] + 1)),)),
        ]
    return model.Document(question.sentence, [model.Section("", blocks)])


def _with_answer(document: model.Document, session: Session) -> model.Document:
    """Add to a report what its labels say to the question that they were chosen for."""
    question, state = question_of(session), session.state
    answer, groups = question.answer(), question.groups()
    may_be_it = groups["group"].isin(answer["possible"]).map({True: "", False: "surely not it, "})
    if state.question in ("worst", "calibration"):
        may_be_it = may_be_it.mask(groups["group"].isin(answer["found"]), "looks like it, ")
    groups["remark"] = (may_be_it + _few(groups)).str.removesuffix(", ")
    table = _metric_table(state.metric.replace("_", " "), groups)
    data = {
        "question": state.question,
        "metric": state.metric,
        "asked": question.sentence,
        **answer,
        "stop": state.stop,
        "answers": len(state.labels),
        "whenever": state.anytime_valid,
        "groups": groups.drop(columns="remark").to_dict("records"),
    }
    text = model.Paragraph(f"{question.sentence} {' '.join(answer['sentences'])}")
    sections = [model.Section("The question", [text, table]), *document.sections]
    return replace(document, sections=sections, data={**document.data, "labelling": data})


def _few(groups: pd.DataFrame) -> pd.Series:
    return groups["few"].map({True: "too few labels", False: ""})


def _metric_table(name: str, groups: pd.DataFrame) -> model.Table:
    """Return a table of a metric by group, with those of the columns that there are."""
    without = [name for name in ("size", "remark") if name not in groups]
    rows = groups.to_dict("records")
    return named_table(_PAGE, "groups", rows, without=without, name=name)


def report_document(session: Session) -> model.Document:
    """Return the report on the labels so far, with what they say to the question.

    Of two classes it is that of an audit; of several, and of numbers, it has the figures of each
    metric that one can ask about.
    """
    options = session.state.options
    if session.label_texts is None:
        return _with_answer(document_of_table(options, session.audited()), session)
    table = session.audited()
    n_rows, n_labels, sampling = len(table), len(table.known), table.sampling
    assert sampling is not None
    counted, chosen = report.counted_rows(n_rows, n_labels), _said("chosen", by=sampling.by)
    basis = [counted, chosen, sampling.stopping, *sampling.notes]
    sections = []
    figures = []
    for name, metric in _askable(session).items():
        about = measure(session, name)
        groups = _group_figures(session, about, about.limits(findings.LEVEL))
        everyone = _estimate_for_everyone(session, about)
        figure = {"metric": name, "label": metric.label, "groups": groups.to_dict("records")}
        figures.append({**figure, "everyone": everyone})
        shown = groups.assign(size=session.sizes, remark=_few(groups))
        if everyone is not None:
            total = {"group": "everyone", "size": n_rows, "labels": n_labels, "remark": ""}
            total |= zip(("value", "lower", "upper"), everyone, strict=True)
            shown = pd.concat([shown, pd.DataFrame([total])])
        of_metric = _metric_table(metric.label, shown)
        sections.append(model.Section(f"{metric.label} of each group", [of_metric]))
    data = {"figures": figures}
    audit = report.Audit(options, n_rows, n_labels, [], basis, sections, data, notes=table.notes)
    return _with_answer(report.document_of(audit), session)


def row_document(session: Session, position: int, row: Mapping[str, str]) -> model.Document:
    """Return a row for the person who is to label it.

    Parameters
    ----------
    position : the position of the row, counted from 0.
    row : the columns that may be shown, as text.
    """
    name = f"{session.name(position + 1)}, {session.names[session.codes[position]]}"
    shown = model.Items([f"{column}: {text}" for column, text in row.items()])
    return model.Document(f"{name} ({session.progress})", [model.Section("", [shown])])
