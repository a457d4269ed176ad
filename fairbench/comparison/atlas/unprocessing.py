"""Thresholds for each group against every intervention at its own gap, across data sets.

"Unprocessing" is the claim of Cruz and Hardt that such thresholds do no worse than any
intervention. The difference here is the error of thresholds minus that of the intervention: the
margin of `frontiers` with its sign turned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

from fairbench.comparison.atlas.claim_values import (
    Claim,
    ClaimPart,
    MarginsBySize,
    SizeClass,
    TaskMargin,
    select_deciding,
)
from fairbench.comparison.atlas.frontiers import ERROR, MarginSeries
from fairbench.comparison.atlas.values import (
    NEEDS_GROUP,
    AtlasValues,
    finite_mean,
    name_with_group_need,
    option_values,
)
from fairbench.comparison.atlas.verdicts import (
    NO_DIFFERENCE_IS_LARGE,
    ClaimSeries,
    claim_of_all,
    judge_parts,
    no_larger,
    pluralise,
)
from fairbench.components import HOME
from fairbench.core.arrays import Floats
from fairbench.core.formats import interval, signed
from fairbench.inference.comparing.family_means import family_means, mean_over_families
from fairbench.inference.comparing.multilevel import FEWEST_FAMILIES, MeasuredDifferences
from fairbench.metrics.registry import label as metric_label
from fairbench.results.runs import Run

UNPROCESSING = "unprocessing_dominates"  # the claim's name
FEW_ROWS = 1000  # data sets with fewer rows count as small
_ROLES = HOME / "conf/claims.yaml"


def unprocessing_claim(
    values: AtlasValues,
    margins: Sequence[MarginSeries],
    remarks: Sequence[str] = (),
    on_training_rows: Sequence[str] = (),
) -> Claim:
    """Return the claim that thresholds do no worse than any intervention.

    Parameters
    ----------
    remarks : further ways in which the comparison is uneven, of :func:`unequal_terms_remarks`.
    on_training_rows : the interventions that choose such thresholds on the training rows.
    """
    parts = judge_parts(values, _series(values, margins))
    fairest = tuple(
        part
        for part in select_deciding(parts)
        if part.label.split()[0] in on_training_rows and part.mean == part.mean
    )
    return claim_of_all(
        name=UNPROCESSING,
        statement="Thresholds for each group on the unconstrained model, which need the group at "
        "prediction, do no worse than any intervention.",
        source="Cruz and Hardt 2024, Unprocessing seven years of algorithmic fairness",
        difference="the error of thresholds minus that of the intervention at the same gap",
        rule=NO_DIFFERENCE_IS_LARGE,
        measured="At the same gap, thresholds err {} than an intervention",
        words=("less", "more"),
        parts=parts,
        remarks=(
            *_validation_rows_remark(values, margins),
            *_training_rows_remark(fairest),
            *remarks,
        ),
        fairest=fairest,
    )


def _series(values: AtlasValues, margins: Sequence[MarginSeries]) -> list[ClaimSeries]:
    """Return a series for every intervention, strength and gap: means over learners."""
    margins_by_label: dict[tuple[str, str], list[MarginSeries]] = {}
    for margin in margins:
        row = values.about_approaches[margin.approach]
        label = f"{row['intervention']} {option_values('intervention', row['options'])}".strip()
        label = name_with_group_need(label, needs_group=bool(row.get("group_at_prediction", False)))
        margins_by_label.setdefault((label, margin.gap_metric), []).append(margin)
    repeats = int(values.cell_index[:, 2].max()) + 1
    series = []
    for (label, gap_metric), margins_of_label in sorted(margins_by_label.items()):
        falls = np.full((len(margins_of_label), len(values.tasks), repeats), np.nan)
        for index, margin in enumerate(margins_of_label):
            falls[index, margin.task, : len(margin.margins)] = -margin.margins
        text = f"{label}, at the same {metric_label(gap_metric)}"
        series.append(ClaimSeries(text, ERROR, finite_mean(falls), no_larger))
    return series


def _validation_rows_remark(values: AtlasValues, margins: Sequence[MarginSeries]) -> Iterator[str]:
    """Yield the remark that thresholds use validation rows, which interventions do not."""
    compared = sorted({margin.approach for margin in margins})
    if not compared:
        return
    rows = values.approaches.iloc[compared].drop_duplicates(["intervention", "options"])
    n_without_group = int((~rows["group_at_prediction"].astype(bool)).sum())
    yield (
        "The thresholds are chosen on validation rows, which nothing else uses here: models and "
        "interventions are fitted to training rows. Thresholds need the group at prediction. Of "
        f"the {pluralise(len(rows), 'intervention and strength', 'interventions and strengths')} "
        f"that they are compared with, {n_without_group} do not need it."
    )


def _training_rows_remark(fairest: Sequence[ClaimPart]) -> Iterator[str]:
    """Yield a remark on interventions that also choose thresholds, but on training rows."""
    if fairest:
        names = " and ".join(dict.fromkeys(part.label.split()[0] for part in fairest))
        yield (
            f"The fairest comparison is with {names}, which needs the group as well, but chooses "
            "its thresholds on the training rows. The table below has its differences."
        )


def fairest_differences(claim: Claim) -> tuple[list[str], list[list[str]]]:
    """Return the table of the fairest comparisons of a claim: its heads and its rows.

    A row is an intervention at one strength, and a column is the gap at which it is compared. A
    cell has the difference with its own interval, or ``-`` if there is none.
    """
    of_cell: dict[tuple[str, str], str] = {}
    for part in claim.fairest:
        intervention, _, gap = part.label.replace(f" ({NEEDS_GROUP})", "").partition(", ")
        of_cell[intervention, gap] = f"{signed(part.mean)} ({interval(part.lower, part.upper)})"
    interventions, gaps = (list(dict.fromkeys(names)) for names in zip(*of_cell, strict=True))
    return ["compared with", *gaps], [
        [intervention, *(of_cell.get((intervention, gap), "-") for gap in gaps)]
        for intervention in interventions
    ]


def unequal_terms_remarks(runs: Sequence[Run], path: Path = _ROLES) -> list[str]:
    """Return remarks on interventions of these runs that were not configured on equal terms.

    Parameters
    ----------
    path : a configuration file with a list ``unlevel``. Each entry has an ``intervention``, its
        ``options`` and a remark ``says``, which is returned if a run has exactly these options.
    """
    if not path.is_file():
        return []
    import yaml

    all_remarks = yaml.safe_load(path.read_text()).get("unlevel", [])
    return [
        remark["says"]
        for remark in all_remarks
        if any(_applies_to(run.config, remark) for run in runs)
    ]


def _applies_to(config: Mapping[str, Any], remark: Mapping[str, Any]) -> bool:
    """Return whether a run's configuration has the intervention and the options of a remark."""
    intervention = config["intervention"]
    return intervention["name"] == remark["intervention"] and all(
        intervention.get(name) == value for name, value in remark["options"].items()
    )


