"""Evaluates intervals and sets of labels that are to hold the true one: coverage and size."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from fairbench.evaluation.estimates import (
    Batch,
    Estimates,
    LimitsAt,
    add_estimates,
    mean_batch,
)
from fairbench.evaluation.predictions import Labelled, Parts
from fairbench.evaluation.table import OK, MetricTable, Setting
from fairbench.inference.means import Level, around, at_levels
from fairbench.inference.rates import Limits, rate_limits, weighted_sum_limits
from fairbench.inference.survey import SurveyCounts, sums
from fairbench.metrics.rates import selection_rate

Array = NDArray[np.float64]
Columns = Mapping[str, Array]
_SET = re.compile(r"set_(\d+)_(\d+)")


def interval_batches(
    target: Array, ends: Mapping[float, tuple[Array, Array]], parts: Parts, place: int
) -> Iterator[Batch]:
    """Yield coverage of intervals, the share of infinite ones, and their mean width.

    Parameters
    ----------
    ends : level -> lower and upper ends, (n,) each.
    place : of the first of their rows among those of other metrics.
    """
    if not ends:
        return
    found, covered, widths = [], [], []
    for level, (lower, upper) in ends.items():
        covered.append(((lower <= target) & (target <= upper)).astype(float))
        with np.errstate(invalid="ignore"):
            widths.append(upper - lower)
        statuses = parts.statuses(~(upper >= lower), "interval")
        setting = Setting(level=level)
        found.append(Estimates("coverage", (), statuses, str, setting, called="coverage"))
    found = _placed(found, place)
    yield rate_batch(np.stack(covered), found, parts)
    infinite = np.isinf(np.stack(widths))
    if infinite.any():
        yield rate_batch(infinite.astype(float), _renamed(found, "infinite_intervals", 1), parts)
    width = "interval_width"
    yield mean_batch(np.stack(widths), _renamed(found, width, 2, called=width), parts, least=0.0)


def set_batches(
    target: Array, columns: Columns, levels: Sequence[float], parts: Parts, place: int
) -> Iterator[Batch]:
    """Yield coverage of sets of labels, the share of empty ones, and their mean size.

    Parameters
    ----------
    columns : among them ``set_<class>_<percent>``, 1 where the class is in the set.
    """
    sets = {level: each for level in levels if len(each := label_sets(columns, level))}
    if not sets:
        return
    settings = [Setting(level=level) for level in sets]
    statuses, code = parts.statuses(), target.astype(np.intp)
    found = _placed(
        [Estimates("coverage", (), statuses, str, each, called="coverage") for each in settings],
        place,
    )
    held = np.stack(list(sets.values()))
    size = held.sum(axis=1)
    yield rate_batch(held[:, code, np.arange(len(code))], found, parts)
    yield rate_batch((size == 0).astype(float), _renamed(found, "empty_sets", 1), parts)
    yield _size_batch(size, held.shape[1], _renamed(found, "set_size", 2, called="set_size"), parts)


def evaluate_sets(
    table: MetricTable, data: Labelled, levels: Sequence[float], *, minimum: int = 0
) -> None:
    """Add what there is to say of sets of labels, of everyone and of each group.

    Parameters
    ----------
    minimum : metrics of fewer rows are flagged.
    """
    counted = data.with_weight()
    parts = Parts.of(len(counted), counted.groups, counted.design)
    columns = {str(name): counted.column(name) for name in counted.predictions}
    batches = list(set_batches(counted.target, columns, levels, parts, 0))
    add_estimates(table, parts, batches, minimum)


def label_sets(columns: Columns, level: float) -> Array:
    """Return whether each of C labels is in each row's set, (C, n); C is 0 where there is none."""
    percent = f"{100 * level:g}"
    matches = [match for name in columns if (match := _SET.fullmatch(name))]
    own = {int(match[1]): columns[match[0]] for match in matches if match[2] == percent}
    return np.array([own[k] for k in sorted(own)], float)


def _placed(found: Sequence[Estimates], place: int) -> list[Estimates]:
    return [replace(each, place=place + 3 * k) for k, each in enumerate(found)]


def _renamed(
    found: Sequence[Estimates], metric: str, after: int, *, called: str = ""
) -> list[Estimates]:
    return [replace(each, metric=metric, place=each.place + after, called=called) for each in found]


