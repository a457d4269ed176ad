"""Abstaining on the most uncertain rows: which are kept, their error, and how they differ."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fairbench.core.arrays import Floats
from fairbench.metrics.probability import mean_over_ties, tie_blocks
from fairbench.metrics.registry import BINARY, Metric


def rows_kept(rows: ArrayLike, rate: ArrayLike) -> Floats:
    """Return how many of some rows are kept when a share `rate` of them is abstained on."""
    size, share = np.asarray(rows, float), np.asarray(rate, float)
    return np.asarray(np.maximum(size - np.round(share * size), 1))


def keep_weights(uncertainty: ArrayLike, rate: ArrayLike) -> Floats:
    """Return the share (n,) of each row that is kept when a share `rate` of rows is abstained on.

    For several rates (K,) the shares are (K, n). The least uncertain rows are kept, at least one.
    Rows tied at the boundary all have the share of them that is kept: the expectation if ties are
    broken at random. A method with few distinct values thus abstains on exactly the given share,
    and the order of rows does not matter.
    """
    values = np.asarray(uncertainty, float)
    kept = rows_kept(len(values), np.asarray(rate, float)[..., None])
    block = tie_blocks(values)
    size = np.bincount(block)
    before = np.cumsum(size) - size
    share: Floats = np.clip((kept - before) / size, 0, 1)[..., block]
    return share


def area_under_risk_coverage(loss: ArrayLike, uncertainty: ArrayLike) -> float:
    """Return the mean, over coverages 1/n .. 1, of the mean loss of the rows kept.

    Geifman, El-Yaniv 2017; the lower, the better the uncertainty ranks the errors. Tied rows count
    with their mean loss.
    """
    u = np.asarray(uncertainty, float)
    ordered = mean_over_ties(u, loss)[np.argsort(u, kind="stable")]
    return float((np.cumsum(ordered) / np.arange(1, len(ordered) + 1)).mean())


def _area_of_errors(target: ArrayLike, prediction: ArrayLike, uncertainty: ArrayLike) -> float:
    return area_under_risk_coverage(np.asarray(target) != np.asarray(prediction), uncertainty)


AREA_UNDER_RISK_COVERAGE = Metric(
    name="area_under_risk_coverage",
    label="area under the risk-coverage curve",
    sentence="The error rate of the least uncertain people, on average over how many of them.",
    task=BINARY,
    better="lower",
    most=1.0,
    needs=("prediction", "uncertainty"),
    interval="none",
    function=_area_of_errors,
    special=True,
)


def feature_shift(features: pd.DataFrame, weights: ArrayLike) -> Floats:
    """Return the 1-Wasserstein distance of each feature between all rows and the rows kept.

    FairlyUncertain, Figures 5 and 14-19. Distances have no unit: numeric features are measured in
    their standard deviation over all rows, so that a shift of the mean alone is a standardised
    mean difference; between categories, and between True and False, every distance is 1, so that
    theirs is the total variation. Missing values are a category of their own, and left out of
    numeric features.

    Parameters
    ----------
    features : (n, d) numeric, boolean or categorical columns.
    weights : (n,) or (k, n), how much of each row is kept, as
        :func:`fairbench.metrics.abstention.keep_weights` has it.

    Returns
    -------
    (d,) or (k, d) distances, at least 0; NaN where a feature has no value in the rows kept.
    """
    kept = np.atleast_2d(np.asarray(weights, float))
    shifts = [_shift(features.iloc[:, i], kept) for i in range(features.shape[1])]
    stacked = np.stack(shifts, axis=1) if shifts else np.empty((len(kept), 0))
    return stacked if np.ndim(weights) > 1 else stacked[0]


def _shift(column: pd.Series, kept: Floats) -> Floats:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return _total_variation(column.cat.codes.to_numpy(np.int64) + 1, kept)
    if pd.api.types.is_bool_dtype(column.dtype):
        return _total_variation(pd.factorize(column)[0] + 1, kept)
    return _standardised_wasserstein(column.to_numpy(np.float64, na_value=np.nan), kept)


def _total_variation(codes: NDArray[np.int64], kept: Floats) -> Floats:
    """Return half the summed absolute differences of the categories' shares, (k,)."""
    everyone = np.bincount(codes) / len(codes)
    counts = np.stack([np.bincount(codes, weights=row, minlength=len(everyone)) for row in kept])
    shares = counts / counts.sum(axis=1, keepdims=True)
    distance: Floats = np.abs(shares - everyone).sum(axis=1) / 2
    return distance


def _standardised_wasserstein(values: Floats, kept: Floats) -> Floats:
    """Return the area between the two distribution functions over the sd of `values`, (k,)."""
    present = ~np.isnan(values)
    values = values[present]
    kept = kept[:, present]
    total = kept.sum(axis=1)
    if not len(values) or not (sd := values.std()):
        return np.where(total > 0, 0.0, np.nan)
    order = np.argsort(values)
    below = np.cumsum(kept[:, order], axis=1)[:, :-1]
    everyone = np.arange(1, len(values)) / len(values)
    with np.errstate(invalid="ignore"):
        gap = np.abs(below / total[:, None] - everyone)
    distance: Floats = gap @ np.diff(values[order]) / sd
    return distance
