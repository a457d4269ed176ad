"""Errors, likelihoods and distributional parity of regressions, with and without uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from fairbench.core.arrays import Floats

# The fewest rows of a mean of sizes of errors, of their squares, or its root, that has an interval:
# where one row in a hundred errs thirty times as much as others, fewer would often show none.
ERROR_ROWS = 400


def absolute_error_rows(target: ArrayLike, prediction: ArrayLike) -> Floats:
    """Return each row's absolute error."""
    return np.abs(np.asarray(target, float) - np.asarray(prediction, float))


def predicted_rows(target: ArrayLike, prediction: ArrayLike) -> Floats:
    """Return each row's prediction, whatever its target."""
    return np.asarray(prediction, float)


def residual_rows(target: ArrayLike, prediction: ArrayLike) -> Floats:
    """Return each row's target minus its prediction."""
    return np.asarray(target, float) - np.asarray(prediction, float)


def normal_nll_rows(target: ArrayLike, mean: ArrayLike, sd: ArrayLike) -> Floats:
    """Return each row's -log N(target; mean, sd), the constant included; NaN where sd <= 0."""
    y, m, s = (np.asarray(a, float) for a in (target, mean, sd))
    with np.errstate(invalid="ignore", divide="ignore"):
        losses = np.log(s) + ((y - m) / s) ** 2 / 2 + np.log(2 * np.pi) / 2
        return np.where(s > 0, losses, np.nan)


def crps_normal_rows(target: ArrayLike, mean: ArrayLike, sd: ArrayLike) -> Floats:
    """Return each row's continuous ranked probability score of N(mean, sd); NaN where sd <= 0.

    sd [z (2 Phi(z) - 1) + 2 phi(z) - 1 / sqrt(pi)], z = (target - mean) / sd (Gneiting, Raftery
    2007, equation 21); in the target's unit, 0 at best.
    """
    y, m, s = (np.asarray(a, float) for a in (target, mean, sd))
    with np.errstate(invalid="ignore", divide="ignore"):
        z = (y - m) / s
        density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        scores = s * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi))
        return np.where(s > 0, scores, np.nan)


def normal_quantile(level: float) -> float:
    """Return how many sds a central normal interval of probability `level` reaches either way."""
    return float(ndtri((1 + level) / 2))


def distribution_distances(samples: Sequence[ArrayLike]) -> Floats:
    """Return the Kolmogorov-Smirnov distances (G, G) between any two groups' values.

    They are exact, at the sorted values. The largest is the statistical parity of a regression
    (FairlyUncertain, section 6; Agarwal et al. 2019). No group is empty.
    """
    ordered = [np.sort(np.asarray(sample, float)) for sample in samples]
    distances = np.zeros((len(samples), len(samples)))
    for i, a in enumerate(ordered):
        for j, b in enumerate(ordered[:i]):
            points = np.concatenate([a, b])
            cdf, other = (np.searchsorted(x, points, side="right") / len(x) for x in (a, b))
            distances[i, j] = distances[j, i] = np.abs(cdf - other).max()
    return distances


_REACH = 8.3  # sds beyond which a normal has no mass that float64 could add to 1
_INNER_POINTS = 16
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
    means : the predicted means of each group's rows.
    sds : their standard deviations, in the unit of the means.
    tolerance : how far the returned distance may be below the true one; it is never above it. With
        sds of 0 alone it is exact, the parity of the points.

    Returns
    -------
    In [0, 1]; NaN for a single group, an empty one, and where a mean or sd is not finite or an sd
    is negative.
    """
    groups = [
        (np.asarray(mean, float), np.asarray(sd, float))
        for mean, sd in zip(means, sds, strict=True)
    ]
    if len(groups) < 2 or not all(len(mean) and is_normal(mean, sd).all() for mean, sd in groups):
        return float("nan")
    mixtures = [
        _Mixture(means=mean[sd > 0], sds=sd[sd > 0], steps=np.sort(mean[sd == 0]))
        for mean, sd in groups
    ]
    return _largest_gap(mixtures, tolerance)


def is_normal(mean: Floats, sd: Floats) -> NDArray[np.bool_]:
    """Return which rows are a normal distribution, or a step where the sd is 0."""
    return np.isfinite(mean) & np.isfinite(sd) & (sd >= 0)


@dataclass(frozen=True)
class _Mixture:
    """Normals and steps of equal weight; `steps` are sorted."""

    means: Floats
    sds: Floats
    steps: Floats

    def cdf(self, points: Floats) -> Floats:
        """Return the distribution function at points."""
        total = np.searchsorted(self.steps, points, "right").astype(float)
        chunk_size = max(_CHUNK // max(len(self.means), 1), 1)
        for start in range(0, len(points), chunk_size):
            chunk = slice(start, start + chunk_size)
            with np.errstate(over="ignore"):
                total[chunk] += ndtr((points[chunk, None] - self.means) / self.sds).sum(axis=1)
        return total / len(self)

    def jump(self, points: Floats) -> Floats:
        """Return by how much the distribution function steps up at points."""
        before, after = (np.searchsorted(self.steps, points, side) for side in _SIDES)
        return (after - before) / len(self)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.means) + len(self.steps)


def _largest_gap(mixtures: Sequence[_Mixture], tolerance: float) -> float:
    """Return the largest gap between the distribution functions, by halving intervals.

    An interval is halved as long as the gap within it may exceed the largest found by more than
    the tolerance.
    """
    points = _grid_points(mixtures)
    low = points[:-1]
    high = points[1:]
    # Values of each mixture's distribution function (mixtures, points); `at_high` is the limit
    # from the left, so that a step at the right end is not inside the interval.
    at_points = np.stack([mixture.cdf(points) for mixture in mixtures])
    at_low = at_points[:, :-1]
    at_high = at_points[:, 1:] - np.stack([mixture.jump(high) for mixture in mixtures])
    largest = float(np.ptp(at_points, axis=0).max())
    while True:
        middle = low + (high - low) / 2
        may_be_larger = at_high.max(axis=0) - at_low.min(axis=0) > largest + tolerance
        may_be_larger &= (low < middle) & (middle < high)  # until floats run out between them
        if not may_be_larger.any():
            return largest
        middle = middle[may_be_larger]
        at_middle = np.stack([mixture.cdf(middle) for mixture in mixtures])
        largest = max(largest, float(np.ptp(at_middle, axis=0).max()))
        low = np.append(low[may_be_larger], middle)
        high = np.append(middle, high[may_be_larger])
        at_low = np.append(at_low[:, may_be_larger], at_middle, axis=1)
        at_high = np.append(at_middle, at_high[:, may_be_larger], axis=1)


def _grid_points(mixtures: Sequence[_Mixture]) -> Floats:
    """Return the points of the first intervals: all steps, both ends, and some in between.

    No step lies inside an interval, and no mixture has mass beyond the first and the last point.
    """
    means = np.concatenate([mixture.means for mixture in mixtures])
    sds = np.concatenate([mixture.sds for mixture in mixtures])
    steps = np.concatenate([mixture.steps for mixture in mixtures])
    if not len(means):
        return np.unique(steps)
    lowest_and_highest = [(means - _REACH * sds).min(), (means + _REACH * sds).max()]
    inner = np.quantile(means, np.linspace(0, 1, _INNER_POINTS))
    return np.unique(np.concatenate([steps, lowest_and_highest, inner]))
