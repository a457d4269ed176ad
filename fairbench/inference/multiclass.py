"""Predictions of several classes: their tables, and averages of metrics over classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Metric = Callable[[NDArray[Any]], Array]


def one_versus_rest(tables: NDArray[Any], n_classes: int) -> NDArray[Any]:
    """Return each class's TN, FP, FN, TP against all others.

    Parameters
    ----------
    tables : (..., C^2) counts, true class by predicted class; with groups (..., G, C^2).

    Returns
    -------
    (C, ..., 4), classes first, so that a metric of group tables applies to every class at once.
    """
    square = tables.reshape(*tables.shape[:-1], n_classes, n_classes)
    hits = np.diagonal(square, axis1=-2, axis2=-1)
    misses, false_alarms = square.sum(axis=-1) - hits, square.sum(axis=-2) - hits
    rest = tables.sum(axis=-1)[..., None] - hits - misses - false_alarms
    return np.moveaxis(np.stack([rest, false_alarms, misses, hits], axis=-1), -2, 0)


def micro(metric: Metric, tables: NDArray[Any], n_classes: int) -> Array:
    """Return the metric of the one-versus-rest counts summed over the classes."""
    return metric(one_versus_rest(tables, n_classes).sum(axis=0))


def macro(metric: Metric, tables: NDArray[Any], n_classes: int) -> Array:
    """Return the mean over the classes of each one's metric."""
    averaged: Array = metric(one_versus_rest(tables, n_classes)).mean(axis=0)
    return averaged


def macro_micro(metric: Metric, tables: NDArray[Any], n_classes: int) -> Array:
    """Return the mean of the macro and the micro average."""
    return (macro(metric, tables, n_classes) + micro(metric, tables, n_classes)) / 2


AVERAGES: Mapping[str, Callable[[Metric, NDArray[Any], int], Array]] = MappingProxyType(
    {"micro": micro, "macro": macro, "macro-micro": macro_micro}
)


Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class MulticlassScores:
    """A pool of rows with predicted classes and confidences; labels where they are known.

    Attributes
    ----------
    target : (n,) codes into `classes`, `UNKNOWN` where there is no label.
    prediction : (n,) codes of the predicted classes.
    confidence : (n,) probability that the classifier gave its prediction, in [0, 1].
    classes : names of the C classes.
    probabilities : (n, C) of all classes, where they are known.
    """

    target: Codes
    prediction: Codes
    confidence: Floats
    classes: tuple[str, ...]
    probabilities: Floats | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.prediction)

    @property
    def labelled(self) -> Codes:
        """Return the positions of the rows with a label."""
        return np.flatnonzero(self.target != UNKNOWN)

    @cached_property
    def correct(self) -> Floats:
        """(n,) 1 where the prediction is right, 0 where it is wrong, NaN without a label."""
        right = (self.target == self.prediction).astype(np.float64)
        return np.where(self.target == UNKNOWN, np.nan, right)

    def showing(self, rows: Codes) -> MulticlassScores:
        """Return the same pool with the labels of `rows` alone."""
        target = np.full(len(self), UNKNOWN)
        target[rows] = self.target[rows]
        return replace(self, target=target)

    def distribution(self) -> Floats:
        """Return (n, C) probabilities; what a lone confidence leaves is shared by the others."""
        if self.probabilities is not None:
            return self.probabilities
        n, others = len(self), max(len(self.classes) - 1, 1)
        shares = np.repeat(((1 - self.confidence) / others)[:, None], len(self.classes), axis=1)
        shares[np.arange(n), self.prediction] = self.confidence
        return shares
