"""Features of rows, their units, and the matrix that a learner takes of them.

Features are a table's columns, or sequences: for every row the frames of one modality or of
several, in time. A modality is one way of recording a row, such as ``acoustic`` or ``visual``. Rows
may have different numbers of frames; all frames of a modality have the same channels.

Units come first (:class:`Unit`), so that a fit does not depend on those that features and targets
are measured in. Learners compute in single precision, which has 24 binary digits, and some stop at
gains that are fixed numbers. Numbers of an ordinary size keep their unit, and so what is fitted to
them its bits. Then :class:`Sequences`, and last :class:`Encoder`, which is fitted on training rows
only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.arrays import Rows
from fairbench.core.errors import (
    DataError,
    UserError,
    check_choice,
    check_minimum,
    unknown_name,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Array = NDArray[np.float64]

# Rounding that no learner notices, as a share of the width of the middle half of the values.
_UNNOTICED = 1e-5
# LightGBM takes features under 1e-35 for 0, and single precision ends at 3e38.
_FEATURES = 2.0**-100, 2.0**100
# XGBoost asks for a gain of 1e-6 in squared error, scikit-learn's trees for a variance of 2e-16.
_TARGETS = 2.0**-4, 2.0**20


@dataclass(frozen=True)
class Unit:
    """Values are `shift` + `scale` times standard ones."""

    shift: float = 0.0
    scale: float = 1.0

    @staticmethod
    def of(y: Array, weight: Array | None = None) -> Unit:
        """Return the unit in which `y` has mean 0 and, unless constant, standard deviation 1."""
        mean = float(np.average(y, weights=weight))
        sd = float(np.sqrt(np.average((y - mean) ** 2, weights=weight)))
        return Unit(mean, sd or 1.0)

    @staticmethod
    def of_feature(values: Array) -> Unit:
        """Return the unit of a column (n,), NaN where it is missing: its own, if that can be."""
        least, most = _FEATURES
        largest = np.nanmax(np.abs(values), initial=0.0)
        if (not largest or least <= largest <= most) and single_keeps(values):
            return Unit()
        return _of(values, *_FEATURES)

    @staticmethod
    def of_target(y: Array, weight: Array | None = None) -> Unit:
        """Return the unit of values (n,) for trees: their own, if that can be; labels keep it."""
        y = np.asarray(y if weight is None else y[weight > 0], np.float64)
        return _of(y, *_TARGETS)

    def standard(self, y: Array) -> Array:
        """Return values in this unit."""
        return (y - self.shift) / self.scale

    def mean(self, standard: Array) -> Array:
        """Return means as they were."""
        return self.shift + self.scale * standard

    def distribution(self, standard: Array) -> Array:
        """Return (n, 2) means and standard deviations as they were."""
        return np.column_stack([self.mean(standard[:, 0]), self.scale * standard[:, 1]])


def single_keeps(values: Array) -> bool:
    """Say whether single precision keeps the steps between values (n,), of which some may be NaN.

    It is asked of the middle half of the distinct values, so that neither a placeholder nor a long
    tail hides what the others lose.
    """
    with np.errstate(over="ignore", under="ignore"):
        lost = np.abs(values - values.astype(np.float32))
    if not np.nanmax(lost, initial=0.0):
        return True
    middle, width = _middle_half(values)
    inside = np.abs(values - middle) <= width
    return bool(lost[inside].max(initial=0.0) <= _UNNOTICED * width)


def _of(values: Array, least: float, most: float) -> Unit:
    """Return the unit in which the middle half is neither tiny nor huge, and keeps its steps.

    A scale is a power of two, which changes no digit. It comes first: only where it does not help,
    as with Unix seconds, is 0 moved.
    """
    middle, width = _middle_half(values)
    if not width:
        return Unit()
    power = float(2.0 ** np.floor(np.log2(width)))
    unit = Unit(0.0, 1.0 if least <= width <= most else power)
    return unit if single_keeps(unit.standard(values)) else Unit(middle, power)


def _middle_half(values: Array) -> tuple[float, float]:
    """Return the median and the distance of the quartiles of the distinct values; 0 of one."""
    distinct = np.unique(values[~np.isnan(values)])
    if len(distinct) < 2:
        return 0.0, 0.0
    low, middle, high = distinct[[round(p * (len(distinct) - 1)) for p in (0.25, 0.5, 0.75)]]
    return float(middle), float(high - low)


Frames = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Modality:
    """The frames of n rows, one row's after another's in one read-only array.

    Attributes
    ----------
    frames : (F, channels) every frame.
    first : (n,) where in `frames` each row begins.
    lengths : (n,) how many frames each row has.
    """

    frames: Frames
    first: NDArray[np.int64]
    lengths: NDArray[np.int64]

    @property
    def channels(self) -> int:
        """How many numbers a frame has."""
        return int(self.frames.shape[1])

    def take(self, rows: Rows) -> Modality:
        """Return some rows, in that order; no frame is copied."""
        return Modality(self.frames, self.first[rows], self.lengths[rows])

    def cut(self, length: int, *, end: bool) -> Modality:
        """Return at most `length` frames of each row: those at its beginning where its end is cut.

        No frame is copied.
        """
        kept = np.minimum(self.lengths, length)
        return Modality(self.frames, self.first + (0 if end else self.lengths - kept), kept)

    def joined(self) -> Frames:
        """Return the frames of these rows alone, one row's after another's, (sum of lengths, c)."""
        ends = np.cumsum(self.lengths)
        index = np.repeat(self.first - ends + self.lengths, self.lengths) + np.arange(ends[-1])
        if len(index) == len(self.frames) and (index == np.arange(len(index))).all():
            return self.frames
        own: Frames = self.frames[index]
        return own

    def padded(self) -> tuple[Frames, NDArray[np.bool_]]:
        """Return the frames as (n, time, channels), zeros after a row's last one, and a mask.

        Time is that of the longest row; the mask (n, time) is true where there is a frame.
        """
        time = np.arange(self.lengths.max(initial=1))
        there = time < self.lengths[:, None]
        index = self.first[:, None] + np.minimum(time, self.lengths[:, None] - 1)
        frames: Frames = self.frames[index]
        return np.where(there[..., None], frames, np.float32(0)), there


@dataclass(frozen=True, eq=False)
class Sequences:
    """The features of n rows as frames in time, made by :meth:`of`; sliced by rows like a table.

    Attributes
    ----------
    names : of the modalities. parts : the frames of each, of the same n rows.
    """

    names: tuple[str, ...]
    parts: tuple[Modality, ...]

    @classmethod
    def of(
        cls, name: str, modalities: Mapping[str, Sequence[NDArray[Any]]], rows: Sequence[str] = ()
    ) -> Sequences:
        """Return the sequences of a data set called `name`.

        Parameters
        ----------
        modalities : name -> n arrays (frames, channels).
        rows : what errors call the rows, by their places by default.

        Raises
        ------
        DataError : modalities of different numbers of rows, or a row without frames, with other
            channels than the first or with a frame that is not finite; names the first. Also a
            channel that single precision would round too much.
        """
        sizes = {each: len(arrays) for each, arrays in modalities.items()}
        if not sizes or len(set(sizes.values())) > 1:
            counts = ", ".join(f"{each} has {n}" for each, n in sizes.items()) or "there is none"
            raise DataError(f"{name}: modalities need the same rows: {counts}")
        called = rows or [f"row {i}" for i in range(next(iter(sizes.values())))]
        parts = [
            _modality(f"{name}: {each}", arrays, called) for each, arrays in modalities.items()
        ]
        return cls(tuple(modalities), tuple(parts))

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.parts[0].lengths)

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows, and how many modalities."""
        return len(self), len(self.parts)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many frames each row has in each modality, (n, M)."""
        return np.column_stack([each.lengths for each in self.parts])

    def take(self, rows: Rows) -> Sequences:
        """Return some rows (positions, in that order), as ``DataFrame.take`` does."""
        return Sequences(self.names, tuple(each.take(rows) for each in self.parts))

    def __getitem__(self, rows: Any) -> Sequences:
        """Return some rows, as an array does."""
        return self.take(np.asarray(rows))

    def select(self, names: Sequence[str], dataset: str = "these sequences") -> Sequences:
        """Return some of the modalities.

        Raises
        ------
        UserError : one that there is not.
        """
        for name in names:
            if name not in self.names:
                raise unknown_name(f"modality of {dataset}", name, self.names)
        return Sequences(tuple(names), tuple(self.parts[self.names.index(name)] for name in names))

    def update(self, total: Any) -> None:
        """Add what the rows hold to a hash: names, lengths and frames."""
        for name, part in zip(self.names, self.parts, strict=True):
            total.update(f"|features|{name}|{part.channels}|".encode())
            total.update(np.ascontiguousarray(part.lengths).data)
            total.update(np.ascontiguousarray(part.joined()).data)


def _modality(name: str, arrays: Sequence[NDArray[Any]], rows: Sequence[str]) -> Modality:
    for array, row in zip(arrays, rows, strict=True):
        if array.ndim != 2 or array.shape[1] != arrays[0].shape[1]:
            raise DataError(f"{name} of {row} is {_shape(array)}, of {rows[0]} {_shape(arrays[0])}")
        if not len(array):
            raise DataError(f"{name} of {row} has no frames; a row has at least one")
    lengths = np.array([len(array) for array in arrays], np.int64)
    with np.errstate(over="ignore"):
        frames = np.concatenate([np.asarray(array, np.float32) for array in arrays])
    first = np.cumsum(lengths) - lengths
    wrong = np.flatnonzero(~np.isfinite(frames).all(axis=1))
    if len(wrong):
        at = int(np.searchsorted(first, wrong[0], side="right")) - 1
        where = f"frame {wrong[0] - first[at]} of {rows[at]}"
        raise DataError(f"{name} has a value that is missing or infinite in {where}")
    if any(array.dtype != np.float32 for array in arrays):
        _check_precision(name, arrays)
    frames.flags.writeable = first.flags.writeable = lengths.flags.writeable = False
    return Modality(frames, first, lengths)


def _check_precision(name: str, arrays: Sequence[NDArray[Any]]) -> None:
    for channel in range(arrays[0].shape[1]):
        values = np.concatenate([array[:, channel] for array in arrays]).astype(np.float64)
        if not single_keeps(values):
            raise DataError(
                f"{name} is kept in single precision, which rounds channel {channel} too much: "
                "subtract the channel's mean and divide by its standard deviation first"
            )


def _shape(array: NDArray[Any]) -> str:
    if array.ndim != 2:
        return f"an array of {array.ndim} dimensions, not of frames x channels"
    return f"{array.shape[1]} channels wide"


# What is known of the rows, and what a learner takes of it. Features have `len` and `take`.
Features: TypeAlias = pd.DataFrame | Sequences
Frame: TypeAlias = "NDArray[np.floating[Any]] | csr_matrix | pd.DataFrame | Sequences"


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
    from scipy.sparse import csr_matrix

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
