"""Whether two algorithms differ in practice, and the region their difference lies in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import pi
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.core.errors import UserError
from fairbench.inference.comparing.objectives import Objective

FIRST, EQUIVALENT, SECOND = range(3)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Draws of Delta = Theta_A - Theta_B, and the regions of practical equivalence.

    Attributes
    ----------
    objectives : names of the m objectives; of each, more is better.
    delta : (T, m) differences, without draws in which an objective is undefined.
    rope : (m,) half-widths epsilon: |Delta| <= epsilon is practically equivalent.
    undefined : the share of draws that was left out.
    """

    objectives: tuple[str, ...]
    delta: Floats
    rope: Floats
    undefined: float = 0.0

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """The outcome of each draw in base 3: A better 0, equivalent 1, B better 2."""
        digits = 1 + (self.delta < -self.rope).astype(np.int64) - (self.delta > self.rope)
        return digits @ 3 ** np.arange(len(self.objectives) - 1, -1, -1)

    def outcomes(self, inside: NDArray[np.bool_] | None = None) -> Floats:
        """Return the probability of every outcome as a (3,) * m array that sums to 1.

        Parameters
        ----------
        inside : (T,) draws to which the events are restricted, such as a highest-density region.
        """
        codes = self.codes if inside is None else self.codes[inside]
        m = len(self.objectives)
        return np.bincount(codes, minlength=3**m).reshape((3,) * m) / len(codes)

    def events(self, inside: NDArray[np.bool_] | None = None) -> dict[str, float]:
        """Return the probabilities of the paper's events; they sum to 1.

        ``A >> B`` (better in some objective, worse in none), ``B >> A``, ``A ~ B`` (equivalent in
        all), and each way of being better in some and worse in others.
        """
        probability = self.outcomes(inside)
        events = dict.fromkeys(event_names(self.objectives), 0.0)
        for outcome in product(range(3), repeat=len(self.objectives)):
            events[event_name(outcome, self.objectives)] += float(probability[outcome])
        return events

    def reach(self, level: float = 0.95) -> Floats:
        """Return the true differences (m,) that four of five such comparisons would find.

        A difference is found where the central interval of this level lies beyond the rope. The
        interval's half-width is 1.96 standard errors at 95 %, and four of five estimates lie at
        most 0.84 of them under the truth: 1.4 half-widths, also of a Student t.
        """
        ends = np.quantile(self.delta, [(1 - level) / 2, (1 + level) / 2], axis=0)
        power = NormalDist().inv_cdf(0.8) / NormalDist().inv_cdf((1 + level) / 2)
        distance: Floats = self.rope + (1 + power) * (ends[1] - ends[0]) / 2
        return distance


A_BETTER, B_BETTER, PRACTICALLY_EQUAL = "A >> B", "B >> A", "A ~ B"


def event_name(outcome: Sequence[int], objectives: Sequence[str]) -> str:
    """Return the event an outcome (one digit an objective) belongs to."""
    if FIRST in outcome and SECOND in outcome:
        sides = {FIRST: "A", SECOND: "B"}
        return ", ".join(
            f"{sides[digit]} {name}"
            for digit, name in zip(outcome, objectives, strict=True)
            if digit != EQUIVALENT
        )
    if FIRST in outcome:
        return A_BETTER
    return B_BETTER if SECOND in outcome else PRACTICALLY_EQUAL


def event_names(objectives: Sequence[str]) -> list[str]:
    """Return the names of all events, mixed ones last."""
    outcomes = product(range(3), repeat=len(objectives))
    names = [event_name(outcome, objectives) for outcome in outcomes]
    return list(dict.fromkeys([A_BETTER, B_BETTER, PRACTICALLY_EQUAL, *names]))


