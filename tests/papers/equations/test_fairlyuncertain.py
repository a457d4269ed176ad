"""Equations and definitions of FairlyUncertain, each against a number worked out by hand."""

from math import log, pi, sqrt

import numpy as np
import pandas as pd
import pytest

from fairbench.components.algorithms.learners.xgboost import XGBoost
from fairbench.components.algorithms.losses import Binomial, NormalLoss
from fairbench.components.algorithms.methods.binomial_nll import BinomialNLL
from fairbench.components.algorithms.methods.ensemble import Ensemble
from fairbench.components.papers.fairlyuncertain.tables import (
    INCLUDED,
    RATES,
    chosen_metrics,
    error_of_labels,
    probability_of_sd,
    together,
    unclipped_nll,
)
from fairbench.data.dataset import Task
from fairbench.evaluation.predictions import Labelled
from fairbench.evaluation.table import MetricTable, concatenate
from fairbench.evaluation.uncertainties import evaluate_consistency
from fairbench.metrics.probability import nll_of_sd
from fairbench.metrics.registry import BINARY, metrics_of
from fairbench.metrics.regression import (
    distribution_parity,
    normal_nll_rows,
    uncertainty_aware_parity,
)
from fairbench.metrics.uncertainty import spread_diagram

# A bag of four: three members find 1 likelier, one 0.
BAG = {"score": np.array([[0.9, 0.7, 0.6, 0.2]])}
GAPS = metrics_of(BINARY, "widest")
# TN, FP, FN, TP of the group a', then of the group a.
COUNTS = np.array([[40.0, 10.0, 20.0, 30.0], [30.0, 30.0, 10.0, 30.0]])


def read(method, raw):
    return method.read(raw, Task.BINARY, np.random.default_rng(0))


def test_axiom_2_3_consistency_is_the_largest_sd_of_a_persons_uncertainties():
    """Axiom 2.3 and Table 1: of people with (0.1, 0.3) and (0.2, 0.2) the sds are 0.1 and 0."""
    table = MetricTable(frequentist=False, splits=(0,))
    evaluate_consistency(table, {"5": np.array([0.1, 0.2]), "6": np.array([0.3, 0.2])})
    rows = concatenate([table], [(0, 0, "")]).set_index("metric")
    assert rows.loc["consistency_max_sd", "value"] == pytest.approx(max((0.3 - 0.1) / 2, 0))


def test_axiom_2_4_a_groups_spread_is_the_sd_of_its_residuals():
    """Axiom 2.4, section 4: residuals -1 and 1 have the sd 1; those of the other half -3 and 3."""
    found = spread_diagram([-1.0, 1.0, -3.0, 3.0], [0.5, 0.5, 2.5, 2.5], groups=2)
    np.testing.assert_allclose(np.asarray(found.empirical), [1.0, 3.0])


def test_the_ensemble_has_the_majoritys_label_and_the_sd_of_its_probabilities():
    """Section 4.1: the mean is 0.6, the squares 0.09, 0.01, 0 and 0.16."""
    found = read(Ensemble(members=4, reading="majority"), BAG)
    assert found["prediction"].item() == 1
    assert found["uncertainty"].item() == pytest.approx(sqrt((0.09 + 0.01 + 0 + 0.16) / 4))


def test_the_selective_ensemble_has_the_p_value_of_its_votes():
    """Section 4.1: one vote of four or fewer, on either side: 2 (1 + 4) / 16."""
    found = read(Ensemble(members=4, reading="sign_test"), BAG)
    assert found["uncertainty"].item() == pytest.approx(2 * (1 + 4) / 16)


def test_self_inconsistency_is_twice_the_product_of_votes_over_the_pairs():
    """Section 4.1: 2 k0 k1 / (k (k - 1)) with one and three votes of four."""
    found = read(Ensemble(members=4, reading="disagreement"), BAG)
    assert found["uncertainty"].item() == pytest.approx(2 * 1 * 3 / (4 * 3))


def test_binomial_nll_claims_the_sd_of_a_label():
    """Section 4.1: sqrt(0.2 (1 - 0.2)) = 0.4."""
    assert read(BinomialNLL(), {"score": np.array([0.2])})["sd"].item() == pytest.approx(0.4)


