"""Evaluates regressions, and uncertainties against the known truth of a simulated population."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fairbench.data.dataset import Task
from fairbench.evaluation.estimates import (
    Batch,
    Closed,
    Kinds,
    add_estimates,
    declared_batches,
)
from fairbench.evaluation.prediction_sets import interval_batches
from fairbench.evaluation.predictions import Groups, Labelled, Parts
from fairbench.evaluation.table import (
    NAN,
    OK,
    MetricTable,
    Status,
    Where,
    invalid_rows,
    no_rows,
    undefined,
)
from fairbench.inference import means, scores
from fairbench.inference.gaps import distance_limits
from fairbench.inference.means import ROOT_ROWS, Moments, root_limits
from fairbench.inference.scores import RANK_ROWS, correlation_limits
from fairbench.metrics.probability import spearman
from fairbench.metrics.registry import REGRESSION, Metric, metrics_of
from fairbench.metrics.regression import (
    distribution_distances,
    is_normal,
    normal_quantile,
    uncertainty_aware_parity,
)

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def evaluate_regression(
    table: MetricTable, data: Labelled, levels: Sequence[float], *, minimum: int = 0
) -> None:
    """Add everyone's rows, each group's, and each attribute's parity beside the labels' own.

    Parameters
    ----------
    levels : of the prediction intervals whose coverage and width are reported.
    minimum : metrics of fewer rows are flagged.
    """
    counted = data.with_weight()

    def parity(groups: Groups) -> None:
        if groups.attribute:
            plain = MetricTable(level=table.level, frequentist=table.frequentist)
            _parity(plain, data, Groups.of(groups.attribute, data.groups[groups.attribute]))
            table.add_unweighted(plain.rows, data.design)

    batches = list(_batches(counted, levels))
    add_estimates(table, _parts(counted), batches, minimum, then=parity)


def _parts(data: Labelled) -> Parts:
    return Parts.of(len(data), data.groups, data.design)


def _batches(data: Labelled, levels: Sequence[float]) -> Iterator[Batch]:
    columns = {str(name): data.column(name) for name in data.predictions}
    name, parts = _sd_column(data), _parts(data)
    if name:
        columns["sd_or_uncertainty"] = columns[name]

    def statuses(metric: Metric) -> list[Status]:
        return parts.statuses(*_bad(metric, columns))

    metrics = metrics_of(REGRESSION)
    yield from declared_batches(metrics.values(), data.target, columns, parts, KINDS, statuses)
    ends = {level: each for level in levels if (each := _ends(data, level)) is not None}
    yield from interval_batches(data.target, ends, parts, len(metrics))


def _parity(table: MetricTable, data: Labelled, groups: Groups) -> None:
    empty = [name for name, n in zip(groups.names, groups.size, strict=True) if not n]
    status = undefined(no_rows(empty[0])) if empty else OK
    if len(groups) == 1:
        status = undefined("only one group")
    for name, values in (
        ("statistical_parity", data.column("prediction")),
        ("label_parity", data.target),
    ):
        reason = status if status != OK else invalid_rows(~np.isfinite(values), "prediction")
        distances = np.zeros((len(groups), len(groups)))
        if reason == OK:
            distances = distribution_distances(groups.split(values))
        _add_distance(table, name, distances, groups, reason)
    _uncertainty_aware_parity(table, data, groups, status)


def _uncertainty_aware_parity(
    table: MetricTable, data: Labelled, groups: Groups, status: Status
) -> None:
    """Add the parity of predictions as normals; those without an uncertainty are points.

    The functions of its groups are means of their rows', which vary less than those of points.
    """
    mean, name = data.column("prediction"), _sd_column(data)
    sd = data.column(name) if name else np.zeros(len(data))
    reason = status if status != OK else invalid_rows(~is_normal(mean, sd), "sd")
    parity = NAN
    if reason == OK:
        parity = uncertainty_aware_parity(groups.split(mean), groups.split(sd))
    distances = np.full((len(groups), len(groups)), parity)
    metric = "uncertainty_aware_statistical_parity"
    _add_distance(table, metric, distances, groups, reason, known=len(groups) == 2)


def _add_distance(
    table: MetricTable,
    name: str,
    distances: Array,
    groups: Groups,
    status: Status,
    *,
    known: bool = True,
) -> None:
    value, interval, where = NAN, (NAN, NAN), Where(groups.attribute)
    if status == OK:
        found = distance_limits(distances, groups.size, level=table.level, known=known)
        value, interval = float(found.value), (float(found.lower), float(found.upper))
    n = len(groups.codes)
    table.add_bounded(name, value, n, interval, "", where, status=status)


def _sd_column(data: Labelled) -> str | None:
    """Return what is read as the sd: as in the paper, whatever a method calls its uncertainty."""
    return next((name for name in ("sd", "uncertainty") if name in data.predictions), None)


def _bad(metric: Metric, columns: Mapping[str, Array]) -> tuple[Mask, str]:
    """Say which rows do not hold what a metric can be computed from, and what is wrong there."""
    mean = columns["prediction"]
    for need in metric.needs:
        if need.startswith("sd"):
            sd = columns[need]
            return ~(np.isfinite(sd) & np.isfinite(mean) & (sd > 0)), "sd"
    return ~np.isfinite(mean), "prediction"


def _ends(data: Labelled, level: float) -> tuple[Array, Array] | None:
    """Return both ends of the method's own intervals, or of the normal ones of its sd, if any."""
    percent = f"{100 * level:g}"
    if f"lower_{percent}" in data.predictions:
        return data.column(f"lower_{percent}"), data.column(f"upper_{percent}")
    if "sd" not in data.predictions:
        return None
    mean, half = data.column("prediction"), normal_quantile(level) * data.column("sd")
    with np.errstate(invalid="ignore"):
        return mean - half, mean + half


