"""Interventions against thresholds for each group, at the gap that the intervention has.

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

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
from scipy import special

from fairbench.core.arrays import Floats
from fairbench_rank.approaches import (
    ERROR,
    FEWEST_FAMILIES,
    NONE,
    ApproachValues,
    MeasuredDifferences,
    epsilon_of,
    family_means,
    finite_mean,
    mean_over_families,
    name_with_group_need,
    option_values,
    options_without,
)
from fairbench_rank.standings import GAPS

HOLDS, FAILS, OPEN = "holds", "fails", "not resolved"
Verdicts: TypeAlias = tuple[str, str]  # by an interval simultaneous with others, and by its own


def all_hold(verdicts: Sequence[Verdicts]) -> str:
    """Return the verdict on a claim that holds if all of its parts hold.

    It fails if one part fails, judged by simultaneous intervals. It holds if every part holds by
    its own interval: by the intersection-union principle this needs no correction for the number of
    parts (Berger 1982, Technometrics 24).
    """
    if any(verdict == FAILS for verdict, _ in verdicts):
        return FAILS
    return HOLDS if verdicts and all(alone == HOLDS for _, alone in verdicts) else OPEN


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


def margin_series(values: ApproachValues) -> Iterator[MarginSeries]:
    """Yield every intervention on every task against thresholds of the unconstrained model."""
    rows = values.about_approaches
    keys = [
        (row["learner"], row["method"], options_without("intervention", row["options"]))
        for row in rows
    ]
    error = values.metric(ERROR)
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
            several = [position, *relaxed[keys[position]]]
            for task in range(len(values.tasks)):
                points = np.stack([error[several, task], gap[several, task]])
                compared = compare_with_thresholds(points)
                if compared is not None:
                    yield MarginSeries(position, task, gap_metric, *compared)


def compare_with_thresholds(points: Floats) -> tuple[Floats, Floats, float] | None:
    """Compare an intervention with thresholds at its gap, split by split.

    Parameters
    ----------
    points : (2, 1 + S, R) errors and gaps, of the intervention and of S threshold settings, in R
        splits.

    Returns
    -------
    The margin and the excess of every split, (R,) each, and the intervention's mean gap; None if
    fewer than three splits have all values.

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
    return margins, excess, float(points[1, 0].mean())


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
    alone, within = np.eye(len(errors)), gaps <= gap
    if not within.any():
        return alone[int(gaps.argmin())], 0.0
    best_setting = int(np.where(within, errors, np.inf).argmin())
    best, weight, slope = errors[best_setting], alone[best_setting], 0.0
    for low in np.flatnonzero(within):
        for high in np.flatnonzero(~within):
            steepness = (errors[high] - errors[low]) / (gaps[high] - gaps[low])
            reached = errors[low] + steepness * (gap - gaps[low])
            if reached < best - 1e-15:
                share = (gap - gaps[low]) / (gaps[high] - gaps[low])
                best, slope = reached, float(steepness)
                weight = alone[low] * (1 - share) + alone[high] * share
    return weight, slope


def margins_of(
    values: ApproachValues, all_series: Sequence[MarginSeries], *, level: float = 0.95
) -> Iterator[dict[str, Any]]:
    """Yield the mean margin of every intervention on every task, with its verdicts.

    Returns
    -------
    A row for each: the task (``dataset, protect, family``), the ``learner, intervention`` and
    ``options``, the ``gap_metric`` and the intervention's mean ``gap``; the ``margin`` with its
    ends ``lower`` and ``upper``, simultaneous over the interventions of a task and gap; the mean
    ``excess``; and on "thresholds do no worse" the ``verdict`` and the one ``alone``, by the
    margin's own interval.
    """
    compared = Counter((series.task, series.gap_metric) for series in all_series)
    for series in all_series:
        both = np.stack([series.margins, series.excess])
        test_share = float(values.test_share[series.task])
        tails = (1 - level) / 2 / np.array([compared[series.task, series.gap_metric], 1])
        # Corrected for overlapping training rows of splits (Nadeau and Bengio 2003).
        splits = both.shape[-1]
        variance = both.var(axis=-1, ddof=1) * (1 / splits + test_share / (1 - test_share))
        mean = both.mean(axis=-1)
        half = -special.stdtrit(splits - 1, tails)[:, None] * np.sqrt(variance)
        about_task = values.about_tasks[series.task]
        about = values.about_approaches[series.approach]
        verdict, alone = (_verdict(series.gap_metric, mean, half_of) for half_of in half)
        yield {
            **{name: about_task[name] for name in ("dataset", "protect", "family")},
            **{name: about[name] for name in ("learner", "intervention", "options")},
            "gap_metric": series.gap_metric,
            "gap": series.gap,
            "margin": float(mean[0]),
            "lower": float(mean[0] - half[0, 0]),
            "upper": float(mean[0] + half[0, 0]),
            "excess": float(mean[1]),
            "verdict": verdict,
            "alone": alone,
        }