def test_the_normal_likelihood_has_plus_log_sd():
    """Section 4.2: at y = 3, mean 1, sd 2, log 2 + (2 / 2)^2 / 2, and half log 2 pi.

    The text prints minus log sd, which has no least value: it falls without end in sd.
    """
    expected = log(2) + 0.5 * ((3 - 1) / 2) ** 2 + 0.5 * log(2 * pi)
    assert normal_nll_rows([3.0], [1.0], [2.0]).item() == pytest.approx(expected)
    as_printed = [-log(sd) + 0.5 * (2 / sd) ** 2 for sd in (1.0, 10.0, 1e3, 1e6)]
    assert as_printed == sorted(as_printed, reverse=True)


def test_beta_nll_weights_the_gradient_by_the_sd():
    """Section 4.2 with beta 1/2: sd^(2/2) = 2 times -(y - m) / sd^2 = -2 / 4."""
    raw = np.array([[1.0, log(2)]])
    mean, scale = NormalLoss("beta_nll").gradient(np.array([3.0]), raw)[0]
    assert mean == pytest.approx(2 * (-2 / 4))
    assert scale == pytest.approx(2 * (1 - (2 / 2) ** 2))


def test_faithful_nll_gives_the_mean_the_gradient_of_squared_error():
    """Section 4.2: the mean's is m - y = -2, the scale's that of the likelihood, 1 - 1."""
    gradient = NormalLoss("faithful_nll").gradient(np.array([3.0]), np.array([[1.0, log(2)]]))
    np.testing.assert_allclose(gradient, [[1 - 3, 1 - (2 / 2) ** 2]], atol=1e-12)


def test_the_probability_of_an_sd_lies_on_its_predictions_side():
    """Appendix D: of 0.4, (1 -+ sqrt(1 - 4 * 0.16)) / 2 = (1 -+ 0.6) / 2."""
    found = probability_of_sd([0, 1], [0.4, 0.4])
    np.testing.assert_allclose(found, [(1 - 0.6) / 2, (1 + 0.6) / 2])


def test_the_likelihood_of_an_sd_clips_nothing():
    """Appendix D.1: an sd of 0.4, wrong: -log 0.2. One of 0, wrong: without end; clipped 6.9."""
    assert unclipped_nll([0], [1], [0.4]).item() == pytest.approx(-log(0.2))
    assert unclipped_nll([0], [1], [0.0]).item() > 30
    assert nll_of_sd([0], [1], [0.0]).item() == pytest.approx(-log(0.001))


def test_the_calibration_error_is_of_right_labels():
    """Appendix D.1: bins of 0.2 (half right) and 0.9 (all right), two people each.

    (2 / 4) |0.5 - 0.2| + (2 / 4) |1 - 0.9|. No such error is above 1; Table 7 prints up to 1.79.
    """
    found = error_of_labels([0, 1, 1, 1], [0, 0, 1, 1], [0.2, 0.2, 0.9, 0.9])
    assert found == pytest.approx(0.5 * abs(0.5 - 0.2) + 0.5 * abs(1 - 0.9))
    assert error_of_labels([1, 1], [0, 0], [1.0, 1.0]) == 1


def test_definition_6_1_is_the_largest_distance_of_two_distributions():
    """Definition 6.1: below 2 are two thirds of (1, 1, 3) and none of (2, 3)."""
    assert distribution_parity([[1.0, 1.0, 3.0], [2.0, 3.0]]) == pytest.approx(2 / 3)


def test_definition_6_2_is_that_of_normals():
    """Definition 6.2: N(0, 1) and N(2, 1) are furthest apart at 1, Phi(1) - Phi(-1) = 0.6827."""
    found = uncertainty_aware_parity([[0.0], [2.0]], [[1.0], [1.0]])
    assert found == pytest.approx(0.8413447 - 0.1586553, abs=1e-6)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (GAPS["statistical_parity"], (30 + 30) / 100 - (10 + 30) / 100),  # equation 3
        (GAPS["equalized_odds"], max(30 / 60 - 10 / 50, 30 / 40 - 30 / 50)),  # equation 4
        (GAPS["equal_opportunity"], 30 / 40 - 30 / 50),  # equation 5
        (GAPS["disparate_impact"], ((30 + 30) / 100) / ((10 + 30) / 100)),  # equation 6
        (GAPS["predictive_parity"], 30 / 40 - 30 / 60),  # equation 7
        (GAPS["false_positive_rate_gap"], 30 / 60 - 10 / 50),  # equation 8
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_metrics_of_appendix_i_are_gaps_of_two_groups(metric, expected):
    """Equations 3 to 8; disparate impact, equation 6, is a ratio."""
    assert metric(COUNTS) == pytest.approx(expected)


