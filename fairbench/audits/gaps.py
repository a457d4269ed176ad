"""Gaps between groups, of everyone and within strata: small or large, and what else is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from fairbench.audits.direction import NEEDS_NO_LABELS, RATE_NAMES, RATE_OF
from fairbench.audits.question import Options
from fairbench.audits.table import AuditTable
from fairbench.core.arrays import Floats, Rows
from fairbench.evaluation import findings
from fairbench.evaluation.by_group import Row
from fairbench.evaluation.findings import Finding, Measure
from fairbench.evaluation.groups import CountIntervals, GapInterval, GroupCounts, LabelledIntervals
from fairbench.evaluation.predictions import Groups
from fairbench.evaluation.stratified import Stratified
from fairbench.inference.gaps import (
    GroupLimits,
    largest_difference,
    largest_gap,
    probability_below,
    simultaneous_level,
)
from fairbench.inference.partial import Tipping, size_bounds, tipping, wrong_labels
from fairbench.inference.posterior import Beta, central_interval
from fairbench.inference.rates import Limits, difference_limits
from fairbench.metrics.registry import BINARY, Rate, metrics_of, shares_of

ASSUMED = "if the scores are right"
TOO_FEW = "there are too few rows of all but one of them"
FEWEST_LABELS = 30  # that every group must have before a gap is called small


@dataclass(frozen=True, eq=False)
class Gap(Measure):
    """The largest difference of a rate between two groups, of everyone or over strata; its answer.

    Attributes
    ----------
    compared : positions of the groups that have rows in the rate's denominator; their names and
        rates are `names` and `rates`.
    left_out : names of the other groups. Their rates may be anything, so that no gap is small
        unless it would be so whatever they are.
    few : names of the groups of too few rows to show that they are like others, those that are left
        out among them.
    supposed : value, lower and upper if all groups' scores are calibrated equally; NaN if that is
        not computed.
    small : probability that the gap's size is under epsilon.
    tipping : how many wrong labels would undo the verdict, if it rests on labels.
    short_of_labels : groups that have too few labels for the gap to be called small.
    standard_error : the standard error of the difference of two groups; the interval is not made
        from it.
    needed : for an open gap, true gap that is supposed -> how many more labels would settle it;
        None where all are too few. Empty if that is not computed.
    fixed : why the rate is the same in every group by construction, so that nothing is found of it.
    within : the columns whose levels are strata, of a gap on average over strata. No such gap is
        small without each two groups, and the rates are those of the first of each pair of groups,
        over the strata that the second has rows in, too.
    covered : the share of all rows that the rate counts which are in strata over which every pair
        is compared.
    alone : the other strata.
    strata : the gap in each ``stratum``: the share of all rows that the rate counts which are in it
        (``weight``), how many these are (``rows``), the groups with the ``low`` and the ``high``
        rate, or, of two groups, the first and the second, the ``rates`` of both, the gap (of two
        groups the second's rate less the first's) with its limits, and how many rows the
        ``smallest`` group has that has any. Without two groups these are blank, NaN and 0.
    minimum : the number of rows under which a group is not compared within strata.
    """

    metric: str = ""
    compared: Sequence[int] = ()
    left_out: Sequence[str] = ()
    supposed: tuple[float, float, float] = (findings.NAN, findings.NAN, findings.NAN)
    small: float = findings.NAN
    tipping: Tipping | None = None
    short_of_labels: Sequence[str] = ()
    standard_error: float = findings.NAN
    needed: Mapping[str, int | None] = field(default_factory=dict)
    fixed: str = ""
    within: str = ""
    covered: float = findings.NAN
    alone: Sequence[str] = ()
    strata: Sequence[Row] = ()
    minimum: int = 0

    @property
    def assumed(self) -> bool:
        """Whether it rests on scores that no label has confirmed."""
        return bool(self.asked.given)

    @property
    def rate(self) -> Rate:
        """The rate that groups are compared by."""
        return RATE_OF[self.metric]

    @property
    def freed(self) -> float:
        """The part of its share of the error rate that later questions may spend again.

        All of it, if no further statement about the gap is possible: it is small, all pairs of
        groups differ surely, or construction makes them the same. If it is large and some pairs are
        undecided, these keep the half at which they are tested.
        """
        if self.fixed:
            return 1.0
        if self.assumed or self.verdict not in (findings.LARGE, findings.SMALL):
            return 0.0
        groups = len(self.compared)
        complete = len(self.answer.pairs) == groups * (groups - 1) / 2
        return 1.0 if self.verdict == findings.SMALL or complete else 0.5

    @property
    def named(self) -> list[str]:
        """For a large gap, the group of the higher rate, then that of the lower one."""
        return [self.names[group] for group in self.answer.named]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The groups that surely differ, the one of the higher rate first."""
        return [(self.names[high], self.names[low]) for high, low in self.answer.pairs]

    def tipped(self, counted: GroupCounts, risk: float) -> Gap:
        """Return the gap with how many wrong labels would undo its verdict, if it rests on labels.

        Gaps of weighted or clustered rows, and those of the papers' posterior, stay as they are.
        The wrong labels may be any. The verdict is computed again from the corrected labels, with
        the intervals it rests on.
        """
        intervals, is_large = counted.intervals, self.verdict == findings.LARGE
        is_open = not is_large and self.verdict != findings.SMALL
        if is_open or self.assumed or self.metric == NEEDS_NO_LABELS:
            return self
        if isinstance(intervals, LabelledIntervals):
            of_groups: Any = map(intervals.labels.of_group, self.compared)
        elif type(intervals) is CountIntervals:
            of_groups = counted.counts[self.compared]
        else:
            return self
        groups = len(self.compared)
        level = simultaneous_level(1 - risk, groups) if is_large else 1 - 2 * risk
        found = tipping(
            self.names,
            self.answer.named[::-1],
            [wrong_labels(of_group, self.rate) for of_group in of_groups],
            np.asarray(counted.counts).sum(axis=-1)[self.compared],
            partial(intervals.of_counts, level=level),
            large=is_large,
            epsilon=self.asked.bound,
        )
        return replace(self, tipping=found)

    def size(self, rates: Floats) -> Floats:
        """Return the sizes (...) that it has with rates (..., A) of its groups."""
        return rates[..., 1] - rates[..., 0] if self.signed else np.ptp(rates, axis=-1)

    def interval(self, rates: Floats) -> tuple[float, float, float]:
        """Return its mean and interval with draws (T, A) of the rates of its groups."""
        sizes = self.size(rates)
        lower, upper = central_interval(sizes)
        return float(sizes.mean()), float(lower), float(upper)


