"""Group metrics of a classifier when few of its predictions have a label (Ji et al. 2020).

Scores are calibrated hierarchically: the link, its features and priors (:class:`Calibration`), and
posterior draws of its parameters, by importance sampling or, where that cannot be trusted, by a
slice sampler (:func:`sample`). Whether labels that come are those that calibration foresees is
tested by :func:`calibration_p_values`. The rows are a :class:`PartlyLabelled`; their confusion
counts follow from scores taken at their word (:func:`plug_in`), or from calibrated ones
(:class:`CalibrationPosterior`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal
from scipy.special import chdtri, logit, ndtri

from fairbench.core.arrays import Codes, Floats, Rows, even_points
from fairbench.core.errors import UserError, check_minimum
from fairbench.inference.posterior import posterior_draws
from fairbench.metrics.registry import binary_confusion

CLIP = 0.01
_CACHED = 1 << 14
# Beyond these the link is flat for any clipped score, and exp would be in danger.
_LARGEST_LOG_SLOPE, _LARGEST_SLOPE, _LARGEST_INTERCEPT = 3.0, 20.0, 20.0


@dataclass(frozen=True)
class Calibration:
    """A calibration map per group, whose parameters scatter around means the groups share.

    P(label 1 | score) = sigmoid(sum_k exp(theta_k) x_k(score) + theta_D): the first parameters
    are logarithms of slopes, the last is the intercept; theta = 0 leaves the scores as they are.
    A `signed` model has slopes 1 + theta_k, which may be negative: scores that say the opposite.
    For group g, theta_gk ~ N(mu_k, sigma_k), mu_k ~ N(0, mean_sd_k), and sigma_k is a half-normal
    of scale spread_sd_k.

    Attributes
    ----------
    slopes : 2 for beta calibration, c + a log s - b log(1 - s); 1 for a = b, linear in log odds.
    mean_sd, spread_sd : (D,) standard deviations, the slopes' first, the intercept's last. Without
        `spread_sd` the groups share nothing, and theta_gk ~ N(0, mean_sd_k).
    """

    slopes: int
    mean_sd: tuple[float, ...]
    spread_sd: tuple[float, ...] | None
    signed: bool = False

    @property
    def size(self) -> int:
        """Return the number D of parameters of a group."""
        return self.slopes + 1

    def scaled(self, factor: float) -> Calibration:
        """Return the model with every prior standard deviation multiplied by `factor`."""
        spread = self.spread_sd and tuple(factor * sd for sd in self.spread_sd)
        return replace(self, mean_sd=tuple(factor * sd for sd in self.mean_sd), spread_sd=spread)

    def features(self, score: Floats) -> Floats:
        """Return the features that slopes and intercept multiply, (n,) scores -> (D, n)."""
        clipped = np.clip(score, CLIP, 1 - CLIP)
        log_s, log_not_s = np.log(clipped), np.log1p(-clipped)
        slopes = [log_s, -log_not_s] if self.slopes == 2 else [log_s - log_not_s]
        return np.stack([*slopes, np.ones_like(clipped)])

    def coefficients(self, theta: Floats) -> Floats:
        """Return slopes and intercepts from parameters, (..., G, D) -> (..., G, D)."""
        coefficients = np.empty_like(theta)
        slopes, intercept = theta[..., :-1], theta[..., -1]
        if self.signed:
            np.clip(1 + slopes, -_LARGEST_SLOPE, _LARGEST_SLOPE, out=coefficients[..., :-1])
        else:
            np.exp(np.minimum(slopes, _LARGEST_LOG_SLOPE), out=coefficients[..., :-1])
        coefficients[..., -1] = np.clip(intercept, -_LARGEST_INTERCEPT, _LARGEST_INTERCEPT)
        return coefficients

    def flat_coefficients(self, theta: Floats) -> Floats:
        """Return the coefficients of parameters kept in one axis, (..., G D) -> (..., G D)."""
        grouped = theta.reshape(*theta.shape[:-1], -1, self.size)
        return self.coefficients(grouped).reshape(theta.shape)

    def design(self, score: Floats, group: NDArray[np.int64], n_groups: int) -> Floats:
        """Return the (G D, n) matrix that maps all groups' coefficients to the rows' log odds."""
        columns = np.zeros((n_groups, self.size, len(score)))
        columns[group, :, np.arange(len(score))] = self.features(score).T
        return columns.reshape(n_groups * self.size, len(score))

    def from_normals(self, z: Floats, n_groups: int) -> Floats:
        """Return parameters from independent standard normals, (..., Z) -> (..., G, D).

        They are Z = (2 + G) D means, spreads (by their absolute value) and groups; groups alone
        without spreads.
        """
        shape = (*z.shape[:-1], n_groups, self.size)
        if self.spread_sd is None:
            return z.reshape(shape) * np.array(self.mean_sd)
        means, spreads, groups = np.split(z, [self.size, 2 * self.size], axis=-1)
        centre = (means * np.array(self.mean_sd))[..., None, :]
        spread = (np.abs(spreads) * np.array(self.spread_sd))[..., None, :]
        return centre + spread * groups.reshape(shape)

    def to_normals(self, theta: Floats, spread: Floats, generator: np.random.Generator) -> Floats:
        """Draw the normals behind parameters (C, G, D) and spreads (C, D): the means are drawn."""
        mean_sd = np.array(self.mean_sd)
        if self.spread_sd is None:
            return (theta / mean_sd).reshape(len(theta), -1)
        precision = theta.shape[1] / spread**2 + 1 / mean_sd**2
        mean = theta.sum(axis=1) / spread**2 / precision
        mean += generator.standard_normal(mean.shape) / np.sqrt(precision)
        groups = (theta - mean[:, None]) / spread[:, None]
        spreads = spread / np.array(self.spread_sd)
        return np.hstack([mean / mean_sd, spreads, groups.reshape(len(theta), -1)])


def _sigmoid(log_odds: Floats) -> Floats:
    """Return probabilities from log odds under 700, which are overwritten.

    NumPy's exp is vectorised, unlike scipy's expit.
    """
    np.exp(log_odds, out=log_odds)
    return np.divide(log_odds, 1 + log_odds, out=log_odds)


@dataclass(frozen=True)
class _ShownLabels:
    """What the likelihood of a calibration needs of the labelled rows.

    Attributes
    ----------
    design : (G D, L) design matrix of the rows, or of points that stand for them.
    label : (L,) their labels.
    weight : (L,) rows that each point stands for; None where each is a row.
    """

    design: Floats
    label: Floats
    weight: Floats | None = None

    def log_likelihood(self, coefficients: Floats) -> Floats:
        """Return the log likelihood under every row of coefficients, (T, G D) -> (T,).

        The terms linear in the coefficients are summed over rows once.
        """
        label, weight = self.label, self.weight
        softplus = np.empty(len(coefficients))
        for block in _blocks(len(coefficients), len(label)):
            odds = coefficients[block] @ self.design
            np.exp(odds, out=odds)
            np.log1p(odds, out=odds)
            softplus[block] = odds.sum(axis=1) if weight is None else odds @ weight
        positives = label if weight is None else weight * label
        return np.asarray(coefficients @ (self.design @ positives) - softplus)


_Shown: TypeAlias = tuple[_ShownLabels, Codes]  # and the cells of the rows or points


def _blocks(draws: int, rows: int) -> Iterator[slice]:
    """Yield ranges of draws small enough that draws x rows stay in the processor's cache."""
    step = max(1, _CACHED // max(1, rows))
    for start in range(0, draws, step):
        yield slice(start, start + step)


BETA = Calibration(2, (0.4, 0.4, 2.0), (0.15, 0.15, 0.75))
LLO = Calibration(1, (0.4, 2.0), (0.15, 0.75))
SEPARATE = replace(BETA, spread_sd=None)
# Of an audit: scores may be wrong in any way, and differ between groups as labels show.
SIGNED = Calibration(2, (0.5, 0.5, 2.0), (0.3, 0.3, 0.75), signed=True)
# Draws of calibration parameters: Gaussian approximations, and importance sampling from them.

# The range of spreads, in units of the prior's scale.
_SMALLEST_SPREAD, _LARGEST = 1e-3, 10.0
_DEGREES = 5  # of the Student t that nodes are moved by: heavy tails keep their weights bounded
# Variance added to that of the logarithms of spreads when nodes are moved. The evidence of 64 nodes
# may lie on a few of them, or on one: the new nodes then still spread beyond them, and the
# covariance has a Cholesky factor.
_WIDENING = 0.1
_MOST_STEPS, _LONGEST_STEP, _TOLERANCE = 30, 1.0, 1e-2  # of Fisher scoring


Fill: TypeAlias = Callable[[int, int, np.random.Generator], Floats]


def sobol(columns: int, rows: int, generator: np.random.Generator) -> Floats:
    """Return (rows, columns) numbers that fill (0, 1) evenly: a scrambled Sobol set."""
    from scipy.stats import qmc

    return np.asarray(qmc.Sobol(columns, rng=generator).random(rows))


def _kronecker(columns: int, rows: int, generator: np.random.Generator) -> Floats:
    """Return (rows, columns) numbers that fill (0, 1) evenly: multiples of irrational numbers.

    Notes
    -----
    A Kronecker sequence (:func:`fairbench.core.arrays.even_points`), shifted at random
    (Cranley & Patterson 1976). Sobol's set fills many columns better, but ``scipy.stats`` takes
    longer to import than a million rows to count.
    """
    return np.clip(even_points(rows, columns, generator.random(columns)), 1e-12, 1 - 1e-12)


def _modes(proposal: _Proposal, labels: _ShownLabels) -> tuple[Floats, Floats]:
    """Return the posterior mode and precision at every node, by Fisher scoring.

    Returns
    -------
    mode : (J, P)
    precision : (J, P, P)
    """
    theta = np.zeros(proposal.precision.shape[:2])
    for _ in range(_MOST_STEPS):
        gradient, precision = _local(proposal, theta, labels)
        step = np.linalg.solve(precision, gradient[..., None])[..., 0]
        theta = theta + np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
        if np.abs(step).max() < _TOLERANCE:
            break
    return theta, _local(proposal, theta, labels)[1]


def _local(proposal: _Proposal, theta: Floats, labels: _ShownLabels) -> tuple[Floats, Floats]:
    """Return gradient and curvature of the log posterior at (J, P) parameters.

    The curvature is the Fisher information, plus those terms of the observed information that are
    positive: so it is always positive definite.
    """
    model, design, weight = proposal.model, labels.design, labels.weight
    coefficients = model.flat_coefficients(theta)
    # The derivative of a coefficient: itself for a slope exp(theta), 1 for others.
    scale = np.ones_like(coefficients) if model.signed else coefficients.copy()
    scale[:, model.size - 1 :: model.size] = 1
    probability = _sigmoid(coefficients @ design)
    variance = probability * (1 - probability)
    residual = labels.label - probability
    if weight is not None:
        variance, residual = variance * weight, residual * weight
    pull = np.matmul(proposal.precision, theta[..., None])[..., 0]
    push = scale * (residual @ design.T)
    information = np.matmul(design * variance[:, None, :], design.T)
    information *= scale[:, :, None] * scale[:, None, :]
    # exp(theta) is convex: where the labels push a slope down, that adds to the curvature.
    push_down = np.zeros_like(push) if model.signed else np.maximum(-push, 0)
    push_down[:, model.size - 1 :: model.size] = 0
    diagonal = np.arange(theta.shape[1])
    information[:, diagonal, diagonal] += push_down
    return push - pull, proposal.precision + information


def _smooth_tail(weights: Floats) -> tuple[Floats, float]:
    """Return importance weights (T,) with a smoothed tail, and the tail's Pareto shape k.

    The largest min(T / 5, 3 sqrt T) weights give way to quantiles of a generalised Pareto
    distribution fitted to them, none beyond the largest (Vehtari et al. 2024). Above k = 0.7 an
    estimate is not to be trusted. A tail of equal weights has k = -inf.
    """
    size = len(weights)
    tail = int(min(size / 5, 3 * np.sqrt(size)))
    order = np.argsort(weights)
    cutoff, largest = weights[order[-tail - 1]], order[-tail:]
    excesses = np.maximum(weights[largest] - cutoff, 1e-300)
    if tail < 5 or excesses[-1] <= 1e-12 * weights.max():
        return weights, float("-inf")
    shape, scale = _fit_pareto(excesses)
    # A weak prior around 1/2 steadies the fit of a short tail.
    shape = (tail * shape + 10 * 0.5) / (tail + 10)
    level = (np.arange(tail) + 0.5) / tail
    quantiles = scale * np.expm1(-shape * np.log1p(-level)) / shape
    result = weights.copy()
    result[largest] = np.minimum(cutoff + quantiles, weights.max())
    return result, float(shape)


def _fit_pareto(excesses: Floats) -> tuple[float, float]:
    """Fit a generalised Pareto to sorted excesses (Zhang, Stephens 2009): shape and scale."""
    n = len(excesses)
    candidates = 30 + int(np.sqrt(n))
    quartile = excesses[int(n / 4 + 0.5) - 1]
    steps = 1 - np.sqrt(candidates / (np.arange(1, candidates + 1) - 0.5))
    theta = 1 / excesses[-1] + steps / (3 * max(quartile, 1e-300))
    shapes = np.log1p(-theta[:, None] * excesses).mean(axis=1)
    profile = n * (np.log(-theta / shapes) - shapes - 1)
    posterior = np.exp(profile - profile.max())
    best = (theta * posterior).sum() / posterior.sum()
    shape = float(np.log1p(-best * excesses).mean())
    return shape, float(-shape / best)


_SPREAD_NODES = 64
_PROPOSAL_DEGREES = 7  # of the Student t that draws come from: tails heavier than the posterior's


@dataclass(frozen=True)
class _Proposal:
    """The proposal distribution shared by all posteriors of one model and number of groups.

    The prior of all groups' parameters is taken at J values of the spreads, the nodes, with the
    means integrated out.

    Attributes
    ----------
    model, n_groups : the calibration model, and the number G of groups.
    nodes : (J, D) the spreads sigma; a model whose groups share nothing has one node of NaN.
    log_weight : (J,) log of the spreads' prior density over that the nodes were drawn from.
    normal : (J, M, P) standard normals on an even set, with T = J M draws in all.
    stretch : (J, M, 1) factors that turn them into Student t.
    """

    model: Calibration
    n_groups: int
    nodes: Floats
    log_weight: Floats
    normal: Floats
    stretch: Floats

    @classmethod
    def of(
        cls,
        model: Calibration,
        n_groups: int,
        draws: int,
        generator: np.random.Generator,
        fill: Fill = sobol,
    ) -> _Proposal:
        """Draw the shared even set, and place nodes evenly on the half-normal priors of spreads.

        Raises
        ------
        UserError : a number of draws that is no power of two, or under 128.
        """
        check_minimum("draws", draws, 2 * _SPREAD_NODES)
        if draws & (draws - 1):
            raise UserError(f"draws is {draws}; it must be a power of two, such as 2048")
        nodes = np.full((1, model.size), np.nan)
        if model.spread_sd is not None:
            uniform = fill(model.size, _SPREAD_NODES, generator)
            nodes = np.maximum(ndtri((1 + uniform) / 2), _SMALLEST_SPREAD)
            nodes = nodes * np.array(model.spread_sd)
        size = n_groups * model.size
        uniform = fill(size + 1, draws, generator)
        uniform = np.clip(uniform, 1e-12, 1 - 1e-12).reshape(len(nodes), -1, size + 1)
        stretch = np.sqrt(_PROPOSAL_DEGREES / chdtri(_PROPOSAL_DEGREES, uniform[..., -1:]))
        normal = ndtri(uniform[..., :-1])
        return cls(model, n_groups, nodes, np.zeros(len(nodes)), normal, stretch)

    @cached_property
    def precision(self) -> Floats:
        """The prior precisions (J, P, P) of the P = G D parameters, group by group.

        They are the inverse of sigma^2 I + mean_sd^2 11' for each parameter, interleaved.
        """
        model, n_groups, nodes = self.model, self.n_groups, len(self.nodes)
        mean_variance = np.array(model.mean_sd) ** 2
        if model.spread_sd is None:
            return np.diag(np.tile(1 / mean_variance, n_groups))[None]
        within = 1 / self.nodes**2
        shared = within**2 * mean_variance / (1 + n_groups * mean_variance * within)
        precision = np.zeros((nodes, n_groups, model.size, n_groups, model.size))
        for k in range(model.size):
            precision[:, :, k, :, k] = -shared[:, k, None, None]
            precision[:, range(n_groups), k, range(n_groups), k] += within[:, k, None]
        return precision.reshape(nodes, n_groups * model.size, -1)

    @cached_property
    def log_determinant(self) -> Floats:
        """The logarithms (J,) of the determinants of the precisions."""
        return np.asarray(np.linalg.slogdet(self.precision)[1])

    def refine(self, weights: Floats, generator: np.random.Generator) -> _Proposal:
        """Return the proposal with as many nodes where the weights (T,) of its draws are.

        They are Student t in the logarithms of spreads.
        """
        model = self.model
        if model.spread_sd is None:
            return self
        evidence = weights.reshape(len(self.nodes), -1).sum(axis=1) / weights.sum()
        scale = np.array(model.spread_sd)
        logs = np.log(self.nodes / scale)
        centre = evidence @ logs
        covariance = (logs - centre).T @ (evidence[:, None] * (logs - centre))
        factor = np.linalg.cholesky(covariance + _WIDENING * np.eye(model.size))
        uniform = sobol(model.size + 1, len(logs), generator)
        stretch = np.sqrt(_DEGREES / chdtri(_DEGREES, uniform[:, -1:]))
        standard = ndtri(uniform[:, :-1]) * stretch
        logs = np.clip(centre + standard @ factor.T, np.log(_SMALLEST_SPREAD), np.log(_LARGEST))
        distance = (standard**2).sum(axis=1)
        log_prior = (logs - np.exp(2 * logs) / 2).sum(axis=1)
        log_weight = log_prior + (_DEGREES + model.size) / 2 * np.log1p(distance / _DEGREES)
        return replace(self, nodes=np.exp(logs) * scale, log_weight=log_weight)

    def spread(self, positions: NDArray[np.int64]) -> Floats:
        """Return the spreads (C, D) behind draws at `positions` of all T."""
        return np.asarray(self.nodes[positions // self.normal.shape[1]])


def _propose(proposal: _Proposal, labels: _ShownLabels) -> tuple[Floats, Floats]:
    """Return parameters (T, P) and their log weights (T,): posterior over proposal."""
    mode, precision = _modes(proposal, labels)
    factor = np.linalg.cholesky(precision)
    offset = np.matmul(proposal.normal * proposal.stretch, np.linalg.inv(factor))
    theta = mode[:, None, :] + offset
    pull = (np.matmul(theta, proposal.precision) * theta).sum(axis=-1)
    log_prior = (proposal.log_determinant[:, None] - pull) / 2
    size = theta.shape[-1]
    distance = ((proposal.normal * proposal.stretch) ** 2).sum(axis=-1)
    log_density = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=-1)[:, None]
    log_density = log_density - (_PROPOSAL_DEGREES + size) / 2 * np.log1p(
        distance / _PROPOSAL_DEGREES
    )
    log_density = log_density - proposal.log_weight[:, None]
    flat = theta.reshape(-1, size)
    coefficients = proposal.model.flat_coefficients(flat)
    return flat, labels.log_likelihood(coefficients) + (log_prior - log_density).ravel()


def _resample(weights: Floats, draws: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Return positions drawn in proportion to weights, systematically, in random order."""
    cumulative = np.cumsum(weights)
    levels = (np.arange(draws) + generator.random()) / draws * cumulative[-1]
    positions = np.minimum(np.searchsorted(cumulative, levels), len(weights) - 1)
    return generator.permutation(positions).astype(np.int64)


# Posterior draws of calibration parameters: importance draws, or a slice sampler's at need.


def _elliptical_slice(
    log_likelihood: Callable[[Floats], Floats],
    state: Floats,
    generator: np.random.Generator,
    *,
    warmup: int,
    keep: int,
    thin: int,
) -> Floats:
    """Draw from a posterior whose prior is independent standard normals.

    Parameters
    ----------
    log_likelihood : (C, Z) states -> (C,).
    state : (C, Z) where the chains start.
    warmup, keep, thin : steps before the first draw, draws of each chain, steps between them.

    Returns
    -------
    (keep, C, Z) draws.
    """

    def moved(start: Floats, level: Floats) -> tuple[Floats, Floats]:
        """Move every chain along its own ellipse, shrinking the bracket of those still open."""
        other = generator.standard_normal(start.shape)
        threshold = level - generator.standard_exponential(len(start))
        angle = generator.uniform(0, 2 * np.pi, len(start))
        lower, upper = angle - 2 * np.pi, angle.copy()
        state, level = start.copy(), level.copy()
        open_ = np.arange(len(start))
        while open_.size:
            turn = angle[open_, None]
            proposed = start[open_] * np.cos(turn) + other[open_] * np.sin(turn)
            value = log_likelihood(proposed)
            fits = value > threshold[open_]
            state[open_[fits]], level[open_[fits]] = proposed[fits], value[fits]
            open_ = open_[~fits]
            behind = angle[open_] < 0
            lower[open_[behind]] = angle[open_[behind]]
            upper[open_[~behind]] = angle[open_[~behind]]
            angle[open_] = generator.uniform(lower[open_], upper[open_])
        return state, level

    level = log_likelihood(state)
    kept = []
    for step in range(1 - warmup, 1 + keep * thin):
        state, level = moved(state, level)
        if step > 0 and step % thin == 0:
            kept.append(state)
    return np.stack(kept)


_ROUNDS = 3
_LARGEST_SHAPE, _SMALLEST_SHARE = 0.7, 0.2
_CHAINS, _WARMUP, _THIN = 128, 200, 20


def sample(
    proposal: _Proposal,
    labels: _ShownLabels,
    generator: np.random.Generator,
    *,
    chains: bool = True,
) -> Floats:
    """Draw the parameters (T, G, D) given the labels that are shown, equally weighted.

    Importance draws count where the Pareto shape is at most 0.7 and the effective size a fifth of
    the draws; else the nodes of the spreads are moved, twice, before chains take over.

    Parameters
    ----------
    chains : without them the first importance draws count, whatever they are worth.
    """
    model, n_groups = proposal.model, proposal.n_groups
    for _ in range(_ROUNDS):
        theta, log_weights = _propose(proposal, labels)
        weights, shape = _smooth_tail(np.exp(log_weights - log_weights.max()))
        size = weights.sum() ** 2 / (weights**2).sum()  # effective number of draws
        kept = _resample(weights, len(theta), generator)
        trusted = shape <= _LARGEST_SHAPE and size >= _SMALLEST_SHARE * len(theta)
        if trusted or not chains:
            return theta[kept].reshape(len(kept), n_groups, -1)
        start, spread = theta[kept[:_CHAINS]], proposal.spread(kept[:_CHAINS])
        proposal = proposal.refine(weights, generator)
    # Chains on the prior's normals, which start from the last importance draws.
    draws = len(theta)

    def parameters(z: Floats) -> Floats:
        return model.from_normals(z, n_groups).reshape(*z.shape[:-1], -1)

    z = _elliptical_slice(
        lambda z: labels.log_likelihood(model.flat_coefficients(parameters(z))),
        model.to_normals(start.reshape(len(start), n_groups, model.size), spread, generator),
        generator,
        warmup=_WARMUP,
        keep=draws // len(start),
        thin=_THIN,
    )
    return parameters(z).reshape(draws, n_groups, -1)


# Whether scores are calibrated alike everywhere: labels that are foreseen, and those that come.
#
# Labels of one group are foreseen from the calibration that all other groups' labels show. What
# comes out is compared with what was foreseen, in the number of positives and in how they rise
# with the score: a posterior-predictive check (Gelman, Meng & Stern 1996) of labels that were
# left out of the posterior (Vehtari & Lampinen 2002). It finds scores that are wrong by much,
# such as inverted ones; that it finds nothing is no proof that there is nothing.


FEWEST_DRAWS = 2048
# What all groups have in common may be anything; what counts as alike differs by little between
# them (log slopes, intercept).
ALIKE = replace(BETA, mean_sd=(1.0, 1.0, 3.0), spread_sd=(0.05, 0.05, 0.25))
_OTHERS = 500  # labels of other groups, which show well enough how they are calibrated
_AT_ONCE = 1 << 14  # rows that are looked through for them
_GRID = 100  # scores are rounded to so many values
_ONE, _OTHER = 0, 1


def calibration_p_values(
    score: Floats, label: Codes, group: Codes, n_groups: int, generator: np.random.Generator
) -> Floats:
    """Return a p-value for every group: how often labels as strange as its own are predicted.

    Parameters
    ----------
    score, label, group : (L,) scores in [0, 1], labels 0 or 1, and groups 0 .. G - 1 of the
        labelled rows.
    n_groups : G, the number of groups.
    generator : draws.

    Returns
    -------
    (G,) p-values of each group by itself, of which the smallest of many is small by chance. NaN of
    groups without a label.
    """
    draws = max(FEWEST_DRAWS, 1 << int(np.ceil(np.log2(100 * n_groups))))
    proposal = _Proposal.of(ALIKE, 2, draws, generator, _kronecker)
    order = generator.permutation(len(score))
    values = np.full(n_groups, np.nan)
    cell = 2 * (group * (_GRID + 1) + np.round(score * _GRID).astype(np.intp)) + label
    counts = np.bincount(cell, minlength=2 * n_groups * (_GRID + 1)).reshape(n_groups, -1, 2)
    for g in np.flatnonzero(counts.any(axis=(1, 2))):
        other_rows = _first_of_others(order, group, int(g))
        # Draws of the calibration of a group that none of these labels is in.
        in_other = np.full(len(other_rows), _OTHER)
        design = ALIKE.design(score[other_rows], in_other, 2)
        shown = _ShownLabels(design, label[other_rows].astype(np.float64))
        theta = sample(proposal, shown, generator, chains=False)
        coefficients = ALIKE.coefficients(theta)[:, _ONE]
        values[g] = _p_value(counts[g], coefficients, generator)
    return values


def _first_of_others(order: Codes, group: Codes, group_code: int) -> Codes:
    """Return the first rows in an order that are in other groups, `_OTHERS` at most."""
    positions: list[Codes] = []
    for start in range(0, len(order), _AT_ONCE):
        some = order[start : start + _AT_ONCE]
        positions.append(some[group[some] != group_code])
        if sum(map(len, positions)) >= _OTHERS:
            break
    return np.concatenate([*positions, order[:0]])[:_OTHERS]


def _p_value(counts: Codes, coefficients: Floats, generator: np.random.Generator) -> float:
    """Return the p-value of a group's labels 0 and 1 at each rounded score, (S, 2)."""
    n_labels = counts.sum(axis=1)
    present = np.flatnonzero(n_labels)
    score, sizes = present / _GRID, n_labels[present]
    features = ALIKE.features(score)
    probability = _sigmoid(coefficients @ features)
    drawn = generator.binomial(sizes, probability) - probability.mean(axis=0) * sizes
    excess = counts[present, 1] - probability.mean(axis=0) * sizes
    # The positives, and how they rise with the score.
    directions = np.stack([np.ones_like(score), features[:-1].sum(axis=0)], axis=1)
    sums = np.vstack([excess, drawn]) @ directions
    inverse = np.linalg.pinv(np.cov(sums[1:].T))
    distance = np.einsum("ti,ij,tj->t", sums, inverse, sums)
    as_strange = distance[1:] >= distance[0] * (1 - 1e-9)
    return float((1 + as_strange.sum()) / (1 + len(as_strange)))


@dataclass(frozen=True)
class PartlyLabelled:
    """A pool of rows with scores, decisions and groups; labels where they are known.

    Attributes
    ----------
    score : (n,) probability of label 1 that the classifier gave, in [0, 1].
    prediction : (n,) its decision, 0 or 1.
    group : (n,) codes into `groups`, whose first entry is the reference of every difference.
    label : (n,) 0 or 1, NaN where it is unknown.
    """

    score: Floats
    prediction: Codes
    group: Codes
    label: Floats
    groups: tuple[Hashable, ...]

    @property
    def n_groups(self) -> int:
        """Return the number of groups."""
        return len(self.groups)

    @property
    def labelled(self) -> Codes:
        """Return the positions of the rows with a label."""
        return np.flatnonzero(~np.isnan(self.label))

    def counts(self, rows: Codes | None = None) -> Codes:
        """Return the (G, 4) counts TN, FP, FN, TP of labelled rows, or of those among `rows`."""
        rows = self.labelled if rows is None else rows
        return binary_confusion(
            self.label[rows], self.prediction[rows], self.group[rows], n_groups=self.n_groups
        )

    def sizes(self) -> Codes:
        """Return the (G, 2) numbers of rows per group and prediction, labelled or not."""
        cell = self.group * 2 + self.prediction
        return np.bincount(cell, minlength=2 * self.n_groups).reshape(-1, 2).astype(np.int64)

    def showing(self, rows: Codes) -> PartlyLabelled:
        """Return the pool with the labels of `rows` alone; all other rows have none."""
        label = np.full(len(self.label), np.nan)
        label[rows] = self.label[rows]
        return PartlyLabelled(self.score, self.prediction, self.group, label, self.groups)


# Expected confusion counts of unlabelled rows, given how their scores are calibrated.


def _gauss_rule(values: Floats, nodes: int) -> tuple[Floats, Floats]:
    """Return points and weights that integrate polynomials up to degree 2 `nodes` - 1 exactly.

    By the Lanczos process on diag(values), fully reorthogonalised (Golub, Meurant 2010, ch. 4).
    Values with few distinct ones need fewer points; no values need none.

    Parameters
    ----------
    values : (n,) numbers; a sum over f(values) becomes one over weights * f(points).

    Returns
    -------
    points, weights : (k,) with k <= nodes; the weights sum to n.
    """
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= nodes:
        return distinct, counts.astype(np.float64)
    diagonal, off_diagonal = _lanczos(distinct, np.sqrt(counts / len(values)), nodes)
    points, vectors = eigh_tridiagonal(diagonal, off_diagonal)
    return points, len(values) * vectors[0] ** 2


def _lanczos(values: Floats, start: Floats, nodes: int) -> tuple[Floats, Floats]:
    """Return the diagonals of the Jacobi matrix of diag(values) and a unit vector."""
    basis = np.zeros((nodes, len(values)))
    basis[0] = start
    diagonal, off_diagonal = np.zeros(nodes), np.zeros(nodes - 1)
    for k in range(nodes):
        following = values * basis[k]
        diagonal[k] = following @ basis[k]
        if k == nodes - 1:
            break
        for _ in range(2):
            following -= basis[: k + 1].T @ (basis[: k + 1] @ following)
        off_diagonal[k] = np.linalg.norm(following)
        if off_diagonal[k] < 1e-10 * np.ptp(values):
            return diagonal[: k + 1], off_diagonal[:k]
        basis[k + 1] = following / off_diagonal[k]
    return diagonal, off_diagonal


def _points(score: Floats, kind: Codes, kinds: Codes, nodes: int) -> tuple[Floats, Floats, Codes]:
    """Return scores that stand for the rows (n,) of each kind, with their weights and kinds."""
    log_odds = logit(np.clip(score, CLIP, 1 - CLIP))
    rules = [_gauss_rule(log_odds[kind == one], nodes) for one in kinds]
    points, weights = (np.concatenate(part) for part in zip(*rules, strict=True))
    return _sigmoid(points), weights, np.repeat(kinds, [len(p) for p, _ in rules])


NODES = 12
# Cells of fewer rows get binomial numbers of positives, larger ones normal.
_SMALL = 100


def _draw_positives(
    mean: Floats, variance: Floats, size: Floats, generator: np.random.Generator
) -> Floats:
    """Draw how many of a cell's unlabelled rows have label 1.

    The number is a sum of Bernoulli variables of unequal probabilities; it is drawn as a normal
    of its mean and variance, or, in small cells, as a binomial of its mean and the nearest
    variance that one can have.

    Parameters
    ----------
    mean, variance : (T, C) sums of p and of p (1 - p).
    size : (C,) rows without a label.
    """
    noise = generator.standard_normal(mean.shape)
    positives = mean + np.sqrt(variance) * noise
    for cell in np.flatnonzero((size > 0) & (size < _SMALL)):
        expected, spread = mean[:, cell], variance[:, cell]
        share = np.clip(1 - spread / np.maximum(expected, 1e-300), 1e-12, 1)
        trials = np.clip(np.rint(expected / share), np.ceil(expected), size[cell])
        chance = np.clip(expected / np.maximum(trials, 1), 0, 1)
        positives[:, cell] = generator.binomial(trials.astype(np.int64), chance)
    return np.clip(positives, 0, size)


def plug_in(table: PartlyLabelled) -> Floats:
    """Return expected counts (G, 4) TN, FP, FN, TP; known labels are ignored.

    Scores that are uncalibrated, let alone of the other class, are not noticed.
    """
    mean, _, size = _moments(table)
    return _counts(mean, size)


def plug_in_draws(
    table: PartlyLabelled, generator: np.random.Generator, *, draws: int = 2048
) -> Floats:
    """Draw counts (T, G, 4) as labels scatter around scores that are true probabilities."""
    mean, variance, size = _moments(table)
    shape = (draws, mean.size)
    means, variances = (np.broadcast_to(moment.ravel(), shape) for moment in (mean, variance))
    positives = _draw_positives(means, variances, size.ravel(), generator)
    return _counts(positives.reshape(draws, *mean.shape), size)


def _moments(table: PartlyLabelled) -> tuple[Floats, Floats, Floats]:
    """Return sums of p and p (1 - p), and rows, per group and prediction (G, 2)."""
    cell = table.group * 2 + table.prediction
    spread = table.score * (1 - table.score)
    mean, variance = np.zeros((2, 2 * table.n_groups))
    np.add.at(mean, cell, table.score)
    np.add.at(variance, cell, spread)
    return mean.reshape(-1, 2), variance.reshape(-1, 2), table.sizes().astype(np.float64)


def _counts(positives: NDArray[Any], size: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([size - positives, positives], axis=-1)


# The posterior of confusion counts under hierarchical calibration of scores (Ji et al. 2020).


@dataclass(frozen=True)
class CalibrationPosterior:
    """Equally weighted draws of the pool's counts.

    Attributes
    ----------
    family : what posteriors of this pool share.
    rows : the positions of the rows whose labels are shown.
    counts : (T, G, 4) TN, FP, FN, TP of the whole pool; with pool noise what they may turn out to
        be, without it what is expected of each calibration map.
    theta : the calibration parameters (T, G, D) behind them.
    """

    family: PosteriorFamily
    rows: Rows
    counts: Floats
    theta: Floats

    @classmethod
    def of(
        cls, table: PartlyLabelled, generator: np.random.Generator, **options: Any
    ) -> CalibrationPosterior:
        """Return the posterior of the pool's counts given the labels there are, none included.

        Parameters
        ----------
        options : those of :meth:`PosteriorFamily.of`.
        """
        return PosteriorFamily.of(table, generator, **options).posterior(table.labelled, generator)


@dataclass(frozen=True)
class PosteriorFamily:
    """What the posteriors of one table share; only labels of rows that are shown are read.

    Attributes
    ----------
    table : the rows, labelled or not, by (group, prediction): C = 2 G cells.
    design : (G D, K) design matrix of the points that stand for them.
    weights : (K, C) rows each point stands for, in the column of its cell.
    sizes : (C,) rows of each cell.
    proposal : the proposal distribution of the calibration parameters.
    pool_noise : whether unlabelled labels scatter around their calibrated probability.
    label_nodes : points that stand for the labelled rows of one cell and label; None keeps all.
    """

    table: PartlyLabelled
    design: Floats
    weights: Floats
    sizes: Floats
    proposal: _Proposal
    pool_noise: bool
    label_nodes: int | None = None

    @classmethod
    def of(
        cls,
        table: PartlyLabelled,
        generator: np.random.Generator,
        *,
        model: Calibration = BETA,
        draws: int = 2048,
        pool_noise: bool = True,
        label_nodes: int | None = None,
    ) -> PosteriorFamily:
        """Compute what no label changes.

        The rows of every cell are replaced by at most :data:`NODES` points of its log odds.

        Parameters
        ----------
        draws : a power of two.
        label_nodes : as in :meth:`shown`: from a few hundred labels on it takes a fraction of the
            time.
        """
        cells = np.arange(2 * table.n_groups)
        of_rows = table.group * 2 + table.prediction
        points, weights, cell = _points(table.score, of_rows, cells, NODES)
        design = model.design(points, cell // 2, table.n_groups)
        of_cells = weights[:, None] * (cell[:, None] == cells)
        sizes = table.sizes().ravel().astype(np.float64)
        proposal = _Proposal.of(model, table.n_groups, draws, generator)
        return cls(table, design, of_cells, sizes, proposal, pool_noise, label_nodes)

    def posterior(self, rows: Rows, generator: np.random.Generator) -> CalibrationPosterior:
        """Return the posterior given the labels of `rows` alone."""
        shown = self.shown(rows)
        theta = sample(self.proposal, shown[0], generator)
        coefficients = self.proposal.model.coefficients(theta).reshape(len(theta), -1)
        counts = self.counts(rows, shown, coefficients, generator)
        return CalibrationPosterior(self, rows, counts, theta)

    def shown(self, rows: Rows) -> _Shown:
        """Return what the labels of some rows say, and their cells of group and prediction (L,).

        `label_nodes` points stand for the rows of one cell and label, if it has more; None keeps
        every row. With as many as a pool has, the likelihood of maps whose slopes are under 3 is
        off by less than 0.01.
        """
        table, model = self.table, self.proposal.model
        score, label = table.score[rows], table.label[rows]
        cell = table.group[rows] * 2 + table.prediction[rows]
        if self.label_nodes is None or not len(rows):
            return _ShownLabels(model.design(score, cell // 2, table.n_groups), label), cell
        kind = cell * 2 + label.astype(np.int64)
        points, weights, kind = _points(score, kind, np.unique(kind), self.label_nodes)
        design = model.design(points, kind // 4, table.n_groups)
        return _ShownLabels(design, (kind % 2).astype(np.float64), weights), kind // 2

    def unlabelled(
        self, coefficients: Floats, labels: _ShownLabels, cell: Codes
    ) -> tuple[Floats, Floats, Floats]:
        """Return mean and variance of the number of positives among rows without a label.

        All rows' sums, less those of the labelled ones.

        Parameters
        ----------
        coefficients : (T, G D) calibration maps.
        labels : the labelled rows, or points that stand for them.
        cell : (L,) their cells.

        Returns
        -------
        mean, variance : (T, C) sums of p and of p (1 - p).
        size : (C,) rows summed over.
        """
        labelled = (cell[:, None] == np.arange(len(self.sizes))).astype(np.float64)
        if labels.weight is not None:
            labelled *= labels.weight[:, None]
        size = np.rint(self.sizes - labelled.sum(axis=0))
        design = np.hstack([self.design, labels.design])
        weights = np.vstack([self.weights, -labelled])
        mean, variance = np.empty((2, len(coefficients), len(size)))
        for block in _blocks(len(coefficients), len(weights)):
            p = _sigmoid(coefficients[block] @ design)
            mean[block] = p @ weights
            p -= p * p
            variance[block] = p @ weights
        return np.clip(mean, 0, size), np.maximum(variance, 0), size

    def counts(
        self, rows: Rows, shown: _Shown, coefficients: Floats, generator: np.random.Generator
    ) -> Floats:
        """Return the pool's counts (T, G, 4) if calibration has these coefficients (T, G D).

        Parameters
        ----------
        rows : the positions of the rows whose labels are known, and are counted as they are.
        shown : what these labels say.
        coefficients : (T, G D) slopes and intercepts.
        generator : draws.
        """
        positives, variance, size = self.unlabelled(coefficients, *shown)
        if self.pool_noise:
            positives = _draw_positives(positives, variance, size, generator)
        by_prediction = (len(positives), self.table.n_groups, 2)
        of_unlabelled = _counts(
            positives.reshape(by_prediction), np.broadcast_to(size.reshape(-1, 2), by_prediction)
        )
        return of_unlabelled + self.table.counts(rows)


# Labels of all rows from few, and of the population that the rows come from.

# The cost of calibration grows with labels x groups; with more labels, those of the same group and
# decision say nearly as much.
MOST_CALIBRATED, MOST_BY_GROUP = 1000, 10_000
_LARGE_POOL = 50_000


def calibrated_draws(table: PartlyLabelled, generator: np.random.Generator) -> Floats | None:
    """Return draws (T, G, 4) of the counts of all rows, if groups' scores are calibrated alike.

    None where there are so many labels that the draws would say little more than these.
    """
    labels = len(table.labelled)
    if labels > MOST_CALIBRATED or labels * table.n_groups > MOST_BY_GROUP:
        return None
    if len(table.score) > _LARGE_POOL:
        # Of a pool's scores a quadrature is made; it is a hundred times faster over fewer.
        table = replace(table, score=np.round(table.score, 4))
    return CalibrationPosterior.of(table, generator, model=SIGNED).counts


def union(cells: pd.Series, labels: pd.Series) -> Floats:
    """Return whether each of G cells belongs to each of A groups, (A, G) of 0 and 1."""
    members = np.zeros((len(labels.cat.categories), len(cells.cat.categories)))
    members[labels.cat.codes, cells.cat.codes] = 1
    return members


def population_draws(counts: Floats, union: Floats, generator: np.random.Generator) -> Floats:
    """Draw cell probabilities (T, A, 4) of the population that rows with these counts come from.

    Parameters
    ----------
    counts : (T, G, 4) draws of counts, each followed by one draw of its own posterior.
    """
    return posterior_draws(np.einsum("ag,tgc->tac", union, counts), 1, generator)[0]
