"""Equations of Ji's thesis, chapters 2 and 3, each against a number worked out by hand."""

import numpy as np
import pytest

from fairbench.components.papers.active_assessment.assessment import (
    ArmPool,
    BinnedArms,
    BinnedPool,
    DirichletArms,
    MostCostly,
    OutcomeEstimation,
    accuracy_error,
    ece_error,
    mean_reciprocal_rank,
    mean_scores,
)
from fairbench.components.papers.active_assessment.tables import class_errors
from fairbench.components.papers.black_box.estimation import regions
from fairbench.data.columns import MulticlassScores
from fairbench.inference.active import BetaArms, ComparisonReward, Estimation, LeastCalibrated
from fairbench.inference.posterior import (
    Beta,
    accuracy_posterior,
    centred,
    confusion_posterior,
    expected_cost,
    reliability_diagram,
    uniform,
    uninformative_prior,
)
from fairbench.metrics.probability import reliability


def of_two_groups():
    """Four rows of group 0 (three are right) and one of group 1, which is wrong."""
    arm, right = np.array([0, 0, 0, 0, 1]), np.array([1, 1, 1, 0, 0])
    return ArmPool("pool", arm, right, np.array([0.9, 0.8, 0.6, 0.7, 0.5]))


def arms_of(successes, failures, rows=9):
    """One replication of arms with these parameters."""
    posterior = Beta(np.array([successes], float), np.array([failures], float))
    return BetaArms(posterior, np.full(posterior.mean.shape, rows))


def test_an_accuracy_is_the_share_of_right_predictions():
    """(2.2): the share among the region's S rows."""
    expected = [(1 + 1 + 1 + 0) / 4, 0 / 1]
    assert of_two_groups().accuracy == pytest.approx(expected)


def test_self_assessment_is_the_mean_score():
    """(2.3): the mean score of the region's S rows."""
    expected = [(0.9 + 0.8 + 0.6 + 0.7) / 4, 0.5]
    assert of_two_groups().confidence == pytest.approx(expected)


def test_the_calibration_error_sums_share_times_distance():
    """(2.7): the sum over the bins of p_b |theta_b - s_b|."""
    score, right = np.array([0.2, 0.4, 0.9, 0.7]), np.array([1.0, 0, 1, 1])
    # Bins of [0, 1/2) and [1/2, 1]: accuracies 1/2 and 1, mean scores 0.3 and 0.8.
    expected = 2 / 4 * abs(1 / 2 - 0.3) + 2 / 4 * abs(1 - 0.8)
    ours = reliability(right, score, bins=2).expected_calibration_error()
    assert ours == pytest.approx(expected)


def test_right_and_wrong_labels_are_added_to_the_prior():
    """(2.8) to (2.10): Beta(alpha + r, beta + N - r) in every group."""
    correct, group = np.array([1, 1, 0, 1, 0, np.nan]), np.array([0, 0, 0, 1, 1, 1])
    posterior = accuracy_posterior(correct, group, Beta(np.array([2.0, 0.5]), np.array([3, 0.5])))
    assert posterior.successes == pytest.approx([2 + 2, 0.5 + 1])
    assert posterior.failures == pytest.approx([3 + 1, 0.5 + 1])
    assert posterior.mean == pytest.approx([4 / 8, 1.5 / 3])


def test_the_posterior_of_the_calibration_error_has_the_mean_of_the_distance():
    """(2.11), (2.12): under Beta(1, 1) about the score 1/2, E|theta - 1/2| is 1/4."""
    unlabelled = np.full(4, np.nan)
    diagram = reliability_diagram(np.full(4, 0.5), unlabelled, bins=2, strength=2.0)
    # Beta(N_0 s, N_0 (1 - s)) is uniform at the score s = 1/2 with N_0 = 2.
    expected = 4 / 4 * (0.5**2 / 2 + (1 - 0.5) ** 2 / 2)
    assert diagram.expected_calibration_error()[0] == pytest.approx(expected, abs=1e-6)
    drawn = diagram.calibration_error_draws(20_000, np.random.default_rng(0))
    assert drawn.mean() == pytest.approx(expected, abs=0.002)


