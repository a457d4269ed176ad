"""Evaluates regressions, and uncertainties against the known truth of a simulated population."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.data.dataset import Task
from fairbench.evaluation import metric_batches
from fairbench.evaluation.predictions import AllGroups, Groups, Labelled
from fairbench.evaluation.scores import interval_batches, rate_batch
from fairbench.evaluation.table import NAN, MetricTable, Statuses, in_group
from fairbench.inference import scores
from fairbench.inference.gaps import distance_limits
from fairbench.inference.means import Level, divide_by_scale, explained_variance, root_limits
from fairbench.inference.rates import Limits
from fairbench.metrics import regression
from fairbench.metrics.probability import spearman
from fairbench.metrics.registry import BINARY, REGRESSION, Metric, metrics_of


def evaluate_regression(table: MetricTable, data: Labelled, levels: Sequence[float]) -> None:
    """Add rows for everyone and each group, and each attribute's parity and that of its labels.

    Where there are intervals and no predictions, the intervals alone are evaluated.

    Parameters
    ----------
    levels : the levels of the prediction intervals whose coverage and width are reported.
    """
    weighted = data.with_weight()

    def add_parities(groups: Groups) -> None:
        if groups.attribute and "prediction" in data.predictions:
            plain = table.without_rows()
            _add_parities(plain, data, groups.attribute)
            table.add_unweighted(plain.blocks, data.design)

    all_groups = AllGroups.of_labelled(weighted)
    columns = {str(name): weighted.column(name) for name in weighted.predictions}
    if name := _sd_column(weighted):
        columns["sd_or_uncertainty"] = columns[name]

    def statuses(metric: Metric) -> Statuses:
        mean = columns["prediction"]
        sd = next((columns[need] for need in metric.needs if need.startswith("sd")), None)
        if sd is None:
            return all_groups.statuses(~np.isfinite(mean), "prediction")
        return all_groups.statuses(~(np.isfinite(sd) & np.isfinite(mean) & (sd > 0)), "sd")

    metrics = metrics_of(REGRESSION) if "prediction" in columns else {}
    ends = {level: at for level in levels if (at := _ends(weighted, level)) is not None}
    about = weighted.target, columns, all_groups, KINDS, statuses
    batches = [
        *metric_batches.declared_batches(metrics.values(), *about),
        *interval_batches(weighted.target, ends, all_groups),
    ]
    metric_batches.add_estimates(table, all_groups, batches, after_each=add_parities)


_PARITIES = ("statistical_parity", "label_parity", "uncertainty_aware_statistical_parity")


def _add_parities(table: MetricTable, data: Labelled, attribute: str) -> None:
    """Add the parities of one attribute, of every split.

    Predictions with an uncertainty are normals, those without are points. The functions of groups
    of normals are means of their rows', which vary less than those of points.
    """
    groups = data.coded[attribute]
    name = _sd_column(data)
    mean, sd = data.column("prediction"), data.column(name) if name else np.zeros(len(data))
    statuses = Statuses.stacked(
        [
            data.statuses(~np.isfinite(mean), "prediction"),
            data.statuses(~np.isfinite(data.target), "prediction"),
            data.statuses(~regression.is_normal(mean, sd), "sd"),
        ]
    )
    empty = groups.size == 0
    statuses.flag(
        empty.any(axis=1)[:, None],
        "undefined",
        lambda _, s, __: f"no rows{in_group(groups.names[int(empty[s].argmax())])}",
    )
    statuses.flag(np.array(len(groups) == 1), "undefined", "only one group")
    means, targets, sds = map(groups.split, (mean, data.target, sd))
    values, lower, upper = np.full((3, len(_PARITIES), data.splits, 1), NAN)
    for i, s, _ in np.argwhere(statuses.is_ok):
        of_split = slice(s * len(groups), (s + 1) * len(groups))
        if _PARITIES[i] == "uncertainty_aware_statistical_parity":
            parity = regression.uncertainty_aware_parity(means[of_split], sds[of_split])
            distances, known = np.full((len(groups),) * 2, parity), len(groups) == 2
        else:
            samples = targets if _PARITIES[i] == "label_parity" else means
            distances, known = regression.distribution_distances(samples[of_split]), True
        limits = distance_limits(distances, groups.size[s], level=table.level, known=known)
        values[i, s], lower[i, s], upper[i, s] = limits
    fewest = groups.size.min(axis=1)[:, None]
    about, ends = (values, data.sizes, attribute), (lower, upper)
    table.add(_PARITIES, *about, interval=ends, needed="", status=statuses, fewest=fewest)


def _sd_column(data: Labelled) -> str | None:
    """Return what is read as the sd: as in the paper, whatever a method calls its uncertainty."""
    return next((name for name in ("sd", "uncertainty") if name in data.predictions), None)


def _ends(data: Labelled, level: float) -> tuple[Floats, Floats] | None:
    """Return both ends of the method's own intervals, or of the normal ones of its sd, if any."""
    percent = f"{100 * level:g}"
    if f"lower_{percent}" in data.predictions:
        return data.column(f"lower_{percent}"), data.column(f"upper_{percent}")
    if "sd" not in data.predictions:
        return None
    mean = data.column("prediction")
    half = regression.normal_quantile(level) * data.column("sd")
    with np.errstate(invalid="ignore"):
        return mean - half, mean + half


