"""Dirichlet posteriors of confusion matrices: counts of true classes, priors, costs."""

import numpy as np
import pytest

from fairbench.data.class_scores import UNKNOWN, MulticlassScores
from fairbench.inference.confusion_matrix import (
    ConfusionPosterior,
    confusion_posterior,
    cost_draws,
    expected_cost,
    score_prior,
    uninformative_prior,
    zero_one_costs,
)

SHARES = np.array([[0.7, 0.2, 0.1], [0.5, 0.2, 0.3], [0.1, 0.8, 0.1], [0.3, 0.4, 0.3]])
POOL = MulticlassScores(
    np.array([0, 2, 1, UNKNOWN]),
    SHARES.argmax(axis=1),
    SHARES.max(axis=1),
    ("a", "b", "c"),
    SHARES,
)


def test_true_classes_are_counted_in_the_row_of_what_is_given():
    by_prediction = confusion_posterior(POOL, uninformative_prior(3))
    np.testing.assert_array_equal(by_prediction.alpha, [[2, 1, 2], [1, 2, 1], [1, 1, 1]])
    by_target = confusion_posterior(POOL, uninformative_prior(3), given="target")
    np.testing.assert_array_equal(by_target.alpha, by_prediction.alpha.T)
    np.testing.assert_allclose(by_prediction.accuracy.mean, [2 / 5, 2 / 4, 1 / 3])


def test_score_prior_is_the_mean_distribution_of_the_rows_predicted_so():
    prior = score_prior(POOL, strength=10)
    np.testing.assert_allclose(prior.sum(axis=1), 10)
    np.testing.assert_allclose(prior[0], 10 * (0.99 * SHARES[:2].mean(axis=0) + 0.01 / 3))
    np.testing.assert_allclose(prior[2], 10 / 3)
    given_target = score_prior(POOL, given="target")
    joint = np.array([SHARES[:2].sum(axis=0), SHARES[2:].sum(axis=0), np.zeros(3)]).T
    expected = 0.99 * joint / joint.sum(axis=1, keepdims=True) + 0.01 / 3
    np.testing.assert_allclose(given_target, 2 * expected)


def test_moments_are_those_of_draws():
    posterior = ConfusionPosterior(np.array([[5.0, 1, 2], [0.5, 9, 0.5], [1, 1, 1]]))
    draws = posterior.draws(20000, np.random.default_rng(0))
    np.testing.assert_allclose(draws.mean(axis=0), posterior.mean, atol=0.01)
    np.testing.assert_allclose(draws.var(axis=0), posterior.variance, atol=0.003)


COSTS = np.array([[0.0, 1, 1, 7], [2, 0, 2, 2], [5, 1, 0, 1], [5, 1, 3, 0]])


@pytest.mark.parametrize("costs", [COSTS, zero_one_costs(4)])
def test_cost_against_whole_confusion_matrices(costs):
    """Cells of equal cost are merged in draws; the moments are those without merging."""
    generator = np.random.default_rng(1)
    posterior = ConfusionPosterior(generator.gamma(2.0, size=(4, 4)) + 0.1)
    mean, variance = expected_cost(posterior, costs)
    draws = cost_draws(posterior, costs, 40000, generator)
    plain = np.einsum("tkj,jk->tk", posterior.draws(40000, generator), costs)
    for sample in (draws, plain):
        error = 5 * np.sqrt(variance / len(sample))
        assert (np.abs(sample.mean(axis=0) - mean) < error).all()
        np.testing.assert_allclose(sample.var(axis=0), variance, rtol=0.06)
    np.testing.assert_allclose(
        np.quantile(draws, [0.1, 0.9], axis=0), np.quantile(plain, [0.1, 0.9], axis=0), atol=0.08
    )
    if costs is not COSTS:
        np.testing.assert_allclose(mean, 1 - posterior.accuracy.mean)
        np.testing.assert_allclose(variance, posterior.accuracy.variance)
