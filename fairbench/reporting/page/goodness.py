"""Which way a metric is better, and how much of it does not matter."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

ROPE = 0.01
_LARGER = frozenset({"balanced_accuracy", "f1_score", "roc_auc", "r2"})
_RATIOS = frozenset({"disparate_impact"})
_IN_THE_TARGETS_UNIT = frozenset({"rmse", "mae"})
_SMALLER = _IN_THE_TARGETS_UNIT | {
    "error_rate", "nll", "log_loss", "brier_score", "expected_calibration_error", "spread_error",
    "statistical_parity", "equal_opportunity", "false_positive_rate_gap", "equalized_odds",
    "predictive_parity", "accuracy_gap",
}  # fmt: skip


def direction(metric: str) -> str:
    """Return in words which values of a metric are good; empty where none are."""
    if metric in _LARGER:
        return "larger is better"
    if metric in _SMALLER:
        return "smaller is better"
    return "nearer to 1 is better" if metric in _RATIOS else ""


def goodness(metric: str, values: Values) -> Values:
    """Return values turned so that the larger are the better, of a metric that has a direction."""
    if metric in _RATIOS:
        with np.errstate(divide="ignore"):
            return np.minimum(values, 1 / values)
    return values if metric in _LARGER else -values


def rope(metric: str, values: Values) -> float:
    """Return the largest difference that does not matter in practice.

    0.01, and of errors in the target's own unit 1 % of their median.
    """
    return ROPE * float(np.median(values)) if metric in _IN_THE_TARGETS_UNIT else ROPE
