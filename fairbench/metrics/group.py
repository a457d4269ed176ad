"""Group fairness of classifications: pure functions of counts (..., G, 4), reference group first.

The same function serves observed counts, posterior draws (T, G, 4) and effective counts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np

from fairbench.core.arrays import Floats
from fairbench.metrics.rates import (
    Counts,
    Rate,
    accuracy,
    false_positive_rate,
    positive_predictive_value,
    selection_rate,
    true_positive_rate,
)
from fairbench.metrics.registry import BINARY, Better, Metric


def gap(rate: Rate, counts: Counts) -> Floats:
    """Return the largest difference of `rate` between two groups; NaN if any group's is NaN."""
    values = rate(counts)
    largest: Floats = values.max(axis=-1) - values.min(axis=-1)
    return largest


def difference(rate: Rate, counts: Counts) -> Floats:
    """Return `rate` of every other group minus the reference's, (..., G, 4) -> (..., G - 1)."""
    values = rate(counts)
    signed: Floats = values[..., 1:] - values[..., :1]
    return signed


def ratio(rate: Rate, counts: Counts) -> Floats:
    """Return `rate` of every other group over the reference's; NaN where the reference's is 0."""
    values = rate(counts)
    return _divide(values[..., 1:], values[..., :1])


def statistical_parity(counts: Counts) -> Floats:
    """Return the largest gap of selection rates (demographic parity difference)."""
    return gap(selection_rate, counts)


def equal_opportunity(counts: Counts) -> Floats:
    """Return the largest gap of true positive rates (Hardt et al. 2016)."""
    return gap(true_positive_rate, counts)


def false_positive_rate_gap(counts: Counts) -> Floats:
    """Return the largest gap of false positive rates (predictive equality)."""
    return gap(false_positive_rate, counts)


def equalized_odds(counts: Counts) -> Floats:
    """Return the larger of the gaps of true and of false positive rates (Hardt et al. 2016)."""
    return np.maximum(equal_opportunity(counts), false_positive_rate_gap(counts))


def predictive_parity(counts: Counts) -> Floats:
    """Return the largest gap of positive predictive values."""
    return gap(positive_predictive_value, counts)


def accuracy_gap(counts: Counts) -> Floats:
    """Return the largest gap of accuracies."""
    return gap(accuracy, counts)


def disparate_impact(counts: Counts) -> Floats:
    """Return the ratio of selection rates (Feldman et al. 2015).

    Unprivileged over privileged for two groups, smallest over largest for more.
    """
    values = selection_rate(counts)
    if values.shape[-1] == 2:
        return _divide(values[..., 1], values[..., 0])
    return _divide(values.min(axis=-1), values.max(axis=-1))


def _divide(top: Floats, bottom: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(bottom > 0, top / bottom, np.nan)


def _group_metric(
    function: Callable[[Counts], Floats],
    label: str,
    sentence: str,
    *rates: Rate,
    better: Better = "lower",
) -> Metric:
    """Return the declaration of a metric that compares the rates of all groups."""
    return Metric(
        name=function.__name__,
        label=label,
        sentence=sentence,
        task=BINARY,
        better=better,
        needs=("prediction", "groups"),
        interval="widest",
        function=function,
        rates=rates,
        shown=("gaps",),
    )


STATISTICAL_PARITY = _group_metric(
    statistical_parity,
    "gap in selection rate",
    "The largest difference between two groups in the share predicted 1 (demographic parity "
    "difference).",
    selection_rate,
)
DISPARATE_IMPACT = _group_metric(
    disparate_impact,
    "ratio of selection rates",
    "The other group's share predicted 1 over the reference group's; of three or more, the "
    "smallest over the largest.",
    selection_rate,
    better=1.0,
)
EQUAL_OPPORTUNITY = _group_metric(
    equal_opportunity,
    "gap in true positive rate",
    "The largest difference between two groups in the true positive rate (equal opportunity).",
    true_positive_rate,
)
FALSE_POSITIVE_RATE_GAP = _group_metric(
    false_positive_rate_gap,
    "gap in false positive rate",
    "The largest difference between two groups in the false positive rate.",
    false_positive_rate,
)
EQUALIZED_ODDS = _group_metric(
    equalized_odds,
    "gap in equalized odds",
    "The larger of the largest differences in the true and in the false positive rate.",
    true_positive_rate,
    false_positive_rate,
)
PREDICTIVE_PARITY = _group_metric(
    predictive_parity,
    "gap in precision",
    "The largest difference between two groups in precision.",
    positive_predictive_value,
)
ACCURACY_GAP = _group_metric(
    accuracy_gap,
    "gap in accuracy",
    "The largest difference between two groups in accuracy.",
    accuracy,
)


def _in_words(rate: Rate) -> str:
    return rate.name.replace("_", " ").replace("positive predictive value", "precision")


def _pair_metric(form: Literal["difference", "ratio"], name: str, rate: Rate) -> Metric:
    """Return the declaration of a metric that compares each group's rate with the reference's."""
    compared = "minus" if form == "difference" else "over"
    return Metric(
        name=f"{name}_{form}",
        label=f"{'difference in' if form == 'difference' else 'ratio of'} {_in_words(rate)}",
        sentence=f"A group's {_in_words(rate)} {compared} that of the first group.",
        task=BINARY,
        better="neither" if form == "difference" else 1.0,
        needs=("prediction", "groups"),
        interval=form,
        function=partial(difference if form == "difference" else ratio, rate),
        rates=(rate,),
    )


STATISTICAL_PARITY_DIFFERENCE = _pair_metric("difference", "statistical_parity", selection_rate)
STATISTICAL_PARITY_RATIO = _pair_metric("ratio", "statistical_parity", selection_rate)
EQUAL_OPPORTUNITY_DIFFERENCE = _pair_metric("difference", "equal_opportunity", true_positive_rate)
EQUAL_OPPORTUNITY_RATIO = _pair_metric("ratio", "equal_opportunity", true_positive_rate)
FALSE_POSITIVE_RATE_DIFFERENCE = _pair_metric(
    "difference", "false_positive_rate", false_positive_rate
)
FALSE_POSITIVE_RATE_RATIO = _pair_metric("ratio", "false_positive_rate", false_positive_rate)
PREDICTIVE_PARITY_DIFFERENCE = _pair_metric(
    "difference", "predictive_parity", positive_predictive_value
)
PREDICTIVE_PARITY_RATIO = _pair_metric("ratio", "predictive_parity", positive_predictive_value)
ACCURACY_DIFFERENCE = _pair_metric("difference", "accuracy", accuracy)
ACCURACY_RATIO = _pair_metric("ratio", "accuracy", accuracy)


def debiased(metric: Callable[[Counts], Floats], counts: Counts, resampled: Counts) -> Floats:
    """Return gaps (...) freed of the upward bias that many small groups give the plug-in.

    The bias is estimated by a parametric bootstrap (mean over `resampled` minus the plug-in) and
    subtracted; the result is cut off at 0.

    Parameters
    ----------
    counts : (..., G, 4) observed counts.
    resampled : (T, ..., G, 4) multinomial counts around them.
    """
    samples = metric(resampled)
    defined = ~np.isnan(samples)
    with np.errstate(invalid="ignore"):
        mean = np.where(defined, samples, 0.0).sum(axis=0) / defined.sum(axis=0)
    corrected: Floats = np.maximum(0.0, 2 * metric(counts) - mean)
    return corrected
