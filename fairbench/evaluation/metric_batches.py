"""Batches of metrics of all groups at once: their intervals, and comparisons of the groups.

Evaluations of scores and of regressions make batches of declared metrics of one kind, and
`add_estimates` adds their rows to the long table. Arrays are (K, C): K metrics in C cells, which
are the groups of every attribute in every split.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats, Mask
from fairbench.evaluation.predictions import AllGroups, Groups, Why
from fairbench.evaluation.table import (
    NAN,
    NO_SETTING,
    VALUE,
    MetricTable,
    Setting,
    Statuses,
    Where,
    of_gaps,
    of_pairs,
    without,
)
from fairbench.inference import means
from fairbench.inference.gaps import GroupLimits, largest_gap, simultaneous_levels
from fairbench.inference.means import Level, around, at_levels
from fairbench.inference.rates import Limits, difference_limits
from fairbench.metrics.registry import BINARY, Interval, Metric

LimitsAt = Callable[[Level], Limits]


@dataclass(frozen=True)
class RowLabel:
    """The keys of a metric's rows, and their position.

    Attributes
    ----------
    metric, setting, statistic : the entries of these columns in the metric's rows.
    least, most : the limits that printed values and intervals are clipped to; differences between
        groups may be below `least`.
    compared_as : the name that comparisons of groups start with, such as ``rmse`` in
        ``rmse_gap``; empty where groups are not compared.
    position : the position of its rows among those of other metrics.
    """

    metric: str
    setting: Setting = NO_SETTING
    statistic: str = VALUE
    least: float = -np.inf
    most: float = np.inf
    compared_as: str = ""
    position: int = 0


@dataclass(frozen=True, eq=False)
class Batch:
    """K metrics of one kind.

    Attributes
    ----------
    labels : (K,) the keys of their rows.
    value : (K, C) the values that are printed.
    statuses : (K, C) the statuses of the values, whatever their intervals.
    lacking : (K,) functions that tell why a cell has no interval.
    limits : a function that returns the limits (K, C) at a level (K, C), NaN where none would hold.
    papers : a function that returns both limits (2, K, C) at a level in the papers' evaluation;
        None where it has none.
    totals : (K, P) sums of linearised scores, where groups may share clusters.
    """

    labels: Sequence[RowLabel]
    value: Floats
    statuses: Statuses
    lacking: Sequence[Why]
    limits: LimitsAt
    papers: Callable[[float], Floats] | None = None
    totals: Floats | None = None


@dataclass(frozen=True, eq=False)
class _Estimates:
    """K metrics with their limits, arrays of (K, C).

    Attributes
    ----------
    labels : (K,) the keys of their rows.
    value : the values that are printed.
    statuses : the statuses of comparisons, which need intervals.
    printed_statuses : the statuses of the values themselves.
    limits : the limits at the table's level.
    wider_limits : wider limits, which hold simultaneously for all pairs of groups.
    printed : both limits (2, K, C) that are printed.
    among : which groups have limits from which a largest gap can be computed.
    correlation : (K,) correlations (C, C) of the cells' errors; None of metrics without any.
    """

    labels: Sequence[RowLabel]
    value: Floats
    statuses: Statuses
    printed_statuses: Statuses
    limits: Limits
    wider_limits: Limits
    printed: Floats
    among: Mask
    correlation: Sequence[Floats | None]

    @classmethod
    def joined(cls, batches: Sequence[_Estimates]) -> _Estimates:
        """Return several sets of metrics as one, in the order of their positions."""
        labels = [label for batch in batches for label in batch.labels]
        order = sorted(range(len(labels)), key=lambda k: labels[k].position)
        correlations = [correlation for batch in batches for correlation in batch.correlation]

        def in_order(arrays: Iterable[NDArray[Any]]) -> NDArray[Any]:
            return np.concatenate(list(arrays))[order]

        def limits_in_order(limits: Sequence[Limits]) -> Limits:
            return Limits(*(in_order(arrays) for arrays in zip(*limits, strict=True)))

        def statuses_in_order(statuses: Sequence[Statuses]) -> Statuses:
            return Statuses(*(in_order(arrays) for arrays in zip(*statuses, strict=True)))

        return cls(
            labels=[labels[k] for k in order],
            value=in_order(batch.value for batch in batches),
            statuses=statuses_in_order([batch.statuses for batch in batches]),
            printed_statuses=statuses_in_order([batch.printed_statuses for batch in batches]),
            limits=limits_in_order([batch.limits for batch in batches]),
            wider_limits=limits_in_order([batch.wider_limits for batch in batches]),
            printed=np.concatenate([batch.printed for batch in batches], axis=1)[:, order],
            among=in_order(batch.among for batch in batches),
            correlation=[correlations[k] for k in order],
        )

    def compared(self, cells: slice, groups: Groups) -> _Estimates:
        """Return the metrics whose groups are compared, of one attribute, (K, S, G)."""
        kept = [k for k, label in enumerate(self.labels) if label.compared_as]
        correlations = [self.correlation[k] for k in kept]

        def of_attribute(array: NDArray[Any]) -> NDArray[Any]:
            return groups.shaped(array[..., kept, cells])

        return _Estimates(
            labels=[self.labels[k] for k in kept],
            value=of_attribute(self.value),
            statuses=Statuses(*map(of_attribute, self.statuses)),
            printed_statuses=Statuses(*map(of_attribute, self.printed_statuses)),
            limits=Limits(*map(of_attribute, self.limits)),
            wider_limits=Limits(*map(of_attribute, self.wider_limits)),
            printed=of_attribute(self.printed),
            among=of_attribute(self.among),
            correlation=[None if c is None else c[cells, cells] for c in correlations],
        )

    @property
    def largest_distance(self) -> Floats:
        """The largest possible difference (K,) of two groups' metrics; infinite if unbounded."""
        bounds = [(label.least, label.most) for label in self.labels]
        return np.array([most - least if least > -np.inf else np.inf for least, most in bounds])

    @property
    def correlations(self) -> Floats | float:
        """The correlations (K, 1, G, G) of the groups' errors; 0 where no metric has any."""
        if all(c is None for c in self.correlation):
            return 0.0
        none = np.zeros((self.value.shape[-1],) * 2)
        return np.stack([none if c is None else c for c in self.correlation])[:, None]


