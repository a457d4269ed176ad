"""Estimates of all groups of all attributes at once: their intervals, and what compares groups.

Evaluations of scores and of regressions hand over declared metrics, several of one kind together.
Arrays are (K, C): of K metrics in C cells, the groups of every attribute in every split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats, Mask
from fairbench.evaluation.columns import VALUE
from fairbench.evaluation.predictions import Groups, Parts, Why
from fairbench.evaluation.table import (
    NAN,
    NO_SETTING,
    MetricTable,
    Setting,
    Several,
    Statuses,
    Where,
)
from fairbench.inference import means
from fairbench.inference.gaps import GroupLimits, largest_gap, simultaneous_levels
from fairbench.inference.means import Level, around, at_levels
from fairbench.inference.rates import Limits, difference_limits
from fairbench.metrics.registry import BINARY, Interval, Metric

LimitsAt = Callable[[Level], Limits]


@dataclass(frozen=True)
class Named:
    """What the rows of a metric are called.

    Attributes
    ----------
    least, most : what is printed of a value or its interval lies between; comparisons go under.
    statistic : what its rows say of it, and what comparisons of groups are of.
    called : what comparisons of groups are called after, if groups are compared.
    place : of its rows among those of other metrics.
    """

    metric: str
    setting: Setting = NO_SETTING
    statistic: str = VALUE
    least: float = -np.inf
    most: float = np.inf
    called: str = ""
    place: int = 0


@dataclass(frozen=True, eq=False)
class Batch:
    """K metrics of one kind.

    Attributes
    ----------
    rows : (K,) what their rows are called.
    value : (K, C) what is printed.
    statuses : (K, C) of the values, whatever their intervals.
    lacking : why a cell has no interval, by metric.
    limits : the limits (K, C) at a level (K, C), NaN where none would hold.
    papers : both ends (2, K, C) at a level in the papers' evaluation, where it has any.
    totals : (K, P) sums of linearised scores, where groups may share clusters.
    """

    rows: Sequence[Named]
    value: Floats
    statuses: Statuses
    lacking: Sequence[Why]
    limits: LimitsAt
    papers: Callable[[float], Floats] | None = None
    totals: Floats | None = None


@dataclass(frozen=True, eq=False)
class _Judged:
    """K metrics with their limits, arrays of (K, C).

    Attributes
    ----------
    statuses, shown : of comparisons, which need intervals, and of the values themselves.
    limits : at the table's level; `wider` so that those of all pairs of groups hold at once.
    printed : both ends (2, K, C) that are printed.
    among : the groups whose limits a largest gap can be made of.
    correlation : (C, C) of the cells' errors, of metrics that have any.
    """

    rows: Sequence[Named]
    value: Floats
    statuses: Statuses
    shown: Statuses
    limits: Limits
    wider: Limits
    printed: Floats
    among: Mask
    correlation: Sequence[Floats | None]

    @classmethod
    def joined(cls, several: Sequence[_Judged]) -> _Judged:
        """Return several sets of metrics as one, in the order of their places."""
        rows = [row for part in several for row in part.rows]
        order = sorted(range(len(rows)), key=lambda k: rows[k].place)
        correlations = [correlation for part in several for correlation in part.correlation]

        def together(arrays: Iterable[NDArray[Any]]) -> NDArray[Any]:
            return np.concatenate(list(arrays))[order]

        def limits(of_parts: Sequence[Limits]) -> Limits:
            return Limits(*(together(ends) for ends in zip(*of_parts, strict=True)))

        def statuses(of_parts: Sequence[Statuses]) -> Statuses:
            return Statuses(*(together(arrays) for arrays in zip(*of_parts, strict=True)))

        return cls(
            [rows[k] for k in order],
            together(part.value for part in several),
            statuses([part.statuses for part in several]),
            statuses([part.shown for part in several]),
            limits([part.limits for part in several]),
            limits([part.wider for part in several]),
            np.concatenate([part.printed for part in several], axis=1)[:, order],
            together(part.among for part in several),
            [correlations[k] for k in order],
        )

    def compared(self, cells: slice, groups: Groups) -> _Judged:
        """Return the metrics whose groups are compared, of one attribute, (K, S, G)."""
        chosen = [k for k, row in enumerate(self.rows) if row.called]
        correlations = [self.correlation[k] for k in chosen]

        def of_attribute(array: NDArray[Any]) -> NDArray[Any]:
            return groups.shaped(array[..., chosen, cells])

        return _Judged(
            [self.rows[k] for k in chosen],
            of_attribute(self.value),
            Statuses(*map(of_attribute, self.statuses)),
            Statuses(*map(of_attribute, self.shown)),
            Limits(*map(of_attribute, self.limits)),
            Limits(*map(of_attribute, self.wider)),
            of_attribute(self.printed),
            of_attribute(self.among),
            [None if c is None else c[cells, cells] for c in correlations],
        )

    @property
    def apart(self) -> Floats:
        """How far two groups' metrics (K,) may be apart; infinite where nothing bounds them."""
        ends = [(row.least, row.most) for row in self.rows]
        return np.array([most - least if least > -np.inf else np.inf for least, most in ends])

    @property
    def correlations(self) -> Floats | float:
        """The correlations (K, 1, G, G) of the groups' errors; 0 where no metric has any."""
        if all(c is None for c in self.correlation):
            return 0.0
        none = np.zeros((self.value.shape[-1],) * 2)
        return np.stack([none if c is None else c for c in self.correlation])[:, None]


