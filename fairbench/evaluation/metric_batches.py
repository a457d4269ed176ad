"""Batches of metrics of all groups at once: their intervals, and comparisons of the groups.

Evaluations of scores and of regressions make batches of declared metrics of one kind, and
`add_estimates` adds their rows to the long table. Arrays are (K, C): K metrics in C cells, which
are the groups of every attribute in every split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats, Mask
from fairbench.evaluation import table as tables
from fairbench.evaluation.predictions import AllGroups, Groups, Why
from fairbench.evaluation.table import NAN, MetricTable, Setting, Statuses
from fairbench.inference import means
from fairbench.inference.gaps import GroupLimits, largest_gap, simultaneous_levels
from fairbench.inference.means import Level, around, at_levels
from fairbench.inference.rates import Limits, difference_limits
from fairbench.metrics.registry import BINARY, Interval, Metric

LimitsAt = Callable[[Level], Limits]


@dataclass(frozen=True)
class RowLabel:
    """The keys of a metric's rows.

    Attributes
    ----------
    metric, setting, statistic : the entries of these columns in the metric's rows.
    least, most : the limits that printed values and intervals are clipped to; differences between
        groups may be below `least`.
    compared_as : the name that comparisons of groups start with, such as ``rmse`` in
        ``rmse_gap``; empty where groups are not compared.
    fewest : the number of rows under which a mean has no interval, if larger than the number that
        every mean needs.
    """

    metric: str
    setting: Setting = tables.NO_SETTING
    statistic: str = tables.VALUE
    least: float = -np.inf
    most: float = np.inf
    compared_as: str = ""
    fewest: int = 0


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
    rows : (K, n) what the values are means of, from which the papers' evaluation makes limits; None
        of other metrics, of which it makes none.
    totals : (K, P) sums of linearised scores, where groups may share clusters; those of means
        follow from `rows`.
    """

    labels: Sequence[RowLabel]
    value: Floats
    statuses: Statuses
    lacking: Sequence[Why]
    limits: LimitsAt
    rows: Floats | None = None
    totals: Floats | None = None

    @classmethod
    def of_form(
        cls,
        label: RowLabel,
        form: ClosedForm,
        status: Statuses,
        undefined: str | Callable[..., str] = "the value is not a number",
    ) -> Batch:
        """Return a metric that is not a mean as a batch of its own, with values where it is ok.

        Parameters
        ----------
        undefined : why a cell whose status (C,) is ok has no value.
        """
        value, limits, lacking, totals = form
        value = np.where(status.is_ok, value, np.nan)[None]
        status.flag(status.is_ok & np.isnan(value[0]), "undefined", undefined)

        def around_value(level: Level) -> Limits:
            return around(value, limits(level).apply(np.atleast_2d))

        totals = None if totals is None else totals[None]
        return cls([label], value, status[None], [lacking], around_value, totals=totals)

    @classmethod
    def of_rows(
        cls,
        rows: Floats,
        labels: Sequence[RowLabel],
        all_groups: AllGroups,
        made: tuple[LimitsAt, Sequence[Why]],
        statuses: Statuses | None = None,
    ) -> Batch:
        """Return the means of rows (K, n), whose limits are made, and why they may lack.

        Parameters
        ----------
        statuses : (K, C) whether the rows could be computed; by default, wherever there are any.
        """
        limits, lacking = made
        statuses = statuses or Statuses.stacked([all_groups.statuses()] * len(rows))
        value = np.where(statuses.is_ok, all_groups.mean_of(rows), np.nan)
        least = np.array([label.least for label in labels])[:, None]

        def around_value(level: Level) -> Limits:
            return around(value, limits(level), least)

        return cls(labels, value, statuses, lacking, around_value, rows)