def add_estimates(
    table: MetricTable,
    all_groups: AllGroups,
    batches: Sequence[Batch],
    *,
    after_each: Callable[[Groups], None] | None = None,
) -> None:
    """Add a row for every group and metric, and comparisons of the groups of each attribute.

    Parameters
    ----------
    after_each : adds further rows about an attribute, or about everyone, after the others.
    """
    of_batches = [_estimates(table, all_groups, batch) for batch in batches]
    estimates = _Estimates.joined(of_batches) if of_batches else None
    for cells, groups in all_groups.placed:
        if estimates is not None:
            _add_groups(table, groups, estimates, cells)
            if groups.attribute and len(groups) > 1:
                compared = estimates.compared(cells, groups)
                if compared.labels:
                    _add_differences(table, groups, compared)
                    _add_gaps(table, groups, compared)
        if after_each:
            after_each(groups)


def _estimates(table: MetricTable, all_groups: AllGroups, batch: Batch) -> _Estimates:
    """Return the metrics of a batch with limits at the table's level, and at that of all pairs."""
    limits = batch.limits(table.level)
    has_interval = ~np.isnan(limits.lower)
    statuses = _with_intervals(all_groups, batch, has_interval, table.minimum)
    among = statuses.has_value & has_interval
    levels = _levels(table.level, all_groups, batch.labels, among)
    correlation: list[Floats | None] = [None] * len(batch.labels)
    if batch.totals is not None and all_groups.sample is not None:
        correlation = [all_groups.sample.correlation(totals) for totals in batch.totals]
    if table.frequentist:
        printed = np.stack(limits[1:])
    elif batch.papers is not None:
        printed = batch.papers(table.level)
    else:
        printed = np.full((2, *limits.lower.shape), NAN)
    return _Estimates(
        labels=batch.labels,
        value=batch.value,
        statuses=statuses,
        printed_statuses=statuses if table.frequentist else batch.statuses,
        limits=limits,
        wider_limits=limits if (levels == table.level).all() else batch.limits(levels),
        printed=printed,
        among=among,
        correlation=correlation,
    )