def gaps_of(
    counted: Sequence[GroupCounts],
    epsilon: float,
    risk: float,
    *,
    minimum: int,
    assumed: bool,
    decided: Sequence[GroupCounts] = (),
    metrics: Sequence[str] = tuple(RATE_OF),
    names: Mapping[str, str] = RATE_NAMES,
) -> list[Gap]:
    """Return every attribute's gaps between its groups.

    Parameters
    ----------
    counted : the counts of each attribute's groups.
    epsilon : the gap that matters.
    risk : the error rate of one answer.
    minimum : how many rows of a group suffice.
    assumed : whether there are no labels at all; decisions, and their gap, are known all the same.
    decided : counts that have the groups' selection rates; those of `counted` by default.
    metrics : the gaps that are asked for.
    names : metric -> what its rate is called.
    """
    gaps = []
    for of_groups, of_decisions in zip(counted, decided or counted, strict=True):
        about: dict[str, Any] = {"bound": epsilon, "needs": TOO_FEW}
        for metric in metrics:
            counts = of_decisions if metric == NEEDS_NO_LABELS else of_groups
            given = ASSUMED if assumed and metric != NEEDS_NO_LABELS else ""
            asked = Finding(findings.GAP, counts.attribute, names[metric], given=given, **about)
            gaps.append(_gap(asked, counts, metric, minimum, risk, no_labels=assumed))
    return gaps


def _gap(
    asked: Finding, counted: GroupCounts, metric: str, minimum: int, risk: float, *, no_labels: bool
) -> Gap:
    """Return the gap in one metric between the groups of an attribute.

    As in the tables of :func:`fairbench.evaluate` and in gates, a group of few rows takes part: its
    interval says how little is known of it.
    """
    rate = RATE_OF[metric]
    names = np.array(counted.groups, object)
    intervals = counted.intervals
    people, sizes = counted.sizes([RATE_OF[NEEDS_NO_LABELS], rate])
    compared = sizes > 0
    left_out = names[(people > 0) & ~compared].tolist()
    labels = np.asarray(counted.counts).sum(axis=-1)
    some_labels = isinstance(intervals, LabelledIntervals) and metric != NEEDS_NO_LABELS
    short = names[(labels < FEWEST_LABELS) & some_labels].tolist()
    few = (people > 0) & (sizes < (1 if some_labels else minimum))
    gap = Gap(
        replace(asked, n=int(sizes.sum())),
        names[compared].tolist(),
        signed=compared.sum() == 2 and not left_out,
        few=names[few].tolist(),
        may_be_small=not short,
        metric=metric,
        compared=np.flatnonzero(compared).tolist(),
        left_out=left_out,
        short_of_labels=short,
    )
    if len(gap.compared) < 2:
        return gap
    if isinstance(intervals, CountIntervals):
        rates = rate(intervals.posterior_counts(metrics_of(BINARY)[metric])[:, gap.compared])
        gap = _of_counts(gap, intervals, rates, risk)
    else:
        rates = rate(intervals.draws[:, gap.compared])
        counted_rates = None if no_labels else rate(np.asarray(intervals.counts)[gap.compared])
        gap = _of_draws(gap, rates, risk, counted_rates)
    if gap.signed:
        return gap
    return replace(gap, noise=float(np.ptp(rates - rates.mean(axis=0), axis=1).mean()))


