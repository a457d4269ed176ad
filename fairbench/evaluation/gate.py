"""A gate: conditions that must not hold, and whether the data show that they do, or do not.

A gate *passes* where every condition is surely not met, *fails* where one surely is, and is *open*
where the rows cannot tell. It is wrong in at most one case of twenty, however many conditions,
attributes and groups it has: to pass, each statement must hold by itself, and a truly broken one
is wrongly cleared no more often than its own interval misses; to fail, the statements share what
may go wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.core.formats import count, number, two_digits, visible
from fairbench.evaluation.conditions import BELOW, PASS, VERDICT, Condition, by_attribute
from fairbench.evaluation.evaluator import Evaluator
from fairbench.evaluation.group_intervals import CountIntervals
from fairbench.evaluation.labelled_intervals import LabelledIntervals
from fairbench.evaluation.predictions import Groups, Labelled
from fairbench.evaluation.table import MetricTable
from fairbench.inference.gaps import GroupLimits, simultaneous_level, smallest_ratio
from fairbench.inference.rates import Limits, ratio_limits
from fairbench.inference.survey import Design
from fairbench.metrics.rates import selection_rate
from fairbench.metrics.registry import Metric

Ends = tuple[float, float, float]

PASSES, FAILS, OPEN = "passes", "fails", "open"
STATUS: Mapping[str, int] = {PASSES: 0, FAILS: 1, OPEN: 3}
RISK = 0.025  # on either side: the gate is settled where a 95 % interval does not hold the bound
FEWEST_LABELS = 30  # that every group must have, of some labels, before a condition is cleared
FEWEST_ROWS = 10  # fewer are named as what keeps a condition open
_MOST_NAMED = 3  # statements, or groups, in a line
_MOST_TIMES = 100  # as many rows: what takes more is not advised


class GateError(Exception):
    """A gate did not pass.

    Attributes
    ----------
    gate : the gate.
    table : what was evaluated, where the gate is one of `fairbench.evaluate`.
    """

    def __init__(self, gate: Gate, table: Any = None) -> None:
        super().__init__(gate.line)
        self.gate, self.table = gate, table


@dataclass(frozen=True)
class Statement:
    """The finding on one condition for the groups of one attribute.

    Attributes
    ----------
    value, lower, upper : of the measure. The condition is cleared where both ends are on the good
        side of its bound, and met where both are on the other.
    verdict : `PASSES`, `FAILS` or `OPEN`.
    groups : whose rates the value is of, the lower first.
    n : rows that it rests on.
    needs : of an open one, what would settle it.
    """

    condition: Condition
    value: float
    lower: float
    upper: float
    verdict: str
    groups: tuple[str, ...] = ()
    n: int = 0
    needs: str = ""

    @property
    def text(self) -> str:
        """The statement in words."""
        condition, measured = self.condition, self.measured
        if self.verdict == OPEN:
            told = f" ({measured})" if measured else ""
            return f"whether the {condition.called} is {condition.bad}{told}"
        side = condition.good if self.verdict == PASSES else condition.bad
        return f"the {condition.called} is {measured}, surely {side}"

    @property
    def measured(self) -> str:
        """The value, whose it is, and its interval; nothing of what was not measured."""
        if np.isnan(self.lower):
            return ""
        parts = [f"interval {number(self.lower)} to {number(self.upper)}"]
        if self.groups and self.verdict != PASSES:
            parts = [" and ".join(self.groups), *parts]
        value = "undefined" if np.isnan(self.value) else number(self.value)
        if self.verdict == OPEN:  # stands in brackets already
            return ", ".join([value, "; ".join(parts)])
        return f"{value} ({'; '.join(parts)})"

    @property
    def row(self) -> dict[str, Any]:
        """The statement in plain values."""
        columns = {name: value for name, value in asdict(self).items() if name != "condition"}
        whole = {"condition": str(self.condition), **asdict(self.condition)}
        return {**whole, **columns, "groups": list(self.groups), "text": self.text}


@dataclass(frozen=True)
class Gate:
    """Statements about conditions, and what follows from all of them together.

    Attributes
    ----------
    require : `VERDICT`, an open gate has a status of its own; or `PASS`, it fails.
    """

    statements: tuple[Statement, ...]
    require: str = VERDICT

    @property
    def outcome(self) -> str:
        """`PASSES`, `FAILS` or `OPEN`."""
        verdicts = {statement.verdict for statement in self.statements}
        if FAILS in verdicts:
            return FAILS
        return PASSES if verdicts == {PASSES} else OPEN

    @property
    def exit_status(self) -> int:
        """0 of a gate that passes, 1 of one that fails, 3 of one that is open."""
        return STATUS[FAILS if self.outcome == OPEN and self.require == PASS else self.outcome]

    def __bool__(self) -> bool:
        """Return whether the gate passes: an open one does not."""
        return self.outcome == PASSES

    def check(self, table: Any = None) -> Gate:
        """Return the gate if it passes.

        Raises
        ------
        GateError : it fails, or is open.
        """
        if not self:
            raise GateError(self, table)
        return self

    @property
    def line(self) -> str:
        """The outcome in one line."""
        outcome = self.outcome
        told = [statement for statement in self.statements if statement.verdict == outcome]
        texts = [statement.text for statement in told[:_MOST_NAMED]]
        if len(told) > _MOST_NAMED:
            texts.append(f"and {count(len(told) - _MOST_NAMED)} more")
        listed, others = "; ".join(texts), len(self.statements) - len(told)
        if outcome == PASSES:
            line = f"gate passes: {listed}"
        elif outcome == FAILS:
            noun = "other" if others == 1 else "others"
            rest = f"; {count(others)} {noun} not shown to fail" if others else ""
            line = f"gate fails: {listed}{rest}"
        else:
            needs = f": {told[0].needs}" if len(told) == 1 and told[0].needs else ""
            strict = ", which require=pass takes for a failure" if self.require == PASS else ""
            line = f"gate is open{strict}: these rows cannot tell {listed}{needs}"
        return visible(line)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Every statement in plain values."""
        return [statement.row for statement in self.statements]

    @property
    def data(self) -> dict[str, Any]:
        """The whole gate in plain values."""
        return {
            "outcome": self.outcome,
            "exit_status": self.exit_status,
            "require": self.require,
            "line": self.line,
            "statements": self.rows,
        }


