"""Rates of groups from the shares of label 1 among both kinds of prediction."""

import numpy as np
import pytest
from scipy import stats

from fairbench.components.papers.active_assessment.assessment import (
    LowestRate,
    accuracy,
    false_positive_rate,
    true_positive_rate,
)
from fairbench.inference.posterior import Beta
from fairbench_label.active import BetaArms, choose

RATES = [accuracy, true_positive_rate, false_positive_rate]


@pytest.mark.parametrize("rate", RATES)
def test_rates_are_those_of_the_confusion_table(rate):
    tn, fp, fn, tp = 50, 7, 11, 32
    by_hand = {
        accuracy: (tn + tp) / 100,
        true_positive_rate: tp / (tp + fn),
        false_positive_rate: fp / (fp + tn),
    }
    share, negative, positive = (fp + tp) / 100, fn / (tn + fn), tp / (tp + fp)
    assert rate(*map(np.float64, (share, negative, positive))) == pytest.approx(by_hand[rate])


@pytest.mark.parametrize("rate", RATES)
def test_moments_are_those_of_posterior_draws(rate):
    posterior = Beta(np.array([30.0, 200, 15, 90]), np.array([270.0, 50, 85, 10]))
    reward = LowestRate(np.array([0.4, 0.3]), rate)
    arms = BetaArms.of(posterior, [9] * 4)
    mean, sd = reward.moments(arms)
    drawn = stats.beta.rvs(
        posterior.successes, posterior.failures, size=(40_000, 4), random_state=0
    )
    rates = reward.rates(drawn)
    best = mean.reshape(2, 2).max(axis=1)  # the arm that says less is at minus infinity
    assert np.isinf(mean).sum() == 2
    np.testing.assert_allclose(-best, rates.mean(axis=0), atol=0.004)
    np.testing.assert_allclose(sd[0, ::2], rates.std(axis=0), rtol=0.05)


def test_the_arm_that_says_more_is_labelled_and_the_other_when_it_is_used_up():
    posterior = Beta(np.array([1.0, 500, 1, 500]), np.array([1.0, 500, 1, 500]))
    reward = LowestRate(np.array([0.5, 0.5]), true_positive_rate)
    sizes = np.array([[9, 9, 9, 9], [0, 9, 0, 9]])
    arms = BetaArms.of(posterior, sizes, replications=2)
    chosen = np.array(
        [choose("thompson", arms, reward, np.random.default_rng(seed))[:, 0] for seed in range(30)]
    )
    assert set(chosen[:, 0]) == {0, 2}
    assert set(chosen[:, 1]) == {1, 3}
