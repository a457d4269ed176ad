"""How far each feature of the rows kept lies from everyone's: a Wasserstein distance."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def feature_shift(features: pd.DataFrame, weights: ArrayLike) -> Array:
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


def _shift(column: pd.Series, kept: Array) -> Array:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return _total_variation(column.cat.codes.to_numpy(np.int64) + 1, kept)
    if pd.api.types.is_bool_dtype(column.dtype):
        return _total_variation(pd.factorize(column)[0] + 1, kept)
    return _standardised_wasserstein(column.to_numpy(np.float64, na_value=np.nan), kept)


def _total_variation(codes: NDArray[np.int64], kept: Array) -> Array:
    """Return half the summed absolute differences of the categories' shares, (k,)."""
    everyone = np.bincount(codes) / len(codes)
    counts = np.stack([np.bincount(codes, weights=row, minlength=len(everyone)) for row in kept])
    shares = counts / counts.sum(axis=1, keepdims=True)
    distance: Array = np.abs(shares - everyone).sum(axis=1) / 2
    return distance


def _standardised_wasserstein(values: Array, kept: Array) -> Array:
    """Return the area between the two distribution functions over the sd of `values`, (k,)."""
    known = ~np.isnan(values)
    values, kept = values[known], kept[:, known]
    total = kept.sum(axis=1)
    if not len(values) or not (sd := values.std()):
        return np.where(total > 0, 0.0, np.nan)
    order = np.argsort(values)
    below = np.cumsum(kept[:, order], axis=1)[:, :-1]
    everyone = np.arange(1, len(values)) / len(values)
    with np.errstate(invalid="ignore"):
        gap = np.abs(below / total[:, None] - everyone)
    distance: Array = gap @ np.diff(values[order]) / sd
    return distance
