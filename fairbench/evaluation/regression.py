"""Evaluates regressions, and uncertainties against the known truth of a simulated population."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fairbench.data.dataset import Task
from fairbench.evaluation.predictions import Labelled
from fairbench.evaluation.table import (
    EVERYONE,
    NAN,
    OK,
    MetricTable,
    Setting,
    Status,
    Where,
    invalid_rows,
    no_rows,
    undefined,
)
from fairbench.metrics.probability import spearman
from fairbench.metrics.registry import REGRESSION, Metric, metrics_of
from fairbench.metrics.regression import (
    distribution_parity,
    is_normal,
    normal_quantile,
    uncertainty_aware_parity,
)

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def evaluate_regression(table: MetricTable, data: Labelled, levels: Sequence[float]) -> None:
    """Add everyone's rows, each group's, and each attribute's parity beside the labels' own.

    Parameters
    ----------
    levels : of the prediction intervals whose coverage and width are reported.
    """
    _part(table, data, np.ones(len(data), bool), EVERYONE, levels)
    for attribute, labels in data.groups.items():
        codes = labels.cat.codes.to_numpy()
        parts = {str(label): codes == code for code, label in enumerate(labels.cat.categories)}
        for label, rows in parts.items():
            _part(table, data, rows, Where(attribute, label), levels)
        _parity(table, data, parts, attribute)


def _parity(table: MetricTable, data: Labelled, parts: dict[str, Mask], attribute: str) -> None:
    empty = [label for label, rows in parts.items() if not rows.any()]
    status = undefined(no_rows(empty[0])) if empty else OK
    if len(parts) == 1:
        status = undefined("only one group")
    for name, values in (
        ("statistical_parity", data.column("prediction")),
        ("label_parity", data.target),
    ):
        reason = status if status != OK else invalid_rows(~np.isfinite(values), "prediction")
        parity = NAN
        if reason == OK:
            parity = distribution_parity([values[rows] for rows in parts.values()])
        table.add(name, parity, len(data), Where(attribute), status=reason)
    _uncertainty_aware_parity(table, data, parts, attribute, status)


def _uncertainty_aware_parity(
    table: MetricTable, data: Labelled, parts: dict[str, Mask], attribute: str, status: Status
) -> None:
    """Add the parity of predictions as normals; those without an uncertainty are points."""
    mean, name = data.column("prediction"), _sd_column(data)
    sd = data.column(name) if name else np.zeros(len(data))
    reason = status if status != OK else invalid_rows(~is_normal(mean, sd), "sd")
    parity = NAN
    if reason == OK:
        groups = list(parts.values())
        parity = uncertainty_aware_parity([mean[g] for g in groups], [sd[g] for g in groups])
    metric = "uncertainty_aware_statistical_parity"
    table.add(metric, parity, len(data), Where(attribute), status=reason)


def _sd_column(data: Labelled) -> str | None:
    """Return what is read as the sd: as in the paper, whatever a method calls its uncertainty."""
    return next((name for name in ("sd", "uncertainty") if name in data.predictions), None)


def _part(
    table: MetricTable, data: Labelled, rows: Mask, where: Where, levels: Sequence[float]
) -> None:
    y, columns = (
        data.target[rows],
        {str(name): data.column(name)[rows] for name in data.predictions},
    )
    name = _sd_column(data)
    if name:
        columns["sd_or_uncertainty"] = columns[name]
    for metric in metrics_of(REGRESSION).values():
        if not metric.special and all(need in columns for need in metric.needs):
            status = _status(metric, columns)
            table.add_declared(
                metric, [y, *(columns[n] for n in metric.needs)], where, status=status
            )
    _intervals(table, data, rows, where, levels)


def _status(metric: Metric, columns: Mapping[str, Array]) -> Status:
    """Say whether the columns that a metric needs hold what it can be computed from."""
    mean = columns["prediction"]
    for need in metric.needs:
        if need.startswith("sd"):
            sd = columns[need]
            return invalid_rows(~(np.isfinite(sd) & np.isfinite(mean) & (sd > 0)), "sd")
    return invalid_rows(~np.isfinite(mean), "prediction")


def _intervals(
    table: MetricTable, data: Labelled, rows: Mask, where: Where, levels: Sequence[float]
) -> None:
    """Add coverage and width of the method's own intervals, or of the normal ones of its sd."""
    y = data.target[rows]
    for level in levels:
        setting = Setting(level=level)
        percent = f"{100 * level:g}"
        if f"lower_{percent}" in data.predictions:
            lower, upper = (data.column(f"{end}_{percent}")[rows] for end in ("lower", "upper"))
        elif "sd" in data.predictions:
            mean, half = data.column("prediction"), normal_quantile(level) * data.column("sd")
            with np.errstate(invalid="ignore"):
                lower, upper = (mean - half)[rows], (mean + half)[rows]
        else:
            continue
        status = invalid_rows(~(upper >= lower), "interval")
        covered = ((lower <= y) & (y <= upper)).astype(float)
        table.add_mean("coverage", covered, where, setting=setting, status=status)
        table.add_mean("interval_width", upper - lower, where, setting=setting, status=status)


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