def rate_batch(successes: Array, estimates: Sequence[Estimates], parts: Parts) -> Batch:
    """Return shares of rows (K, n) that are 1 and not 0; `estimates` as in :func:`mean_batch`."""
    flat, at = parts.rows(successes), _share_limits(successes, parts)
    value = _defined(parts.mean_of(flat), estimates)
    return Batch(
        _filled(value, estimates, parts),
        lambda level: around(value, at_levels(at, level)),
        partial(parts.normal_ends, flat),
        _totals(flat, parts),
    )


def _size_batch(size: Array, classes: int, estimates: Sequence[Estimates], parts: Parts) -> Batch:
    """Return the mean sizes of sets (K, n) of up to so many classes.

    A mean size is 1, less the share of empty sets, plus the shares of sets of at least two, three
    ... labels, whose limits are put together: they hold where all sets of a sample are alike, too.
    """
    events = [size == 0, *(size >= j for j in range(2, classes + 1))]
    shares = np.stack(events, axis=1).astype(float)
    sign, flat = np.array([-1.0, *np.ones(classes - 1)]), parts.rows(size)
    at = _share_limits(shares.reshape(-1, shares.shape[-1]), parts)
    correlation = _correlation(shares, parts)
    value = _defined(parts.mean_of(flat), estimates)

    def limits(level: Level) -> Limits:
        each = level if np.ndim(level) == 0 else np.repeat(level, classes, axis=0)
        ends = (np.moveaxis(_by_size(end, classes), 1, -1) for end in at_levels(at, each))
        found = weighted_sum_limits(Limits(*ends), sign, correlation)
        return around(value, Limits(*(1 + end for end in found)), 0.0)

    filled, papers = _filled(value, estimates, parts), partial(parts.normal_ends, flat)
    return Batch(filled, limits, papers, _totals(flat, parts))


def _by_size(values: Array, classes: int) -> Array:
    return values.reshape(-1, classes, values.shape[-1])


def _correlation(shares: Array, parts: Parts) -> Array:
    """Return the correlations (K, G, C, C) of C events (K, C, n) among a group's rows."""
    mean = _by_size(parts.mean_of(shares.reshape(-1, shares.shape[-1])), shares.shape[1])
    both = np.empty((*mean.shape[:1], mean.shape[2], mean.shape[1], mean.shape[1]))
    for i in range(shares.shape[1]):
        both[:, :, i] = np.moveaxis(
            np.stack([parts.mean_of(shares[:, i] * shares[:, j]) for j in range(shares.shape[1])]),
            0,
            -1,
        )
    mean = np.moveaxis(mean, 1, -1)
    spread = np.sqrt(mean * (1 - mean))
    product = spread[..., :, None] * spread[..., None, :]
    with np.errstate(invalid="ignore", divide="ignore"):
        found = (both - mean[..., :, None] * mean[..., None, :]) / product
    unknown = np.eye(shares.shape[1])
    return np.where(product > 0, np.clip(found, -1, 1), unknown)


def _defined(value: Array, estimates: Sequence[Estimates]) -> Array:
    ok = [[status == OK for status in each.statuses] for each in estimates]
    return np.where(ok, value, np.nan)


def _filled(value: Array, estimates: Sequence[Estimates], parts: Parts) -> list[Estimates]:
    return [
        replace(each, value=mine.tolist(), lacking=parts.too_few(1))
        for each, mine in zip(estimates, value, strict=True)
    ]


def _totals(flat: Array, parts: Parts) -> Array | None:
    return None if parts.sample is None else parts.sample.linearised(flat)[1]


def _share_limits(successes: Array, parts: Parts) -> LimitsAt:
    """Return what makes limits (K, G) of shares of rows (K, n) at a level."""
    flat = parts.rows(successes)
    if parts.sample is None or parts.repeated is None:
        count, size = sums(flat, parts.codes, len(parts)), np.array(parts.size)
        return lambda level: rate_limits(count, size, level=level)
    surveys = [
        SurveyCounts.of(3 * each.astype(np.intp), parts.codes, parts.repeated, groups=len(parts))
        for each in flat
    ]

    def at(level: Level) -> Limits:
        found = [each.limits(selection_rate, level=float(level)) for each in surveys]
        return Limits(*(np.stack(ends) for ends in zip(*found, strict=True)))

    return at
