"""Evaluates predictions of several classes: each class against the rest, and averages over them.

What a class's rows are of is their `outcome`. They are made by the evaluation of labels 0 and 1,
so that of two classes the second's are those of the label.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.data.dataset import Task
from fairbench.evaluation.abstention import AbstentionEvaluation
from fairbench.evaluation.estimates import add_estimates, declared_batches
from fairbench.evaluation.group_intervals import GapInterval
from fairbench.evaluation.groups import Counted, GroupEvaluation
from fairbench.evaluation.predictions import Groups, Labelled, Parts
from fairbench.evaluation.scores import calibration_batch, ordered_bins
from fairbench.evaluation.table import (
    NAN,
    OK,
    MetricTable,
    Row,
    Status,
    Where,
    insufficient,
    undefined,
)
from fairbench.metrics.classes import FORMS, averaged
from fairbench.metrics.rates import base_rate, selection_rate, total
from fairbench.metrics.registry import BINARY, MULTICLASS, metrics_of

Array = NDArray[np.float64]
EvaluateLabels = Callable[[MetricTable, Labelled, np.random.Generator], None]

_WHOLE = ("accuracy", "error_rate")  # of right and wrong predictions, whatever the class
# What several classes have together, and none of them against the rest.
_TOGETHER = (*_WHOLE, "balanced_accuracy", "log_loss", "brier_score", "nll")
_RATES = {"statistical_parity": selection_rate, "equal_opportunity": base_rate}


def as_label(data: Labelled, k: int) -> Labelled:
    """Return predictions of a class as those of a label: 1 is the class, 0 all others."""
    columns = {"prediction": data.column("prediction") == k}
    if f"score_{k}" in data.predictions:
        columns["score"] = data.column(f"score_{k}")
    return _labelled(data, data.target == k, columns)


def right_as_label(data: Labelled) -> Labelled:
    """Return predictions as those of a label that is always 1: 1 is right."""
    columns = {"prediction": data.column("prediction") == data.target}
    if "uncertainty" in data.predictions:
        columns["uncertainty"] = data.column("uncertainty")
    return _labelled(data, np.ones(len(data)), columns)


def _labelled(data: Labelled, target: NDArray[np.generic], columns: dict[str, Array]) -> Labelled:
    table = pd.DataFrame({name: values.astype(np.float64) for name, values in columns.items()})
    label = target.astype(np.float64)
    return replace(data, target=label, predictions=table, task=Task.BINARY, classes=())


def scores_of(data: Labelled) -> Array | None:
    """Return the probabilities (n, C) of all classes, None where there are none."""
    names = [f"score_{k}" for k in range(len(data.classes))]
    if not set(names) <= set(data.predictions):
        return None
    scores: Array = data.predictions[names].to_numpy(np.float64)
    return scores


@dataclass(frozen=True)
class ClassEvaluation:
    """Computes the metrics of several classes and adds them to `table`.

    Attributes
    ----------
    labels : evaluates predictions of labels 0 and 1.
    groups : of their rates by group, at the level of the table.
    bins, minimum : the Evaluator's.
    """

    table: MetricTable
    labels: EvaluateLabels
    groups: GroupEvaluation
    bins: int
    minimum: int

    def run(self, data: Labelled, generator: np.random.Generator) -> None:
        """Add what all classes have together, every class against the rest, and averages."""
        if len(data.classes) > 2:
            hits = right_as_label(data)
            hits = replace(hits, predictions=hits.predictions[["prediction"]])
            right = self._rows(hits, deepcopy(generator))
            self.table.rows += [row for row in right if _is_of(row, _WHOLE)]
            self._scores(data.with_weight())
        for k, name in enumerate(data.classes):
            rows = self._rows(as_label(data, k), deepcopy(generator))
            if len(data.classes) == 2 and k:
                self.table.rows += [row for row in rows if _is_of(row, _TOGETHER)]
            kept = (row for row in rows if not _is_of(row, _TOGETHER))
            self.table.rows += [(*row[:9], row[9]._replace(outcome=name)) for row in kept]
        for groups in data.coded.values():
            if len(groups) > 1:
                _Forms(self, data, groups).add(generator)

    def _rows(self, label: Labelled, generator: np.random.Generator) -> list[Row]:
        found = MetricTable(level=self.table.level, frequentist=self.table.frequentist)
        self.labels(found, label, generator)
        return found.rows

    def _scores(self, data: Labelled) -> None:
        """Add likelihoods and calibration of three or more classes."""
        scores = scores_of(data)
        if scores is None:
            return
        parts, metrics = Parts.of(len(data), data.groups, data.design), metrics_of(MULTICLASS)
        columns = {"scores": scores}
        batches = list(declared_batches(metrics.values(), data.target, columns, parts, {}))
        bins = [
            ordered_bins(data.target == k, scores[:, k], data, self.bins)
            for k in range(len(data.classes))
        ]
        name, place = "classwise_calibration_error", len(metrics)
        batches.append(calibration_batch(name, bins, parts, self.bins, self.table.level, place))
        add_estimates(self.table, parts, batches, self.minimum)


def _is_of(row: Row, names: Sequence[str]) -> bool:
    """Say whether a row is of one of these metrics, or of what compares groups by one."""
    return any(row[0] == name or row[0].startswith(f"{name}_") for name in names)


@dataclass(frozen=True)
class _Forms:
    """Averages the classes' gaps between the groups of one attribute.

    Noise makes no gap negative, so an average begins where the classes' intervals, made to hold at
    once, begin on average. It ends where those of single classes end: the error of an average is at
    most the average error, and the class of the largest gap is one class.
    """

    of: ClassEvaluation
    data: Labelled
    groups: Groups

    def add(self, generator: np.random.Generator) -> None:
        """Add the forms of both gaps."""
        level, classes = self.of.table.level, len(self.data.classes)
        labels = [as_label(self.data, k) for k in range(classes)]
        at_once = 1 - (1 - level) / classes
        counted, wider = (
            [self._counted(each, of, generator) for each in labels] for of in (level, at_once)
        )
        for name, rate in _RATES.items():
            metric, least = metrics_of(BINARY, "widest")[name], self.of.minimum
            gaps = [_gap(each, name, least) for each in counted]
            lower = [_gap(each, name, least)[1].lower for each in wider]
            counts = [total(each.intervals.counts_of(metric)) for each in counted]
            shares = np.array([rate(each) for each in counts])
            both = zip(gaps, lower, strict=True)
            ends = np.array([[value, low, gap.upper] for (value, gap, *_), low in both], float)
            status = self._status(gaps)
            n = min((n for value, _, _, n in gaps if not np.isnan(value)), default=0)
            for form in FORMS:
                value, *interval = averaged(form, ends, shares).tolist()
                self._add(f"{name}_{form}", value, interval, n, status)
        right = self._counted(right_as_label(self.data), level, generator)
        value, gap, status, n = _gap(right, "accuracy_gap", self.of.minimum)
        ends_of_it = [float(gap.lower), float(gap.upper)]
        self._add("equal_opportunity_micro", value, ends_of_it, n, status)

    def _counted(self, label: Labelled, level: float, generator: np.random.Generator) -> Counted:
        evaluation, hard = replace(self.of.groups, level=level), label.column("prediction")
        own = deepcopy(generator)
        return evaluation.count(self.groups, label.target, hard, own)

    def _status(self, gaps: Sequence[tuple[float, GapInterval, Status, int]]) -> Status:
        """Say which classes have no gap, or one of few rows or of some groups alone."""
        named = zip(self.data.classes, gaps, strict=True)
        flawed = [(name, status) for name, (_, _, status, _) in named if status != OK]
        if not flawed:
            return OK
        name, status = flawed[0]
        others = f" and {len(flawed) - 1} more" if len(flawed) > 1 else ""
        reason = f"class '{name}'{others}: {status.reason}"
        none = all(np.isnan(value) for value, *_ in gaps)
        return undefined(reason) if none else insufficient(reason)

    def _add(
        self, name: str, value: float, interval: Sequence[float], n: int, status: Status
    ) -> None:
        ends = interval[0], interval[1]
        where = Where(self.groups.attribute)
        self.of.table.add(name, value, n, where, interval=ends, status=status)


def _gap(counted: Counted, name: str, minimum: int) -> tuple[float, GapInterval, Status, int]:
    """Return a gap among the groups that have its rate, its interval, its status and least rows."""
    metric = metrics_of(BINARY, "widest")[name]
    known = counted.intervals.compared([metric])
    among = np.flatnonzero(known[0]).tolist()
    if len(among) < 2:
        everyone = range(len(counted.groups))
        n, g, rate = counted.weakest(metric.rates, everyone)
        status = undefined(f"{rate.empty} in group '{counted.groups[g]}'")
        return NAN, GapInterval(np.asarray(NAN), np.asarray(NAN)), status, n
    gap = counted.intervals.gaps([metric], known)[0]
    value = float(metric(counted.intervals.counts_of(metric)[among]))
    n = counted.weakest(metric.rates, among)[0]
    return value, gap, counted.gap_status(metric, minimum, among, value), n


def evaluate_class_abstention(
    table: MetricTable, data: Labelled, rates: Sequence[float], attribute: str
) -> None:
    """Add the error of the rows kept at each rate of abstention, everyone's and each group's."""
    if "uncertainty" not in data.predictions or attribute not in data.groups:
        return
    found = MetricTable(level=table.level, frequentist=table.frequentist)
    AbstentionEvaluation(found, rates, (), attribute).run(right_as_label(data), None)
    gaps = ("abstention_statistical_parity", "abstention_equalized_odds")
    table.rows += [row for row in found.rows if row[0] not in gaps]
