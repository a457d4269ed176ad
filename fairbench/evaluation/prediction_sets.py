"""Evaluates intervals and sets of labels that are to hold the true one: coverage and size."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from fairbench.core.arrays import Floats
from fairbench.evaluation.estimates import (
    Batch,
    LimitsAt,
    Named,
    add_estimates,
    mean_batch,
    of_every,
)
from fairbench.evaluation.predictions import Labelled, Parts
from fairbench.evaluation.table import MetricTable, Setting, Statuses
from fairbench.inference.means import Level, around, at_levels
from fairbench.inference.rates import Limits, rate_limits, weighted_sum_limits
from fairbench.inference.survey import SurveyCounts, sums
from fairbench.metrics.rates import selection_rate

Columns = Mapping[str, Floats]
_SET = re.compile(r"set_(\d+)_(\d+)")


def interval_batches(
    target: Floats, ends: Mapping[float, tuple[Floats, Floats]], parts: Parts, place: int
) -> Iterator[Batch]:
    """Yield coverage of intervals, the share of infinite ones, and their mean width.

    Parameters
    ----------
    ends : level -> lower and upper ends, (n,) each.
    place : of the first of their rows among those of other metrics.
    """
    if not ends:
        return
    covered, widths, statuses_of_levels = [], [], []
    for lower, upper in ends.values():
        covered.append(((lower <= target) & (target <= upper)).astype(float))
        with np.errstate(invalid="ignore"):
            widths.append(upper - lower)
        statuses_of_levels.append(parts.statuses(~(upper >= lower), "interval"))
    statuses, settings = (
        Statuses.stacked(statuses_of_levels),
        [Setting(level=level) for level in ends],
    )
    rows = _rows("coverage", settings, place, called=True)
    yield rate_batch(np.stack(covered), rows, parts, statuses)
    infinite = np.isinf(np.stack(widths))
    if infinite.any():
        rows = _rows("infinite_intervals", settings, place + 1)
        yield rate_batch(infinite.astype(float), rows, parts, statuses)
    rows = _rows("interval_width", settings, place + 2, called=True)
    yield mean_batch(np.stack(widths), rows, parts, statuses=statuses, least=0.0)


def set_batches(
    target: Floats, columns: Columns, levels: Sequence[float], parts: Parts, place: int
) -> Iterator[Batch]:
    """Yield coverage of sets of labels, the share of empty ones, and their mean size.

    Parameters
    ----------
    columns : among them ``set_<class>_<percent>``, 1 where the class is in the set.
    """
    sets = {level: label_set for level in levels if len(label_set := label_sets(columns, level))}
    if not sets:
        return
    settings, code = [Setting(level=level) for level in sets], target.astype(np.intp)
    held = np.stack(list(sets.values()))
    size = held.sum(axis=1)
    statuses = of_every(parts, len(sets))
    rows = _rows("coverage", settings, place, called=True)
    yield rate_batch(held[:, code, np.arange(len(code))], rows, parts, statuses)
    rows = _rows("empty_sets", settings, place + 1)
    yield rate_batch((size == 0).astype(float), rows, parts, statuses)
    rows = _rows("set_size", settings, place + 2, called=True)
    yield _size_batch(size, held.shape[1], rows, parts, statuses)


def evaluate_sets(table: MetricTable, data: Labelled, levels: Sequence[float]) -> None:
    """Add the coverage and the size of sets of labels, everyone's and each group's."""
    counted = data.with_weight()
    parts = Parts.of_labelled(counted)
    columns = {str(name): counted.column(name) for name in counted.predictions}
    batches = list(set_batches(counted.target, columns, levels, parts, 0))
    add_estimates(table, parts, batches)


def label_sets(columns: Columns, level: float) -> Floats:
    """Return whether each of C labels is in each row's set, (C, n); C is 0 where there is none."""
    percent = f"{100 * level:g}"
    matches = [match for name in columns if (match := _SET.fullmatch(name))]
    by_class = {int(match[1]): columns[match[0]] for match in matches if match[2] == percent}
    return np.array([by_class[k] for k in sorted(by_class)], float)


def _rows(
    metric: str, settings: Sequence[Setting], place: int, *, called: bool = False
) -> list[Named]:
    """Return what the rows of a metric at several levels are called, three places apart."""
    name = metric if called else ""
    places = range(place, place + 3 * len(settings), 3)
    of_settings = zip(settings, places, strict=True)
    return [Named(metric, setting, called=name, place=at) for setting, at in of_settings]


