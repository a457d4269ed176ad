"""Evaluates scores of a binary label, and prediction intervals and sets of any task.

:func:`evaluate_scores` has likelihoods, calibration and ranking; :func:`interval_batches` and
:func:`evaluate_sets` have coverage and size.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Codes, Floats, divide
from fairbench.evaluation import metric_batches
from fairbench.evaluation.predictions import AllGroups, Groups, Labelled
from fairbench.evaluation.table import DEBIASED, NAN, VALUE, MetricTable, Setting, Statuses
from fairbench.inference import scores
from fairbench.inference.means import Level, around, at_levels, loss_limits
from fairbench.inference.rates import Limits, rate_limits, weighted_sum_limits
from fairbench.inference.survey import SurveyCounts, sums
from fairbench.metrics import probability
from fairbench.metrics.registry import BINARY, MULTICLASS, metrics_of, selection_rate

Columns = Mapping[str, Floats]
_SET = re.compile(r"set_(\d+)_(\d+)")


def interval_batches(
    target: Floats,
    ends: Mapping[float, tuple[Floats, Floats]],
    all_groups: AllGroups,
) -> Iterator[metric_batches.Batch]:
    """Yield coverage of intervals, the share of infinite ones, and their mean width.

    Parameters
    ----------
    ends : level -> lower and upper ends, (n,) each.
    """
    if not ends:
        return
    lower, upper = np.stack(list(ends.values()), axis=1)
    with np.errstate(invalid="ignore"):
        width = upper - lower
    bad = ~(upper >= lower)
    statuses = Statuses.stacked([all_groups.statuses(of_level, "interval") for of_level in bad])
    labels = partial(_row_labels, list(ends))
    covered = ((lower <= target) & (target <= upper)).astype(float)
    yield rate_batch(covered, labels("coverage"), all_groups, statuses)
    infinite = np.isinf(width)
    if infinite.any():
        of_infinite = labels("infinite_intervals", compared=False)
        yield rate_batch(infinite.astype(float), of_infinite, all_groups, statuses)
    of_width = labels("interval_width")
    yield metric_batches.mean_batch(width, of_width, all_groups, statuses)


def _set_batches(
    target: Floats, columns: Columns, levels: Sequence[float], all_groups: AllGroups
) -> Iterator[metric_batches.Batch]:
    """Yield coverage of sets of labels, the share of empty ones, and their mean size.

    Parameters
    ----------
    columns : among them ``set_<class>_<percent>``, 1 where the class is in the set.
    """
    sets = {level: label_set for level in levels if len(label_set := _label_sets(columns, level))}
    if not sets:
        return
    held = np.stack(list(sets.values()))
    size = held.sum(axis=1)
    labels = partial(_row_labels, list(sets))
    covered = held[:, target.astype(np.intp), np.arange(len(target))]
    yield rate_batch(covered, labels("coverage"), all_groups)
    yield rate_batch((size == 0).astype(float), labels("empty_sets", compared=False), all_groups)
    yield _size_batch(size, held.shape[1], labels("set_size"), all_groups)


def evaluate_sets(table: MetricTable, data: Labelled, levels: Sequence[float]) -> None:
    """Add the coverage and the size of sets of labels, everyone's and each group's."""
    counted = data.with_weight()
    all_groups = AllGroups.of_labelled(counted)
    columns = {str(name): counted.column(name) for name in counted.predictions}
    batches = list(_set_batches(counted.target, columns, levels, all_groups))
    metric_batches.add_estimates(table, all_groups, batches)


def _label_sets(columns: Columns, level: float) -> Floats:
    """Return whether each of C labels is in each row's set, (C, n); C is 0 without sets."""
    percent = f"{100 * level:g}"
    matches = [match for name in columns if (match := _SET.fullmatch(name))]
    by_class = {int(match[1]): columns[match[0]] for match in matches if match[2] == percent}
    return np.array([by_class[k] for k in sorted(by_class)], float)


