"""What other thresholds would decide: who is selected, who errs, and where a constraint holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.impact import may_be_compared_with, unfavourable_is_1
from fairbench.audits.question import CONSTRAINED, RATIO, Options, constraint_of
from fairbench.audits.table import AuditTable
from fairbench.core.errors import UserError
from fairbench.core.seeds import rng
from fairbench.data.groups import codes_of
from fairbench.inference.gaps import GroupLimits, largest_gap, simultaneous_level, smallest_ratio
from fairbench.inference.rates import Limits
from fairbench.inference.survey import Design, SurveyCounts
from fairbench.metrics.group import counts_at
from fairbench.metrics.rates import (
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

    curves: Sequence[ThresholdCurves] = ()
    table: Sequence[AtThreshold] = ()
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
    rows = _Rows(
        table.score,
        table.label if len(table.known) == len(table) else None,
        table.design,
        unfavourable_is_1(table, options),
    )
    many = _SURVEYED if rows.design is not None else _FINE
    shares = np.r_[np.linspace(0, 1, many + 1), np.arange(1, STEPS + 1) / 10]
    quantiles = np.atleast_1d(np.quantile(rows.score, shares, method="nearest"))
    fine, steps = np.unique(quantiles[: many + 1]), np.unique(quantiles[many + 1 :])
    current = None if options.prediction else options.threshold
    if current is not None:
        steps = np.unique(np.append(steps, current))
    groups = {name: table.groups[name] for name in options.group}
    constrained = _constrained(rows, groups, fine, options, risk) if options.constraint else None
    thresholds = np.union1d(fine, steps)
    asked = CURVES if rows.label is not None else CURVES[:1]
    curves: list[ThresholdCurves] = []
    rows_of_table: list[AtThreshold] = []
    for attribute, labels in groups.items():
        codes, names = codes_of(labels)
        limits = rows.limits(asked, codes, thresholds)
        rates = {rate.name: each.single for rate, each in zip(asked, limits, strict=True)}
        curves.append(ThresholdCurves(attribute, names, thresholds, rates))
        if len(names) < 2:
            continue
        size = np.bincount(codes, None if rows.design is None else rows.design.weight)
        everyone = limits[0].single.value @ (size / size.sum())
        compared = _compared(limits[0], codes)
        ratio, gap = smallest_ratio(compared), largest_gap(compared)
        rows_of_table += [
            AtThreshold(
                attribute,
                float(thresholds[k]),
                float(everyone[k]),
                *ratio.at(k),
                *gap.at(k),
                bool(thresholds[k] == current),
            )
            for k in np.searchsorted(thresholds, steps).tolist()
        ]
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

    def take(self, rows: NDArray[np.bool_]) -> _Rows:
        label = None if self.label is None else self.label[rows]
        design = None if self.design is None else self.design.take(rows)
        return _Rows(self.score[rows], label, design, self.below)

    def limits(
        self, rates: Sequence[Rate], codes: Codes, thresholds: Floats, level: float = 0.95
    ) -> list[GroupLimits]:
        """Return rates of groups, (K, G) each, at thresholds (K,)."""
        if self.design is not None:
            return [self._surveyed(rate, codes, thresholds, level) for rate in rates]
        counts = counts_at(thresholds, self.label, self.score, codes)
        flipped = counts[..., [1, 0, 3, 2]] if self.below else counts
        of_rates = (
            shares_of([rate], flipped if rate is selection_rate else counts) for rate in rates
        )
        return [GroupLimits.of(success[0], size[0], level=level) for success, size in of_rates]

    def _surveyed(self, rate: Rate, codes: Codes, thresholds: Floats, level: float) -> GroupLimits:
        """Return the same of one rate of weighted or clustered rows."""
        assert self.design is not None
        surveys, flipped = [], self.below and rate is selection_rate
        label, groups = np.zeros(len(codes)) if self.label is None else self.label, codes.max() + 1
        for threshold in thresholds:
            cell = (2 * label + ((self.score > threshold) != flipped)).astype(np.intp)
            surveys.append(SurveyCounts.of(cell, codes, self.design, groups=groups))
        single, together = (
            Limits(*map(np.stack, zip(*(s.limits(rate, level=at) for s in surveys), strict=True)))
            for at in (level, simultaneous_level(level, groups))
        )
        return GroupLimits(single, together, np.stack([each.correlation(rate) for each in surveys]))


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

    def measured(
        part: NDArray[np.bool_], labels: pd.Series, thresholds: Floats, level: float = 0.95
    ) -> Limits:
        """Return what the constraint is about in some rows at thresholds (K,)."""
        codes, _ = codes_of(labels[part])
        rates = rows.take(part).limits([CONSTRAINED[name]], codes, thresholds, level)
        return (smallest_ratio if name == RATIO else largest_gap)(_compared(rates[0], codes))

    sizes = (int(first.sum()), int((~first).sum()))
    candidates = np.unique(np.append(fine, options.threshold))
    values = [measured(first, labels, candidates).value for labels in groups.values()]
    fits = np.all([of >= bound if name == RATIO else of <= bound for of in values], axis=0)
    if not fits.any():
        return ConstrainedThreshold(name, bound, sizes, float("nan"))
    place = int(np.where(fits, np.abs(candidates - options.threshold), np.inf).argmin())
    asked = np.array([candidates[place], options.threshold])
    judged = []
    for (attribute, labels), of_first in zip(groups.items(), values, strict=True):
        shown = measured(~first, labels, asked)
        _, least, most = measured(~first, labels, asked, 1 - risk).at(0)
        surely, surely_not = least >= bound, most < bound
        if name != RATIO:
            surely, surely_not = most <= bound, least > bound
        holds = True if surely else False if surely_not else None
        ends = shown.at(0)
        before = float(shown.value[1])
        judged.append(JudgedConstraint(attribute, float(of_first[place]), *ends, before, holds))
    others = rows.take(~first)
    chosen = ConstrainedThreshold(
        name,
        bound,
        sizes,
        float(asked[0]),
        float(((others.score > asked[0]) != (others.score > asked[1])).mean()),
        judged=judged,
    )
    if others.label is None:
        return chosen
    everyone = np.zeros(len(others.score), np.intp)
    single = others.limits([accuracy], everyone, asked)[0].single.take(0)
    return replace(chosen, accuracy=single.at(0), accuracy_before=single.at(1))


def _half(rows: _Rows, seed: int) -> NDArray[np.bool_]:
    """Return a random half of the rows; those of one cluster stay together."""
    generator = rng(seed, "constraint")
    if rows.design is None:
        return generator.permutation(len(rows.score)) < len(rows.score) / 2
    chosen: NDArray[np.bool_] = generator.permutation(rows.design.units) < rows.design.units / 2
    return chosen[rows.design.unit]
