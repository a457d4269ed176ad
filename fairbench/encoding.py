"""Turning a data set's features into the matrix a learner takes, fitted on training rows only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.errors import UserError

Frame: TypeAlias = NDArray[np.floating[Any]] | pd.DataFrame


class Encoding(StrEnum):
    """How a learner wants its features."""

    ONEHOT = "onehot"
    STANDARD = "standard"
    NATIVE = "native"


@dataclass(frozen=True)
class Encoder:
    """Features to matrix.

    ``onehot`` gives float32 with a column per category (categories come from the dtype, so a test
    row cannot bring an unknown one; a missing category is a row of zeros, a missing number stays
    NaN). ``standard`` adds median imputation and standardisation and gives float64. ``native``
    leaves the data frame as it is.
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
        matrix = onehot(features)
        if self.scaler is None:
            return matrix
        scaled: NDArray[np.float64] = self.scaler.transform(matrix.astype(np.float64))
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
    matrix = np.zeros((len(features), len(onehot_names(features))), np.float32)
    rows, offset = np.arange(len(features)), 0
    for column in features.columns:
        values = features[column]
        if isinstance(values.dtype, pd.CategoricalDtype):
            codes = values.cat.codes.to_numpy()
            known = codes >= 0
            matrix[rows[known], offset + codes[known].astype(np.intp)] = 1
            offset += len(values.cat.categories)
        else:
            matrix[:, offset] = values.to_numpy(np.float32)
            offset += 1
    return matrix


def parse_encoding(name: str) -> Encoding:
    """Return the encoding called `name`, or refuse it with the valid names."""
    if name not in list(Encoding):
        raise UserError(f"unknown encoding '{name}': valid: {', '.join(Encoding)}")
    return Encoding(name)
