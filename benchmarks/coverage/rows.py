"""Intervals of statistics of per-row values, (R, n) each: ours, normal, and by the bootstrap.

Ours are functions of many groups of rows at once, here of R replications at once.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.simulate import LEVEL, Interval
from fairbench.core.arrays import Floats
from fairbench.inference.means import (
    RARE_ROWS,
    ROWS,
    Moments,
    heavy_limits,
    loss_limits,
    outcome_limits,
    root_limits,
    tail_index,
)
from fairbench.inference.rates import Limits, difference_limits, quantile, rate_limits
from fairbench.inference.scores import (
    Bins,
    area_limits,
    areas,
    calibration_limits,
    explained_limits,
    explained_variance,
)

BOOTSTRAP = "bootstrap"
RESAMPLES = 400


def replication(rows: Floats) -> NDArray[np.intp]:
    """Return which replication each of the (R, n) values is of, as one array."""
    return np.repeat(np.arange(len(rows)), rows.shape[1])


def mean_ours(losses: Floats, fewest: int = 0) -> Limits:
    """Return means of losses that are at least 0 with our limits, of so many rows or more."""
    limits = loss_limits(Moments.of(losses), level=LEVEL, least=0.0, rows=max(fewest, ROWS))
    rare = (losses > losses.min(axis=1, keepdims=True)).sum(axis=1) < RARE_ROWS
    return Limits(limits.value, *(np.where(rare, np.nan, end) for end in limits[1:]))


def heavy_ours(losses: Floats) -> Limits:
    """Return means of losses that grow like squares with our limits."""
    over = losses - losses.min(axis=1, keepdims=True)
    return heavy_limits(Moments.of(losses), _tail_index(over), level=LEVEL)


def _tail_index(values: Floats) -> Floats:
    return tail_index(values.ravel(), replication(values), len(values))


def outcome_ours(losses: Floats, other: Floats, label: Floats) -> Limits:
    """Return mean losses of labels with our limits, which know that a label may be rare."""
    labels, codes = label.ravel().astype(np.intp), replication(losses)
    moments = Moments.by_label(losses.ravel(), other.ravel(), labels, codes, len(losses))
    moments = moments.take(np.arange(2 * len(losses)).reshape(-1, 2))
    return outcome_limits(moments, level=LEVEL, least=0.0)


def root_ours(squares: Floats) -> Limits:
    """Return roots of means of squares with our limits."""
    return root_limits(Moments.of(squares), _tail_index(squares), level=LEVEL)


def share_ours(successes: Floats) -> Limits:
    """Return shares of rows with our limits."""
    return rate_limits(successes.sum(axis=1), successes.shape[1], level=LEVEL)


def explained_ours(target: Floats, prediction: Floats) -> Limits:
    """Return coefficients of determination with our limits."""
    codes = replication(target)
    result = explained_variance(target.ravel(), prediction.ravel(), codes, len(target))
    return explained_limits(result, level=LEVEL)


def area_ours(label: Floats, score: Floats) -> Limits:
    """Return areas under ROC curves with our limits."""
    result = areas(label.ravel(), score.ravel(), replication(score), len(score))
    return area_limits(result, level=LEVEL)


def calibration_ours(size: Floats, positives: Floats, mean_score: Floats) -> Limits:
    """Return calibration errors with our limits, from bins (R, B)."""
    return calibration_limits(Bins(size, positives, mean_score), level=LEVEL)


def with_differences(found: Mapping[str, tuple[Limits, Limits]]) -> dict[str, Interval]:
    """Return each metric's ends in the second group, and those of its difference from the first."""
    ends: dict[str, Interval] = {}
    for name, (first, second) in found.items():
        difference = difference_limits(second, first)
        ends[name] = second.lower, second.upper
        ends[f"difference in {name}"] = difference.lower, difference.upper
    return ends


def mean_normal(losses: Floats, minus: Floats | None = None) -> Interval:
    """Return the normal intervals of means, less those of another group's losses."""
    value, variance = losses.mean(axis=1), losses.var(axis=1, ddof=1) / losses.shape[1]
    if minus is not None:
        value = value - minus.mean(axis=1)
        variance = variance + minus.var(axis=1, ddof=1) / minus.shape[1]
    half = quantile(LEVEL) * np.sqrt(variance)
    return value - half, value + half


def means_bootstrap(
    draw: np.random.Generator, losses: Floats, minus: Floats | None = None
) -> Interval:
    """Return the bootstrap's percentiles of means, less those of another group's losses.

    The resamples of all replications share their weights: replications stay independent of what
    their own rows are.
    """
    means = _resampled(draw, losses)
    if minus is not None:
        means = means - _resampled(draw, minus)
    tail = (1 - LEVEL) / 2
    lower, upper = np.quantile(means, [tail, 1 - tail], axis=0)
    return lower, upper


def weights(draw: np.random.Generator, rows: int) -> Floats:
    """Return how often (T, n) each row is in each resample."""
    return draw.multinomial(rows, np.full(rows, 1 / rows), size=RESAMPLES).astype(float)


def _resampled(draw: np.random.Generator, losses: Floats) -> Floats:
    """Return (T, R) resampled means."""
    rows = losses.shape[1]
    means: Floats = weights(draw, rows) @ losses.T / rows
    return means
