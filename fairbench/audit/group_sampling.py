"""Rows that were chosen for labelling by group: what a label then stands for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GroupSampling:
    """How many rows of a group were labelled was decided by looking; which ones, at random.

    What holds within such a group needs no care. What crosses groups has to give each its share
    of rows in place of its share of labels: post-stratification.

    Attributes
    ----------
    by : the attribute, or combination of attributes, whose groups were chosen among.
    arms : (n,) categorical, the group of every row.
    notes : what a reader of the figures should know about how labels came about.
    """

    by: str
    arms: pd.Series
    notes: tuple[str, ...] = ()

    @property
    def codes(self) -> NDArray[np.int64]:
        """The position of every row's group."""
        codes: NDArray[np.int64] = self.arms.cat.codes.to_numpy(np.int64)
        return codes

    def unlabelled(self, known: NDArray[np.int64]) -> list[str]:
        """Return the groups of which none of the rows `known` is one."""
        labels = np.bincount(self.codes[known], minlength=len(self.arms.cat.categories))
        return [str(name) for name in self.arms.cat.categories[labels == 0]]

    def separates(self, groups: pd.Series) -> NDArray[np.bool_]:
        """Say of each of an attribute's groups whether all its rows are of one arm."""
        table = strata_sizes(groups.cat.codes.to_numpy(np.int64), self.codes)
        separate: NDArray[np.bool_] = (table > 0).sum(axis=1) <= 1
        return separate


def strata_sizes(group: NDArray[np.int64], stratum: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many rows each group has of each stratum, (G, S)."""
    shape = group.max(initial=0) + 1, stratum.max(initial=0) + 1
    sizes = np.bincount(group * shape[1] + stratum, minlength=shape[0] * shape[1])
    return sizes.reshape(shape)


def weights(sizes: NDArray[np.int64], labels: NDArray[np.int64]) -> Floats:
    """Return how many rows a label of each stratum stands for, 0 where there is none."""
    rows = np.asarray(sizes, float)
    each: Floats = np.divide(rows, labels, out=np.zeros_like(rows), where=labels > 0)
    return each


def stratified_error(variance: Floats, labels: Floats, sizes: Floats) -> float:
    """Return the standard error of a post-stratified mean.

    Parameters
    ----------
    variance, labels, sizes : (S,) sample variance (NaN of one label), labels and rows of each
        stratum; strata without labels are left out, of one label have the others' mean variance.
    """
    used = labels > 0
    several = labels > 1
    if not several.any():
        return float("nan")
    common = np.average(variance[several], weights=labels[several] - 1)
    spread = np.where(several, variance, common)[used]
    share = sizes[used] / sizes[used].sum()
    return float(np.sqrt((share**2 * spread / labels[used]).sum()))