def compare(
    first: Floats, second: Floats, objectives: Sequence[Objective], rope: Sequence[float] | Floats
) -> Comparison:
    """Compare two algorithms by draws of their confusion tables.

    Parameters
    ----------
    first, second : (T, G, 4) tables of A and of B; paired draws give a paired comparison.
    objectives : m objectives.
    rope : m half-widths of the regions of practical equivalence; 0 and infinity are allowed.

    Raises
    ------
    UserError : a rope for each objective is missing or negative, or an objective is undefined in
        every draw.

    Notes
    -----
    Barrainkua et al., AISTATS 2024, section 5. Fairness gaps enter with a minus sign.
    """
    names = tuple(objective.name for objective in objectives)
    epsilon = np.asarray(rope, float)
    if epsilon.shape != (len(names),) or not (epsilon >= 0).all():
        raise UserError(
            f"rope is {list(rope)}: it needs one number of at least 0 for each of {len(names)} "
            f"objectives ({', '.join(names)})"
        )
    # Columns of contiguous memory: everything after reads one objective at a time.
    delta = np.stack([objective(first) - objective(second) for objective in objectives]).T
    undefined = np.isnan(delta)
    if not undefined.any():
        return Comparison(names, delta, epsilon)
    kept = ~undefined.any(axis=1)
    if not kept.any():
        name = names[int(undefined.mean(axis=0).argmax())]
        raise UserError(f"{name} is undefined in every draw: a group has no rows it rests on")
    return Comparison(names, delta[kept], epsilon, 1 - float(kept.mean()))


_GRID = 256
_PADDING = 4.0  # standard deviations of the kernel left free around the draws


@dataclass(frozen=True, eq=False)
class Density:
    """A density on a grid: `values` (X, Y) at `x` (X,) and `y` (Y,), and the region's threshold."""

    x: Floats
    y: Floats
    values: Floats
    threshold: float

    def holds(self, points: Floats) -> NDArray[np.bool_]:
        """Return which of (N, 2) points lie in the region."""
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
    bounds: Floats
    density: Density | None = None


def highest_density_region(draws: Floats, level: float = 0.95) -> Region:
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


def _shortest_interval(draws: Floats, level: float) -> tuple[NDArray[np.bool_], float]:
    ordered = np.sort(draws)
    held = int(np.ceil(level * len(draws)))
    widths = ordered[held - 1 :] - ordered[: len(draws) - held + 1]
    start = int(widths.argmin())
    low, high = ordered[start], ordered[start + held - 1]
    return (draws >= low) & (draws <= high), float(high - low)


def _planar(draws: Floats, level: float) -> tuple[NDArray[np.bool_], float, Density]:
    """Return which draws of two differences are in their region, its area and their density."""
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


def _corners(corner: NDArray[np.intp], fraction: Floats) -> tuple[NDArray[np.intp], Floats]:
    """Return flat indices and bilinear weights (4, T) of the grid points around each draw."""
    i = corner[:, 0] * _GRID + corner[:, 1]
    fx, fy = fraction[:, 0], fraction[:, 1]
    weights = np.stack([(1 - fx) * (1 - fy), (1 - fx) * fy, fx * (1 - fy), fx * fy])
    return np.stack([i, i + 1, i + _GRID, i + _GRID + 1]), weights


def _binned(indices: NDArray[np.intp], weights: Floats) -> Floats:
    counts: Floats = np.bincount(indices.ravel(), weights.ravel(), _GRID**2).astype(np.float64)
    return counts.reshape(_GRID, _GRID)


def _smoothed(counts: Floats, covariance: Floats) -> Floats:
    """Convolve with a normal kernel whose covariance is in grid steps."""
    u = 2 * pi * np.fft.fftfreq(_GRID)[:, None]
    v = 2 * pi * np.fft.rfftfreq(_GRID)
    exponent = covariance[0, 0] * u**2 + 2 * covariance[0, 1] * u * v + covariance[1, 1] * v**2
    smooth: Floats = np.fft.irfft2(np.fft.rfft2(counts) * np.exp(-exponent / 2), s=counts.shape)
    return smooth


def _neighbours(draws: Floats, level: float) -> tuple[NDArray[np.bool_], float]:
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


def _lattice(points: int, dimensions: int) -> Floats:
    """Return evenly spread points of the unit cube (a Kronecker sequence of the plastic ratios)."""
    ratio = 2.0
    for _ in range(40):  # the root of x^(d + 1) = x + 1, by a contraction
        ratio = (1 + ratio) ** (1 / (dimensions + 1))
    steps = ratio ** -np.arange(1.0, dimensions + 1)
    lattice: Floats = np.arange(1, points + 1)[:, None] * steps % 1
    return lattice