def margins_by_size(
    values: AtlasValues, margins: Sequence[MarginSeries], *, rows: int = FEW_ROWS
) -> MarginsBySize | None:
    """Return the mean difference on each task, and over small and over large data sets.

    On a task it is the mean over all interventions, strengths and gaps that were compared there.
    A size class with fewer than three families is left out; None if that leaves no class.

    Parameters
    ----------
    rows : the most rows of a small data set.
    """
    series = _series(values, margins)
    size = values.tasks["rows"].to_numpy(float) if "rows" in values.tasks else np.empty(0)
    if not series or not len(size):
        return None
    measured = values.estimate_differences(np.stack([difference.values for difference in series]))
    average = _mean_difference(measured, np.stack([difference.values for difference in series]))
    classes = [
        _size_class(measured, average, np.where(inside, size, np.nan), label)
        for label, inside in (
            (f"up to {rows:,} rows", size <= rows),
            (f"more than {rows:,} rows", size > rows),
        )
        if len({*values.family[inside & average.known[0]]}) >= FEWEST_FAMILIES
    ]
    if not classes:
        return None
    return MarginsBySize(tuple(classes), tuple(_task_margins(values, average)))


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
    measured: MeasuredDifferences,
    average: MeasuredDifferences,
    rows: Floats,
    label: str,
) -> SizeClass:
    """Return the mean over families of the tasks of one size class.

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
    return SizeClass(
        label=label,
        least_rows=float(rows[average_in_class.known[0]].min()),
        most_rows=float(rows[average_in_class.known[0]].max()),
        tasks=int(average_in_class.known.sum()),
        families=int(average_in_class.families[0]),
        positive=int((average_in_class.means[0][average_in_class.known[0]] > 0).sum()),
        difference=float(limits.value[0]),
        lower=float(limits.lower[0]),
        upper=float(limits.upper[0]),
        above=int((np.nanmean(comparison_means[is_compared], axis=1) > 0).sum()),
        compared=int(is_compared.sum()),
    )


def _task_margins(values: AtlasValues, average: MeasuredDifferences) -> Iterator[TaskMargin]:
    """Yield the difference of each task with the interval of Nadeau and Bengio (2003)."""
    quantile = special.stdtrit(np.maximum(average.splits[0] - 1, 1), 0.975)
    half = quantile * np.sqrt(average.variances[0] * average.inflation[0])
    for task in np.flatnonzero(average.known[0]):
        task_row = values.about_tasks[task]
        value = float(average.means[0, task])
        yield TaskMargin(
            dataset=task_row["dataset"],
            protect=task_row["protect"],
            family=task_row["family"],
            rows=float(task_row["rows"]),
            difference=value,
            lower=value - float(half[task]),
            upper=value + float(half[task]),
        )
