"""Evaluates thresholds per group: the least error of a score at every distance from parity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairbench.evaluation.group_intervals import CountIntervals
from fairbench.evaluation.groups import Counted
from fairbench.evaluation.predictions import Labelled
from fairbench.evaluation.table import NAN, OK, MetricTable, Setting, Status, Where
from fairbench.metrics.group_thresholds import RocHull, expected_counts, least_error
from fairbench.metrics.rates import binary_confusion, error_rate, total
from fairbench.metrics.registry import BINARY, Metric, metrics_of

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
    for name in CONSTRAINTS:
        metric = metrics_of(BINARY, "widest")[name]
        status = _status(data, metric, attribute)
        if status == OK:
            status = _status(validation, metric, attribute, of=" of the validation rows")
        rows = [(NAN,) * len(_MEASURES)] * len(relaxations)
        if status == OK:
            rows = _measured(data, validation, metric, relaxations, attribute)
        for relaxation, values in zip(relaxations, rows, strict=True):
            setting = Setting(constraint=name, relaxation=relaxation)
            for measure, value in zip(_MEASURES, values, strict=True):
                table.add(
                    f"postprocessed_{measure}",
                    value,
                    len(data),
                    Where(attribute),
                    setting=setting,
                    status=status,
                )


def _status(data: Labelled, metric: Metric, attribute: str, of: str = "") -> Status:
    """Say whether every group has the labels that the metric's rates rest on."""
    labels = data.groups[attribute].cat
    groups = [str(label) for label in labels.categories]
    zeros, codes = np.zeros(len(data)), labels.codes.to_numpy()
    counts = binary_confusion(data.target, zeros, codes, n_groups=len(groups))
    counted = Counted(attribute, groups, counts, CountIntervals(counts, np.empty(0), 0.95))
    status = counted.status(metric.rates, 1, range(len(groups)))
    return status if status == OK else status._replace(reason=status.reason + of)


def _measured(
    data: Labelled,
    validation: Labelled,
    metric: Metric,
    relaxations: Sequence[float],
    attribute: str,
) -> list[tuple[float, ...]]:
    """Return the measures at every relaxation."""
    target, score = validation.target, validation.column("score")
    group, test_group = (
        part.groups[attribute].cat.codes.to_numpy(np.intp) for part in (validation, data)
    )
    n_groups = len(data.groups[attribute].cat.categories)
    hulls = [RocHull.of(target[group == g], score[group == g]) for g in range(n_groups)]
    measured: list[tuple[float, ...]] = []
    for thresholds in least_error(hulls, metric.rates, relaxations):
        chance = thresholds.chance(data.column("score"), test_group)
        counts = expected_counts(data.target, chance, test_group, n_groups=n_groups)
        errors = [float(error_rate(total(each))[0]) for each in (counts, thresholds.counts)]
        measured.append((errors[0], float(metric(counts)), errors[1]))
    return measured