@dataclass(frozen=True, eq=False)
class Compared:
    """The groups of an attribute, and what is known of them.

    Attributes
    ----------
    attribute, groups : names, of G groups with rows.
    rows : (G,) of each.
    selected : intervals of who is predicted 1; of who gets the good decision in `favoured`.
    labelled : intervals of what needs labels; None where there are none.
    reference : the position of the group that somebody named to compare with; None otherwise.
    """

    attribute: str
    groups: Sequence[str]
    rows: NDArray[np.intp]
    selected: CountIntervals
    favoured: CountIntervals
    labelled: CountIntervals | None
    reference: int | None = None

    def intervals(self, condition: Condition) -> CountIntervals | None:
        """Return what makes the intervals of a condition's measure."""
        if condition.declared is None:
            return self.favoured
        return self.labelled if condition.needs_labels else self.selected

    @property
    def few(self) -> list[str]:
        """The groups of so few rows that hardly anything can be said of them."""
        return [self.groups[g] for g in np.flatnonzero(self.rows < FEWEST_ROWS).tolist()]

    def short_of_labels(self, condition: Condition) -> list[str]:
        """Return the groups that have too few labels for a condition to be cleared."""
        if not (condition.needs_labels and isinstance(self.labelled, LabelledIntervals)):
            return []
        labels = np.asarray(self.labelled.counts).sum(axis=-1)
        return [self.groups[g] for g in np.flatnonzero(labels < FEWEST_LABELS).tolist()]


