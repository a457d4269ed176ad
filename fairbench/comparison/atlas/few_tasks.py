"""How approaches that were run on too few tasks to be ranked do on those tasks."""

from __future__ import annotations

import numpy as np
from scipy import special

from fairbench.comparison.atlas.findings import FewTaskDifference
from fairbench.comparison.atlas.ranks import RankedValues
from fairbench.core.arrays import Floats
from fairbench.inference.comparing.family_means import family_means
from fairbench.inference.comparing.multilevel import MeasuredDifferences


def few_task_differences(ranked: RankedValues) -> list[FewTaskDifference]:
    """Return the differences from the reference of all approaches that a ranking leaves out."""
    losses = ranked.sign * ranked.values.metric(ranked.metric)
    places = np.setdiff1d(np.arange(len(losses)), ranked.places)
    differences = losses[places] - losses[ranked.places[ranked.reference]]
    measured = ranked.values.measured(differences)
    limits = mean_of_these_families(measured)
    return [
        FewTaskDifference(
            approach=ranked.values.names[place],
            tasks=int(measured.known[row].sum()),
            families=int(measured.families[row]),
            difference=float(ranked.sign * limits[0][row]),
            lower=float(min(ranked.sign * end[row] for end in limits[1:])),
            upper=float(max(ranked.sign * end[row] for end in limits[1:])),
        )
        for row, place in enumerate(places)
        if measured.known[row].any()
    ]


def mean_of_these_families(
    measured: MeasuredDifferences, level: float = 0.95
) -> tuple[Floats, Floats, Floats]:
    """Return the mean over the families that were measured, and the ends of its interval, (P,).

    The families are given: the interval is for new splits of their data, by the variance of Nadeau
    and Bengio (2003, Machine Learning 52) and the degrees of freedom of Welch and Satterthwaite.
    The data sets of a family may share people, and count as if their errors went together.
    """
    is_known = measured.known.astype(float)
    count = is_known @ measured.members
    has_tasks = count > 0
    error = np.sqrt(np.where(measured.known, measured.variances * measured.inflation, 0))
    with np.errstate(invalid="ignore", divide="ignore"):
        variances = np.where(has_tasks, ((error @ measured.members) / count) ** 2, 0)
        families = has_tasks.sum(axis=1)
        mean = np.where(has_tasks, family_means(measured), 0).sum(axis=1) / families
        freedom = variances.sum(axis=1) ** 2 / (variances**2 / _freedom(measured)).sum(axis=1)
        error_of_mean = np.sqrt(variances.sum(axis=1)) / families
    # Without any noise there are no degrees of freedom, and no width for them to matter.
    half = special.stdtrit(np.nan_to_num(freedom, nan=1.0), (1 + level) / 2) * error_of_mean
    return mean, mean - half, mean + half


def _freedom(measured: MeasuredDifferences) -> Floats:
    """Return each family's degrees of freedom, those of its task with fewest splits, (P, F)."""
    splits = np.where(measured.known, measured.splits, np.inf)[:, :, None]
    fewest = np.where(measured.members > 0, splits, np.inf).min(axis=1)
    return np.asarray(np.maximum(fewest - 1, 1))
