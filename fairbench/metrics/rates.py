"""Confusion counts per group, and the rates that are ratios of sums of their cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairbench.core.arrays import Floats
from fairbench.metrics.registry import BINARY, Better, Metric

TN, FP, FN, TP = range(4)


def confusion(
    target: ArrayLike,
    prediction: ArrayLike,
    group: ArrayLike,
    *,
    n_groups: int,
    n_classes: int = 2,
    times: ArrayLike | None = None,
) -> NDArray[np.int64]:
    """Count (group, target class, predicted class).

    Parameters
    ----------
    target, prediction : (n,) class codes 0 .. n_classes - 1.
    group : (n,) group codes 0 .. n_groups - 1.
    times : (n,) how often each row comes; once by default.

    Returns
    -------
    (G, C, C) counts; a group without rows is all zeros.
    """
    target, prediction, group = (np.asarray(a, np.int64) for a in (target, prediction, group))
    cell = (group * n_classes + target) * n_classes + prediction
    counts = np.bincount(cell, times, minlength=n_groups * n_classes**2)
    return counts.reshape(n_groups, n_classes, n_classes).astype(np.int64)


def binary_confusion(
    target: ArrayLike,
    prediction: ArrayLike,
    group: ArrayLike,
    *,
    n_groups: int,
    times: ArrayLike | None = None,
) -> NDArray[np.int64]:
    """Count (group, [TN, FP, FN, TP]) as a (G, 4) array."""
    counts = confusion(target, prediction, group, n_groups=n_groups, times=times)
    return counts.reshape(n_groups, 4)


def total(counts: NDArray[Any]) -> NDArray[Any]:
    """Return the counts of all groups together, (..., G, 4) -> (..., 1, 4)."""
    pooled: NDArray[Any] = counts.sum(axis=-2, keepdims=True)
    return pooled


Counts = NDArray[Any]


class RateWeights(NamedTuple):
    """How much each success and each failure count in a rate; 1 and 1 in a plain share of rows."""

    success: int
    failure: int


@dataclass(frozen=True)
class Rate:
    """A ratio of two weighted sums over the cells TN, FP, FN, TP.

    Calling it maps counts or probabilities (..., 4) to values (...), NaN where the denominator is
    0.

    Attributes
    ----------
    numerator, denominator : the weights of the cells TN, FP, FN, TP in each sum.
    empty : what is missing where the denominator is 0, in words.
    """

    name: str
    numerator: tuple[int, int, int, int]
    denominator: tuple[int, int, int, int]
    empty: str

    def __call__(self, counts: Counts) -> NDArray[np.float64]:
        """Return the rate of every table in `counts` (..., 4)."""
        top, bottom = (_sum(counts, weights) for weights in (self.numerator, self.denominator))
        undefined = np.full_like(bottom, np.nan)  # draws that lie in memory side by side stay so
        rate: NDArray[np.float64] = np.divide(top, bottom, out=undefined, where=bottom > 0)
        return rate

    def size(self, counts: Counts) -> NDArray[np.float64]:
        """Return how many rows the rate is based on: those in a cell of the denominator."""
        return _sum(counts, tuple(int(weight > 0) for weight in self.denominator))

    def successes(self, counts: Counts) -> NDArray[np.float64]:
        """Return how many rows are in the cells of the numerator."""
        return _sum(counts, tuple(int(weight > 0) for weight in self.numerator))

    @property
    def weights(self) -> RateWeights:
        """How much successes and failures count.

        With s rows in the numerator's cells and f rows in the other cells of the denominator, the
        rate is success * s / (success * s + failure * f). The f1 score, for example, is
        2 TP / (2 TP + FP + FN): a success counts 2, a failure 1.
        """
        failure_weights = [
            weight
            for weight, top in zip(self.denominator, self.numerator, strict=True)
            if weight and not top
        ]
        return RateWeights(max(self.numerator), failure_weights[0])


def shares_of(rates: Sequence[Rate], counts: Counts) -> tuple[Floats, Floats]:
    """Return `successes` and `size` of several rates of counts (..., 4), (R, ...) each."""
    parts = ([rate.numerator for rate in rates], [rate.denominator for rate in rates])
    cells = np.expand_dims(np.array(parts) > 0, tuple(range(2, np.ndim(counts) + 1)))
    successes, sizes = (counts * cells).sum(axis=-1, dtype=np.float64)
    return successes, sizes


def _sum(counts: Counts, weights: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the weighted sum over the last axis, skipping cells of weight 0."""
    total = None
    for cell, weight in enumerate(weights):
        if weight:
            term = counts[..., cell] if weight == 1 else weight * counts[..., cell]
            total = term if total is None else total + term
    return np.asarray(total, np.float64)


