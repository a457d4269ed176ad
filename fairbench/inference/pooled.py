"""Many groups at once: flags for those that differ, certificates, and rates estimated together.

In a table of hundreds of comparisons, some differences are due to chance. Flags are chosen so that
on average at most a given share of them is wrong (the false discovery rate). Certificates are
statements about all groups that are wrong in at most 5 % of audits.

References
----------
Benjamini & Hochberg 1995; Benjamini & Yekutieli 2001 (tests that depend on each other).
Berger 1982, Multiparameter hypothesis testing and acceptance sampling (all groups at once).
Cherian & Candes 2024, Statistical inference for fairness auditing.
Holm 1979, A simple sequentially rejective multiple test procedure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from fairbench.core.arrays import Codes, Floats, even_points


def same_rate(
    successes: ArrayLike, sizes: ArrayLike, other_successes: ArrayLike, other_sizes: ArrayLike
) -> Floats:
    """Return two-sided p-values of Fisher's exact test with mid-p that two rates are the same.

    Parameters
    ----------
    successes, sizes, other_successes, other_sizes : counts whose shapes broadcast; they are rounded
        to whole ones, such as weighted counts.

    Returns
    -------
    Twice the smaller tail, at most 1; 1 where either side is empty.
    """
    from scipy.stats import hypergeom  # takes a third of a second, which others do without

    counts = (successes, sizes, other_successes, other_sizes)
    y, n, z, m = (np.round(np.asarray(count, np.float64)) for count in counts)
    given = hypergeom(n + m, y + z, n)
    at = given.pmf(y) / 2
    tail = np.minimum(given.cdf(y) - at, given.sf(y) + at)
    return np.where((n > 0) & (m > 0), np.minimum(1, 2 * tail), 1.0)


def differs_from_rest(successes: ArrayLike, sizes: ArrayLike) -> Floats:
    """Return for each group (..., G) the p-value of having the same rate as everyone else."""
    y, n = np.asarray(successes, np.float64), np.asarray(sizes, np.float64)
    rest = y.sum(axis=-1, keepdims=True) - y, n.sum(axis=-1, keepdims=True) - n
    return same_rate(y, n, *rest)


def _binomial_mid_tail(count: ArrayLike, size: ArrayLike, rate: ArrayLike) -> Floats:
    """Return P(Y < count) + P(Y = count) / 2 of a binomial variable Y."""
    y, n = np.asarray(count, np.float64), np.asarray(size, np.float64)
    less = special.betainc(n - y + 1, np.maximum(y, 1), 1 - np.asarray(rate))  # P(Y < y)
    at_most = special.betainc(np.maximum(n - y, 1), y + 1, 1 - np.asarray(rate))
    less, at_most = np.where(y > 0, less, 0), np.where(y < n, at_most, 1)
    return np.asarray((less + at_most) / 2)


def adjusted_p_values(p_values: ArrayLike, *, overlapping: bool = False) -> Floats:
    """Return the smallest false discovery rates at which each would be flagged; NaN stays.

    A false discovery rate is the share of flags that is wrong on average. Pass all comparisons that
    a reader scans for striking ones in one call: every group, pair, attribute and metric.

    Parameters
    ----------
    p_values : any shape; NaN is never flagged and not counted.
    overlapping : whether comparisons may depend on each other in any way, as those of groups that
        share people, or of several metrics of the same rows, do. Benjamini and Yekutieli's
        procedure then replaces Benjamini and Hochberg's; it flags less.
    """
    p = np.asarray(p_values, np.float64)
    result = np.full(p.shape, np.nan)
    defined = ~np.isnan(p)
    order = np.argsort(p[defined])
    ranks = np.arange(1, len(order) + 1)
    ratio = p[defined][order] * len(order) / ranks
    if overlapping and len(order):
        ratio *= (1 / ranks).sum()
    least = np.minimum.accumulate(ratio[::-1])[::-1]
    values = np.empty(len(order))
    values[order] = np.minimum(1, least)
    result[defined] = values
    return result


# Rates of many groups, estimated jointly: groups of few rows borrow strength from the others.
#
# A group's rate has a Beta distribution whose centre depends on the group's attributes: the logit
# of the centre is an overall level plus an effect of each attribute's value. The spread of the
# effects, and of the groups around their centres, is learned from the counts. With a small
# probability a group is an exception, and then its rate is estimated from its own rows alone.
#
# The overall level, the effects and the spreads are drawn by importance sampling; the rest has a
# closed form.
#
# References
# ----------
# Herlihy et al. 2024, A structured regression approach for evaluating model performance across
#     intersectional subgroups (FAccT).
# Schmidli et al. 2014, Robust meta-analytic-predictive priors (the exception).
# Chung et al. 2013, A nondegenerate penalized likelihood estimator for variance parameters.

Generators = Sequence[np.random.Generator]

# The prior of every logit spread: a mixture of two Gamma distributions (weight, shape, rate).
# Groups may be practically equal (mean 0.03). Otherwise they differ (mean 0.7), and a tiny spread,
# which would make the intervals of small groups too narrow, is unlikely.
SPREADS = ((0.05, 2.0, 60.0), (0.95, 2.5, 3.5))
EXCEPTION = 0.05  # prior probability that a group is unlike the others
_LEVEL, _WIDTH = -1.6, 1.2  # of log spreads, where the search for them begins
_FEW, _MANY, _EACH = 16, 64, 2  # spreads tried first, then; draws of the effects for each
_EXACT_UNDER = 0.02  # surprises under this are computed exactly
_TINY = 1e-300
_LARGE = 500  # groups, of whose design only what is not 0 is multiplied
_DEGREES = 7.0  # of freedom of proposals, whose tails are then heavier than the posterior's


class Pooled(NamedTuple):
    """The posterior of the rates of G groups, from counts and from each other.

    The axes before those of draws and groups are those of rates and of samples, if there are any.

    Attributes
    ----------
    draws : (..., T, G) draws of all groups' rates together.
    mean : (..., G) posterior means.
    surprise : (..., G) two-sided predictive p-values: the probability of a rate as extreme as the
        group's in a group like the others, estimated without the group; 1 for an empty group.
    """

    draws: Floats
    mean: Floats
    surprise: Floats

    @classmethod
    def stacked(cls, several: Sequence[Pooled]) -> Pooled:
        """Return several posteriors of one shape along a new first axis."""
        return cls(*map(np.stack, zip(*several, strict=True)))

    def take(self, index: int) -> Pooled:
        """Return the posterior at one position of the first axis."""
        return Pooled(*(array[index] for array in self))

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return the credible interval of every group's rate, (..., G) each."""
        tail = (1 - level) / 2
        lower, upper = np.quantile(self.draws, [tail, 1 - tail], axis=-2)
        return np.minimum(lower, self.mean), np.maximum(upper, self.mean)

    def gap_below(self, epsilon: float) -> Floats:
        """Return the probability (...) that no two groups' rates are `epsilon` or more apart."""
        return np.asarray((np.ptp(self.draws, axis=-1) < epsilon).mean(axis=-1))

    @property
    def complement(self) -> Pooled:
        """The posterior of 1 minus the rates."""
        return Pooled(1 - self.draws, 1 - self.mean, self.surprise)

    def worst(self, *, largest: bool = False) -> Floats:
        """Return each group's probability (..., G) to have the smallest (or the largest) rate."""
        extreme = self.draws.argmax(axis=-1) if largest else self.draws.argmin(axis=-1)
        groups = np.arange(self.mean.shape[-1])
        return np.asarray((extreme[..., None] == groups).mean(axis=-2))

    def ranks(self, level: float = 0.95) -> tuple[Codes, Codes]:
        """Return the interval (..., G) of every group's rank, from 1 for the smallest rate."""
        ranks = self.draws.argsort(axis=-1).argsort(axis=-1) + 1
        tail = (1 - level) / 2
        lower, upper = np.quantile(ranks, [tail, 1 - tail], axis=-2, method="inverted_cdf")
        return lower.astype(np.int64), upper.astype(np.int64)


