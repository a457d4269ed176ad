"""Statistical parity of uncertain predictions: each is a normal distribution, not a point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from fairbench.metrics.registry import REGRESSION, Metric

Array = NDArray[np.float64]
_REACH = 8.3  # sds beyond which a normal has no mass that float64 could add to 1
_STARTS = 16
_SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")
_CHUNK = 2**18  # normals evaluated at once: what fits a cache


def uncertainty_aware_parity(
    means: Sequence[ArrayLike], sds: Sequence[ArrayLike], *, tolerance: float = 1e-3
) -> float:
    """Return the largest Kolmogorov-Smirnov distance between two groups' predictions as normals.

    Uncertainty-aware statistical parity (UA-SP; FairlyUncertain, section 6): a group's distribution
    function is the mean of those of its N(mean, sd); a prediction with sd 0 is a step. A method
    that inflates its sds smooths every distribution function and lowers this without being fairer.

    Intervals are halved only as long as they can hold a larger distance: functions that rise cannot
    be further apart inside than the highest is at the right end and the lowest at the left end.

    Parameters
    ----------
    means, sds : of each group's rows, in one unit.
    tolerance : how far the returned distance may be below the true one; it is never above it. With
        sds of 0 alone it is exact, the parity of the points.

    Returns
    -------
    In [0, 1]; NaN for a single group, an empty one, and where a mean or sd is not finite or an sd
    is negative.
    """
    pairs = [(np.asarray(m, float), np.asarray(s, float)) for m, s in zip(means, sds, strict=True)]
    if len(pairs) < 2 or not all(len(m) and is_normal(m, s).all() for m, s in pairs):
        return float("nan")
    mixtures = [_Mixture(m[s > 0], s[s > 0], np.sort(m[s == 0])) for m, s in pairs]
    return _largest_gap(mixtures, tolerance)


UNCERTAINTY_AWARE_STATISTICAL_PARITY = Metric(
    name="uncertainty_aware_statistical_parity",
    label="uncertainty-aware statistical parity",
    sentence="The largest distance between two groups' predictions, each of them read as a normal.",
    task=REGRESSION,
    better="neither",
    needs=("prediction", "sd_or_uncertainty", "groups"),
    interval="none",
    function=uncertainty_aware_parity,
    special=True,
)


def is_normal(mean: Array, sd: Array) -> NDArray[np.bool_]:
    """Return which rows are a normal distribution, or a step where the sd is 0."""
    valid: NDArray[np.bool_] = np.isfinite(mean) & np.isfinite(sd) & (sd >= 0)
    return valid


@dataclass(frozen=True)
class _Mixture:
    """Normals and steps of equal weight; `steps` are sorted."""

    means: Array
    sds: Array
    steps: Array

    def cdf(self, points: Array) -> Array:
        """Return the distribution function at points."""
        total = np.searchsorted(self.steps, points, "right").astype(float)
        rows = max(_CHUNK // max(len(self.means), 1), 1)
        for start in range(0, len(points), rows):
            chunk = slice(start, start + rows)
            with np.errstate(over="ignore"):
                total[chunk] += ndtr((points[chunk, None] - self.means) / self.sds).sum(axis=1)
        share: Array = total / len(self)
        return share

    def jump(self, points: Array) -> Array:
        """Return by how much the distribution function steps up at points."""
        before, after = (np.searchsorted(self.steps, points, side) for side in _SIDES)
        share: Array = (after - before) / len(self)
        return share

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.means) + len(self.steps)


def _largest_gap(mixtures: Sequence[_Mixture], tolerance: float) -> float:
    points = _start(mixtures)
    low, high = points[:-1], points[1:]
    at_points = np.stack([mixture.cdf(points) for mixture in mixtures])
    at_low = at_points[:, :-1]
    at_high = at_points[:, 1:] - np.stack([mixture.jump(high) for mixture in mixtures])
    largest = float(np.ptp(at_points, axis=0).max())
    while True:
        middle = low + (high - low) / 2
        wide = at_high.max(axis=0) - at_low.min(axis=0) > largest + tolerance
        wide &= (low < middle) & (middle < high)
        if not wide.any():
            return largest
        middle = middle[wide]
        at_middle = np.stack([mixture.cdf(middle) for mixture in mixtures])
        largest = max(largest, float(np.ptp(at_middle, axis=0).max()))
        low, high = np.append(low[wide], middle), np.append(middle, high[wide])
        at_low = np.append(at_low[:, wide], at_middle, axis=1)
        at_high = np.append(at_middle, at_high[:, wide], axis=1)


def _start(mixtures: Sequence[_Mixture]) -> Array:
    """Return points between which no step lies, and beyond which nothing does."""
    means, sds, steps = (
        np.concatenate([getattr(mixture, name) for mixture in mixtures])
        for name in ("means", "sds", "steps")
    )
    if not len(means):
        return np.unique(steps)
    ends = [(means - _REACH * sds).min(), (means + _REACH * sds).max()]
    inner = np.quantile(means, np.linspace(0, 1, _STARTS))
    return np.unique(np.concatenate([steps, ends, inner]))