def _with_intervals(
    all_groups: AllGroups, batch: Batch, has_interval: Mask, minimum: int
) -> Statuses:
    """Return the statuses of values that are to have an interval."""
    statuses = Statuses.of(batch.statuses, has_interval.shape)
    fine = statuses.is_ok
    few = all_groups.size < minimum
    statuses.flag(
        fine & few, "insufficient", lambda k, c: f"n={all_groups.size[c]}{all_groups.in_words(c)}"
    )

    def why(k: int, c: int) -> str:
        infinite = np.isinf(batch.value[k, c])
        reason = "no interval of an infinite mean" if infinite else batch.lacking[k](c)
        return reason + all_groups.in_words(c)

    statuses.flag(fine & ~few & ~has_interval, "insufficient", why)
    return statuses


def _levels(level: float, all_groups: AllGroups, labels: Sequence[RowLabel], among: Mask) -> Floats:
    """Return the levels (K, C) at which the intervals of all pairs of an attribute's groups hold.

    Those of metrics by which groups are not compared are the level itself.
    """
    levels = np.full(among.shape, level)
    compared = np.array([bool(label.compared_as) for label in labels])
    for cells, groups in all_groups.placed:
        if len(groups) > 1:
            counts = groups.shaped(among[compared, cells]).sum(axis=-1)
            wide = np.repeat(simultaneous_levels(level, counts), len(groups), axis=-1)
            levels[compared, cells] = wide
    return levels


def _add_groups(table: MetricTable, groups: Groups, estimates: _Estimates, cells: slice) -> None:
    """Add the metrics of every group of an attribute, which are in some of the cells."""
    least, most = (
        np.array([getattr(label, bound) for label in estimates.labels])[:, None, None]
        for bound in ("least", "most")
    )
    lower, upper = groups.shaped(estimates.printed[..., cells])
    if table.frequentist:
        lower, upper = np.maximum(lower, least), np.minimum(upper, most)
    status = Statuses(*(groups.shaped(array[:, cells]) for array in estimates.printed_statuses))
    table.add(
        [label.metric for label in estimates.labels],
        np.maximum(groups.shaped(estimates.value[:, cells]), least),
        groups.size,
        groups,
        statistic=[label.statistic for label in estimates.labels],
        setting=[label.setting for label in estimates.labels],
        interval=(lower, upper),
        status=status,
    )


def _add_differences(table: MetricTable, groups: Groups, estimates: _Estimates) -> None:
    """Add every group's metrics less the reference's."""
    correlations = estimates.correlations
    with_reference = correlations if isinstance(correlations, float) else correlations[..., 1:, 0]
    reference, others = slice(0, 1), slice(1, None)
    limits = difference_limits(
        estimates.limits.take(others), estimates.limits.take(reference), with_reference
    )
    statuses = of_pairs(estimates.statuses)
    largest = estimates.largest_distance[:, None, None]
    table.add(
        [f"{label.compared_as}_difference" for label in estimates.labels],
        np.where(statuses.has_value, limits.value, NAN),
        np.minimum(groups.size[:, others], groups.size[:, reference]),
        Where(groups.attribute, groups.names[1:]),
        statistic=[label.statistic for label in estimates.labels],
        setting=[label.setting for label in estimates.labels],
        interval=(np.maximum(limits.lower, -largest), np.minimum(limits.upper, largest)),
        status=statuses,
    )


