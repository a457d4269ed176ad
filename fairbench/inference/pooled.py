"""Rates of many groups, estimated together: what few rows cannot say, the other groups help to say.

A group's rate is taken to come from a Beta distribution around what its attributes lead one to
expect: the logit of its centre is an overall level plus an effect of every attribute's value. How
far attributes, and groups beside their attributes, spread is learned from the counts. A group may
also be an exception, with a small probability, and then only its own rows count.

Given centre and spread every group has a closed form (a mixture of two Betas), so only overall
level, effects and spreads are sampled: by importance sampling from normal approximations.

References
----------
Albert 1988, Computational methods using a Bayesian hierarchical generalized linear model.
Herlihy et al. 2024, A structured regression approach for evaluating model performance across
    intersectional subgroups (FAccT).
Schmidli et al. 2014, Robust meta-analytic-predictive priors (the exception).
Chung et al. 2013, A nondegenerate penalized likelihood estimator for variance parameters (Gamma
    priors of spreads).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from fairbench.inference.flags import below

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

# The prior of every spread, on the logit scale: a Gamma distribution of mean 0.58. It is 0 at 0, as
# a spread of exactly 0 would make ten small groups one, and intervals too narrow where groups do
# differ a little; and it rises slowly enough that equal groups are still seen to be equal.
SHAPE, RATE = 1.75, 3.0
EXCEPTION = 0.05  # prior probability that a group is unlike the others
_LEVEL, _WIDTH = -1.6, 1.2  # of log spreads, where the search for them begins
_FEW, _MANY, _EACH = 24, 96, 2  # spreads tried first, then; draws of the effects for each
_LOOK = 0.02  # surprises under this are computed exactly
_TINY = 1e-300
_DEGREES = 7.0  # of freedom of proposals, whose tails are then heavier than the posterior's


@dataclass(frozen=True, eq=False)
class Pooled:
    """The posterior of the rates of G groups, from counts and from each other.

    Attributes
    ----------
    successes, sizes : (G,) the counts.
    draws : (T, G) draws of all groups' rates together.
    mean : (G,) posterior means.
    spread : posterior mean of how far logits of groups lie from what their attributes say.
    exception : (G,) probability that a group is unlike the others.
    surprise : (G,) how probable it is that a group like the others has a rate as far out as this
        one's, in either direction; judged without the group itself. 1 for an empty group.
    efficiency : effective over actual number of importance draws; under 0.1, trust nothing.
    """

    successes: Floats
    sizes: Floats
    draws: Floats
    mean: Floats
    spread: float
    exception: Floats
    surprise: Floats
    efficiency: float

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return the credible interval of every group's rate, (G,) each."""
        tail = (1 - level) / 2
        lower, upper = np.quantile(self.draws, [tail, 1 - tail], axis=0)
        return np.minimum(lower, self.mean), np.maximum(upper, self.mean)

    @cached_property
    def gaps(self) -> Floats:
        """The largest minus the smallest rate, (T,)."""
        gaps: Floats = np.ptp(self.draws, axis=1)
        return gaps

    def gap_below(self, epsilon: float) -> float:
        """Return the probability that no two groups' rates are `epsilon` or more apart."""
        return float((self.gaps < epsilon).mean())

    def worst(self, *, largest: bool = False) -> Floats:
        """Return each group's probability to have the smallest (or the largest) rate, (G,)."""
        extreme = self.draws.argmax(axis=1) if largest else self.draws.argmin(axis=1)
        return np.bincount(extreme, minlength=len(self.sizes)) / len(self.draws)

    def ranks(self, level: float = 0.95) -> tuple[Codes, Codes]:
        """Return the interval of every group's rank, from 1 for the smallest rate, (G,) each."""
        ranks = self.draws.argsort(axis=1).argsort(axis=1) + 1
        tail = (1 - level) / 2
        ends = np.quantile(ranks, [tail, 1 - tail], axis=0, method="inverted_cdf")
        return ends[0].astype(np.int64), ends[1].astype(np.int64)


