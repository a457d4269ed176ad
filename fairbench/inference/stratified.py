"""Post-stratification: labels of strata that were sampled at unequal rates, each weighted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairbench.core.arrays import Floats

Counts = NDArray[np.int64]


def strata_sizes(group: Counts, stratum: Counts) -> Counts:
    """Return how many rows each group has of each stratum, (G, S)."""
    shape = group.max(initial=0) + 1, stratum.max(initial=0) + 1
    sizes = np.bincount(group * shape[1] + stratum, minlength=shape[0] * shape[1])
    return sizes.reshape(shape)


def weights(sizes: Counts, labels: Counts) -> Floats:
    """Return how many rows a label of each stratum stands for, 0 where there is none."""
    rows = np.asarray(sizes, float)
    stands_for: Floats = np.divide(rows, labels, out=np.zeros_like(rows), where=labels > 0)
    return stands_for


def stratified_error(
    labels: NDArray[Any], total: NDArray[Any], squares: NDArray[Any], sizes: ArrayLike
) -> float:
    """Return the standard error of a post-stratified mean.

    Parameters
    ----------
    labels, total, squares : (S,) labels of each stratum, and sums of their values and squares.
        Strata without labels are left out, of one label have the others' mean variance.
    sizes : (S,) rows of each stratum.
    """
    used, several, rows = labels > 0, labels > 1, np.asarray(sizes, float)
    if not several.any():
        return float("nan")
    variance = (squares - total**2 / np.maximum(labels, 1)) / (np.maximum(labels, 2) - 1)
    common = np.average(variance[several], weights=labels[several] - 1)
    spread = np.where(several, variance, common)[used]
    share = rows[used] / rows[used].sum()
    return float(np.sqrt((share**2 * spread / labels[used]).sum()))
