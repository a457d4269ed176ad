"""Error against a gap: frontiers with bands, and interventions against relaxed thresholds.

Thresholds of each group, chosen on validation rows for the unconstrained model, trace a frontier of
their own: "unprocessing" (Cruz and Hardt 2024, ICLR, "Unprocessing seven years of algorithmic
fairness"). Whether an intervention lies beyond it is asked at its own gap. A mixture of two
settings that has that gap in all other splits is judged in each split: whoever chose it has not
seen it.
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
    without,
)
from fairbench.comparison.atlas.verdicts import FAILS, HOLDS, OPEN, all_hold
from fairbench.core.arrays import Floats
from fairbench.inference.comparing.family_means import family_means, mean_over_families
from fairbench.metrics.registry import find

GAPS = ("statistical_parity", "equalized_odds")
ERROR = "error_rate"
NONE = "none"


def frontier_points(
    values: AtlasValues, *, method: str, level: float = 0.95
) -> list[FrontierPoint]:
    """Return the points of every task: interventions, and relaxed thresholds without any.

    Parameters
    ----------
    method : the uncertainty method whose runs are shown.
    """
    error = values.metric(ERROR)
    rows = values.approaches
    found: list[FrontierPoint] = []
    for gap_metric in GAPS:
        gap = values.metric(gap_metric)
        ours = rows["setting"].eq("") | rows["setting"].str.startswith(f"{gap_metric}<=")
        relaxed = rows["setting"].ne("") & rows["intervention"].ne(NONE)
        mine = np.flatnonzero(ours & ~relaxed & rows["method"].eq(method))
        for task in range(len(values.tasks)):
            both = np.stack([error[mine, task], gap[mine, task]])
            found += _points(values, task, gap_metric, mine, both, level)
    return found


def _points(
    values: AtlasValues,
    task: int,
    gap_metric: str,
    places: NDArray[np.intp],
    both: Floats,
    level: float,
) -> Iterator[FrontierPoint]:
    """Yield the points of one task and gap, whose bands hold at once."""
    known = np.asarray(np.isfinite(both).all(axis=0))
    there = np.flatnonzero(known.sum(axis=1) > 1)
    tail = (1 - level) / 2 / max(2 * len(there), 1)
    about = values.about_tasks[task]
    for place in there:
        own = both[:, int(place)][:, known[place]]
        mean, half = _mean(own, float(values.test_share[task]), tail)
        row = values.about_approaches[places[place]]
        low = np.maximum(mean - half, 0)
        yield FrontierPoint(
            dataset=about["dataset"],
            protect=about["protect"],
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
    """Return means over splits (..., R) and half of their corrected t intervals."""
    splits = series.shape[-1]
    variance = series.var(axis=-1, ddof=1) * (1 / splits + test_share / (1 - test_share))
    return series.mean(axis=-1), -special.stdtrit(splits - 1, tail) * np.sqrt(variance)


def mean_frontiers(values: AtlasValues) -> list[MeanFrontierPoint]:
    """Return what interventions and relaxed thresholds change, on average over families.

    Those that were run on too few tasks to be ranked are left out.
    """
    found: list[MeanFrontierPoint] = []
    for gap_metric in GAPS:
        relaxed = values.table["setting"].str.startswith(f"{gap_metric}<=")
        relaxed &= values.table["intervention"].eq(NONE)
        kept = values.only(values.table["setting"].eq("") | relaxed)
        made = [
            (part, contrast)
            for part, base in _UNCONSTRAINED.items()
            for contrast in contrasts(kept, part, base)
        ]
        made = [margin for margin in made if _on_enough_tasks(kept, gap_metric, margin[1])]
        if made:
            found += _mean_frontier(kept, gap_metric, made)
    return found


def _on_enough_tasks(values: AtlasValues, gap_metric: str, contrast: Contrast) -> bool:
    both = [contrast.of(values.metric(metric)) for metric in (ERROR, gap_metric)]
    known = np.isfinite(both).all(axis=0).sum(axis=1) > 1
    return int(known.sum()) >= values.fewest_tasks


def _mean_frontier(
    values: AtlasValues, gap_metric: str, made: Sequence[tuple[str, Contrast]]
) -> Iterator[MeanFrontierPoint]:
    """Yield the points of one gap that rest on enough families."""
    single = [each for _, each in made]
    changes = [differences(values.metric(metric), single) for metric in (ERROR, gap_metric)]
    measured = values.measured(np.concatenate(changes))
    # The two intervals of a point hold together, so that it lies in its ellipse's box at 95 %.
    means = np.stack(mean_over_families(family_means(measured), level=1 - 0.05 / 2))
    for place, (part, each) in enumerate(made):
        ends = means[:, [place, len(made) + place]]  # of its error, of its gap
        if not np.isfinite(ends).all():
            continue
        (error, gap), (error_lower, gap_lower), (error_upper, gap_upper) = ends.tolist()
        yield MeanFrontierPoint(
            intervention=each.label if part == "intervention" else "",
            setting=each.label if part == "setting" else "",
            group_at_prediction=each.needs_group,
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
    excess : (R,) by how much the gap of thresholds is the larger; of mean 0 where they reach it.
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
    error, found = values.metric(ERROR), []
    for gap_metric in GAPS:
        gap = values.metric(gap_metric)
        relaxed: dict[tuple[str, ...], list[int]] = {}
        for place, row in enumerate(rows):
            own = row["setting"].startswith(f"{gap_metric}<=")
            if own and row["intervention"] == NONE:
                relaxed.setdefault(keys[place], []).append(place)
        for place, row in enumerate(rows):
            if row["intervention"] == NONE or row["setting"] or keys[place] not in relaxed:
                continue
            settings = relaxed[keys[place]]
            for task in range(len(values.tasks)):
                points = np.stack([error[[place, *settings], task], gap[[place, *settings], task]])
                series = judged_splits(points)
                if series is not None:
                    found.append(MarginSeries(place, task, gap_metric, *series))
    return found


def judged_splits(points: Floats) -> tuple[Floats, Floats, float] | None:
    """Return margins, excesses and the mean gap, of errors and gaps (2, 1 + settings, R).

    None of fewer than three splits in which all was measured.
    """
    there = np.asarray(np.isfinite(points).any(axis=2).all(axis=0))
    if not there[0] or there.sum() < 2:
        return None
    points = points[:, there]
    kept = np.isfinite(points).all(axis=(0, 1))
    if kept.sum() < 3:
        return None
    points = points[:, :, kept]
    splits = points.shape[2]
    others = (points.sum(axis=2, keepdims=True) - points) / (splits - 1)
    margins, excess = np.empty(splits), np.empty(splits)
    for split in range(splits):
        weight, slope = at_gap(others[0, 1:, split], others[1, 1:, split], others[1, 0, split])
        judged = points[:, 1:, split] @ weight
        excess[split] = judged[1] - points[1, 0, split]
        # What of the error is due to the gap's not being the same in this very split.
        margins[split] = points[0, 0, split] - judged[0] + slope * excess[split]
    return margins, excess, float(points[1, 0].mean())


def at_gap(errors: Floats, gaps: Floats, gap: float) -> tuple[Floats, float]:
    """Return the mixture of settings of least error with at most a gap, and the frontier's slope.

    Parameters
    ----------
    errors, gaps : (S,) of the settings.

    Returns
    -------
    (S,) weights that add up to 1, at most two of them not 0; and what an error changes by where the
    gap does, at most 0. Where no setting has so small a gap, that of the smallest gap, and 0.
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
    values: AtlasValues, series: list[MarginSeries], *, level: float = 0.95
) -> list[UnprocessingMargin]:
    """Return the verdict on every intervention and task; those of a task and gap hold at once."""
    counts = pd.Series([(one.task, one.gap_metric) for one in series]).value_counts()
    found = []
    for one in series:
        tail = (1 - level) / 2 / counts[(one.task, one.gap_metric)]
        both = np.stack([one.margins, one.excess])
        mean, half = _mean(both, float(values.test_share[one.task]), tail)
        about, row = values.about_tasks[one.task], values.about_approaches[one.approach]
        margin = UnprocessingMargin(
            dataset=about["dataset"],
            protect=about["protect"],
            family=about["family"],
            learner=row["learner"],
            intervention=row["intervention"],
            options=row["options"],
            gap_metric=one.gap_metric,
            gap=one.gap,
            margin=float(mean[0]),
            lower=float(mean[0] - half[0]),
            upper=float(mean[0] + half[0]),
            excess=float(mean[1]),
            verdict=OPEN,
            alone=OPEN,
        )
        verdict = _verdict(margin, float(mean[1] - half[1]))
        _, own = _mean(both, float(values.test_share[one.task]), (1 - level) / 2)
        single = replace(margin, lower=float(mean[0] - own[0]), upper=float(mean[0] + own[0]))
        alone = _verdict(single, float(mean[1] - own[1]))
        found.append(replace(margin, verdict=verdict, alone=alone))
    return found


def _verdict(margin: UnprocessingMargin, unreached: float) -> str:
    """Say whether thresholds do no worse: neither in error nor in the gap that they reach.

    `unreached` is the lower end of by how much their gap is larger.
    """
    error, gap = _epsilon(ERROR), _epsilon(margin.gap_metric)
    if margin.upper < 0 and margin.margin < -error or unreached > gap:
        return FAILS
    return HOLDS if margin.lower > -error and margin.excess <= gap else OPEN


def _epsilon(metric: str) -> float:
    declared = find(metric)
    return declared.epsilon if declared is not None else 0.01


def task_verdicts(margins: list[UnprocessingMargin]) -> list[TaskVerdict]:
    """Return whether thresholds do no worse than any intervention, of every task and gap."""

    def key(margin: UnprocessingMargin) -> tuple[str, str, str]:
        return margin.dataset, margin.protect, margin.gap_metric

    found = []
    for of, each in groupby(sorted(margins, key=key), key=key):
        mine = list(each)
        verdicts = [margin.verdict for margin in mine]
        held, failed = verdicts.count(HOLDS), verdicts.count(FAILS)
        found.append(TaskVerdict(*of, len(mine), held, failed, all_hold(mine)))
    return found
