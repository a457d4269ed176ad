"""Errors and gaps: frontiers, and margins of interventions over relaxed thresholds.

A frontier is the set of points (gap, error) of a task that thresholds or interventions reach.
"Relaxed" thresholds are chosen to keep a gap below a limit, with one setting for each limit.

Thresholds per group, chosen on validation rows for the unconstrained model, trace a frontier of
their own: "unprocessing" (Cruz and Hardt 2024, ICLR, "Unprocessing seven years of algorithmic
fairness"). An intervention is compared with that frontier at the gap that the intervention has. In
each split, it is compared with a mixture of two threshold settings that has this gap on average
over all other splits, so that the mixture is not chosen on the split it is judged on.

The *margin* is the intervention's error minus that of the mixture, so that thresholds win where it
is above 0. The *excess* is the mixture's gap minus the intervention's, which is above 0 on average
where no setting has so small a gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from fairbench.comparison.atlas.findings import (
    FrontierPoint,
    MeanFrontierPoint,
    TaskVerdict,
    UnprocessingMargin,
)
from fairbench.comparison.atlas.values import (
    AtlasValues,
    Contrast,
    contrasts,
    epsilon_of,
    mean_differences,
    options_without,
)
from fairbench.comparison.atlas.verdicts import FAILS, HOLDS, OPEN, all_hold
from fairbench.core.arrays import Floats
from fairbench.inference.comparing.family_means import family_means, mean_over_families

GAPS = ("statistical_parity", "equalized_odds")
ERROR = "error_rate"
NONE = "none"


def frontier_points(
    values: AtlasValues, *, method: str, level: float = 0.95
) -> list[FrontierPoint]:
    """Return the points of every task: interventions, and relaxed thresholds without intervention.

    Parameters
    ----------
    method : the uncertainty method whose runs are shown.
    """
    error = values.metric(ERROR)
    rows = values.approaches
    points: list[FrontierPoint] = []
    for gap_metric in GAPS:
        gap = values.metric(gap_metric)
        is_for_gap = rows["setting"].eq("") | rows["setting"].str.startswith(f"{gap_metric}<=")
        relaxed = rows["setting"].ne("") & rows["intervention"].ne(NONE)
        positions = np.flatnonzero(is_for_gap & ~relaxed & rows["method"].eq(method))
        for task in range(len(values.tasks)):
            error_and_gap = np.stack([error[positions, task], gap[positions, task]])
            points += _points_of_task(values, task, gap_metric, positions, error_and_gap, level)
    return points


def _points_of_task(
    values: AtlasValues,
    task: int,
    gap_metric: str,
    positions: NDArray[np.intp],
    error_and_gap: Floats,
    level: float,
) -> Iterator[FrontierPoint]:
    """Yield the points of one task and gap, with simultaneous intervals."""
    is_known = np.asarray(np.isfinite(error_and_gap).all(axis=0))
    with_two_splits = np.flatnonzero(is_known.sum(axis=1) > 1)
    tail = (1 - level) / 2 / max(2 * len(with_two_splits), 1)
    task_row = values.about_tasks[task]
    for position in with_two_splits:
        series = error_and_gap[:, int(position)][:, is_known[position]]
        mean, half = _mean(series, float(values.test_share[task]), tail)
        row = values.about_approaches[positions[position]]
        low = np.maximum(mean - half, 0)
        yield FrontierPoint(
            dataset=task_row["dataset"],
            protect=task_row["protect"],
            learner=row["learner"],
            intervention=row["intervention"],
            options=row["options"],
            setting=row["setting"],
            gap_metric=gap_metric,
            error=float(mean[0]),
            error_lower=float(low[0]),
            error_upper=float(mean[0] + half[0]),
            gap=float(mean[1]),
            gap_lower=float(low[1]),
            gap_upper=float(mean[1] + half[1]),
        )


def _mean(series: Floats, test_share: float, tail: float) -> tuple[Floats, Floats]:
    """Return means over R splits of values (..., R) and half the widths of their t intervals.

    The variance is corrected for overlapping training rows of splits (Nadeau and Bengio 2003).
    """
    splits = series.shape[-1]
    variance = series.var(axis=-1, ddof=1) * (1 / splits + test_share / (1 - test_share))
    return series.mean(axis=-1), -special.stdtrit(splits - 1, tail) * np.sqrt(variance)


def mean_frontiers(values: AtlasValues) -> list[MeanFrontierPoint]:
    """Return the mean changes by interventions and relaxed thresholds, averaged over families.

    Interventions that were run on too few tasks to be ranked are left out.
    """
    points: list[MeanFrontierPoint] = []
    for gap_metric in GAPS:
        relaxed = values.table["setting"].str.startswith(f"{gap_metric}<=")
        relaxed &= values.table["intervention"].eq(NONE)
        shown_values = values.only(values.table["setting"].eq("") | relaxed)
        labelled = [
            (part, contrast)
            for part, base in _UNCONSTRAINED.items()
            for contrast in contrasts(shown_values, part, base)
        ]
        labelled = [
            part_and_contrast
            for part_and_contrast in labelled
            if _on_enough_tasks(shown_values, gap_metric, part_and_contrast[1])
        ]
        if labelled:
            points += _mean_frontier(shown_values, gap_metric, labelled)
    return points


def _on_enough_tasks(values: AtlasValues, gap_metric: str, contrast: Contrast) -> bool:
    """Return whether error and gap changed on enough tasks with two splits or more."""
    changes = [contrast.mean_difference(values.metric(metric)) for metric in (ERROR, gap_metric)]
    is_measured = np.isfinite(changes).all(axis=0).sum(axis=1) > 1
    return int(is_measured.sum()) >= values.fewest_tasks


def _mean_frontier(
    values: AtlasValues, gap_metric: str, labelled: Sequence[tuple[str, Contrast]]
) -> Iterator[MeanFrontierPoint]:
    """Yield the points of one gap that rest on enough families."""
    compared = [contrast for _, contrast in labelled]
    changes = [mean_differences(values.metric(metric), compared) for metric in (ERROR, gap_metric)]
    measured = values.estimate_differences(np.concatenate(changes))
    # The two intervals of a point hold together, so that it lies in its ellipse's box at 95 %.
    means = np.stack(mean_over_families(family_means(measured), level=1 - 0.05 / 2))
    for position, (part, contrast) in enumerate(labelled):
        means_and_limits = means[
            :, [position, len(labelled) + position]
        ]  # of its error, of its gap
        if not np.isfinite(means_and_limits).all():
            continue
        (error, gap), (error_lower, gap_lower), (error_upper, gap_upper) = means_and_limits.tolist()
        yield MeanFrontierPoint(
            intervention=contrast.label if part == "intervention" else "",
            setting=contrast.label if part == "setting" else "",
            group_at_prediction=contrast.needs_group,
            gap_metric=gap_metric,
            tasks=int(measured.known[position].sum()),
            families=int(measured.families[position]),
            error=error,
            error_lower=error_lower,
            error_upper=error_upper,
            gap=gap,
            gap_lower=gap_lower,
            gap_upper=gap_upper,
        )


_UNCONSTRAINED = {"intervention": NONE, "setting": ""}


@dataclass(frozen=True, eq=False)
class MarginSeries:
    """An intervention on a task, against thresholds of the same learner and method, by split.

    Attributes
    ----------
    approach, task : the indices of the intervention's approach and of the task.
    margins : (R,) the intervention's error minus that of thresholds at the same gap.
    excess : (R,) the gap of thresholds minus the intervention's; 0 on average where thresholds can
        reach the intervention's gap.
    gap : the intervention's mean gap.
    """

    approach: int
    task: int
    gap_metric: str
    margins: Floats
    excess: Floats
    gap: float


def margin_series(values: AtlasValues) -> list[MarginSeries]:
    """Return every intervention on every task against thresholds of the unconstrained model."""
    rows = values.approaches.to_dict("records")
    keys = [
        (row["learner"], row["method"], options_without("intervention", row["options"]))
        for row in rows
    ]
    error = values.metric(ERROR)
    all_series = []
    for gap_metric in GAPS:
        gap = values.metric(gap_metric)
        relaxed: dict[tuple[str, ...], list[int]] = {}
        for position, row in enumerate(rows):
            is_of_this_gap = row["setting"].startswith(f"{gap_metric}<=")
            if is_of_this_gap and row["intervention"] == NONE:
                relaxed.setdefault(keys[position], []).append(position)
        for position, row in enumerate(rows):
            if row["intervention"] == NONE or row["setting"] or keys[position] not in relaxed:
                continue
            settings = relaxed[keys[position]]
            for task in range(len(values.tasks)):
                points = np.stack(
                    [error[[position, *settings], task], gap[[position, *settings], task]]
                )
                compared = compare_with_thresholds(points)
                if compared is not None:
                    all_series.append(MarginSeries(position, task, gap_metric, *compared))
    return all_series


class MarginsOfSplits(NamedTuple):
    """The margin and the excess of every split, (R,) each, and the intervention's mean gap."""

    margins: Floats
    excess: Floats
    gap: float


