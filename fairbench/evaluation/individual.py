"""Evaluates individual fairness: whether similar people get similar predictions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fairbench.data.dataset import Task
from fairbench.evaluation.predictions import Labelled
from fairbench.evaluation.table import (
    EVERYONE,
    NAN,
    MetricTable,
    Setting,
    Where,
    no_rows,
    undefined,
)
from fairbench.evaluation.uncertainties import variances
from fairbench.metrics.individual import Neighbours, individual_fairness

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
OUTCOMES = ("TN", "FP", "FN", "TP")


def evaluate_individual(table: MetricTable, data: Labelled, k: int, attribute: str) -> None:
    """Add the mean fairness among 1, 2 ... `k` neighbours: everyone's, by group and outcome.

    Of the score (or, without one, the label) and of every variance the predictions claim; all lie
    in [0, 1]. Neighbours are among the rows evaluated. Intervals take rows to be independent.
    """
    if not k or data.encoded is None or data.task is not Task.BINARY:
        return
    score = "score" if "score" in data.predictions else "prediction"
    values = {"prediction": data.column(score), **variances(data)}
    neighbours = Neighbours.of(data.encoded, k)
    parts = list(_parts(data, attribute))
    for name, column in values.items():
        fairness = individual_fairness(column, neighbours)
        for where, outcome, rows in parts:
            _add(table, f"individual_fairness_{name}", fairness[rows], where, outcome)


def _parts(data: Labelled, attribute: str) -> Iterator[tuple[Where, str, Mask]]:
    """Yield everyone, each group, and each group's true negatives, false positives ..."""
    yield EVERYONE, "", np.ones(len(data), bool)
    if attribute not in data.groups:
        return
    cell = 2 * data.target + data.column("prediction")
    labels = data.groups[attribute].cat
    for code, label in enumerate(labels.categories):
        where, rows = Where(attribute, str(label)), labels.codes.to_numpy() == code
        yield where, "", rows
        for i, outcome in enumerate(OUTCOMES):
            yield where, outcome, rows & (cell == i)


def _add(table: MetricTable, metric: str, fairness: Array, where: Where, outcome: str) -> None:
    n = len(fairness)
    for rank, losses in enumerate(fairness.T, start=1):
        setting = Setting(outcome=outcome or None, k=rank)
        if n and not np.isnan(losses[0]):
            table.add_mean(metric, losses, where, setting=setting)
            continue
        none = f"no {outcome} in group '{where.group}'" if outcome else no_rows(where.group)
        status = undefined(f"nobody has {rank} neighbours" if n else none)
        table.add(metric, NAN, n, where, setting=setting, status=status)