@dataclass(frozen=True, eq=False)
class _Model:
    """Counts (G,) and what the groups are made of: (G, B) indicators, an attribute per column."""

    successes: Floats
    sizes: Floats
    design: Floats
    block: Codes  # (B,) which spread an effect has; -1 for the overall level

    @property
    def n_spreads(self) -> int:
        return int(self.block.max()) + 2  # of every attribute, and of groups beside them

    @cached_property
    def overall(self) -> float:
        """The rate of everyone together, never 0 or 1."""
        return float((self.successes.sum() + 0.5) / (self.sizes.sum() + 1))

    @cached_property
    def alone(self) -> Floats:
        """Log probability of the counts of a group that is an exception, Beta(1/2, 1/2)."""
        y, n = self.successes, self.sizes
        log: Floats = special.betaln(y + 0.5, n - y + 0.5) - special.betaln(0.5, 0.5)
        return log

    def strength(self, log_spreads: Floats) -> Floats:
        """Return how many rows the others are worth to a group, (M, 1)."""
        variance = self.overall * (1 - self.overall)
        strength: Floats = np.exp(-2 * log_spreads[:, -1:]) / variance
        return strength

    def likelihood(self, effects: Floats, strength: Floats) -> tuple[Floats, Floats]:
        """Return (log probability of the counts, odds to be an exception), (M, G) each."""
        y, n = self.successes, self.sizes
        first = strength * special.expit(effects @ self.design.T)
        second = np.maximum(strength - first, _TINY)
        like = special.gammaln(strength) - special.gammaln(strength + n)
        like += special.gammaln(first + y) - special.gammaln(first)
        like += special.gammaln(second + n - y) - special.gammaln(second)
        odds = np.exp(np.minimum(self.alone - like, 600.0)) * (EXCEPTION / (1 - EXCEPTION))
        return like + np.log1p(odds), odds

    def prior(self, effects: Floats, log_spreads: Floats) -> Floats:
        """Return the log density of effects and log spreads, (M,), up to a constant."""
        log = (SHAPE * log_spreads - RATE * np.exp(log_spreads)).sum(axis=1)
        level = effects[:, 0]  # Beta(1/2, 1/2) of its rate
        log -= (np.logaddexp(0, level) + np.logaddexp(0, -level)) / 2
        scale = log_spreads[:, self.block[1:]]
        log -= ((effects[:, 1:] * np.exp(-scale)) ** 2 / 2 + scale).sum(axis=1)
        return np.asarray(log)

    def mode(self, log_spreads: Floats, start: Floats, steps: int) -> tuple[Floats, Floats]:
        """Return the likeliest effects (M, B) given spreads (M, S), and their precision matrices.

        Fisher scoring with the information of an overdispersed binomial.
        """
        effects, strength = start.copy(), self.strength(log_spreads)
        ridge = np.exp(-2 * log_spreads[:, self.block[1:]])
        diagonal = np.arange(1, len(self.block))
        for step in range(steps):
            if step % 2 == 0:
                like = 1 / (1 + self.likelihood(effects, strength)[1])
            slope, information = self._scores(effects, strength)
            level = special.expit(effects[:, 0])
            precision = np.matmul(self.design.T * (like * information)[:, None, :], self.design)
            precision[:, 0, 0] += level * (1 - level)
            precision[:, diagonal, diagonal] += ridge
            gradient = (like * slope) @ self.design
            gradient[:, 0] += 0.5 - level
            gradient[:, 1:] -= ridge * effects[:, 1:]
            away = np.linalg.solve(precision, gradient[..., None])[..., 0]
            effects += np.clip(away, -2, 2)
        return effects, precision

    def _scores(self, effects: Floats, strength: Floats) -> tuple[Floats, Floats]:
        """Return the slope of the log likelihood in every group's logit, and its information."""
        y, n = self.successes, self.sizes
        centre = special.expit(effects @ self.design.T)
        first, unit = strength * centre, centre * (1 - centre)
        second = np.maximum(strength - first, _TINY)
        slope = special.psi(first + y) - special.psi(first)
        slope -= special.psi(second + n - y) - special.psi(second)
        information = n * unit / (1 + np.maximum(n - 1, 0) / (strength + 1))
        return strength * unit * slope, information


@dataclass(frozen=True, eq=False)
class _Sample:
    """M weighted draws of log spreads (M, S) and effects, and what follows from each of them.

    `centre` (M, G) is what a group like the others has, `strength` (M, 1) how many rows that is
    worth, `log` and `odds` (M, G) are of :meth:`_Model.likelihood`.
    """

    weights: Floats
    log_spreads: Floats
    centre: Floats
    strength: Floats
    log: Floats
    odds: Floats

    @cached_property
    def exception(self) -> Floats:
        """The probabilities (M, G) that a group is an exception."""
        return self.odds / (1 + self.odds)


