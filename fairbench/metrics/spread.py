"""The spread diagram: whether residuals spread as the predicted uncertainty says they do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import spearmanr


@dataclass(frozen=True)
class Spread:
    """Per group of rows with like uncertainty: size, mean uncertainty, sd of the residuals."""

    size: NDArray[np.int64]
    predicted: NDArray[np.float64]
    empirical: NDArray[np.float64]

    def error(self) -> float:
        """Return the size-weighted mean of |empirical sd - mean predicted uncertainty|."""
        return float(np.average(np.abs(self.empirical - self.predicted), weights=self.size))

    def rank_correlation(self) -> float:
        """Return Spearman's correlation of the two; NaN where either is constant."""
        if np.ptp(self.predicted) == 0 or np.ptp(self.empirical) == 0:
            return float("nan")
        return float(spearmanr(self.predicted, self.empirical).statistic)


def spread_diagram(residual: ArrayLike, uncertainty: ArrayLike, groups: int) -> Spread:
    """Group rows by predicted uncertainty and compare (FairlyUncertain, Figures 3 and 20-24).

    Parameters
    ----------
    residual : (n,) target minus predicted probability or mean (or minus the hard label).
    uncertainty : (n,) predicted uncertainty; rows with equal uncertainty are exchangeable, so
        each counts with their mean residual moments, wherever a group boundary falls.
    groups : number of groups of equal size; at most n.
    """
    r, u = np.asarray(residual, float), np.asarray(uncertainty, float)
    first, second = mean_over_ties(u, r), mean_over_ties(u, r**2)
    order = np.argsort(u, kind="stable")
    parts = np.array_split(order, min(groups, len(order)))
    variance = [second[part].mean() - first[part].mean() ** 2 for part in parts]
    return Spread(
        size=np.array([len(part) for part in parts]),
        predicted=np.array([u[part].mean() for part in parts]),
        empirical=np.sqrt(np.maximum(variance, 0)),
    )


def mean_over_ties(key: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, per row, the mean of `values` over the rows with the same `key`."""
    _, block = np.unique(key, return_inverse=True)
    means: NDArray[np.float64] = np.bincount(block, weights=values) / np.bincount(block)
    return means[block]
