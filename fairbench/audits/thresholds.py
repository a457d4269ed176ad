"""What other thresholds would decide: who is selected, who errs, and where a constraint holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.question import CONSTRAINED, RATIO, Options, constraint_of
from fairbench.audits.table import AuditTable
from fairbench.core.arrays import Floats, rng
from fairbench.core.errors import UserError
from fairbench.data.groups import codes_of
from fairbench.evaluation.by_group import Row, ScoredRows, may_be_compared_with
from fairbench.evaluation.findings import LARGE, NAN, SMALL, side_of
from fairbench.inference.gaps import GroupLimits, largest_gap, smallest_ratio
from fairbench.inference.rates import Limits
from fairbench.metrics.registry import (
    Rate,
    accuracy,
    false_negative_rate,
    false_positive_rate,
    selection_rate,
)

STEPS = 9  # thresholds that select 90, 80 ... 10 % of everyone
_FINE = 100  # thresholds of a curve, which are the candidates for a constraint, too
_SURVEYED = 20  # thresholds for weighted or clustered rows, which take longer to count
CURVES = (selection_rate, false_positive_rate, false_negative_rate)
_Estimate = tuple[float, float, float]  # a value with its interval
_UNKNOWN: _Estimate = (NAN, NAN, NAN)


@dataclass(frozen=True, eq=False)
class ThresholdCurves:
    """Rates of the groups of one attribute at K thresholds.

    Attributes
    ----------
    thresholds : (K,) the thresholds, ascending.
    rates : name of a rate -> (K, G) its values, with the interval of each by itself.
    """

    attribute: str
    groups: Sequence[str]
    thresholds: Floats
    rates: Mapping[str, Limits]


@dataclass(frozen=True, eq=False)
class Thresholds:
    """What other thresholds would decide.

    Attributes
    ----------
    curves : the rates of each attribute's groups at many thresholds.
    table : a row for each attribute and threshold, with the columns ``selected``, the share of
        everyone; ``ratio``, the smallest selection rate of a group over the largest; ``gap``, the
        largest difference of two selection rates; both with ``_lower`` and ``_upper``; and
        ``current``, whether decisions are made by this threshold today.
    constrained : the threshold that a constraint asks for, if there is one; see
        :func:`constrained_threshold`.
    """

    curves: Sequence[ThresholdCurves] = ()
    table: pd.DataFrame = field(default_factory=pd.DataFrame)
    constrained: Row | None = None


def other_thresholds(table: AuditTable, options: Options, risk: float) -> Thresholds:
    """Return what other thresholds would decide; nothing without scores.

    Parameters
    ----------
    risk : the error rate of the statement that a constraint holds, or does not hold.

    Raises
    ------
    UserError : a constraint that needs what the table does not have.
    """
    if table.score is None or not options.group:
        if options.constraint:
            raise UserError("constraint= looks for a threshold of scores: name score= and group=")
        return Thresholds()
    label = table.label if len(table.known) == len(table) else None
    low_is_selected = table.direction.good == 0
    rows = ScoredRows(table.score, label, table.design, low_is_selected=low_is_selected)
    n_fine = _FINE if rows.design is None else _SURVEYED
    fine = np.unique(np.quantile(rows.score, np.linspace(0, 1, n_fine + 1), method="nearest"))
    deciles = np.arange(1, STEPS + 1) / 10
    steps = np.unique(np.quantile(rows.score, deciles, method="nearest"))
    current = np.array([] if options.prediction else [options.threshold])
    steps = np.union1d(steps, current)
    thresholds = np.union1d(fine, steps)
    groups = {name: table.groups[name] for name in options.group}
    curves: list[ThresholdCurves] = []
    tables = [pd.DataFrame()]
    for attribute, labels in groups.items():
        codes, names = codes_of(labels)
        curve_rates = CURVES[:1] if label is None else CURVES
        limits = rows.limits(curve_rates, codes, thresholds)
        rates = {rate.name: of_rate for rate, of_rate in zip(curve_rates, limits, strict=True)}
        pointwise = {name: of_rate.pointwise for name, of_rate in rates.items()}
        curves.append(ThresholdCurves(attribute, names, thresholds, pointwise))
        if len(names) > 1:
            selected = rates[selection_rate.name]
            at_thresholds = _threshold_table(attribute, thresholds, rows, codes, selected)
            at_thresholds["current"] = np.isin(thresholds, current)
            tables.append(at_thresholds[np.isin(thresholds, steps)])
    constrained = None
    if options.constraint:
        constrained = constrained_threshold(rows, groups, fine, options, risk)
    return Thresholds(curves, pd.concat(tables, ignore_index=True), constrained)


def _threshold_table(
    attribute: str,
    thresholds: Floats,
    rows: ScoredRows,
    codes: NDArray[np.intp],
    selected: GroupLimits,
) -> pd.DataFrame:
    """Return an attribute's table: the share selected by threshold, and the groups' ratio and gap.

    Parameters
    ----------
    codes : (n,) the groups.
    selected : the selection rates (K, G) of the groups at the thresholds (K,).
    """
    size = np.bincount(codes, None if rows.design is None else rows.design.weight)
    compared = _large_enough(selected, codes)
    columns = {
        "attribute": attribute,
        "threshold": thresholds,
        "selected": selected.pointwise.value @ (size / size.sum()),
        **_columns("ratio", smallest_ratio(compared)),
        **_columns("gap", largest_gap(compared)),
    }
    return pd.DataFrame(columns)


def _columns(name: str, limits: Limits) -> dict[str, Floats]:
    """Return an estimate and both its limits as columns."""
    return {name: limits.value, f"{name}_lower": limits.lower, f"{name}_upper": limits.upper}


def _large_enough(rates: GroupLimits, codes: NDArray[np.intp]) -> GroupLimits:
    """Return the limits of the groups that have enough rows to be compared."""
    return rates.take(may_be_compared_with(np.bincount(codes)))


@dataclass(frozen=True)
class _Constraint:
    """A constraint on the groups' rates: a smallest ratio, or a largest gap.

    Attributes
    ----------
    name, bound : what is asked for.
    rate : the rate that groups are compared by.
    """

    name: str
    bound: float
    rate: Rate

    @property
    def is_ratio(self) -> bool:
        """Whether a ratio has to be at least the bound; otherwise a gap, at most the bound."""
        return self.name == RATIO

    def measure(
        self,
        rows: ScoredRows,
        labels: pd.Series,
        thresholds: Floats,
        *,
        level: float = 0.95,
        everyone: bool = True,
    ) -> Limits:
        """Return the ratio or gap of some rows' groups at thresholds (K,), with its limits.

        Parameters
        ----------
        everyone : whether groups of few rows count; they say too little to choose by.
        """
        codes, _ = codes_of(labels)
        (limits,) = rows.limits([self.rate], codes, thresholds, level=level)
        if not everyone:
            limits = _large_enough(limits, codes)
        return smallest_ratio(limits) if self.is_ratio else largest_gap(limits)

    def is_met(self, values: Floats) -> NDArray[np.bool_]:
        """Return which values meet the constraint; NaN does not."""
        return values >= self.bound if self.is_ratio else values <= self.bound

    def holds(self, lower: float, upper: float) -> bool | None:
        """Return whether all values in an interval meet the constraint; None where some do."""
        side = side_of(lower, upper, self.bound, low_is_bad=self.is_ratio)
        return {SMALL: True, LARGE: False}.get(side)


def constrained_threshold(
    rows: ScoredRows, groups: Mapping[str, pd.Series], fine: Floats, options: Options, risk: float
) -> Row:
    """Choose the threshold nearest to today's on half of the rows, and judge it on the others.

    Returns
    -------
    constraint and bound : what is asked for.
    rows : how many rows the threshold is chosen on, and how many others it is judged on.
    threshold : the one nearest to today's that meets the constraint on the rows it is chosen on;
        NaN if none does.
    changed : the share of the other rows whose decision differs from today's.
    accuracy, accuracy_before : the accuracy on the other rows at this threshold and at today's,
        with intervals; NaN without labels.
    judged : for each attribute, whether its groups meet the constraint on the other rows; see
        :func:`_judge`.
    """
    name, bound = constraint_of(options.constraint)
    constraint = _Constraint(name, bound, CONSTRAINED[name])
    today = options.threshold
    if constraint.rate is not selection_rate and rows.label is None:
        raise UserError(f"constraint={options.constraint} needs a label in every row")
    first_half = _half(rows, options.seed)
    candidates = np.union1d(fine, [today])
    first_groups = {attribute: labels[first_half] for attribute, labels in groups.items()}
    choice = _choose_threshold(constraint, rows.subset(first_half), first_groups, candidates, today)
    asked = {
        "constraint": name,
        "bound": bound,
        "rows": (int(first_half.sum()), int((~first_half).sum())),
    }
    if choice is None:
        unknown = {"accuracy": _UNKNOWN, "accuracy_before": _UNKNOWN, "judged": []}
        return {**asked, "threshold": NAN, "changed": NAN, **unknown}
    threshold, values = choice
    thresholds = np.array([threshold, today])
    others = rows.subset(~first_half)
    changed = (others.score > threshold) != (others.score > today)
    accuracy_after, accuracy_before = _accuracy_change(others, threshold, today)
    judged = [
        _judge(constraint, others, groups[name][~first_half], (name, chosen), thresholds, risk)
        for name, chosen in values.items()
    ]
    return {
        **asked,
        "threshold": threshold,
        "changed": float(changed.mean()),
        "accuracy": accuracy_after,
        "accuracy_before": accuracy_before,
        "judged": judged,
    }


def _choose_threshold(
    constraint: _Constraint,
    rows: ScoredRows,
    groups: Mapping[str, pd.Series],
    candidates: Floats,
    today: float,
) -> tuple[float, Mapping[str, float]] | None:
    """Return the candidate nearest to today's threshold that meets a constraint, if any does.

    It has to meet it among the groups of every attribute, whose ratios or gaps are returned, too.
    """
    values = {
        attribute: constraint.measure(rows, labels, candidates, everyone=False).value
        for attribute, labels in groups.items()
    }
    meets = np.all([constraint.is_met(value) for value in values.values()], axis=0)
    if not meets.any():
        return None
    nearest = int(np.where(meets, np.abs(candidates - today), np.inf).argmin())
    chosen = {attribute: float(value[nearest]) for attribute, value in values.items()}
    return float(candidates[nearest]), chosen


def _judge(
    constraint: _Constraint,
    rows: ScoredRows,
    labels: pd.Series,
    chosen: tuple[str, float],
    thresholds: Floats,
    risk: float,
) -> Row:
    """Return whether an attribute's groups meet a constraint, in rows that did not choose it.

    Returns
    -------
    attribute; chosen, the value on the rows that chose; value, lower and upper, that on the others
    with its 95 % interval; before, the value there at today's threshold; and holds: True or False
    where the rows settle it at the error rate `risk`, otherwise None.

    Parameters
    ----------
    chosen : the attribute, and its ratio or gap in the rows that chose.
    thresholds : the one that was chosen, and today's.
    """
    limits = constraint.measure(rows, labels, thresholds)
    _, least, most = constraint.measure(rows, labels, thresholds, level=1 - risk).at(0)
    value, lower, upper = limits.at(0)
    holds = constraint.holds(least, most)
    if holds and len(codes_of(labels)[1]) < len(labels.cat.categories):
        holds = None  # people of a group of whom these rows have none may differ
    attribute, on_first_half = chosen
    ends = {"value": value, "lower": lower, "upper": upper}
    before = float(limits.value[1])
    named = {"attribute": attribute, "chosen": on_first_half}
    return {**named, **ends, "before": before, "holds": holds}


def _accuracy_change(
    rows: ScoredRows, threshold: float, today: float
) -> tuple[_Estimate, _Estimate]:
    """Return the accuracy at a threshold and at today's, with intervals; NaN without labels."""
    if rows.label is None:
        return _UNKNOWN, _UNKNOWN
    everyone = np.zeros(len(rows.score), np.intp)
    (limits,) = rows.limits([accuracy], everyone, np.array([threshold, today]))
    accuracies = limits.pointwise.take(0)
    return accuracies.at(0), accuracies.at(1)


def _half(rows: ScoredRows, seed: int) -> NDArray[np.bool_]:
    """Return a random half of the rows; those of one cluster stay together."""
    generator = rng(seed, "constraint")
    if rows.design is None:
        return generator.permutation(len(rows.score)) < len(rows.score) / 2
    half: NDArray[np.bool_] = generator.permutation(rows.design.units) < rows.design.units / 2
    return half[rows.design.unit]