def decided_by(
    groups: Groups, hard: NDArray[Any], design: Design | None = None, target: Any = None
) -> CountIntervals:
    """Return the intervals of decisions (n,) by group, and of labels (n,) where they are given."""
    evaluation = Evaluator().group_evaluation(MetricTable(), design)
    label = np.zeros(len(hard)) if target is None else np.asarray(target, float)
    generator = [np.random.default_rng(0)]  # of draws that nothing here asks for
    counted = evaluation.count(groups, label, np.asarray(hard, float), generator)
    assert isinstance(counted.intervals, CountIntervals)
    return counted.intervals


def judged(
    conditions: Sequence[Condition], compared: Mapping[str, Compared], require: str = VERDICT
) -> Gate:
    """Return the gate of conditions, each on one of the attributes that are `compared`."""
    risk = RISK / len(conditions)
    several = (
        _statement(condition, compared[condition.attribute], risk) for condition in conditions
    )
    return Gate(tuple(several), require)


def gate_of_labelled(
    data: Labelled,
    conditions: Sequence[Condition],
    attributes: Sequence[str],
    with_reference: Sequence[str],
    require: str = VERDICT,
) -> Gate:
    """Return the gate of conditions on predictions whose labels are all known.

    Parameters
    ----------
    attributes : those that a condition is about which names none.
    with_reference : the attributes whose first group was named to compare with.
    """
    hard, compared = data.column("prediction"), {}
    single = by_attribute(conditions, attributes, list(data.groups))
    for name in {condition.attribute for condition in single}:
        labels = data.groups[name].cat.remove_unused_categories()
        groups = Groups.of(name, labels)
        selected = decided_by(groups, hard, data.design)
        compared[name] = Compared(
            name,
            groups.names,
            np.bincount(groups.codes, minlength=len(groups)),
            selected,
            selected,
            decided_by(groups, hard, data.design, data.target),
            0 if name in with_reference else None,
        )
    return judged(single, compared, require)


def statement_of(condition: Condition, ends: Ends, **fields: Any) -> Statement:
    """Return the finding on a condition, from the value of its measure and both ends."""
    value, lower, upper = ends
    below = condition.sign == BELOW
    if np.isnan(lower) or np.isnan(upper):
        verdict = OPEN
    elif upper < condition.bound if below else lower > condition.bound:
        verdict = FAILS
    elif lower >= condition.bound if below else upper <= condition.bound:
        verdict = PASSES
    else:
        verdict = OPEN
    statement = Statement(condition, value, lower, upper, verdict, **fields)
    if verdict == OPEN and not statement.needs:
        statement = replace(statement, needs=_further(statement))
    return statement


def _statement(condition: Condition, compared: Compared, risk: float) -> Statement:
    """Return the finding on a condition.

    Parameters
    ----------
    risk : the probability with which the condition may wrongly be found met.
    """
    intervals = compared.intervals(condition)
    n, not_measured = int(compared.rows.sum()), (float("nan"),) * 3
    if intervals is None:
        return statement_of(condition, not_measured, n=0, needs="there are no labels")
    if len(compared.groups) < 2:
        return statement_of(condition, not_measured, n=n, needs="there is one group alone")
    levels = 1 - 2 * RISK, 1 - 2 * risk
    metric, reference = condition.declared, compared.reference
    if metric is None:
        ends, groups = _of_ratio(intervals, levels, reference)
    elif metric.is_gap:
        ends, groups = _of_gap(intervals, metric, levels, compared)
    else:
        ends, groups = _of_rate(intervals, metric, levels, below=condition.sign == BELOW)
    rates = (selection_rate,) if metric is None else metric.rates
    n = int(intervals.rows(rates).min(axis=0).sum())
    group_names = tuple(compared.groups[g] for g in groups)
    statement = statement_of(condition, ends, groups=group_names, n=n)
    why, short = "", compared.short_of_labels(condition)
    if statement.verdict == PASSES and short:
        why = f"under {FEWEST_LABELS} labels in {_names(short)}"
    elif statement.verdict == OPEN and (few := compared.few):
        why = f"under {FEWEST_ROWS} rows in {_names(few)}"
    return replace(statement, verdict=OPEN, needs=why) if why else statement


