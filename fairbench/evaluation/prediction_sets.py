"""Evaluates prediction intervals and prediction sets: their coverage and size."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from fairbench.core.arrays import Floats
from fairbench.evaluation.metric_batches import (
    Batch,
    LimitsAt,
    RowLabel,
    add_estimates,
    mean_batch,
    row_statuses,
)
from fairbench.evaluation.predictions import AllGroups, Labelled
from fairbench.evaluation.table import MetricTable, Setting, Statuses
from fairbench.inference.means import Level, around, at_levels
from fairbench.inference.rates import Limits, rate_limits, weighted_sum_limits
from fairbench.inference.survey import SurveyCounts, sums
from fairbench.metrics.rates import selection_rate

Columns = Mapping[str, Floats]
_SET = re.compile(r"set_(\d+)_(\d+)")


def interval_batches(
    target: Floats,
    ends: Mapping[float, tuple[Floats, Floats]],
    all_groups: AllGroups,
    position: int,
) -> Iterator[Batch]:
    """Yield coverage of intervals, the share of infinite ones, and their mean width.

    Parameters
    ----------
    ends : level -> lower and upper ends, (n,) each.
    position : the position of the first of their rows among those of other metrics.
    """
    if not ends:
        return
    covered = []
    widths = []
    statuses_of_levels = []
    for lower, upper in ends.values():
        covered.append(((lower <= target) & (target <= upper)).astype(float))
        with np.errstate(invalid="ignore"):
            widths.append(upper - lower)
        statuses_of_levels.append(all_groups.statuses(~(upper >= lower), "interval"))
    statuses = Statuses.stacked(statuses_of_levels)
    settings = [Setting(level=level) for level in ends]
    labels = _row_labels("coverage", settings, position, compared=True)
    yield rate_batch(np.stack(covered), labels, all_groups, statuses)
    infinite = np.isinf(np.stack(widths))
    if infinite.any():
        labels = _row_labels("infinite_intervals", settings, position + 1)
        yield rate_batch(infinite.astype(float), labels, all_groups, statuses)
    labels = _row_labels("interval_width", settings, position + 2, compared=True)
    yield mean_batch(np.stack(widths), labels, all_groups, statuses=statuses, least=0.0)


def set_batches(
    target: Floats, columns: Columns, levels: Sequence[float], all_groups: AllGroups, position: int
) -> Iterator[Batch]:
    """Yield coverage of sets of labels, the share of empty ones, and their mean size.

    Parameters
    ----------
    columns : among them ``set_<class>_<percent>``, 1 where the class is in the set.
    """
    sets = {level: label_set for level in levels if len(label_set := label_sets(columns, level))}
    if not sets:
        return
    settings = [Setting(level=level) for level in sets]
    code = target.astype(np.intp)
    held = np.stack(list(sets.values()))
    size = held.sum(axis=1)
    statuses = row_statuses(all_groups, len(sets))
    labels = _row_labels("coverage", settings, position, compared=True)
    yield rate_batch(held[:, code, np.arange(len(code))], labels, all_groups, statuses)
    labels = _row_labels("empty_sets", settings, position + 1)
    yield rate_batch((size == 0).astype(float), labels, all_groups, statuses)
    labels = _row_labels("set_size", settings, position + 2, compared=True)
    yield _size_batch(size, held.shape[1], labels, all_groups, statuses)


def evaluate_sets(table: MetricTable, data: Labelled, levels: Sequence[float]) -> None:
    """Add the coverage and the size of sets of labels, everyone's and each group's."""
    counted = data.with_weight()
    all_groups = AllGroups.of_labelled(counted)
    columns = {str(name): counted.column(name) for name in counted.predictions}
    batches = list(set_batches(counted.target, columns, levels, all_groups, 0))
    add_estimates(table, all_groups, batches)


def label_sets(columns: Columns, level: float) -> Floats:
    """Return whether each of C labels is in each row's set, (C, n); C is 0 without sets."""
    percent = f"{100 * level:g}"
    matches = [match for name in columns if (match := _SET.fullmatch(name))]
    by_class = {int(match[1]): columns[match[0]] for match in matches if match[2] == percent}
    return np.array([by_class[k] for k in sorted(by_class)], float)


def _row_labels(
    metric: str, settings: Sequence[Setting], position: int, *, compared: bool = False
) -> list[RowLabel]:
    """Return the labels of a metric's rows at several levels, three positions apart."""
    return [
        RowLabel(
            metric,
            setting,
            compared_as=metric if compared else "",
            position=position + 3 * i,
        )
        for i, setting in enumerate(settings)
    ]


