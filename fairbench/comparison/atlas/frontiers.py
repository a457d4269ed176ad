"""Error against a gap: frontiers with bands, and interventions against relaxed thresholds.

Thresholds per group, chosen on validation rows for the unconstrained model, trace a frontier of
their own: "unprocessing" (Cruz and Hardt 2024, ICLR, "Unprocessing seven years of algorithmic
fairness"). An intervention is compared with that frontier at the gap that the intervention has. In
each split, it is compared with a mixture of two threshold settings that has this gap on average
over all other splits, so that the mixture is not chosen on the split it is judged on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

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
    differences,
    epsilon_of,
    without,
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
        places = np.flatnonzero(is_for_gap & ~relaxed & rows["method"].eq(method))
        for task in range(len(values.tasks)):
            error_and_gap = np.stack([error[places, task], gap[places, task]])
            points += _points(values, task, gap_metric, places, error_and_gap, level)
    return points


def _points(
    values: AtlasValues,
    task: int,
    gap_metric: str,
    places: NDArray[np.intp],
    error_and_gap: Floats,
    level: float,
) -> Iterator[FrontierPoint]:
    """Yield the points of one task and gap, with simultaneous intervals."""
    is_known = np.asarray(np.isfinite(error_and_gap).all(axis=0))
    with_two_splits = np.flatnonzero(is_known.sum(axis=1) > 1)
    tail = (1 - level) / 2 / max(2 * len(with_two_splits), 1)
    task_row = values.about_tasks[task]
    for place in with_two_splits:
        series = error_and_gap[:, int(place)][:, is_known[place]]
        mean, half = _mean(series, float(values.test_share[task]), tail)
        row = values.about_approaches[places[place]]
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
    """Return means over splits (..., R) and half the widths of their corrected t intervals."""
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
    changes = [contrast.of(values.metric(metric)) for metric in (ERROR, gap_metric)]
    is_measured = np.isfinite(changes).all(axis=0).sum(axis=1) > 1
    return int(is_measured.sum()) >= values.fewest_tasks


def _mean_frontier(
    values: AtlasValues, gap_metric: str, labelled: Sequence[tuple[str, Contrast]]
) -> Iterator[MeanFrontierPoint]:
    """Yield the points of one gap that rest on enough families."""
    compared = [contrast for _, contrast in labelled]
    changes = [differences(values.metric(metric), compared) for metric in (ERROR, gap_metric)]
    measured = values.measured(np.concatenate(changes))
    # The two intervals of a point hold together, so that it lies in its ellipse's box at 95 %.
    means = np.stack(mean_over_families(family_means(measured), level=1 - 0.05 / 2))
    for place, (part, contrast) in enumerate(labelled):
        means_and_limits = means[:, [place, len(labelled) + place]]  # of its error, of its gap
        if not np.isfinite(means_and_limits).all():
            continue
        (error, gap), (error_lower, gap_lower), (error_upper, gap_upper) = means_and_limits.tolist()
        yield MeanFrontierPoint(
            intervention=contrast.label if part == "intervention" else "",
            setting=contrast.label if part == "setting" else "",
            group_at_prediction=contrast.needs_group,
            gap_metric=gap_metric,
            tasks=int(measured.known[place].sum()),
            families=int(measured.families[place]),
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
    """An intervention on a task, against thresholds of the same learner and method.

    Attributes
    ----------
    margins : (R,) its error minus that of thresholds at the same gap, of every split.
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
        (row["learner"], row["method"], without("intervention", row["options"])) for row in rows
    ]
    error, all_series = values.metric(ERROR), []
    for gap_metric in GAPS:
        gap = values.metric(gap_metric)
        relaxed: dict[tuple[str, ...], list[int]] = {}
        for place, row in enumerate(rows):
            is_of_this_gap = row["setting"].startswith(f"{gap_metric}<=")
            if is_of_this_gap and row["intervention"] == NONE:
                relaxed.setdefault(keys[place], []).append(place)
        for place, row in enumerate(rows):
            if row["intervention"] == NONE or row["setting"] or keys[place] not in relaxed:
                continue
            settings = relaxed[keys[place]]
            for task in range(len(values.tasks)):
                points = np.stack([error[[place, *settings], task], gap[[place, *settings], task]])
                series = judged_splits(points)
                if series is not None:
                    all_series.append(MarginSeries(place, task, gap_metric, *series))
    return all_series


