"""Numbers repaired group by group (Feldman et al. 2015), of many training parts of the same rows.

A column's distinct values are the same in every part, and only how many training rows have each
differs. So nothing is sorted again: a part costs one count a column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.components.algorithms.interventions.quantiles import Quantiles
from fairbench.components.papers.uncertainty_matters.solvers.folds import Array, Rows


@dataclass(frozen=True)
class Column:
    """A number's distinct values in all rows: one row that has each, (v,), and each row's, (n,)."""

    place: int
    first: Rows
    code: Rows


@dataclass(frozen=True)
class Repair:
    """Full repair of the numeric columns of a matrix in two groups, codes 0 and 1."""

    columns: Sequence[Column]
    groups: Rows

    @classmethod
    def of(cls, X: Array, groups: Rows) -> Repair:
        """Read the distinct values of the columns of (n, d) that have more than two."""
        columns = []
        for place, column in enumerate(X.T):
            values, first, code = np.unique(column, return_index=True, return_inverse=True)
            if len(values) > 2:
                columns.append(Column(place, first, code))
        return cls(columns, groups)

    def __call__(self, standard: Array, used: NDArray[np.bool_]) -> Array:
        """Return (n, d) features, in any units, repaired by what the training rows teach."""
        found = standard.copy()
        for column in self.columns:
            values = standard[column.first, column.place]
            own = [self._quantiles(column, values, used, group) for group in (0, 1)]
            moved = [
                (own[0].value(share) + own[1].value(share)) / 2
                for share in (each.share(values) for each in own)
            ]
            found[:, column.place] = np.stack(moved)[self.groups, column.code]
        return found

    def _quantiles(
        self, column: Column, values: Array, used: NDArray[np.bool_], group: int
    ) -> Quantiles:
        rows = used & (self.groups == group)
        counts = np.bincount(column.code[rows], minlength=len(values))
        seen = values[counts > 0].astype(np.float64)
        counts = counts[counts > 0]
        return Quantiles(seen, (counts.cumsum() - counts / 2) / counts.sum())