def rate_batch(
    successes: Floats,
    labels: Sequence[RowLabel],
    all_groups: AllGroups,
    statuses: Statuses | None = None,
) -> Batch:
    """Return shares of rows (K, n) that are 1 and not 0; other arguments as in `mean_batch`."""
    shares, limits = _shares(successes, all_groups)
    statuses = row_statuses(all_groups, len(labels)) if statuses is None else statuses
    value = np.where(statuses.is_ok, shares, np.nan)
    return Batch(
        labels=labels,
        value=value,
        statuses=statuses,
        lacking=[all_groups.too_few(1)] * len(labels),
        limits=lambda level: around(value, at_levels(limits, level)),
        papers=partial(all_groups.normal_limits, successes),
        totals=_totals(successes, all_groups),
    )


def _size_batch(
    size: Floats,
    classes: int,
    labels: Sequence[RowLabel],
    all_groups: AllGroups,
    statuses: Statuses,
) -> Batch:
    """Return the mean sizes of sets (K, n) with up to `classes` labels.

    A mean size is 1, less the share of empty sets, plus the shares of sets with at least two, three
    ... labels. Its limits combine those of these shares, so that they hold even if all sets of a
    sample have the same size.
    """
    events = [size == 0, *(size >= j for j in range(2, classes + 1))]
    indicators = np.stack(events, axis=1).astype(float)
    sign = np.array([-1.0, *np.ones(classes - 1)])
    shares, share_limits = _shares(indicators.reshape(-1, indicators.shape[-1]), all_groups)
    correlation = _correlation(_by_size(shares, classes))
    value = np.where(statuses.is_ok, all_groups.mean_of(size), np.nan)

    def limits(level: Level) -> Limits:
        """Return the limits of the mean sizes at a level, from those of the shares."""
        event_level = level if np.ndim(level) == 0 else np.repeat(level, classes, axis=0)
        of_events = Limits(
            *(
                np.moveaxis(_by_size(limit, classes), 1, -1)
                for limit in at_levels(share_limits, event_level)
            )
        )
        size_limits = weighted_sum_limits(of_events, sign, correlation)
        return around(value, Limits(*(1 + limit for limit in size_limits)), 0.0)

    return Batch(
        labels=labels,
        value=value,
        statuses=statuses,
        lacking=[all_groups.too_few(1)] * len(labels),
        limits=limits,
        papers=partial(all_groups.normal_limits, size),
        totals=_totals(size, all_groups),
    )


def _by_size(values: Floats, classes: int) -> Floats:
    return values.reshape(-1, classes, values.shape[-1])


def _correlation(share: Floats) -> Floats:
    """Return the correlations (K, G, C, C) of C events among a group's rows from shares (K, C, G).

    Event 0 is that a set is empty, event j that it has more than j labels.

    Notes
    -----
    With p_j the share of event j, the share p_ij of both is p_max(i, j), as a set with more labels
    has those of one with fewer, too; and 0 where one of them is event 0. Their correlation is
    (p_ij - p_i p_j) / sqrt(p_i (1 - p_i) p_j (1 - p_j)).
    """
    share = np.moveaxis(share, 1, -1)
    events = np.arange(share.shape[-1])
    both = share[..., np.maximum.outer(events, events)]
    both[..., 0, 1:] = both[..., 1:, 0] = 0
    sd = np.sqrt(share * (1 - share))
    sd_product = sd[..., :, None] * sd[..., None, :]
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = (both - share[..., :, None] * share[..., None, :]) / sd_product
    return np.where(sd_product > 0, np.clip(correlation, -1, 1), np.eye(len(events)))


def _totals(values: Floats, all_groups: AllGroups) -> Floats | None:
    return (
        None
        if all_groups.sample is None
        else all_groups.sample.linearised(all_groups.rows(values))[1]
    )


def _shares(successes: Floats, all_groups: AllGroups) -> tuple[Floats, LimitsAt]:
    """Return shares (K, G) of rows (K, n), and what makes their limits at a level."""
    if all_groups.sample is None or all_groups.repeated is None:
        count = np.concatenate(
            [
                sums(of_attribute, groups.codes, groups.cells)
                for groups, of_attribute in all_groups.by_attribute(successes)
            ],
            axis=-1,
        )
        with np.errstate(invalid="ignore"):
            mean = count / all_groups.size
        return mean, lambda level: rate_limits(count, all_groups.size, level=level)
    surveys = [
        SurveyCounts.of(
            3 * row.astype(np.intp), all_groups.codes, all_groups.repeated, groups=len(all_groups)
        )
        for row in all_groups.rows(successes)
    ]

    def at_level(level: Level) -> Limits:
        of_surveys = [survey.limits(selection_rate, level=float(level)) for survey in surveys]
        return Limits(*(np.stack(ends) for ends in zip(*of_surveys, strict=True)))

    return all_groups.mean_of(successes), at_level