def add_estimates(
    table: MetricTable,
    parts: Parts,
    batches: Sequence[Batch],
    *,
    after_each: Callable[[Groups], None] | None = None,
) -> None:
    """Add a row for every group and metric, and what compares the groups of each attribute.

    Parameters
    ----------
    after_each : adds further rows about an attribute, or about everyone, after the others.
    """
    judged = [_judge(table, parts, batch) for batch in batches]
    whole = _Judged.joined(judged) if judged else None
    for cells, groups in parts.placed:
        if whole is not None:
            _add_groups(table, groups, whole, cells)
            if groups.attribute and len(groups) > 1:
                compared = whole.compared(cells, groups)
                if compared.rows:
                    _add_differences(table, groups, compared)
                    _add_gaps(table, groups, compared)
        if after_each:
            after_each(groups)


def _judge(table: MetricTable, parts: Parts, batch: Batch) -> _Judged:
    """Return the metrics of a batch with limits at the table's level, and at that of all pairs."""
    limits = batch.limits(table.level)
    has_interval = ~np.isnan(limits.lower)
    statuses = _with_intervals(parts, batch, has_interval, table.minimum)
    among = statuses.has_value & has_interval
    levels = _levels(table.level, parts, batch.rows, among)
    wider = limits if (levels == table.level).all() else batch.limits(levels)
    correlation: list[Floats | None] = [None] * len(batch.rows)
    if batch.totals is not None and parts.sample is not None:
        correlation = [parts.sample.correlation(totals) for totals in batch.totals]
    printed, shown = np.stack(limits[1:]), statuses
    if not table.frequentist:
        shown = batch.statuses
        no_ends = np.full(printed.shape, NAN)
        printed = no_ends if batch.papers is None else batch.papers(table.level)
    return _Judged(
        batch.rows, batch.value, statuses, shown, limits, wider, printed, among, correlation
    )


def _with_intervals(parts: Parts, batch: Batch, has_interval: Mask, minimum: int) -> Statuses:
    """Return the statuses of values that are to have an interval."""
    statuses = Statuses.of(batch.statuses, has_interval.shape)
    fine = statuses.is_ok
    few = parts.size < minimum
    statuses.flag(fine & few, "insufficient", lambda k, c: f"n={parts.size[c]}{parts.in_words(c)}")

    def why(k: int, c: int) -> str:
        infinite = np.isinf(batch.value[k, c])
        reason = "no interval of an infinite mean" if infinite else batch.lacking[k](c)
        return reason + parts.in_words(c)

    statuses.flag(fine & ~few & ~has_interval, "insufficient", why)
    return statuses


