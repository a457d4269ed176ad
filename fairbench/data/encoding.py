"""Encodes features as the matrix that a learner takes, fitted on training rows only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from fairbench.core.errors import UserError

Frame: TypeAlias = NDArray[np.floating[Any]] | csr_matrix | pd.DataFrame


class Encoding(StrEnum):
    """The forms in which a learner can ask for its features."""

    ONEHOT = "onehot"
    STANDARD = "standard"
    NATIVE = "native"


@dataclass(frozen=True)
class Encoder:
    """Encodes a data frame of features as a matrix.

    ``onehot`` gives a sparse float32 matrix with a column per category (categories come from the
    dtype: a test row cannot bring an unknown one; a missing category is a row of zeros, a missing
    number stays NaN). ``standard`` adds median imputation and standardisation and gives a dense
    float64 matrix. ``native`` leaves the data frame as it is.
    """

    encoding: Encoding

    def fit(self, features: pd.DataFrame) -> FittedEncoder:
        """Learn what must be learnt from the training rows alone."""
        if self.encoding is not Encoding.STANDARD:
            return FittedEncoder(self.encoding)
        from sklearn.impute import SimpleImputer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        scaler = make_pipeline(
            SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()
        )
        return FittedEncoder(self.encoding, scaler.fit(onehot(features).astype(np.float64)))


@dataclass(frozen=True)
class FittedEncoder:
    """An encoder that has seen the training rows."""

    encoding: Encoding
    scaler: Any = None

    def transform(self, features: pd.DataFrame) -> Frame:
        """Return the (n, d) matrix (or frame, for ``native``) of `features`."""
        if self.encoding is Encoding.NATIVE:
            return features
        if self.scaler is None:
            return sparse_onehot(features)
        scaled: NDArray[np.float64] = self.scaler.transform(onehot(features).astype(np.float64))
        return scaled


def onehot_names(features: pd.DataFrame) -> list[str]:
    """Return the column names of :func:`onehot`, ``column=category`` for categoricals."""
    names: list[str] = []
    for column in features.columns:
        dtype = features[column].dtype
        if isinstance(dtype, pd.CategoricalDtype):
            names += [f"{column}={category}" for category in dtype.categories]
        else:
            names.append(str(column))
    return names


def onehot(features: pd.DataFrame) -> NDArray[np.float32]:
    """Return the (n, d) float32 matrix of numeric, boolean and one-hot categorical columns."""
    dense: NDArray[np.float32] = sparse_onehot(features).toarray()
    return dense


def sparse_onehot(features: pd.DataFrame) -> csr_matrix:
    """Return the matrix of :func:`onehot` in compressed rows.

    Numbers and booleans are stored even where they are 0, so that a learner that takes an absent
    entry for a missing value (XGBoost) sees one only in the columns of the other categories. Trees
    grown on this and on the dense matrix are the same; binning and growing them costs less than
    half, in proportion to the stored entries.
    """
    n, width = len(features), len(onehot_names(features))
    positions = np.zeros((n, features.shape[1]), np.int32)
    values = np.ones((n, features.shape[1]), np.float32)
    stored = np.ones((n, features.shape[1]), bool)
    offset = 0
    for i, column in enumerate(features.columns):
        entries = features[column]
        if isinstance(entries.dtype, pd.CategoricalDtype):
            codes = entries.cat.codes.to_numpy()
            stored[:, i] = codes >= 0
            positions[:, i] = offset + codes.astype(np.int32)
            offset += len(entries.cat.categories)
        else:
            values[:, i] = entries.to_numpy(np.float32)
            positions[:, i] = offset
            offset += 1
    ends = np.concatenate([[0], np.cumsum(stored.sum(axis=1))])
    if stored.all():
        # No copy: the arrays are the matrix.
        return csr_matrix((values.ravel(), positions.ravel(), ends), shape=(n, width))
    return csr_matrix((values[stored], positions[stored], ends), shape=(n, width))


def parse_encoding(name: str) -> Encoding:
    """Return the encoding called `name`, or refuse it with the valid names."""
    if name not in list(Encoding):
        raise UserError(f"unknown encoding '{name}': valid: {', '.join(Encoding)}")
    return Encoding(name)
