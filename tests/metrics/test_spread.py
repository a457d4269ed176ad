"""The spread diagram: by hand, on calibrated draws, and where nothing varies."""

import numpy as np
import pytest

from fairbench.metrics.spread import spread_diagram


def test_groups_of_equal_size_in_the_order_of_uncertainty_by_hand():
    uncertainty = np.array([0.6, 0.1, 0.5, 0.2, 0.4, 0.3])
    residual = np.array([6.0, 1.0, 2.0, 3.0, 4.0, 8.0])
    diagram = spread_diagram(residual, uncertainty, 3)
    np.testing.assert_array_equal(diagram.size, [2, 2, 2])
    np.testing.assert_allclose(diagram.predicted, [0.15, 0.35, 0.55])
    np.testing.assert_allclose(diagram.empirical, [1, 2, 2])
    assert diagram.error() == pytest.approx((0.85 + 1.65 + 1.45) / 3)
    assert diagram.rank_correlation() == pytest.approx(np.sqrt(0.75))


@pytest.mark.parametrize("groups", [1, 4, 7])
def test_empirical_spread_is_the_population_sd_of_each_group(groups):
    draw = np.random.default_rng(groups)
    uncertainty, residual = draw.random(50), draw.normal(3, 1, 50)
    diagram = spread_diagram(residual, uncertainty, groups)
    parts = np.array_split(np.argsort(uncertainty), groups)
    np.testing.assert_allclose(diagram.empirical, [residual[part].std() for part in parts])
    np.testing.assert_allclose(diagram.predicted, [uncertainty[part].mean() for part in parts])


def test_error_weighs_groups_by_their_size():
    diagram = spread_diagram([1, -1, 1, -1, 5], [0, 0, 0, 0, 1], 2)
    np.testing.assert_array_equal(diagram.size, [3, 2])
    # A tied row counts with the moments of all four: mean 0, mean square 1.
    second = np.sqrt((1 + 5**2) / 2 - ((0 + 5) / 2) ** 2)
    np.testing.assert_allclose(diagram.empirical, [1, second])
    assert diagram.error() == pytest.approx((3 * 1 + 2 * abs(second - 0.5)) / 5)


def test_rows_with_equal_uncertainty_are_exchangeable():
    uncertainty = np.repeat([0.1, 0.4], [7, 5])
    residual = np.random.default_rng(0).normal(size=12)
    first = spread_diagram(residual, uncertainty, 4)
    order = np.r_[np.arange(7)[::-1], np.arange(7, 12)[::-1]]
    second = spread_diagram(residual[order], uncertainty, 4)
    np.testing.assert_allclose(first.empirical, second.empirical, rtol=1e-12)
    assert first.empirical[0] == pytest.approx(residual[:7].std())


def test_more_groups_than_rows_give_one_row_each():
    diagram = spread_diagram([1.0, 2.0], [0.2, 0.1], 10)
    np.testing.assert_array_equal(diagram.size, [1, 1])
    np.testing.assert_array_equal(diagram.empirical, [0, 0])


def test_a_calibrated_sd_has_a_small_error_and_perfect_rank_correlation():
    draw = np.random.default_rng(3)
    sd = draw.uniform(0.1, 2, 20_000)
    diagram = spread_diagram(sd * draw.standard_normal(20_000), sd, 10)
    assert diagram.error() < 0.02
    assert diagram.rank_correlation() == pytest.approx(1)
    doubled = spread_diagram(sd * draw.standard_normal(20_000), 2 * sd, 10)
    assert doubled.error() == pytest.approx(sd.mean(), abs=0.05)


@pytest.mark.parametrize("sign", [1, -1])
def test_rank_correlation_has_the_sign_of_the_relation(sign):
    draw = np.random.default_rng(4)
    sd = draw.uniform(0.1, 2, 5000)
    diagram = spread_diagram(sd * draw.standard_normal(5000), 3 + sign * sd, 10)
    assert diagram.rank_correlation() == pytest.approx(sign, abs=0.05)


@pytest.mark.parametrize("n", [155, 23, 57])
def test_a_constant_uncertainty_has_no_rank_correlation_despite_rounding(n):
    # Means of 15 and of 16 copies of 0.22 differ in the last digit.
    draw = np.random.default_rng(n)
    for constant in np.linspace(0.01, 0.5, 50):
        residual = draw.integers(2, size=n) - draw.random(n).round(2)
        diagram = spread_diagram(residual, np.full(n, constant), 10)
        assert np.isnan(diagram.rank_correlation())


def test_a_small_spread_about_a_large_offset_is_not_lost():
    residual = 1e6 + np.tile([-1e-3, 1e-3], 50)
    diagram = spread_diagram(residual, np.repeat([1.0, 2.0], 50), 2)
    np.testing.assert_allclose(diagram.empirical, [1e-3, 1e-3], rtol=1e-6)