def _of_counts(gap: Gap, intervals: CountIntervals, drawn: Floats, risk: float) -> Gap:
    """Return a gap with what the intervals of counts say, and posterior draws (T, A) of its rates.

    A group of few labels may still hold a surprise: with one, no gap is called small.
    """
    metric = metrics_of(BINARY)[gap.metric]
    rate, epsilon = gap.rate, gap.asked.bound
    is_compared = np.isin(np.arange(intervals.counts.shape[-2]), gap.compared)[None]
    unseen = ~is_compared & (intervals.rows([RATE_OF[NEEDS_NO_LABELS]]) > 0)
    rates = rate(intervals.counts_of(metric)[gap.compared])
    largest = intervals.gaps([metric], is_compared, unseen=unseen).take(0)
    size_limits = lower, upper = float(largest.lower), float(largest.upper)
    error = findings.NAN
    if gap.signed:
        first, second = gap.compared
        error = intervals.difference_error(rate, second, first)
        signed = intervals.difference(rate, second, first)
        lower, upper = float(signed.lower), float(signed.upper)

    def at_level(level: float) -> GapInterval:
        """Return the interval of the gap, with the leads of the groups that are compared."""
        gaps = _at_level(intervals, level).gaps([metric], is_compared, unseen=unseen)
        interval = gaps.take(0)
        assert interval.leads is not None
        pairs = np.ix_(gap.compared, gap.compared)
        return interval._replace(leads=np.atleast_2d(interval.leads)[pairs])

    gap = replace(
        gap,
        gap=at_level,
        rates=rates.tolist(),
        estimate=(float(gap.size(rates)), lower, upper),
        standard_error=error,
    ).answered(risk)
    small = probability_below(
        _share_small(drawn, epsilon), *size_limits, epsilon, level=intervals.level
    )
    # A posterior takes some two of several groups to be apart, and may be less sure than that.
    least = findings.LEVEL if gap.verdict == findings.SMALL else 0.0
    most = 1 - findings.LEVEL if gap.verdict == findings.LARGE else 1.0
    return replace(gap, small=float(np.clip(small, least, most)))


@lru_cache(maxsize=4)
def _at_level(intervals: CountIntervals, level: float) -> CountIntervals:
    """Return intervals at another level, once for all gaps of an attribute."""
    return replace(intervals, level=level)


def _of_draws(gap: Gap, rates: Floats, risk: float, counted: Floats | None) -> Gap:
    """Return a gap with its interval and verdict from posterior draws (T, A) of its rates.

    They do not hold what may be true of a group that is left out: with one, no gap is small.

    Parameters
    ----------
    counted : (A,) the rates in these rows; without labels there are none but those of the draws.
    """
    value, lower, upper = gap.interval(rates)
    epsilon = gap.asked.bound
    small = _share_small(rates, epsilon)
    shown = rates.mean(axis=0)
    if counted is not None:
        shown, size = counted, float(gap.size(counted))
        # A posterior excludes what was counted where that is at its edge, such as a gap of 0.
        value = size if lower <= size <= upper else value
    else:
        # The probability is one-sided and the interval two-sided: without this bound, the
        # probability could be under 5 % although the interval still contains epsilon.
        size_limits = lower, upper
        if gap.signed:
            size_limits = size_bounds(lower, upper)
        small = float(probability_below(small, *size_limits, epsilon))
    return replace(
        gap,
        gap=_draws_at(rates),
        rates=shown.tolist(),
        estimate=(value, lower, upper),
        may_be_small=not gap.left_out,
        small=min(small, findings.LEVEL) if gap.left_out else small,
    ).answered(risk)


def _share_small(rates: Floats, epsilon: float) -> float:
    """Return the share of draws (T, A) of rates in which all groups are within epsilon."""
    return float((np.ptp(rates, axis=1) < epsilon).mean())