def compare_with_thresholds(points: Floats) -> MarginsOfSplits | None:
    """Compare an intervention with thresholds at its gap, split by split.

    Parameters
    ----------
    points : (2, 1 + S, R) errors and gaps, of the intervention and of S threshold settings, in R
        splits.

    Returns
    -------
    None if fewer than three splits have all values.

    Notes
    -----
    For split r, the mixture of settings is chosen from means over all other splits, with weights w
    and the slope b of the frontier. With errors e and gaps g of split r, of the intervention (0)
    and of the settings, the excess is x = w . g - g_0, and the margin is e_0 - w . e + b x. The
    last term corrects the error for the difference of the two gaps in this split.
    """
    is_measured = np.asarray(np.isfinite(points).any(axis=2).all(axis=0))
    if not is_measured[0] or is_measured.sum() < 2:
        return None
    points = points[:, is_measured]
    is_complete_split = np.isfinite(points).all(axis=(0, 1))
    if is_complete_split.sum() < 3:
        return None
    points = points[:, :, is_complete_split]
    splits = points.shape[2]
    means_of_other_splits = (points.sum(axis=2, keepdims=True) - points) / (splits - 1)
    margins, excess = np.empty(splits), np.empty(splits)
    for split in range(splits):
        weight, slope = mixture_at_gap(
            means_of_other_splits[0, 1:, split],
            means_of_other_splits[1, 1:, split],
            means_of_other_splits[1, 0, split],
        )
        mixture_error, mixture_gap = points[:, 1:, split] @ weight
        excess[split] = mixture_gap - points[1, 0, split]
        margins[split] = points[0, 0, split] - mixture_error + slope * excess[split]
    return MarginsOfSplits(margins, excess, float(points[1, 0].mean()))


