"""Evaluates predictions of several classes: each class against the rest, and averages over them.

The rows of a class have its name in the column `outcome`. They come from the evaluation of labels
0 and 1, with the class as label 1. With two classes, the second's rows equal those of the binary
task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.arrays import Floats, Mask
from fairbench.data.dataset import Task
from fairbench.evaluation.abstention import AbstentionEvaluation
from fairbench.evaluation.groups import GroupCounts, GroupEvaluation, gaps_of_rates
from fairbench.evaluation.metric_batches import add_estimates, declared_batches
from fairbench.evaluation.predictions import AllGroups, Groups, Labelled
from fairbench.evaluation.scores import calibration_batch, ordered_bins
from fairbench.evaluation.table import NAN, MetricTable, Statuses, Where
from fairbench.inference.pooled import Generators
from fairbench.inference.rates import Limits
from fairbench.metrics.classes import FORMS, average_gaps, group_weighted
from fairbench.metrics.registry import BINARY, MULTICLASS, base_rate, metrics_of, total

_WHOLE = ("accuracy", "error_rate")  # shares of right and wrong predictions of any class
# Metrics of all classes at once, which no single class has against the rest.
_TOGETHER = (*_WHOLE, "balanced_accuracy", "log_loss", "brier_score", "nll")
_GAPS = ("statistical_parity", "equal_opportunity")


def as_label(data: Labelled, k: int) -> Labelled:
    """Return predictions of one class against the rest: label 1 is the class, 0 all others."""
    columns = {"prediction": data.column("prediction") == k}
    if f"score_{k}" in data.predictions:
        columns["score"] = data.column(f"score_{k}")
    return _with_label(data, data.target == k, columns)


def right_as_label(data: Labelled) -> Labelled:
    """Return predictions of correctness: the label is always 1, the prediction 1 where right."""
    columns = {"prediction": data.column("prediction") == data.target}
    if "uncertainty" in data.predictions:
        columns["uncertainty"] = data.column("uncertainty")
    return _with_label(data, np.ones(len(data)), columns)


def _with_label(
    data: Labelled, target: NDArray[np.generic], columns: dict[str, Floats]
) -> Labelled:
    table = pd.DataFrame({name: values.astype(np.float64) for name, values in columns.items()})
    label = target.astype(np.float64)
    return replace(data, target=label, predictions=table, task=Task.BINARY, classes=())


def scores_of(data: Labelled) -> Floats | None:
    """Return the probabilities (n, C) of all classes; None without scores."""
    names = [f"score_{k}" for k in range(len(data.classes))]
    if not set(names) <= set(data.predictions):
        return None
    scores: Floats = data.predictions[names].to_numpy(np.float64)
    return scores


def evaluate_classes(
    table: MetricTable,
    data: Labelled,
    generators: Generators,
    *,
    evaluate_labels: Callable[[MetricTable, Labelled, Generators], None],
    evaluation: GroupEvaluation,
    bins: int,
) -> None:
    """Add what all classes have together, every class against the rest, and averages.

    Parameters
    ----------
    evaluate_labels : adds the metrics of labels 0 and 1 to a table.
    evaluation : counts their rates by group, at the level of the table.
    bins : how many bins the calibration error has.
    """

    def evaluated(label: Labelled) -> MetricTable:
        """Return the table of a label, drawn as if nothing had been drawn before."""
        of_label = table.without_rows()
        evaluate_labels(of_label, label, deepcopy(generators))
        return of_label

    if len(data.classes) > 2:
        hits = right_as_label(data)
        hits = replace(hits, predictions=hits.predictions[["prediction"]])
        table.blocks.extend(evaluated(hits).blocks_of(lambda name: _is_of(name, _WHOLE)))
        _add_scores(table, data.with_weight(), bins)
    for k, name in enumerate(data.classes):
        table_of_class = evaluated(as_label(data, k))
        if len(data.classes) == 2 and k:
            shared = table_of_class.blocks_of(lambda metric: _is_of(metric, _TOGETHER))
            table.blocks.extend(shared)
        blocks = table_of_class.blocks_of(lambda metric: not _is_of(metric, _TOGETHER))
        for block in blocks:
            settings = tuple(setting._replace(outcome=name) for setting in block.settings)
            table.blocks.append(replace(block, settings=settings))
    for groups in data.coded.values():
        if len(groups) > 1:
            _add_averages(table, data, groups, evaluation, generators)


def _add_scores(table: MetricTable, data: Labelled, n_bins: int) -> None:
    """Add likelihoods and calibration of three or more classes."""
    scores = scores_of(data)
    if scores is None:
        return
    all_groups, metrics = AllGroups.of_labelled(data), metrics_of(MULTICLASS)
    columns = {"scores": scores}
    batches = list(declared_batches(metrics.values(), data.target, columns, all_groups, {}))
    bins = [
        ordered_bins(data.target == k, scores[:, k], data, n_bins) for k in range(len(data.classes))
    ]
    name, position = "classwise_calibration_error", len(metrics)
    batches.append(
        calibration_batch(
            name, bins, all_groups, n_bins=n_bins, level=table.level, position=position
        )
    )
    add_estimates(table, all_groups, batches)


def _is_of(name: str, metrics: Sequence[str]) -> bool:
    """Say whether a name is that of one of some metrics, or of what compares groups by one."""
    return any(name == metric or name.startswith(f"{metric}_") for metric in metrics)


_Gap = tuple[Limits, NDArray[np.int64], Statuses]  # in every split, (S,) each; with the rows


def _add_averages(
    table: MetricTable,
    data: Labelled,
    groups: Groups,
    evaluation: GroupEvaluation,
    generators: Generators,
) -> None:
    """Add all forms of the average of the classes' gaps between the groups of one attribute.

    The lower limit of an average is the average of the classes' simultaneous lower limits, as no
    gap is negative, however noisy. Its upper limit is the average of their pointwise upper limits:
    the error of an average is at most the average error, and the largest gap is that of one class.
    """

    def count(label: Labelled, level: float) -> GroupCounts:
        """Return the counts of a label, drawn as if nothing had been drawn before."""
        hard = label.column("prediction")
        at_level = replace(evaluation, level=level)
        return at_level.count(groups, label.target, hard, deepcopy(generators))

    def gap_of(counts: GroupCounts, name: str) -> _Gap:
        return _gap(counts, name, table.minimum)

    def add(name: str, limits: Limits, n: NDArray[np.int64], status: Statuses) -> None:
        value, lower, upper = limits.apply(lambda array: array[:, None])
        about = (n[:, None], Where(groups.attribute))
        table.add(name, value, *about, interval=(lower, upper), status=status[:, None])

    labels = [as_label(data, k) for k in range(len(data.classes))]
    counts_of_classes = [count(label, table.level) for label in labels]
    # Bonferroni's correction, so that the intervals of all classes hold at once.
    wider_level = 1 - (1 - table.level) / len(labels)
    wider_counts = [count(label, wider_level) for label in labels]
    for name in _GAPS:
        metric = metrics_of(BINARY, "widest")[name]
        gaps = [gap_of(counts, name) for counts in counts_of_classes]
        wider_gaps = [gap_of(counts, name) for counts in wider_counts]
        totals = [total(counts.intervals.counts_of(metric)) for counts in counts_of_classes]
        shares = np.array([np.reshape(base_rate(counts), (1, -1)) for counts in totals])
        limits = np.array(
            [
                [gap.value, wider.lower, gap.upper]
                for (gap, *_), (wider, *_) in zip(gaps, wider_gaps, strict=True)
            ]
        )
        no_gap = np.isnan(limits[:, 0])
        sizes = np.where(no_gap, np.iinfo(np.int64).max, np.stack([n for _, n, _ in gaps]))
        n = np.where(no_gap.all(axis=0), 0, sizes.min(axis=0))
        status = _status([statuses for *_, statuses in gaps], no_gap.all(axis=0), data.classes)
        for form in FORMS:
            add(f"{name}_{form}", Limits(*average_gaps(form, limits, shares)), n, status)
    # The parity whose classes are weighted within each group has no interval. It rests on all rows
    # of the groups, as each class's selection rate does.
    metric = metrics_of(BINARY, "widest")["statistical_parity"]
    first = counts_of_classes[0]
    tables = np.stack([counts.intervals.counts_of(metric) for counts in counts_of_classes])
    among = first.intervals.compared([metric])[0]
    sums = np.where(among, group_weighted(tables), NAN)
    widest = np.fmax.reduce(sums, axis=-1) - np.fmin.reduce(sums, axis=-1)
    value = np.ravel(np.where(among.sum(axis=-1) < 2, NAN, widest))
    none = np.full(len(value), NAN)
    _, *rest = gap_of(first, metric.name)
    add("statistical_parity_group_weighted", Limits(value, none, none), *rest)
    right = count(right_as_label(data), table.level)
    add("equal_opportunity_micro", *gap_of(right, "accuracy_gap"))


def _gap(counts: GroupCounts, name: str, minimum: int) -> _Gap:
    """Return a gap among the groups that have its rate."""
    metric = metrics_of(BINARY, "widest")[name]
    among = counts.intervals.compared([metric])[0]
    few = among.sum(axis=-1) < 2
    among[few] = True
    value, sizes, statuses = gaps_of_rates(counts, [metric], among[None], minimum)
    unseen = counts.unseen(among)
    gap = counts.intervals.gaps([metric], among[None], unseen=unseen[None])
    limits = (np.ravel(np.where(few, NAN, end)) for end in (value, gap.lower, gap.upper))
    return Limits(*limits), np.ravel(sizes), statuses.apply(np.ravel)


def _status(of_classes: Sequence[Statuses], no_value: Mask, classes: Sequence[str]) -> Statuses:
    """Return statuses (S,) that name the classes without a gap, of few rows or of some groups.

    Parameters
    ----------
    no_value : (S,) whether no class has a gap.
    """
    status = Statuses.ok(no_value.shape)
    flawed = np.stack([~statuses.is_ok for statuses in of_classes])

    def why(s: int) -> str:
        first = int(flawed[:, s].argmax())
        count = int(flawed[:, s].sum())
        others = f"; {count - 1} more flagged" if count > 1 else ""
        return f"class '{classes[first]}': {of_classes[first].reason[s]}{others}"

    status.flag(flawed.any(axis=0) & ~no_value, "insufficient", why)
    status.flag(flawed.any(axis=0) & no_value, "undefined", why)
    return status


def evaluate_class_abstention(
    table: MetricTable, data: Labelled, rates: Sequence[float], attribute: str
) -> None:
    """Add the error of the rows kept at each rate of abstention, everyone's and each group's."""
    if "uncertainty" not in data.predictions or attribute not in data.groups:
        return
    table_of_right = table.without_rows()
    AbstentionEvaluation(table_of_right, rates, (), attribute).run(right_as_label(data), None)
    gaps = ("abstention_statistical_parity", "abstention_equalized_odds")
    table.blocks.extend(table_of_right.blocks_of(lambda name: name not in gaps))
