"""Rows against the truth of a simulated population: the only real test of an uncertainty."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairbench.data.dataset import Task
from fairbench.evaluation.labelled import Labelled
from fairbench.evaluation.table import NAN, OK, MetricTable, Status, invalid_rows, undefined
from fairbench.metrics.ranks import spearman

Array = NDArray[np.float64]


def evaluate_against_truth(table: MetricTable, data: Labelled) -> None:
    """Add root mean squared errors of the predicted mean and sd, and the sd's rank correlation.

    The true sd of a label is sqrt(p (1 - p)). A method's `uncertainty` is compared as it is: in
    rank always, in size where the method claims a standard deviation (`sd`).
    """
    if data.truth is None:
        return
    if data.task is Task.BINARY:
        mean = data.truth["probability"].to_numpy()
        sd, estimate = np.sqrt(mean * (1 - mean)), "score"
    else:
        mean, sd = data.truth["mean"].to_numpy(), data.truth["sd"].to_numpy()
        estimate = "prediction"
    n = len(data)
    if estimate in data.predictions:
        values = data.column(estimate)
        _add_rmse(
            table, "truth_rmse_mean", values, mean, invalid_rows(~np.isfinite(values), estimate)
        )
    if "sd" in data.predictions:
        values = data.column("sd")
        bad = ~(np.isfinite(values) & (values >= 0))
        _add_rmse(table, "truth_rmse_sd", values, sd, invalid_rows(bad, "sd"))
    if "uncertainty" in data.predictions:
        values = data.column("uncertainty")
        status = invalid_rows(~(np.isfinite(values) & (values >= 0)), "uncertainty")
        correlation = spearman(values, sd) if status == OK else NAN
        if np.isnan(correlation) and status == OK:
            constant = "true sd" if np.ptp(values) else "uncertainty"
            status = undefined(f"the {constant} is constant")
        table.add("truth_rank_correlation", correlation, n, status=status)


def _add_rmse(table: MetricTable, name: str, estimate: Array, truth: Array, status: Status) -> None:
    value = float(np.sqrt(((estimate - truth) ** 2).mean())) if status == OK else NAN
    table.add(name, value, len(truth), status=status)
