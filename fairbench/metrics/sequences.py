"""What is cut off sequences that are longer than a model reads, and what shorter ones lack."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fairbench.core.arrays import Floats
from fairbench.metrics.registry import BINARY, Metric


def truncated_rows(target: ArrayLike, frames: ArrayLike, read: ArrayLike) -> Floats:
    """Return 1 for each row with more frames than are read in any modality, 0 for others.

    Parameters
    ----------
    target : has no part in it.
    frames : (n, M) how many each row has in each modality.
    read : (M,) how many are read of a row at the most, or (n, M) of each row.
    """
    longer = np.asarray(frames, float) > np.asarray(read, float)
    return np.asarray(longer.any(axis=1), np.float64)


def truncated_frames(target: ArrayLike, frames: ArrayLike, read: ArrayLike) -> Floats:
    """Return the share of each row's frames, of all modalities together, that is cut off."""
    lengths = np.asarray(frames, float)
    share: Floats = np.maximum(lengths - np.asarray(read), 0).sum(axis=1) / lengths.sum(axis=1)
    return share


def padded_frames(target: ArrayLike, frames: ArrayLike, read: ArrayLike) -> Floats:
    """Return the share of what could be read of each row that it does not have."""
    most = np.asarray(read, float)
    share: Floats = np.maximum(most - np.asarray(frames), 0).sum(axis=1) / most.sum(axis=-1)
    return share


TRUNCATED_ROWS = Metric(
    name="truncated_rows",
    label="truncated sequences",
    sentence="The share of people whose sequence is longer than the model reads.",
    task=BINARY,
    better="neither",
    most=1.0,
    needs=("frames", "frames_read"),
    interval="mean",
    least=0.0,
    function=truncated_rows,
    shown=("everyone", "groups"),
    special=True,
)
TRUNCATED_FRAMES = Metric(
    name="truncated_frames",
    label="frames cut off",
    sentence="The share of a person's frames that is cut off, on average.",
    task=BINARY,
    better="neither",
    most=1.0,
    needs=("frames", "frames_read"),
    interval="mean",
    least=0.0,
    function=truncated_frames,
    shown=("everyone", "groups"),
    special=True,
)
PADDED_FRAMES = Metric(
    name="padded_frames",
    label="frames filled up",
    sentence="The share of the longest sequence that is read that a person's lacks, on average.",
    task=BINARY,
    better="neither",
    most=1.0,
    needs=("frames", "frames_read"),
    interval="mean",
    least=0.0,
    function=padded_frames,
    shown=("groups",),
    special=True,
)