def _levels(level: float, parts: Parts, rows: Sequence[Named], among: Mask) -> Floats:
    """Return the levels (K, C) at which the intervals of all pairs of an attribute's groups hold.

    Those of metrics by which groups are not compared are the level itself.
    """
    levels = np.full(among.shape, level)
    compared = np.array([bool(row.called) for row in rows])
    for cells, groups in parts.placed:
        if len(groups) > 1:
            counts = groups.shaped(among[compared, cells]).sum(axis=-1)
            wide = np.repeat(simultaneous_levels(level, counts), len(groups), axis=-1)
            levels[compared, cells] = wide
    return levels


def _add_groups(table: MetricTable, groups: Groups, judged: _Judged, cells: slice) -> None:
    """Add the metrics of every group of an attribute, which are in some of the cells."""
    least, most = (
        np.array([getattr(row, end) for row in judged.rows])[:, None, None]
        for end in ("least", "most")
    )
    lower, upper = groups.shaped(judged.printed[..., cells])
    if table.frequentist:
        lower, upper = np.maximum(lower, least), np.minimum(upper, most)
    status = Statuses(*(groups.shaped(array[:, cells]) for array in judged.shown))
    table.add(
        [row.metric for row in judged.rows],
        np.maximum(groups.shaped(judged.value[:, cells]), least),
        groups.size,
        groups,
        statistic=[row.statistic for row in judged.rows],
        setting=[row.setting for row in judged.rows],
        interval=(lower, upper),
        status=status,
    )


def _add_differences(table: MetricTable, groups: Groups, judged: _Judged) -> None:
    """Add every group's metrics less the reference's."""
    correlations = judged.correlations
    with_reference = correlations if isinstance(correlations, float) else correlations[..., 1:, 0]
    reference, others = slice(0, 1), slice(1, None)
    limits = difference_limits(
        judged.limits.take(others), judged.limits.take(reference), with_reference
    )
    statuses = _of_comparison(judged.statuses[..., others], judged.statuses[..., reference])
    apart = judged.apart[:, None, None]
    table.add(
        [f"{row.called}_difference" for row in judged.rows],
        np.where(statuses.has_value, limits.value, NAN),
        np.minimum(groups.size[:, others], groups.size[:, reference]),
        Several(groups.attribute, groups.names[1:]),
        statistic=[row.statistic for row in judged.rows],
        setting=[row.setting for row in judged.rows],
        interval=(np.maximum(limits.lower, -apart), np.minimum(limits.upper, apart)),
        status=statuses,
    )


def _of_comparison(group: Statuses, reference: Statuses) -> Statuses:
    """Return the statuses of a comparison: the flaw that leaves no value, else the first flaw."""
    no_value = Statuses.where(~group.has_value, group, reference)
    any_flaw = Statuses.where(group.is_ok, reference, group)
    return Statuses.where(group.has_value & reference.has_value, any_flaw, no_value)


def _add_gaps(table: MetricTable, groups: Groups, judged: _Judged) -> None:
    """Add the largest gaps between groups that have an interval, and flag those left out.

    Where groups with rows are left out, the gap of all may be larger: it has no interval.
    """
    statuses, among = judged.statuses, judged.among
    comparable = among.sum(axis=-1) > 1
    limits = _largest(judged)
    # Without intervals, the values themselves are compared.
    valued = np.where(comparable[..., None], among, statuses.has_value)
    whole = comparable & ~((groups.size > 0) & ~valued).any(axis=-1)
    lower, upper = (np.where(whole, end, NAN) for end in limits[1:])
    value = np.where(comparable, limits.value, _range(judged.limits.value, valued))
    status = Statuses.ok(value.shape)
    flawed: Mask = np.asarray(valued & ~statuses.is_ok)
    first_flawed = flawed.argmax(axis=-1)[..., None]
    flaws = (np.take_along_axis(array, first_flawed, -1)[..., 0] for array in statuses)
    status = Statuses.where(np.asarray(flawed.any(axis=-1)), Statuses(*flaws), status)

    def without(k: int, s: int) -> str:
        left_out = np.flatnonzero(~valued[k, s])
        names = ", ".join(f"'{groups.names[g]}'" for g in left_out)
        return f"without {names}: {statuses.reason[k, s, left_out[0]]}"

    status.flag(np.asarray(~valued.all(axis=-1)), "insufficient", without)
    few = valued.sum(axis=-1) < 2
    status.flag(few, "undefined", "fewer than two groups have a value")
    rows = np.where(valued, groups.size, np.iinfo(np.int64).max).min(axis=-1)
    table.add(
        [f"{row.called}_gap" for row in judged.rows],
        value[..., None],
        np.where(valued.any(axis=-1), rows, 0)[..., None],
        Where(groups.attribute),
        statistic=[row.statistic for row in judged.rows],
        setting=[row.setting for row in judged.rows],
        interval=(lower[..., None], np.minimum(upper, judged.apart[:, None])[..., None]),
        status=status[..., None],
    )


