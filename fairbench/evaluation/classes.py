"""Evaluates predictions of several classes: each class against the rest, and averages over them.

The rows of a class have its name in the column `outcome`. They come from the evaluation of labels
0 and 1, with the class as label 1. With two classes, the second's rows equal those of the binary
task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.data.dataset import Task
from fairbench.evaluation.abstention import AbstentionEvaluation
from fairbench.evaluation.groups import GroupCounts, GroupEvaluation, gaps_of_rates
from fairbench.evaluation.metric_batches import add_estimates, declared_batches
from fairbench.evaluation.predictions import AllGroups, Groups, Labelled
from fairbench.evaluation.scores import calibration_batch, ordered_bins
from fairbench.evaluation.table import NAN, Block, MetricTable, Statuses, Where
from fairbench.inference.pooled import Generators
from fairbench.inference.rates import Limits
from fairbench.metrics.group import FORMS, average_gaps, group_weighted
from fairbench.metrics.registry import BINARY, MULTICLASS, base_rate, metrics_of, total

EvaluateLabels = Callable[[MetricTable, Labelled, Generators], None]

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


@dataclass(frozen=True)
class ClassEvaluation:
    """Computes the metrics of several classes and adds them to `table`.

    Attributes
    ----------
    evaluate_labels : adds the metrics of labels 0 and 1 to a table.
    group_evaluation : counts their rates by group, at the level of the table.
    bins : how many bins the calibration error has.
    """

    table: MetricTable
    evaluate_labels: EvaluateLabels
    group_evaluation: GroupEvaluation
    bins: int

    def run(self, data: Labelled, generators: Generators) -> None:
        """Add what all classes have together, every class against the rest, and averages."""
        if len(data.classes) > 2:
            hits = right_as_label(data)
            hits = replace(hits, predictions=hits.predictions[["prediction"]])
            right = self._evaluate_label(hits, generators)
            self.table.blocks.extend(right.blocks_of(lambda name: _is_of(name, _WHOLE)))
            self._add_scores(data.with_weight())
        for k, name in enumerate(data.classes):
            table_of_class = self._evaluate_label(as_label(data, k), generators)
            if len(data.classes) == 2 and k:
                shared = table_of_class.blocks_of(lambda metric: _is_of(metric, _TOGETHER))
                self.table.blocks.extend(shared)
            blocks = table_of_class.blocks_of(lambda metric: not _is_of(metric, _TOGETHER))
            self.table.blocks.extend(_with_outcome(block, name) for block in blocks)
        for groups in data.coded.values():
            if len(groups) > 1:
                _ClassAverages(self, data, groups).add(generators)

    def _evaluate_label(self, label: Labelled, generators: Generators) -> MetricTable:
        """Return the table of a label, drawn as if nothing had been drawn before."""
        of_class = self.table.without_rows()
        self.evaluate_labels(of_class, label, deepcopy(generators))
        return of_class

    def _add_scores(self, data: Labelled) -> None:
        """Add likelihoods and calibration of three or more classes."""
        scores = scores_of(data)
        if scores is None:
            return
        all_groups, metrics = AllGroups.of_labelled(data), metrics_of(MULTICLASS)
        columns = {"scores": scores}
        batches = list(declared_batches(metrics.values(), data.target, columns, all_groups, {}))
        bins = [
            ordered_bins(data.target == k, scores[:, k], data, self.bins)
            for k in range(len(data.classes))
        ]
        batches.append(
            calibration_batch(
                "classwise_calibration_error",
                bins,
                all_groups,
                n_bins=self.bins,
                level=self.table.level,
                position=len(metrics),
            )
        )
        add_estimates(self.table, all_groups, batches)


def _is_of(name: str, metrics: Sequence[str]) -> bool:
    """Say whether a name is that of one of some metrics, or of what compares groups by one."""
    return any(name == metric or name.startswith(f"{metric}_") for metric in metrics)


def _with_outcome(block: Block, name: str) -> Block:
    return replace(block, settings=tuple(s._replace(outcome=name) for s in block.settings))


@dataclass(frozen=True, eq=False)
class _Gaps:
    """A largest gap between groups in every split, (S,) each."""

    limits: Limits
    n: NDArray[np.int64]
    status: Statuses


@dataclass(frozen=True)
class _ClassAverages:
    """Averages the classes' gaps between the groups of one attribute.

    The lower limit of an average is the average of the classes' simultaneous lower limits, as no
    gap is negative, however noisy. Its upper limit is the average of their pointwise upper limits:
    the error of an average is at most the average error, and the largest gap is that of one class.
    """

    evaluation: ClassEvaluation
    data: Labelled
    groups: Groups

    def add(self, generators: Generators) -> None:
        """Add all forms of the average of both gaps."""
        level = self.evaluation.table.level
        n_classes = len(self.data.classes)
        labels = [as_label(self.data, k) for k in range(n_classes)]
        counts_of_classes = [self._count(label, level, generators) for label in labels]
        # Bonferroni's correction, so that the intervals of all classes hold at once.
        wider_level = 1 - (1 - level) / n_classes
        wider_counts = [self._count(label, wider_level, generators) for label in labels]
        for name in _GAPS:
            metric = metrics_of(BINARY, "widest")[name]
            gaps = [self._gap(counts, name) for counts in counts_of_classes]
            wider_gaps = [self._gap(counts, name) for counts in wider_counts]
            totals = [total(counts.intervals.counts_of(metric)) for counts in counts_of_classes]
            shares = np.array([np.reshape(base_rate(counts), (1, -1)) for counts in totals])
            limits = np.array(
                [
                    [gap.limits.value, wider.limits.lower, gap.limits.upper]
                    for gap, wider in zip(gaps, wider_gaps, strict=True)
                ]
            )
            no_gap = np.stack([np.isnan(gap.limits.value) for gap in gaps])
            sizes = np.where(no_gap, np.iinfo(np.int64).max, np.stack([gap.n for gap in gaps]))
            n = np.where(no_gap.all(axis=0), 0, sizes.min(axis=0))
            status = self._status(gaps)
            for form in FORMS:
                averages = Limits(*average_gaps(form, limits, shares))
                self._add(f"{name}_{form}", _Gaps(averages, n, status))
        self._add_group_weighted(counts_of_classes)
        right = self._count(right_as_label(self.data), level, generators)
        self._add("equal_opportunity_micro", self._gap(right, "accuracy_gap"))

    def _add_group_weighted(self, counts_of_classes: Sequence[GroupCounts]) -> None:
        """Add the parity whose classes are weighted within each group, which has no interval.

        It rests on all rows of the groups, as each class's selection rate does.
        """
        metric = metrics_of(BINARY, "widest")["statistical_parity"]
        first = counts_of_classes[0]
        tables = np.stack([counts.intervals.counts_of(metric) for counts in counts_of_classes])
        among = first.intervals.compared([metric])[0]
        sums = np.where(among, group_weighted(tables), NAN)
        widest = np.fmax.reduce(sums, axis=-1) - np.fmin.reduce(sums, axis=-1)
        few = among.sum(axis=-1) < 2
        none = np.full(np.size(few), NAN)
        value = np.ravel(np.where(few, NAN, widest))
        gap = replace(self._gap(first, metric.name), limits=Limits(value, none, none))
        self._add("statistical_parity_group_weighted", gap)

    def _count(self, label: Labelled, level: float, generators: Generators) -> GroupCounts:
        """Return the counts of a label, drawn as if nothing had been drawn before."""
        evaluation = replace(self.evaluation.group_evaluation, level=level)
        hard = label.column("prediction")
        return evaluation.count(self.groups, label.target, hard, deepcopy(generators))

    def _gap(self, counts: GroupCounts, name: str) -> _Gaps:
        """Return a gap among the groups that have its rate."""
        metric = metrics_of(BINARY, "widest")[name]
        among = counts.intervals.compared([metric])[0]
        few = among.sum(axis=-1) < 2
        among[few] = True
        minimum = self.evaluation.table.minimum
        value, sizes, statuses = gaps_of_rates(counts, [metric], among[None], minimum)
        unseen = counts.unseen(among)
        gap = counts.intervals.gaps([metric], among[None], unseen=unseen[None])
        limits = (np.ravel(np.where(few, NAN, end)) for end in (value, gap.lower, gap.upper))
        return _Gaps(
            Limits(*limits),
            n=np.ravel(sizes),
            status=Statuses(*map(np.ravel, statuses)),
        )

    def _status(self, gaps: Sequence[_Gaps]) -> Statuses:
        """Return statuses that name the classes without a gap, of few rows or of some groups."""
        status = Statuses.ok(gaps[0].n.shape)
        flawed = np.stack([~gap.status.is_ok for gap in gaps])

        def why(s: int) -> str:
            first = int(flawed[:, s].argmax())
            count = int(flawed[:, s].sum())
            others = f"; {count - 1} more flagged" if count > 1 else ""
            reason = gaps[first].status.reason[s]
            return f"class '{self.data.classes[first]}': {reason}{others}"

        no_value = np.all([np.isnan(gap.limits.value) for gap in gaps], axis=0)
        status.flag(flawed.any(axis=0) & ~no_value, "insufficient", why)
        status.flag(flawed.any(axis=0) & no_value, "undefined", why)
        return status

    def _add(self, name: str, gap: _Gaps) -> None:
        value, lower, upper = (array[:, None] for array in gap.limits)
        where, status = Where(self.groups.attribute), gap.status[:, None]
        self.evaluation.table.add(
            name, value, gap.n[:, None], where, interval=(lower, upper), status=status
        )


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