def _spread_prior(log_spreads: Floats) -> Floats:
    """Return the log density of log spreads."""
    logs = [
        np.log(w * r**k / special.gamma(k)) + k * log_spreads - r * np.exp(log_spreads)
        for w, k, r in SPREADS
    ]
    return np.asarray(np.logaddexp(*logs))


@dataclass(frozen=True, eq=False)
class _Model:
    """Counts (R, 1, G) of R rates, and what the groups are made of.

    `design` (G, B) has a column of ones, and then an indicator for each value of each attribute.
    `block` (B,) is the index of the spread of each effect, -1 for the overall level. There are S
    spreads: one for each attribute, and the last for the groups around their centres.
    """

    successes: Floats
    sizes: Floats
    design: Floats
    block: Codes

    @cached_property
    def overall(self) -> Floats:
        """The rates (R, 1, 1) of everyone together, never 0 or 1."""
        y, n = (array.sum(axis=-1, keepdims=True) for array in (self.successes, self.sizes))
        return np.asarray((y + 0.5) / (n + 1))

    @cached_property
    def alone(self) -> Floats:
        """Log probability of the counts of a group that is an exception, Beta(1/2, 1/2)."""
        y, n = self.successes, self.sizes
        return np.asarray(special.betaln(y + 0.5, n - y + 0.5) - np.log(np.pi))

    def strength(self, log_spreads: Floats) -> Floats:
        """Return how many rows the others are worth to a group, (R, M, 1)."""
        variance = self.overall * (1 - self.overall)
        return np.asarray(np.exp(-2 * log_spreads[..., -1:]) / variance)

    def likelihood(self, effects: Floats, strength: Floats) -> tuple[Floats, Floats]:
        """Return (log probability of the counts, odds to be an exception), (R, M, G) each."""
        y, n = self.successes, self.sizes
        alpha = strength * special.expit(effects @ self.design.T)
        beta = np.maximum(strength - alpha, _TINY)
        like = special.gammaln(strength) - special.gammaln(strength + n)
        like += special.gammaln(alpha + y) - special.gammaln(alpha)
        like += special.gammaln(beta + n - y) - special.gammaln(beta)
        odds = np.exp(np.minimum(self.alone - like, 600.0)) * (EXCEPTION / (1 - EXCEPTION))
        return like + np.log1p(odds), odds

    def prior(self, effects: Floats, log_spreads: Floats) -> Floats:
        """Return the log density of effects and log spreads, (R, M), up to a constant."""
        log = _spread_prior(log_spreads).sum(axis=-1)
        level = effects[..., 0]  # Beta(1/2, 1/2) of its rate
        log -= (np.logaddexp(0, level) + np.logaddexp(0, -level)) / 2
        scale = log_spreads[..., self.block[1:]]
        log -= ((effects[..., 1:] * np.exp(-scale)) ** 2 / 2 + scale).sum(axis=-1)
        return np.asarray(log)

    def mode(
        self, log_spreads: Floats, start: Floats, like: Floats, steps: int
    ) -> tuple[Floats, Floats]:
        """Return likely effects (R, M, B) given spreads, and their precision matrices.

        By Fisher scoring of overdispersed binomials, weighted by how surely they are `like` others.
        """
        effects, y, n = start.copy(), self.successes, self.sizes
        ridge = np.exp(-2 * log_spreads[..., self.block[1:]])
        weight = like / (1 + np.maximum(n - 1, 0) / (self.strength(log_spreads) + 1))
        diagonal = np.arange(1, len(self.block))
        for _ in range(steps):
            centre, level = special.expit(effects @ self.design.T), special.expit(effects[..., 0])
            information = weight * n * centre * (1 - centre)
            precision = self._squares(information)
            precision[..., 0, 0] += level * (1 - level)
            precision[..., diagonal, diagonal] += ridge
            gradient = (weight * (y - n * centre)) @ self.design
            gradient[..., 0] += 0.5 - level
            gradient[..., 1:] -= ridge * effects[..., 1:]
            effects += np.clip(np.linalg.solve(precision, gradient[..., None])[..., 0], -2, 2)
        return effects, precision

    def _squares(self, weights: Floats) -> Floats:
        """Return the weighted squares of the design, (R, M, B, B), of weights (R, M, G)."""
        if len(self.design) < _LARGE:
            return np.asarray(self.design.T * weights[..., None, :] @ self.design)
        from scipy.sparse import csr_array

        groups, width = self.design.shape
        columns = np.nonzero(self.design)[1].reshape(groups, -1)  # of each group equally many
        at = (columns[:, :, None] * width + columns[:, None, :]).reshape(groups, -1)
        starts = np.arange(groups + 1) * at.shape[1]
        squares = csr_array((np.ones(at.size), at.ravel(), starts), (groups, width**2))
        sums = weights.reshape(-1, groups) @ squares
        return np.asarray(sums.reshape(*weights.shape[:2], width, width))


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
    generator : makes the draws.
    attributes : (G, K) codes from 0 of what every group is a combination of, such as sex and
        race; without it all groups have the same centre.
    draws : T, the number of draws.
    """
    y, n = (np.asarray(array, np.float64)[None, None] for array in (successes, sizes))
    return pool_rates(y, n, [generator], attributes=attributes, draws=draws).take(0).take(0)


def pool_rates(
    successes: Floats,
    sizes: Floats,
    generators: Generators,
    *,
    attributes: ArrayLike | None = None,
    draws: int = 1000,
) -> Pooled:
    """Return the posteriors (R, S) of R rates of the same groups in S samples, as :func:`pool`.

    Parameters
    ----------
    successes, sizes : (R, S, G) counts.
    generators : (S,) one for each sample, whose draws do not depend on the other samples.
    """
    rates, samples, groups = successes.shape
    # Every sample's rates in turn, as its generator draws for all of them at once.
    y, n = (np.moveaxis(array, 1, 0).reshape(-1, groups) for array in (successes, sizes))
    model = _Model(y[:, None], n[:, None], *_design(attributes, groups))
    # Effects are drawn for spreads near their posterior, and weighted by the exact one.
    spreads, start, like, proposal = _propose_spreads(model)
    effects, density = _t_draws(*model.mode(spreads, start, like, 2), generators)
    spreads, proposal = (np.repeat(a, _EACH, axis=1) for a in (spreads, proposal))
    # What a group like the others has, how many rows that is worth, and what its counts tell.
    centre, strength = special.expit(effects @ model.design.T), model.strength(spreads)
    log, odds = model.likelihood(effects, strength)
    weights = _normalise(log.sum(axis=-1) + model.prior(effects, spreads) - proposal - density)
    exception = odds / (1 + odds)
    expected = (1 - exception) * (strength * centre + model.successes) / (strength + model.sizes)
    expected += exception * (model.successes + 0.5) / (model.sizes + 1)
    drawn = _rate_draws(model, (weights, exception, strength, centre), generators, draws)
    surprise = _surprise(y, n, weights, centre, strength, log)
    pooled = drawn, (weights[:, None] @ expected)[:, 0], surprise
    shaped = (array.reshape(samples, rates, *array.shape[1:]) for array in pooled)
    return Pooled(*(np.moveaxis(array, 0, 1) for array in shaped))


def _design(attributes: ArrayLike | None, n_groups: int) -> tuple[Floats, Codes]:
    """Return `design` and `block` of :class:`_Model` for the attributes that tell groups apart."""
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


def _propose_spreads(model: _Model) -> tuple[Floats, Floats, Floats, Floats]:
    """Return log spreads (R, M, S) near their posterior, where to start, and log densities.

    Where to start are effects (R, M, B), and how surely groups are like the others (R, 1, G).
    """
    n_rates, n_spreads = len(model.sizes), int(model.block.max()) + 2
    points = _LEVEL + _WIDTH * _normals(_FEW * n_spreads, n_spreads)
    spreads = np.repeat(points[None], n_rates, axis=0)
    start = np.zeros((n_rates, len(points), len(model.block)))
    start[..., 0] = special.logit(model.overall[..., 0])
    like = 1 / (1 + model.likelihood(start, model.strength(spreads))[1])
    modes, precision = model.mode(spreads, start, like, 3)
    likelihood, odds = model.likelihood(modes, model.strength(spreads))
    log = likelihood.sum(axis=-1) + model.prior(modes, spreads)  # at the mode: Laplace's method
    weights = _normalise(log - np.linalg.slogdet(precision)[1] / 2 - _broad(spreads))[:, None]
    centre, root = _fit_normal(spreads, weights[:, 0])
    spreads = centre + _normals(_MANY, n_spreads) @ root.swapaxes(-1, -2)
    # A sixth of the points is spread broadly, in case the search has missed a part.
    is_broad = np.arange(_MANY) % 6 == 0
    spreads[:, is_broad] = _LEVEL + _WIDTH * _normals(int(is_broad.sum()), n_spreads)
    near = np.log(5 / 6) + _gaussian(spreads - centre, root)
    density = np.logaddexp(np.log(1 / 6) + _broad(spreads), near)
    start = np.repeat(weights @ modes, _MANY, axis=1)
    return spreads, start, weights @ (1 / (1 + odds)), density


@lru_cache(maxsize=16)
def _normals(n: int, dimensions: int) -> Floats:
    """Return n evenly spread points of a standard normal, (n, dimensions): a Kronecker sequence."""
    return special.ndtri(even_points(n, dimensions, 0.5))


def _broad(spreads: Floats) -> Floats:
    """Return the log density of the broad proposal of log spreads, up to a constant."""
    return np.asarray(-(((spreads - _LEVEL) / _WIDTH) ** 2 / 2 + np.log(_WIDTH)).sum(axis=-1))


def _gaussian(deviations: Floats, root: Floats) -> Floats:
    """Return the log density of deviations, for a root of their covariance, up to a constant."""
    scaled = np.linalg.solve(root, deviations.swapaxes(-1, -2))
    size = np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1)
    return np.asarray(-(scaled**2).sum(axis=-2) / 2 - size[:, None])


def _fit_normal(points: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return means (R, 1, S) of weighted points, and roots of generous covariance matrices."""
    centre = weights[:, None] @ points
    deviations = points - centre
    covariance = 1.3 * (deviations * weights[..., None]).swapaxes(-1, -2) @ deviations
    return centre, np.asarray(np.linalg.cholesky(covariance + 0.04 * np.eye(points.shape[-1])))


