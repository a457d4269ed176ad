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
    PAIR,
    Finding,
    GapAnswer,
    answer_gap,
)
from fairbench.audits.gaps import FEWEST_LABELS, NEEDS_NO_LABELS, RATE_OF, Bounds
from fairbench.audits.question import Options
from fairbench.audits.sentences import listed
from fairbench.audits.table import AuditTable
from fairbench.core.arrays import Mask
from fairbench.core.seeds import rng
from fairbench.data.dataset import Task
from fairbench.evaluation.evaluator import Evaluator
from fairbench.evaluation.group_intervals import GapInterval
from fairbench.evaluation.predictions import Groups, Labelled
from fairbench.evaluation.stratified import Stratified, evaluate_within
from fairbench.evaluation.table import MetricTable
from fairbench.inference.gaps import GroupLimits, largest_gap
from fairbench.inference.rates import difference_limits
from fairbench.inference.standardised import StandardisedRates, largest_difference
from fairbench.metrics.rates import Rate, shares_of
from fairbench.metrics.registry import BINARY, metrics_of

NAN = float("nan")


@dataclass(frozen=True)
class StratumGap:
    """The largest difference of a rate between two groups in one stratum.

    Attributes
    ----------
    weight : the share of the people that the rate is of who are in it. rows : how many those are.
    low, high : the groups with the lowest and the highest rate; of two groups the first and the
        second. rates : of both.
    value, lower, upper : of two groups the second's rate less the first's; NaN where under two
        groups have rows.
    smallest : rows of the smallest group that has any.
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
    names : of the groups that are compared. left_out : of the others, which have too few rows.
    value, lower, upper : of two groups the second's standardised rate less the first's.
    answer : what is said of it, by positions in `names`.
    rates : (G, G) the standardised rate of the first group of each pair, over the strata that the
        second has rows in, too.
    rows : of the groups compared. covered : the share of the people that the rate is of who are in
        strata over which every pair is compared. alone : the other strata.
    strata : the gap in each. minimum : the rows under which a group is not compared.
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
        return len(self.names) == 2

    @property
    def verdict(self) -> str:
        """What is said of the gap."""
        return self.answer.verdict


def asked_within(table: AuditTable, asked: Sequence[str]) -> list[str]:
    """Return the gaps that are asked for within strata: without labels, that of decisions alone."""
    if table.strata is None:
        return []
    return [name for name in asked if len(table.known) or name == NEEDS_NO_LABELS]


def standardised_gaps(
    table: AuditTable, options: Options, bounds: Bounds, asked: Sequence[str]
) -> list[StandardisedGap]:
    """Return the gaps of every attribute over one mix of strata.

    Of rates that need labels only rows that have one count; decisions are known of all.
    """
    if table.strata is None:
        return []
    gaps = []
    for attribute in options.group:
        decided = _counted(table, attribute, np.arange(len(table)))
        labelled = decided if len(table.known) == len(table) else (
            _counted(table, attribute, table.known)
        )  # fmt: skip
        for metric in asked:
            needs_none = metric == NEEDS_NO_LABELS
            few = labelled is not decided and not needs_none
            gap = _gap(decided if needs_none else labelled, metric, bounds, few=few)
            gaps.append(replace(gap, rate_name=table.direction.rate_names[metric]))
    return gaps


def _counted(table: AuditTable, attribute: str, rows: NDArray[np.int64]) -> Stratified:
    assert table.strata is not None
    groups = Groups.of(attribute, table.groups[attribute].iloc[rows])
    label, hard = np.nan_to_num(table.label[rows]), table.prediction[rows].astype(float)
    return Stratified.of(groups, table.strata.iloc[rows], label, hard)


def _gap(counted: Stratified, metric: str, bounds: Bounds, *, few: bool) -> StandardisedGap:
    """Return one gap; with `few` labels none is called small before every group has enough."""
    rate = RATE_OF[metric]
    rates, names = counted.standardised(rate), np.array(counted.groups, object)
    among = rates.compared(bounds.minimum)
    compared = among.any(axis=-1)
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
    places = np.flatnonzero(compared)
    enough = counted.counts.sum(axis=(1, 2))[places] >= FEWEST_LABELS
    answer = answer_gap(
        partial(_interval, rates, among, places),
        bounds.epsilon,
        bounds.risk,
        may_be_small=not few or bool(enough.all()),
    )
    largest, _ = largest_difference([rates], [among], level=LEVEL)
    value, lower, upper = map(float, largest)
    if len(places) == 2:
        first, second = places
        value, lower, upper = (float(end[second, first]) for end in rates.differences(level=LEVEL))
    return replace(
        gap,
        names=names[places].tolist(),
        value=value,
        lower=lower,
        upper=upper,
        answer=answer,
        rates=rates.value[np.ix_(places, places)].tolist(),
        rows=int(counted.rows(rate)[places].sum()),
        covered=float(rates.covered[among].min()),
        alone=counted.left_out(rate, among),
    )


def _interval(
    rates: StandardisedRates, among: Mask, places: NDArray[np.intp], level: float
) -> GapInterval:
    gap, ahead = largest_difference([rates], [among], level=level)
    return GapInterval(gap.lower, gap.upper, ahead[np.ix_(places, places)])


def _strata(counted: Stratified, rate: Rate) -> Iterator[StratumGap]:
    """Yield the largest gap in each stratum, between all groups that have rows there."""
    ((successes,), (sizes,)) = shares_of([rate], counted.counts)
    everyone = sizes.sum(axis=0)
    for k, stratum in enumerate(counted.strata):
        rows, there = int(everyone[k]), np.flatnonzero(sizes[:, k] > 0)
        gap = StratumGap(stratum, float(everyone[k] / max(everyone.sum(), 1)), rows)
        if len(there) < 2:
            yield gap
            continue
        limits = GroupLimits.of(successes[there, k], sizes[there, k], level=LEVEL)
        values = limits.single.value
        if len(counted.groups) == 2:
            low, high = 0, 1
            ends = difference_limits(limits.single.take(1), limits.single.take(0))
        else:
            low, high = int(values.argmin()), int(values.argmax())
            ends = largest_gap(limits)
        value, lower, upper = map(float, ends)
        yield replace(
            gap,
            low=counted.groups[there[low]],
            high=counted.groups[there[high]],
            rates=(float(values[low]), float(values[high])),
            value=value,
            lower=lower,
            upper=upper,
            smallest=int(sizes[there, k].min()),
        )


def same(options: Options) -> str:
    """Return what people of one stratum have in common, such as ``band of age and department``."""
    banded = {cut.rpartition(":")[0] for cut in options.cuts}
    return listed([f"band of {name}" if name in banded else name for name in options.within])


def within_findings(
    gaps: Sequence[StandardisedGap], options: Options, epsilon: float
) -> Iterator[Finding]:
    """Yield what standardised gaps say of the people that the rows are a sample of."""
    scope = f"on average among people of the same {same(options)}"
    too_few = f"no two have enough rows among people of the same {same(options)}"
    for gap in gaps:
        ends, answer = (gap.lower, gap.upper), gap.answer
        if answer.named and gap.signed and gap.upper < 0:
            ends = -gap.upper, -gap.lower
        template = Finding(
            GAP, gap.attribute, gap.rate_name, gap.verdict, bound=epsilon, n=gap.rows, scope=scope
        )
        named = answer.named
        yield replace(
            template,
            groups=tuple(gap.names[place] for place in named),
            value=gap.value,
            lower=ends[0],
            upper=ends[1],
            values=(gap.rates[named[0]][named[1]], gap.rates[named[1]][named[0]]) if named else (),
            needs=too_few if gap.verdict == NOT_MEASURED else "",
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
    """Return the rows within strata of single attributes, as :func:`fairbench.evaluate` has them.

    Of metrics that need labels only rows that have one count; decisions are known of all.
    """
    rows = MetricTable(evaluator.level, minimum=evaluator.minimum_group_size)
    of_decisions = {
        name
        for name, metric in metrics_of(BINARY, "rate", "difference", "ratio", "widest").items()
        if {*metric.rates} == {RATE_OF[NEEDS_NO_LABELS]}
    }
    complete = len(table.known) == len(table)
    parts = [(np.arange(len(table)), lambda name: complete or name in of_decisions)]
    if not complete and len(table.known):
        parts.append((table.known, lambda name: name not in of_decisions))
    for places, chosen in parts:
        assert table.strata is not None
        data = Labelled(
            np.nan_to_num(table.label[places]),
            pd.DataFrame({"prediction": table.prediction[places].astype(float)}),
            {name: table.groups[name].iloc[places] for name in options.group},
            Task.BINARY,
        )
        part = rows.without_rows()
        strata, generators = table.strata.iloc[places], [rng(options.seed, "strata")]
        evaluate_within(part, evaluator.group_evaluation(part), data, strata, generators)
        rows.blocks.extend(part.take(chosen))
    return rows.frame()


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
