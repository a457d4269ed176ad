"""Strategies choose what they say, never an arm without rows, and beat labelling at random."""

import numpy as np
import pytest

from fairbench.components.papers.active_assessment.assessment import (
    DirichletArms,
    MostCostly,
    Queues,
    assess,
)
from fairbench.core.errors import UserError
from fairbench.inference.posterior import Beta, centred, uniform
from fairbench_label.active import (
    STRATEGIES,
    BetaArms,
    Highest,
    Lowest,
    choose,
    next_arms,
)

CERTAIN = Beta(np.array([900.0, 500, 700, 100]), np.array([100.0, 500, 300, 900]))


def draws(strategy, arms, reward=None, plays=1, seed=0):
    return choose(strategy, arms, reward or Lowest(), np.random.default_rng(seed), plays=plays)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_only_arms_with_rows_are_chosen(strategy):
    sizes = np.array([[0, 0, 0, 0], [0, 0, 5, 0], [3, 0, 5, 0]])
    arms = BetaArms.of(uniform(4), sizes, replications=3)
    seen = [draws(strategy, arms, plays=2, seed=seed) for seed in range(50)]
    for chosen in seen:
        assert (chosen[0] == -1).all()
        assert set(chosen[1]) <= {2, -1}
        assert set(chosen[2]) <= {0, 2}
    assert {int(arm) for chosen in seen for arm in chosen[2]} == {0, 2}


def test_certain_posteriors_leave_no_choice():
    arms = BetaArms.of(CERTAIN, [9] * 4, replications=200)
    assert (draws("thompson", arms) == 3).all()
    assert (draws("bayesian_ucb", arms) == 3).all()
    assert (draws("bayesian_ucb", arms, Highest()) == 0).all()
    assert (np.sort(draws("thompson", arms, plays=2)) == [1, 3]).all()
    two = np.bincount(draws("top_two", arms)[:, 0], minlength=4)
    assert two[[1, 3]].sum() == 200
    assert 60 < two[1] < 140  # half of 200, by six standard errors
    greedy = np.bincount(draws("epsilon_greedy", arms)[:, 0], minlength=4)
    assert 160 < greedy[3] < 200


def test_the_upper_quantile_and_the_mean_plus_a_deviation_prefer_different_arms():
    # Mean plus sd: 0.564 and 0.529; the 97.5 % quantiles: 0.625 and 0.81.
    posterior = Beta(np.array([30.0, 0.9]), np.array([30.0, 2.1]))
    arms = BetaArms.of(posterior, [9, 9], replications=50)
    upper = posterior.quantile(0.975)
    assert upper[1] > upper[0] + 0.1
    assert (draws("bayesian_ucb", arms, Highest()) == 0).all()
    assert (draws("bayesian_ucb_quantile", arms, Highest()) == 1).all()


@pytest.mark.parametrize("strategy", ["epsilon_greedy", "bayesian_ucb", "bayesian_ucb_quantile"])
def test_several_plays_are_the_best_arms_each_once(strategy):
    arms = BetaArms.of(CERTAIN, [9, 9, 9, 9], replications=200)
    chosen = np.sort(draws(strategy, arms, plays=2), axis=1)
    assert (chosen[:, 0] < chosen[:, 1]).all()
    best = (chosen == [1, 3]).all(axis=1)
    assert best.mean() > (0.8 if strategy == "epsilon_greedy" else 0.999)
    assert strategy != "epsilon_greedy" or not best.all()


def test_random_row_goes_by_rows_and_random_arm_by_arms():
    arms = BetaArms.of(uniform(3), [10, 30, 60], replications=30_000)
    by_row = np.bincount(draws("random", arms)[:, 0]) / 30_000
    by_arm = np.bincount(draws("random_arm", arms)[:, 0]) / 30_000
    np.testing.assert_allclose(by_row, [0.1, 0.3, 0.6], atol=0.018)
    np.testing.assert_allclose(by_arm, 1 / 3, atol=0.018)


def test_thompson_chooses_as_often_as_an_arm_is_probably_best():
    """Two arms: P(Beta(2, 1) < Beta(1, 1)) = 1/3."""
    arms = BetaArms.of(Beta(np.array([2.0, 1]), np.array([1.0, 1])), [9, 9], replications=30_000)
    assert (draws("thompson", arms) == 0).mean() == pytest.approx(1 / 3, abs=0.017)


def test_costs_of_several_outcomes():
    arms = DirichletArms.of([[50.0, 1, 1], [50.0, 1, 30]], [9, 9], replications=100)
    costs = MostCostly(np.array([[0.0, 1, 5], [0.0, 1, 5]]))
    for strategy in ("thompson", "bayesian_ucb"):
        assert (draws(strategy, arms, costs) == 1).all()
    arms.record(np.array([0]), np.array([1]), np.array([2]))
    assert arms.alpha[0, 1].tolist() == [50, 1, 31]
    assert arms.unlabelled[0].tolist() == [9, 8]


def test_unknown_strategy():
    with pytest.raises(UserError, match="thompson"):
        draws("thomson", BetaArms.of(uniform(2), [1, 1]))


def simulated_pool():
    generator = np.random.default_rng(0)
    arm = np.repeat(np.arange(40), 50)
    rates = np.concatenate([[0.6], generator.uniform(0.8, 0.95, 39)])
    return (generator.random(2000) < rates[arm]).astype(int), arm


@pytest.mark.thorough
@pytest.mark.parametrize("strategy", ["thompson", "top_two", "epsilon_greedy", "bayesian_ucb"])
def test_the_worst_arm_is_found_sooner_than_at_random(strategy):
    success, arm = simulated_pool()
    result = {}
    for name in (strategy, "random"):
        generator = np.random.default_rng(1)
        queues = Queues.of(success, arm, generator, replications=200)
        arms = BetaArms.of(centred(np.full(40, 0.85)), queues.sizes, replications=200)

        def pick(arms, name=name, generator=generator):
            return choose(name, arms, Lowest(), generator)

        assess(queues, arms, pick, observe=lambda a: None, rounds=400)
        result[name] = (arms.posterior.mean.argmin(axis=1) == 0).mean()
    # Three standard errors of the difference of two shares of 200 are at most 0.15.
    assert result[strategy] > result["random"] + 0.15


def test_queues_give_every_label_once():
    success, arm = simulated_pool()
    generator = np.random.default_rng(2)
    queues = Queues.of(success, arm, generator, replications=4)
    arms = BetaArms.of(uniform(40), queues.sizes, replications=4)
    seen = assess(
        queues,
        arms,
        lambda a: choose("random", a, Lowest(), generator),
        observe=lambda a: int(a.unlabelled.sum()),
        rounds=2003,
        every=500,
    )
    assert seen == [8000, 6000, 4000, 2000, 0, 0]
    expected = 1 + np.bincount(arm, weights=success)
    np.testing.assert_array_equal(arms.posterior.successes, np.tile(expected, (4, 1)))


def test_a_sitting_names_no_more_rows_than_there_are():
    arms = BetaArms.of(centred([0.5, 0.9]), [3, 4])
    generator = np.random.default_rng(0)
    chosen = next_arms(arms, Lowest(), "thompson", generator, labels=20)
    assert np.bincount(chosen).tolist() == [3, 4]
    assert arms.unlabelled.tolist() == [[3, 4]]
