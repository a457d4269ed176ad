"""Gaps within strata of an audit: among people of the same age band, department or the like."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.findings import (
    GAP,
    LARGE,
    LEVEL,
    NOT_MEASURED,
    OPEN,
    PAIR,
    Finding,
    GapAnswer,
    answer_gap,
    as_named,
    too_few_of,
)
from fairbench.audits.gaps import FEWEST_LABELS, NEEDS_NO_LABELS, RATE_OF, Bounds
from fairbench.audits.question import Options
from fairbench.audits.table import AuditTable
from fairbench.core.arrays import Mask, rng
from fairbench.core.text import listed
from fairbench.data.dataset import Task
from fairbench.evaluation.evaluator import Evaluator
from fairbench.evaluation.intervals import GapInterval
from fairbench.evaluation.predictions import Groups, Labelled
from fairbench.evaluation.stratified import Stratified, evaluate_within
from fairbench.evaluation.table import MetricTable
from fairbench.inference.gaps import GroupLimits, largest_gap
from fairbench.inference.rates import difference_limits
from fairbench.inference.standardised import StandardisedRates, largest_difference
from fairbench.metrics.registry import BINARY, Rate, metrics_of, shares_of

NAN = float("nan")


@dataclass(frozen=True)
class StratumGap:
    """The largest difference of a rate between two groups in one stratum.

    Attributes
    ----------
    stratum : the name of the stratum.
    weight : the share of all rows that the rate counts which are in the stratum.
    rows : how many rows of the stratum the rate counts.
    low, high : the groups with the lowest and the highest rate; if there are two groups, the first
        and the second.
    rates : the rates of both.
    value, lower, upper : the gap; for two groups the second's rate less the first's. NaN where
        under two groups have rows.
    smallest : how many rows the smallest group has that has any.
    """

    stratum: str
    weight: float
    rows: int
    low: str = ""
    high: str = ""
    rates: tuple[float, float] = (NAN, NAN)
    value: float = NAN
    lower: float = NAN
    upper: float = NAN
    smallest: int = 0


@dataclass(frozen=True, eq=False)
class StandardisedGap:
    """The largest difference of a rate between two groups, on average over strata.

    Attributes
    ----------
    within : the columns whose levels are the strata.
    names : the names of the groups that are compared.
    left_out : the names of the other groups, which have too few rows; no gap is small without each
        two groups.
    value, lower, upper : the gap; for two groups the second's standardised rate less the first's.
    answer : the verdict on the gap, with groups as positions in `names`.
    rates : (G, G) the standardised rate of the first group of each pair, over the strata that the
        second has rows in, too.
    rows : how many rows of the compared groups the rate counts.
    covered : the share of all rows that the rate counts which are in strata over which every pair
        is compared.
    alone : the other strata.
    strata : the gap in each stratum.
    minimum : the number of rows under which a group is not compared.
    rate_name : what the rate is called.
    """

    attribute: str
    metric: str
    within: str
    names: Sequence[str] = ()
    left_out: Sequence[str] = ()
    value: float = NAN
    lower: float = NAN
    upper: float = NAN
    answer: GapAnswer = GapAnswer(NOT_MEASURED)
    rates: Sequence[Sequence[float]] = ()
    rows: int = 0
    covered: float = NAN
    alone: Sequence[str] = ()
    strata: Sequence[StratumGap] = ()
    minimum: int = 0
    rate_name: str = ""

    @property
    def signed(self) -> bool:
        """Whether the value is a signed difference of two groups."""
        return len(self.names) == 2 and not self.left_out

    @property
    def verdict(self) -> str:
        """The verdict on the gap."""
        return self.answer.verdict


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
    for attribute in options.group:
        all_rows = _count_by_stratum(table, attribute, np.arange(len(table)))
        labelled_rows = all_rows
        if len(table.known) < len(table):
            labelled_rows = _count_by_stratum(table, attribute, table.known)
        for metric in asked:
            needs_no_labels = metric == NEEDS_NO_LABELS
            counted = all_rows if needs_no_labels else labelled_rows
            gap = _gap(counted, metric, bounds, few=counted is not all_rows)
            gaps.append(replace(gap, rate_name=table.direction.rate_names[metric]))
    return gaps


def _count_by_stratum(table: AuditTable, attribute: str, rows: NDArray[np.int64]) -> Stratified:
    """Count decisions and labels of some rows, by position, in each group and stratum."""
    assert table.strata is not None
    groups = Groups.of(attribute, table.groups[attribute].iloc[rows])
    label = np.nan_to_num(table.label[rows])
    decision = table.prediction[rows].astype(float)
    return Stratified.of(groups, table.strata.iloc[rows], label, decision)


def _gap(counted: Stratified, metric: str, bounds: Bounds, *, few: bool) -> StandardisedGap:
    """Return the gap in one metric between the groups of an attribute.

    Parameters
    ----------
    counted : the counts of the groups in each stratum.
    few : whether some rows have no label: then no gap is called small before every group has
        enough of them.
    """
    rate = RATE_OF[metric]
    rates = counted.standardised(rate)
    names = np.array(counted.groups, object)
    pairs_compared = rates.compared(bounds.minimum)
    compared = pairs_compared.any(axis=-1)
    is_complete = bool((pairs_compared | np.eye(len(names), dtype=bool)).all())
    gap = StandardisedGap(
        counted.attribute,
        metric,
        counted.within,
        left_out=names[~compared].tolist(),
        strata=list(_strata(counted, rate)),
        minimum=bounds.minimum,
    )
    if compared.sum() < 2:
        return gap
    groups = np.flatnonzero(compared)
    has_enough = counted.counts.sum(axis=(1, 2))[groups] >= FEWEST_LABELS
    answer = answer_gap(
        partial(_interval, rates, pairs_compared, groups),
        bounds.epsilon,
        bounds.risk,
        may_be_small=is_complete and (not few or bool(has_enough.all())),
    )
    largest, _ = largest_difference([rates], [pairs_compared], level=LEVEL)
    value, lower, upper = map(float, largest)
    if len(names) == len(groups) == 2:
        first, second = groups
        differences = rates.differences(level=LEVEL)
        value, lower, upper = (float(number[second, first]) for number in differences)
    return replace(
        gap,
        names=names[groups].tolist(),
        value=value,
        lower=lower,
        upper=upper,
        answer=answer,
        rates=rates.value[np.ix_(groups, groups)].tolist(),
        rows=int(counted.rows(rate)[groups].sum()),
        covered=float(rates.covered[pairs_compared].min()),
        alone=counted.left_out(rate, pairs_compared),
    )


def _interval(
    rates: StandardisedRates, pairs_compared: Mask, groups: NDArray[np.intp], level: float
) -> GapInterval:
    """Return the interval of the largest gap at a level, with the leads of these groups."""
    gap, leads = largest_difference([rates], [pairs_compared], level=level)
    return GapInterval(gap.lower, gap.upper, leads[np.ix_(groups, groups)])


def _strata(counted: Stratified, rate: Rate) -> Iterator[StratumGap]:
    """Yield the largest gap in each stratum, between all groups that have rows there."""
    ((successes,), (sizes,)) = shares_of([rate], counted.counts)
    stratum_sizes = sizes.sum(axis=0)
    for index, stratum in enumerate(counted.strata):
        weight = float(stratum_sizes[index] / max(stratum_sizes.sum(), 1))
        gap = StratumGap(stratum, weight, rows=int(stratum_sizes[index]))
        groups = np.flatnonzero(sizes[:, index] > 0)
        if len(groups) < 2:
            yield gap
            continue
        limits = GroupLimits.of(successes[groups, index], sizes[groups, index], level=LEVEL)
        values = limits.pointwise.value
        if len(counted.groups) == 2:
            low, high = 0, 1
            difference = difference_limits(limits.pointwise.take(1), limits.pointwise.take(0))
        else:
            low, high = int(values.argmin()), int(values.argmax())
            difference = largest_gap(limits)
        value, lower, upper = map(float, difference)
        yield replace(
            gap,
            low=counted.groups[groups[low]],
            high=counted.groups[groups[high]],
            rates=(float(values[low]), float(values[high])),
            value=value,
            lower=lower,
            upper=upper,
            smallest=int(sizes[groups, index].min()),
        )


def shared_traits(options: Options) -> str:
    """Return what people of one stratum have in common, such as ``band of age and department``."""
    banded = {cut.rpartition(":")[0] for cut in options.cuts}
    return listed([f"band of {name}" if name in banded else name for name in options.within])


def within_findings(
    gaps: Sequence[StandardisedGap], options: Options, epsilon: float
) -> Iterator[Finding]:
    """Yield what standardised gaps say of the people that the rows are a sample of."""
    scope = f"on average among people of the same {shared_traits(options)}"
    too_few = f"no two have enough rows among people of the same {shared_traits(options)}"
    for gap in gaps:
        answer = gap.answer
        value, lower, upper = as_named(answer, (gap.value, gap.lower, gap.upper), signed=gap.signed)
        few = gap.left_out if gap.verdict == OPEN else ()
        if few:
            lower = upper = NAN  # it is the gap of the others alone
        template = Finding(
            GAP, gap.attribute, gap.rate_name, gap.verdict, bound=epsilon, n=gap.rows, scope=scope
        )
        named = answer.named
        yield replace(
            template,
            groups=tuple(gap.names[group] for group in named),
            value=value,
            lower=lower,
            upper=upper,
            values=(gap.rates[named[0]][named[1]], gap.rates[named[1]][named[0]]) if named else (),
            needs=too_few if gap.verdict == NOT_MEASURED else too_few_of(few),
        )
        for high, low in answer.pairs:
            if (high, low) != named:
                above, below = gap.rates[high][low], gap.rates[low][high]
                yield replace(
                    template,
                    about=PAIR,
                    verdict=LARGE,
                    groups=(gap.names[high], gap.names[low]),
                    value=above - below,
                    values=(above, below),
                    bound=0.0,
                )


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
        if left_out := list(dict.fromkeys(name for gap in several for name in gap.left_out)):
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