def _add_gaps(table: MetricTable, groups: Groups, estimates: _Estimates) -> None:
    """Add the largest gaps between groups that have an interval, and flag those left out.

    Where groups with rows are left out, the gap of all may be larger: it has no interval.
    """
    statuses, among = estimates.statuses, estimates.among
    comparable = among.sum(axis=-1) > 1
    limits = _largest_gaps(estimates)
    # Without intervals, the values themselves are compared.
    valued = np.where(comparable[..., None], among, statuses.has_value)
    nobody_left_out = ~((groups.size > 0) & ~valued).any(axis=-1)
    has_interval = comparable & nobody_left_out
    lower, upper = (np.where(has_interval, limit, NAN) for limit in limits[1:])
    value = np.where(comparable, limits.value, _range(estimates.limits.value, valued))
    status = of_gaps(statuses, valued)
    why = without(groups.names, ~valued, lambda *at: str(statuses.reason[at]))
    status.flag(np.asarray(~valued.all(axis=-1)), "insufficient", why)
    few = valued.sum(axis=-1) < 2
    status.flag(few, "undefined", "fewer than two groups have a value")
    fewest = np.where(valued, groups.size, np.iinfo(np.int64).max).min(axis=-1)
    table.add(
        [f"{label.compared_as}_gap" for label in estimates.labels],
        value[..., None],
        np.where(valued.any(axis=-1), fewest, 0)[..., None],
        Where(groups.attribute),
        statistic=[label.statistic for label in estimates.labels],
        setting=[label.setting for label in estimates.labels],
        interval=(
            lower[..., None],
            np.minimum(upper, estimates.largest_distance[:, None])[..., None],
        ),
        status=status[..., None],
    )


def _largest_gaps(estimates: _Estimates) -> Limits:
    """Return the largest gaps (K, S) between the groups that have limits."""
    limits = GroupLimits(estimates.limits, estimates.wider_limits, estimates.correlations)
    with np.errstate(invalid="ignore"):
        return largest_gap(limits.only(estimates.among))


def _range(values: Floats, among: Mask) -> Floats:
    """Return the ranges (...) of values (..., G) among some groups; NaN of fewer than two."""
    high = np.where(among, values, -np.inf).max(axis=-1)
    low = np.where(among, values, np.inf).min(axis=-1)
    with np.errstate(invalid="ignore"):
        return np.where(among.sum(axis=-1) > 1, high - low, NAN)


class ClosedForm(NamedTuple):
    """A metric that is not a mean of losses, in all cells.

    Attributes
    ----------
    value : (C,) its values.
    limits : a function that returns the limits (C,) at a level.
    lacking : tells why a cell has no interval.
    totals : (P,) sums of linearised scores, as those of a batch.
    """

    value: Floats
    limits: LimitsAt
    lacking: Why
    totals: Floats | None


Kinds = Mapping[Interval, Callable[[Sequence[Floats], AllGroups], ClosedForm]]


def declared_batches(
    metrics: Iterable[Metric],
    target: Floats,
    columns: Mapping[str, Floats],
    all_groups: AllGroups,
    kinds: Kinds,
    statuses: Callable[[Metric], Statuses] | None = None,
) -> Iterator[Batch]:
    """Yield batches of declared metrics in every cell.

    All means with the same kind of interval are one batch; every other metric has its own.

    Parameters
    ----------
    columns : name -> (n,) values; metrics that need another column are left out.
    kinds : kind of interval -> the function that computes a metric with that interval, for all
        kinds but means.
    statuses : returns the status of a metric's columns in each cell; nothing is computed in cells
        whose status is not ok.
    """
    for kind, labelled in _group_by_interval(metrics, columns).items():
        inputs = [
            _MetricInputs(
                metric,
                label,
                [target, *(columns[name] for name in metric.needs)],
                statuses(metric) if statuses else all_groups.statuses(),
            )
            for metric, label in labelled
        ]
        if kind in ("mean", "heavy_mean"):
            yield _mean_batch_of(inputs, all_groups, heavy=kind == "heavy_mean")
            continue
        for metric_inputs in inputs:
            closed = kinds[kind](metric_inputs.arrays, all_groups)
            yield _closed_batch(metric_inputs, closed, all_groups)


class _MetricInputs(NamedTuple):
    """What one metric is computed from.

    Attributes
    ----------
    label : the names of the metric's rows.
    arrays : the target (n,), then the columns (n,) that the metric needs.
    status : (C,) whether the columns are usable in each cell.
    """

    metric: Metric
    label: RowLabel
    arrays: list[Floats]
    status: Statuses


