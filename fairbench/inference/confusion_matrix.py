"""Posteriors of confusion matrices of several classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fairbench.core.arrays import Floats
from fairbench.data.class_scores import MulticlassScores
from fairbench.inference.beta import Beta
from fairbench.inference.posterior import posterior_draws
from fairbench.metrics.rates import confusion

# Which class a distribution is conditional on, and the axis of a (true, predicted) table it is.
GIVEN = {"target": 0, "prediction": 1}


@dataclass(frozen=True, eq=False)
class ConfusionPosterior:
    """Distributions over C classes, one for each of C classes.

    Attributes
    ----------
    alpha : (C, C) Dirichlet parameters: row k is P(true class | predicted class k), or, given
        the true class, P(predicted class | true class k).
    """

    alpha: Floats

    @property
    def mean(self) -> Floats:
        """The expected probabilities, (C, C)."""
        mean: Floats = self.alpha / self.alpha.sum(axis=1, keepdims=True)
        return mean

    @property
    def variance(self) -> Floats:
        """The variances of the probabilities, (C, C)."""
        strength = self.alpha.sum(axis=1, keepdims=True)
        variance: Floats = self.mean * (1 - self.mean) / (strength + 1)
        return variance

    @property
    def accuracy(self) -> Beta:
        """The posterior of the diagonal, (C,)."""
        right = np.diagonal(self.alpha).copy()
        return Beta(right, self.alpha.sum(axis=1) - right)

    def draws(self, draws: int, generator: np.random.Generator) -> Floats:
        """Draw (T, C, C) probabilities."""
        return posterior_draws(self.alpha, draws, generator, alpha=0.0)


def confusion_posterior(
    scores: MulticlassScores, prior: Floats, *, given: str = "prediction"
) -> ConfusionPosterior:
    """Return the posterior from the labelled rows.

    Parameters
    ----------
    prior : (C, C) pseudo-counts above 0, in rows of the class that is `given`.
    given : ``prediction`` (known of every row, so that it can be sampled by) or ``target``.

    Notes
    -----
    Ji, Logan, Smyth, Steyvers, AAAI 2021, section 3. Counts are of the true class; the paper's
    code counts the predicted one in its place.
    """
    rows, n = scores.labelled, len(scores.classes)
    target, prediction = scores.target[rows], scores.prediction[rows]
    counts = confusion(target, prediction, np.zeros(len(rows)), n_groups=1, n_classes=n)[0]
    return ConfusionPosterior(prior + _rows_of(counts.astype(np.float64), given))


def uninformative_prior(n_classes: int, *, strength: float | None = None) -> Floats:
    """Return equal pseudo-counts that sum to `strength` in each row; by default each is 1."""
    return np.full((n_classes, n_classes), 1.0 if strength is None else strength / n_classes)


def score_prior(
    scores: MulticlassScores, *, strength: float = 2.0, given: str = "prediction"
) -> Floats:
    """Return pseudo-counts (C, C) for which scores are taken to be true probabilities.

    Parameters
    ----------
    strength : how many labelled rows the prior of a row is worth; a hundredth of it is shared
        equally by all classes, so that none is impossible.
    """
    n = len(scores.classes)
    expected = np.zeros((n, n))
    np.add.at(expected, scores.prediction, scores.distribution())
    shares = _rows_of(expected.T, given)
    total = shares.sum(axis=1, keepdims=True)
    shares = np.where(total > 0, shares / np.where(total > 0, total, 1), 1 / n)
    return strength * (0.99 * shares + 0.01 / n)


def _rows_of(table: Floats, given: str) -> Floats:
    """Return a (true, predicted) table with the given class as its rows."""
    return np.moveaxis(table, GIVEN[given], 0)


def zero_one_costs(n_classes: int) -> Floats:
    """Return the (C, C) matrix in which every mistake costs 1."""
    return 1 - np.eye(n_classes)


def expected_cost(posterior: ConfusionPosterior, costs: Floats) -> tuple[Floats, Floats]:
    """Return the posterior mean and variance of the expected cost of predicting each class.

    Parameters
    ----------
    posterior : the posterior of P(true class | predicted class).
    costs : (C, C) costs of true class (row) by predicted class (column).

    Returns
    -------
    (C,) means and (C,) variances of sum_j costs[j, k] P(true j | predicted k), a linear function
    of a Dirichlet.

    Notes
    -----
    Ji, Logan, Smyth, Steyvers, AAAI 2021, section 3.
    """
    price, shares = costs.T, posterior.mean
    mean = (shares * price).sum(axis=1)
    spread = (shares * (price - mean[:, None]) ** 2).sum(axis=1)
    return mean, spread / (posterior.alpha.sum(axis=1) + 1)


def cost_draws(
    posterior: ConfusionPosterior, costs: Floats, draws: int, generator: np.random.Generator
) -> Floats:
    """Draw (T, C) expected costs of predicting each class; parameters as in `expected_cost`."""
    return np.stack(list(_columns(posterior, costs, draws, generator)), axis=1)


def _columns(
    posterior: ConfusionPosterior, costs: Floats, draws: int, generator: np.random.Generator
) -> Iterator[Floats]:
    """Yield each class's draws; true classes of equal cost merge, as a Dirichlet lets them."""
    for alpha, price in zip(posterior.alpha, costs.T, strict=True):
        prices, index = np.unique(price, return_inverse=True)
        merged = np.bincount(index, weights=alpha)
        gammas = generator.standard_gamma(merged, size=(draws, len(merged)))
        yield gammas @ prices / gammas.sum(axis=1)
