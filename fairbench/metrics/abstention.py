"""Abstaining on the most uncertain rows: which are kept, and what the kept ones' risk is."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairbench.metrics.ranks import mean_over_ties, tie_blocks
from fairbench.metrics.registry import BINARY, Metric

Weights = NDArray[np.float64]


def keep_weights(uncertainty: ArrayLike, rate: float) -> Weights:
    """Return how much of each row is kept when a share `rate` is abstained on, (n,) in [0, 1].

    The least uncertain rows are kept, at least one. Rows that tie at the boundary each count with
    the share of them that is kept: the expectation over ties broken at random, so that a method
    with few distinct values abstains on exactly the share asked for, whatever the order of rows.
    """
    values = np.asarray(uncertainty, float)
    kept = max(len(values) - round(rate * len(values)), 1)
    block = tie_blocks(values)
    size = np.bincount(block)
    before = np.cumsum(size) - size
    share: Weights = np.clip((kept - before) / size, 0, 1)[block]
    return share


def area_under_risk_coverage(loss: ArrayLike, uncertainty: ArrayLike) -> float:
    """Return the mean, over coverages 1/n .. 1, of the mean loss of the rows kept.

    Geifman, El-Yaniv 2017; the lower, the better the uncertainty ranks the errors. Tied rows count
    with their mean loss.
    """
    u = np.asarray(uncertainty, float)
    ordered = mean_over_ties(u, loss)[np.argsort(u, kind="stable")]
    return float((np.cumsum(ordered) / np.arange(1, len(ordered) + 1)).mean())


def _of_errors(target: ArrayLike, prediction: ArrayLike, uncertainty: ArrayLike) -> float:
    return area_under_risk_coverage(np.asarray(target) != np.asarray(prediction), uncertainty)


AREA_UNDER_RISK_COVERAGE = Metric(
    name="area_under_risk_coverage",
    label="area under the risk-coverage curve",
    sentence="The error rate of the least uncertain people, on average over how many of them.",
    task=BINARY,
    better="lower",
    needs=("prediction", "uncertainty"),
    interval="none",
    function=_of_errors,
    special=True,
)
