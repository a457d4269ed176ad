"""Estimates of all groups of all attributes at once: their intervals, and what compares groups.

Evaluations of scores and of regressions hand over declared metrics, several of one kind together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from fairbench.evaluation.predictions import Groups, Parts
from fairbench.evaluation.table import (
    NAN,
    NO_SETTING,
    OK,
    MetricTable,
    Setting,
    Status,
    Where,
    insufficient,
    undefined,
)
from fairbench.inference import means
from fairbench.inference.gaps import GroupLimits, largest_gap, simultaneous_level
from fairbench.inference.means import Level, around, at_levels
from fairbench.inference.rates import Limits, difference_limits
from fairbench.metrics.registry import BINARY, Interval, Metric

Array = NDArray[np.float64]
LimitsAt = Callable[[Level], Limits]
Why = Callable[[int], str]


@dataclass(frozen=True, eq=False)
class Estimates:
    """A metric of every group.

    Attributes
    ----------
    value : (G,) what is printed.
    statuses : (G,) of the values, whatever their intervals.
    lacking : why a group has no interval.
    least : the least that is printed of a value or its interval, which comparisons go under.
    called : what comparisons of groups are called after, if groups are compared.
    place : of its rows among those of other metrics.
    """

    metric: str
    value: Sequence[float]
    statuses: list[Status]
    lacking: Why
    setting: Setting = NO_SETTING
    least: float = -np.inf
    called: str = ""
    place: int = 0


@dataclass(frozen=True, eq=False)
class Batch:
    """K metrics of one kind.

    Attributes
    ----------
    limits : the limits (K, G) of all groups at a level (K, G), NaN where none would hold.
    papers : both ends (2, K, G) at a level in the papers' evaluation, where it has any.
    totals : (K, P) sums of linearised scores, where groups may share clusters.
    """

    estimates: Sequence[Estimates]
    limits: LimitsAt
    papers: Callable[[float], Array] | None = None
    totals: Array | None = None


@dataclass(eq=False)
class _Judged:
    """A metric with its limits, and what they and its rows make of its value."""

    each: Estimates
    limits: Limits
    papers: Array | None
    statuses: list[Status]
    wider: Limits | None = None
    correlation: Array | None = None
    among: dict[int, list[int]] = field(default_factory=dict)


def add_estimates(
    table: MetricTable,
    parts: Parts,
    batches: Sequence[Batch],
    minimum: int = 0,
    *,
    then: Callable[[Groups], None] | None = None,
) -> None:
    """Add a row for every group and metric, and what compares the groups of each attribute.

    Parameters
    ----------
    minimum : estimates of fewer rows are flagged.
    then : adds more about an attribute (or everyone) after its rows.
    """
    judged = [each for batch in batches for each in _judge(table, parts, batch, minimum)]
    judged.sort(key=lambda found: found.each.place)
    for first, groups in parts.placed:
        for g, n in enumerate(groups.size):
            for each in judged:
                _add_group(table, each, first + g, n, groups.where(g))
        if groups.attribute and len(groups) > 1:
            compared = [each for each in judged if each.each.called]
            for each, gap in zip(compared, _gaps(compared, first), strict=True):
                _add_differences(table, groups, each, first)
                _add_gap(table, groups, each, first, gap)
        if then:
            then(groups)


def _add_group(table: MetricTable, found: _Judged, g: int, n: int, where: Where) -> None:
    each = found.each
    interval = (max(found.limits.lower[g], each.least), found.limits.upper[g])
    status = found.statuses[g]
    if not table.frequentist:
        interval = (NAN, NAN) if found.papers is None else tuple(found.papers[:, g])
        status = each.statuses[g]
    value = max(each.value[g], each.least)
    table.add(each.metric, value, n, where, setting=each.setting, interval=interval, status=status)


def _judge(table: MetricTable, parts: Parts, batch: Batch, minimum: int) -> list[_Judged]:
    """Return the metrics of a batch with limits at the table's level, and at that of all pairs."""
    limits = batch.limits(table.level)
    papers = None if table.frequentist or batch.papers is None else batch.papers(table.level)
    known = ~np.isnan(limits.lower)
    found, levels = [], np.full(known.shape, table.level)
    for k, each in enumerate(batch.estimates):
        statuses = _statuses(parts, each, known[k].tolist(), minimum)
        mine = None if papers is None else papers[:, k]
        judged = _Judged(each, Limits(*(end[k] for end in limits)), mine, statuses)
        if each.called:
            for first, groups in parts.placed:
                judged.among[first] = _among(statuses, known[k], first, len(groups))
                here = slice(first, first + len(groups))
                levels[k, here] = simultaneous_level(table.level, len(judged.among[first]))
        if batch.totals is not None and parts.sample is not None:
            judged.correlation = parts.sample.correlation(batch.totals[k])
        found.append(judged)
    wider = batch.limits(levels) if (levels != table.level).any() else limits
    for k, judged in enumerate(found):
        judged.wider = Limits(*(end[k] for end in wider))
    return found