def _row_labels(
    levels: Sequence[float], metric: str, *, compared: bool = True
) -> list[metric_batches.RowLabel]:
    """Return the labels of a metric's rows at several levels, by which groups are compared."""
    label = metric_batches.RowLabel(metric, least=0.0, compared_as=metric if compared else "")
    return [replace(label, setting=Setting(level=level)) for level in levels]


def rate_batch(
    successes: Floats,
    labels: Sequence[metric_batches.RowLabel],
    all_groups: AllGroups,
    statuses: Statuses | None = None,
) -> metric_batches.Batch:
    """Return shares of rows (K, n) that are 1 and not 0; other arguments as in `mean_batch`."""
    shares = partial(at_levels, _shares(successes, all_groups))
    made = shares, [all_groups.too_few(1)] * len(labels)
    return metric_batches.Batch.of_rows(successes, labels, all_groups, made, statuses)


def _size_batch(
    size: Floats, classes: int, labels: Sequence[metric_batches.RowLabel], all_groups: AllGroups
) -> metric_batches.Batch:
    """Return the mean sizes of sets (K, n) with up to `classes` labels.

    A mean size is 1, less the share of empty sets, plus the shares of sets with at least two, three
    ... labels. Its limits combine those of these shares, so that they hold even if all sets of a
    sample have the same size.
    """
    events = [size == 0, *(size >= j for j in range(2, classes + 1))]
    indicators = np.stack(events, axis=1).astype(float)
    sign = np.array([-1.0, *np.ones(classes - 1)])

    def by_size(values: Floats) -> Floats:
        return values.reshape(-1, classes, values.shape[-1])

    rows = indicators.reshape(-1, indicators.shape[-1])
    share_limits = _shares(rows, all_groups)
    correlation = _correlation(by_size(all_groups.mean_of(rows)))

    def limits(level: Level) -> Limits:
        """Return the limits of the mean sizes at a level, from those of the shares."""
        event_level = level if np.ndim(level) == 0 else np.repeat(level, classes, axis=0)
        of_events = at_levels(share_limits, event_level).apply(
            lambda limit: np.moveaxis(by_size(limit), 1, -1)
        )
        size_limits = weighted_sum_limits(of_events, sign, correlation)
        return size_limits.apply(lambda limit: 1 + limit)

    made = limits, [all_groups.too_few(1)] * len(labels)
    return metric_batches.Batch.of_rows(size, labels, all_groups, made)


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
    correlation = divide(both - share[..., :, None] * share[..., None, :], sd_product)
    return np.where(sd_product > 0, np.clip(correlation, -1, 1), np.eye(len(events)))


def _shares(successes: Floats, all_groups: AllGroups) -> Callable[[float], Limits]:
    """Return what makes the limits of shares (K, G) of rows (K, n) at a level."""
    if all_groups.sample is None or all_groups.repeated is None:
        count = all_groups.sums_of(successes)
        return lambda level: rate_limits(count, all_groups.size, level=level)
    surveys = [
        SurveyCounts.of(
            3 * row.astype(np.intp), all_groups.codes, all_groups.repeated, groups=len(all_groups)
        )
        for row in all_groups.rows(successes)
    ]

    def at_level(level: float) -> Limits:
        of_surveys = [survey.limits(selection_rate, level=level) for survey in surveys]
        return Limits(*map(np.stack, zip(*of_surveys, strict=True)))

    return at_level


# Evaluates scores and uncertainties of a binary label: likelihoods, calibration, ranking.

_CALIBRATION = "expected_calibration_error"
_MULTICALIBRATION = "multicalibration_error"
_BINNINGS = ("width", "mass")


