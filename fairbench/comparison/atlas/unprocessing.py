"""Thresholds for each group against every intervention at its own gap, across data sets."""

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
    deciding,
)
from fairbench.comparison.atlas.frontiers import ERROR, MarginSeries
from fairbench.comparison.atlas.values import (
    NEEDS_GROUP,
    AtlasValues,
    known_mean,
    marked,
    own_options,
)
from fairbench.comparison.atlas.verdicts import (
    ClaimSeries,
    claim_of_all,
    counted,
    judged,
    no_larger,
)
from fairbench.components import HOME
from fairbench.core.arrays import Floats
from fairbench.core.formats import interval, signed
from fairbench.inference.comparing.family_means import family_means, mean_over_families
from fairbench.inference.comparing.multilevel import FEWEST_FAMILIES, MeasuredDifferences
from fairbench.results.runs import Run

FEW_ROWS = 1000  # of a data set that counts as small
_ROLES = HOME / "conf/claims.yaml"


def unprocessing(
    values: AtlasValues,
    margins: Sequence[MarginSeries],
    remarks: Sequence[str] = (),
    on_training_rows: Sequence[str] = (),
) -> Claim:
    """Return whether thresholds on the unconstrained model do no worse than any intervention.

    Parameters
    ----------
    remarks : what else is unlevel in these runs, see :func:`unlevel`.
    on_training_rows : the interventions that choose such thresholds on the training rows.
    """
    parts = judged(values, _series(values, margins))
    return claim_of_all(
        name="unprocessing_dominates",
        statement="Thresholds for each group on the unconstrained model, which need the group at "
        "prediction, do no worse than any intervention.",
        source="Cruz and Hardt 2024, Unprocessing seven years of algorithmic fairness",
        rule="The difference is the error of thresholds minus that of the intervention at the same "
        "gap. It holds if no difference can be as large as 0.01, and fails if one is surely above "
        "0 and may be as large.",
        parts=parts,
        remarks=(
            *_always_unlevel(values, margins),
            *_on_the_same_rows(parts, on_training_rows),
            *remarks,
        ),
    )


def _series(values: AtlasValues, margins: Sequence[MarginSeries]) -> list[ClaimSeries]:
    """Return the difference of every intervention, strength and gap, the mean over learners."""
    found: dict[tuple[str, str], list[MarginSeries]] = {}
    for each in margins:
        row = values.about_approaches[each.approach]
        label = f"{row['intervention']} {own_options('intervention', row['options'])}".strip()
        label = marked(label, needs_group=bool(row.get("group_at_prediction", False)))
        found.setdefault((label, each.gap_metric), []).append(each)
    repeats = int(values.place[:, 2].max()) + 1
    series = []
    for (label, gap_metric), own in sorted(found.items()):
        total = np.full((len(own), len(values.tasks), repeats), np.nan)
        for place, each in enumerate(own):
            total[place, each.task, : len(each.margins)] = -each.margins
        text = f"{label}, at the same {gap_metric.replace('_', ' ')}"
        series.append(ClaimSeries(text, ERROR, known_mean(total), no_larger))
    return series


def _always_unlevel(values: AtlasValues, margins: Sequence[MarginSeries]) -> Iterator[str]:
    """Yield what thresholds may use and interventions may not."""
    compared = sorted({margin.approach for margin in margins})
    if not compared:
        return
    rows = values.approaches.iloc[compared].drop_duplicates(["intervention", "options"])
    without = int((~rows["group_at_prediction"].astype(bool)).sum())
    yield (
        "The thresholds are chosen on validation rows, which nothing else uses here: models and "
        "interventions are fitted to training rows. They need the group at prediction; of the "
        f"{counted(len(rows), 'intervention and strength', 'interventions and strengths')} "
        f"{without} do not need it."
    )


def _on_the_same_rows(parts: Sequence[ClaimPart], interventions: Sequence[str]) -> Iterator[str]:
    """Yield by how much the choice of rows changes the error of thresholds for each group."""
    own = [part for part in deciding(parts) if part.label.split()[0] in interventions]
    own = [part for part in own if part.mean == part.mean]
    if own:
        names = " and ".join(dict.fromkeys(part.label.split()[0] for part in own))
        listed = "; ".join(
            f"{signed(part.mean)} ({interval(part.lower, part.upper)}) with {_shortly(part)}"
            for part in own
        )
        yield (
            f"Nearest to the same footing is {names}, which needs the group as well and chooses "
            "thresholds on the training rows: the error of thresholds of validation rows less "
            f"its own is {listed}, each interval by itself."
        )