class _Estimates(NamedTuple):
    """K metrics with their limits, arrays of (K, C); or of one attribute's groups, (K, S, G).

    Attributes
    ----------
    labels : (K,) the keys of their rows.
    correlation : (K,) correlations (C, C) of the cells' errors; None of metrics without any.
    statuses : the statuses of comparisons, which need intervals.
    printed_statuses : the statuses of the values themselves.
    limits : the limits at the table's level.
    wider_limits : wider limits, which hold simultaneously for all pairs of groups.
    printed : the values and the limits that are printed.
    """

    labels: Sequence[RowLabel]
    correlation: Sequence[Floats | None]
    statuses: Statuses
    printed_statuses: Statuses
    limits: Limits
    wider_limits: Limits
    printed: Limits

    @classmethod
    def joined(cls, batches: Sequence[_Estimates]) -> _Estimates:
        """Return several sets of metrics as one."""
        labels, correlations, *arrays = zip(*batches, strict=True)
        joined: Any = (
            type(several[0])(*map(np.concatenate, zip(*several, strict=True))) for several in arrays
        )
        return cls([*chain(*labels)], [*chain(*correlations)], *joined)

    def of_attribute(self, cells: slice, groups: Groups, *, compared: bool) -> _Estimates:
        """Return the metrics, or those whose groups are compared, of one attribute, (K, S, G)."""
        kept = [k for k, label in enumerate(self.labels) if label.compared_as or not compared]
        correlations = [self.correlation[k] for k in kept]

        def of_groups(array: NDArray[Any]) -> NDArray[Any]:
            return groups.shaped(array[kept, cells])

        arrays: Any = (of_cells.apply(of_groups) for of_cells in self[2:])
        of_pairs = [None if c is None else c[cells, cells] for c in correlations]
        return _Estimates([self.labels[k] for k in kept], of_pairs, *arrays)

    @property
    def among(self) -> Mask:
        """Which groups have limits from which a largest gap can be computed."""
        return np.asarray(self.statuses.has_value & ~np.isnan(self.limits.lower))

    @property
    def largest_distance(self) -> Floats:
        """The largest possible difference (K, 1, 1) of two groups' metrics; perhaps infinite."""
        bounds = [(label.least, label.most) for label in self.labels]
        distance = [most - least if least > -np.inf else np.inf for least, most in bounds]
        return np.array(distance)[:, None, None]

    @property
    def correlations(self) -> Floats | float:
        """The correlations (K, 1, G, G) of the groups' errors; 0 where no metric has any."""
        if all(c is None for c in self.correlation):
            return 0.0
        none = np.zeros((self.limits.value.shape[-1],) * 2)
        return np.stack([none if c is None else c for c in self.correlation])[:, None]

    def named(self, form: str = "") -> tuple[list[str], dict[str, Any]]:
        """Return how the table names all metrics, or what compares groups by them, as ``_gap``."""
        of_labels = {
            "statistic": [label.statistic for label in self.labels],
            "setting": [label.setting for label in self.labels],
        }
        names = [f"{label.compared_as}{form}" if form else label.metric for label in self.labels]
        return names, of_labels


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
            _add_groups(table, groups, estimates.of_attribute(cells, groups, compared=False))
            compared = estimates.of_attribute(cells, groups, compared=True)
            if groups.attribute and len(groups) > 1 and compared.labels:
                _add_differences(table, groups, compared)
                _add_gaps(table, groups, compared)
        if after_each:
            after_each(groups)


def _estimates(table: MetricTable, all_groups: AllGroups, batch: Batch) -> _Estimates:
    """Return the metrics of a batch with limits at the table's level, and at that of all pairs."""
    limits = batch.limits(table.level)
    has_interval = ~np.isnan(limits.lower)
    # The statuses of values that are to have an interval.
    statuses = batch.statuses.copy(has_interval.shape)
    statuses.flag_few(all_groups.size, table.minimum, all_groups.names)

    def why(k: int, c: int) -> str:
        infinite = np.isinf(batch.value[k, c])
        reason = "no interval of an infinite mean" if infinite else batch.lacking[k](c)
        return reason + tables.in_group(all_groups.names[c])

    statuses.flag(statuses.is_ok & ~has_interval, "insufficient", why)
    levels = _levels(table.level, all_groups, batch.labels, statuses.has_value & has_interval)
    correlation: list[Floats | None] = [None] * len(batch.labels)
    if (sample := all_groups.sample) is not None and sample.clustered:
        totals = batch.totals
        if batch.rows is not None:
            totals = sample.linearised(all_groups.rows(_finite(batch.rows)))[1]
        if totals is not None:
            correlation = [sample.correlation(of_metric) for of_metric in totals]
    printed: Any = limits[1:]
    if not table.frequentist:
        none = np.full((2, *limits.lower.shape), NAN)
        printed = none if batch.rows is None else all_groups.normal_limits(batch.rows, table.level)
    both = statuses, statuses if table.frequentist else batch.statuses
    wider = limits if (levels == table.level).all() else batch.limits(levels)
    shown = Limits(batch.value, *printed)
    return _Estimates(batch.labels, correlation, *both, limits, wider, shown)


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


