"""Highest-density regions of posterior draws: which draws are inside, and how large the region is.

One dimension: the shortest interval. Two: a kernel density, binned and convolved by FFT. More: the
density from the distance of the k-th nearest neighbour.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_GRID = 256
_PADDING = 4.0  # standard deviations of the kernel left free around the draws


@dataclass(frozen=True, eq=False)
class Density:
    """A density on a grid: `values` (X, Y) at `x` (X,) and `y` (Y,), and the region's threshold."""

    x: Array
    y: Array
    values: Array
    threshold: float

    def holds(self, points: Array) -> NDArray[np.bool_]:
        """Say which of (N, 2) points lie in the region."""
        low = np.array([self.x[0], self.y[0]])
        position = (points - low) / [self.x[1] - self.x[0], self.y[1] - self.y[0]]
        on_grid = ((position >= 0) & (position <= _GRID - 1)).all(axis=1)
        position = np.where(on_grid[:, None], position, 0)
        corner = np.minimum(position.astype(np.intp), _GRID - 2)
        indices, weights = _corners(corner, position - corner)
        density = (self.values.ravel()[indices] * weights).sum(axis=0)
        inside: NDArray[np.bool_] = on_grid & (density >= self.threshold)
        return inside


@dataclass(frozen=True, eq=False)
class Region:
    """A region that holds `level` of the draws.

    Attributes
    ----------
    inside : (T,) whether a draw lies in it.
    size : length, area or volume, in the units of the draws; 0 where a dimension does not vary.
    bounds : (m, 2) smallest and largest coordinates of the draws inside.
    density : the grid, for two dimensions that both vary.
    """

    level: float
    inside: NDArray[np.bool_]
    size: float
    bounds: Array
    density: Density | None = None


def highest_density_region(draws: Array, level: float = 0.95) -> Region:
    """Return the highest-density region of (T, m) draws.

    Notes
    -----
    The threshold is the (1 - level) quantile of the density at the draws themselves (Hyndman
    1996), so that smoothing, which keeps a region's shape, does not enlarge it. Dimensions that
    do not vary are left out of the density, and make the size 0.
    """
    varies = np.ptp(draws, axis=0) > 0
    free, dimensions = draws[:, varies], int(varies.sum())
    density = None
    if dimensions == 0:
        inside, size = np.ones(len(draws), bool), 0.0
    elif dimensions == 1:
        inside, size = _shortest_interval(free[:, 0], level)
    elif dimensions == 2:
        inside, size, density = _planar(free, level)
    else:
        inside, size = _neighbours(free, level)
    kept = draws[inside]
    bounds = np.stack([kept.min(axis=0), kept.max(axis=0)], axis=1)
    whole = bool(varies.all())
    return Region(level, inside, size if whole else 0.0, bounds, density if whole else None)


def _shortest_interval(draws: Array, level: float) -> tuple[NDArray[np.bool_], float]:
    ordered = np.sort(draws)
    held = int(np.ceil(level * len(draws)))
    widths = ordered[held - 1 :] - ordered[: len(draws) - held + 1]
    start = int(widths.argmin())
    low, high = ordered[start], ordered[start + held - 1]
    return (draws >= low) & (draws <= high), float(high - low)


def _planar(draws: Array, level: float) -> tuple[NDArray[np.bool_], float, Density]:
    bandwidth = np.cov(draws, rowvar=False) * len(draws) ** (-1 / 3)  # Scott's factor, squared
    pad = _PADDING * np.sqrt(np.diag(bandwidth))
    low, high = draws.min(axis=0) - pad, draws.max(axis=0) + pad
    step = (high - low) / (_GRID - 1)
    position = (draws - low) / step
    corner = np.minimum(position.astype(np.intp), _GRID - 2)
    indices, weights = _corners(corner, position - corner)
    # A kernel narrower than the grid, of two almost equal objectives, would ring.
    values = _smoothed(_binned(indices, weights), bandwidth / np.outer(step, step) + 2 * np.eye(2))
    at_draws = (values.ravel()[indices] * weights).sum(axis=0)
    threshold = float(np.quantile(at_draws, 1 - level))
    area = float((values >= threshold).sum() * step.prod())
    values /= len(draws) * step.prod()
    x, y = (low[i] + step[i] * np.arange(_GRID) for i in range(2))
    grid = Density(x, y, values, threshold / (len(draws) * float(step.prod())))
    return at_draws >= threshold, area, grid


def _corners(corner: NDArray[np.intp], fraction: Array) -> tuple[NDArray[np.intp], Array]:
    """Return flat indices and bilinear weights (4, T) of the grid points around each draw."""
    i = corner[:, 0] * _GRID + corner[:, 1]
    fx, fy = fraction[:, 0], fraction[:, 1]
    weights = np.stack([(1 - fx) * (1 - fy), (1 - fx) * fy, fx * (1 - fy), fx * fy])
    return np.stack([i, i + 1, i + _GRID, i + _GRID + 1]), weights


def _binned(indices: NDArray[np.intp], weights: Array) -> Array:
    counts: Array = np.bincount(indices.ravel(), weights.ravel(), _GRID**2).astype(np.float64)
    return counts.reshape(_GRID, _GRID)


def _smoothed(counts: Array, covariance: Array) -> Array:
    """Convolve with a normal kernel whose covariance is in grid steps."""
    u = 2 * pi * np.fft.fftfreq(_GRID)[:, None]
    v = 2 * pi * np.fft.rfftfreq(_GRID)
    exponent = covariance[0, 0] * u**2 + 2 * covariance[0, 1] * u * v + covariance[1, 1] * v**2
    smooth: Array = np.fft.irfft2(np.fft.rfft2(counts) * np.exp(-exponent / 2), s=counts.shape)
    return smooth


def _neighbours(draws: Array, level: float) -> tuple[NDArray[np.bool_], float]:
    """Hold the draws whose k-th neighbour is nearest, after whitening; measure by quasi-points."""
    from scipy.spatial import cKDTree

    total, dimensions = draws.shape
    k = max(round(np.sqrt(total) / 2), 1)
    # The nudge keeps the factor finite where two objectives are almost the same.
    factor = np.linalg.cholesky(np.cov(draws, rowvar=False) + 1e-12 * np.diag(draws.var(axis=0)))
    white = np.linalg.solve(factor, draws.T).T
    tree = cKDTree(white)
    radius = tree.query(white, [k + 1])[0][:, 0]  # the first neighbour of a draw is itself
    reach = float(np.quantile(radius, level))
    inside = radius <= reach
    low, high = white[inside].min(axis=0) - reach, white[inside].max(axis=0) + reach
    points = low + (high - low) * _lattice(total, dimensions)
    filled = float((tree.query(points, [k])[0][:, 0] <= reach).mean())
    return inside, filled * float((high - low).prod() * np.diag(factor).prod())


def _lattice(points: int, dimensions: int) -> Array:
    """Return evenly spread points of the unit cube (a Kronecker sequence of the plastic ratios)."""
    ratio = 2.0
    for _ in range(40):  # the root of x^(d + 1) = x + 1, by a contraction
        ratio = (1 + ratio) ** (1 / (dimensions + 1))
    steps = ratio ** -np.arange(1.0, dimensions + 1)
    lattice: Array = np.arange(1, points + 1)[:, None] * steps % 1
    return lattice
