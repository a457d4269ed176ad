"""Scores of probabilities and of claimed standard deviations, against scikit-learn and by hand."""

import numpy as np
import pytest
from scipy import stats

from fairbench.metrics import probability
from fairbench.metrics.probability import bins_of_mass, reliability, spearman


def test_log_loss_of_a_certain_mistake_is_finite_and_set_by_the_floor():
    for scores, floor, loss in (
        ([0, 1], {}, -np.log(1e-15)), ([0, 1], {"floor": 0.01}, -np.log(0.01)), ([1, 0], {}, 0),
    ):  # fmt: skip
        rows = probability.log_loss_rows([1, 0], scores, **floor)
        np.testing.assert_allclose(rows, [loss] * 2, rtol=1e-4, atol=1e-14)


def test_nll_of_sd_by_hand():
    target, prediction, sd = [1, 1, 1, 1, 0], [0.6, 0.5, 1, 1, 1], [0.4, 0.4, 0.7, 0.0, -0.3]
    of_target = [0.8, 0.2, 0.5, 0.999, 0.001]
    np.testing.assert_allclose(probability.nll_of_sd(target, prediction, sd), -np.log(of_target))


def test_bins_include_their_upper_end_and_the_first_includes_zero():
    diagram = reliability([0, 1, 0, 1, 1], np.array([0, 0.25, 0.5, 0.75, 1]), bins=4)
    np.testing.assert_array_equal(diagram.size, [2, 1, 1, 1])
    np.testing.assert_allclose(diagram.mean_score, [0.125, 0.5, 0.75, 1])
    np.testing.assert_allclose(diagram.base_rate, [0.5, 0, 1, 1])


def test_equal_scores_are_in_one_bin_wherever_a_boundary_would_fall():
    target, score = np.array([1, 1, 0, 0, 0, 0]), np.array([0.4, 0.4, 0.4, 0.4, 0.9, 0.9])
    for order in (np.arange(6), np.arange(6)[::-1], np.array([2, 0, 3, 1, 5, 4])):
        diagram = reliability(target[order], score[order], bins=3, equal_mass=True)
        np.testing.assert_array_equal(diagram.size, [4, 2])
        np.testing.assert_allclose(diagram.base_rate, [0.5, 0])
        assert diagram.expected_calibration_error() == pytest.approx((0.1 + 0.1 + 0.9) / 3)


def test_bins_of_equal_mass_do_not_depend_on_the_order_of_rows():
    draw = np.random.default_rng(5)
    score, codes = draw.integers(0, 9, 200) / 10, draw.integers(0, 3, 200)
    weight, order = draw.choice([0.5, 1.0, 4.0], 200), draw.permutation(200)
    bins = bins_of_mass(score, codes, 3, 6, weight=weight)
    assert len({*zip(codes, score, bins, strict=True)}) == len({*zip(codes, score, strict=True)})
    shuffled = bins_of_mass(score[order], codes[order], 3, 6, weight=weight[order])
    np.testing.assert_array_equal(shuffled, bins[order])


def test_more_bins_of_equal_mass_than_rows_leave_empty_bins_out():
    diagram = reliability([0, 1], [0.2, 0.9], bins=15, equal_mass=True)
    np.testing.assert_array_equal(diagram.size, [1, 1])
    assert diagram.expected_calibration_error() == pytest.approx(0.15)


# Ranks, against scipy.


@pytest.mark.parametrize("decimals", [0, 9])
def test_spearman_matches_scipy_and_is_nan_where_a_side_is_constant(decimals):
    a, b = np.random.default_rng(decimals).normal(size=(2, 80))
    a, b = np.round(a, decimals), np.round(a + b, decimals)
    assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic, rel=1e-12)
    assert np.isnan([spearman(a, 0 * b), spearman(0 * a, b)]).all()