def pool(
    successes: ArrayLike,
    sizes: ArrayLike,
    generator: np.random.Generator,
    *,
    attributes: ArrayLike | None = None,
    draws: int = 1000,
) -> Pooled:
    """Return the posterior of all groups' rates together.

    Parameters
    ----------
    successes, sizes : (G,) counts; a group may be empty.
    generator : of the draws.
    attributes : (G, K) codes from 0 of what every group is a combination of, such as sex and
        race; without it groups are alike but for chance.
    draws : T.
    """
    y, n = np.asarray(successes, np.float64), np.asarray(sizes, np.float64)
    model = _Model(y, n, *_design(attributes, len(n)))
    sample = _sampled(model, generator)
    first = sample.strength * sample.centre
    expected = (1 - sample.exception) * (first + y) / (sample.strength + n)
    expected += sample.exception * (y + 0.5) / (n + 1)
    return Pooled(
        y,
        n,
        _drawn(model, sample, generator, draws),
        sample.weights @ expected,
        float(sample.weights @ np.exp(sample.log_spreads[:, -1])),
        sample.weights @ sample.exception,
        _surprise(model, sample, generator),
        float(1 / (sample.weights**2).sum() / len(sample.weights)),
    )


def _design(attributes: ArrayLike | None, n_groups: int) -> tuple[Floats, Codes]:
    """Return indicators (G, B) of the overall level and of attributes' values, and their block.

    An attribute of which every group has its own value, or all have the same, says nothing.
    """
    columns, block = [np.ones((n_groups, 1))], [-1]
    codes = np.zeros((n_groups, 0), np.int64) if attributes is None else np.asarray(attributes)
    spread = 0
    for code in codes.T:
        values = np.unique(code)
        if 1 < len(values) < n_groups:
            columns.append((code[:, None] == values).astype(np.float64))
            block += [spread] * len(values)
            spread += 1
    return np.hstack(columns), np.array(block)


def _sampled(model: _Model, generator: np.random.Generator) -> _Sample:
    """Draw effects for spreads near their posterior, and weight them by the exact one."""
    spreads, start, proposal = _proposed(model)
    modes, precision = model.mode(spreads, start, 2)
    spreads, modes, precision, proposal = (
        np.repeat(a, _EACH, axis=0) for a in (spreads, modes, precision, proposal)
    )
    effects, density = _t_draws(modes, precision, generator)
    strength = model.strength(spreads)
    likelihood, odds = model.likelihood(effects, strength)
    log = likelihood.sum(axis=1) + model.prior(effects, spreads) - proposal - density
    centre = special.expit(effects @ model.design.T)
    return _Sample(_normalised(log), spreads, centre, strength, likelihood, odds)


def _proposed(model: _Model) -> tuple[Floats, Floats, Floats]:
    """Return log spreads (M, S) near their posterior, effects to start at, and log densities.

    One in six is drawn broadly all the same, should the search have missed a part.
    """
    n_spreads = model.n_spreads
    start = np.zeros((_FEW * n_spreads, len(model.block)))
    start[:, 0] = special.logit(model.overall)
    spreads = _LEVEL + _WIDTH * _normals(len(start), n_spreads)
    modes, precision = model.mode(spreads, start, 4)
    weights = _normalised(_evidence(model, spreads, modes, precision) - _broad(spreads))
    centre, root = _fitted(spreads, weights)
    spreads = centre + _normals(_MANY, n_spreads) @ root.T
    some = np.arange(_MANY) % 6 == 0
    spreads[some] = _LEVEL + _WIDTH * _normals(int(some.sum()), n_spreads)
    near = np.log(5 / 6) + _gaussian(spreads - centre, root)
    density = np.logaddexp(np.log(1 / 6) + _broad(spreads), near)
    return spreads, np.tile(weights @ modes, (_MANY, 1)), density


def _evidence(model: _Model, spreads: Floats, modes: Floats, precision: Floats) -> Floats:
    """Return the log posterior of spreads (M,), up to a constant, by Laplace's approximation."""
    likelihood, _ = model.likelihood(modes, model.strength(spreads))
    log = likelihood.sum(axis=1) + model.prior(modes, spreads)
    return np.asarray(log - np.linalg.slogdet(precision)[1] / 2)


