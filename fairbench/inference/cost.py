"""The expected cost of misclassification under a cost matrix, class by predicted class."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fairbench.inference.confusion_matrix import ConfusionPosterior

Floats = NDArray[np.float64]


def zero_one_costs(n_classes: int) -> Floats:
    """Return the (C, C) matrix in which every mistake costs 1."""
    return 1 - np.eye(n_classes)


def expected_cost(posterior: ConfusionPosterior, costs: Floats) -> tuple[Floats, Floats]:
    """Return the posterior mean and variance of the expected cost of predicting each class.

    Parameters
    ----------
    posterior : of P(true class | predicted class).
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
        prices, place = np.unique(price, return_inverse=True)
        merged = np.bincount(place, weights=alpha)
        gammas = generator.standard_gamma(merged, size=(draws, len(merged)))
        yield gammas @ prices / gammas.sum(axis=1)
