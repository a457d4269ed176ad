"""Bayesian reliability diagrams, the posterior of the calibration error, and accuracy by group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.inference.beta import Beta, centred, uniform
from fairbench.inference.posterior import central_interval

Codes = NDArray[np.int64]


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


def bin_of(score: Floats, bins: int) -> Codes:
    """Return the bin of equal width on [0, 1] each score is in, its lower end excluded."""
    codes: Codes = np.clip(np.ceil(score * bins).astype(np.int64) - 1, 0, bins - 1)
    return codes


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
    cell = bin_of(score, bins) + bins * (0 if group is None else group)
    shape, labelled = (n_groups, bins), ~np.isnan(correct)

    def sums(rows: NDArray[np.bool_], weights: Floats | None = None) -> Floats:
        row_weights = None if weights is None else weights[rows]
        counted = np.bincount(cell[rows], weights=row_weights, minlength=n_groups * bins)
        return counted.reshape(shape).astype(np.float64)

    everyone = np.ones(len(score), bool)
    size, labels, right = sums(everyone), sums(labelled), sums(labelled, correct)
    middle = np.broadcast_to((np.arange(bins) + 0.5) / bins, shape)
    mean_score = np.where(size > 0, sums(everyone, score) / np.maximum(size, 1), middle)
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
    informed = centred(total / np.maximum(rows, 1), strength)
    bare, empty = uniform(n_groups, strength), rows == 0
    return Beta(
        np.where(empty, bare.successes, informed.successes),
        np.where(empty, bare.failures, informed.failures),
    )


@dataclass(frozen=True, eq=False)
class Ranks:
    """The ranks of G groups, rank 1 being the extreme one.

    Attributes
    ----------
    mean : (G,) expected ranks.
    lower, upper : (G,) their central intervals.
    first : (G,) probabilities of rank 1.
    among : (G,) probabilities of one of the first m ranks; they sum to m.
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
