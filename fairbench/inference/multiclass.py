"""Multi-class confusion tables as one-versus-rest tables, and averages of metrics over classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
