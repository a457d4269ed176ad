"""Rates of groups from the shares of label 1 among both kinds of prediction."""

import numpy as np
import pytest
from scipy import stats

from fairbench.components.papers.active_assessment.assessment import (
    LowestRate,
    Queues,
    accuracy,
    assess,
    false_positive_rate,
    true_positive_rate,
)
from fairbench.inference.posterior import Beta, uniform
from fairbench_label.active import STRATEGIES, BetaArms, choose

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


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_row_can_be_labelled(strategy):
    """Also when a reward rules out all arms but one."""
    generator = np.random.default_rng(0)
    arm = np.repeat(np.arange(4), [3, 9, 30, 2])
    queues = Queues.of(generator.random(44) < 0.5, arm, generator, replications=20)
    arms = BetaArms.of(uniform(4), queues.sizes, replications=20)
    reward = LowestRate(np.array([0.75, 2 / 32]), true_positive_rate)
    assess(
        queues,
        arms,
        lambda held: choose(strategy, held, reward, generator),
        observe=lambda held: None,
        rounds=44,
    )
    assert not arms.unlabelled.any()


def test_the_lowest_true_positive_rate_is_found_sooner_than_at_random():
    generator = np.random.default_rng(0)
    group = np.repeat(np.arange(20), 160)
    label = (generator.random(3200) < 0.3).astype(int)
    hit = np.where(group == 0, 0.4, 0.7)[np.arange(3200)]
    prediction = np.where(label == 1, generator.random(3200) < hit, generator.random(3200) < 0.1)
    arm = 2 * group + prediction
    reward = LowestRate(np.bincount(group, weights=prediction) / 160, true_positive_rate)
    result = {}
    for name in ("thompson", "random"):
        draws = np.random.default_rng(1)
        queues = Queues.of(label, arm, draws, replications=200)
        arms = BetaArms.of(uniform(40), queues.sizes, replications=200)
        assess(
            queues,
            arms,
            lambda held, n=name, g=draws: choose(n, held, reward, g),
            observe=lambda held: None,
            rounds=400,
        )
        worst = reward.rates(arms.posterior.mean).argmin(axis=1)
        result[name] = (worst == 0).mean()
    assert result["thompson"] > result["random"] + 0.15
