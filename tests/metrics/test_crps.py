"""The continuous ranked probability score and intervals of normals: integrals, simulation."""

import numpy as np
import pytest
from scipy import integrate, stats

from fairbench.metrics.regression import crps_normal_rows, normal_quantile

CASES = [(0.0, 0.0, 1.0), (1.3, 0.2, 0.5), (-4.0, 1.0, 0.3), (2.0, 2.5, 7.0), (1e3, 998.0, 4.0)]


@pytest.mark.parametrize(("y", "mean", "sd"), CASES)
def test_crps_is_the_integral_of_the_squared_distance_of_the_distributions(y, mean, sd):
    low, high = min(y, mean - 12 * sd), max(y, mean + 12 * sd)
    below, _ = integrate.quad(lambda x: stats.norm.cdf(x, mean, sd) ** 2, low, y, limit=200)
    above, _ = integrate.quad(lambda x: stats.norm.sf(x, mean, sd) ** 2, y, high, limit=200)
    (result,) = crps_normal_rows([y], [mean], [sd])
    assert result == pytest.approx(below + above, rel=1e-6)


def test_crps_of_the_mean_itself_and_limits_of_the_sd():
    (centre,) = crps_normal_rows([3.0], [3.0], [2.0])
    assert centre == pytest.approx(2 * (np.sqrt(2) - 1) / np.sqrt(np.pi))
    # A normal of no width is a point: the absolute error.
    assert crps_normal_rows([3.0], [1.0], [1e-9])[0] == pytest.approx(2, rel=1e-6)


def test_crps_is_the_energy_form_by_simulation():
    draw, n = np.random.default_rng(0), 200_000
    x, other = draw.normal(1, 2, (2, n))
    terms = np.abs(x - 2.5) - np.abs(x - other) / 2
    error = terms.std() / np.sqrt(n)
    assert abs(crps_normal_rows([2.5], [1], [2])[0] - terms.mean()) < 6 * error


def test_crps_scales_with_the_unit_and_is_symmetric():
    y, mean = np.random.default_rng(1).normal(size=(2, 30))
    sd = np.linspace(0.1, 3, 30)
    scores = crps_normal_rows(y, mean, sd)
    assert (scores > 0).all()
    np.testing.assert_allclose(crps_normal_rows(7 * y, 7 * mean, 7 * sd), 7 * scores)
    np.testing.assert_allclose(crps_normal_rows(-y, -mean, sd), scores)


def test_crps_is_proper_on_average():
    y = np.random.default_rng(2).normal(0, 1, 20_000)
    right = crps_normal_rows(y, 0 * y, 1 + 0 * y)
    for mean, sd in ((0, 0.6), (0, 1.7), (0.5, 1)):
        wrong = crps_normal_rows(y, mean + 0 * y, sd + 0 * y)
        gain = wrong - right
        assert gain.mean() > 6 * gain.std() / np.sqrt(len(y))


def test_crps_is_nan_only_where_the_sd_is_not_positive():
    scores = crps_normal_rows([1] * 4, [1] * 4, [0, -1, np.nan, 1])
    assert list(np.isnan(scores)) == [True, True, True, False]


@pytest.mark.parametrize("level", [0.01, 0.5, 0.8, 0.9, 0.95, 0.999])
def test_normal_quantile_holds_its_level(level):
    reach = normal_quantile(level)
    assert stats.norm.cdf(reach) - stats.norm.cdf(-reach) == pytest.approx(level, rel=1e-10)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_true_intervals_cover_as_often_as_they_say(level):
    draw, n = np.random.default_rng(3), 100_000
    mean, sd = draw.normal(0, 5, n), draw.uniform(0.1, 4, n)
    y = draw.normal(mean, sd)
    covered = np.abs(y - mean) <= normal_quantile(level) * sd
    assert abs(covered.mean() - level) < 5 * np.sqrt(level * (1 - level) / n)