def _statuses(parts: Parts, each: Estimates, known: list[bool], minimum: int) -> list[Status]:
    statuses = list(each.statuses)
    for g, n in enumerate(parts.size):
        if statuses[g] == OK:
            if n < minimum:
                statuses[g] = insufficient(f"n={n}{parts.in_words(g)}")
            elif not known[g]:
                infinite = "no interval of an infinite mean"
                why = infinite if np.isinf(each.value[g]) else each.lacking(g)
                statuses[g] = insufficient(why + parts.in_words(g))
    return statuses


def _among(statuses: list[Status], known: NDArray[np.bool_], first: int, groups: int) -> list[int]:
    """Return the groups of an attribute, from 0, whose limits a largest gap can be made of."""
    valued = [status.kind in ("ok", "insufficient") for status in statuses[first : first + groups]]
    return list(map(int, np.flatnonzero(valued & known[first : first + groups])))


def _add_differences(table: MetricTable, groups: Groups, found: _Judged, first: int) -> None:
    each, limits = found.each, found.limits
    here = slice(first + 1, first + len(groups))
    shared = 0.0 if found.correlation is None else found.correlation[here, first]
    others = difference_limits(limits.take(here), limits.take([first]), shared)
    statuses = found.statuses[first : first + len(groups)]
    for g in range(1, len(groups)):
        both = statuses[g], statuses[0]
        status = next((s for s in both if s.kind in ("undefined", "invalid")), None)
        table.add(
            f"{each.called}_difference",
            others.value[g - 1] if status is None else NAN,
            min(groups.size[0], groups.size[g]),
            groups.where(g),
            setting=each.setting,
            interval=(others.lower[g - 1], others.upper[g - 1]),
            status=status or next((s for s in both if s != OK), OK),
        )


def _gaps(compared: Sequence[_Judged], first: int) -> list[Limits | None]:
    """Return each metric's largest gap between groups with limits, None of fewer than two.

    Metrics that compare the same groups are taken together.
    """
    gaps: list[Limits | None] = [None] * len(compared)
    alike: dict[tuple[int, ...], list[int]] = {}
    for i, each in enumerate(compared):
        if len(each.among[first]) > 1:
            alike.setdefault(tuple(each.among[first]), []).append(i)
    for among, which in alike.items():
        gap = _largest([compared[i] for i in which], np.array(among) + first)
        for place, i in enumerate(which):
            gaps[i] = Limits(*(end[place] for end in gap))
    return gaps


def _largest(found: Sequence[_Judged], among: NDArray[np.intp]) -> Limits:
    def of_all(limits: Sequence[Limits]) -> Limits:
        return Limits(*(np.stack(ends)[:, among] for ends in zip(*limits, strict=True)))

    single = of_all([each.limits for each in found])
    wider = of_all([each.wider or each.limits for each in found])
    shared: Array | float = 0.0
    if any(each.correlation is not None for each in found):
        none = np.zeros((len(among), len(among)))
        known = [each.correlation for each in found]
        shared = np.stack([none if c is None else c[np.ix_(among, among)] for c in known])
    return largest_gap(GroupLimits(single, wider, shared))


def _add_gap(
    table: MetricTable, groups: Groups, found: _Judged, first: int, gap: Limits | None
) -> None:
    """Add the largest gap between groups that have an interval; name those left out."""
    statuses = found.statuses[first : first + len(groups)]
    among = found.among[first]
    if gap is None:
        among = [g for g, status in enumerate(statuses) if status.kind in ("ok", "insufficient")]
    left_out = [g for g in range(len(groups)) if g not in among]
    status = next((statuses[g] for g in among if statuses[g] != OK), OK)
    if left_out:
        names = ", ".join(f"'{groups.names[g]}'" for g in left_out)
        status = insufficient(f"without {names}: {statuses[left_out[0]].reason}")
    value, *interval = NAN, NAN, NAN
    if gap is not None:
        value, *interval = map(float, gap)
    elif len(among) > 1:
        value = float(np.ptp(found.limits.value[np.array(among) + first]))
    else:
        status = undefined("fewer than two groups have a value")
    table.add(
        f"{found.each.called}_gap",
        value,
        min((groups.size[g] for g in among), default=0),
        Where(groups.attribute),
        setting=found.each.setting,
        interval=(interval[0], interval[1]),
        status=status,
    )


# Values of groups, limits at a level, why a group has none, and totals as those of a batch.
Closed = tuple[Array, LimitsAt, Why, Array | None]
Kinds = Mapping[Interval, Callable[[Sequence[Array], Parts], Closed]]