def _verdict(gap_metric: str, mean: Floats, half: Floats) -> str:
    """Return the verdict on "thresholds do no worse, in error and in gap".

    Parameters
    ----------
    mean, half : (2,) the mean margin and excess, and half the widths of their intervals.
    """
    error, gap = epsilon_of(ERROR), epsilon_of(gap_metric)
    margin, excess = mean
    if margin + half[0] < 0 and margin < -error or excess - half[1] > gap:
        return FAILS
    return HOLDS if margin - half[0] > -error and excess <= gap else OPEN


def task_verdicts(margins: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield, for every task and gap, whether thresholds do no worse than any intervention.

    Returns
    -------
    A row for each: ``dataset, protect, family, gap_metric``; the numbers of interventions that were
    ``compared``, and of those for which it ``holds`` or ``fails`` by simultaneous intervals; the
    ``verdict``; and the ``least`` margin with its interval.
    """
    keys = ("dataset", "protect", "family", "gap_metric")
    place = itemgetter(*keys)
    for names, group in groupby(sorted(margins, key=place), key=place):
        own = list(group)
        verdicts = [margin["verdict"] for margin in own]
        least = min(own, key=itemgetter("margin"))
        yield {
            **dict(zip(keys, names, strict=True)),
            "compared": len(own),
            "holds": verdicts.count(HOLDS),
            "fails": verdicts.count(FAILS),
            "verdict": all_hold([(margin["verdict"], margin["alone"]) for margin in own]),
            "least": (least["margin"], least["lower"], least["upper"]),
        }


def falls_by_intervention(
    values: ApproachValues, margins: Sequence[MarginSeries]
) -> dict[tuple[str, str], Floats]:
    """Return the error of thresholds minus that of interventions, the mean over learners.

    Returns
    -------
    The intervention with its strength, and the gap -> (T, R).
    """
    of_name: dict[tuple[str, str], list[MarginSeries]] = {}
    for margin in margins:
        row = values.about_approaches[margin.approach]
        name = f"{row['intervention']} {option_values('intervention', row['options'])}".strip()
        name = name_with_group_need(name, needs_group=bool(row["group_at_prediction"]))
        of_name.setdefault((name, margin.gap_metric), []).append(margin)
    repeats = int(values.cell_index[:, 2].max()) + 1
    falls = {}
    for key, own in sorted(of_name.items()):
        own_falls = np.full((len(own), len(values.tasks), repeats), np.nan)
        for index, margin in enumerate(own):
            own_falls[index, margin.task, : len(margin.margins)] = -margin.margins
        falls[key] = finite_mean(own_falls)
    return falls


def margins_by_size(
    values: ApproachValues, margins: Sequence[MarginSeries], *, rows: int = 1000
) -> dict[str, list[dict[str, Any]]] | None:
    """Return the mean difference on each task, and over small and over large data sets.

    On a task it is the mean over all interventions, strengths and gaps that were compared there.

    Parameters
    ----------
    rows : the most rows of a small data set.

    Returns
    -------
    ``tasks``, a row for each: ``dataset, protect, family, rows``, and ``difference, lower, upper``
    with the interval of Nadeau and Bengio (2003). ``classes``, a row for each size: its ``label``,
    ``least_rows, most_rows``, ``tasks`` and ``families``, on how many tasks the difference is
    ``positive``, the mean ``difference, lower, upper`` over families, and how many of the
    ``compared`` interventions and gaps have a mean ``above`` 0. A class of fewer than three
    families is left out; None if that leaves no class.
    """
    falls = list(falls_by_intervention(values, margins).values())
    size = values.tasks["rows"].to_numpy(float) if "rows" in values.tasks else np.empty(0)
    if not falls or not len(size):
        return None
    measured = values.estimate_differences(np.stack(falls))
    average = _mean_difference(measured, np.stack(falls))
    classes = [
        _size_class(measured, average, np.where(inside, size, np.nan), label)
        for label, inside in (
            (f"up to {rows:,} rows", size <= rows),
            (f"more than {rows:,} rows", size > rows),
        )
        if len({*values.family[inside & average.known[0]]}) >= FEWEST_FAMILIES
    ]
    return {"classes": classes, "tasks": list(_of_tasks(values, average))} if classes else None


def _mean_difference(measured: MeasuredDifferences, differences: Floats) -> MeasuredDifferences:
    """Return the mean over comparisons, as one difference.

    Its variance over splits is that of the mean deviation in each split, where a comparison's
    deviation is from its own mean over splits: some were measured in fewer splits than others.

    Parameters
    ----------
    differences : (P, T, R) the difference of every comparison, task and split.
    """
    deviations = np.where(
        measured.known[:, :, None], differences - measured.means[:, :, None], np.nan
    )
    mean_deviations = finite_mean(deviations)
    is_measured = np.isfinite(mean_deviations)
    splits = is_measured.sum(axis=1).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        variances = (np.where(is_measured, mean_deviations, 0) ** 2).sum(axis=1) / (splits - 1)
    means = finite_mean(np.where(measured.known, measured.means, np.nan))
    return replace(measured, means=means[None], variances=variances[None], splits=splits[None])


def _size_class(
    measured: MeasuredDifferences, average: MeasuredDifferences, rows: Floats, label: str
) -> dict[str, Any]:
    """Return the row of the tasks of one size class.

    Parameters
    ----------
    measured : every comparison.
    average : the mean over comparisons.
    rows : (T,) the number of rows of each task of the class, NaN for tasks outside of it.
    """
    average_in_class, measured_in_class = (
        replace(all_measured, means=np.where(np.isfinite(rows), all_measured.means, np.nan))
        for all_measured in (average, measured)
    )
    limits = mean_over_families(family_means(average_in_class))
    comparison_means = family_means(measured_in_class)
    is_compared = np.isfinite(comparison_means).any(axis=1)
    known, own_rows = average_in_class.known, rows[average_in_class.known[0]]
    return {
        "label": label,
        "least_rows": float(own_rows.min()),
        "most_rows": float(own_rows.max()),
        "tasks": int(known.sum()),
        "families": int(average_in_class.families[0]),
        "positive": int((average_in_class.means[known] > 0).sum()),
        "difference": float(limits.value[0]),
        "lower": float(limits.lower[0]),
        "upper": float(limits.upper[0]),
        "above": int((np.nanmean(comparison_means[is_compared], axis=1) > 0).sum()),
        "compared": int(is_compared.sum()),
    }


def _of_tasks(values: ApproachValues, average: MeasuredDifferences) -> Iterator[dict[str, Any]]:
    """Yield the difference of each task with the interval of Nadeau and Bengio (2003)."""
    quantile = special.stdtrit(np.maximum(average.splits[0] - 1, 1), 0.975)
    half = quantile * np.sqrt(average.variances[0] * average.inflation[0])
    for task in np.flatnonzero(average.known[0]):
        about, value = values.about_tasks[task], float(average.means[0, task])
        yield {
            **{name: about[name] for name in ("dataset", "protect", "family")},
            "rows": float(about["rows"]),
            "difference": value,
            "lower": value - float(half[task]),
            "upper": value + float(half[task]),
        }