def evaluate_scores(
    table: MetricTable, data: Labelled, bins: int, levels: Sequence[float] = ()
) -> None:
    """Add everyone's rows, each group's, and the points of the reliability diagram, of every split.

    Rows are put in the order of their scores first, so that no group need be sorted again.
    Those without weight are left out.

    Parameters
    ----------
    bins : how many bins the reliability diagram and the calibration error have.
    levels : the levels of the sets of labels whose coverage and size are reported.
    """
    data = data.with_weight()
    if "score" in data.predictions:
        data = data.take(_in_order(data.predictions["score"].to_numpy(), data))
    columns = {str(name): data.predictions[name].to_numpy() for name in data.predictions}
    target, all_groups = data.target, AllGroups.of_labelled(data)
    metrics = metrics_of(BINARY, "mean", "auc", "none")
    batches = list(
        metric_batches.declared_batches(metrics.values(), target, columns, all_groups, KINDS)
    )
    add_calibration = None
    if "score" in columns:
        diagrams = _all_bins(all_groups, target, columns["score"], bins)
        batches.append(_calibration_batch(_CALIBRATION, [diagrams], all_groups))

        def add_calibration(groups: Groups) -> None:
            _add_multicalibration(table, all_groups, diagrams, groups)
            if not groups.attribute:
                _add_diagram(table, all_groups, target, columns["score"], bins)

    batches += _set_batches(target, columns, levels, all_groups)
    metric_batches.add_estimates(table, all_groups, batches, after_each=add_calibration)


def _add_multicalibration(
    table: MetricTable, all_groups: AllGroups, bins: scores.Bins, groups: Groups
) -> None:
    """Add the largest calibration error of an attribute's groups, or of all groups."""
    if len(all_groups.attributes) == 1:
        return
    cells = np.concatenate(
        [
            np.arange(cells.start, cells.stop).reshape(groups.splits, -1)
            for cells, placed in all_groups.placed
            if not groups.attribute or placed.attribute == groups.attribute
        ],
        axis=1,
    )
    size = all_groups.size[cells]
    among = size >= probability.FEWEST
    has_value = among.any(axis=1)
    # The diagrams of bins of equal mass.
    arrays = (bins.size, bins.positives, bins.score, bins.share)
    of_groups: Any = (array if array is None else array[1, cells] for array in arrays)
    diagrams = scores.Bins(*of_groups)
    # Bonferroni's correction, so that the lower limits of all groups hold at once; of the upper
    # limits the largest suffices, as the largest true error is that of a single group.
    risk = (1 - table.level) / np.maximum(among.sum(axis=-1, keepdims=True), 1)
    wide = diagrams.limits(level=np.broadcast_to(1 - risk, among.shape))
    single = diagrams.limits(level=table.level)
    debiased, lower, upper = (
        np.where(among, limit, -np.inf).max(axis=-1)
        for limit in (single.value, wide.lower, single.upper)
    )
    plain = np.where(among, diagrams.plug_in(), -np.inf).max(axis=1)
    value = np.where(has_value, np.stack([plain, np.maximum(debiased, 0.0)]), NAN)
    ends = np.where(has_value, np.clip(np.stack([lower, upper]), 0.0, 1.0), NAN)
    if all_groups.clustered:
        ends = np.full_like(ends, NAN)
    least = np.where(among, size, np.iinfo(np.int64).max).min(axis=1)
    status = Statuses.ok((groups.splits, 1))
    few = f"no group has {probability.FEWEST} rows"
    status.flag(~has_value[:, None], "undefined", few)
    table.add(
        (_MULTICALIBRATION,) * 2,
        value[..., None],
        np.where(has_value, least, size.max(axis=1))[:, None],
        groups.attribute,
        interval=(ends[0][:, None], ends[1][:, None]),
        needed=_why_clustered(0),
        statistic=(VALUE, DEBIASED),
        setting=Setting(bins=bins.size.shape[-1]),
        status=status,
    )


