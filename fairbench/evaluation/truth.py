"""Rows against the truth of a simulated population: the only real test of an uncertainty."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairbench.data import Task
from fairbench.evaluation.labelled import Labelled
from fairbench.evaluation.table import MetricTable
from fairbench.metrics.ranking import spearman

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
        table.add("truth_rmse_mean", _rmse(data.column(estimate), mean), n)
    if "sd" in data.predictions:
        table.add("truth_rmse_sd", _rmse(data.column("sd"), sd), n)
    if "uncertainty" in data.predictions:
        correlation = spearman(data.column("uncertainty"), sd)
        status = "undefined: the uncertainty is constant" if np.isnan(correlation) else "ok"
        table.add("truth_rank_correlation", correlation, n, status=status)


def _rmse(estimate: Array, truth: Array) -> float:
    return float(np.sqrt(((estimate - truth) ** 2).mean()))
