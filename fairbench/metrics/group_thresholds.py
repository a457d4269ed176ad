"""Thresholds per group: the least error of a score at every distance from parity.

Cruz and Hardt (ICLR 2024, "Unprocessing seven years of algorithmic fairness") compare models at
equal fairness by them: the loosest constraint unprocesses a model, tighter ones postprocess it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairbench.metrics.rates import FN, FP, TN, TP, Rate

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RocHull:
    """The thresholds on the convex hull of one group's ROC curve, the only ones worth mixing.

    Attributes
    ----------
    thresholds : (V,) from minus to plus infinity; label 1 is for scores above.
    counts : (V, 4) the confusion counts at each, TN, FP, FN, TP.
    """

    thresholds: Array
    counts: Array

    @classmethod
    def of(cls, target: Array, score: Array) -> RocHull:
        """Return the hull of labels 0 / 1 and scores, (n,).

        Its thresholds lie between the blocks of the isotonic regression of label on score (Fawcett
        and Niculescu-Mizil 2007, "PAV and the ROC convex hull").
        """
        from scipy.optimize import isotonic_regression

        values, place = np.unique(score, return_inverse=True)
        size, positives = np.bincount(place), np.bincount(place, target)
        cuts = isotonic_regression(positives / size, weights=size).blocks
        between = (values[cuts[1:-1] - 1] + values[cuts[1:-1]]) / 2
        # The rows at and under a threshold are given label 0: all rows, and the positives.
        zeros, fn = (np.concatenate([[0], sums.cumsum()])[cuts] for sums in (size, positives))
        tn = zeros - fn
        counts = np.stack([tn, tn[-1] - tn, fn, fn[-1] - fn], axis=1)
        return cls(np.concatenate([[-np.inf], between, [np.inf]]), counts)


@dataclass(frozen=True, eq=False)
class GroupThresholds:
    """A threshold for every group, drawn anew for each row: `weights` (V,) of each hull."""

    hulls: Sequence[RocHull]
    weights: Sequence[Array]

    def chance(self, score: Array, group: NDArray[np.int_]) -> Array:
        """Return the probability (n,) with which each row is given label 1."""
        chance = np.zeros(len(score))
        for g, (hull, weights) in enumerate(zip(self.hulls, self.weights, strict=True)):
            rows = group == g
            under = np.searchsorted(hull.thresholds, score[rows], side="left")
            chance[rows] = np.concatenate([[0], weights.cumsum()])[under]
        return chance

    @property
    def counts(self) -> Array:
        """The expected confusion counts (G, 4) on the rows the hulls were made of."""
        return np.stack([w @ hull.counts for hull, w in zip(self.hulls, self.weights, strict=True)])


def least_error(
    hulls: Sequence[RocHull], rates: Sequence[Rate], relaxations: Sequence[float]
) -> list[GroupThresholds]:
    """Return the thresholds of least error whose rates differ by at most each relaxation.

    Parameters
    ----------
    hulls : one for each of any number of groups.
    rates : what is to be equal. Their denominators must not depend on the thresholds, and be
        above 0 in every group: selection, true positive or false positive rates.
    relaxations : the largest difference of a rate between two groups that is allowed.

    Notes
    -----
    Equalised odds of Hardt et al. (2016), relaxed as by Cruz and Hardt (2024): a linear
    programme in the mixtures' weights and the lowest value of each rate.
    """
    from scipy.optimize import linprog

    counts = np.concatenate([hull.counts for hull in hulls])
    owner = np.repeat(np.arange(len(hulls)), [len(hull.thresholds) for hull in hulls])
    own = (owner == np.arange(len(hulls))[:, None]).astype(float)
    # The lowest value of each rate is a variable too, after the weights.
    lowest = np.repeat(np.eye(len(rates)), len(hulls), axis=0)
    above = np.hstack([np.vstack([own * rate(counts) for rate in rates]), -lowest])
    programme = {
        "c": np.concatenate([_cost(hulls), np.zeros(len(rates))]),
        "A_ub": np.vstack([above, -above]),
        "A_eq": np.hstack([own, np.zeros((len(hulls), len(rates)))]),
        "b_eq": np.ones(len(hulls)),
    }
    limits = (np.repeat([relaxation, 0.0], len(above)) for relaxation in relaxations)
    solutions = [linprog(**programme, b_ub=limit).x for limit in limits]
    return [GroupThresholds(hulls, _parts(solution, owner)) for solution in solutions]


def _cost(hulls: Sequence[RocHull]) -> Array:
    """Return errors in rows; of equal ones, thresholds near 1/2 are preferred by 1/1000 row."""
    counts = np.concatenate([hull.counts for hull in hulls])
    away = np.abs(np.concatenate([hull.thresholds for hull in hulls]) - 0.5).clip(max=0.5)
    cost: Array = counts[:, FP] + counts[:, FN] + away / 500
    return cost


def _parts(solution: Array, owner: NDArray[np.int_]) -> list[Array]:
    """Return each group's weights, freed of the solver's rounding."""
    weights = solution[: len(owner)].clip(min=0)
    parts = (weights[owner == g] for g in range(owner[-1] + 1))
    return [part / part.sum() for part in parts]


def expected_counts(
    target: ArrayLike, chance: ArrayLike, group: NDArray[np.int_], *, n_groups: int
) -> Array:
    """Count (group, [TN, FP, FN, TP]) as (G, 4) where label 1 has probability `chance`, (n,)."""
    y, p = np.asarray(target, float), np.asarray(chance, float)
    counts = np.empty((n_groups, 4))
    for cell, weight in (
        (TN, (1 - y) * (1 - p)),
        (FP, (1 - y) * p),
        (FN, y * (1 - p)),
        (TP, y * p),
    ):
        counts[:, cell] = np.bincount(group, weight, n_groups)
    return counts