def test_the_calibration_error_of_a_class_is_over_its_own_rows():
    """(2.13): the sum over the bins of p_kb |theta_kb - s_kb|."""
    score, correct = np.array([0.95, 0.91, 0.55, 0.75]), np.array([1.0, 0, 1, 1])
    arm, bins = np.array([0, 0, 0, 1]), np.array([9, 9, 5, 7])
    outcome = BinnedArms.outcome(bins, correct)
    first = 2 / 3 * abs(1 / 2 - 0.93) + 1 / 3 * abs(1 - 0.55)
    expected = [first, abs(1 - 0.75)]
    assert class_errors(BinnedPool("pool", arm, outcome, score, correct)) == pytest.approx(expected)


def test_true_classes_are_added_to_the_prior_of_the_predicted_class():
    """(2.14), (2.15), with alpha_jk = N_0 / K of 2.4.1: here N_0 = 1 and K = 2."""
    scores = MulticlassScores(
        np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([0.9, 0.8, 0.7]), ("a", "b")
    )
    posterior = confusion_posterior(scores, uninformative_prior(2, strength=1.0))
    assert posterior == pytest.approx(np.array([[0.5 + 1, 0.5 + 1], [0.5, 0.5 + 1]]))


def test_the_cost_of_a_class_is_the_mean_price_of_its_true_classes():
    """(2.16): the sum over j of c_jk theta_jk."""
    scores = MulticlassScores(
        np.array([0, 1, 1, 1]), np.array([0, 0, 0, 1]), np.full(4, 0.9), ("a", "b")
    )
    costs = np.array([[0.0, 2], [10, 0]])  # of the true class (row) and the predicted one
    mean, _ = expected_cost(confusion_posterior(scores, np.full((2, 2), 1e-9)), costs)
    expected = [1 / 3 * 0 + 2 / 3 * 10, 0 * 2 + 1 * 0]
    assert mean == pytest.approx(expected, abs=1e-6)


def test_the_informative_prior_of_a_class_is_the_mean_of_its_rows_probabilities():
    """(2.17), and Beta(N_0 s_g, N_0 (1 - s_g)) of 2.4.2."""
    probabilities = np.array([[0.9, 0.1], [0.7, 0.3], [0.4, 0.6]])
    scores = MulticlassScores(
        np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([0.9, 0.7, 0.6]), ("a", "b"),
        probabilities,
    )  # fmt: skip
    expected = [[(0.9 + 0.7) / 2, (0.1 + 0.3) / 2], [0.4, 0.6]]
    assert mean_scores(scores) == pytest.approx(np.array(expected))
    prior = centred(np.array([0.8]), 2.0)
    assert (prior.successes[0], prior.failures[0]) == pytest.approx((2 * 0.8, 2 * (1 - 0.8)))


def test_the_three_regions_of_a_difference_of_two_uniform_accuracies():
    """2.3.6: P(difference < -e) is the triangle (1 - e)^2 / 2 of the unit square, e = 0.05."""
    outside = (1 - 0.05) ** 2 / 2
    assert regions(uniform(2)) == pytest.approx((outside, 1 - 2 * outside, outside), abs=1e-4)
    masses = ComparisonReward(0.05).regions(arms_of([1, 1], [1, 1]))[0]
    assert masses == pytest.approx([outside, 1 - 2 * outside, outside], abs=1e-4)


def test_the_error_of_estimation_weighs_groups_by_their_rows():
    """3.5.2: (sum over g of p_g (estimate - truth)^2)^(1/2), in points."""
    pool = of_two_groups()
    arms = arms_of([1, 1], [1, 3])  # estimates 1/2 and 1/4
    expected = 100 * (4 / 5 * (1 / 2 - 3 / 4) ** 2 + 1 / 5 * (1 / 4 - 0) ** 2) ** 0.5
    assert accuracy_error(pool, arms)[0] == pytest.approx(expected)


