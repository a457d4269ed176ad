"""Equations of Ji's thesis, chapter 4 (the paper's sections 2 and 4), against numbers by hand."""

from math import exp, log

import numpy as np
import pandas as pd
import pytest

from fairbench.components.papers.few_labels.methods import (
    beta_parameters,
    measures,
    number,
)
from fairbench.components.papers.released_scores import partly_labelled
from fairbench.inference.few_labels import (
    BETA,
    LLO,
    PosteriorFamily,
    _ShownLabels,
    log_likelihood,
    plug_in,
)
from fairbench.metrics.group import difference
from fairbench.metrics.registry import accuracy, true_positive_rate


def mapped(model, score, parameters):
    """Return the calibrated score of parameters log a, log b and c."""
    coefficients = model.coefficients(np.array([parameters], dtype=float))
    return float(1 / (1 + np.exp(-coefficients @ model.features(np.array([score]))))[0, 0])


def test_delta_is_the_rate_of_the_others_less_that_of_the_privileged():
    """Section 4.2: Delta = theta_1 - theta_0."""
    table = partly_labelled(
        [0.9, 0.6, 0.2, 0.7, 0.1], list("aaabb"), [1, 0, 0, 1, 1], reference="a"
    )
    expected = 1 / 2 - 2 / 3  # b has one of two right, a two of three
    assert difference(accuracy, table.counts())[0] == pytest.approx(expected)


def test_a_beta_prior_of_one_adds_a_success_and_a_failure():
    """Section 4.3: Beta(1, 1) and 3 right of 4 give Beta(1 + 3, 1 + 1)."""
    counts = np.array([[2, 1, 0, 1]])  # TN, FP, FN, TP: 3 right of 4
    assert [float(part[0]) for part in beta_parameters(counts, accuracy, 1.0)] == [1 + 3, 1 + 1]


def test_the_beta_prior_of_a_tpr_sees_positives_alone():
    """Section 4.3: theta_g = P(decision 1 | y = 1, g)."""
    counts = np.array([[5, 4, 1, 2]])  # 2 of 3 positives found
    found = beta_parameters(counts, true_positive_rate, 1.0)
    assert [float(part[0]) for part in found] == [1 + 2, 1 + 1]


def test_calibrated_scores_are_accuracies_of_their_decisions():
    """Equation 4.1: the mean of s where it is at least 1/2, and of 1 - s elsewhere."""
    table = partly_labelled([0.9, 0.6, 0.2], list("aaa"))
    expected = (0.9 + 0.6 + (1 - 0.2)) / 3
    assert accuracy(plug_in(table))[0] == pytest.approx(expected)


def test_the_accuracy_of_a_row_is_its_probability_or_the_rest():
    """Equation 4.2, for one row a decision: z = s = 0.7, and z = 1 - s = 1 - 0.4."""
    assert accuracy(plug_in(partly_labelled([0.7], ["a"])))[0] == pytest.approx(0.7)
    assert accuracy(plug_in(partly_labelled([0.4], ["a"])))[0] == pytest.approx(1 - 0.4)


def test_a_groups_accuracy_is_of_labels_where_known_and_of_z_elsewhere():
    """Equation 4.3, with scores that are calibrated: a = b = 1, c = 0."""
    table = partly_labelled([0.9, 0.8, 0.3, 0.6], list("aaaa"), [0, 1, 0, 1])
    family = PosteriorFamily.of(table, np.random.default_rng(0), draws=128, pool_noise=False)
    rows, coefficients = np.array([0, 1]), np.array([[1.0, 1.0, 0.0]])
    counts = family.counts(rows, family.shown(rows), coefficients, np.random.default_rng(0))
    expected = (0 + 1 + (1 - 0.3) + 0.6) / 4  # labelled: one wrong, one right; then z of the others
    assert accuracy(counts)[0, 0] == pytest.approx(expected)