def judged_splits(points: Floats) -> tuple[Floats, Floats, float] | None:
    """Return margins, excesses and the mean gap from errors and gaps (2, 1 + settings, R).

    Return None if fewer than three splits have all values.
    """
    is_measured = np.asarray(np.isfinite(points).any(axis=2).all(axis=0))
    if not is_measured[0] or is_measured.sum() < 2:
        return None
    points = points[:, is_measured]
    is_whole_split = np.isfinite(points).all(axis=(0, 1))
    if is_whole_split.sum() < 3:
        return None
    points = points[:, :, is_whole_split]
    splits = points.shape[2]
    means_of_other_splits = (points.sum(axis=2, keepdims=True) - points) / (splits - 1)
    margins, excess = np.empty(splits), np.empty(splits)
    for split in range(splits):
        weight, slope = at_gap(
            means_of_other_splits[0, 1:, split],
            means_of_other_splits[1, 1:, split],
            means_of_other_splits[1, 0, split],
        )
        judged = points[:, 1:, split] @ weight
        excess[split] = judged[1] - points[1, 0, split]
        # Corrects the error for the difference of the two gaps in this split.
        margins[split] = points[0, 0, split] - judged[0] + slope * excess[split]
    return margins, excess, float(points[1, 0].mean())


def at_gap(errors: Floats, gaps: Floats, gap: float) -> tuple[Floats, float]:
    """Return the mixture of settings with the least error at most at a gap, and the slope there.

    Parameters
    ----------
    errors, gaps : (S,) of the settings.

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
    single = int(np.where(within, errors, np.inf).argmin())
    best, weight, slope = errors[single], np.eye(count)[single], 0.0
    for low in np.flatnonzero(within):
        for high in np.flatnonzero(~within):
            steepness = (errors[high] - errors[low]) / (gaps[high] - gaps[low])
            reached = errors[low] + steepness * (gap - gaps[low])
            if reached < best - 1e-15:
                share = (gap - gaps[low]) / (gaps[high] - gaps[low])
                best, slope = reached, float(steepness)
                weight = np.eye(count)[low] * (1 - share) + np.eye(count)[high] * share
    return weight, slope


def unprocessing_margins(
    values: AtlasValues, all_series: list[MarginSeries], *, level: float = 0.95
) -> list[UnprocessingMargin]:
    """Return the verdict on every intervention and task.

    The verdicts on the interventions of one task and gap hold simultaneously.
    """
    counts = pd.Series([(series.task, series.gap_metric) for series in all_series]).value_counts()
    verdicts = []
    for series in all_series:
        tail = (1 - level) / 2 / counts[(series.task, series.gap_metric)]
        margin_and_excess = np.stack([series.margins, series.excess])
        mean, half = _mean(margin_and_excess, float(values.test_share[series.task]), tail)
        task_row, row = values.about_tasks[series.task], values.about_approaches[series.approach]
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
        _, half_alone = _mean(
            margin_and_excess, float(values.test_share[series.task]), (1 - level) / 2
        )
        single = replace(
            margin, lower=float(mean[0] - half_alone[0]), upper=float(mean[0] + half_alone[0])
        )
        alone = _verdict(single, float(mean[1] - half_alone[1]))
        verdicts.append(replace(margin, verdict=verdict, alone=alone))
    return verdicts


def _verdict(margin: UnprocessingMargin, unreached: float) -> str:
    """Return whether thresholds do no worse, in error and in gap.

    Parameters
    ----------
    unreached : lower limit of the gap of thresholds minus the intervention's.
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
                *task_and_gap, len(margins_of_task), holding, failing, all_hold(margins_of_task)
            )
        )
    return verdicts_of_tasks
