"""Posteriors of a multi-class confusion matrix: a Dirichlet for each predicted or true class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.inference.beta import Beta
from fairbench.inference.multiclass_scores import MulticlassScores
from fairbench.inference.posterior import posterior_draws
from fairbench.metrics.confusion import confusion

Floats = NDArray[np.float64]

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
    """Return the pseudo-counts that take the scores of all rows at their word, (C, C).

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
