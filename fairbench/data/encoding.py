"""Encodes features as the matrix that a learner takes, fitted on training rows only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from fairbench.core.errors import UserError, check_choice, check_minimum
from fairbench.data.dataset import Features
from fairbench.data.sequences import Modality, Sequences
from fairbench.data.units import Unit

Frame: TypeAlias = NDArray[np.floating[Any]] | csr_matrix | pd.DataFrame | Sequences


class Encoding(StrEnum):
    """The forms in which a learner can ask for its features."""

    ONEHOT = "onehot"
    STANDARD = "standard"
    NATIVE = "native"


ENDS = ("end", "start")


@dataclass(frozen=True)
class SequenceEncoding:
    """The form in which a learner can ask for sequences.

    Attributes
    ----------
    modalities : which ones, all where none is named.
    length : frames that are kept of a row; None for those of the longest training row.
    cut : which end of a longer row is cut off, ``end`` or ``start``.
    """

    modalities: Sequence[str] = ()
    length: int | None = None
    cut: str = "end"

    def __post_init__(self) -> None:
        """Refuse a length without frames and an end that is none."""
        check_choice("learner.cut", self.cut, ENDS)
        if self.length is not None:
            check_minimum("learner.length", self.length, 1)

    def limits(self, features: Sequences) -> NDArray[np.int64]:
        """Return how many frames are kept of each modality, (M,), by the training rows."""
        chosen = features.select(self.modalities or features.names)
        if self.length is not None:
            return np.full(len(chosen.parts), self.length, np.int64)
        return np.array([part.lengths.max() for part in chosen.parts], np.int64)

    def fit(self, features: Sequences) -> FittedSequences:
        """Learn from the training rows how long rows may be, and each channel's mean and sd."""
        limits = self.limits(features)
        kept = _cut(features.select(self.modalities or features.names), limits, self.cut)
        means, sds = [], []
        for part in kept.parts:
            frames = part.joined()
            means.append(frames.mean(axis=0, dtype=np.float64))
            sd = frames.std(axis=0, dtype=np.float64)
            sds.append(np.where(sd > 0, sd, 1.0))
        return FittedSequences(kept.names, limits, self.cut, tuple(means), tuple(sds))


@dataclass(frozen=True, eq=False)
class FittedSequences:
    """An encoding of sequences that has seen the training rows.

    Attributes
    ----------
    names : of the modalities. limits : (M,) frames that are kept of a row of each.
    means, sds : of each modality's channels, over the frames that are kept of the training rows.
    """

    names: tuple[str, ...]
    limits: NDArray[np.int64]
    cut: str
    means: tuple[NDArray[np.float64], ...]
    sds: tuple[NDArray[np.float64], ...]

    def transform(self, features: Features) -> Sequences:
        """Return rows cut to their limits, each channel standardised.

        Where zeros fill up the shorter rows is for the learner to say, which knows what it takes at
        a time.
        """
        if not isinstance(features, Sequences):
            raise TypeError("sequences are encoded, not columns")
        kept = _cut(features.select(self.names), self.limits, self.cut)
        parts = []
        for part, mean, sd in zip(kept.parts, self.means, self.sds, strict=True):
            frames = ((part.joined() - mean) / sd).astype(np.float32)
            parts.append(Modality(frames, np.cumsum(part.lengths) - part.lengths, part.lengths))
        return Sequences(kept.names, tuple(parts))


def _cut(features: Sequences, limits: NDArray[np.int64], cut: str) -> Sequences:
    parts = [
        part.cut(int(limit), end=cut == "end")
        for part, limit in zip(features.parts, limits, strict=True)
    ]
    return Sequences(features.names, tuple(parts))


AnyEncoding: TypeAlias = Encoding | SequenceEncoding