def _names(groups: Sequence[str]) -> str:
    """Return the names of groups, the first of many."""
    names = list(groups[:_MOST_NAMED])
    if len(groups) > _MOST_NAMED:
        names.append(f"{count(len(groups) - _MOST_NAMED)} more")
    return " and ".join(names)


def _further(statement: Statement) -> str:
    """Return how many times as many rows would settle a statement, if the value is right."""
    value, bound = statement.value, statement.condition.bound
    end = statement.lower if value > bound else statement.upper
    if not np.isfinite([value, end]).all():
        return ""
    if value == bound or (times := ((end - value) / (bound - value)) ** 2) > _MOST_TIMES:
        return "the value is too near the bound for any number of rows in reach"
    about = two_digits(times) if times >= 10 else f"{max(times, 1.1):.1f}"
    return f"about {about} times as many rows would tell, if the value stays"


def _of_ratio(
    intervals: CountIntervals, levels: tuple[float, float], reference: int | None
) -> tuple[Ends, list[int]]:
    """Return the smallest ratio of groups' rates to another's, or to that of a named group."""
    groups = intervals.counts.shape[-2]
    single = _rates_at(intervals, levels[0])
    values, shared = single.value, intervals.correlation(selection_rate)
    if reference is None:
        wide = _rates_at(intervals, simultaneous_level(levels[1], groups))
        value, lower, upper = map(float, smallest_ratio(GroupLimits(single, wide, shared)))
        return (value, lower, upper), [int(values.argmin()), int(values.argmax())]
    others = np.arange(groups) != reference
    wide = _rates_at(intervals, 1 - (1 - levels[1]) / (groups - 1))
    between: Any = shared if isinstance(shared, float) else shared[others, reference]
    near, far = (
        ratio_limits(rates.take(others), rates.take([reference]), between)
        for rates in (single, wide)
    )
    if np.isnan(near.value).any():
        return (float("nan"), 0.0, 1.0), [reference]
    ends = float(near.value.min()), float(near.lower.min()), float(far.upper.min())
    return ends, [int(np.flatnonzero(others)[near.value.argmin()]), reference]


def _rates_at(intervals: CountIntervals, level: float) -> Limits:
    """Return how often each group (G,) is selected."""
    return Limits(*(end[0] for end in replace(intervals, level=level).limits([selection_rate])))


def _of_gap(
    intervals: CountIntervals, metric: Metric, levels: tuple[float, float], compared: Compared
) -> tuple[Ends, list[int]]:
    """Return the largest gap between groups; one without rows to tell may be anywhere."""
    among = np.asarray(intervals.compared([metric]))
    unseen = ~among & (compared.rows > 0)
    near, far = (
        replace(intervals, level=level).gaps([metric], among, unseen=unseen)[0] for level in levels
    )
    places = np.flatnonzero(among[0])
    if len(places) < 2:
        return (float("nan"), 0.0, 1.0), []
    counts = intervals.counts_of(metric)[..., places, :]
    ends = float(metric(counts)), float(far.lower), float(near.upper)
    widest = max((rate(counts) for rate in metric.rates), key=np.ptp)
    return ends, [int(places[widest.argmin()]), int(places[widest.argmax()])]


def _of_rate(
    intervals: CountIntervals, metric: Metric, levels: tuple[float, float], *, below: bool
) -> tuple[Ends, list[int]]:
    """Return the lowest rate of any group, or the highest."""
    groups = intervals.counts.shape[-2]
    near, far = (
        [np.nan_to_num(end[0], nan=unknown) for end, unknown in zip(ends, (0.0, 1.0), strict=True)]
        for ends in (
            replace(intervals, level=level).rates([metric])
            for level in (levels[0], 1 - (1 - levels[1]) / groups)
        )
    )
    values = np.asarray(metric(intervals.counts_of(metric)), float)
    if np.isnan(values).all():
        return (float("nan"), 0.0, 1.0), []
    if below:
        place = int(np.nanargmin(values))
        return (float(values[place]), float(near[0].min()), float(far[1].min())), [place]
    place = int(np.nanargmax(values))
    return (float(values[place]), float(far[0].max()), float(near[1].max())), [place]
