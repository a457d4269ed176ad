"""What other thresholds would decide: who is selected, who errs, and where a constraint holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.question import CONSTRAINED, RATIO, Options, constraint_of
from fairbench.audits.table import AuditTable
from fairbench.core.arrays import Floats
from fairbench.core.errors import UserError
from fairbench.core.seeds import rng
from fairbench.data.groups import codes_of
from fairbench.evaluation.impact_ratios import may_be_compared_with
from fairbench.evaluation.threshold_rates import ScoredRows
from fairbench.inference.gaps import GroupLimits, largest_gap, smallest_ratio
from fairbench.inference.rates import Limits
from fairbench.metrics.rates import (
    accuracy,
    false_negative_rate,
    false_positive_rate,
    selection_rate,
)

STEPS = 9  # thresholds that select 90, 80 ... 10 % of everyone
_FINE = 100  # thresholds of a curve, and among which one is looked for
_SURVEYED = 20  # thresholds for weighted or clustered rows, which take longer to count
CURVES = (selection_rate, false_positive_rate, false_negative_rate)
_UNKNOWN = (float("nan"),) * 3


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


@dataclass(frozen=True)
class JudgedConstraint:
    """How far a constraint holds among the groups of an attribute, on rows it was not chosen on.

    Attributes
    ----------
    chosen : the value on the rows that the threshold was chosen on.
    value, lower, upper : the value on the other rows, with its interval.
    before : the value on the other rows at the threshold of today.
    holds : True and False where that is sure under the error rate of the page, else None.
    """

    attribute: str
    chosen: float
    value: float
    lower: float
    upper: float
    before: float
    holds: bool | None


@dataclass(frozen=True)
class ConstrainedThreshold:
    """The threshold that a constraint asks for.

    Attributes
    ----------
    constraint, bound : what is asked for.
    rows : how many rows it was chosen on, and how many it is judged on.
    threshold : the nearest to today's at which the constraint holds on the former rows; NaN if
        there is none.
    changed : the share of the latter rows whose decision differs from today's.
    accuracy, accuracy_before : the accuracy on the latter rows at this threshold and at today's,
        with intervals; NaN without labels.
    judged : how far the constraint holds among the groups of each attribute.
    """

    constraint: str
    bound: float
    rows: tuple[int, int]
    threshold: float = float("nan")
    changed: float = float("nan")
    accuracy: tuple[float, float, float] = _UNKNOWN
    accuracy_before: tuple[float, float, float] = _UNKNOWN
    judged: Sequence[JudgedConstraint] = ()


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
    constrained : the threshold that a constraint asks for, if there is one.
    """

    curves: Sequence[ThresholdCurves] = ()
    table: pd.DataFrame = field(default_factory=pd.DataFrame)
    constrained: ConstrainedThreshold | None = None


def other_thresholds(table: AuditTable, options: Options, risk: float) -> Thresholds:
    """Return what other thresholds would decide; nothing without scores.

    Parameters
    ----------
    risk : the probability with which it may be wrong that a constraint holds, or does not.

    Raises
    ------
    UserError : a constraint that needs what the table does not have.
    """
    if table.score is None or not options.group:
        if options.constraint:
            raise UserError("constraint= looks for a threshold of scores: name score= and group=")
        return Thresholds()
    label = table.label if len(table.known) == len(table) else None
    rows = ScoredRows(table.score, label, table.design, below=table.direction.good == 0)
    many = _FINE if rows.design is None else _SURVEYED
    fine, steps = (
        np.unique(np.quantile(rows.score, shares, method="nearest"))
        for shares in (np.linspace(0, 1, many + 1), np.arange(1, STEPS + 1) / 10)
    )
    current = np.array([] if options.prediction else [options.threshold])
    steps = np.union1d(steps, current)
    thresholds = np.union1d(fine, steps)
    groups = {name: table.groups[name] for name in options.group}
    curves: list[ThresholdCurves] = []
    tables = [pd.DataFrame()]
    for attribute, labels in groups.items():
        codes, names = codes_of(labels)
        drawn = CURVES[:1] if label is None else CURVES
        limits = rows.limits(drawn, codes, thresholds)
        rates = {rate.name: of_rate for rate, of_rate in zip(drawn, limits, strict=True)}
        singles = {name: limits.pointwise for name, limits in rates.items()}
        curves.append(ThresholdCurves(attribute, names, thresholds, singles))
        if len(names) > 1:
            size = np.bincount(codes, None if rows.design is None else rows.design.weight)
            selected = rates[selection_rate.name]
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
    constrained = _constrained(rows, groups, fine, options, risk) if options.constraint else None
    return Thresholds(curves, pd.concat(tables, ignore_index=True), constrained)