def _add_diagram(
    table: MetricTable, all_groups: AllGroups, target: Floats, score: Floats, bins: int
) -> None:
    """Add the mean score and the share of label 1 in each bin of equal width that has rows."""
    everyone, design = all_groups.attributes[0], all_groups.design
    cells = bins * everyone.codes + probability.bins_of_width(score, bins)
    present, bin_index, size = np.unique(cells, return_inverse=True, return_counts=True)
    # The bins of a split that have rows are numbered from 0.
    split = present // bins
    number = np.arange(len(present)) - np.searchsorted(split, split)
    shape = int(number.max(initial=-1)) + 1, everyone.splits, 1

    def by_number(values: NDArray[Any], fill: float = NAN) -> NDArray[Any]:
        """Return values of the bins that have rows as (bins, S, 1)."""
        in_bins = np.full(shape, fill, values.dtype)
        in_bins[number, split, 0] = values
        return in_bins

    n_rows = by_number(size, 0)
    # The mean score and the share of label 1 in each bin that has rows.
    in_bins = AllGroups((Groups("", ("",) * len(present), bin_index),), design)
    means = loss_limits(in_bins.moments(score)[0], level=table.level, least=0.0, most=1.0)
    if design is not None:
        means = around(in_bins.mean_of(score), means)
    shares = _shares(target[None], in_bins)(table.level).apply(np.ravel)
    for name, limits in (("mean_score", means), ("base_rate", shares)):
        value, lower, upper = limits.apply(by_number)
        table.add(
            (f"reliability_{name}",) * shape[0],
            value,
            n_rows,
            interval=(lower, upper),
            needed=lambda b, s, _: f"n={n_rows[b, s, 0]}",
            setting=[Setting(bins=bins, bin=b) for b in range(shape[0])],
            is_row=n_rows > 0,
        )


def _in_order(score: Floats, data: Labelled) -> Codes:
    """Return the order of rows by split, and by score in a split."""
    return np.lexsort((score, data.everyone.codes))


def _calibration_batch(
    metric: str, diagrams: Sequence[scores.Bins], all_groups: AllGroups
) -> metric_batches.Batch:
    """Return calibration errors as they are printed, and less what chance adds to them.

    Both have one interval, of the error in these bins, which holds either.

    Parameters
    ----------
    diagrams : the diagram of the label, or that of each of several classes. The errors of classes
        are averaged, and their intervals hold at once.
    """
    plain = np.mean([diagram.plug_in() for diagram in diagrams], axis=0)
    plain = np.where(all_groups.statuses().is_ok, plain, NAN)
    debiased = _mean_calibration(diagrams).value
    # Labels come in pairs, and groups are compared by the second one of each, the debiased error.
    label = metric_batches.RowLabel(metric, least=0.0, most=1.0)
    settings = [Setting(bins=diagrams[0].size.shape[-1], binning=binning) for binning in _BINNINGS]
    labels = [
        replace(label, setting=setting, statistic=statistic, compared_as=compared_as)
        for setting, (statistic, compared_as) in product(
            settings, ((VALUE, ""), (DEBIASED, metric))
        )
    ]

    def limits(level: Level) -> Limits:
        debiased_level = level if np.ndim(level) == 0 else np.asarray(level)[1::2]
        value, *ends = _mean_calibration(diagrams, debiased_level)
        if all_groups.clustered:
            ends = [np.full_like(end, NAN) for end in ends]
        return Limits(value, *ends).apply(lambda limit: np.repeat(limit, 2, axis=0))

    value = np.stack([plain, debiased], axis=1).reshape(len(labels), -1)
    statuses = Statuses.stacked([all_groups.statuses()] * len(labels))
    return metric_batches.Batch(labels, value, statuses, [_why_clustered] * len(labels), limits)


def _mean_calibration(diagrams: Sequence[scores.Bins], level: Level = 0.95) -> Limits:
    """Return the mean of several calibration errors (2, C), with intervals that hold at once."""
    # Bonferroni's correction, so that the intervals of all classes hold at once.
    class_level = level if len(diagrams) == 1 else 1 - (1 - np.asarray(level)) / len(diagrams)
    errors = [bins.limits(level=class_level) for bins in diagrams]
    return Limits(*(np.mean(limits, axis=0) for limits in zip(*errors, strict=True)))


