"""Error against fairness: each run's point and posterior, which are dominated and how surely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.assessment.counts_posterior import table_draws
from fairbench.assessment.effective_counts import effective_counts
from fairbench.comparison.runs import Labels, outperformance
from fairbench.comparison.settings import Settings
from fairbench.confusion import total
from fairbench.metrics.group import GROUP_METRICS
from fairbench.metrics.rates import error_rate
from fairbench.seeds import rng
from fairbench.stored_runs import StoredRun
from fairbench.tradeoff.frontier import at_equal_fairness

Array = NDArray[np.float64]
METRICS = ("statistical_parity", "equalized_odds", "equal_opportunity", "predictive_parity")
_ENTRIES = {"error_variance": (0, 0), "covariance": (0, 1), "gap_variance": (1, 1)}
_DRAWS = 2000
_SEED = 0


@dataclass(frozen=True)
class Point:
    """A run's error and gap, means over its repeats, and one repeat's posterior around them.

    Attributes
    ----------
    covariance : (2, 2) of error and gap, of the repeat of median error. Repeats overlap, so their
        posteriors are not pooled and the covariance is that of one test set.
    """

    error: float
    gap: float
    covariance: Array


def points(run: StoredRun, protect: tuple[str, ...]) -> dict[str, Point]:
    """Return a run's point for every metric of `METRICS`.

    The posterior is that of the counts: Dirichlet in every group, groups weighed by their share of
    the test rows, so that error and gap come from the same draws. K folds are pooled at their
    effective counts.
    """
    labels = Labels.of(run, protect)
    tables = []
    for folds in run.repeats.values():
        counts = np.stack([labels.counts(fold) for fold in folds])
        tables.append(effective_counts(counts, Settings().shrinkage(len(folds))))
    observed = np.stack(tables)
    errors = _error(observed)
    median = int(np.argsort(errors, kind="stable")[len(errors) // 2])
    generator = rng(_SEED, "tradeoff", run.dataset.name, list(run.repeats)[median])
    draws = table_draws(observed[median], _DRAWS, generator)
    found = {}
    for name in METRICS:
        gaps = GROUP_METRICS[name](observed)
        gap = float(gaps[~np.isnan(gaps)].mean()) if not np.isnan(gaps).all() else np.nan
        covariance = np.cov(_error(draws), GROUP_METRICS[name](draws))
        found[name] = Point(float(errors.mean()), gap, covariance)
    return found


def _error(tables: Array) -> Array:
    return error_rate(total(tables))[..., 0]


def dominated(values: Array) -> NDArray[np.bool_]:
    """Say of each row (R, m) whether another is no larger in any column and smaller in one.

    A row with NaN neither dominates nor is dominated.
    """
    no_larger = (values[:, None] <= values[None]).all(axis=-1)
    smaller = (values[:, None] < values[None]).any(axis=-1)
    return np.asarray((no_larger & smaller).any(axis=0))


def tradeoff(
    runs: Sequence[StoredRun],
    names: Sequence[Mapping[str, str]],
    curve: pd.DataFrame,
    protect: tuple[str, ...],
) -> pd.DataFrame:
    """Return a row for every metric and run.

    Returns
    -------
    ``metric``, ``run`` (id), ``learner``, ``intervention``, ``method``, ``error``, ``gap``,
    ``error_variance``, ``gap_variance``, ``covariance``, ``dominated``, ``certainty`` (the largest
    posterior probability that one other run is better in both, paired on the same rows),
    ``postprocessed_error`` (of the frontier at a gap no larger).
    """
    of_runs = [points(run, protect) for run in runs]
    parts = []
    for metric in METRICS:
        found = [each[metric] for each in of_runs]
        part = pd.DataFrame({"metric": metric, "run": [run.id for run in runs]})
        part = pd.concat([part, pd.DataFrame(list(names))], axis=1)
        part["error"], part["gap"] = [p.error for p in found], [p.gap for p in found]
        for column, (i, j) in _ENTRIES.items():
            part[column] = [p.covariance[i, j] for p in found]
        part["dominated"] = dominated(part[["error", "gap"]].to_numpy())
        part["certainty"] = _certainty(runs, metric, protect)
        part["postprocessed_error"] = [at_equal_fairness(curve, metric, p.gap) for p in found]
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def _certainty(runs: Sequence[StoredRun], metric: str, protect: tuple[str, ...]) -> Array:
    """Return the largest probability, over the other runs, of outperforming each run."""
    settings = Settings(("error_rate", metric), (0.0, 0.0), draws=_DRAWS, protect=protect)
    matrix = outperformance(runs, settings)
    np.fill_diagonal(matrix, 0)
    largest: Array = matrix.max(axis=0)
    return largest