def _root_mean(arrays: Sequence[Floats], all_groups: AllGroups) -> metric_batches.ClosedForm:
    """Return the root mean squared errors of all cells, with their intervals."""
    # Halves of numbers that do not overflow have differences that do not.
    target, prediction = (values / 2 for values in arrays)
    half_errors = all_groups.rows(np.nan_to_num(target - prediction, posinf=0, neginf=0))
    scaled_errors, scale = divide_by_scale(half_errors, all_groups.codes, len(all_groups))
    squares = scaled_errors**2
    moments, totals = all_groups.moments(squares)
    tails = all_groups.tail_index(squares)
    with np.errstate(over="ignore"):
        value = 2 * scale * np.sqrt(all_groups.mean_of(squares))

    def limits(level: Level) -> Limits:
        root = root_limits(moments, tails, level=level)
        with np.errstate(over="ignore"):
            return Limits(*(2 * scale * limit for limit in root))

    return value, limits, all_groups.too_heavy(tails), totals


def _explained_variance(
    arrays: Sequence[Floats], all_groups: AllGroups
) -> metric_batches.ClosedForm:
    """Return the coefficients of determination of all cells, with their intervals."""
    target, prediction = (
        all_groups.rows(np.nan_to_num(array, posinf=0, neginf=0)) for array in arrays
    )
    value, limits, tails, totals = explained_variance(
        target, prediction, all_groups.codes, len(all_groups), sample=all_groups.sample
    )
    return value, limits, all_groups.too_heavy(tails.max(axis=0)), totals


KINDS: metric_batches.Kinds = {"root_mean": _root_mean, "explained": _explained_variance}


def evaluate_against_truth(table: MetricTable, data: Labelled) -> None:
    """Add root mean squared errors of the predicted mean and sd, and the sd's rank correlation.

    The true sd of a label is sqrt(p (1 - p)). Of several classes squares and variances are half
    their sums, which of two classes are those of a label. A method's `uncertainty` is compared as
    it is: in rank always, in size where the method claims a standard deviation (`sd`).
    """
    if data.truth is None:
        return
    everyone = AllGroups((data.everyone,))

    def add(name: str, *about: Any) -> None:
        """Add a metric from its closed form and its statuses."""
        batch = metric_batches.Batch.of_form(metric_batches.RowLabel(name), *about)
        metric_batches.add_estimates(table, everyone, [batch])

    if data.task is Task.BINARY:
        mean = data.truth["probability"].to_numpy()
        sd = np.sqrt(mean * (1 - mean))
        estimate = "score"
    elif data.task is Task.MULTICLASS:
        p = data.truth[[f"probability_{k}" for k in range(len(data.classes))]].to_numpy()
        sd = np.sqrt((p * (1 - p)).sum(axis=1) / 2)
        estimate = "score_0"
        mean = np.zeros(len(data))
    else:
        mean, sd = data.truth["mean"].to_numpy(), data.truth["sd"].to_numpy()
        estimate = "prediction"
    if estimate in data.predictions:
        values = data.column(estimate)
        if data.task is Task.MULTICLASS:
            away = data.predictions[[f"score_{k}" for k in range(p.shape[1])]].to_numpy() - p
            values = np.sqrt((away**2).sum(axis=1) / 2)
        form = _root_mean((mean, values), everyone)
        add("truth_rmse_mean", form, everyone.statuses(~np.isfinite(values), estimate))
    if "sd" in data.predictions:
        values = data.column("sd")
        bad = ~(np.isfinite(values) & (values >= 0))
        add("truth_rmse_sd", _root_mean((sd, values), everyone), everyone.statuses(bad, "sd"))
    if "uncertainty" in data.predictions:
        values = data.column("uncertainty")
        status = everyone.statuses(~(np.isfinite(values) & (values >= 0)), "uncertainty")
        correlation = np.full(data.splits, NAN)
        for s in np.flatnonzero(status.is_ok):
            rows = data.slices[s]
            correlation[s] = spearman(values[rows], sd[rows])
        too_few = everyone.too_few(scores.RANK_ROWS)

        def limits(level: Level) -> Limits:
            return scores.correlation_limits(correlation, everyone.size, level=float(level))

        def constant(s: int) -> str:
            what = "true sd" if np.ptp(values[data.slices[s]]) else "uncertainty"
            return f"the {what} is constant"

        add("truth_rank_correlation", (correlation, limits, too_few, None), status, constant)


# Evaluates what is cut off the groups' sequences, and what is filled up.


def evaluate_truncation(
    table: MetricTable, data: Labelled, lengths: NDArray[np.int64], limits: NDArray[np.int64]
) -> None:
    """Add the share of rows that is truncated, and those of frames cut off and filled up.

    Of everyone and of each group, with intervals and what compares the groups.

    Parameters
    ----------
    lengths : (n, M) frames of each row in M modalities.
    limits : (M,) how many frames of a row are read, or (n, M) if that differs by split.
    """
    all_groups = AllGroups.of_labelled(data)
    arguments = data.target, lengths, limits
    names = "truncated_rows", "truncated_frames", "padded_frames"
    truncated, *shares = (metrics_of(BINARY)[name](*arguments) for name in names)
    labels = [
        metric_batches.RowLabel(name, least=0.0, most=1.0, compared_as=name) for name in names
    ]
    batches = [
        rate_batch(truncated[None], labels[:1], all_groups),
        metric_batches.mean_batch(np.stack(shares), labels[1:], all_groups),
    ]
    metric_batches.add_estimates(table, all_groups, batches)
