"""Independent Beta and normal distributions: posteriors of the shares or means of many groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from fairbench.core.arrays import Floats

# The trapezoidal rule converges geometrically for analytic functions times a normal density.
_NODES = np.linspace(-8.5, 8.5, 69)
_WEIGHTS = np.exp(-(_NODES**2) / 2) / np.exp(-(_NODES**2) / 2).sum()


@dataclass(frozen=True, eq=False)
class Beta:
    """Beta distributions in an array of any shape.

    Attributes
    ----------
    successes, failures : (...) the two parameters, above 0: prior pseudo-counts plus counts.
    """

    successes: Floats
    failures: Floats

    @property
    def strength(self) -> Floats:
        """The sum of the parameters."""
        return self.successes + self.failures

    @property
    def mean(self) -> Floats:
        """The expected shares."""
        return self.successes / self.strength

    @property
    def variance(self) -> Floats:
        """The variances of the shares."""
        return self.mean * (1 - self.mean) / (self.strength + 1)

    def after(self, successes: NDArray[Any], failures: NDArray[Any]) -> Beta:
        """Return the posterior after further counts."""
        return Beta(self.successes + successes, self.failures + failures)

    def take(self, place: Any) -> Beta:
        """Return the distributions at some places, which the arrays are indexed by."""
        return Beta(self.successes[place], self.failures[place])

    def below(self, share: ArrayLike) -> Floats:
        """Return P(theta < share)."""
        inside = np.clip(share, 0, 1)
        probability: Floats = special.betainc(self.successes, self.failures, inside)
        return probability

    def quantile(self, probability: ArrayLike) -> Floats:
        """Return the shares under which theta lies with a probability."""
        share: Floats = special.betaincinv(self.successes, self.failures, probability)
        return share

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return the equal-tailed interval."""
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)

    def absolute_error(self, point: ArrayLike) -> Floats:
        """Return E|theta - point| for points in [0, 1]; at least |E theta - point|.

        Splitting the integral at the point leaves regularised incomplete betas alone, as
        theta f(theta; a, b) is the mean times f(theta; a + 1, b).
        """
        point = np.asarray(point, np.float64)
        partial = self.mean * special.betainc(self.successes + 1, self.failures, point)
        distance = 2 * (point * self.below(point) - partial) + self.mean - point
        # Rounding must not leave less than Jensen's inequality allows.
        error: Floats = np.maximum(distance, np.abs(self.mean - point))
        return error

    def draws(self, draws: int, generator: np.random.Generator) -> Floats:
        """Draw (T, ...) shares."""
        shape = np.broadcast_shapes(self.successes.shape, self.failures.shape)
        drawn: Floats = generator.beta(self.successes, self.failures, size=(draws, *shape))
        return drawn


@dataclass(frozen=True, eq=False)
class Normal:
    """Independent normal distributions of means, each known from some labels.

    Attributes
    ----------
    mean, variance : (...) of the means.
    strength : (...) how many labels each is known from.
    """

    mean: Floats
    variance: Floats
    strength: Floats

    @staticmethod
    def of(mean: Floats, spread: ArrayLike, strength: Floats) -> Normal:
        """Return means of values whose variance is `spread`."""
        return Normal(mean, np.asarray(spread, float) / strength + np.zeros_like(mean), strength)

    def after(self, above: NDArray[Any], below: NDArray[Any]) -> Normal:
        """Return the posterior after further labels.

        Parameters
        ----------
        above, below : (...) 0 or 1 labels that are a standard deviation above the mean, or below.
        """
        spread, strength = self.variance * self.strength, self.strength + above + below
        moved = (above - below) * np.sqrt(spread) / strength
        return Normal.of(self.mean + moved, spread, strength)

    def take(self, place: Any) -> Normal:
        """Return the distributions at some places, which the arrays are indexed by."""
        return Normal(self.mean[place], self.variance[place], self.strength[place])

    def quantile(self, probability: ArrayLike) -> Floats:
        """Return the values under which the means lie with a probability."""
        value: Floats = self.mean + np.sqrt(self.variance) * special.ndtri(probability)
        return value

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return the equal-tailed interval."""
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)


def uniform(shape: int | tuple[int, ...], strength: float = 2.0) -> Beta:
    """Return Beta(strength / 2, strength / 2): strength 2 is uniform, 1 is Jeffreys' prior."""
    half = np.full(shape, strength / 2)
    return Beta(half, half)


def centred(mean: ArrayLike, strength: ArrayLike = 2.0) -> Beta:
    """Return priors with these means, each as informative as `strength` labelled rows.

    A mean of 0 or 1 is moved by a thousandth, so that one row to the contrary can be believed.
    """
    inside: Floats = np.clip(np.asarray(mean, np.float64), 1e-3, 1 - 1e-3)
    total = np.asarray(strength, np.float64)
    return Beta(inside * total, (1 - inside) * total)


def probability_less(first: Beta, second: Beta, *, margin: float = 0.0) -> Floats:
    """Return P(first + margin < second) for independent shares, shapes broadcast.

    An expectation over the narrower of the two of the wider one's distribution function, by the
    trapezoidal rule in its normal quantiles: exact to about eight digits, and to three with a
    margin, which puts kinks into that function.
    """
    a, b, c, d = np.broadcast_arrays(
        first.successes, first.failures, second.successes, second.failures
    )
    narrow_first = Beta(a, b).variance <= Beta(c, d).variance
    narrow = Beta(np.where(narrow_first, a, c), np.where(narrow_first, b, d))
    wide = Beta(np.where(narrow_first, c, a), np.where(narrow_first, d, b))
    shift = np.where(narrow_first, margin, -margin)
    below = np.zeros(a.shape)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        below += weight * wide.below(narrow.quantile(special.ndtr(node)) + shift)
    return np.where(narrow_first, 1 - below, below)