def _columns(name: str, limits: Limits) -> dict[str, Floats]:
    """Return an estimate and both its limits as columns."""
    return {name: limits.value, f"{name}_lower": limits.lower, f"{name}_upper": limits.upper}


def _large_enough(rates: GroupLimits, codes: NDArray[np.intp]) -> GroupLimits:
    """Return the limits of the groups that are large enough to compare others with."""
    return rates.take(may_be_compared_with(np.bincount(codes)))


def _constrained(
    rows: ScoredRows, groups: Mapping[str, pd.Series], fine: Floats, options: Options, risk: float
) -> ConstrainedThreshold:
    """Choose the threshold nearest to today's on half of the rows, and judge it on the others."""
    name, bound = constraint_of(options.constraint)
    rate = CONSTRAINED[name]
    today = options.threshold
    if rate is not selection_rate and rows.label is None:
        raise UserError(f"constraint={options.constraint} needs a label in every row")
    first_half = _half(rows, options.seed)
    # A ratio is to be at least the bound, and a gap, turned round, at least minus the bound.
    sign, extreme = (1, smallest_ratio) if name == RATIO else (-1, largest_gap)

    def measure(
        half: NDArray[np.bool_], labels: pd.Series, thresholds: Floats, level: float = 0.95
    ) -> Limits:
        """Return what the constraint is about in some rows at thresholds (K,)."""
        codes, _ = codes_of(labels[half])
        (limits,) = rows.take(half).limits([rate], codes, thresholds, level=level)
        return extreme(_large_enough(limits, codes))

    sizes = (int(first_half.sum()), int((~first_half).sum()))
    candidates = np.union1d(fine, [today])
    values = {
        attribute: measure(first_half, labels, candidates).value
        for attribute, labels in groups.items()
    }
    fits = np.all([sign * value >= sign * bound for value in values.values()], axis=0)
    if not fits.any():
        return ConstrainedThreshold(name, bound, sizes)
    nearest = int(np.where(fits, np.abs(candidates - today), np.inf).argmin())
    new_and_current = np.array([candidates[nearest], today])
    judged = []
    for attribute, labels in groups.items():
        shown = measure(~first_half, labels, new_and_current)
        _, *limits = measure(~first_half, labels, new_and_current, 1 - risk).at(0)
        least, most = (sign * limit for limit in limits[::sign])
        value, lower, upper = shown.at(0)
        judged.append(
            JudgedConstraint(
                attribute=attribute,
                chosen=float(values[attribute][nearest]),
                value=value,
                lower=lower,
                upper=upper,
                before=float(shown.value[1]),
                holds=True if least >= sign * bound else False if most < sign * bound else None,
            )
        )
    others = rows.take(~first_half)
    changed = (others.score > new_and_current[0]) != (others.score > new_and_current[1])
    accuracy_after = accuracy_before = _UNKNOWN
    if others.label is not None:
        everyone = np.zeros(len(others.score), np.intp)
        (of_everyone,) = others.limits([accuracy], everyone, new_and_current)
        accuracies = of_everyone.pointwise.take(0)
        accuracy_after, accuracy_before = accuracies.at(0), accuracies.at(1)
    return ConstrainedThreshold(
        constraint=name,
        bound=bound,
        rows=sizes,
        threshold=float(new_and_current[0]),
        changed=float(changed.mean()),
        accuracy=accuracy_after,
        accuracy_before=accuracy_before,
        judged=judged,
    )


def _half(rows: ScoredRows, seed: int) -> NDArray[np.bool_]:
    """Return a random half of the rows; those of one cluster stay together."""
    generator = rng(seed, "constraint")
    if rows.design is None:
        return generator.permutation(len(rows.score)) < len(rows.score) / 2
    half: NDArray[np.bool_] = generator.permutation(rows.design.units) < rows.design.units / 2
    return half[rows.design.unit]
