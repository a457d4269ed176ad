"""Quantile functions of groups, and numbers moved to their median (Feldman et al. 2015)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.components.algorithms.interventions.shared import Groups

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Quantiles:
    """The distinct values of a sample and their shares below (half of a tie's own), as a line.

    Without ties these are Hazen's quantiles, ``np.quantile(..., method="hazen")``.
    """

    values: Array
    shares: Array

    @classmethod
    def of(cls, sample: Array) -> Quantiles:
        """Return the quantiles of a sample without its missing values."""
        values, counts = np.unique(sample[~np.isnan(sample)], return_counts=True)
        return cls(values, (counts.cumsum() - counts / 2) / max(counts.sum(), 1))

    def share(self, value: Array) -> Array:
        """Return the share of the sample below each value."""
        return np.interp(value, self.values, self.shares)

    def value(self, share: Array) -> Array:
        """Return the quantile of each share."""
        return np.interp(share, self.shares, self.values)

    def __bool__(self) -> bool:
        return len(self.values) > 0


def repaired_values(
    values: Array,
    groups: Groups,
    *,
    of_group: Mapping[str, Sequence[Quantiles]],
    of_all: Sequence[Quantiles],
    level: float,
) -> Array:
    """Return (n, k) numbers moved towards the median over groups of their own quantile.

    A missing number stays missing. Where a group has no training value, its rows take their
    quantile among all training rows.
    """
    target = np.empty_like(values)
    for column, pooled in enumerate(of_all):
        known = [each[column] for each in of_group.values() if each[column]]
        for name in np.unique(groups):
            rows = groups == name
            own = of_group.get(name, of_all)[column] or pooled
            share = own.share(values[rows, column])
            target[rows, column] = np.median([each.value(share) for each in known], axis=0)
    return (1 - level) * values + level * target
