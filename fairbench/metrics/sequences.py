"""What is cut off sequences that are longer than a model reads, and what shorter ones lack."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fairbench.core.arrays import Floats


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
    return np.maximum(lengths - np.asarray(read), 0).sum(axis=1) / lengths.sum(axis=1)


def padded_frames(target: ArrayLike, frames: ArrayLike, read: ArrayLike) -> Floats:
    """Return the share of what could be read of each row that it does not have."""
    most = np.asarray(read, float)
    return np.maximum(most - np.asarray(frames), 0).sum(axis=1) / most.sum(axis=-1)
