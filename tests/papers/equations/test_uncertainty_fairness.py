"""Equations of Uncertainty as a Fairness Measure, each against a number worked out by hand."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from fairbench.components.algorithms.estimators.weight_posterior import (
    ScaleMixture,
    WeightPosterior,
)
from fairbench.components.datasets import kuzucu
from fairbench.components.papers.uncertainty_fairness.tables import (
    negative_log_likelihood,
    of_groups,
    ratios,
)
from fairbench.metrics.group import ratio
from fairbench.metrics.registry import (
    accuracy,
    binary_confusion,
    false_negative_rate,
    false_positive_rate,
    positive_predictive_value,
    selection_rate,
    true_positive_rate,
)
from fairbench.metrics.uncertainty import Neighbours, individual_fairness, variance_decomposition

# Group 1 (the reference) first: TN, FP, FN, TP of each.
COUNTS = np.array([[5, 1, 1, 3], [4, 4, 1, 1]])


def test_a_fair_model_has_the_same_measure_in_both_groups():
    """Equation (1): M(D, f, G=0) = M(D, f, G=1), as a ratio of 1."""
    same = np.array([[5, 1, 1, 3], [10, 2, 2, 6]])
    assert ratio(accuracy, same)[0] == pytest.approx((16 / 20) / (8 / 10))
    assert ratio(accuracy, COUNTS)[0] == pytest.approx((5 / 10) / (8 / 10))


def test_statistical_parity_is_the_share_predicted_positive():
    """Equations (2) and (23): P(Y^=1 | G=0) / P(Y^=1 | G=1)."""
    expected = ((4 + 1) / 10) / ((1 + 3) / 10)
    assert ratio(selection_rate, COUNTS)[0] == pytest.approx(expected)


def test_equal_opportunity_is_the_share_of_positives_predicted_negative():
    """Equations (3) and (24): P(Y^=0 | Y=1, G=0) / P(Y^=0 | Y=1, G=1)."""
    expected = (1 / 2) / (1 / 4)
    assert ratio(false_negative_rate, COUNTS)[0] == pytest.approx(expected)


def test_equalised_odds_are_the_shares_predicted_positive_of_each_label():
    """Equations (4) and (25): P(Y^=1 | Y=y, G=0) / P(Y^=1 | Y=y, G=1), for y = 0 and y = 1."""
    assert ratio(false_positive_rate, COUNTS)[0] == pytest.approx((4 / 8) / (1 / 6))
    assert ratio(true_positive_rate, COUNTS)[0] == pytest.approx((1 / 2) / (3 / 4))


def test_individual_fairness_is_one_less_the_distance_from_the_neighbours_mean():
    """Equations (6) and (9): 1 - |U_i - 1/k sum over the k nearest of U_j|, of labels or U."""
    features = np.array([[0.0], [1.0], [3.0], [7.0]], np.float32)
    values = np.array([0.4, 0.1, 0.2, 0.9])
    fairness = individual_fairness(values, Neighbours.of(features, 2))
    # The two nearest of 0 are 1 and 3; of 7 they are 3 and 1.
    assert fairness[0] == pytest.approx([1 - abs(0.4 - 0.1), 1 - abs(0.4 - (0.1 + 0.2) / 2)])
    assert fairness[3] == pytest.approx([1 - abs(0.9 - 0.2), 1 - abs(0.9 - (0.2 + 0.1) / 2)])


def test_epistemic_uncertainty_is_the_distance_of_draws_from_their_mean():
    """Equation (7), first term: 1/M sum (P_m - P)^T (P_m - P), over both classes."""
    # P_1 = (0.2, 0.8), P_2 = (0.6, 0.4), P = (0.4, 0.6).
    expected = 0.5 * ((-0.2) ** 2 + 0.2**2) + 0.5 * (0.2**2 + (-0.2) ** 2)
    assert variance_decomposition([[0.8], [0.4]]).epistemic[0] == pytest.approx(expected)


def test_aleatoric_uncertainty_is_the_mean_variance_of_the_label():
    """Equation (7), second term: the trace of 1/M sum diag(P_m) - P_m P_m^T."""
    expected = 0.5 * (1 - (0.2**2 + 0.8**2)) + 0.5 * (1 - (0.6**2 + 0.4**2))
    assert variance_decomposition([[0.8], [0.4]]).aleatoric[0] == pytest.approx(expected)


def test_predictive_uncertainty_is_their_sum():
    """Equation (7): U_p = U_e + U_a, which is 1 - P^T P."""
    expected = 1 - (0.4**2 + 0.6**2)
    assert variance_decomposition([[0.8], [0.4]]).predictive[0] == pytest.approx(expected)


def test_uncertainty_fairness_is_the_ratio_of_the_groups_means():
    """Equations (8) and (27): U(D, f, G=0) / U(D, f, G=1), each a mean over the group's rows."""
    members = np.array([[0.5, 0.9, 0.8, 1.0]])
    people = pd.DataFrame({"group": pd.Categorical(["0", "0", "1", "1"])})
    rows = of_groups(members, np.array([1.0, 1.0, 1.0, 1.0]), people)
    frame = pd.DataFrame([{"dataset": "sd1", "run": "0", "repeat": 0, **row} for row in rows])
    first = (2 * 0.5 * 0.5 + 2 * 0.9 * 0.1) / 2
    second = (2 * 0.8 * 0.2 + 2 * 1.0 * 0.0) / 2
    found = ratios(frame, "sd1", "group", "aleatoric_uncertainty")
    assert found.to_numpy() == pytest.approx([first / second])