def _root_mean(arrays: Sequence[Array], parts: Parts) -> Closed:
    target, prediction = arrays
    squares = np.nan_to_num((target - prediction) ** 2, posinf=0)
    flat = parts.rows(squares)
    moments, totals = parts.moments(flat)
    few, value = parts.too_few(means.ROOT_ROWS), np.sqrt(parts.mean_of(flat))
    return value, lambda level: means.root_limits(moments, level=level), few, totals


def _explained(arrays: Sequence[Array], parts: Parts) -> Closed:
    target, prediction = (parts.rows(np.nan_to_num(each, posinf=0, neginf=0)) for each in arrays)
    found = scores.explained(target, prediction, parts.codes, len(parts), sample=parts.sample)
    few = parts.too_few(scores.EXPLAINED_ROWS)
    limits = lambda level: scores.explained_limits(found, level=level)  # noqa: E731
    return 1 - found.left, limits, few, found.totals


KINDS: Kinds = {"root_mean": _root_mean, "explained": _explained}


def evaluate_against_truth(table: MetricTable, data: Labelled) -> None:
    """Add root mean squared errors of the predicted mean and sd, and the sd's rank correlation.

    The true sd of a label is sqrt(p (1 - p)). Of several classes squares and variances are half
    their sums, which of two classes are those of a label. A method's `uncertainty` is compared as
    it is: in rank always, in size where the method claims a standard deviation (`sd`).
    """
    if data.truth is None:
        return
    if data.task is Task.BINARY:
        mean = data.truth["probability"].to_numpy()
        sd, estimate = np.sqrt(mean * (1 - mean)), "score"
    elif data.task is Task.MULTICLASS:
        p = data.truth[[f"probability_{k}" for k in range(len(data.classes))]].to_numpy()
        sd, estimate = np.sqrt((p * (1 - p)).sum(axis=1) / 2), "score_0"
        mean = np.zeros(len(data))
    else:
        mean, sd = data.truth["mean"].to_numpy(), data.truth["sd"].to_numpy()
        estimate = "prediction"
    n = len(data)
    if estimate in data.predictions:
        values = data.column(estimate)
        if data.task is Task.MULTICLASS:
            away = data.predictions[[f"score_{k}" for k in range(p.shape[1])]].to_numpy() - p
            values = np.sqrt((away**2).sum(axis=1) / 2)
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
        limits = correlation_limits(correlation, n, level=table.level)
        table.add_bounded(
            "truth_rank_correlation",
            correlation,
            n,
            (float(limits.lower), float(limits.upper)),
            f"n={n}, an interval needs {RANK_ROWS}",
            status=status,
        )


def _add_rmse(table: MetricTable, name: str, estimate: Array, truth: Array, status: Status) -> None:
    n, value, interval = len(truth), NAN, (NAN, NAN)
    if status == OK:
        squares = (estimate - truth) ** 2
        value = float(np.sqrt(squares.mean()))
        limits = root_limits(Moments.of(squares), level=table.level)
        interval = (min(float(limits.lower), value), max(float(limits.upper), value))
    lacking = f"n={n}, an interval needs {ROOT_ROWS}"
    table.add_bounded(name, value, n, interval, lacking, status=status)
