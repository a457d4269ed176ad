"""Group fairness of classifications: pure functions of counts (..., G, 4), reference group first.

The same function serves observed counts, posterior draws (T, G, 4) and effective counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from fairbench.metrics.rates import (
    Counts,
    Rate,
    accuracy,
    false_positive_rate,
    positive_predictive_value,
    selection_rate,
    true_positive_rate,
)

Values = NDArray[np.float64]


def gap(rate: Rate, counts: Counts) -> Values:
    """Return the largest difference of `rate` between two groups; NaN if any group's is NaN."""
    values = rate(counts)
    largest: Values = values.max(axis=-1) - values.min(axis=-1)
    return largest


def difference(rate: Rate, counts: Counts) -> Values:
    """Return `rate` of every other group minus the reference's, (..., G, 4) -> (..., G - 1)."""
    values = rate(counts)
    signed: Values = values[..., 1:] - values[..., :1]
    return signed


def ratio(rate: Rate, counts: Counts) -> Values:
    """Return `rate` of every other group over the reference's; NaN where the reference's is 0."""
    values = rate(counts)
    return _divide(values[..., 1:], values[..., :1])


def statistical_parity(counts: Counts) -> Values:
    """Return the largest gap of selection rates (demographic parity difference)."""
    return gap(selection_rate, counts)


def equal_opportunity(counts: Counts) -> Values:
    """Return the largest gap of true positive rates (Hardt et al. 2016)."""
    return gap(true_positive_rate, counts)


def false_positive_rate_gap(counts: Counts) -> Values:
    """Return the largest gap of false positive rates (predictive equality)."""
    return gap(false_positive_rate, counts)


def equalized_odds(counts: Counts) -> Values:
    """Return the larger of the gaps of true and of false positive rates (Hardt et al. 2016)."""
    return np.maximum(equal_opportunity(counts), false_positive_rate_gap(counts))


def predictive_parity(counts: Counts) -> Values:
    """Return the largest gap of positive predictive values."""
    return gap(positive_predictive_value, counts)


def accuracy_gap(counts: Counts) -> Values:
    """Return the largest gap of accuracies."""
    return gap(accuracy, counts)


def disparate_impact(counts: Counts) -> Values:
    """Return the ratio of selection rates (Feldman et al. 2015).

    Unprivileged over privileged for two groups, smallest over largest for more.
    """
    values = selection_rate(counts)
    if values.shape[-1] == 2:
        return _divide(values[..., 1], values[..., 0])
    return _divide(values.min(axis=-1), values.max(axis=-1))


def _divide(top: Values, bottom: Values) -> Values:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(bottom > 0, top / bottom, np.nan)


@dataclass(frozen=True)
class GroupMetric:
    """A function (..., G, 4) -> (...), the rates it rests on, and whether 0 is fair (else 1)."""

    function: Callable[[Counts], Values]
    rates: tuple[Rate, ...]
    is_gap: bool = True

    def __call__(self, counts: Counts) -> Values:
        """Return the metric of every set of group counts."""
        return self.function(counts)


GROUP_METRICS: Mapping[str, GroupMetric] = MappingProxyType(
    {
        "statistical_parity": GroupMetric(statistical_parity, (selection_rate,)),
        "disparate_impact": GroupMetric(disparate_impact, (selection_rate,), is_gap=False),
        "equal_opportunity": GroupMetric(equal_opportunity, (true_positive_rate,)),
        "false_positive_rate_gap": GroupMetric(false_positive_rate_gap, (false_positive_rate,)),
        "equalized_odds": GroupMetric(equalized_odds, (true_positive_rate, false_positive_rate)),
        "predictive_parity": GroupMetric(predictive_parity, (positive_predictive_value,)),
        "accuracy_gap": GroupMetric(accuracy_gap, (accuracy,)),
    }
)

PAIRWISE: Mapping[str, Rate] = MappingProxyType(
    {
        "statistical_parity": selection_rate,
        "equal_opportunity": true_positive_rate,
        "false_positive_rate": false_positive_rate,
        "predictive_parity": positive_predictive_value,
        "accuracy": accuracy,
    }
)


def debiased(metric: GroupMetric, counts: Counts, resampled: Counts) -> float:
    """Return a gap freed of the upward bias that many small groups give the plug-in.

    The bias is estimated by a parametric bootstrap (mean over `resampled` minus the plug-in) and
    subtracted; the result is cut off at 0.

    Parameters
    ----------
    counts : (G, 4) observed counts.
    resampled : (T, G, 4) multinomial counts around them.
    """
    plug_in = float(metric(counts))
    samples = metric(resampled)
    samples = samples[~np.isnan(samples)]
    if np.isnan(plug_in) or not samples.size:
        return float("nan")
    return max(0.0, 2 * plug_in - float(samples.mean()))