def tree(gamma):
    """Return the two leaves of a single tree: a start of 3/4, and one split between 0 and 1."""
    learner = XGBoost(rounds=1, max_depth=1, learning_rate=1.0, min_child_weight=0.0, gamma=gamma)
    X, y = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([0.0, 1.0, 1.0, 1.0])
    model = learner.estimator(Binomial(), 0).fit(X, y)
    p = model.predict_proba(np.array([[0.0], [1.0]]))[:, 1]
    return np.log(p / (1 - p)) - log(0.75 / 0.25)


def test_equation_1_a_leaf_is_minus_its_gradients_over_its_curvatures():
    """Equation 1 and the binomial derivatives p - y and p (1 - p), with p = 3/4 and lambda = 1.

    Left: -(0.75 - 0.25) / (2 * 0.1875 + 1); right: 2 * 0.25 / (2 * 0.1875 + 1).
    """
    raw = np.full((2, 1), log(3))
    np.testing.assert_allclose(Binomial().gradient(np.array([0.0, 1.0]), raw)[:, 0], [0.75, -0.25])
    np.testing.assert_allclose(Binomial().curvature(np.array([0.0, 1.0]), raw)[:, 0], [0.1875] * 2)
    np.testing.assert_allclose(tree(0.0), [-0.5 / 1.375, 0.5 / 1.375], rtol=1e-4)


def test_equation_2_xgboost_compares_gamma_with_twice_the_gain():
    """Equation 2: the gain is (0.5^2 / 1.375 + 0.5^2 / 1.375 - 0) / 2 = 0.18.

    The text's equation refuses this split from a gamma of 0.18 on, XGBoost from 0.36 on.
    """
    gain = 0.5 * (0.25 / 1.375 + 0.25 / 1.375 - 0)
    assert tree(1.9 * gain).any()
    assert not tree(2.1 * gain).round(6).any()


def people(prediction, uncertainty):
    groups = {"sex": pd.Series(pd.Categorical(["a", "b"] * 4, ["a", "b"]))}
    predictions = pd.DataFrame({"prediction": prediction, "uncertainty": uncertainty})
    return Labelled(np.array([0.0, 0, 0, 0, 1, 1, 1, 1]), predictions, groups, Task.BINARY)


def test_the_share_left_out_has_the_least_normalised_sum():
    """Section 5: leaving out the one wrong person, an eighth, ends error and gaps: 0 of 3.

    Nobody left out: 1 + 1 + 1. From 13 % on the most uncertain of eight is left out.
    """
    wrong = people([0, 0, 0, 1, 1, 1, 1, 1], [0.1, 0.1, 0.1, 0.5, 0.1, 0.1, 0.1, 0.1])
    every = ("error_rate", "statistical_parity", "equalized_odds")
    found = chosen_metrics(wrong, wrong, every, together)
    assert found["error_rate"] == 0
    assert found["equalized_odds"] == 0
    assert found[INCLUDED] == pytest.approx(100 * 7 / 8)


def test_people_of_one_uncertainty_are_kept_together():
    """Section 5, Figure 5's flat lines: of (0.1, 0.3, 0.3, 0.3) up to three quarters keep all."""
    kept = together(np.array([0.1, 0.3, 0.3, 0.3]), RATES)
    assert (kept.sum(axis=1) == 4).all()


def test_example_e_1_leaves_a_true_positive_rate_of_nobody():
    """Example E.1: B's positives are all left out; the text has a rate of 0, which is 0 / 0."""
    before = np.array([[5.0, 0, 0, 5], [5.0, 0, 0, 5]])
    after = np.array([[5.0, 0, 0, 5], [5.0, 0, 0, 0]])
    assert GAPS["equalized_odds"](before) == 0
    assert np.isnan(GAPS["equalized_odds"](after))
