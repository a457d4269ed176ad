"""Posteriors of accuracy by group: demographic groups, classes, or anything else rows fall into."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairbench.inference.beta import Beta, centred, uniform

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
    """Return the prior that takes scores at their word: the mean score of a group's rows.

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
