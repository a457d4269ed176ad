"""Estimates of every group of an attribute: their intervals, and rows of what compares them.

A kind of metric says here how its interval is made; evaluations of scores and of regressions take
declared metrics, make estimates of all groups at once, and add their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from fairbench.evaluation.predictions import Groups
from fairbench.evaluation.table import (
    NAN,
    NO_SETTING,
    OK,
    MetricTable,
    Setting,
    Status,
    Where,
    insufficient,
    mean_of,
    normal_interval,
    undefined,
)
from fairbench.inference import means, scores
from fairbench.inference.gaps import GroupLimits, largest_gap, simultaneous_level
from fairbench.inference.rates import Limits, difference_limits, rate_limits
from fairbench.metrics.registry import BINARY, Interval, Metric

Array = NDArray[np.float64]
LimitsAt = Callable[[float], Limits]
Why = Callable[[int], str]


@dataclass(frozen=True, eq=False)
class Estimates:
    """A metric of every group.

    Attributes
    ----------
    value : (G,) what is printed.
    statuses : (G,) of the values, whatever their intervals.
    limits : the limits of all groups at a level, NaN where an interval would not hold.
    lacking : why a group has no interval.
    papers : the ends of a group's interval at a level in the papers' evaluation, if it has one.
    least : the least that is printed of a value or its interval, which comparisons go under.
    called : what comparisons of groups are called after, if groups are compared.
    """

    metric: str
    value: Sequence[float]
    statuses: list[Status]
    limits: LimitsAt
    lacking: Why
    setting: Setting = NO_SETTING
    papers: Callable[[int, float], tuple[float, float]] | None = None
    least: float = -np.inf
    called: str = ""


def add_estimates(
    table: MetricTable, groups: Groups, estimates: Sequence[Estimates], minimum: int
) -> None:
    """Add a row for every group and metric, then what compares the groups of an attribute."""
    judged = [_judged(table, groups, each, minimum) for each in estimates]
    for g, n in enumerate(groups.size):
        for each, (limits, statuses) in zip(estimates, judged, strict=True):
            interval = (max(limits.lower[g], each.least), limits.upper[g])
            status = statuses[g]
            if not table.frequentist:
                interval = each.papers(g, table.level) if each.papers else (NAN, NAN)
                status = each.statuses[g]
            table.add(
                each.metric,
                max(each.value[g], each.least),
                n,
                groups.where(g),
                setting=each.setting,
                interval=interval,
                status=status,
            )
    if not groups.attribute or len(groups) < 2:
        return
    for each, (limits, statuses) in zip(estimates, judged, strict=True):
        if each.called:
            _add_differences(table, groups, each, limits, statuses)
            _add_gap(table, groups, each, limits, statuses)


def _judged(
    table: MetricTable, groups: Groups, each: Estimates, minimum: int
) -> tuple[Limits, list[Status]]:
    """Return the limits of every group, and what they and its rows make of its value."""
    limits = each.limits(table.level)
    statuses = list(each.statuses)
    for g, n in enumerate(groups.size):
        if statuses[g] != OK:
            continue
        if n < minimum:
            statuses[g] = insufficient(f"n={n}{groups.in_words(g)}")
        elif np.isnan(limits.lower[g]):
            statuses[g] = insufficient(each.lacking(g) + groups.in_words(g))
    return limits, statuses


def _add_differences(
    table: MetricTable, groups: Groups, each: Estimates, limits: Limits, statuses: list[Status]
) -> None:
    others = difference_limits(limits.take(slice(1, None)), limits.take(slice(0, 1)))
    for g in range(1, len(groups)):
        found = statuses[g], statuses[0]
        status = next((s for s in found if s.kind in ("undefined", "invalid")), None)
        table.add(
            f"{each.called}_difference",
            others.value[g - 1] if status is None else NAN,
            min(groups.size[0], groups.size[g]),
            groups.where(g),
            setting=each.setting,
            interval=(others.lower[g - 1], others.upper[g - 1]),
            status=status or next((s for s in found if s != OK), OK),
        )


def _add_gap(
    table: MetricTable, groups: Groups, each: Estimates, limits: Limits, statuses: list[Status]
) -> None:
    """Add the largest gap between groups that have an interval; name those left out."""
    defined = [g for g, status in enumerate(statuses) if status.kind in ("ok", "insufficient")]
    among = [g for g in defined if not np.isnan(limits.lower[g])]
    known = len(among) > 1
    if not known:
        among = defined
    left_out = [g for g in range(len(groups)) if g not in among]
    status = next((statuses[g] for g in among if statuses[g] != OK), OK)
    if left_out:
        names = ", ".join(f"'{groups.names[g]}'" for g in left_out)
        status = insufficient(f"without {names}: {statuses[left_out[0]].reason}")
    interval, value = (NAN, NAN), NAN
    if known:
        wider = each.limits(simultaneous_level(table.level, len(among)))
        gap = largest_gap(GroupLimits(limits.take(among), wider.take(among)))
        value, interval = float(gap.value), (float(gap.lower), float(gap.upper))
    elif len(among) > 1:
        value = float(np.ptp(limits.value[among]))
    else:
        status = undefined("fewer than two groups have a value")
    table.add(
        f"{each.called}_gap",
        value,
        min((groups.size[g] for g in among), default=0),
        Where(groups.attribute),
        setting=each.setting,
        interval=interval,
        status=status,
    )


def mean_estimates(
    name: str,
    losses: Array,
    groups: Groups,
    *,
    least: float = -np.inf,
    outcome: Array | None = None,
    heavy: bool = False,
    fewest: int = 0,
    statuses: Sequence[Status] = (),
    setting: Setting = NO_SETTING,
) -> Estimates:
    """Return the means of per-row losses (n,).

    Parameters
    ----------
    outcome : labels 0 or 1 that the losses are of, where one of them may be rare.
    heavy : whether losses grow like squares.
    fewest : rows under which there is no interval, where that is more than means need.
    statuses : of each group's losses; what is not ok is not printed.
    """
    parts, known = groups.split(losses), groups.statuses(statuses)
    value = np.array(
        [mean_of(part) if status == OK else NAN for part, status in zip(parts, known, strict=True)]
    )
    finite = np.where(np.isfinite(losses), losses, 0.0)
    limits, few = _mean_limits(finite, groups, outcome, heavy=heavy, fewest=fewest)

    def lacking(g: int) -> str:
        return few(g) if np.isfinite(value[g]) else "no interval of an infinite mean"

    def at(level: float) -> Limits:
        return _around(value, limits(level), least)

    def papers(g: int, level: float) -> tuple[float, float]:
        return normal_interval(parts[g], level)

    return Estimates(name, value.tolist(), known, at, lacking, setting, papers, called=name)


def _mean_limits(
    losses: Array, groups: Groups, outcome: Array | None, *, heavy: bool, fewest: int
) -> tuple[LimitsAt, Why]:
    count = len(groups)
    if outcome is None:
        moments = means.Moments.of_groups(losses, groups.codes, count)
        if heavy:
            return partial(_at, means.heavy_limits, moments), _too_few(means.ROOT_ROWS, groups.size)
        rows = max(fewest, means.ROWS)
        loss_limits = partial(means.loss_limits, rows=rows)
        return partial(_at, loss_limits, moments), _too_few(rows, groups.size)
    cells = (2 * groups.codes + outcome).astype(np.intp)
    moments = means.Moments.of_groups(losses, cells, 2 * count)
    moments = moments.take(np.arange(2 * count).reshape(-1, 2))
    rare = moments.size.min(axis=-1).astype(int).tolist()

    def limits(level: float) -> Limits:
        share = _shares(moments.size.tobytes(), level)
        return means.outcome_limits(moments, level=level, share=share)

    return limits, _too_rare(means.RARE_ROWS, rare, means.ROWS, groups.size)


@lru_cache(maxsize=64)
def _shares(size: bytes, level: float) -> Limits:
    """Return the limits of shares of label 1, which all losses of a group rest on, once for all."""
    counts = np.frombuffer(size).reshape(-1, 2)
    return means.shown_share(counts[:, 1], counts.sum(axis=-1), level=level)


def _at(function: Callable[..., Limits], found: object, level: float) -> Limits:
    return function(found, level=level)


def _around(value: Array, limits: Limits, least: float = -np.inf) -> Limits:
    """Return the limits around what is printed, which is the same but for the last bits."""
    lower, upper = (
        np.where(np.isfinite(value), each, np.nan) for each in (limits.lower, limits.upper)
    )
    return Limits(value, np.minimum(np.maximum(lower, least), value), np.maximum(upper, value))


def _too_few(least: int, size: Sequence[int]) -> Why:
    return lambda g: f"n={size[g]}, an interval needs {least}"


def _too_rare(least: int, rare: Sequence[int], rows: int, size: Sequence[int]) -> Why:
    def reason(g: int) -> str:
        if rare[g] < least:
            return f"{rare[g]} rows with the rarer label, an interval needs {least}"
        return f"n={size[g]}, an interval needs {rows}"

    return reason


def rate_estimates(
    name: str,
    successes: Array,
    groups: Groups,
    *,
    statuses: Sequence[Status] = (),
    setting: Setting = NO_SETTING,
) -> Estimates:
    """Return shares of rows (n,) that are 1 and not 0."""
    each = mean_estimates(name, successes, groups, statuses=statuses, setting=setting)
    count, size = np.bincount(groups.codes, successes, len(groups)), np.array(groups.size)

    def at(level: float) -> Limits:
        limits = rate_limits(count, size, level=level)
        return _around(np.asarray(each.value), limits)

    return replace(each, limits=at, lacking=_too_few(1, groups.size))


def declared_estimates(
    metric: Metric,
    arrays: Sequence[Array],
    groups: Groups,
    statuses: Sequence[Status] = (),
) -> Estimates:
    """Return a declared metric of every group.

    Parameters
    ----------
    arrays : the target and the columns that the metric needs, (n,) each, as it declares them.
    statuses : of each group's columns; of one that is not ok, nothing is computed.
    """
    if metric.interval in ("mean", "heavy_mean"):
        with np.errstate(invalid="ignore", divide="ignore"):
            losses = metric(*arrays)
        outcome = arrays[0] if metric.task == BINARY else None
        return mean_estimates(
            metric.name,
            losses,
            groups,
            least=metric.least,
            outcome=outcome,
            heavy=metric.interval == "heavy_mean",
            fewest=metric.fewest,
            statuses=statuses,
        )
    known = groups.statuses(statuses)
    value = _values(metric, arrays, groups, known)
    for g, each in enumerate(value):
        if known[g] == OK and np.isnan(each):
            part = groups.names[g] or "the part"
            known[g] = undefined(metric.undefined.format(part=part))
    limits, lacking = _KINDS[metric.interval](arrays, groups)

    def at(level: float) -> Limits:
        return _around(value, limits(level))

    return Estimates(metric.name, value.tolist(), known, at, lacking, called=metric.name)


def _values(
    metric: Metric, arrays: Sequence[Array], groups: Groups, statuses: Sequence[Status]
) -> Array:
    parts = zip(*(groups.split(each) for each in arrays), strict=True)
    return np.array(
        [
            float(metric(*part)) if status == OK else NAN
            for part, status in zip(parts, statuses, strict=True)
        ]
    )


Kind = Callable[[Sequence[Array], Groups], tuple[LimitsAt, Why]]


def _root_mean(arrays: Sequence[Array], groups: Groups) -> tuple[LimitsAt, Why]:
    target, prediction = arrays
    squares = np.nan_to_num((target - prediction) ** 2, posinf=0)
    moments = means.Moments.of_groups(squares, groups.codes, len(groups))
    return partial(_at, means.root_limits, moments), _too_few(means.ROOT_ROWS, groups.size)


def _explained(arrays: Sequence[Array], groups: Groups) -> tuple[LimitsAt, Why]:
    target, prediction = (np.nan_to_num(each, posinf=0, neginf=0) for each in arrays)
    found = scores.explained(target, prediction, groups.codes, len(groups))
    return partial(_at, scores.explained_limits, found), _too_few(
        scores.EXPLAINED_ROWS, groups.size
    )


def _area(arrays: Sequence[Array], groups: Groups) -> tuple[LimitsAt, Why]:
    target, score = arrays
    found = scores.areas(target, score, groups.codes, len(groups))
    rare = np.minimum(found.positives, found.negatives).astype(int).tolist()
    limits = partial(_at, scores.area_limits, found)
    return limits, _too_rare(scores.RARE_ROWS, rare, 1, groups.size)


_KINDS: Mapping[Interval, Kind] = MappingProxyType(
    {"root_mean": _root_mean, "explained": _explained, "auc": _area}
)
