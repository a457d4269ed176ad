"""Objectives that algorithms are compared by, and the posterior of error and gaps together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.core.errors import UserError
from fairbench.core.seeds import rng
from fairbench.inference.effective_counts import effective_counts, mean_shrinkage
from fairbench.inference.posterior import table_draws
from fairbench.inference.repeats import mean_table_draws
from fairbench.metrics.rates import Counts, error_rate, total
from fairbench.metrics.registry import BINARY, Metric, metrics_of, unknown_metric


@dataclass(frozen=True)
class Objective:
    """A function of tables (..., G, 4) -> (...) whose larger values are the better ones.

    Attributes
    ----------
    name : its name.
    function : the function.
    rates : the rates, (..., G, 4) -> (..., G), that it compares between groups or takes of
        everyone.
    epsilon : the largest difference that makes none in practice.
    """

    name: str
    function: Callable[[Counts], Floats]
    rates: tuple[Callable[[Counts], Floats], ...] = ()
    epsilon: float = 0.01

    def __call__(self, tables: Counts) -> Floats:
        """Return the objective of every set of group tables."""
        return self.function(tables)


def _of_everyone(metric: Metric) -> Callable[[Counts], Floats]:
    return lambda tables: metric.larger_is_better(metric(total(tables))[..., 0])


def _between_groups(metric: Metric) -> Callable[[Counts], Floats]:
    return lambda tables: metric.larger_is_better(metric(tables))


def _signed(metric: Metric) -> Callable[[Counts], Floats]:
    """Return the objective of the signed difference between two groups."""

    def function(tables: Counts) -> Floats:
        values = metric(tables)
        if values.shape[-1] != 1:
            raise UserError(
                f"a signed difference of {metric.rates[0].name} needs two groups, not "
                f"{values.shape[-1] + 1}"
            )
        return np.asarray(values[..., 0])

    return function


def _declared_objectives() -> Iterator[Objective]:
    """Yield the objectives of all metrics with a direction: rates, gaps and signed differences."""
    for metric in metrics_of(BINARY, "rate").values():
        if metric.direction:
            function = _of_everyone(metric)
            yield Objective(metric.name, function, (metric.function,), metric.epsilon)
    for metric in metrics_of(BINARY, "widest").values():
        yield Objective(metric.name, _between_groups(metric), metric.rates, metric.epsilon)
    for metric in metrics_of(BINARY, "difference").values():
        yield Objective(metric.name, _signed(metric), metric.rates, metric.epsilon)


@lru_cache(maxsize=1)
def objectives() -> Mapping[str, Objective]:
    """Return every objective by name, as the metrics of classifications declare them."""
    return MappingProxyType({objective.name: objective for objective in _declared_objectives()})


def objective(name: str) -> Objective:
    """Return the objective of a name.

    Rates of everyone (``accuracy`` ...); gaps between groups with a minus sign
    (``equal_opportunity`` ...); ``disparate_impact`` as the smaller of ratio and inverse; signed
    differences of two groups, the other group's minus the reference's
    (``equal_opportunity_difference`` ...), which the published code uses: there a gap in favour of
    the other group counts as better than none.
    """
    if name not in objectives():
        raise unknown_metric("objective", name, objectives())
    return objectives()[name]


METRICS = ("statistical_parity", "equalized_odds", "equal_opportunity", "predictive_parity")
DRAWS = 2000
_ENTRIES = {"error_variance": (0, 0), "covariance": (0, 1), "gap_variance": (1, 1)}
_SEED = 0


@dataclass(frozen=True)
class Point:
    """A run's error and gap, means over its repeats, and the posterior around them.

    Attributes
    ----------
    error, gap : the means over the repeats.
    covariance : (2, 2) the covariance of error and gap, of the means of all repeats, or of the
        repeat of median error, whose covariance is that of one test set; NaN where the gap is
        undefined in nearly every draw.
    """

    error: float
    gap: float
    covariance: Floats


def points(
    counts: NDArray[Any], dataset: str, *, test_share: float = float("nan")
) -> dict[str, Point]:
    """Return an algorithm's point for every metric of `METRICS`.

    The posterior is that of the counts: Dirichlet in every group, groups weighed by their share of
    the test rows, so that error and gap come from the same draws. K folds are pooled at their
    effective counts.

    Parameters
    ----------
    counts : (R, K, G, 4) confusion counts of R repeats of K folds; one fold of a hold-out split.
    dataset : name that the draws are seeded by, so that a data set's algorithms share them.
    test_share : the share of the rows that a hold-out repeat tests, for the posterior of the mean
        of all repeats; NaN for that of the repeat of median error.
    """
    folds = counts.shape[1]
    worth = mean_shrinkage(folds) if folds > 1 else 1.0
    observed = effective_counts(np.swapaxes(counts, 0, 1), worth)
    errors = _error(observed)
    median = int(np.argsort(errors, kind="stable")[len(errors) // 2])
    generator = rng(_SEED, "tradeoff", dataset, median)
    if len(observed) == 1 or np.isnan(test_share):
        draws = table_draws(observed[median], DRAWS, generator)
    else:
        shares = observed / observed.sum(axis=(-1, -2), keepdims=True)
        draws = mean_table_draws(shares, test_share, draws=DRAWS, generator=generator)
    values = {}
    for name in METRICS:
        metric = metrics_of(BINARY, "widest")[name]
        gaps = metric(observed)
        gap = float(gaps[~np.isnan(gaps)].mean()) if not np.isnan(gaps).all() else np.nan
        drawn = np.stack([_error(draws), metric(draws)])
        drawn = drawn[:, ~np.isnan(drawn[1])]
        covariance = np.cov(drawn) if drawn.shape[1] > 1 else np.full((2, 2), np.nan)
        values[name] = Point(float(errors.mean()), gap, covariance)
    return values


def point_table(
    runs: Sequence[str], names: Sequence[Mapping[str, str]], found: Sequence[Mapping[str, Point]]
) -> pd.DataFrame:
    """Return a row for every metric and run.

    Parameters
    ----------
    runs : the id of every run.
    names : the ``learner``, ``intervention`` and ``method`` of every run.
    found : the points of every run, by metric.

    Returns
    -------
    ``metric``, ``run``, ``learner``, ``intervention``, ``method``, ``error``, ``gap``,
    ``error_variance``, ``gap_variance``, ``covariance``, ``dominated``.
    """
    rows = []
    for metric in METRICS:
        run_points = [objective_values[metric] for objective_values in found]
        behind = is_dominated(np.array([[p.error, p.gap] for p in run_points])).tolist()
        for run, name, point, is_behind in zip(runs, names, run_points, behind, strict=True):
            entries = {column: point.covariance[at] for column, at in _ENTRIES.items()}
            front = {"metric": metric, "run": run, **name, "error": point.error, "gap": point.gap}
            rows.append({**front, **entries, "dominated": is_behind})
    return pd.DataFrame(rows)


def _error(tables: Floats) -> Floats:
    return error_rate(total(tables))[..., 0]


def is_dominated(values: Floats) -> NDArray[np.bool_]:
    """Return which rows (R, m) are dominated: another is no larger, and smaller in a column.

    A row with NaN neither dominates nor is dominated.
    """
    no_larger = (values[:, None] <= values[None]).all(axis=-1)
    smaller = (values[:, None] < values[None]).any(axis=-1)
    return np.asarray((no_larger & smaller).any(axis=0))


def frontier(tables: Sequence[pd.DataFrame], protect: str) -> pd.DataFrame:
    """Return error and gap of the best score's thresholds per group, means over repeats.

    Parameters
    ----------
    tables : metrics of the runs without intervention; of those that have been postprocessed, the
        one of least unprocessed error on validation rows is taken.

    Returns
    -------
    ``base`` (position in `tables`), ``constraint``, ``relaxation``, ``error``, ``gap``; empty where
    no run was postprocessed.
    """
    columns = ["base", "constraint", "relaxation", "error", "gap"]
    curves = []
    for i, metrics in enumerate(tables):
        rows = metrics[metrics["metric"].str.startswith("postprocessed_")]
        rows = rows[(rows["attribute"] == protect) & (rows["variant"] == "")]
        if rows.empty:
            continue
        rows = rows.assign(constraint=rows["constraint"].astype(str))
        by = ["constraint", "relaxation", "metric"]
        mean = rows.groupby(by)["value"].mean().unstack().reset_index().assign(base=i)
        mean.columns = [str(name).removeprefix("postprocessed_") for name in mean.columns]
        curves.append(mean.rename(columns={"error_rate": "error"}))
    if not curves:
        return pd.DataFrame(columns=columns)
    best = min(curves, key=lambda mean: float(mean["validation_error_rate"].min()))
    return best[columns]


def at_equal_fairness(curve: pd.DataFrame, metric: str, gap: float) -> float:
    """Return the least error of the frontier at a gap no larger than `gap`, NaN where it has none.

    Two of its points may be mixed: at random between them, the error is on the line between them,
    and the gap no larger.
    """
    points = curve.loc[curve["constraint"] == metric, ["error", "gap"]].to_numpy(float)
    under, over = points[points[:, 1] <= gap], points[points[:, 1] > gap]
    if not len(under):
        return float("nan")
    share = (gap - under[:, None, 1]) / (over[:, 1] - under[:, None, 1])
    mixed = under[:, None, 0] + share * (over[:, 0] - under[:, None, 0])
    return float(min(under[:, 0].min(), mixed.min(initial=float("inf"))))
