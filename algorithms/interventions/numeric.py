"""Reads and replaces the numeric columns of a table of features, sparse or not."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from scipy.sparse import csr_matrix

from fairbench.data.features import Frame, Sequences

Array = NDArray[np.float64]


def numeric_columns(X: Frame) -> NDArray[np.intp]:
    """Return the positions of numbers: columns of more than two distinct values.

    Two values are an indicator's, or a category's, which has no quantiles to speak of.
    """
    candidates = _candidates(X)
    values = read(X, candidates)
    distinct = [len(np.unique(column[~np.isnan(column)])) for column in values.T]
    return candidates[np.array(distinct, int) > 2]


def _candidates(X: Frame) -> NDArray[np.intp]:
    if isinstance(X, pd.DataFrame):
        numeric = [is_numeric_dtype(dtype) and not is_bool_dtype(dtype) for dtype in X.dtypes]
        return np.flatnonzero(numeric)
    if isinstance(X, csr_matrix):
        # Numbers are stored in every row, where they are 0 or missing too; see `sparse_onehot`.
        return np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]) == X.shape[0])
    return np.arange(X.shape[1])


def read(X: Frame, columns: NDArray[np.intp]) -> Array:
    """Return some numeric columns, (n, k), NaN where a number is missing."""
    if isinstance(X, pd.DataFrame):
        values = X.iloc[:, columns].to_numpy(np.float64, na_value=np.nan)
    else:
        values = X[:, columns]
    return np.asarray(values.toarray() if isinstance(values, csr_matrix) else values, np.float64)


def replaced(X: Frame, columns: NDArray[np.intp], values: Array) -> Frame:
    """Return a copy with other numbers, (n, k), in some columns; a sparse one keeps its layout."""
    if isinstance(X, Sequences):
        raise TypeError("sequences have no columns")
    copy = X.copy()
    if isinstance(copy, pd.DataFrame):
        for position, column in zip(columns, values.T, strict=True):
            copy.isetitem(position, column)
    elif isinstance(copy, csr_matrix):
        copy.data[np.isin(copy.indices, columns)] = values.ravel()
    else:
        copy[:, columns] = values
    return copy