_ALL = (1, 1, 1, 1)
_NEGATIVES, _POSITIVES = (1, 1, 0, 0), (0, 0, 1, 1)
_PREDICTED_NEGATIVES, _PREDICTED_POSITIVES = (1, 0, 1, 0), (0, 1, 0, 1)

selection_rate = Rate("selection_rate", _PREDICTED_POSITIVES, _ALL, "no rows")
base_rate = Rate("base_rate", _POSITIVES, _ALL, "no rows")
accuracy = Rate("accuracy", (1, 0, 0, 1), _ALL, "no rows")
error_rate = Rate("error_rate", (0, 1, 1, 0), _ALL, "no rows")
true_positive_rate = Rate("true_positive_rate", (0, 0, 0, 1), _POSITIVES, "no positives")
false_negative_rate = Rate("false_negative_rate", (0, 0, 1, 0), _POSITIVES, "no positives")
false_positive_rate = Rate("false_positive_rate", (0, 1, 0, 0), _NEGATIVES, "no negatives")
true_negative_rate = Rate("true_negative_rate", (1, 0, 0, 0), _NEGATIVES, "no negatives")
positive_predictive_value = Rate(
    "positive_predictive_value", (0, 0, 0, 1), _PREDICTED_POSITIVES, "no predicted positives"
)
negative_predictive_value = Rate(
    "negative_predictive_value", (1, 0, 0, 0), _PREDICTED_NEGATIVES, "no predicted negatives"
)
f1_score = Rate("f1_score", (0, 0, 0, 2), (0, 1, 1, 2), "no positives and no predicted positives")


def _rate_metric(
    rate: Rate, label: str, sentence: str, better: Better, shown: tuple[str, ...] = ()
) -> Metric:
    """Return the declaration of a rate as a metric."""
    return Metric(
        name=rate.name,
        label=label,
        sentence=sentence,
        task=BINARY,
        better=better,
        needs=("prediction",),
        interval="rate",
        function=rate,
        rates=(rate,),
        shown=shown,
    )


SELECTION_RATE = _rate_metric(
    selection_rate,
    "selection rate",
    "The share of people that are predicted 1.",
    "neither",
    ("groups",),
)
BASE_RATE = _rate_metric(base_rate, "base rate", "The share of people whose label is 1.", "neither")
ACCURACY = _rate_metric(
    accuracy, "accuracy", "The share of people whose prediction is right.", "higher"
)
ERROR_RATE = _rate_metric(
    error_rate,
    "error rate",
    "The share of people whose prediction is wrong.",
    "lower",
    ("everyone", "groups"),
)
TRUE_POSITIVE_RATE = _rate_metric(
    true_positive_rate,
    "true positive rate",
    "Of the people whose label is 1, the share that is predicted 1.",
    "higher",
    ("groups",),
)
FALSE_NEGATIVE_RATE = _rate_metric(
    false_negative_rate,
    "false negative rate",
    "Of the people whose label is 1, the share that is predicted 0.",
    "lower",
)
FALSE_POSITIVE_RATE = _rate_metric(
    false_positive_rate,
    "false positive rate",
    "Of the people whose label is 0, the share that is predicted 1.",
    "lower",
    ("groups",),
)
TRUE_NEGATIVE_RATE = _rate_metric(
    true_negative_rate,
    "true negative rate",
    "Of the people whose label is 0, the share that is predicted 0.",
    "higher",
)
POSITIVE_PREDICTIVE_VALUE = _rate_metric(
    positive_predictive_value,
    "precision",
    "Of the people that are predicted 1, the share whose label is 1.",
    "higher",
)
NEGATIVE_PREDICTIVE_VALUE = _rate_metric(
    negative_predictive_value,
    "negative predictive value",
    "Of the people that are predicted 0, the share whose label is 0.",
    "higher",
)
F1_SCORE = _rate_metric(
    f1_score,
    "f1 score",
    "The harmonic mean of precision and true positive rate.",
    "higher",
    ("everyone",),
)


def balanced_accuracy(counts: Counts) -> NDArray[np.float64]:
    """Return the mean of true positive and true negative rate, (..., 4) -> (...)."""
    balanced: NDArray[np.float64] = (true_positive_rate(counts) + true_negative_rate(counts)) / 2
    return balanced


BALANCED_ACCURACY = Metric(
    name="balanced_accuracy",
    label="balanced accuracy",
    sentence="The mean of the true positive rate and the true negative rate.",
    task=BINARY,
    better="higher",
    needs=("prediction",),
    interval="rate",
    function=balanced_accuracy,
    rates=(true_positive_rate, true_negative_rate),
    shown=("everyone",),
)
