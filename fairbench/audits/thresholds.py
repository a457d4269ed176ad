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
from fairbench.evaluation.findings import LARGE, LEVEL, NAN, SMALL, side_of
from fairbench.inference.gaps import GroupLimits, largest_gap, smallest_ratio
from fairbench.inference.rates import Limits
from fairbench.metrics.registry import (
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
            size = np.bincount(codes, None if rows.design is None else rows.design.weight)
            compared = _large_enough(selected, codes)
            columns = {
                "attribute": attribute,
                "threshold": thresholds,
                "selected": selected.pointwise.value @ (size / size.sum()),
                **_columns("ratio", smallest_ratio(compared)),
                **_columns("gap", largest_gap(compared)),
                "current": np.isin(thresholds, current),
            }
            tables.append(pd.DataFrame(columns)[np.isin(thresholds, steps)])
    constrained = None
    if options.constraint:
        constrained = constrained_threshold(rows, groups, fine, options, risk)
    return Thresholds(curves, pd.concat(tables, ignore_index=True), constrained)


def _columns(name: str, limits: Limits) -> dict[str, Floats]:
    """Return an estimate and both its limits as columns."""
    return {name: limits.value, f"{name}_lower": limits.lower, f"{name}_upper": limits.upper}


def _large_enough(rates: GroupLimits, codes: NDArray[np.intp]) -> GroupLimits:
    """Return the limits of the groups that have enough rows to be compared."""
    return rates.take(may_be_compared_with(np.bincount(codes)))


def constrained_threshold(
    rows: ScoredRows, groups: Mapping[str, pd.Series], fine: Floats, options: Options, risk: float
) -> Row:
    """Choose the threshold nearest to today's on half of the rows, and judge it on the others.

    Returns
    -------
    constraint and bound : what is asked for.
    rows : how many rows the threshold is chosen on, and how many others it is judged on.
    threshold : the one nearest to today's that meets the constraint among the groups of every
        attribute, on the rows it is chosen on; NaN if none does.
    changed : the share of the other rows whose decision differs from today's.
    accuracy, accuracy_before : the accuracy on the other rows at this threshold and at today's,
        with intervals; NaN without labels.
    judged : for each attribute, whether its groups meet the constraint on the other rows; see
        :func:`_judge`.
    """
    name, bound = constraint_of(options.constraint)
    today = options.threshold
    if CONSTRAINED[name] is not selection_rate and rows.label is None:
        raise UserError(f"constraint={options.constraint} needs a label in every row")
    half = _half(rows, options.seed)
    choosing, others = rows.subset(half), rows.subset(~half)
    candidates = np.union1d(fine, [today])
    values = {
        attribute: _measured(name, choosing, labels[half], candidates, few=False).value
        for attribute, labels in groups.items()
    }
    # NaN meets no constraint.
    each = (of >= bound if name == RATIO else of <= bound for of in values.values())
    meets = np.all([*each], axis=0)
    nearest = int(np.where(meets, np.abs(candidates - today), np.inf).argmin())
    threshold = float(candidates[nearest]) if meets.any() else NAN
    changed, accuracies, judged = NAN, (_UNKNOWN, _UNKNOWN), []
    if meets.any():
        thresholds = np.array([threshold, today])
        changed = float(((others.score > threshold) != (others.score > today)).mean())
        judged = [
            {
                "attribute": attribute,
                "chosen": float(values[attribute][nearest]),
                **_judge(name, bound, others, labels[~half], thresholds, risk),
            }
            for attribute, labels in groups.items()
        ]
        if others.label is not None:
            everyone = np.zeros(len(others.score), np.intp)
            (limits,) = others.limits([accuracy], everyone, thresholds)
            of_everyone = limits.pointwise.take(0)
            accuracies = of_everyone.at(0), of_everyone.at(1)
    return {
        "constraint": name,
        "bound": bound,
        "rows": (int(half.sum()), int((~half).sum())),
        "threshold": threshold,
        "changed": changed,
        **dict(zip(("accuracy", "accuracy_before"), accuracies, strict=True)),
        "judged": judged,
    }


def _measured(
    name: str,
    rows: ScoredRows,
    labels: pd.Series,
    thresholds: Floats,
    *,
    level: float = LEVEL,
    few: bool = True,
) -> Limits:
    """Return the ratio or gap of some rows' groups at thresholds (K,), with its limits.

    Parameters
    ----------
    name : the constraint: a smallest ratio, or a largest gap in a rate.
    few : whether groups of few rows count; they say too little to choose by.
    """
    codes, _ = codes_of(labels)
    (limits,) = rows.limits([CONSTRAINED[name]], codes, thresholds, level=level)
    if not few:
        limits = _large_enough(limits, codes)
    return smallest_ratio(limits) if name == RATIO else largest_gap(limits)


def _judge(
    name: str,
    bound: float,
    rows: ScoredRows,
    labels: pd.Series,
    thresholds: Floats,
    risk: float,
) -> Row:
    """Return whether an attribute's groups meet a constraint, in rows that did not choose it.

    Returns
    -------
    value, lower and upper, that on these rows with its 95 % interval; before, the value there at
    today's threshold; and holds: True or False where the rows settle it at the error rate `risk`,
    otherwise None.

    Parameters
    ----------
    thresholds : the one that was chosen, and today's.
    """
    limits = _measured(name, rows, labels, thresholds)
    _, least, most = _measured(name, rows, labels, thresholds, level=1 - risk).at(0)
    side = side_of(least, most, bound, low_is_bad=name == RATIO)
    holds = {SMALL: True, LARGE: False}.get(side)
    if holds and len(codes_of(labels)[1]) < len(labels.cat.categories):
        holds = None  # people of a group of whom these rows have none may differ
    value = dict(zip(("value", "lower", "upper"), limits.at(0), strict=True))
    return {**value, "before": float(limits.value[1]), "holds": holds}


def _half(rows: ScoredRows, seed: int) -> NDArray[np.bool_]:
    """Return a random half of the rows; those of one cluster stay together."""
    generator = rng(seed, "constraint")
    if rows.design is None:
        return generator.permutation(len(rows.score)) < len(rows.score) / 2
    half: NDArray[np.bool_] = generator.permutation(rows.design.units) < rows.design.units / 2
    return half[rows.design.unit]
