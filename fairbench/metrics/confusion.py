"""Confusion counts per group: the one representation every group metric starts from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

TN, FP, FN, TP = range(4)


def confusion(
    target: ArrayLike, prediction: ArrayLike, group: ArrayLike, *, n_groups: int, n_classes: int = 2
) -> NDArray[np.int64]:
    """Count (group, target class, predicted class).

    Parameters
    ----------
    target, prediction : (n,) class codes 0 .. n_classes - 1.
    group : (n,) group codes 0 .. n_groups - 1.

    Returns
    -------
    (G, C, C) counts; a group without rows is all zeros.
    """
    target, prediction, group = (np.asarray(a, np.int64) for a in (target, prediction, group))
    cell = (group * n_classes + target) * n_classes + prediction
    counts = np.bincount(cell, minlength=n_groups * n_classes**2)
    return counts.reshape(n_groups, n_classes, n_classes).astype(np.int64)


def binary_confusion(
    target: ArrayLike, prediction: ArrayLike, group: ArrayLike, *, n_groups: int
) -> NDArray[np.int64]:
    """Count (group, [TN, FP, FN, TP]) as a (G, 4) array."""
    return confusion(target, prediction, group, n_groups=n_groups).reshape(n_groups, 4)


def total(counts: NDArray[Any]) -> NDArray[Any]:
    """Return the counts of all groups together, (..., G, 4) -> (..., 1, 4)."""
    pooled: NDArray[Any] = counts.sum(axis=-2, keepdims=True)
    return pooled
