"""Gates: conditions such as ``sex:impact_ratio<0.8``, and whether the data show that they hold.

First conditions are read and checked (:func:`conditions_of`), then judged (:func:`judge`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.errors import UserError, check_choice, unknown_name
from fairbench.core.text import (
    count,
    is_missing_name,
    is_number,
    number,
    shortened,
    some_of,
    visible,
)
from fairbench.evaluation.evaluator import Evaluator
from fairbench.evaluation.findings import CONSTRAINT, LARGE, NAN, OPEN, SMALL, Finding, side_of
from fairbench.evaluation.groups import CountIntervals, LabelledIntervals
from fairbench.evaluation.predictions import Groups
from fairbench.inference.gaps import GroupLimits, gap_of_noise, simultaneous_level, smallest_ratio
from fairbench.inference.posterior import FREQUENTIST
from fairbench.inference.rates import Limits, ratio_limits
from fairbench.inference.survey import Design
from fairbench.metrics.registry import BINARY, Metric, metrics_of, selection_rate

IMPACT_RATIO = "impact_ratio"
BELOW, ABOVE = "<", ">"
VERDICT, PASS = "verdict", "pass"
REQUIRED = (VERDICT, PASS)  # what a gate may require; an open one never passes
_FORM = re.compile(
    r"(?:(?P<attribute>.+):)?(?P<metric>[^:<>=!]+)(?P<sign>[<>=!]+)(?P<bound>.*)", re.DOTALL
)
_EXAMPLE = "such as impact_ratio<0.8 or sex:equal_opportunity>0.1"


@dataclass(frozen=True)
class Condition:
    """What must not hold for any group.

    Attributes
    ----------
    attribute : the column, or combination of columns, whose groups it is about; empty of all.
    metric : `IMPACT_RATIO`, or the name of a declared gap or rate.
    sign : `BELOW` or `ABOVE`, the side of the bound that is a failure.
    """

    attribute: str
    metric: str
    sign: str
    bound: float

    def __str__(self) -> str:
        """Return the condition as it is written."""
        whose = f"{self.attribute}:" if self.attribute else ""
        return f"{whose}{self.metric}{self.sign}{self.bound:g}"

    @property
    def declared(self) -> Metric | None:
        """The declared gap or rate; None of an impact ratio."""
        return _judged_metrics().get(self.metric)

    @property
    def needs_labels(self) -> bool:
        """Whether decisions alone do not tell."""
        rates = () if self.declared is None else self.declared.rates
        return any(rate.name != "selection_rate" for rate in rates)

    @property
    def good(self) -> str:
        """Which values are cleared, in words."""
        return f"{'at least' if self.sign == BELOW else 'at most'} {self.bound:g}"

    @property
    def bad(self) -> str:
        """Which values are failures, in words."""
        return f"{'below' if self.sign == BELOW else 'above'} {self.bound:g}"

    @property
    def label(self) -> str:
        """The name of the measure, with the attribute whose groups it compares."""
        metric = self.declared
        if metric is None:
            name = "impact ratio"
        elif metric.is_gap:
            name = metric.label
        else:
            name = f"{'lowest' if self.sign == BELOW else 'highest'} {metric.label}"
        return f"{name} by {self.attribute}" if self.attribute else name

    def statement(self, estimate: Sequence[Any], **fields: Any) -> Statement:
        """Return the finding on the condition, from the value of its measure and both limits.

        Parameters
        ----------
        fields : further fields of :class:`Statement`.
        """
        value, lower, upper = map(float, estimate)
        return Statement(
            CONSTRAINT,
            self.attribute,
            self.label,
            side_of(lower, upper, self.bound, low_is_bad=self.sign == BELOW),
            value=value,
            lower=lower,
            upper=upper,
            bound=self.bound,
            condition=self,
            **fields,
        )


@lru_cache(maxsize=1)
def _judged_metrics() -> Mapping[str, Metric]:
    """Return the declared gaps and rates that a condition may be about."""
    gaps = {name: metric for name, metric in metrics_of(BINARY, "widest").items() if metric.is_gap}
    return MappingProxyType({**gaps, **metrics_of(BINARY, "rate")})


def conditions_of(
    texts: Sequence[str], require: str = VERDICT, interval: str = FREQUENTIST
) -> list[Condition]:
    """Return the conditions that texts mean.

    Parameters
    ----------
    require : what the gate requires.
    interval : the kind of intervals.

    Raises
    ------
    UserError : an unknown requirement, or intervals that do not hold in repeated samples; a
        condition that cannot be read, of an unknown measure, with the failing side on the wrong
        side of its bound, or with a bound that decides nothing; or the same condition twice.
    """
    check_choice("require", require, REQUIRED)
    if interval != FREQUENTIST:
        raise UserError(
            f"fail_if= needs intervals that hold in repeated samples: leave interval={interval} out"
        )
    conditions = [_read(text.strip()) for text in texts]
    for i, condition in enumerate(conditions):
        if condition in conditions[:i]:
            raise UserError(f"fail_if= names {condition} twice: leave one of them out")
    return conditions


def by_attribute(
    conditions: Sequence[Condition], default: Sequence[str], valid: Sequence[str]
) -> list[Condition]:
    """Return every condition for each attribute that it is about, once.

    Parameters
    ----------
    default : the attributes of a condition that names none.
    valid : those that can be named.

    Raises
    ------
    UserError : no condition, or one that names another attribute.
    """
    if not conditions:
        raise UserError("a gate needs a condition: name one, such as fail_if='impact_ratio<0.8'")
    per_attribute = []
    for condition in conditions:
        if condition.attribute:
            check_choice("attribute of fail_if", condition.attribute, valid)
        attributes = [condition.attribute] if condition.attribute else default
        per_attribute += [replace(condition, attribute=name) for name in attributes]
    return list(dict.fromkeys(per_attribute))


def _read(text: str) -> Condition:
    """Return the condition that a text means, such as ``sex:impact_ratio<0.8``."""
    asked = f"fail_if={shortened(text)}"
    match = _FORM.fullmatch(text)
    if match is None:
        raise UserError(
            f"{asked} is no condition: write a measure, < or >, and a number between 0 and 1, "
            f"{_EXAMPLE}"
        )
    parts = match.groupdict("")
    attribute, sign, bound = (parts[part].strip() for part in ("attribute", "sign", "bound"))
    metric = _metric_name(parts["metric"].strip())
    whose = f"{attribute}:{metric}" if attribute else metric
    declared = _judged_metrics().get(metric)
    better = "higher" if declared is None else str(declared.better)
    failing = {"higher": [BELOW], "lower": [ABOVE]}.get(better, [BELOW, ABOVE])
    number = float(bound) if is_number(bound) else NAN
    if sign not in (BELOW, ABOVE) or not 0 < number < 1:
        forms = " or ".join(f"{whose}{right}BOUND" for right in failing)
        raise UserError(
            f"{asked} decides nothing: write {forms}, and for BOUND a number between 0 and 1, "
            f"{_EXAMPLE}"
        )
    if sign not in failing:
        side = "smaller" if sign == BELOW else "larger"
        is_gap = declared is not None and declared.is_gap  # and 0.8 was meant of a ratio
        instead = f"{whose}{failing[0]}{min(number, 0.1) if is_gap else number:g}"
        what = ", whose bound is a difference" if is_gap else ""
        raise UserError(
            f"{asked} would fail good models, of which {metric} is {side}; write {instead}{what}"
        )
    return Condition(attribute, metric, sign, number)


def _metric_name(name: str) -> str:
    """Return the name of a measure, which may be given as tables call it."""
    plain = "_".join(name.lower().split())
    names = {"_".join(one.label.split()): key for key, one in _judged_metrics().items()}
    names |= {key: key for key in (*_judged_metrics(), IMPACT_RATIO)}
    if plain in names:
        return names[plain]
    if plain.endswith(("ratio", "impact")):
        raise UserError(f"fail_if= takes no {plain}: of ratios only {IMPACT_RATIO} is a condition")
    # Of who asks for a gap a rate is no near name: what it says is something else.
    gaps = [key for key, one in _judged_metrics().items() if one.is_gap]
    valid = gaps if "gap" in plain else {*names.values()}
    raise unknown_name("measure of fail_if", name, valid)


# A gate: conditions that must not hold, and whether the data show that they do, or do not.
#
# A gate *passes* where every condition is surely not met, *fails* where one surely is, and is
# *open* where the rows cannot tell. It is wrong in at most one case of twenty, however many
# conditions, attributes and groups it has: to pass, each statement must hold by itself, and a
# truly broken one is wrongly cleared no more often than its own interval misses; to fail, the
# statements share what may go wrong.

PASSES, FAILS = "passes", "fails"
# What a gate says of its statements, and the exit status of each.
OUTCOME: Mapping[str, str] = MappingProxyType({SMALL: PASSES, LARGE: FAILS, OPEN: OPEN})
STATUS: Mapping[str, int] = MappingProxyType({PASSES: 0, FAILS: 1, OPEN: 3})
RISK = 0.025  # on either side: the gate is settled where a 95 % interval does not hold the bound
_CLEAR = 1 - 2 * RISK  # the level of the intervals that clear a condition
FEWEST_LABELS = 30  # that every group must have, of some labels, before a condition is cleared
FEWEST_ROWS = 10  # fewer are named as what keeps a condition open
_MOST_NAMED = 3  # statements in a line
_NOT_MEASURED = (NAN, NAN, NAN)


class GateError(Exception):
    """A gate did not pass.

    Attributes
    ----------
    gate : the gate.
    table : the table of the evaluation, if `fairbench.evaluate` raised the error.
    """

    def __init__(self, gate: Gate, table: Any = None) -> None:
        super().__init__(gate.line)
        self.gate, self.table = gate, table


@dataclass(frozen=True, eq=False)
class Statement(Finding):
    """The finding on one condition for the groups of one attribute.

    It is large where the condition is surely met, and small where it surely is not. `groups` has
    the one with the lower rate first.
    """

    condition: Condition = field(kw_only=True)

    @property
    def outcome(self) -> str:
        """`PASSES`, `FAILS` or `OPEN`."""
        return OUTCOME[self.verdict]

    @property
    def text(self) -> str:
        """The statement in words."""
        condition, estimate = self.condition, self.estimate_text
        if self.verdict == OPEN:
            in_brackets = f" ({estimate})" if estimate else ""
            return f"whether the {condition.label} is {condition.bad}{in_brackets}"
        side = condition.good if self.verdict == SMALL else condition.bad
        return f"the {condition.label} is {estimate}, surely {side}"

    @property
    def estimate_text(self) -> str:
        """The value, the groups compared, and the interval; empty where there is none."""
        if np.isnan(self.lower):
            return ""
        details = [f"interval {number(self.lower)} to {number(self.upper)}"]
        if self.groups and self.verdict != SMALL:
            details = [" and ".join(self.groups), *details]
        if np.isfinite(self.noise):
            details.append(f"{number(self.noise)} by noise alone")
        value = "undefined" if np.isnan(self.value) else number(self.value)
        if self.verdict == OPEN:  # stands in brackets already
            return ", ".join([value, "; ".join(details)])
        return f"{value} ({'; '.join(details)})"

    @property
    def row(self) -> dict[str, Any]:
        """The statement in plain values."""
        return {
            "condition": str(self.condition),
            **asdict(self.condition),
            **{name: getattr(self, name) for name in ("value", "lower", "upper")},
            "verdict": self.outcome,
            "groups": list(self.groups),
            "n": self.n,
            "needs": self.needs,
            "noise": self.noise if np.isfinite(self.noise) else None,
            "text": self.text,
        }


@dataclass(frozen=True)
class Gate:
    """The verdict on predictions by conditions that must not hold.

    :func:`fairbench.gate` returns one, :func:`fairbench.audit` has one in its report, and a
    :class:`fairbench.GateError` carries one. It is true in an ``if`` only where it passes.

    Attributes
    ----------
    statements : the finding on each condition, for each attribute that it is about: its value and
        interval, the groups that are compared, and its own outcome.
    require : ``verdict`` or ``pass``. With ``pass``, an open gate has the exit status of a failure.
    outcome : ``passes`` if every condition is surely not met, ``fails`` if one surely is met, and
        ``open`` if the rows cannot tell.
    exit_status : what a command ends with: 0 if the gate passes, 1 if it fails, 3 if it is open.
    line : the outcome and its reason, in one line.
    rows : every statement as a dictionary of plain values.
    data : the whole gate in plain values, as JSON holds it.

    Examples
    --------
    Half of the women and all of the men are hired. The ratio of these rates is surely below 0.8,
    and their difference is surely not above 0.6:

    >>> import fairbench, pandas as pd
    >>> people = pd.DataFrame({"sex": ["women", "men"] * 400, "hired": [1, 1, 0, 1] * 200})
    >>> gate = fairbench.gate(
    ...     people, prediction="hired", groups="sex",
    ...     fail_if=["impact_ratio<0.8", "statistical_parity>0.6"],
    ... )
    >>> gate.outcome, bool(gate), gate.exit_status
    ('fails', False, 1)
    >>> for statement in gate.statements:
    ...     print(f"{statement.condition} {statement.outcome}: {statement.value:.2f}")
    sex:impact_ratio<0.8 fails: 0.50
    sex:statistical_parity>0.6 passes: 0.50
    >>> gate.check()
    Traceback (most recent call last):
    fairbench.evaluation.gate.GateError: gate fails: the impact ratio by sex is 0.500 (women and ...
    """

    statements: tuple[Statement, ...]
    require: str = VERDICT

    @property
    def outcome(self) -> str:
        """`PASSES`, `FAILS` or `OPEN`."""
        outcomes = {statement.outcome for statement in self.statements}
        if FAILS in outcomes:
            return FAILS
        return PASSES if outcomes == {PASSES} else OPEN

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
        decisive = [statement for statement in self.statements if statement.outcome == outcome]
        texts = [statement.text for statement in decisive[:_MOST_NAMED]]
        if len(decisive) > _MOST_NAMED:
            texts.append(f"and {count(len(decisive) - _MOST_NAMED)} more")
        listed = "; ".join(texts)
        others = len(self.statements) - len(decisive)
        if outcome == PASSES:
            line = f"gate passes: {listed}"
        elif outcome == FAILS:
            noun = "other" if others == 1 else "others"
            rest = f"; {count(others)} {noun} not shown to fail" if others else ""
            line = f"gate fails: {listed}{rest}"
        else:
            needs = f": {decisive[0].needs}" if len(decisive) == 1 and decisive[0].needs else ""
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
class ComparedGroups:
    """The groups of an attribute that a gate compares, and the intervals of their rates.

    Attributes
    ----------
    groups : (G,) the names of the groups, all of which have rows.
    n_rows : (G,) how many rows each has.
    selected : the intervals of who is predicted 1.
    favoured : the intervals of who gets the good decision.
    labelled : the intervals of what needs labels; None where there are none.
    reference : the position of the group that somebody named to compare with; None otherwise.
    """

    groups: Sequence[str]
    n_rows: NDArray[np.intp]
    selected: CountIntervals
    favoured: CountIntervals
    labelled: CountIntervals | None
    reference: int | None

    @classmethod
    def of(
        cls,
        labels: pd.Series,
        decisions: NDArray[Any],
        design: Design | None,
        *,
        favoured: NDArray[Any] | None = None,
        target: NDArray[Any] | None = None,
        reference: str = "",
    ) -> ComparedGroups:
        """Return the groups (n,) that have rows.

        Parameters
        ----------
        decisions, favoured : (n,) the predictions 0 / 1, and who gets the good decision: by default
            who is predicted 1.
        target : (n,) the labels; without them, nothing is known of what needs labels.
        reference : the group that somebody named to compare with, if one was named and has rows.
        """
        groups = Groups.of("", labels.cat.remove_unused_categories())

        def intervals(hard: NDArray[Any], label: NDArray[Any]) -> CountIntervals:
            generator = [np.random.default_rng(0)]  # of draws that nothing here asks for
            of_rows = label.astype(float), hard.astype(float), generator
            counted = Evaluator().count(groups, *of_rows, design=design).intervals
            assert isinstance(counted, CountIntervals)
            return counted

        nothing = np.zeros(len(decisions))
        selected = intervals(decisions, nothing)
        n_rows = np.bincount(groups.codes, minlength=len(groups))
        of_favoured = selected if favoured is None else intervals(favoured, nothing)
        labelled = None if target is None else intervals(decisions, target)
        position = groups.names.index(reference) if reference in groups.names else None
        return cls(groups.names, n_rows, selected, of_favoured, labelled, position)


def judge(
    conditions: Sequence[Condition],
    compared: Callable[[str], ComparedGroups],
    require: str = VERDICT,
) -> Gate:
    """Return the gate of conditions, each on one attribute, whose groups a function returns."""
    of, risk = cache(compared), RISK / len(conditions)
    statements = (_statement(one, of(one.attribute), risk) for one in conditions)
    return Gate(tuple(statements), require)


def _statement(condition: Condition, compared: ComparedGroups, risk: float) -> Statement:
    """Return the finding on a condition.

    The conditions of a gate do not share the risk of the limit that clears one; they do share that
    of the limit that meets one.

    Parameters
    ----------
    risk : the probability with which the condition may wrongly be found met.
    """
    metric = condition.declared
    labelled = condition.needs_labels
    decided = compared.favoured if metric is None else compared.selected
    intervals = compared.labelled if labelled else decided
    n = int(compared.n_rows.sum())
    if intervals is None:
        return condition.statement(_NOT_MEASURED, n=0, needs="there are no labels")
    if len(compared.groups) < 2:
        return condition.statement(_NOT_MEASURED, n=n, needs="there is one group alone")
    fail = 1 - 2 * risk
    if metric is None:
        measured = _smallest_ratio(intervals, fail, compared)
    elif metric.is_gap:
        measured = _largest_gap(intervals, metric, fail, compared)
    else:
        lowest = condition.sign == BELOW
        measured = _extreme_rate(intervals, metric, fail, lowest=lowest)
    estimate, positions, noise = measured
    rates = (selection_rate,) if metric is None else metric.rates
    statement = condition.statement(
        estimate,
        groups=tuple(compared.groups[g] for g in positions),
        n=int(intervals.rows(rates).min(axis=0).sum()),
        noise=noise,
    )
    # Too few labels for a condition to be cleared, or too few rows for a useful statement.
    counted, least, what = compared.n_rows, FEWEST_ROWS, "rows"
    if statement.verdict == SMALL and isinstance(intervals, LabelledIntervals):
        counted, least, what = np.asarray(intervals.counts).sum(axis=-1), FEWEST_LABELS, "labels"
    elif statement.verdict != OPEN:
        return statement
    few = [compared.groups[g] for g in np.flatnonzero(counted < least).tolist()]
    why = f"under {least} {what} in {some_of(few)}"
    return replace(statement, verdict=OPEN, needs=why) if few else statement


# What a condition is about: a value with both limits, the positions of its groups, and the noise.
_Measured = tuple[Sequence[Any], list[int], float]
_UNKNOWN = (NAN, 0.0, 1.0)


def _smallest_ratio(intervals: CountIntervals, fail: float, compared: ComparedGroups) -> _Measured:
    """Return the smallest ratio of groups' rates to another's, or to that of a named group.

    Who states no group is compared with nobody.
    """
    asked, names = compared.reference, compared.groups
    kept = [g for g, name in enumerate(names) if g == asked or not is_missing_name(name)]
    n_groups = len(kept)
    if n_groups < 2:
        return _UNKNOWN, [], NAN
    reference = None if asked is None else kept.index(asked)
    of_all = intervals.correlation(selection_rate)
    shared = of_all if isinstance(of_all, float) else of_all[np.ix_(kept, kept)]

    def at(level: float) -> Limits:
        """Return how often each group (G,) that is compared is selected."""
        limits = replace(intervals, level=level).limits([selection_rate])
        return limits.apply(lambda limit: limit[0]).take(kept)

    single = at(_CLEAR)
    values = single.value
    if reference is None:
        wide = at(simultaneous_level(fail, n_groups))
        ends = smallest_ratio(GroupLimits(single, wide, shared))
        return ends, [kept[int(values.argmin())], kept[int(values.argmax())]], NAN
    others = np.arange(n_groups) != reference
    between: Any = shared if isinstance(shared, float) else shared[others, reference]
    narrow, wide = (
        ratio_limits(rates.take(others), rates.take([reference]), between)
        for rates in (single, at(1 - (1 - fail) / (n_groups - 1)))
    )
    if np.isnan(narrow.value).any():
        return _UNKNOWN, [kept[reference]], NAN
    smallest = kept[int(np.flatnonzero(others)[narrow.value.argmin()])]
    of_smallest = narrow.value.min(), narrow.lower.min(), wide.upper.min()
    return of_smallest, [smallest, kept[reference]], NAN


def _largest_gap(
    intervals: CountIntervals, metric: Metric, fail: float, compared: ComparedGroups
) -> _Measured:
    """Return the largest gap between groups; one without rows to tell may be anywhere."""
    among = np.asarray(intervals.compared([metric]))
    unseen = ~among & (compared.n_rows > 0)
    narrow, wide = (
        replace(intervals, level=level).gaps([metric], among, unseen=unseen).take(0)
        for level in (_CLEAR, fail)
    )
    positions = np.flatnonzero(among[0])
    if len(positions) < 2:
        return _UNKNOWN, [], NAN
    counts = intervals.counts_of(metric)[..., positions, :]
    widest = max((rate(counts) for rate in metric.rates), key=np.ptp)
    rates = replace(intervals, level=_CLEAR).limits(metric.rates)
    of_rates = (Limits(*(end[r, positions] for end in rates)) for r in range(len(metric.rates)))
    noise = max(gap_of_noise(of_rate, level=_CLEAR) for of_rate in of_rates)
    ends = [int(positions[widest.argmin()]), int(positions[widest.argmax()])]
    return (metric(counts), wide.lower, narrow.upper), ends, noise


def _extreme_rate(
    intervals: CountIntervals, metric: Metric, fail: float, *, lowest: bool
) -> _Measured:
    """Return the lowest or the highest rate of all groups; unknown rates may be anything."""
    n_groups = intervals.counts.shape[-2]
    # All groups share the error rate of the limit that meets the condition.
    narrow, wide = (
        replace(intervals, level=level).rates([metric])
        for level in (_CLEAR, 1 - (1 - fail) / n_groups)
    )
    values = np.asarray(metric(intervals.counts_of(metric)), float)
    if np.isnan(values).all():
        return _UNKNOWN, [], NAN
    group = int(np.nanargmin(values) if lowest else np.nanargmax(values))
    of_all = np.min if lowest else np.max
    (lowers, _), (_, uppers) = (narrow, wide) if lowest else (wide, narrow)
    lower, upper = np.nan_to_num(lowers[0], nan=0.0), np.nan_to_num(uppers[0], nan=1.0)
    return (values[group], of_all(lower), of_all(upper)), [group], NAN
