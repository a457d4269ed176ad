"""Post-stratification: labels of strata that were sampled at unequal rates, each weighted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairbench.core.arrays import Floats

Counts = NDArray[np.int64]


def strata_sizes(group: Counts, stratum: Counts) -> Counts:
    """Return how many rows each group has in each stratum, (G, S)."""
    n_groups = group.max(initial=0) + 1
    n_strata = stratum.max(initial=0) + 1
    sizes = np.bincount(group * n_strata + stratum, minlength=n_groups * n_strata)
    return sizes.reshape(n_groups, n_strata)


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
    labels : (S,) numbers of labels in each stratum. Strata without labels are left out; those with
        one label get the mean variance of the others.
    total, squares : (S,) sums of the labels' values, and of their squares.
    sizes : (S,) numbers of rows in each stratum.
    """
    used, several = labels > 0, labels > 1
    rows = np.asarray(sizes, float)
    if not several.any():
        return float("nan")
    variance = (squares - total**2 / np.maximum(labels, 1)) / (np.maximum(labels, 2) - 1)
    common = np.average(variance[several], weights=labels[several] - 1)
    spread = np.where(several, variance, common)[used]
    share = rows[used] / rows[used].sum()
    return float(np.sqrt((share**2 * spread / labels[used]).sum()))
