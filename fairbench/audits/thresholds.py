"""What other thresholds would decide: who is selected, who errs, and where a constraint holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.columns import codes_of
from fairbench.audits.impact import may_be_compared_with, unfavourable_is_1
from fairbench.audits.question import CONSTRAINED, RATIO, Options, constraint_of
from fairbench.audits.table import AuditTable
from fairbench.core.errors import UserError
from fairbench.core.seeds import rng
from fairbench.inference.gaps import GroupLimits, largest_gap, simultaneous_level, smallest_ratio
from fairbench.inference.rates import Limits
from fairbench.inference.survey import Design, SurveyCounts
from fairbench.metrics.rates import (
    Counts,
    Rate,
    accuracy,
    false_negative_rate,
    false_positive_rate,
    selection_rate,
    shares_of,
)

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
STEPS = 9  # thresholds that select 90, 80 ... 10 % of everyone
_FINE = 100  # thresholds of a curve, and among which one is looked for
_SURVEYED = 20  # the same of weighted or clustered rows, which take longer to count
CURVES = (selection_rate, false_positive_rate, false_negative_rate)


@dataclass(frozen=True, eq=False)
class ThresholdCurves:
    """Rates of the groups of one attribute at K thresholds.

    Attributes
    ----------
    thresholds : (K,) ascending. rates : name -> (K, G), with the interval of each by itself.
    """

    attribute: str
    groups: Sequence[str]
    thresholds: Floats
    rates: Mapping[str, Limits]


@dataclass(frozen=True)
class AtThreshold:
    """What a threshold decides about the groups of an attribute.

    Attributes
    ----------
    selected : share of everyone. ratio : the smallest selection rate of a group over the largest.
    gap : the largest difference of two selection rates. Each has its interval.
    current : whether decisions are made by this threshold today.
    """

    attribute: str
    threshold: float
    selected: float
    ratio: float
    ratio_lower: float
    ratio_upper: float
    gap: float
    gap_lower: float
    gap_upper: float
    current: bool


@dataclass(frozen=True)
class JudgedConstraint:
    """How far a constraint holds among the groups of an attribute, on rows it was not chosen on.

    Attributes
    ----------
    chosen : the value on the rows that the threshold was chosen on.
    value, lower, upper : on the others, with its interval.
    before : on the others, at the threshold of today.
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
    constraint, bound : what is asked for. rows : that it was chosen on, and that it is judged on.
    threshold : the nearest to today's at which the constraint holds on the former; NaN of none.
    changed : share of the latter whose decision is another than today's.
    accuracy, accuracy_before : on the latter, with intervals; NaN without labels.
    """

    constraint: str
    bound: float
    rows: tuple[int, int]
    threshold: float
    changed: float = float("nan")
    accuracy: tuple[float, float, float] = (float("nan"),) * 3
    accuracy_before: tuple[float, float, float] = (float("nan"),) * 3
    judged: Sequence[JudgedConstraint] = ()


@dataclass(frozen=True, eq=False)
class Thresholds:
    """What other thresholds would decide."""

    curves: Sequence[ThresholdCurves]
    table: Sequence[AtThreshold]
    constrained: ConstrainedThreshold | None


def other_thresholds(table: AuditTable, options: Options, risk: float) -> Thresholds | None:
    """Return what other thresholds would decide; None without scores.

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
        return None
    rows = _Rows.of(table, options)
    many = _SURVEYED if rows.design is not None else _FINE
    shares = np.r_[np.linspace(0, 1, many + 1), np.arange(1, STEPS + 1) / 10]
    found = np.atleast_1d(np.quantile(rows.score, shares, method="nearest"))
    fine, steps = np.unique(found[: many + 1]), np.unique(found[many + 1 :])
    current = None if options.prediction else options.threshold
    if current is not None:
        steps = np.unique(np.append(steps, current))
    groups = {name: table.groups[name] for name in options.group}
    constrained = _constrained(rows, groups, fine, options, risk) if options.constraint else None
    every = np.union1d(fine, steps)
    curves: list[ThresholdCurves] = []
    rows_of_table: list[AtThreshold] = []
    for name, each in groups.items():
        curve, selected = _curves(rows, name, each, every)
        curves.append(curve)
        rows_of_table += _steps(rows, each, curve, selected, steps, current)
    return Thresholds(curves, rows_of_table, constrained)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows with scores (n,), labels where all have one, and how they were sampled.

    `below` says that those of scores up to the threshold are selected.
    """

    score: Floats
    label: Floats | None
    design: Design | None
    below: bool

    @classmethod
    def of(cls, table: AuditTable, options: Options) -> _Rows:
        assert table.score is not None
        known = len(table.known) == len(table)
        label = table.label if known else None
        return cls(table.score, label, table.design, unfavourable_is_1(table, options))

    def take(self, rows: NDArray[np.bool_]) -> _Rows:
        label = None if self.label is None else self.label[rows]
        design = None if self.design is None else self.design.take(rows)
        return _Rows(self.score[rows], label, design, self.below)

    def limits(
        self,
        rates: Sequence[Rate],
        codes: Codes,
        groups: int,
        thresholds: Floats,
        level: float = 0.95,
    ) -> list[GroupLimits]:
        """Return rates of groups, (K, G) each, at thresholds (K,)."""
        if self.design is None:
            counts = self._counts(codes, groups, thresholds)
            flipped = counts[..., [1, 0, 3, 2]] if self.below else counts
            of_each = [
                shares_of([rate], flipped if rate is selection_rate else counts) for rate in rates
            ]
            return [GroupLimits.of(success[0], size[0], level=level) for success, size in of_each]
        return [self._surveyed(rate, codes, groups, thresholds, level) for rate in rates]

    def _surveyed(
        self, rate: Rate, codes: Codes, groups: int, thresholds: Floats, level: float
    ) -> GroupLimits:
        """Return the same of one rate of weighted or clustered rows."""
        assert self.design is not None
        surveys, flipped = [], self.below and rate is selection_rate
        label = np.zeros(len(self.score)) if self.label is None else self.label
        for threshold in thresholds:
            cell = (2 * label + ((self.score > threshold) != flipped)).astype(np.intp)
            surveys.append(SurveyCounts.of(cell, codes, self.design, groups=groups))
        single, together = (
            Limits(*map(np.stack, zip(*(s.limits(rate, level=at) for s in surveys), strict=True)))
            for at in (level, simultaneous_level(level, groups))
        )
        return GroupLimits(single, together, np.stack([each.correlation(rate) for each in surveys]))

    def _counts(self, codes: Codes, groups: int, thresholds: Floats) -> Counts:
        """Return the confusion counts (K, G, 4) of decisions score > threshold."""
        steps = len(thresholds) + 1
        passed = np.searchsorted(thresholds, self.score, side="left")  # thresholds that are less
        label = 0 if self.label is None else self.label.astype(np.intp)
        found = np.bincount((2 * codes + label) * steps + passed, minlength=2 * groups * steps)
        not_selected = found.reshape(groups, 2, steps).cumsum(axis=-1)
        negative, whole = not_selected[..., :-1], not_selected[..., -1:]
        both = np.stack([negative, whole - negative], axis=2)  # (G, label, decision, K)
        return np.moveaxis(both.reshape(groups, 4, steps - 1), -1, 0)


def _curves(
    rows: _Rows, attribute: str, groups: pd.Series, thresholds: Floats
) -> tuple[ThresholdCurves, GroupLimits]:
    """Return rates at all thresholds, and those of selection with what compares groups."""
    codes, names = codes_of(groups)
    asked = CURVES if rows.label is not None else CURVES[:1]
    limits = rows.limits(asked, codes, len(names), thresholds)
    rates = {rate.name: each.single for rate, each in zip(asked, limits, strict=True)}
    return ThresholdCurves(attribute, names, thresholds, rates), limits[0]


def _steps(
    rows: _Rows,
    groups: pd.Series,
    curve: ThresholdCurves,
    selected: GroupLimits,
    steps: Floats,
    current: float | None,
) -> Iterator[AtThreshold]:
    codes, names = codes_of(groups)
    if len(names) < 2:
        return
    weight = np.bincount(codes, None if rows.design is None else rows.design.weight)
    everyone = selected.single.value @ (weight / weight.sum())
    compared = _compared(selected, codes)
    ratio, gap = smallest_ratio(compared), largest_gap(compared)
    for k in np.searchsorted(curve.thresholds, steps).tolist():
        yield AtThreshold(
            curve.attribute,
            float(curve.thresholds[k]),
            float(everyone[k]),
            *ratio.at(k),
            *gap.at(k),
            bool(curve.thresholds[k] == current),
        )


def _compared(rates: GroupLimits, codes: Codes) -> GroupLimits:
    """Return the limits of the groups that are large enough to compare others with."""
    enough = may_be_compared_with(np.bincount(codes, minlength=rates.single.value.shape[-1]))
    shared = rates.correlation
    if not isinstance(shared, float):
        shared = shared[..., enough, :][..., enough]
    return GroupLimits(rates.single.take(enough), rates.together.take(enough), shared)


def _constrained(
    rows: _Rows, groups: Mapping[str, pd.Series], fine: Floats, options: Options, risk: float
) -> ConstrainedThreshold:
    name, bound = constraint_of(options.constraint)
    if name not in (RATIO, selection_rate.name) and rows.label is None:
        raise UserError(f"constraint={options.constraint} needs a label in every row")
    first = _half(rows, options.seed)
    sizes = (int(first.sum()), int((~first).sum()))
    candidates = np.unique(np.append(fine, options.threshold))
    values = np.stack(
        [
            _measured(rows.take(first), each[first], name, candidates).value
            for each in groups.values()
        ]
    )
    fits = _met(name, values, bound).all(axis=0)
    if not fits.any():
        return ConstrainedThreshold(name, bound, sizes, float("nan"))
    distance = np.where(fits, np.abs(candidates - options.threshold), np.inf)
    place = int(distance.argmin())
    threshold, others = float(candidates[place]), rows.take(~first)
    asked = np.array([threshold, options.threshold])
    judged = [
        _judged(
            _measured(others, each[~first], name, asked),
            attribute,
            float(values[i, place]),
            wider=_measured(others, each[~first], name, asked, 1 - risk),
            name=name,
            bound=bound,
        )
        for i, (attribute, each) in enumerate(groups.items())
    ]
    between = (others.score > threshold) != (others.score > options.threshold)
    return ConstrainedThreshold(
        name,
        bound,
        sizes,
        threshold,
        float(between.mean()),
        _accuracy(others, threshold),
        _accuracy(others, options.threshold),
        judged,
    )


def _half(rows: _Rows, seed: int) -> NDArray[np.bool_]:
    """Return a random half of the rows; those of one cluster stay together."""
    generator = rng(seed, "constraint")
    if rows.design is None:
        return generator.permutation(len(rows.score)) < len(rows.score) / 2
    chosen: NDArray[np.bool_] = generator.permutation(rows.design.units) < rows.design.units / 2
    return chosen[rows.design.unit]


def _measured(
    rows: _Rows, groups: pd.Series, name: str, thresholds: Floats, level: float = 0.95
) -> Limits:
    """Return what a constraint is about at thresholds (K,), in any order, with its interval."""
    codes, names = codes_of(groups)
    order = np.argsort(thresholds)
    (rates,) = rows.limits([CONSTRAINED[name]], codes, len(names), thresholds[order], level)
    found = (smallest_ratio if name == RATIO else largest_gap)(_compared(rates, codes))
    back = np.argsort(order)
    return Limits(*(each[back] for each in found))


def _met(name: str, values: Floats, bound: float) -> NDArray[np.bool_]:
    return values >= bound if name == RATIO else values <= bound


def _judged(
    found: Limits, attribute: str, chosen: float, *, wider: Limits, name: str, bound: float
) -> JudgedConstraint:
    """Return the verdict on the first of two thresholds, beside the value at the second.

    Parameters
    ----------
    found, wider : the intervals at 95 %, and at the level that verdicts are given at.
    """
    value, lower, upper = found.at(0)
    _, least, most = wider.at(0)
    surely, surely_not = least >= bound, most < bound
    if name != RATIO:
        surely, surely_not = most <= bound, least > bound
    holds = True if surely else False if surely_not else None
    return JudgedConstraint(attribute, chosen, value, lower, upper, float(found.value[1]), holds)


def _accuracy(rows: _Rows, threshold: float) -> tuple[float, float, float]:
    if rows.label is None:
        return (float("nan"),) * 3
    everyone = np.zeros(len(rows.score), np.intp)
    (found,) = rows.limits([accuracy], everyone, 1, np.array([threshold]))
    return found.single.take(0).at(0)
