"""Bayesian posteriors, in closed form or by draws, of what labels count.

Shares of many groups (:class:`Beta`); confusion counts of one
classifier by group, and of two on the same rows (:func:`posterior_draws`, :func:`paired_draws`);
confusion matrices and costs of several classes (:func:`confusion_posterior`); reliability diagrams,
and ranks (:func:`reliability_diagram`, :func:`ranks`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from fairbench.core.arrays import Codes, Floats
from fairbench.data.columns import MulticlassScores
from fairbench.metrics.probability import bins_of_width
from fairbench.metrics.registry import confusion


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
        return special.betainc(self.successes, self.failures, inside)

    def quantile(self, probability: ArrayLike) -> Floats:
        """Return the shares under which theta lies with a probability."""
        return special.betaincinv(self.successes, self.failures, probability)

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
        return np.maximum(distance, np.abs(self.mean - point))

    def draws(self, draws: int, generator: np.random.Generator) -> Floats:
        """Draw (T, ...) shares."""
        shape = np.broadcast_shapes(self.successes.shape, self.failures.shape)
        return generator.beta(self.successes, self.failures, size=(draws, *shape))


def uniform(shape: int | tuple[int, ...], strength: float = 2.0) -> Beta:
    """Return Beta(strength / 2, strength / 2): strength 2 is uniform, 1 is Jeffreys' prior."""
    return centred(np.full(shape, 0.5), strength)


def centred(mean: ArrayLike, strength: ArrayLike = 2.0) -> Beta:
    """Return priors with these means, each as informative as `strength` labelled rows.

    A mean of 0 or 1 is moved by a thousandth, so that one row to the contrary can be believed.
    """
    inside: Floats = np.clip(np.asarray(mean, np.float64), 1e-3, 1 - 1e-3)
    total = np.asarray(strength, np.float64)
    return Beta(inside * total, (1 - inside) * total)


# Posteriors of confusion counts: of one classifier, group by group, or of two on the same rows.

# How intervals of rates by group are made: so that they hold in repeated samples, or as quantiles
# of the papers' posterior.
INTERVALS = FREQUENTIST, DIRICHLET = "frequentist", "dirichlet"


def posterior_draws(
    counts: NDArray[Any], draws: int, generator: np.random.Generator, *, alpha: float = 1.0
) -> NDArray[np.float64]:
    """Draw cell probabilities from Dir(alpha + counts), independently per group.

    Parameters
    ----------
    counts : (..., G, 4) counts; need not be whole numbers (effective counts).
    draws : number of draws T.
    alpha : prior pseudo-count of every cell (1 uniform, 1/2 Jeffreys).

    Returns
    -------
    (T, ..., G, 4) probabilities that sum to 1 over the last axis: normalised gamma variates. It
    is a view of an array with the draws last, so that sums over cells and groups run over
    contiguous memory.
    """
    shape = np.moveaxis(np.asarray(counts, float) + alpha, -1, 0)[..., None]
    gammas = generator.standard_gamma(shape, size=(*shape.shape[:-1], draws))
    gammas /= gammas.sum(axis=0)
    return np.moveaxis(gammas, (-1, 0), (0, -1))