def _largest(judged: _Judged) -> Limits:
    """Return the largest gaps (K, S) between the groups that have limits."""
    limits = GroupLimits(judged.limits, judged.wider, judged.correlations)
    with np.errstate(invalid="ignore"):
        return largest_gap(limits.only(judged.among))


def _range(values: Floats, among: Mask) -> Floats:
    """Return the ranges (...) of values (..., G) among some groups; NaN of fewer than two."""
    high = np.where(among, values, -np.inf).max(axis=-1)
    low = np.where(among, values, np.inf).min(axis=-1)
    with np.errstate(invalid="ignore"):
        return np.where(among.sum(axis=-1) > 1, high - low, NAN)


# Values of cells, limits at a level, why a cell has none, and totals as those of a batch.
Closed = tuple[Floats, LimitsAt, Why, Floats | None]
Kinds = Mapping[Interval, Callable[[Sequence[Floats], Parts], Closed]]


def declared_batches(
    metrics: Iterable[Metric],
    target: Floats,
    columns: Mapping[str, Floats],
    parts: Parts,
    kinds: Kinds,
    statuses: Callable[[Metric], Statuses] | None = None,
) -> Iterator[Batch]:
    """Yield declared metrics of every cell, those of one kind of mean together.

    Parameters
    ----------
    columns : (n,) each, by the names that metrics need; those that need others are left out.
    kinds : of interval, other than those of means.
    statuses : of a metric's columns, by cell; of one that is not ok, nothing is computed.
    """
    alike: dict[Interval, list[tuple[Metric, Named]]] = {}
    for place, metric in enumerate(metrics):
        if not metric.special and all(name in columns for name in metric.needs):
            name, least, most = metric.name, metric.least, metric.at_most
            row = Named(name, least=least, most=most, called=name, place=place)
            alike.setdefault(metric.interval, []).append((metric, row))
    for kind, of_kind in alike.items():
        arrays = [[target, *(columns[name] for name in metric.needs)] for metric, _ in of_kind]
        kind_statuses = [
            statuses(metric) if statuses else parts.statuses() for metric, _ in of_kind
        ]
        if kind not in ("mean", "heavy_mean"):
            for (metric, row), metric_arrays, status in zip(
                of_kind, arrays, kind_statuses, strict=True
            ):
                yield _closed(metric, row, kinds[kind](metric_arrays, parts), parts, status)
            continue
        labels = of_kind[0][0].task == BINARY
        with np.errstate(invalid="ignore", divide="ignore"):
            losses = [
                metric(*metric_arrays)
                for (metric, _), metric_arrays in zip(of_kind, arrays, strict=True)
            ]
            other_losses = [
                metric(1 - target, *metric_arrays[1:])
                for (metric, _), metric_arrays in zip(of_kind, arrays, strict=True)
                if labels
            ]
        yield mean_batch(
            np.stack(losses),
            [row for _, row in of_kind],
            parts,
            statuses=Statuses.stacked(kind_statuses),
            least=[metric.least for metric, _ in of_kind],
            outcome=(target, np.stack(other_losses)) if labels else None,
            heavy=kind == "heavy_mean",
            fewest=[metric.fewest for metric, _ in of_kind],
        )


