"""Differences of approaches that were run on too few tasks to be ranked, on those tasks."""

from __future__ import annotations

import numpy as np
from scipy import special

from fairbench.comparison.atlas.findings import FewTaskDifference
from fairbench.comparison.atlas.ranks import RankedValues
from fairbench.core.arrays import Floats
from fairbench.inference.comparing.family_means import family_means
from fairbench.inference.comparing.multilevel import MeasuredDifferences
from fairbench.inference.rates import Limits


def few_task_differences(ranked: RankedValues) -> list[FewTaskDifference]:
    """Return the differences from the reference of all approaches that a ranking leaves out."""
    losses = ranked.sign * ranked.values.metric(ranked.metric)
    positions = np.setdiff1d(np.arange(len(losses)), ranked.positions)
    differences = losses[positions] - losses[ranked.positions[ranked.reference]]
    measured = ranked.values.estimate_differences(differences)
    means = family_mean_interval(measured)
    return [
        FewTaskDifference(
            approach=ranked.values.names[position],
            tasks=int(measured.known[row].sum()),
            families=int(measured.families[row]),
            difference=float(ranked.sign * means.value[row]),
            lower=float(min(ranked.sign * limit[row] for limit in (means.lower, means.upper))),
            upper=float(max(ranked.sign * limit[row] for limit in (means.lower, means.upper))),
        )
        for row, position in enumerate(positions)
        if measured.known[row].any()
    ]


def family_mean_interval(measured: MeasuredDifferences, level: float = 0.95) -> Limits:
    """Return the mean over the families that were measured, with its interval, (P,) each.

    The families are taken as fixed, so that the interval is for new splits of their data alone.

    Notes
    -----
    The mean is m = (1/F) sum of m_f over the F measured families. Family f has n_f tasks with
    standard errors s_ft: the variance over splits by Nadeau and Bengio (2003, Machine Learning 52).
    As data sets of a family may share people, their errors are added as if perfectly correlated:
    v_f = (sum of s_ft / n_f)^2. The standard error of m is sqrt(sum of v_f) / F, and its degrees of
    freedom are those of Welch and Satterthwaite, (sum of v_f)^2 / sum of (v_f^2 / d_f), where d_f
    is one less than the fewest splits of a task in f.
    """
    is_known = measured.known.astype(float)
    tasks_of_family = is_known @ measured.members
    has_tasks = tasks_of_family > 0
    error = np.sqrt(np.where(measured.known, measured.variances * measured.inflation, 0))
    with np.errstate(invalid="ignore", divide="ignore"):
        variances = np.where(has_tasks, ((error @ measured.members) / tasks_of_family) ** 2, 0)
        families = has_tasks.sum(axis=1)
        mean = np.where(has_tasks, family_means(measured), 0).sum(axis=1) / families
        freedom = variances.sum(axis=1) ** 2 / (variances**2 / _freedom(measured)).sum(axis=1)
        error_of_mean = np.sqrt(variances.sum(axis=1)) / families
    # Without any noise there are no degrees of freedom, and no width for them to matter.
    half = special.stdtrit(np.nan_to_num(freedom, nan=1.0), (1 + level) / 2) * error_of_mean
    return Limits(mean, mean - half, mean + half)


def _freedom(measured: MeasuredDifferences) -> Floats:
    """Return each family's degrees of freedom, those of its task with fewest splits, (P, F)."""
    splits = np.where(measured.known, measured.splits, np.inf)[:, :, None]
    fewest = np.where(measured.members > 0, splits, np.inf).min(axis=1)
    return np.asarray(np.maximum(fewest - 1, 1))