def _group_by_interval(
    metrics: Iterable[Metric], columns: Collection[str]
) -> dict[Interval, list[tuple[Metric, RowLabel]]]:
    """Return the metrics that these columns suffice for, by kind of interval, with their labels."""
    by_interval: dict[Interval, list[tuple[Metric, RowLabel]]] = {}
    for position, metric in enumerate(metrics):
        if not metric.special and all(name in columns for name in metric.needs):
            label = RowLabel(
                metric.name,
                least=metric.least,
                most=metric.at_most,
                compared_as=metric.name,
                position=position,
            )
            by_interval.setdefault(metric.interval, []).append((metric, label))
    return by_interval


def _mean_batch_of(inputs: Sequence[_MetricInputs], all_groups: AllGroups, *, heavy: bool) -> Batch:
    """Return metrics that are means of losses as one batch.

    In a task of two classes one label may be rare. Then the intervals also need the losses that
    the rows would have with the other label: the metrics of ``1 - target``.
    """
    target = inputs[0].arrays[0]
    outcome = None
    with np.errstate(invalid="ignore", divide="ignore"):
        losses = np.stack([metric(*arrays) for metric, _, arrays, _ in inputs])
        if inputs[0].metric.task == BINARY:
            flipped_losses = [metric(1 - target, *arrays[1:]) for metric, _, arrays, _ in inputs]
            outcome = target, np.stack(flipped_losses)
    return mean_batch(
        losses,
        [label for _, label, _, _ in inputs],
        all_groups,
        statuses=Statuses.stacked([status for *_, status in inputs]),
        least=[metric.least for metric, *_ in inputs],
        outcome=outcome,
        heavy=heavy,
        fewest=[metric.fewest for metric, *_ in inputs],
    )


def _closed_batch(inputs: _MetricInputs, closed: ClosedForm, all_groups: AllGroups) -> Batch:
    """Return a metric that is not a mean as a batch of its own."""
    metric, status = inputs.metric, inputs.status
    value = np.where(status.is_ok, closed.value, np.nan)
    status.flag(
        status.is_ok & np.isnan(value),
        "undefined",
        lambda c: metric.undefined.format(part=all_groups.names[c] or "the part"),
    )

    def at_level(level: Level) -> Limits:
        limits = Limits(*(np.atleast_2d(limit) for limit in closed.limits(level)))
        return around(value[None], limits)

    return Batch(
        labels=[inputs.label],
        value=value[None],
        statuses=status[None],
        lacking=[closed.lacking],
        limits=at_level,
        totals=None if closed.totals is None else closed.totals[None],
    )


def mean_batch(
    losses: Floats,
    labels: Sequence[RowLabel],
    all_groups: AllGroups,
    *,
    statuses: Statuses | None = None,
    least: Sequence[float] | float = -np.inf,
    outcome: tuple[Floats, Floats] | None = None,
    heavy: bool = False,
    fewest: Sequence[int] | int = 0,
) -> Batch:
    """Return the means of per-row losses (K, n).

    Parameters
    ----------
    labels : (K,) what the rows of each mean are called.
    statuses : (K, C) whether the losses could be computed; by default, wherever there are rows.
    least : the least that each mean can be.
    outcome : the labels (n,), 0 or 1, one of which may be rare, and the losses (K, n) if each row
        had the other label; None if losses do not depend on such labels.
    heavy : whether losses may have heavy tails, as squared errors do.
    fewest : the number of rows under which there is no interval, if larger than the number that
        every mean needs.
    """
    statuses = row_statuses(all_groups, len(losses)) if statuses is None else statuses
    value = np.where(statuses.is_ok, all_groups.mean_of(losses), np.nan)
    bound = np.broadcast_to(np.asarray(least, float), (len(losses),))[:, None]
    needed = np.broadcast_to(np.maximum(fewest, float(means.ROWS)), (len(losses),))
    is_finite = np.isfinite(losses)
    finite = losses if is_finite.all() else np.where(is_finite, losses, 0.0)
    if outcome is not None:
        label, other_losses = outcome
        limits, too_few, totals = _outcome_limits(
            finite, np.nan_to_num(other_losses), label, all_groups
        )
        lacking = [too_few] * len(losses)
    else:
        limits, lacking, totals = (
            _heavy_limits(finite, all_groups)
            if heavy
            else _mean_limits(finite, all_groups, needed, bound)
        )
    return Batch(
        labels=labels,
        value=value,
        statuses=statuses,
        lacking=lacking,
        limits=lambda level: around(value, limits(level), bound),
        papers=partial(all_groups.normal_limits, losses),
        totals=totals,
    )


