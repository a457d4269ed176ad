"""Rewards against closed forms and quadrature, and what strategies choose by them."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from fairbench.components.papers.active_assessment import assessment
from fairbench.inference.posterior import Beta, uniform
from fairbench_label import active

POSTERIOR = Beta(np.array([0.5, 3.0, 40.0]), np.array([1.5, 0.3, 9.0]))
ALPHA = np.array([[2.0, 1, 0.5], [4, 1, 6]])
WEIGHT = np.array([[0.2, 0.8], [1.0, 0.0]])
BIN_SCORE = np.array([[0.4, 0.9], [0.7, 0.5]])
BINS = np.array([[1.5, 0.5, 0.4, 8], [2, 3, 1, 1]])  # wrong and right of each bin
SHARE = np.array([0.3, 0.7])
OF_DRAWS = {
    "lowest": (active.Lowest(), active.BetaArms, POSTERIOR),
    "highest": (active.Highest(), active.BetaArms, POSTERIOR),
    "calibration": (active.LeastCalibrated(np.array([0.4, 0.95, 0.7])), active.BetaArms, POSTERIOR),
    "estimation": (active.Estimation(np.array([0.2, 0.3, 0.5])), active.BetaArms, POSTERIOR),
    "calibration in bins": (active.LeastCalibrated(BIN_SCORE, WEIGHT), assessment.BinnedArms, BINS),
}


@pytest.mark.parametrize(("reward", "arms", "prior"), OF_DRAWS.values(), ids=OF_DRAWS)
def test_moments_are_those_of_draws(reward, arms, prior):
    rows = [9] * (3 if arms is active.BetaArms else 2)
    mean, sd = reward.moments(arms.of(prior, rows))
    many = arms.of(prior, rows, replications=200_000)
    drawn = reward.expected(many, many.draw(np.random.default_rng(0)))
    assert (abs(drawn.mean(axis=0) - mean[0]) <= 6 * sd[0] / 447).all()
    np.testing.assert_allclose(drawn.std(axis=0), sd[0], rtol=0.02)


def test_a_label_is_counted_in_the_bin_of_its_row():
    arms = assessment.BinnedArms.of(np.ones((2, 4)), [3, 3], replications=2)
    arms.record(np.array([0, 1]), np.array([1, 0]), np.array([3, 0]))
    np.testing.assert_array_equal(arms.posterior.successes[0], [[1, 1], [1, 2]])
    np.testing.assert_array_equal(arms.posterior.failures[1], [[2, 1], [1, 1]])
    np.testing.assert_array_equal(arms.unlabelled, [[3, 2], [2, 3]])


def test_estimating_outcomes_pays_the_fall_of_their_summed_variance():
    theta = np.array([[[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]]])
    arms = assessment.DirichletArms.of(ALPHA, [9, 9])
    paid = assessment.OutcomeEstimation(SHARE).expected(arms, theta)[0]
    for arm, alpha in enumerate(ALPHA):
        before, *after = (
            stats.dirichlet(each).var().sum() for each in (alpha, *(alpha + np.eye(3)))
        )
        assert paid[arm] == pytest.approx(SHARE[arm] * (before - theta[0, arm] @ after))


PAIRS = [
    ((3.9, 0.1), (1.9, 0.1)),
    ((45.0, 2.0), (3.0, 1.5)),
    ((0.5, 1.5), (0.4, 0.6)),
    ((21.98, 0.02), (10.9, 1.1)),
]


def regions_by_quantiles(first, second, margin, nodes=8_000):
    """Return P(first - second > margin) and P(second - first > margin) by a midpoint rule."""
    u = (np.arange(nodes) + 0.5) / nodes
    values = stats.beta.ppf(u, *first)
    larger = stats.beta.cdf(values - margin, *second).mean()
    return larger, stats.beta.sf(values + margin, *second).mean()


@pytest.mark.thorough
@pytest.mark.parametrize(("first", "second"), PAIRS)
@pytest.mark.parametrize("margin", [0.02, 0.05])
def test_comparison_against_a_finer_quadrature(first, second, margin):
    pair = np.array([first, second])
    arms = active.BetaArms.of(Beta(pair[:, 0], pair[:, 1]), [9, 9])
    comparison = active.ComparisonReward(margin)
    larger, smaller = regions_by_quantiles(first, second, margin)
    regions = comparison.regions(arms)[0]
    np.testing.assert_allclose(regions, [larger, 1 - larger - smaller, smaller], atol=2e-4)
    assert regions.sum() == pytest.approx(1)
    best = regions.max()
    # 24 nodes are fewest for the first failure of an arm whose score is 0.99; ten thousand draws
    # have a standard error of 0.005.
    tolerance = 1.5e-3 if pair.min() < 0.05 else 4e-4
    for arm, outcome in product((0, 1), repeat=2):
        after = pair + np.eye(2)[arm][:, None] * np.eye(2)[1 - outcome]
        larger, smaller = regions_by_quantiles(*after, margin)
        gain = comparison.expected(arms, np.full((1, 2), float(outcome)))[0, arm]
        exact = max(larger, smaller, 1 - larger - smaller) - best
        assert gain == pytest.approx(exact, abs=tolerance)


CERTAIN = Beta(np.array([900.0, 500, 700, 100]), np.array([100.0, 500, 300, 900]))


def draws(strategy, arms, reward=None, plays=1, seed=0):
    generator = np.random.default_rng(seed)
    return active.choose(strategy, arms, reward or active.Lowest(), generator, plays=plays)


@pytest.mark.parametrize("strategy", active.STRATEGIES)
def test_only_arms_with_rows_are_chosen(strategy):
    sizes = np.array([[0, 0, 0, 0], [0, 0, 5, 0], [3, 0, 5, 0]])
    arms = active.BetaArms.of(uniform(4), sizes, replications=3)
    seen = np.stack([draws(strategy, arms, plays=2, seed=seed) for seed in range(50)])
    assert (seen[:, 0] == -1).all()
    assert set(seen[:, 1].ravel()) <= {2, -1}
    assert set(seen[:, 2].ravel()) == {0, 2}


def test_certain_posteriors_leave_no_choice():
    arms = active.BetaArms.of(CERTAIN, [9] * 4, replications=200)
    for strategy in ("thompson", "bayesian_ucb", "bayesian_ucb_quantile"):
        assert (draws(strategy, arms) == 3).all()
        assert (draws(strategy, arms, active.Highest()) == 0).all()
        assert (np.sort(draws(strategy, arms, plays=2)) == [1, 3]).all()
    several = np.sort(draws("epsilon_greedy", arms, plays=2), axis=1)
    assert 0.8 < (several == [1, 3]).all(axis=1).mean() < 1
    two = np.bincount(draws("top_two", arms)[:, 0], minlength=4)
    assert two[[1, 3]].sum() == 200
    assert 60 < two[1] < 140  # half of 200, by six standard errors
    assert 160 < np.bincount(draws("epsilon_greedy", arms)[:, 0], minlength=4)[3] < 200


def test_the_mean_the_mean_plus_a_deviation_and_the_upper_quantile_prefer_different_arms():
    # Means: 0.5, 0.3, 0.48; mean plus sd: 0.564, 0.529, 0.578; 97.5 %: 0.625, 0.81, 0.67.
    posterior = Beta(np.array([30.0, 0.9, 12]), np.array([30.0, 2.1, 13]))
    arms = active.BetaArms.of(posterior, [9] * 3, replications=50)
    assert (posterior.mean.argmax(), posterior.quantile(0.975).argmax()) == (0, 1)
    assert (draws("bayesian_ucb", arms, active.Highest()) == 2).all()
    assert (draws("bayesian_ucb_quantile", arms, active.Highest()) == 1).all()


def test_random_row_goes_by_rows_and_random_arm_by_arms():
    arms = active.BetaArms.of(uniform(3), [10, 30, 60], replications=30_000)
    by_row = np.bincount(draws("random", arms)[:, 0]) / 30_000
    by_arm = np.bincount(draws("random_arm", arms)[:, 0]) / 30_000
    np.testing.assert_allclose(by_row, [0.1, 0.3, 0.6], atol=0.018)
    np.testing.assert_allclose(by_arm, 1 / 3, atol=0.018)


def test_thompson_chooses_as_often_as_an_arm_is_probably_best():
    """Two arms: P(Beta(2, 1) < Beta(1, 1)) = 1/3."""
    posterior = Beta(np.array([2.0, 1]), np.array([1.0, 1]))
    arms = active.BetaArms.of(posterior, [9, 9], replications=30_000)
    assert (draws("thompson", arms) == 0).mean() == pytest.approx(1 / 3, abs=0.017)


def test_queues_give_every_label_once():
    generator, arm = np.random.default_rng(2), np.repeat(np.arange(40), 50)
    success = (generator.random(2000) < generator.uniform(0.6, 0.95, 40)[arm]).astype(int)
    queues = assessment.Queues.of(success, arm, generator, replications=4)
    arms = active.BetaArms.of(uniform(40), queues.sizes, replications=4)
    assert assessment.assess(
        queues,
        arms,
        lambda a: active.choose("random", a, active.Lowest(), generator),
        observe=lambda a: int(a.unlabelled.sum()),
        rounds=2003,
        every=500,
    ) == [8000, 6000, 4000, 2000, 0, 0]
    expected = 1 + np.bincount(arm, weights=success)
    np.testing.assert_array_equal(arms.posterior.successes, np.tile(expected, (4, 1)))


def test_the_gap_of_many_arms_is_the_comparison_of_the_two_furthest_apart():
    won = np.array([[5.0, 9.0, 2.0, 6.0]])
    arms = active.BetaArms(Beta(won, 12 - won), np.full((1, 4), 5))
    moments = np.array(active.WidestGap(0.05).moments(arms))[:, 0]
    assert [*np.flatnonzero(moments[0] > -1)] == [*np.flatnonzero(moments[1] > 0)] == [1, 2]
    two = active.BetaArms(Beta(won[:, 1:3], 12 - won[:, 1:3]), np.full((1, 2), 5))
    expected = np.array(active.ComparisonReward(0.05).moments(two))[:, 0]
    np.testing.assert_allclose(moments[:, 1:3], expected, atol=1e-9)
    theta = np.array([[0.9, 0.5, 0.5, 0.1]])
    assert [*np.flatnonzero(active.WidestGap(0.05).expected(arms, theta)[0] > -1)] == [0, 3]


TN, FP, FN, TP = 50, 7, 11, 32
RATES = {
    assessment.accuracy: (TN + TP) / 100,
    assessment.true_positive_rate: TP / (TP + FN),
}


@pytest.mark.parametrize(("rate", "by_hand"), RATES.items())
def test_rates_are_those_of_the_confusion_table(rate, by_hand):
    shares = (FP + TP) / 100, FN / (TN + FN), TP / (TP + FP)
    assert rate(*map(np.float64, shares)) == pytest.approx(by_hand)


@pytest.mark.parametrize("rate", RATES)
def test_moments_are_those_of_posterior_draws(rate):
    posterior = Beta(np.array([30.0, 200, 15, 90]), np.array([270.0, 50, 85, 10]))
    reward = assessment.LowestRate(np.array([0.4, 0.3]), rate)
    mean, sd = reward.moments(active.BetaArms.of(posterior, [9] * 4))
    drawn = posterior.draws(40_000, np.random.default_rng(0))
    rates = reward.rates(drawn)
    best = mean.reshape(2, 2).max(axis=1)  # the arm that says less is at minus infinity
    assert np.isinf(mean).sum() == 2
    np.testing.assert_allclose(-best, rates.mean(axis=0), atol=0.004)
    np.testing.assert_allclose(sd[0, ::2], rates.std(axis=0), rtol=0.05)


def test_the_arm_that_says_more_is_labelled_and_the_other_when_it_is_used_up():
    posterior = Beta(np.array([1.0, 500, 1, 500]), np.array([1.0, 500, 1, 500]))
    reward = assessment.LowestRate(np.array([0.5, 0.5]), assessment.true_positive_rate)
    arms = active.BetaArms.of(posterior, np.array([[9, 9, 9, 9], [0, 9, 0, 9]]), replications=2)
    chosen = np.array([draws("thompson", arms, reward, seed=seed)[:, 0] for seed in range(30)])
    assert set(chosen[:, 0]) == {0, 2} and set(chosen[:, 1]) == {1, 3}