@dataclass(frozen=True)
class Encoder:
    """Encodes a data frame of features as a matrix, or sequences as they are asked for.

    ``onehot`` gives a sparse float32 matrix with a column per category (categories come from the
    dtype: a test row cannot bring an unknown one; a missing category is a row of zeros, a missing
    number stays NaN). ``standard`` adds median imputation and standardisation and gives a dense
    float64 matrix. ``native`` leaves the data frame as it is.

    In each of them a number that single precision would round too much, such as Unix seconds, is
    first given a unit in which it keeps its steps.
    """

    encoding: AnyEncoding

    def fit(self, features: Features) -> FittedEncoder | FittedSequences:
        """Learn what must be learnt from the training rows alone."""
        if isinstance(self.encoding, SequenceEncoding):
            if not isinstance(features, Sequences):
                raise TypeError("sequences are encoded, not columns")
            return self.encoding.fit(features)
        units = _units(columns_of(features))
        if self.encoding is not Encoding.STANDARD:
            return FittedEncoder(self.encoding, units)
        from sklearn.impute import SimpleImputer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        scaler = make_pipeline(
            SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()
        )
        matrix = onehot(_in_units(features, units)).astype(np.float64)
        return FittedEncoder(self.encoding, units, scaler.fit(matrix))


@dataclass(frozen=True)
class FittedEncoder:
    """An encoder that has seen the training rows.

    Attributes
    ----------
    units : of the columns that do not keep their own.
    """

    encoding: Encoding
    units: Mapping[str, Unit] = field(default_factory=dict)
    scaler: Any = None

    def transform(self, features: Features) -> Frame:
        """Return the (n, d) matrix (or frame, for ``native``) of `features`."""
        features = _in_units(features, self.units)
        if self.encoding is Encoding.NATIVE:
            return features
        if self.scaler is None:
            return sparse_onehot(features)
        scaled: NDArray[np.float64] = self.scaler.transform(onehot(features).astype(np.float64))
        return scaled


def _units(features: pd.DataFrame) -> dict[str, Unit]:
    """Return the units of the columns that single precision would round too much."""
    found = {
        name: Unit.of_feature(features[name].to_numpy(np.float64, na_value=np.nan))
        for name in features.columns
        if not isinstance(features[name].dtype, pd.CategoricalDtype)
    }
    return {name: unit for name, unit in found.items() if unit != Unit()}


def _in_units(features: Features, units: Mapping[str, Unit]) -> Features:
    """Return columns in their units; what lies too far off for single precision is its largest."""
    if not units or isinstance(features, Sequences):
        return features
    most = float(np.finfo(np.float32).max)
    return features.assign(
        **{
            name: np.clip(
                unit.standard(features[name].to_numpy(np.float64, na_value=np.nan)), -most, most
            )
            for name, unit in units.items()
        }
    )


def columns_of(features: Features) -> pd.DataFrame:
    """Return features that are columns.

    Raises
    ------
    UserError : they are sequences.
    """
    if isinstance(features, Sequences):
        raise UserError("sequences have no columns: only what takes sequences can read them")
    return features


def onehot_names(features: Features) -> list[str]:
    """Return the column names of :func:`onehot`, ``column=category`` for categoricals."""
    features = columns_of(features)
    names: list[str] = []
    for column in features.columns:
        dtype = features[column].dtype
        if isinstance(dtype, pd.CategoricalDtype):
            names += [f"{column}={category}" for category in dtype.categories]
        else:
            names.append(str(column))
    return names


def onehot(features: Features) -> NDArray[np.float32]:
    """Return the (n, d) float32 matrix of numeric, boolean and one-hot categorical columns."""
    dense: NDArray[np.float32] = sparse_onehot(features).toarray()
    return dense


def sparse_onehot(features: Features) -> csr_matrix:
    """Return the matrix of :func:`onehot` in compressed rows.

    Numbers and booleans are stored even where they are 0, so that a learner that takes an absent
    entry for a missing value (XGBoost) sees one only in the columns of the other categories. Trees
    grown on this and on the dense matrix are the same; binning and growing them costs less than
    half, in proportion to the stored entries.
    """
    features = columns_of(features)
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
