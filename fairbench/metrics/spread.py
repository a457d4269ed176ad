"""The spread diagram: whether errors are as large as the predicted uncertainty says."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairbench.metrics.probability import mean_over_ties, spearman
from fairbench.metrics.registry import BINARY, REGRESSION, Metric


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
        return spearman(_without_rounding(self.predicted), _without_rounding(self.empirical))


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
    order = np.argsort(u, kind="stable")
    r, u = r[order], u[order]
    centre = mean_over_ties(u, r)
    within = mean_over_ties(u, (r - centre) ** 2)
    parts = np.array_split(np.arange(len(u)), min(groups, len(u)))
    variance = [within[part].mean() + centre[part].var() for part in parts]
    return Spread(
        size=np.array([len(part) for part in parts]),
        predicted=np.array([u[part].mean() for part in parts]),
        empirical=np.sqrt(variance),
    )


def _without_rounding(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `values` to ten digits of the largest, so that means of equal numbers are equal."""
    scale = float(np.abs(values).max())
    return np.round(values / scale, 10) if scale > 0 else values


def spread_error(
    target: ArrayLike, prediction: ArrayLike, uncertainty: ArrayLike, *, groups: int = 10
) -> float:
    """Return the error of the spread diagram of target minus prediction."""
    residual = np.asarray(target, float) - np.asarray(prediction, float)
    return spread_diagram(residual, uncertainty, groups).error()


SPREAD_ERROR = Metric(
    name="spread_error",
    label="spread error",
    sentence="How far the uncertainty is from the sd of the errors of people of like uncertainty.",
    task=BINARY,
    better="lower",
    needs=("prediction", "uncertainty"),
    interval="none",
    function=spread_error,
    shown=("everyone",),
    special=True,
)
SPREAD_ERROR_OF_REGRESSION = replace(SPREAD_ERROR, task=REGRESSION)
