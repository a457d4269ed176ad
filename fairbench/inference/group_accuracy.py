"""Posteriors of accuracy by group, and which groups are probably the extreme ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.inference.beta import Beta, centred, uniform
from fairbench.inference.posterior import central_interval

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


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
    known = ~np.isnan(correct)
    right, wrong = (
        np.bincount(group[known], weights=each[known], minlength=len(prior.successes))
        for each in (correct, 1 - correct)
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
    informed = centred(total / np.maximum(rows, 1), strength)
    bare, empty = uniform(n_groups, strength), rows == 0
    return Beta(
        np.where(empty, bare.successes, informed.successes),
        np.where(empty, bare.failures, informed.failures),
    )


@dataclass(frozen=True, eq=False)
class Ranks:
    """The places of G groups in an order, rank 1 being the extreme one.

    Attributes
    ----------
    mean, lower, upper : (G,) expected rank, and its central interval.
    first : (G,) probability of rank 1.
    among : (G,) probability of one of the first m ranks; sums to m.
    """

    mean: Floats
    lower: Floats
    upper: Floats
    first: Floats
    among: Floats


def ranks(draws: Floats, *, m: int = 1, largest: bool = True, level: float = 0.95) -> Ranks:
    """Return the ranks of groups by joint draws of a quantity, such as the accuracy.

    Parameters
    ----------
    draws : (T, G) finite; equal values are ranked in the order of the groups.
    m : how many ranks `among` counts.
    largest : rank 1 has the largest value (cost, calibration error) or the smallest (accuracy).
    """
    order = np.argsort(-draws if largest else draws, axis=1, kind="stable")
    rank = np.empty(order.shape, np.float64)
    np.put_along_axis(rank, order, np.arange(1.0, draws.shape[1] + 1)[None], axis=1)
    lower, upper = central_interval(rank, level)
    shares = ((rank <= limit).mean(axis=0) for limit in (1, m))
    return Ranks(rank.mean(axis=0), lower, upper, *shares)


def equivalence(first: Floats, second: Floats, *, rope: float) -> Floats:
    """Return P(first < second), P(practically equivalent), P(first > second) by paired draws.

    Parameters
    ----------
    first, second : (T, ...) draws.
    rope : the largest difference that does not matter in practice.

    Returns
    -------
    (3, ...) probabilities that sum to 1 over the first axis.
    """
    difference = first - second
    less, greater = (difference < -rope).mean(axis=0), (difference > rope).mean(axis=0)
    return np.stack([less, 1 - less - greater, greater])
