"""Features that are sequences: for every row the frames of one modality or of several, in time.

A modality is one way of recording a row, such as ``acoustic`` or ``visual``. Rows may have
different numbers of frames; all frames of a modality have the same channels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.core.errors import DataError, unknown_name
from fairbench.data.units import single_keeps

Rows = NDArray[np.intp]
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