def _t_draws(modes: Floats, precision: Floats, generators: Generators) -> tuple[Floats, Floats]:
    """Return multivariate t draws (R, M * _EACH, B) around M modes, and their log densities."""
    root = np.linalg.cholesky(precision)
    rates, points, size = modes.shape
    shape = rates // len(generators), points * _EACH
    drawn = [(g.standard_normal((*shape, size)), g.chisquare(_DEGREES, shape)) for g in generators]
    normals, squares = (np.concatenate(arrays) for arrays in zip(*drawn, strict=True))
    scale = squares / _DEGREES
    away = normals / np.sqrt(scale)[..., None]
    columns = away.reshape(rates, points, _EACH, size).swapaxes(-1, -2)
    draws = modes[..., None] + np.linalg.solve(root.swapaxes(-1, -2), columns)
    density = np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1)
    powers = (_DEGREES + size) / 2 * np.log1p((away**2).sum(axis=-1) / _DEGREES)
    return draws.swapaxes(-1, -2).reshape(away.shape), np.repeat(density, _EACH, axis=1) - powers


def _normalise(log: Floats) -> Floats:
    """Return weights that add up to 1; a point so far out that its density overflows has none."""
    log = np.where(np.isfinite(log), log, -np.inf)
    weights = np.exp(log - log.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def _rate_draws(
    model: _Model, sample: tuple[Floats, ...], generators: Generators, draws: int
) -> Floats:
    """Return (R, T, G) rates: systematically resampled effects, then each group given them.

    Parameters
    ----------
    sample : the weights of draws (R, M), and for each what the probability of an exception is,
        and the strength and the centre of the groups like the others.
    """
    weights, *of_effects = sample
    share = len(weights) // len(generators)
    start = np.repeat([generator.random() for generator in generators], share)
    quantiles = (np.arange(draws) + start[:, None]) / draws
    cumulative = np.cumsum(weights, axis=1)[:, :-1]
    chosen_index = np.stack(
        [np.searchsorted(*pair) for pair in zip(cumulative, quantiles, strict=True)]
    )[..., None]
    apart, strength, centre = (np.take_along_axis(array, chosen_index, 1) for array in of_effects)
    rates = []
    for s, generator in enumerate(generators):
        of_split = slice(s * share, (s + 1) * share)
        alone = generator.random(apart[of_split].shape) < apart[of_split]
        alpha = np.where(alone, 0.5, strength[of_split] * centre[of_split])
        beta = np.where(alone, 0.5, strength[of_split] * (1 - centre[of_split]))
        y, n = model.successes[of_split], model.sizes[of_split]
        a = generator.standard_gamma(alpha + y)
        b = generator.standard_gamma(beta + n - y)
        rates.append(a / np.maximum(a + b, _TINY))
    return np.concatenate(rates)


def _surprise(
    y: Floats, n: Floats, weights: Floats, centre: Floats, strength: Floats, log: Floats
) -> Floats:
    """Return twice the tail of the predictive distribution under the others, (R, G).

    Leaving a group out reweights by the inverse of its own likelihood. Tails are exact only where
    the moments say that the group may be surprising.
    """
    rows = np.maximum(n, 1)[:, None]
    without = np.log(np.maximum(weights, _TINY))[..., None] - log
    weights = _normalise(without.swapaxes(1, 2)).swapaxes(1, 2)
    variance = centre * (1 - centre) * (1 / rows + (1 - 1 / rows) / (strength + 1))
    mean = (weights * centre).sum(axis=1)
    variance = (weights * (variance + centre**2)).sum(axis=1) - mean**2
    deviation = np.abs(y / rows[:, 0] - mean) / np.sqrt(np.maximum(variance, _TINY))
    surprise: Floats = np.where(n > 0, 2 * special.ndtr(-deviation), 1.0)
    r, g = np.nonzero(surprise < _EXACT_UNDER)
    points = special.ndtr(_normals(strength.shape[1], 1)[:, 0])
    alpha = np.maximum(strength[r, :, 0] * centre[r, :, g], _TINY)
    beta = np.maximum(strength[r, :, 0] - alpha, _TINY)
    rates = special.betaincinv(alpha, beta, points)
    mid_tail = _binomial_mid_tail(y[r, g, None], rows[r, 0, g, None], rates)
    tail = (weights[r, :, g] * mid_tail).sum(axis=1)
    surprise[r, g] = 2 * np.minimum(tail, 1 - tail)
    return surprise