def _draws_at(rates: Floats) -> Callable[[float], GapInterval]:
    """Return the function of a level that makes the interval of a gap from draws (T, A) of rates.

    A probability near 1 is not counted: of a thousand draws, a thousand are beyond a bound also
    where one in a thousand is not, and a pair of many needs more certainty. The limits are those of
    Beta distributions with the draws' means and variances, and answer as those of counts do. A gap
    is small only where its central 95 % interval says so, too.
    """
    mean, variance = rates.mean(axis=0), rates.var(axis=0)
    strength = mean * (1 - mean) / variance - 1
    fitted = Beta(mean * strength, (1 - mean) * strength)
    shared = np.corrcoef(rates, rowvar=False)
    _, most = central_interval(np.ptp(rates, axis=1))

    def at_level(level: float) -> GapInterval:
        """Return the interval of the gap, with the leads of all groups over the others."""
        limits = GroupLimits.at(lambda at: Limits(mean, *fitted.interval(at)), level, shared)
        interval = GapInterval.of(limits)
        return interval._replace(upper=np.maximum(interval.upper, most))

    return at_level


# Gaps within strata: among people of the same age band, department or the like.


def standardised_gaps(
    table: AuditTable, options: Options, metrics: Sequence[str], *, minimum: int, risk: float
) -> list[Gap]:
    """Return the gaps of every attribute over one mix of strata.

    A rate that needs labels counts only rows that have one; decisions are known of all rows.
    """
    if table.strata is None:
        return []
    gaps = []
    same = f"among people of the same {options.shared_traits}"
    why, scope = f"no two have enough rows {same}", f"on average {same}"
    asked = Finding(findings.GAP, bound=options.epsilon, needs=why, scope=scope)
    for attribute in options.group:
        all_rows = labelled_rows = _count_by_stratum(table, attribute, np.arange(len(table)))
        if len(table.known) < len(table):
            labelled_rows = _count_by_stratum(table, attribute, table.known)
        for metric in metrics:
            counted = all_rows if metric == NEEDS_NO_LABELS else labelled_rows
            gap = replace(asked, attribute=attribute, measure=table.direction.rate_names[metric])
            of_strata = _standardised_gap(gap, counted, metric, minimum, counted is not all_rows)
            gaps.append(of_strata.answered(risk))
    return gaps


def _count_by_stratum(table: AuditTable, attribute: str, rows: Rows) -> Stratified:
    """Count decisions and labels of some rows, by position, in each group and stratum."""
    assert table.strata is not None
    groups = Groups.of(attribute, table.groups[attribute].iloc[rows])
    label = np.nan_to_num(table.label[rows])
    decision = table.prediction[rows].astype(float)
    return Stratified.of(groups, table.strata.iloc[rows], label, decision)


def _standardised_gap(
    asked: Finding, counted: Stratified, metric: str, minimum: int, few: bool
) -> Gap:
    """Return the gap in one metric between the groups of an attribute.

    Parameters
    ----------
    asked : the finding of a gap that is not measured.
    counted : the counts of the groups in each stratum.
    few : whether some rows have no label: then no gap is called small before every group has
        enough of them.
    """
    rate = RATE_OF[metric]
    rates = counted.standardised[rate]
    names = np.array(counted.groups, object)
    pairs_compared = rates.compared(minimum)
    compared = pairs_compared.any(axis=-1)
    gap = Gap(
        asked,
        few=names[~compared].tolist(),
        is_whole=bool(compared.all()),
        metric=metric,
        within=counted.within,
        strata=list(_strata(counted, rate)),
        minimum=minimum,
    )
    if compared.sum() < 2:
        return gap
    groups = np.flatnonzero(compared)
    is_complete = bool((pairs_compared | np.eye(len(names), dtype=bool)).all())
    has_enough = counted.counts.sum(axis=(1, 2))[groups] >= FEWEST_LABELS
    largest, _ = largest_difference([rates], [pairs_compared], level=findings.LEVEL)
    value, lower, upper = map(float, largest)
    if len(names) == len(groups) == 2:
        first, second = groups
        differences = rates.differences(level=findings.LEVEL)
        value, lower, upper = (float(number[second, first]) for number in differences)

    def at_level(level: float) -> GapInterval:
        """Return the interval of the largest gap, with the leads of these groups."""
        limits, leads = largest_difference([rates], [pairs_compared], level=level)
        return GapInterval(limits.lower, limits.upper, leads[np.ix_(groups, groups)])

    return replace(
        gap,
        asked=replace(asked, n=int(counted.rows(rate)[groups].sum())),
        names=names[groups].tolist(),
        gap=at_level,
        rates=rates.value[np.ix_(groups, groups)].tolist(),
        estimate=(value, lower, upper),
        signed=len(groups) == 2 and gap.is_whole,
        may_be_small=is_complete and (not few or bool(has_enough.all())),
        covered=float(rates.covered[pairs_compared].min()),
        alone=counted.left_out(rate, pairs_compared),
    )


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
            limits = GroupLimits.of(
                successes[groups, index], sizes[groups, index], level=findings.LEVEL
            )
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
