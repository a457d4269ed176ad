"""Posteriors of accuracy: counting, priors, and coverage over simulated populations."""

import numpy as np
import pytest

from fairbench.inference.beta import uniform
from fairbench.inference.reliability import accuracy_posterior, score_prior

CORRECT = np.array([1, 1, 0, np.nan, 0, 1])
GROUP = np.array([0, 0, 0, 0, 1, 1])


def test_labelled_rows_are_counted_by_group():
    posterior = accuracy_posterior(CORRECT, GROUP, uniform(3))
    np.testing.assert_array_equal(posterior.successes, [3, 2, 1])
    np.testing.assert_array_equal(posterior.failures, [2, 2, 1])


def test_score_prior_has_the_mean_score_of_all_rows():
    score = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.3])
    prior = score_prior(score, GROUP, 3, strength=10)
    np.testing.assert_allclose(prior.mean, [0.75, 0.4, 0.5])
    np.testing.assert_allclose(prior.strength, 10)


@pytest.mark.parametrize("strength", [2.0, 10.0])
def test_intervals_cover_accuracies_drawn_from_the_prior(strength):
    generator = np.random.default_rng(0)
    prior = score_prior(np.full(4000, 0.8), np.arange(4000), 4000, strength=strength)
    truth = prior.draws(1, generator)[0]
    group = np.repeat(np.arange(4000), 12)
    correct = (generator.random(len(group)) < truth[group]).astype(float)
    lower, upper = accuracy_posterior(correct, group, prior).interval(0.9)
    covered = ((lower <= truth) & (truth <= upper)).mean()
    assert covered == pytest.approx(0.9, abs=4 * np.sqrt(0.09 / 4000))