def _normals(n: int, dimensions: int) -> Floats:
    """Return n evenly spread points of a standard normal, (n, dimensions): a Kronecker sequence."""
    ratio = 2.0
    for _ in range(30):
        ratio = (1 + ratio) ** (1 / (dimensions + 1))
    steps = ratio ** -np.arange(1.0, dimensions + 1)
    points: Floats = special.ndtri((0.5 + np.arange(1, n + 1)[:, None] * steps) % 1)
    return points


def _broad(spreads: Floats) -> Floats:
    scaled = (spreads - _LEVEL) / _WIDTH
    return np.asarray(-(scaled**2).sum(axis=1) / 2 - spreads.shape[1] * np.log(_WIDTH))


def _gaussian(deviations: Floats, root: Floats) -> Floats:
    scaled = np.linalg.solve(root, deviations.T)
    return np.asarray(-(scaled**2).sum(axis=0) / 2 - np.log(np.diag(root)).sum())


def _fitted(points: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the mean of weighted points, and a root of a generous covariance matrix."""
    centre = weights @ points
    deviations = points - centre
    covariance = 1.3 * (deviations.T * weights) @ deviations
    return centre, np.linalg.cholesky(covariance + 0.04 * np.eye(len(centre)))


def _t_draws(
    modes: Floats, precision: Floats, generator: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return one multivariate t draw (M, B) around each mode, and its log density."""
    n, width = modes.shape
    root = np.linalg.cholesky(precision)
    normals = generator.standard_normal((n, width))
    scale = generator.chisquare(_DEGREES, n) / _DEGREES
    away = normals / np.sqrt(scale)[:, None]
    draws = modes + np.linalg.solve(root.transpose(0, 2, 1), away[..., None])[..., 0]
    log = -(_DEGREES + width) / 2 * np.log1p((away**2).sum(axis=1) / _DEGREES)
    return draws, log + np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)


def _normalised(log: Floats) -> Floats:
    weights = np.exp(log - log.max())
    return np.asarray(weights / weights.sum())


def _drawn(model: _Model, sample: _Sample, generator: np.random.Generator, draws: int) -> Floats:
    """Return (T, G) rates: systematically resampled effects, then each group given them."""
    places = (np.arange(draws) + generator.random()) / draws
    chosen = np.searchsorted(np.cumsum(sample.weights)[:-1], places)
    apart = generator.random((draws, len(model.sizes))) < sample.exception[chosen]
    strength = sample.strength[chosen]
    first = np.where(apart, 0.5, strength * sample.centre[chosen])
    second = np.where(apart, 0.5, strength * (1 - sample.centre[chosen]))
    a = generator.standard_gamma(first + model.successes)
    b = generator.standard_gamma(second + model.sizes - model.successes)
    return np.asarray(a / np.maximum(a + b, _TINY))


def _surprise(model: _Model, sample: _Sample, generator: np.random.Generator) -> Floats:
    """Return the predictive probability, under the others, of a count as far out, (G,).

    Leaving a group out reweights by the inverse of its own likelihood. Tails are exact only where
    the moments say that the group may be surprising.
    """
    y, rows = model.successes, np.maximum(model.sizes, 1)
    weights = sample.weights[:, None] * np.exp(sample.log.min(axis=0) - sample.log)
    weights /= weights.sum(axis=0)
    centre = sample.centre
    variance = centre * (1 - centre) * (1 / rows + (1 - 1 / rows) / (sample.strength + 1))
    mean = (weights * centre).sum(axis=0)
    variance = (weights * (variance + centre**2)).sum(axis=0) - mean**2
    deviation = np.abs(y / rows - mean) / np.sqrt(np.maximum(variance, _TINY))
    surprise: Floats = np.where(model.sizes > 0, 2 * special.ndtr(-deviation), 1.0)
    for g in np.flatnonzero(surprise < _LOOK):
        first = sample.strength[:, 0] * centre[:, g]
        second = np.maximum(sample.strength[:, 0] - first, _TINY)
        rates = generator.beta(np.maximum(first, _TINY), second)
        tail = float(weights[:, g] @ below(y[g], rows[g], rates))
        surprise[g] = 2 * min(tail, 1 - tail)
    return surprise
