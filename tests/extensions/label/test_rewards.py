"""Rewards against closed forms and quadrature."""

import numpy as np
import pytest
from scipy import integrate, stats

from fairbench.components.papers.active_assessment.assessment import (
    BinnedArms,
    DirichletArms,
    MostCostly,
    OutcomeEstimation,
)
from fairbench.inference.posterior import Beta
from fairbench_label.active import (
    BetaArms,
    ComparisonReward,
    Estimation,
    Highest,
    LeastCalibrated,
    Lowest,
)

POSTERIOR = Beta(np.array([0.5, 3.0, 40.0]), np.array([1.5, 0.3, 9.0]))
ARMS = BetaArms.of(POSTERIOR, [9, 9, 9])
SCORE = np.array([0.4, 0.95, 0.7])
REWARDS = [Lowest(), Highest(), LeastCalibrated(SCORE), Estimation(np.array([0.2, 0.3, 0.5]))]


@pytest.mark.thorough
@pytest.mark.parametrize("reward", REWARDS, ids=lambda r: type(r).__name__)
def test_moments_are_those_of_the_reward_over_the_posterior(reward):
    mean, sd = reward.moments(ARMS)
    for g in range(3):
        beta = stats.beta(POSTERIOR.successes[g], POSTERIOR.failures[g])

        def at(theta, g=g):
            return reward.expected(ARMS, np.full((1, 3), theta))[0, g]

        # In the quantiles, where no density is singular.
        pieces = {"points": [beta.cdf(SCORE[g])], "limit": 200}
        first = integrate.quad(lambda u, f=at, b=beta: f(b.ppf(u)), 0, 1, **pieces)[0]
        second = integrate.quad(lambda u, f=at, b=beta: f(b.ppf(u)) ** 2, 0, 1, **pieces)[0]
        assert mean[0, g] == pytest.approx(first, rel=1e-5, abs=1e-9)
        assert sd[0, g] == pytest.approx(np.sqrt(second - first**2), rel=1e-3, abs=1e-9)


def test_cost_has_the_moments_of_dirichlet_draws():
    alpha = np.array([[2.0, 1, 0.5], [4, 1, 6]])
    reward = MostCostly(np.array([[0.0, 1, 10], [5, 0, 1]]))
    mean, sd = reward.moments(DirichletArms.of(alpha, [9, 9]))
    drawn = DirichletArms.of(alpha, [9, 9], replications=200_000)
    costs = reward.expected(drawn, drawn.draw(np.random.default_rng(0)))
    np.testing.assert_allclose(costs.mean(axis=0), mean[0], atol=6 * sd[0].max() / 447)
    np.testing.assert_allclose(costs.std(axis=0), sd[0], rtol=0.02)


WEIGHT = np.array([[0.2, 0.8], [1.0, 0.0]])
BIN_SCORE = np.array([[0.4, 0.9], [0.7, 0.5]])


def test_calibration_error_of_several_bins_has_the_moments_of_its_draws():
    prior = Beta(np.array([[0.5, 8], [3, 1]]), np.array([[1.5, 0.4], [2, 1]]))
    reward = LeastCalibrated(BIN_SCORE, WEIGHT)
    mean, sd = reward.moments(BinnedArms.of(prior, [9, 9]))
    many = BinnedArms.of(prior, [9, 9], replications=200_000)
    error = reward.expected(many, many.draw(np.random.default_rng(0)))
    np.testing.assert_allclose(error.mean(axis=0), mean[0], atol=6 * sd[0].max() / 447)
    np.testing.assert_allclose(error.std(axis=0), sd[0], rtol=0.02)
    # An arm with all its rows in one bin is an arm without bins.
    single = BetaArms.of(Beta(prior.successes[1:, 0], prior.failures[1:, 0]), [9])
    alone = LeastCalibrated(BIN_SCORE[1:, 0]).moments(single)
    np.testing.assert_allclose([mean[0, 1], sd[0, 1]], np.ravel(alone), rtol=1e-12)


def test_a_label_is_counted_in_the_bin_of_its_row():
    arms = BinnedArms.of(Beta(np.ones((2, 2)), np.ones((2, 2))), [3, 3], replications=2)
    outcome = BinnedArms.outcome(np.array([1, 0]), np.array([1, 0]))
    arms.record(np.array([0, 1]), np.array([1, 0]), outcome)
    np.testing.assert_array_equal(arms.posterior.successes[0], [[1, 1], [1, 2]])
    np.testing.assert_array_equal(arms.posterior.failures[1], [[2, 1], [1, 1]])
    np.testing.assert_array_equal(arms.unlabelled, [[3, 2], [2, 3]])
    assert arms.take(np.array([1])).unlabelled.tolist() == [[2, 3]]


def summed_variance(alpha):
    return stats.dirichlet(alpha).var().sum()


def test_estimating_outcomes_pays_the_fall_of_their_summed_variance():
    alpha = np.array([[2.0, 1, 0.5], [4, 1, 6]])
    share = np.array([0.3, 0.7])
    reward, arms = OutcomeEstimation(share), DirichletArms.of(alpha, [9, 9])
    theta = np.array([[[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]]])
    for arm in (0, 1):
        after = [summed_variance(alpha[arm] + np.eye(3)[j]) for j in range(3)]
        fall = summed_variance(alpha[arm]) - theta[0, arm] @ after
        assert reward.expected(arms, theta)[0, arm] == pytest.approx(share[arm] * fall)
    mean, sd = reward.moments(arms)
    closed = [share[k] * summed_variance(alpha[k]) / (alpha[k].sum() + 1) for k in (0, 1)]
    np.testing.assert_allclose(mean[0], closed, rtol=1e-12)
    many = DirichletArms.of(alpha, [9, 9], replications=200_000)
    falls = reward.expected(many, many.draw(np.random.default_rng(0)))
    np.testing.assert_allclose(falls.std(axis=0), sd[0], rtol=0.02)


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


@pytest.mark.parametrize(("first", "second"), PAIRS)
@pytest.mark.parametrize("margin", [0.02, 0.05])
def test_comparison_against_a_finer_quadrature(first, second, margin):
    pair = np.array([first, second])
    arms = BetaArms.of(Beta(pair[:, 0], pair[:, 1]), [9, 9])
    comparison = ComparisonReward(margin)
    larger, smaller = regions_by_quantiles(first, second, margin)
    regions = comparison.regions(arms)[0]
    np.testing.assert_allclose(regions, [larger, 1 - larger - smaller, smaller], atol=2e-4)
    assert regions.sum() == pytest.approx(1)
    best = regions.max()
    for arm in (0, 1):
        for outcome in (0, 1):
            label = np.eye(2)[1 - outcome]
            after = pair + np.eye(2)[arm][:, None] * label
            larger, smaller = regions_by_quantiles(*after, margin)
            theta = np.full((1, 2), float(outcome))
            gain = comparison.expected(arms, theta)[0, arm]
            # 24 nodes are fewest for the first failure of an arm whose score is 0.99; ten
            # thousand draws have a standard error of 0.005.
            tolerance = 1.5e-3 if pair.min() < 0.05 else 4e-4
            exact = max(larger, smaller, 1 - larger - smaller) - best
            assert gain == pytest.approx(exact, abs=tolerance)