def _shortly(part: ClaimPart) -> str:
    """Return what of an intervention's label is not its name, nor that it needs the group."""
    return part.label.partition(" ")[2].replace(f" ({NEEDS_GROUP})", "")


def unlevel(runs: Sequence[Run], path: Path = _ROLES) -> list[str]:
    """Return what is unlevel in how interventions of these runs were configured.

    Parameters
    ----------
    path : of the configuration whose list ``unlevel`` names an intervention, its ``options`` and
        what follows from them; nothing is said of runs with other options.
    """
    if not path.is_file():
        return []
    import yaml

    told = yaml.safe_load(path.read_text()).get("unlevel", [])
    return [remark["says"] for remark in told if any(_is_of(run.config, remark) for run in runs)]


def _is_of(config: Mapping[str, Any], told: Mapping[str, Any]) -> bool:
    own = config["intervention"]
    return own["name"] == told["intervention"] and all(
        own.get(name) == value for name, value in told["options"].items()
    )


def margins_by_size(
    values: AtlasValues, margins: Sequence[MarginSeries], *, rows: int = FEW_ROWS
) -> MarginsBySize | None:
    """Return the mean difference of each task, and over tasks of up to so many rows and of more.

    On a task it is the mean over all interventions, strengths and gaps that were compared there.
    Sizes of fewer than three families are left out; None where that leaves nothing.
    """
    series = _series(values, margins)
    size = values.tasks["rows"].to_numpy(float) if "rows" in values.tasks else np.empty(0)
    if not series or not len(size):
        return None
    measured = values.measured(np.stack([one.values for one in series]))
    average = _averaged(measured, np.stack([one.values for one in series]))
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


def _averaged(measured: MeasuredDifferences, every: Floats) -> MeasuredDifferences:
    """Return the mean over comparisons of what was measured of each, as one difference.

    Its noise is that of the mean of what each comparison (P, T, R) is off its own mean in a split:
    some were measured in fewer splits than others.
    """
    kept = np.where(measured.known[:, :, None], every - measured.means[:, :, None], np.nan)
    off = known_mean(kept)
    there = np.isfinite(off)
    splits = there.sum(axis=1).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        square = (np.where(there, off, 0) ** 2).sum(axis=1) / (splits - 1)
    means = known_mean(np.where(measured.known, measured.means, np.nan))
    return replace(measured, means=means[None], variances=square[None], splits=splits[None])


def _size_class(
    measured: MeasuredDifferences,
    average: MeasuredDifferences,
    rows: Floats,
    label: str,
) -> SizeClass:
    """Return the plain mean over the families of the tasks of which there are `rows`, (T,)."""
    whole, single = (
        replace(each, means=np.where(np.isfinite(rows), each.means, np.nan))
        for each in (average, measured)
    )
    limits = mean_over_families(family_means(whole))
    of_comparisons = family_means(single)
    there = np.isfinite(of_comparisons).any(axis=1)
    return SizeClass(
        label=label,
        least_rows=float(rows[whole.known[0]].min()),
        most_rows=float(rows[whole.known[0]].max()),
        tasks=int(whole.known.sum()),
        families=int(whole.families[0]),
        positive=int((whole.means[0][whole.known[0]] > 0).sum()),
        difference=float(limits.value[0]),
        lower=float(limits.lower[0]),
        upper=float(limits.upper[0]),
        above=int((np.nanmean(of_comparisons[there], axis=1) > 0).sum()),
        compared=int(there.sum()),
    )


def _task_margins(values: AtlasValues, average: MeasuredDifferences) -> Iterator[TaskMargin]:
    """Yield the difference of each task with the interval of Nadeau and Bengio (2003)."""
    quantile = special.stdtrit(np.maximum(average.splits[0] - 1, 1), 0.975)
    half = quantile * np.sqrt(average.variances[0] * average.inflation[0])
    for task in np.flatnonzero(average.known[0]):
        about, value = values.about_tasks[task], float(average.means[0, task])
        yield TaskMargin(
            dataset=about["dataset"],
            protect=about["protect"],
            family=about["family"],
            rows=float(about["rows"]),
            difference=value,
            lower=value - float(half[task]),
            upper=value + float(half[task]),
        )