def _add_groups(table: MetricTable, groups: Groups, estimates: _Estimates) -> None:
    """Add the metrics of every group of an attribute."""
    bounds = np.array([(label.least, label.most) for label in estimates.labels])
    least, most = bounds.T[..., None, None]
    value, lower, upper = estimates.printed
    if table.frequentist:
        lower, upper = np.maximum(lower, least), np.minimum(upper, most)
    names, of_labels = estimates.named()
    values = np.maximum(value, least), groups.size, groups.attribute, groups.names
    status = estimates.printed_statuses
    table.add(names, *values, interval=(lower, upper), status=status, **of_labels)


def _add_differences(table: MetricTable, groups: Groups, estimates: _Estimates) -> None:
    """Add every group's metrics less the reference's."""
    correlations = estimates.correlations
    with_reference = correlations if isinstance(correlations, float) else correlations[..., 1:, 0]
    reference, others = slice(0, 1), slice(1, None)
    limits = difference_limits(
        estimates.limits.take(others), estimates.limits.take(reference), with_reference
    )
    statuses = estimates.statuses.of_pairs()
    largest = estimates.largest_distance
    names, of_labels = estimates.named("_difference")
    size = np.minimum(groups.size[:, others], groups.size[:, reference])
    values = np.where(statuses.has_value, limits.value, NAN), size
    ends = np.maximum(limits.lower, -largest), np.minimum(limits.upper, largest)
    about = groups.attribute, groups.names[1:]
    table.add(names, *values, *about, interval=ends, status=statuses, **of_labels)


def _add_gaps(table: MetricTable, groups: Groups, estimates: _Estimates) -> None:
    """Add the largest gaps between groups that have an interval, and flag those left out.

    Where groups with rows are left out, the gap of all may be larger: it has no interval.
    """
    statuses, among = estimates.statuses, estimates.among
    comparable = among.sum(axis=-1) > 1
    limits = GroupLimits(estimates.limits, estimates.wider_limits, estimates.correlations)
    with np.errstate(invalid="ignore"):
        gap = largest_gap(limits.only(among))
    # Without intervals, the values themselves are compared.
    valued = np.where(comparable[..., None], among, statuses.has_value)
    nobody_left_out = ~((groups.size > 0) & ~valued).any(axis=-1)
    has_interval = comparable & nobody_left_out
    lower, upper = (np.where(has_interval, limit, NAN)[..., None] for limit in gap[1:])
    values, several = estimates.limits.value, valued.sum(axis=-1) > 1
    high = np.where(valued, values, -np.inf).max(axis=-1)
    low = np.where(valued, values, np.inf).min(axis=-1)
    with np.errstate(invalid="ignore"):
        value = np.where(comparable, gap.value, np.where(several, high - low, NAN))
    status = statuses.of_gaps(valued)
    why = tables.without(groups.names, ~valued, lambda *at: str(statuses.reason[at]))
    status.flag(np.asarray(~valued.all(axis=-1)), "insufficient", why)
    status.flag(~several, "undefined", "fewer than two groups have a value")
    fewest = np.where(valued, groups.size, np.iinfo(np.int64).max).min(axis=-1)
    names, of_labels = estimates.named("_gap")
    n_rows = np.where(valued.any(axis=-1), fewest, 0)[..., None]
    ends = lower, np.minimum(upper, estimates.largest_distance)
    about = value[..., None], n_rows, groups.attribute
    table.add(names, *about, interval=ends, status=status[..., None], **of_labels)


# A metric that is not a mean of losses, in all cells: its values (C,), the limits (C,) at a level,
# why a cell has no interval, and sums (P,) of linearised scores, as those of a batch.
ClosedForm = tuple[Floats, LimitsAt, Why, Floats | None]
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

    def why(metric: Metric, c: int) -> str:
        return metric.undefined.format(part=all_groups.names[c] or "the part")

    def of_means(inputs: Sequence[tuple[Metric, RowLabel, list[Floats], Statuses]]) -> Batch:
        (first, *_), labels, _, of_metrics = zip(*inputs, strict=True)
        outcome = None
        with np.errstate(invalid="ignore", divide="ignore"):
            losses = np.stack([metric(*given) for metric, _, given, _ in inputs])
            # Of two classes one label may be rare. Then the intervals also need the losses that
            # the rows would have with the other label: the metrics of ``1 - target``.
            if first.task == BINARY:
                flipped = [metric(1 - target, *given[1:]) for metric, _, given, _ in inputs]
                outcome = target, np.stack(flipped)
        status, heavy = Statuses.stacked(of_metrics), first.interval == "heavy_mean"
        return mean_batch(losses, labels, all_groups, status, outcome=outcome, heavy=heavy)

    # Of each metric the keys of its rows, the arrays (n,) that it is of, and their statuses (C,).
    by_interval: dict[Interval, list[tuple[Metric, RowLabel, list[Floats], Statuses]]] = {}
    for metric in metrics:
        if not metric.special and all(name in columns for name in metric.needs):
            label = RowLabel(
                metric.name,
                least=metric.least,
                most=metric.at_most,
                compared_as=metric.name,
                fewest=metric.fewest,
            )
            arrays = [target, *(columns[name] for name in metric.needs)]
            status = statuses(metric) if statuses else all_groups.statuses()
            by_interval.setdefault(metric.interval, []).append((metric, label, arrays, status))
    for kind, inputs in by_interval.items():
        if kind in ("mean", "heavy_mean"):
            yield of_means(inputs)
            continue
        for metric, label, arrays, status in inputs:
            form = kinds[metric.interval](arrays, all_groups)
            yield Batch.of_form(label, form, status, partial(why, metric))