def mixture_at_gap(errors: Floats, gaps: Floats, gap: float) -> tuple[Floats, float]:
    """Return the mixture of settings with the least error whose gap is at most `gap`.

    Parameters
    ----------
    errors, gaps : (S,) the errors and the gaps of the settings.

    Returns
    -------
    (S,) weights that add up to 1, at most two of them not 0; and the slope of the frontier (change
    of the error by change of the gap), which is at most 0. If no setting has so small a gap, all
    weight is on the setting of the smallest gap, and the slope is 0.
    """
    count = len(errors)
    within = gaps <= gap
    if not within.any():
        return np.eye(count)[int(gaps.argmin())], 0.0
    best_setting = int(np.where(within, errors, np.inf).argmin())
    best = errors[best_setting]
    weight = np.eye(count)[best_setting]
    slope = 0.0
    for low in np.flatnonzero(within):
        for high in np.flatnonzero(~within):
            steepness = (errors[high] - errors[low]) / (gaps[high] - gaps[low])
            reached = errors[low] + steepness * (gap - gaps[low])
            if reached < best - 1e-15:
                share = (gap - gaps[low]) / (gaps[high] - gaps[low])
                best = reached
                slope = float(steepness)
                weight = np.eye(count)[low] * (1 - share) + np.eye(count)[high] * share
    return weight, slope


def unprocessing_margins(
    values: AtlasValues, all_series: list[MarginSeries], *, level: float = 0.95
) -> list[UnprocessingMargin]:
    """Return the mean margin of every intervention on every task, with its verdicts.

    The verdicts on the interventions of one task and gap hold simultaneously.
    """
    n_compared = pd.Series(
        [(series.task, series.gap_metric) for series in all_series]
    ).value_counts()
    margins = []
    for series in all_series:
        tail = (1 - level) / 2 / n_compared[(series.task, series.gap_metric)]
        margin_and_excess = np.stack([series.margins, series.excess])
        mean, half = _mean(margin_and_excess, float(values.test_share[series.task]), tail)
        task_row = values.about_tasks[series.task]
        row = values.about_approaches[series.approach]
        margin = UnprocessingMargin(
            dataset=task_row["dataset"],
            protect=task_row["protect"],
            family=task_row["family"],
            learner=row["learner"],
            intervention=row["intervention"],
            options=row["options"],
            gap_metric=series.gap_metric,
            gap=series.gap,
            margin=float(mean[0]),
            lower=float(mean[0] - half[0]),
            upper=float(mean[0] + half[0]),
            excess=float(mean[1]),
            verdict=OPEN,
            alone=OPEN,
        )
        verdict = _verdict(margin, float(mean[1] - half[1]))
        _, pointwise_half = _mean(
            margin_and_excess, float(values.test_share[series.task]), (1 - level) / 2
        )
        pointwise = replace(
            margin,
            lower=float(mean[0] - pointwise_half[0]),
            upper=float(mean[0] + pointwise_half[0]),
        )
        alone = _verdict(pointwise, float(mean[1] - pointwise_half[1]))
        margins.append(replace(margin, verdict=verdict, alone=alone))
    return margins


def _verdict(margin: UnprocessingMargin, unreached: float) -> str:
    """Return the verdict on "thresholds do no worse, in error and in gap".

    Parameters
    ----------
    unreached : the lower limit of the gap of thresholds minus the intervention's.
    """
    error, gap = epsilon_of(ERROR), epsilon_of(margin.gap_metric)
    if margin.upper < 0 and margin.margin < -error or unreached > gap:
        return FAILS
    return HOLDS if margin.lower > -error and margin.excess <= gap else OPEN


def task_verdicts(margins: list[UnprocessingMargin]) -> list[TaskVerdict]:
    """Return, for every task and gap, whether thresholds do no worse than any intervention."""

    def key(margin: UnprocessingMargin) -> tuple[str, str, str]:
        return margin.dataset, margin.protect, margin.gap_metric

    verdicts_of_tasks = []
    for task_and_gap, group_of_margins in groupby(sorted(margins, key=key), key=key):
        margins_of_task = list(group_of_margins)
        verdicts = [margin.verdict for margin in margins_of_task]
        holding, failing = verdicts.count(HOLDS), verdicts.count(FAILS)
        verdicts_of_tasks.append(
            TaskVerdict(
                *task_and_gap,
                compared=len(margins_of_task),
                holds=holding,
                fails=failing,
                verdict=all_hold(margins_of_task),
            )
        )
    return verdicts_of_tasks