def _closed(metric: Metric, row: Named, closed: Closed, parts: Parts, status: Statuses) -> Batch:
    """Return a metric that is no mean, from its closed form."""
    value, limits, lacking, totals = closed
    value = np.where(status.is_ok, value, np.nan)
    status.flag(
        status.is_ok & np.isnan(value),
        "undefined",
        lambda c: metric.undefined.format(part=parts.names[c] or "the part"),
    )

    def at_level(level: Level) -> Limits:
        return around(value[None], Limits(*(np.atleast_2d(end) for end in limits(level))))

    totals = totals if totals is None else totals[None]
    return Batch([row], value[None], status[None], [lacking], at_level, None, totals)


def mean_batch(
    losses: Floats,
    rows: Sequence[Named],
    parts: Parts,
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
    rows : what the rows of each of the K are called.
    statuses : (K, C) of what the losses were made from; by default, no cell of rows is flawed.
    least : the least that each mean can be.
    outcome : labels 0 or 1 that the losses are of, where one of them may be rare, and what the
        losses would be with the other label.
    heavy : whether losses grow like squares.
    fewest : rows under which there is no interval, where that is more than means need.
    """
    statuses = of_every(parts, len(losses)) if statuses is None else statuses
    value = np.where(statuses.is_ok, parts.mean_of(losses), np.nan)
    bound = np.broadcast_to(np.asarray(least, float), (len(losses),))[:, None]
    needed = np.broadcast_to(np.maximum(fewest, means.ROWS), (len(losses),))
    whole = np.isfinite(losses)
    finite = losses if whole.all() else np.where(whole, losses, 0.0)
    if outcome is not None:
        label, other_losses = outcome
        limits, few, totals = _outcome_limits(finite, np.nan_to_num(other_losses), label, parts)
        whys = [few] * len(losses)
    else:
        limits, totals = _mean_limits(finite, parts, heavy=heavy, rows=needed[:, None])
        whys = [parts.too_few(means.ROOT_ROWS if heavy else int(n)) for n in needed]
    return Batch(
        rows,
        value,
        statuses,
        whys,
        lambda level: around(value, limits(level), bound),
        partial(parts.normal_ends, losses),
        totals,
    )


def of_every(parts: Parts, count: int) -> Statuses:
    """Return the statuses (K, C) of K metrics that need rows and nothing else."""
    return Statuses.stacked([parts.statuses()] * count)


def _mean_limits(
    losses: Floats, parts: Parts, *, heavy: bool, rows: Floats
) -> tuple[LimitsAt, Floats | None]:
    """Return limits of means of losses, and their totals of groups that share clusters."""
    moments, totals = parts.moments(losses)
    if heavy:
        index = parts.tail_index(parts.rows(losses) - moments.lowest[..., parts.codes])
        return lambda level: means.heavy_limits(moments, index, level=level), totals
    return lambda level: means.loss_limits(moments, level=level, rows=rows), totals


def _outcome_limits(
    losses: Floats, others: Floats, outcome: Floats, parts: Parts
) -> tuple[LimitsAt, Why, Floats | None]:
    """Return limits of means of losses of a label 0 or 1, why a cell has none, and totals.

    Parameters
    ----------
    others : the losses if each row had the other label.
    """
    count = len(parts)
    if parts.sample is not None and parts.repeated is not None:
        loss_rows, other_rows, label_rows = (
            parts.rows(values) for values in (losses, others, outcome)
        )
        outcome_means = means.OutcomeMeans.of(
            loss_rows, other_rows, label_rows, parts.sample, parts.repeated
        )
        few = parts.too_rare(means.RARE_ROWS, outcome_means.size.min(axis=-1), means.ROWS)
        return lambda level: outcome_means.limits(level=level), few, outcome_means.totals
    label = outcome.astype(np.intp)
    by_label = [
        means.Moments.by_label(losses, others, label, groups.codes, groups.cells)
        for groups in parts.attributes
    ]
    moments = means.Moments.joined(by_label).take(np.arange(2 * count).reshape(-1, 2))
    size = moments.size[0]

    def limits(level: Level) -> Limits:
        share = at_levels(
            lambda share_level: means.shown_share(size[:, 1], size.sum(axis=-1), level=share_level),
            level,
        )
        return means.outcome_limits(moments, level=level, share=share)

    return limits, parts.too_rare(means.RARE_ROWS, size.min(axis=-1), means.ROWS), None