def evaluate_class_scores(table: MetricTable, data: Labelled, n_bins: int) -> None:
    """Add likelihoods and calibration of three or more classes."""
    names = [f"score_{k}" for k in range(len(data.classes))]
    if not {*names} <= {*data.predictions}:
        return
    probabilities = data.predictions[names].to_numpy(np.float64)
    all_groups, metrics = AllGroups.of_labelled(data), metrics_of(MULTICLASS)
    bins = []
    for k, score in enumerate(probabilities.T):
        order = _in_order(score, data)
        ordered = AllGroups.of_labelled(data.take(order))
        is_class = (data.target == k)[order].astype(np.float64)
        bins.append(_all_bins(ordered, is_class, score[order], n_bins))
    columns = {"scores": probabilities}
    batches = [
        *metric_batches.declared_batches(metrics.values(), data.target, columns, all_groups, {}),
        _calibration_batch("classwise_calibration_error", bins, all_groups),
    ]
    metric_batches.add_estimates(table, all_groups, batches)


def _why_clustered(c: int) -> str:
    return "no interval is known to hold for clustered rows"


def _all_bins(all_groups: AllGroups, target: Floats, score: Floats, bins: int) -> scores.Bins:
    """Return reliability diagrams (2, C, bins), of bins of equal width and of equal mass."""
    design = all_groups.design
    weight = design.weight if design is not None and design.weighted else None
    each = 1.0 if weight is None else weight

    def counted(cell: Codes, cells: int) -> Floats:
        """Return size, rows with label 1, mean score and weight of cells; a size is Kish's."""
        size = mass = np.bincount(cell, weight, cells).astype(float)
        if weight is not None:
            size = mass**2 / np.maximum(sums(weight**2, cell, cells), 1e-300)
        divisor = np.maximum(mass, 1e-300)
        ones, total_score = (sums(each * values, cell, cells) for values in (target, score))
        return np.stack([size, ones / divisor * size, total_score / divisor, mass])

    of_attributes = []
    for groups in all_groups.attributes:
        # Rows come in the order of their scores, and so do those of each group.
        codes, count, order = groups.codes, groups.cells, groups.order
        by_mass = probability.bins_of_mass(score, codes, count, bins, weight=weight, order=order)
        binned = (bins * codes + of for of in (probability.bins_of_width(score, bins), by_mass))
        diagrams = np.stack([counted(cell, count * bins) for cell in binned], axis=1)
        of_attributes.append(np.reshape(diagrams, (4, len(_BINNINGS), count, bins)))
    size, positives, mean, mass = np.concatenate(of_attributes, axis=2)
    total = np.maximum(mass.sum(-1, keepdims=True), 1e-300)
    return scores.Bins(size, positives, mean, None if weight is None else mass / total)


def _area(arrays: Sequence[Floats], all_groups: AllGroups) -> metric_batches.ClosedForm:
    """Return the areas under the ROC curves of all cells, with their intervals."""
    target, score = arrays
    # Where rows come in the order of their scores, split by split, so do those of every group.
    everyone = all_groups.attributes[0].codes
    ordered = ((score[1:] >= score[:-1]) | (everyone[1:] > everyone[:-1])).all()
    if all_groups.design is None:  # attribute by attribute, which takes less memory
        names = ("area", "positives", "negatives", "variance")
        parts = []
        for groups in all_groups.attributes:
            order = groups.order if ordered else None
            of_groups = scores.Areas.of(target, score, groups.codes, groups.cells, order=order)
            parts.append([getattr(of_groups, name) for name in names])
        areas = scores.Areas(*map(np.concatenate, zip(*parts, strict=True)))
    else:
        of_rows = all_groups.rows(target), all_groups.rows(score), all_groups.codes
        order = all_groups.order if ordered else None
        areas = scores.Areas.of(*of_rows, len(all_groups), design=all_groups.repeated, order=order)
    rarer = np.minimum(areas.positives, areas.negatives)
    too_rare = all_groups.too_few(1, rarer, scores.RARE_ROWS)
    return areas.area, areas.limits, too_rare, areas.totals


KINDS: metric_batches.Kinds = {"auc": _area}