def test_the_error_of_the_calibration_error_is_relative_to_that_of_all_labels():
    """3.5.2: 100 |estimated ECE - ECE| / ECE, with posterior means of the bins' accuracies."""
    pool = of_two_groups()  # accuracies 3/4 and 0, scores 0.75 and 0.5
    arms = arms_of([1, 1], [1, 3])
    truth = 4 / 5 * abs(3 / 4 - 0.75) + 1 / 5 * abs(0 - 0.5)
    estimate = 4 / 5 * abs(1 / 2 - 0.75) + 1 / 5 * abs(1 / 4 - 0.5)
    expected = 100 * abs(estimate - truth) / truth
    assert ece_error(pool, arms)[0] == pytest.approx(expected)


def test_the_reward_of_estimation_is_the_weighted_fall_of_the_variance():
    """Table 3.1, groupwise accuracy: p_g (Var - E Var after one more label), Beta(1, 1)."""
    now = 1 / 12
    after = 2 * 1 / (3**2 * 4)  # of Beta(2, 1), and of Beta(1, 2)
    reward = Estimation(np.array([0.25])).expected(arms_of([1], [1]), np.array([[0.9]]))
    assert reward[0, 0] == pytest.approx(0.25 * (now - after))


def test_the_reward_of_a_confusion_matrix_is_the_fall_of_the_summed_variance():
    """Table 3.1, confusion matrix, of two classes with Dirichlet(1, 1): twice Beta(1, 1)'s."""
    arms = DirichletArms.of(np.array([[1.0, 1]]), [9])
    reward = OutcomeEstimation(np.array([0.5])).expected(arms, np.array([[[0.3, 0.7]]]))
    expected = 0.5 * (2 / 12 - 2 * (2 * 1) / (3**2 * 4))
    assert reward[0, 0] == pytest.approx(expected)


def test_the_rewards_of_identification_are_the_drawn_metrics():
    """Table 3.1: sum_b p_gb |theta_gb - s_gb| of a group, sum_j c_jk theta_jk of a class."""
    weight, score = np.array([[0.25, 0.75]]), np.array([[0.4, 0.9]])
    theta = np.array([[[0.6, 0.7]]])
    arms = BinnedArms.of(uniform((1, 2)), [9])
    expected = 0.25 * abs(0.6 - 0.4) + 0.75 * abs(0.7 - 0.9)
    assert LeastCalibrated(score, weight).expected(arms, theta)[0, 0] == pytest.approx(expected)
    costs = DirichletArms.of(np.array([[1.0, 1, 1]]), [9])
    drawn = np.array([[[0.5, 0.3, 0.2]]])
    expected = 0 * 0.5 + 1 * 0.3 + 10 * 0.2
    assert MostCostly(np.array([[0, 1, 10]])).expected(costs, drawn)[0, 0] == pytest.approx(
        expected
    )


def test_the_reward_of_comparison_is_the_expected_confidence():
    """Table 3.1, comparison: arms are ordered by E lambda after one more label of each."""
    arms = arms_of([1, 8], [1, 2])
    reward = ComparisonReward(0.05).expected(arms, arms.posterior.mean)[0]
    of_arm = []
    for arm in (0, 1):
        chances = arms.posterior.mean[0, arm], 1 - arms.posterior.mean[0, arm]
        after = [
            ComparisonReward(0.05)
            .regions(
                arms_of(
                    arms.posterior.successes[0] + (np.arange(2) == arm) * right,
                    arms.posterior.failures[0] + (np.arange(2) == arm) * (1 - right),
                )
            )[0]
            .max()
            for right in (1, 0)
        ]
        of_arm.append(chances[0] * after[0] + chances[1] * after[1])
    now = ComparisonReward(0.05).regions(arms)[0].max()
    assert reward == pytest.approx(np.array(of_arm) - now, abs=1e-4)


def test_mean_reciprocal_rank_leaves_out_the_other_extreme_groups():
    """3.6.2: (1 / m) sum over i of 1 / rank_i, others of the m are passed over."""
    seen = np.array([[0.1, 0.4, 0.3, 0.2]])
    # Truly lowest are 0 and 1. Group 0 is first; 1 comes after 2 and 3, so it is third.
    expected = (1 / 1 + 1 / 3) / 2
    assert mean_reciprocal_rank(seen, np.array([0, 1]))[0] == pytest.approx(expected)