def rate_batch(
    successes: Floats, rows: Sequence[Named], parts: Parts, statuses: Statuses | None = None
) -> Batch:
    """Return shares of rows (K, n) that are 1 and not 0; other arguments as in `mean_batch`."""
    mean, at = _shares(successes, parts)
    statuses = of_every(parts, len(rows)) if statuses is None else statuses
    value = np.where(statuses.is_ok, mean, np.nan)
    return Batch(
        rows,
        value,
        statuses,
        [parts.too_few(1)] * len(rows),
        lambda level: around(value, at_levels(at, level)),
        partial(parts.normal_ends, successes),
        _totals(successes, parts),
    )


def _size_batch(
    size: Floats, classes: int, rows: Sequence[Named], parts: Parts, statuses: Statuses
) -> Batch:
    """Return the mean sizes of sets (K, n) of up to so many classes.

    A mean size is 1, less the share of empty sets, plus the shares of sets of at least two, three
    ... labels, whose limits are put together: they hold where all sets of a sample are alike, too.
    """
    events = [size == 0, *(size >= j for j in range(2, classes + 1))]
    shares = np.stack(events, axis=1).astype(float)
    sign = np.array([-1.0, *np.ones(classes - 1)])
    mean, at = _shares(shares.reshape(-1, shares.shape[-1]), parts)
    correlation = _correlation(_by_size(mean, classes))
    value = np.where(statuses.is_ok, parts.mean_of(size), np.nan)

    def limits(level: Level) -> Limits:
        event_level = level if np.ndim(level) == 0 else np.repeat(level, classes, axis=0)
        ends = (np.moveaxis(_by_size(end, classes), 1, -1) for end in at_levels(at, event_level))
        size_limits = weighted_sum_limits(Limits(*ends), sign, correlation)
        return around(value, Limits(*(1 + end for end in size_limits)), 0.0)

    papers = partial(parts.normal_ends, size)
    whys = [parts.too_few(1)] * len(rows)
    return Batch(rows, value, statuses, whys, limits, papers, _totals(size, parts))


def _by_size(values: Floats, classes: int) -> Floats:
    return values.reshape(-1, classes, values.shape[-1])


def _correlation(mean: Floats) -> Floats:
    """Return the correlations (K, G, C, C) of C events among a group's rows from shares (K, C, G).

    The events are that a set is empty, and that it has at least two, three ... labels: of two of
    the latter, the one with more labels is both; with the first no other goes together.
    """
    mean = np.moveaxis(mean, 1, -1)
    places = np.arange(mean.shape[-1])
    together = mean[..., np.maximum.outer(places, places)]
    together[..., 0, 1:] = together[..., 1:, 0] = 0
    spread = np.sqrt(mean * (1 - mean))
    product = spread[..., :, None] * spread[..., None, :]
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = (together - mean[..., :, None] * mean[..., None, :]) / product
    return np.where(product > 0, np.clip(correlation, -1, 1), np.eye(len(places)))


def _totals(values: Floats, parts: Parts) -> Floats | None:
    return None if parts.sample is None else parts.sample.linearised(parts.rows(values))[1]


def _shares(successes: Floats, parts: Parts) -> tuple[Floats, LimitsAt]:
    """Return shares (K, G) of rows (K, n), and what makes their limits at a level."""
    if parts.sample is None or parts.repeated is None:
        count = np.concatenate(
            [
                sums(of_attribute, groups.codes, groups.cells)
                for groups, of_attribute in parts.by_attribute(successes)
            ],
            axis=-1,
        )
        with np.errstate(invalid="ignore"):
            mean = count / parts.size
        return mean, lambda level: rate_limits(count, parts.size, level=level)
    surveys = [
        SurveyCounts.of(3 * row.astype(np.intp), parts.codes, parts.repeated, groups=len(parts))
        for row in parts.rows(successes)
    ]

    def at_level(level: Level) -> Limits:
        of_surveys = [survey.limits(selection_rate, level=float(level)) for survey in surveys]
        return Limits(*(np.stack(ends) for ends in zip(*of_surveys, strict=True)))

    return parts.mean_of(successes), at_level
