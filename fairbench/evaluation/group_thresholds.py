"""Evaluates thresholds for each group: a score's error and gaps under them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.evaluation.predictions import Groups, Labelled
from fairbench.evaluation.table import NAN, MetricTable, Setting, Statuses, Where, undefined
from fairbench.metrics.group import RocHull, Weights, expected_counts, least_error
from fairbench.metrics.registry import (
    BINARY,
    Counts,
    Metric,
    binary_confusion,
    error_rate,
    metrics_of,
    total,
)

# The gaps that thresholds can close by a linear programme.
CONSTRAINTS = (
    "statistical_parity",
    "equal_opportunity",
    "false_positive_rate_gap",
    "equalized_odds",
)
_MEASURES = ("error_rate", "gap", "validation_error_rate")


def evaluate_group_thresholds(
    table: MetricTable,
    data: Labelled,
    validation: Labelled | None,
    relaxations: Sequence[float],
    attribute: str,
) -> None:
    """Add error and gap under every constraint at every relaxation of it.

    Thresholds are chosen on the validation rows. At a relaxation of 1 the score is unprocessed:
    its error alone counts. Values are expectations over the thresholds' draws.
    """
    missing = attribute not in data.groups or "score" not in data.predictions
    if validation is None or missing or not relaxations:
        return
    test = _ScoredGroups(data, data.coded[attribute])
    held_out = _ScoredGroups(validation, validation.coded[attribute])
    thresholds = _thresholds_of_splits(test, held_out)
    constraints = [metrics_of(BINARY, "widest")[name] for name in CONSTRAINTS]
    shape = len(constraints), len(relaxations), len(_MEASURES), data.splits
    values = np.full(shape, NAN)
    statuses = Statuses.ok(shape)
    for c, metric in enumerate(constraints):
        defined = []
        for split in range(data.splits):
            reason = _why_undefined(metric, test, held_out, split)
            if not reason:
                defined.append(split)
                continue
            statuses.put((c, ..., split), undefined(reason))
        hulls = [thresholds[split].hulls for split in defined]
        weights = least_error(hulls, metric.rates, relaxations)
        for split, split_weights in zip(defined, weights, strict=True):
            values[c, ..., split] = thresholds[split].measures(split_weights, metric)
    settings = [
        Setting(constraint=metric.name, relaxation=relaxation)
        for metric in constraints
        for relaxation in relaxations
        for _ in _MEASURES
    ]
    # (constraints, measures, S), as `values` without the relaxations.
    fewest = [
        [data.sizes[:, 0], test.fewest(metric), validation.sizes[:, 0]] for metric in constraints
    ]
    flat = len(settings), data.splits, 1
    names = [f"postprocessed_{measure}" for measure in _MEASURES]
    table.add(
        names * (len(constraints) * len(relaxations)),
        values.reshape(flat),
        data.sizes,
        Where(attribute),
        setting=settings,
        status=statuses.apply(lambda array: array.reshape(flat)),
        fewest=np.broadcast_to(np.expand_dims(fewest, 1), shape).reshape(flat),
    )


@dataclass(frozen=True)
class _ScoredGroups:
    """Labels and scores of the groups of one attribute, split by split."""

    data: Labelled
    groups: Groups

    @cached_property
    def _labels_and_scores(self) -> list[tuple[Floats, Floats]]:
        """The labels and the scores (n,) of each group, for all splits one after the other."""
        columns = self.data.target, self.data.column("score")
        return list(zip(*map(self.groups.split, columns), strict=True))

    def of_split(self, split: int) -> list[tuple[Floats, Floats]]:
        """Return the labels and the scores (n,) of each group in one split."""
        groups = len(self.groups)
        return self._labels_and_scores[split * groups : (split + 1) * groups]

    @cached_property
    def _label_counts(self) -> Counts:
        """How many rows (S, G, 4) of each group have which label, in the cells TN and FN."""
        counts = binary_confusion(
            self.data.target,
            np.zeros(len(self.data)),
            self.groups.codes,
            n_groups=self.groups.cells,
        )
        return counts.reshape(self.groups.splits, len(self.groups), 4)

    def fewest(self, metric: Metric) -> NDArray[np.int64]:
        """Return the fewest rows (S,) of any group that one of a metric's rates rests on."""
        sizes = [rate.size(self._label_counts) for rate in metric.rates]
        return np.asarray(np.min(sizes, axis=(0, -1)), np.int64)

    def missing_label(self, metric: Metric, split: int, whose: str = "") -> str:
        """Return which label a group of a split lacks that the metric's rates rest on, if any."""
        for rate in metric.rates:
            sizes = rate.size(self._label_counts[split])
            if not sizes.all():
                return f"{rate.empty} in group '{self.groups.names[int(sizes.argmin())]}'{whose}"
        return ""


def _why_undefined(metric: Metric, test: _ScoredGroups, held_out: _ScoredGroups, split: int) -> str:
    """Return why a metric cannot constrain the thresholds of a split; empty where it can."""
    return test.missing_label(metric, split) or held_out.missing_label(
        metric, split, " of the validation rows"
    )


@dataclass(frozen=True, eq=False)
class _SplitThresholds:
    """The thresholds that are worth mixing in one split, found when first asked for.

    Attributes
    ----------
    test, held_out : the labels and the scores (n,) of each group, of both kinds of rows.
    """

    test: list[tuple[Floats, Floats]]
    held_out: list[tuple[Floats, Floats]]

    @cached_property
    def hulls(self) -> list[RocHull]:
        """The thresholds of each group, from the validation rows."""
        return [RocHull.of(target, score) for target, score in self.held_out]

    @cached_property
    def test_counts(self) -> list[Floats]:
        """The confusion counts (V, 4) of each group's test rows at its thresholds."""
        return [
            hull.counts_of(target, score)
            for hull, (target, score) in zip(self.hulls, self.test, strict=True)
        ]

    def measures(self, weights: Weights, metric: Metric) -> Floats:
        """Return the `_MEASURES` (E, 3) of mixtures of the thresholds, at E relaxations."""
        tested = expected_counts(weights, self.test_counts)
        validated = expected_counts(weights, [hull.counts for hull in self.hulls])
        error, validation_error = (
            error_rate(total(counts))[:, 0] for counts in (tested, validated)
        )
        return np.stack([error, metric(tested), validation_error], axis=-1)


def _thresholds_of_splits(test: _ScoredGroups, held_out: _ScoredGroups) -> list[_SplitThresholds]:
    """Return the thresholds of every split, which all constraints share."""
    return [
        _SplitThresholds(test.of_split(split), held_out.of_split(split))
        for split in range(test.groups.splits)
    ]