def central_interval(
    samples: NDArray[np.float64], level: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the equal-tailed interval over axis 0, order statistics without interpolation.

    A draw that is NaN sorts last and so widens nothing below; columns with any NaN are NaN.
    """
    draws = samples.shape[0]
    low = round((1 - level) / 2 * (draws - 1))
    ends = np.partition(np.moveaxis(samples, 0, -1), (low, draws - 1 - low), axis=-1)
    # NaN sorts last, so the last order statistic of a row tells whether it has any.
    invalid = np.isnan(samples).any(axis=0)
    lower, upper = ends[..., low].copy(), ends[..., draws - 1 - low].copy()
    lower[invalid] = upper[invalid] = np.nan
    return lower, upper


def table_draws(
    counts: NDArray[Any],
    draws: int,
    generator: np.random.Generator,
    *,
    alpha: float = 1.0,
    predictive: bool = False,
) -> Floats:
    """Draw confusion tables whose groups keep their observed sizes.

    Parameters
    ----------
    counts : (..., G, C) counts of C cells; need not be whole numbers (effective counts).
    draws : number of draws T.
    alpha : prior pseudo-count of every cell; 0 is the limit 0+, where an empty group is NaN.
    predictive : draw multinomial counts after the Dirichlet, as the published code does: the
        spread of another sample of this size rather than of the probabilities.

    Returns
    -------
    (T, ..., G, C) group size times Dir(alpha + counts), or counts. Because sizes are kept, a
    metric of everyone together weighs the groups by their observed shares.

    Notes
    -----
    Barrainkua et al., AISTATS 2024, section 3.
    """
    counts = np.asarray(counts, float)
    size = counts.sum(axis=-1)
    with np.errstate(invalid="ignore"):
        tables = posterior_draws(counts, draws, generator, alpha=alpha)
    if predictive:
        return _multinomial(tables, size, generator)
    tables *= size[..., None]
    return tables


def _multinomial(shares: Floats, size: Floats, generator: np.random.Generator) -> Floats:
    """Draw counts of `size` rows, non-integer sizes rounded up or down at random."""
    shares = np.where(size[..., None] > 0, shares, 1 / shares.shape[-1])
    rows = np.floor(size + generator.random(shares.shape[:-1])).astype(np.int64)
    return generator.multinomial(rows, shares).astype(np.float64)


def margins(joint: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return both algorithms' confusion tables, (..., 8) -> two (..., 4).

    Parameters
    ----------
    joint : counts or shares by label, prediction of A and prediction of B, as
        :func:`fairbench.inference.gaps.cells_of` counts them.
    """
    cube = joint.reshape(*joint.shape[:-1], 4, 2)
    # Sums of slices keep the memory order of the draws; a reduction over an axis would not.
    first = cube[..., 0] + cube[..., 1]
    cube = joint.reshape(*joint.shape[:-1], 2, 2, 2)
    second = (cube[..., 0, :] + cube[..., 1, :]).reshape(*joint.shape[:-1], 4)
    return first, second


def paired_draws(
    joint: NDArray[Any],
    draws: int,
    generator: np.random.Generator,
    *,
    alpha: float = 1.0,
    predictive: bool = False,
) -> tuple[Floats, Floats]:
    """Draw both algorithms' tables (T, ..., G, 4) from the posterior of their joint table.

    The prior pseudo-count is shared out over the cells that a margin sums, so that each algorithm
    alone has exactly the posterior Dir(alpha + its counts).
    """
    tables = table_draws(joint, draws, generator, alpha=alpha / 2, predictive=predictive)
    return margins(tables)


def independent_draws(
    first: NDArray[Any],
    second: NDArray[Any],
    draws: int,
    generator: np.random.Generator,
    *,
    alpha: float = 1.0,
    predictive: bool = False,
) -> tuple[Floats, Floats]:
    """Draw both algorithms' tables from two independent posteriors, as the paper does."""
    draw = partial(table_draws, draws=draws, generator=generator, alpha=alpha)
    return draw(first, predictive=predictive), draw(second, predictive=predictive)


# Posteriors of confusion matrices of several classes.


def confusion_posterior(scores: MulticlassScores, prior: Floats) -> Floats:
    """Return the Dirichlet parameters (C, C) of P(true class | predicted class).

    There is a row for each predicted class, which is known of all people, so that they can be
    sampled by it; those with a label are counted.

    Parameters
    ----------
    prior : (C, C) pseudo-counts above 0, in rows of the predicted class.

    Notes
    -----
    Ji, Logan, Smyth, Steyvers, AAAI 2021, section 3. Counts are of the true class; the paper's
    code counts the predicted one in its place.
    """
    rows, n = scores.labelled, len(scores.classes)
    target, prediction = scores.target[rows], scores.prediction[rows]
    counts = confusion(target, prediction, np.zeros(len(rows)), n_groups=1, n_classes=n)[0]
    return np.asarray(prior + counts.T)


def uninformative_prior(n_classes: int, *, strength: float | None = None) -> Floats:
    """Return equal pseudo-counts that sum to `strength` in each row; by default each is 1."""
    return np.full((n_classes, n_classes), 1.0 if strength is None else strength / n_classes)


def prior_from_scores(scores: MulticlassScores, *, strength: float = 2.0) -> Floats:
    """Return pseudo-counts (C, C) for which scores are taken to be true probabilities.

    Parameters
    ----------
    strength : how many labelled rows the prior of a row is worth; a hundredth of it is shared
        equally by all classes, so that none is impossible.
    """
    n = len(scores.classes)
    shares = np.zeros((n, n))
    np.add.at(shares, scores.prediction, scores.distribution())
    total = shares.sum(axis=1, keepdims=True)
    shares = np.where(total > 0, shares / np.where(total > 0, total, 1), 1 / n)
    return strength * (0.99 * shares + 0.01 / n)


def expected_cost(posterior: Floats, costs: Floats) -> tuple[Floats, Floats]:
    """Return the posterior mean and variance of the expected cost of predicting each class.

    Parameters
    ----------
    posterior : (C, C) its parameters, as :func:`confusion_posterior` returns them.
    costs : (C, C) costs of true class (row) by predicted class (column).

    Returns
    -------
    (C,) means and (C,) variances of sum_j costs[j, k] P(true j | predicted k), a linear function
    of a Dirichlet.

    Notes
    -----
    Ji, Logan, Smyth, Steyvers, AAAI 2021, section 3.
    """
    strength = posterior.sum(axis=1)
    price, shares = costs.T, posterior / strength[:, None]
    mean = (shares * price).sum(axis=1)
    spread = (shares * (price - mean[:, None]) ** 2).sum(axis=1)
    return mean, spread / (strength + 1)


def cost_draws(
    posterior: Floats, costs: Floats, draws: int, generator: np.random.Generator
) -> Floats:
    """Draw (T, C) expected costs of predicting each class; parameters as in `expected_cost`.

    True classes of equal cost merge, as a Dirichlet lets them.
    """
    drawn = []
    for alpha, price in zip(posterior, costs.T, strict=True):
        prices, index = np.unique(price, return_inverse=True)
        merged = np.bincount(index, weights=alpha)
        gammas = generator.standard_gamma(merged, size=(draws, len(merged)))
        drawn.append(gammas @ prices / gammas.sum(axis=1))
    return np.stack(drawn, axis=1)


# Bayesian reliability diagrams, the posterior of the calibration error, and accuracy by group.


@dataclass(frozen=True, eq=False)
class ReliabilityDiagram:
    """The posterior of the accuracy in bins of the score, in G groups.

    Attributes
    ----------
    weight : (G, B) share of the group's rows in the bin, labelled or not; 0 in an empty group.
    score : (G, B) mean score of those rows, the middle of an empty bin.
    labels : (G, B) number of labels.
    accuracy : (G, B) posterior of the share of right predictions.
    """

    weight: Floats
    score: Floats
    labels: Codes
    accuracy: Beta

    def expected_calibration_error(self) -> Floats:
        """Return the posterior mean of every group's ECE, (G,), in closed form; NaN if empty.

        The sum of w_b E|theta_b - s_b|. The error of the posterior mean, |E theta_b - s_b|, is
        too small.
        """
        return self._or_undefined((self.weight * self.accuracy.absolute_error(self.score)).sum(-1))

    def calibration_error_draws(self, draws: int, generator: np.random.Generator) -> Floats:
        """Draw (T, G) expected calibration errors."""
        error = np.zeros((draws, len(self.weight)))
        # Bin by bin, as draws of a thousand classes' bins are not held in memory all at once.
        for b, (weight, score) in enumerate(zip(self.weight.T, self.score.T, strict=True)):
            accuracy = self.accuracy.take((..., b)).draws(draws, generator)
            error += weight * np.abs(accuracy - score)
        return self._or_undefined(error)

    def _or_undefined(self, error: Floats) -> Floats:
        """Return errors (..., G), NaN of groups without rows."""
        return np.where(self.weight.sum(axis=-1) > 0, error, np.nan)


def reliability_diagram(
    score: Floats,
    correct: Floats,
    group: Codes | None = None,
    *,
    n_groups: int = 1,
    bins: int = 10,
    strength: float = 2.0,
    midpoints: bool = False,
) -> ReliabilityDiagram:
    """Return the diagram of all rows, or one for every group.

    Parameters
    ----------
    score : (n,) probability that the prediction is right; of unlabelled rows too.
    correct : (n,) 1 where it is right, 0 where it is wrong, NaN where there is no label.
    group : (n,) codes 0 .. G - 1, such as the predicted class for the classwise ECE.
    strength : how many labelled rows the prior of a bin is worth, whose mean is on the diagonal.
    midpoints : the prior's mean is the middle of the bin, as in the paper's code, rather than
        its rows' mean score.

    Notes
    -----
    Ji, Logan, Smyth, Steyvers, AAAI 2021, section 3, equation 2. Sizes and mean scores of the
    bins come from all rows, as a pool's are known before any label is.
    """
    cell = bins_of_width(score, bins) + bins * (0 if group is None else group)
    shape, labelled = (n_groups, bins), ~np.isnan(correct)

    size, labels, right, total = (
        np.bincount(cell, weights, n_groups * bins).astype(np.float64).reshape(shape)
        for weights in (None, labelled, np.where(labelled, correct, 0.0), score)
    )
    middle = np.broadcast_to((np.arange(bins) + 0.5) / bins, shape)
    mean_score = np.where(size > 0, total / np.maximum(size, 1), middle)
    prior = centred(middle if midpoints else mean_score, strength)
    weight = size / np.maximum(size.sum(axis=-1, keepdims=True), 1)
    posterior = prior.after(right, labels - right)
    return ReliabilityDiagram(weight, mean_score, labels.astype(np.int64), posterior)


def accuracy_posterior(correct: Floats, group: Codes, prior: Beta) -> Beta:
    """Return the posterior of the accuracy in every group.

    Parameters
    ----------
    correct : (n,) 1 where the prediction is right, 0 where wrong, NaN where there is no label.
    group : (n,) codes 0 .. G - 1.
    prior : (G,), such as ``uniform(G)`` or `score_prior`.

    Notes
    -----
    Ji, Logan, Smyth, Steyvers, AAAI 2021, section 3: a Beta-binomial for each group.
    """
    labelled = ~np.isnan(correct)
    right, wrong = (
        np.bincount(group[labelled], weights=array[labelled], minlength=len(prior.successes))
        for array in (correct, 1 - correct)
    )
    return prior.after(right, wrong)


def score_prior(score: Floats, group: Codes, n_groups: int, *, strength: float = 2.0) -> Beta:
    """Return the prior for which scores are true probabilities: a group's mean score.

    Parameters
    ----------
    score : (n,) probability that the prediction is right, for labelled and unlabelled rows.
    strength : how many labelled rows the prior is worth.

    Returns
    -------
    (G,) priors; a group without rows has the uninformative one.
    """
    rows = np.bincount(group, minlength=n_groups)
    total = np.bincount(group, weights=score, minlength=n_groups)
    return centred(np.where(rows > 0, total / np.maximum(rows, 1), 0.5), strength)


def ranks(draws: Floats, *, largest: bool = True) -> dict[str, Floats]:
    """Return the ranks of groups by joint draws of a quantity, such as the accuracy.

    Parameters
    ----------
    draws : (T, G) finite; equal values are ranked in the order of the groups.
    largest : rank 1 has the largest value (cost, calibration error) or the smallest (accuracy).

    Returns
    -------
    mean : (G,) expected ranks.
    lower, upper : (G,) their central 95 % intervals.
    first : (G,) probabilities of rank 1.
    """
    order = np.argsort(-draws if largest else draws, axis=1, kind="stable")
    rank = np.empty(order.shape, np.float64)
    np.put_along_axis(rank, order, np.arange(1.0, draws.shape[1] + 1)[None], axis=1)
    lower, upper = central_interval(rank)
    mean, first = rank.mean(axis=0), (rank == 1).mean(axis=0)
    return {"mean": mean, "lower": lower, "upper": upper, "first": first}