@pytest.mark.parametrize(
    ("name", "group", "mean", "variance", "covariance"),
    [("sd1", 1, 7, 15, 10), ("sd2", 0, 10, 100, 30), ("sd2", 1, 7, 5, 1), ("sd3", 0, 2, 7, 3)],
)
def test_the_synthetic_groups_are_normals_around_minus_and_plus_a_mean(
    name, group, mean, variance, covariance
):
    """Equations (12) to (19), by their moments; (16) prints [5, 1; 5, 1], read as [5, 1; 1, 5]."""
    normal = kuzucu.GROUPS[name][group]
    assert (normal.mean, normal.variance, normal.covariance) == (mean, variance, covariance)
    # On the line x1 = x2 = z, log P(1 | x) / P(0 | x) is 4 mean z / (variance + covariance).
    odds = 4 * mean * 0.1 / (variance + covariance)
    expected = 1 / (1 + math.exp(-odds))
    assert normal.probability(np.array([[0.1, 0.1]])) == pytest.approx(expected)


def test_the_square_of_group_0_of_sd1_lies_between_0_and_1_of_one_label():
    """Equations (10) and (11): Beta(1/2, 1/2) has mean 1/2 and variance 1/8."""
    points = kuzucu.BetaSquare(rising=True).draw(40_000, 1, np.random.default_rng(0))
    assert points.mean() == pytest.approx(0.5 / (0.5 + 0.5), abs=0.01)
    assert points.var() == pytest.approx(0.5 * 0.5 / ((0.5 + 0.5) ** 2 * (0.5 + 0.5 + 1)), abs=0.01)
    assert points.min() >= 0 and points.max() <= 1


def test_the_likelihood_is_the_mean_over_draws_of_minus_the_log_of_the_softmax():
    """Equation (22), L_NLL, and the softmax twice of the cause: e^p over e^p and e^(1 - p)."""
    scores = torch.tensor([[[0.0, math.log(3)]], [[0.0, 0.0]]])
    label = torch.tensor([1])
    expected = 0.5 * -math.log(3 / 4) + 0.5 * -math.log(1 / 2)
    assert negative_log_likelihood(scores, label).item() == pytest.approx(expected)
    first = math.exp(0.75) / (math.exp(0.75) + math.exp(0.25))
    expected = 0.5 * -math.log(first) + 0.5 * -math.log(1 / 2)
    twice = negative_log_likelihood(scores, label, twice=True).item()
    assert twice == pytest.approx(expected, rel=1e-6)


def test_the_divergence_is_log_q_less_log_p():
    """Equation (22), log q(w) - log P(w), with the prior of Blundell et al. at one weight of 0."""
    prior = ScaleMixture(share=0.5, narrow=math.exp(-6), wide=1.0)
    at_zero = 0.5 / (math.exp(-6) * math.sqrt(2 * math.pi)) + 0.5 / math.sqrt(2 * math.pi)
    assert prior.log_density(torch.zeros(1)).item() == pytest.approx(math.log(at_zero), rel=1e-5)
    rho = math.log(math.e - 1)  # softplus of it is 1
    posterior = WeightPosterior([torch.zeros(1, 1)], [torch.full((1, 1), rho)])
    drawn = [torch.zeros(1, 1, 1)]
    expected = -0.5 * (1 + math.log(2 * math.pi)) - math.log(at_zero)
    assert posterior.divergence(drawn, prior).item() == pytest.approx(expected, rel=1e-5)


def test_equal_accuracy_is_the_ratio_of_the_shares_that_are_right():
    """Equation (26): M_Acc(G=0) / M_Acc(G=1), of labels and predictions."""
    target, predicted = [1, 0, 1, 0, 1, 1], [1, 1, 0, 0, 1, 1]
    counts = binary_confusion(target, predicted, [1, 1, 1, 0, 0, 0], n_groups=2)
    assert ratio(accuracy, counts[::-1])[0] == pytest.approx((3 / 3) / (1 / 3))


def test_the_ppv_of_section_5_3_is_the_true_positive_rate():
    """Section 5.3 prints TP / (TP + FN) for the PPV, which is TP / (TP + FP)."""
    assert true_positive_rate(COUNTS) == pytest.approx([3 / (3 + 1), 1 / (1 + 1)])
    assert positive_predictive_value(COUNTS) == pytest.approx([3 / (3 + 1), 1 / (1 + 4)])