def mean_batch(
    losses: Floats,
    labels: Sequence[RowLabel],
    all_groups: AllGroups,
    statuses: Statuses | None = None,
    *,
    outcome: tuple[Floats, Floats] | None = None,
    heavy: bool = False,
) -> Batch:
    """Return the means of per-row losses (K, n).

    Parameters
    ----------
    labels : (K,) what the rows of each mean are called.
    statuses : (K, C) whether the losses could be computed; by default, wherever there are rows.
    outcome : the labels (n,), 0 or 1, one of which may be rare, and the losses (K, n) if each row
        had the other label; None if losses do not depend on such labels.
    heavy : whether losses may have heavy tails, as squared errors do.
    """
    values = _finite(losses)
    if outcome is not None:
        made = _outcome_limits(values, *outcome, all_groups)
    elif heavy:
        made = _heavy_limits(values, all_groups)
    else:
        made = _mean_limits(values, labels, all_groups)
    return Batch.of_rows(losses, labels, all_groups, made, statuses)


def _finite(values: Floats) -> Floats:
    """Return values with 0 where one is not finite."""
    is_finite = np.isfinite(values)
    return values if is_finite.all() else np.where(is_finite, values, 0.0)


def _heavy_limits(losses: Floats, all_groups: AllGroups) -> tuple[LimitsAt, list[Why]]:
    """Return limits of means of losses (K, n) like squares, and why a cell lacks them."""
    moments = all_groups.moments(losses)[0]
    lost = all_groups.rows(losses) - moments.lowest[..., all_groups.codes]
    index = all_groups.tail_index(lost)
    lacking = [all_groups.too_heavy(of_mean) for of_mean in index]
    return lambda level: means.heavy_limits(moments, index, level=level), lacking


def _mean_limits(
    losses: Floats, labels: Sequence[RowLabel], all_groups: AllGroups
) -> tuple[LimitsAt, list[Why]]:
    """Return limits of means of losses (K, n), and why a cell lacks them.

    A mean that few rows make is one of few rows, however many lose nothing.
    """
    least = np.array([label.least for label in labels])[:, None]
    needed = np.array([max(label.fewest, means.ROWS) for label in labels])
    moments = all_groups.moments(losses)[0]
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
        all_groups.too_few(int(rows), of_mean, means.RARE_ROWS, "rows above the least")
        for of_mean, rows in zip(np.where(enough, losing, np.inf), needed, strict=True)
    ]
    return limits, lacking


def _outcome_limits(
    losses: Floats, outcome: Floats, others: Floats, all_groups: AllGroups
) -> tuple[LimitsAt, list[Why]]:
    """Return limits of means of losses of a label 0 or 1, and why a cell lacks them.

    Parameters
    ----------
    others : the losses if each row had the other label.
    """
    others = np.nan_to_num(others)
    if all_groups.sample is not None and all_groups.repeated is not None:
        of_rows = tuple(map(all_groups.rows, (losses, others, outcome)))
        sampled: Any = (*of_rows, all_groups.sample, all_groups.repeated)
        limits, size = means.sampled_outcome_limits(*sampled)
    else:
        label = outcome.astype(np.intp)
        by_label = [
            means.Moments.by_label(losses, others, label, groups.codes, groups.cells)
            for groups in all_groups.attributes
        ]
        pairs = np.arange(2 * len(all_groups)).reshape(-1, 2)
        moments = means.Moments.joined(by_label).take(pairs)
        size = moments.size[0]
        share = partial(means.shown_share, size[:, 1], size.sum(axis=-1))

        def limits(level: Level) -> Limits:
            return means.outcome_limits(moments, level=level, share=at_levels(share, level))

    few = all_groups.too_few(means.ROWS, size.min(axis=-1), means.RARE_ROWS)
    return limits, [few] * len(losses)