def declared_batches(
    metrics: Iterable[Metric],
    target: Array,
    columns: Mapping[str, Array],
    parts: Parts,
    kinds: Kinds,
    statuses: Callable[[Metric], list[Status]] | None = None,
) -> Iterator[Batch]:
    """Yield declared metrics of every group, those of one kind of mean together.

    Parameters
    ----------
    columns : (n,) each, by the names that metrics need; those that need others are left out.
    kinds : of interval, other than those of means.
    statuses : of a metric's columns, by group; of one that is not ok, nothing is computed.
    """
    alike: dict[Interval, list[tuple[Metric, Estimates]]] = {}
    for place, metric in enumerate(metrics):
        if not metric.special and all(name in columns for name in metric.needs):
            known = statuses(metric) if statuses else parts.statuses()
            each = Estimates(metric.name, (), known, str, called=metric.name, place=place)
            alike.setdefault(metric.interval, []).append((metric, each))
    for kind, found in alike.items():
        arrays = [[target, *(columns[name] for name in metric.needs)] for metric, _ in found]
        if kind not in ("mean", "heavy_mean"):
            for (metric, each), mine in zip(found, arrays, strict=True):
                yield _closed(metric, each, kinds[kind](mine, parts), parts)
            continue
        with np.errstate(invalid="ignore", divide="ignore"):
            losses = [metric(*mine) for (metric, _), mine in zip(found, arrays, strict=True)]
        yield mean_batch(
            np.stack(losses),
            [each for _, each in found],
            parts,
            least=[metric.least for metric, _ in found],
            outcome=target if found[0][0].task == BINARY else None,
            heavy=kind == "heavy_mean",
            fewest=[metric.fewest for metric, _ in found],
        )


def _closed(metric: Metric, each: Estimates, found: Closed, parts: Parts) -> Batch:
    """Return a metric that is no mean, from its closed form."""
    value, limits, lacking, totals = found
    value = np.where([status == OK for status in each.statuses], value, np.nan)
    statuses = [
        undefined(metric.undefined.format(part=name or "the part"))
        if status == OK and np.isnan(each_value)
        else status
        for status, each_value, name in zip(each.statuses, value, parts.names, strict=True)
    ]

    def at(level: Level) -> Limits:
        return around(value[None], Limits(*(np.atleast_2d(end) for end in limits(level))))

    filled = replace(each, value=value.tolist(), statuses=statuses, lacking=lacking)
    return Batch([filled], at, None, totals if totals is None else totals[None])


def mean_batch(
    losses: Array,
    estimates: Sequence[Estimates],
    parts: Parts,
    *,
    least: Sequence[float] | float = -np.inf,
    outcome: Array | None = None,
    heavy: bool = False,
    fewest: Sequence[int] | int = 0,
) -> Batch:
    """Return the means of per-row losses (K, n).

    Parameters
    ----------
    estimates : what is known of each of the K, without its values.
    least : the least that each mean can be.
    outcome : labels 0 or 1 that the losses are of, where one of them may be rare.
    heavy : whether losses grow like squares.
    fewest : rows under which there is no interval, where that is more than means need.
    """
    ok = [[status == OK for status in each.statuses] for each in estimates]
    value = np.where(ok, parts.mean_of(losses), np.nan)
    bound = np.broadcast_to(np.asarray(least, float), (len(losses),))[:, None]
    rows = np.broadcast_to(np.maximum(fewest, means.ROWS), (len(losses),))
    whole = np.isfinite(losses)
    finite = losses if whole.all() else np.where(whole, losses, 0.0)
    if outcome is not None:
        limits, few, totals = _outcome_limits(finite, outcome, parts)
        whys = [few] * len(losses)
    else:
        limits, totals = _mean_limits(finite, parts, heavy=heavy, rows=rows[:, None])
        whys = [parts.too_few(means.ROOT_ROWS if heavy else int(n)) for n in rows]
    filled = [
        replace(each, value=mine.tolist(), lacking=why)
        for each, mine, why in zip(estimates, value, whys, strict=True)
    ]
    return Batch(
        filled,
        lambda level: around(value, limits(level), bound),
        partial(parts.normal_ends, losses),
        totals,
    )


def _mean_limits(
    losses: Array, parts: Parts, *, heavy: bool, rows: Array
) -> tuple[LimitsAt, Array | None]:
    moments, totals = parts.moments(losses)
    if heavy:
        return lambda level: means.heavy_limits(moments, level=level), totals
    return lambda level: means.loss_limits(moments, level=level, rows=rows), totals


def _outcome_limits(
    losses: Array, outcome: Array, parts: Parts
) -> tuple[LimitsAt, Why, Array | None]:
    count = len(parts)
    if parts.sample is not None and parts.repeated is not None:
        found = means.OutcomeMeans.of(
            parts.rows(losses), parts.rows(outcome), parts.sample, parts.repeated
        )
        few = parts.too_rare(means.RARE_ROWS, found.size.min(axis=-1), means.ROWS)
        return lambda level: found.limits(level=level), few, found.totals
    found_by_label = [
        means.Moments.of_groups(mine, 2 * groups.codes + label.astype(np.intp), 2 * len(groups))
        for (groups, mine), (_, label) in zip(
            parts.by_attribute(losses), parts.by_attribute(outcome), strict=True
        )
    ]
    moments = means.Moments.joined(found_by_label).take(np.arange(2 * count).reshape(-1, 2))
    size = moments.size[0]

    def limits(level: Level) -> Limits:
        share = at_levels(
            lambda each: means.shown_share(size[:, 1], size.sum(axis=-1), level=each), level
        )
        return means.outcome_limits(moments, level=level, share=share)

    return limits, parts.too_rare(means.RARE_ROWS, size.min(axis=-1), means.ROWS), None
