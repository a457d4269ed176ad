"""Gaps within strata of an audit: among people of the same age band, department or the like."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.gaps import FEWEST_LABELS, NEEDS_NO_LABELS, RATE_OF, Bounds
from fairbench.audits.question import Options
from fairbench.audits.table import AuditTable
from fairbench.core.arrays import Mask, rng
from fairbench.core.text import listed
from fairbench.data.dataset import Task
from fairbench.evaluation.by_group import Row
from fairbench.evaluation.evaluator import Evaluator
from fairbench.evaluation.findings import GAP, LEVEL, NOT_MEASURED, Finding, Measure
from fairbench.evaluation.intervals import GapInterval
from fairbench.evaluation.predictions import Groups, Labelled
from fairbench.evaluation.stratified import Stratified, evaluate_within
from fairbench.evaluation.table import MetricTable
from fairbench.inference.gaps import GroupLimits, largest_gap
from fairbench.inference.rates import difference_limits
from fairbench.inference.standardised import StandardisedRates, largest_difference
from fairbench.metrics.registry import BINARY, Rate, metrics_of, shares_of


@dataclass(frozen=True, eq=False)
class StandardisedGap(Measure):
    """The largest difference of a rate between two groups, on average over strata, and its answer.

    No gap is small without each two groups. The rates are those of the first of each pair of
    groups, over the strata that the second has rows in, too.

    Attributes
    ----------
    within : the columns whose levels are the strata.
    covered : the share of all rows that the rate counts which are in strata over which every pair
        is compared.
    alone : the other strata.
    strata : the gap in each ``stratum``: the share of all rows that the rate counts which are in it
        (``weight``), how many these are (``rows``), the groups with the ``low`` and the ``high``
        rate, or, of two groups, the first and the second, the ``rates`` of both, the gap (of two
        groups the second's rate less the first's) with its limits, and how many rows the
        ``smallest`` group has that has any. Without two groups these are blank, NaN and 0.
    minimum : the number of rows under which a group is not compared.
    """

    metric: str = ""
    within: str = ""
    covered: float = float("nan")
    alone: Sequence[str] = ()
    strata: Sequence[Row] = ()
    minimum: int = 0


_PLAIN = ("attribute", "metric", "within", "names", "value", "lower", "upper", "answer", "rates",
          "covered", "alone", "strata", "minimum", "rate_name")  # fmt: skip


def plain_within(gaps: Sequence[StandardisedGap]) -> list[Row]:
    """Return gaps within strata in plain values, for the JSON."""
    return [
        {
            **{name: getattr(gap, name) for name in _PLAIN},
            "left_out": gap.few,
            "rows": gap.asked.n,
        }
        for gap in gaps
    ]


def asked_within(table: AuditTable, asked: Sequence[str]) -> list[str]:
    """Return the metrics whose gaps can be taken within strata; none where no strata are named.

    Without labels that is the gap of decisions alone.
    """
    if table.strata is None:
        return []
    return [name for name in asked if len(table.known) or name == NEEDS_NO_LABELS]


def standardised_gaps(
    table: AuditTable, options: Options, bounds: Bounds, asked: Sequence[str]
) -> list[StandardisedGap]:
    """Return the gaps of every attribute over one mix of strata.

    A rate that needs labels counts only rows that have one; decisions are known of all rows.
    """
    if table.strata is None:
        return []
    gaps = []
    same = f"among people of the same {shared_traits(options)}"
    for attribute in options.group:
        all_rows = _count_by_stratum(table, attribute, np.arange(len(table)))
        labelled_rows = all_rows
        if len(table.known) < len(table):
            labelled_rows = _count_by_stratum(table, attribute, table.known)
        for metric in asked:
            needs_no_labels = metric == NEEDS_NO_LABELS
            counted = all_rows if needs_no_labels else labelled_rows
            gap = Finding(
                *(GAP, attribute, table.direction.rate_names[metric], NOT_MEASURED),
                bound=bounds.epsilon,
                needs=f"no two have enough rows {same}",
                scope=f"on average {same}",
            )
            gaps.append(_gap(gap, counted, metric, bounds, few=counted is not all_rows))
    return gaps


def _count_by_stratum(table: AuditTable, attribute: str, rows: NDArray[np.int64]) -> Stratified:
    """Count decisions and labels of some rows, by position, in each group and stratum."""
    assert table.strata is not None
    groups = Groups.of(attribute, table.groups[attribute].iloc[rows])
    label = np.nan_to_num(table.label[rows])
    decision = table.prediction[rows].astype(float)
    return Stratified.of(groups, table.strata.iloc[rows], label, decision)


def _gap(
    asked: Finding, counted: Stratified, metric: str, bounds: Bounds, *, few: bool
) -> StandardisedGap:
    """Return the gap in one metric between the groups of an attribute.

    Parameters
    ----------
    asked : the finding of a gap that is not measured.
    counted : the counts of the groups in each stratum.
    few : whether some rows have no label: then no gap is called small before every group has
        enough of them.
    """
    rate = RATE_OF[metric]
    rates = counted.standardised(rate)
    names = np.array(counted.groups, object)
    pairs_compared = rates.compared(bounds.minimum)
    compared = pairs_compared.any(axis=-1)
    gap = StandardisedGap(
        asked,
        few=names[~compared].tolist(),
        is_whole=bool(compared.all()),
        metric=metric,
        within=counted.within,
        strata=list(_strata(counted, rate)),
        minimum=bounds.minimum,
    )
    if compared.sum() < 2:
        return gap
    groups = np.flatnonzero(compared)
    is_complete = bool((pairs_compared | np.eye(len(names), dtype=bool)).all())
    has_enough = counted.counts.sum(axis=(1, 2))[groups] >= FEWEST_LABELS
    largest, _ = largest_difference([rates], [pairs_compared], level=LEVEL)
    value, lower, upper = map(float, largest)
    if len(names) == len(groups) == 2:
        first, second = groups
        differences = rates.differences(level=LEVEL)
        value, lower, upper = (float(number[second, first]) for number in differences)
    return replace(
        gap,
        asked=replace(asked, n=int(counted.rows(rate)[groups].sum())),
        names=names[groups].tolist(),
        gap=partial(_interval, rates, pairs_compared, groups),
        rates=rates.value[np.ix_(groups, groups)].tolist(),
        estimate=(value, lower, upper),
        signed=len(groups) == 2 and gap.is_whole,
        may_be_small=is_complete and (not few or bool(has_enough.all())),
        covered=float(rates.covered[pairs_compared].min()),
        alone=counted.left_out(rate, pairs_compared),
    ).answered(bounds.risk)


def _interval(
    rates: StandardisedRates, pairs_compared: Mask, groups: NDArray[np.intp], level: float
) -> GapInterval:
    """Return the interval of the largest gap at a level, with the leads of these groups."""
    gap, leads = largest_difference([rates], [pairs_compared], level=level)
    return GapInterval(gap.lower, gap.upper, leads[np.ix_(groups, groups)])


def _strata(counted: Stratified, rate: Rate) -> Iterator[Row]:
    """Yield the largest gap in each stratum, between all groups that have rows there."""
    ((successes,), (sizes,)) = shares_of([rate], counted.counts)
    stratum_sizes = sizes.sum(axis=0)
    for index, stratum in enumerate(counted.strata):
        weight = float(stratum_sizes[index] / max(stratum_sizes.sum(), 1))
        about = {"stratum": stratum, "weight": weight, "rows": int(stratum_sizes[index])}
        groups = np.flatnonzero(sizes[:, index] > 0)
        low, high = 0, 1
        names, rates, smallest = ("", ""), (np.nan, np.nan), 0
        value = lower = upper = np.nan
        if len(groups) > 1:
            limits = GroupLimits.of(successes[groups, index], sizes[groups, index], level=LEVEL)
            values = limits.pointwise.value
            if len(counted.groups) == 2:
                difference = difference_limits(limits.pointwise.take(1), limits.pointwise.take(0))
            else:
                low, high = int(values.argmin()), int(values.argmax())
                difference = largest_gap(limits)
            value, lower, upper = map(float, difference)
            names = counted.groups[groups[low]], counted.groups[groups[high]]
            rates = float(values[low]), float(values[high])
            smallest = int(sizes[groups, index].min())
        two = dict(zip(("low", "high"), names, strict=True))
        ends = {"value": value, "lower": lower, "upper": upper}
        yield {**about, **two, "rates": rates, **ends, "smallest": smallest}


def shared_traits(options: Options) -> str:
    """Return what people of one stratum have in common, such as ``band of age and department``."""
    banded = {cut.rpartition(":")[0] for cut in options.cuts}
    return listed([f"band of {name}" if name in banded else name for name in options.within])


def within_metrics(table: AuditTable, options: Options, evaluator: Evaluator) -> pd.DataFrame:
    """Return the metrics within strata of single attributes, as :func:`fairbench.evaluate` does.

    A metric that needs labels counts only rows that have one; decisions are known of all rows.
    """
    metrics = MetricTable(evaluator.level, minimum=evaluator.minimum_group_size)
    of_decisions = {
        name
        for name, metric in metrics_of(BINARY, "rate", "difference", "ratio", "widest").items()
        if {*metric.rates} == {RATE_OF[NEEDS_NO_LABELS]}
    }
    complete = len(table.known) == len(table)
    rows_and_filters = [(np.arange(len(table)), lambda name: complete or name in of_decisions)]
    if not complete and len(table.known):
        rows_and_filters.append((table.known, lambda name: name not in of_decisions))
    for rows, is_wanted in rows_and_filters:
        assert table.strata is not None
        data = Labelled(
            np.nan_to_num(table.label[rows]),
            pd.DataFrame({"prediction": table.prediction[rows].astype(float)}),
            {name: table.groups[name].iloc[rows] for name in options.group},
            Task.BINARY,
        )
        of_rows = metrics.without_rows()
        strata = table.strata.iloc[rows]
        generators = [rng(options.seed, "strata")]
        evaluate_within(of_rows, evaluator.group_evaluation(of_rows), data, strata, generators)
        metrics.blocks.extend(of_rows.blocks_of(is_wanted))
    return metrics.frame()


def notes_within(gaps: Sequence[StandardisedGap]) -> Iterator[str]:
    """Yield who and what is not compared within strata."""
    by_attribute: dict[str, list[StandardisedGap]] = {}
    for gap in gaps:
        by_attribute.setdefault(gap.attribute, []).append(gap)
    for attribute, several in by_attribute.items():
        within = several[0].within
        if left_out := list(dict.fromkeys(name for gap in several for name in gap.few)):
            yield (
                f"{attribute} within {within}: left out of one gap or more for too few rows in "
                f"strata that other groups have rows in: {listed(left_out)}."
            )
        alone = [gap for gap in several if gap.alone]
        if alone:
            least = min(alone, key=lambda gap: gap.covered)
            strata = dict.fromkeys(name for gap in alone for name in gap.alone)
            yield (
                f"{attribute} within {within}: where a group has no rows, it is not compared "
                f"({listed([*strata], 3)}); the gap in {least.rate_name} is so of "
                f"{100 * least.covered:.3g} % of the people that the rate is of."
            )