def test_beta_calibration_of_a_score():
    """Equation 4.4: 1 / (1 + exp(-c - a log s + b log(1 - s))), a = 2, b = 1/2, c = 0.3."""
    expected = 1 / (1 + exp(-0.3 - 2 * log(0.8) + 0.5 * log(1 - 0.8)))
    assert mapped(BETA, 0.8, [log(2), log(0.5), 0.3]) == pytest.approx(expected)


def test_beta_calibration_may_leave_scores_as_they_are_and_may_be_linear_in_the_log_odds():
    """Equation 4.4: a = b = 1 and c = 0 is the identity; a = b is linear in the log odds."""
    assert mapped(BETA, 0.8, [0, 0, 0]) == pytest.approx(0.8)
    expected = 1 / (1 + exp(-0.3 - 2 * log(0.8 / 0.2)))
    assert mapped(BETA, 0.8, [log(2), log(2), 0.3]) == pytest.approx(expected)
    assert mapped(LLO, 0.8, [log(2), 0.3]) == pytest.approx(expected)


def test_labels_are_bernoulli_of_the_calibrated_scores():
    """Equation 4.5: f(0.8) for a label 1, 1 - f(0.3) for a label 0, f the identity."""
    design = BETA.design(np.array([0.8, 0.3]), np.array([0, 0]), 1)
    found = log_likelihood(np.array([[1.0, 1.0, 0.0]]), _ShownLabels(design, np.array([1.0, 0.0])))
    assert float(found[0]) == pytest.approx(log(0.8) + log(1 - 0.3))


# Means, spreads and two groups as standard normals: mu_a, mu_b, mu_c; sigma; then each group.
NORMALS = np.array([1.0, -2.0, 0.5, 1.0, 2.0, -1.0, 1.0, 0.0, -1.0, -2.0, 1.0, 2.0])


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        pytest.param(0, (0.4 + 0.15 * 1, 0.4 + 0.15 * -2), id="4.6 and 4.9: log a"),
        pytest.param(1, (0.4 * -2 + 0.30 * 0, 0.4 * -2 + 0.30 * 1), id="4.7 and 4.10: log b"),
        pytest.param(2, (2 * 0.5 + 0.75 * -1, 2 * 0.5 + 0.75 * 2), id="4.8 and 4.11: c"),
    ],
)
def test_a_groups_parameter_is_a_shared_mean_and_a_share_of_the_spread(place, expected):
    """Equations 4.6 to 4.11: N(mu, sigma), mu of sd 0.4, 0.4, 2, sigma half-normal of .15, .75."""
    theta = BETA.from_normals(NORMALS, 2)
    assert theta[:, place] == pytest.approx(expected)


def test_alpha_scales_both_widths_of_every_prior():
    """Section 4.9.4: alpha = 3 gives N(0, 3 x 0.4) and a half-normal of 3 x 0.15."""
    expected = 3 * 0.4 + 3 * 0.15 * 1
    assert BETA.scaled(3).from_normals(NORMALS, 2)[0, 0] == pytest.approx(expected)


def test_an_error_is_the_mean_distance_and_a_coverage_the_share_of_intervals():
    """Sections 4.8.1 and 4.9.1, in points and percent: the truth is 0.10."""
    said = measures(np.array([[0.12, 0.05, 0.2], [0.06, 0.0, 0.09]]), 0.10)
    assert said["error"] == pytest.approx(100 * (0.02 + 0.04) / 2)
    assert said["coverage"] == 100 * 1 / 2


def test_a_printed_number_scatters_by_its_third_and_its_label_orders():
    """Section 4.6 holds one third out: ours, of two, each with 4 orders of variance 8."""
    # The variance over 4 orders is 6, of which the unbiased one is 6 x 4 / 3 = 8.
    rows = pd.DataFrame({"error": [3.0, 9.0], "sd": [6**0.5] * 2, "defined": [4, 4]})
    found = number(rows, coverage=False, runs=100)
    split = 18 - 8 / 4  # the variance of 3 and 9 is 18, of which 2 are the orders'
    assert found.mean == 6
    assert found.sd == pytest.approx((split + 8 / 100) ** 0.5)
    assert found.error == pytest.approx((split + 8 / 100 + 18 / 2) ** 0.5)
