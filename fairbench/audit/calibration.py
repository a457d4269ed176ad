"""Whether scores are the probabilities they claim to be, in every group, by the known labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from fairbench.audit.reading import AuditTable

Floats = NDArray[np.float64]

BINS = 10
# Fewer labels make a difference of means, let alone a diagram, say next to nothing.
FEWEST_LABELS = 10


@dataclass(frozen=True, eq=False)
class Bin:
    """Labelled rows of similar scores: their number, mean score, and share of positive labels.

    The interval of the share is that of a Beta(1, 1) prior.
    """

    size: int
    score: float
    share: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class GroupCalibration:
    """The scores of a group against its labels.

    Attributes
    ----------
    labels : how many there are. score, share : mean score and share of positives of those rows.
    excess, lower, upper : mean score minus share, with its normal interval; NaN of too few labels.
    """

    attribute: str
    group: str
    labels: int
    score: float
    share: float
    excess: float
    lower: float
    upper: float
    bins: Sequence[Bin]


def calibrations(table: AuditTable, level: float = 0.95) -> Iterator[GroupCalibration]:
    """Yield the calibration of every group of every attribute; nothing without scores or labels."""
    known = table.known
    if table.score is None or not len(known):
        return
    score, label = table.score[known], table.label[known]
    bins = np.minimum((score * BINS).astype(np.int64), BINS - 1)
    for attribute, groups in table.groups.items():
        names = groups.cat.categories
        cell = groups.cat.codes.to_numpy(np.int64)[known] * BINS + bins
        columns = (None, score, label, (score - label) ** 2)
        sums = np.stack(
            [np.bincount(cell, weights=each, minlength=len(names) * BINS) for each in columns]
        ).reshape(len(columns), len(names), BINS)
        for g, name in enumerate(names):
            yield _of_group(attribute, str(name), sums[:, g].astype(np.float64), level)


def _of_group(attribute: str, name: str, sums: Floats, level: float) -> GroupCalibration:
    """Summarise a group from (4, BINS) sums of 1, score, label and squared difference."""
    size, score, share, squares = sums.sum(axis=1)
    if size < FEWEST_LABELS:
        nan = float("nan")
        return GroupCalibration(attribute, name, int(size), nan, nan, nan, nan, nan, ())
    excess = (score - share) / size
    variance = (squares / size - excess**2) / (size - 1)
    half = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(variance)
    bins = [_bin(n, total, k, level) for n, total, k in sums[:3].T if n]
    return GroupCalibration(
        attribute,
        name,
        int(size),
        float(score / size),
        float(share / size),
        float(excess),
        float(excess - half),
        float(excess + half),
        bins,
    )


def _bin(size: float, score: float, positives: float, level: float) -> Bin:
    tail = (1 - level) / 2
    lower, upper = beta.ppf([tail, 1 - tail], 1 + positives, 1 + size - positives)
    return Bin(int(size), score / size, positives / size, float(lower), float(upper))