def row_statuses(all_groups: AllGroups, count: int) -> Statuses:
    """Return the statuses (K, C) of K metrics that need rows and nothing else."""
    return Statuses.stacked([all_groups.statuses()] * count)


def _heavy_limits(
    losses: Floats, all_groups: AllGroups
) -> tuple[LimitsAt, list[Why], Floats | None]:
    """Return limits of means of losses (K, n) like squares, why a cell lacks them, and totals."""
    moments, totals = all_groups.moments(losses)
    lost = all_groups.rows(losses) - moments.lowest[..., all_groups.codes]
    index = all_groups.tail_index(lost)
    lacking = [all_groups.too_heavy(of_mean) for of_mean in index]
    return lambda level: means.heavy_limits(moments, index, level=level), lacking, totals


def _mean_limits(
    losses: Floats, all_groups: AllGroups, needed: Floats, least: Floats
) -> tuple[LimitsAt, list[Why], Floats | None]:
    """Return limits of means of losses (K, n), why a cell lacks them, and totals.

    A mean that few rows make is one of few rows, however many lose nothing.

    Parameters
    ----------
    needed : (K,) the fewest rows.
    least : (K, 1) the least that each mean can be, minus infinity where it may be negative.
    """
    moments, totals = all_groups.moments(losses)
    lowest = np.where(np.isfinite(least), moments.lowest, -np.inf)
    loses = all_groups.rows(losses) > lowest[..., all_groups.codes]
    losing = all_groups.mean_of(loses.astype(float)) * all_groups.size
    rare = losing < means.RARE_ROWS

    def limits(level: Level) -> Limits:
        found = means.loss_limits(moments, level=level, least=least, rows=needed[:, None])
        lower, upper = (np.where(rare, np.nan, end) for end in found[1:])
        return Limits(found.value, lower, upper)

    enough = all_groups.size >= needed[:, None]
    lacking = [
        all_groups.too_rare(means.RARE_ROWS, of_mean, int(rows), "rows above the least")
        for of_mean, rows in zip(np.where(enough, losing, np.inf), needed, strict=True)
    ]
    return limits, lacking, totals


def _outcome_limits(
    losses: Floats, others: Floats, outcome: Floats, all_groups: AllGroups
) -> tuple[LimitsAt, Why, Floats | None]:
    """Return limits of means of losses of a label 0 or 1, why a cell lacks them, and totals.

    Parameters
    ----------
    others : the losses if each row had the other label.
    """
    count = len(all_groups)
    if all_groups.sample is not None and all_groups.repeated is not None:
        loss_rows, other_rows, label_rows = (
            all_groups.rows(values) for values in (losses, others, outcome)
        )
        outcome_means = means.OutcomeMeans.of(
            loss_rows, other_rows, label_rows, all_groups.sample, all_groups.repeated
        )
        few = all_groups.too_rare(means.RARE_ROWS, outcome_means.size.min(axis=-1), means.ROWS)
        return lambda level: outcome_means.limits(level=level), few, outcome_means.totals
    label = outcome.astype(np.intp)
    by_label = [
        means.Moments.by_label(losses, others, label, groups.codes, groups.cells)
        for groups in all_groups.attributes
    ]
    moments = means.Moments.joined(by_label).take(np.arange(2 * count).reshape(-1, 2))
    size = moments.size[0]

    def limits(level: Level) -> Limits:
        share = at_levels(
            lambda share_level: means.shown_share(size[:, 1], size.sum(axis=-1), level=share_level),
            level,
        )
        return means.outcome_limits(moments, level=level, share=share)

    return limits, all_groups.too_rare(means.RARE_ROWS, size.min(axis=-1), means.ROWS), None
