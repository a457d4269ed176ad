"""Highest-density regions: sizes and contents known in closed form."""

from math import gamma, pi

import numpy as np
import pytest
from scipy import stats

from fairbench.inference.comparing.practical_difference import highest_density_region


def ellipsoid(covariance, level):
    m = len(covariance)
    ball = pi ** (m / 2) / gamma(m / 2 + 1)
    return ball * stats.chi2.ppf(level, m) ** (m / 2) * np.sqrt(np.linalg.det(covariance))


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize("correlation", [0.0, -0.8])
def test_area_of_a_normal_sample_is_that_of_its_ellipse(correlation, level):
    sds = np.array([0.03, 0.10])
    covariance = np.outer(sds, sds) * np.array([[1, correlation], [correlation, 1]])
    draws = np.random.default_rng(0).multivariate_normal([0.02, -0.1], covariance, 20000)
    region = highest_density_region(draws, level)
    assert region.size == pytest.approx(ellipsoid(covariance, level), rel=0.04)
    assert region.inside.mean() == pytest.approx(level, abs=1e-3)
    distance = np.einsum("ti,ij,tj->t", draws - draws.mean(0), np.linalg.inv(covariance),
                         draws - draws.mean(0))  # fmt: skip
    agree = (distance <= stats.chi2.ppf(level, 2)) == region.inside
    assert agree.mean() > 0.97


def test_density_integrates_to_one_and_its_threshold_bounds_the_region():
    draws = np.random.default_rng(1).normal(size=(5000, 2)) * (1, 0.01)
    region = highest_density_region(draws)
    grid = region.density
    cell = np.diff(grid.x[:2])[0] * np.diff(grid.y[:2])[0]
    assert grid.values.sum() * cell == pytest.approx(1, abs=1e-6)
    assert (grid.values >= grid.threshold).sum() * cell == pytest.approx(region.size)
    peak = np.unravel_index(grid.values.argmax(), grid.values.shape)
    assert abs(grid.x[peak[0]]) < 0.4
    assert abs(grid.y[peak[1]]) < 0.004


def test_region_of_two_clusters_leaves_the_gap_out():
    draws = np.random.default_rng(2).normal(size=(8000, 2))
    draws[:4000, 0] += 20
    region = highest_density_region(draws)
    between = region.density.values[np.abs(region.density.x - 10) < 2]
    assert (between < region.density.threshold).all()


def test_one_objective_has_the_shortest_interval():
    draws = np.random.default_rng(3).exponential(size=(20000, 1))
    region = highest_density_region(draws)
    assert region.size == pytest.approx(-np.log(0.05), rel=0.05)
    assert region.bounds[0, 0] < 0.01
    assert region.inside.mean() == pytest.approx(0.95, abs=1e-3)


def test_volume_of_three_objectives_is_that_of_the_ellipsoid():
    covariance = np.diag([1.0, 0.01, 4.0])
    covariance[0, 2] = covariance[2, 0] = 1.2
    draws = np.random.default_rng(4).multivariate_normal(np.zeros(3), covariance, 5000)
    region = highest_density_region(draws)
    assert region.size == pytest.approx(ellipsoid(covariance, 0.95), rel=0.08)
    assert region.inside.mean() == pytest.approx(0.95, abs=1e-3)


def test_dimension_that_does_not_vary_leaves_an_interval_of_no_area():
    draws = np.zeros((2000, 2))
    draws[:, 1] = np.random.default_rng(5).normal(size=2000)
    region = highest_density_region(draws)
    assert region.size == 0
    assert region.density is None
    assert region.inside.mean() == pytest.approx(0.95, abs=1e-3)


def test_objectives_that_are_almost_the_same_have_a_finite_region():
    one = np.random.default_rng(6).normal(size=4000)
    draws = np.column_stack([one, one + 1e-9 * np.random.default_rng(7).normal(size=4000)])
    region = highest_density_region(draws)
    assert np.isfinite(region.size)
    assert region.inside.mean() == pytest.approx(0.95, abs=1e-3)
    assert region.density.values.min() > -1e-4 * region.density.values.max()


def test_points_are_held_as_the_draws_are():
    draws = np.random.default_rng(6).normal(size=(4000, 2)) * (0.02, 0.3)
    region = highest_density_region(draws)
    agree = region.density.holds(draws) == region.inside
    assert agree.mean() > 0.999  # a draw on the contour may fall either way by rounding
    far = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, -9.0], [0.09, 0.0]])
    np.testing.assert_array_equal(region.density.holds(far), [True, False, False, False])
