"""Regression metrics, against scikit-learn and scipy."""

import itertools

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import r2_score as sklearn_r2

from fairbench.metrics.regression import (
    distribution_parity,
    kolmogorov_smirnov,
    normal_nll_rows,
    r2_score,
)


@pytest.mark.parametrize("seed", range(3))
def test_r2_matches_scikit_learn(seed):
    target, noise = np.random.default_rng(seed).normal(size=(2, 50))
    for prediction in (target + noise, np.full(50, target.mean()), noise):
        expected = sklearn_r2(target, prediction)
        assert r2_score(target, prediction) == pytest.approx(expected, rel=1e-10, abs=1e-12)


def test_r2_is_nan_where_the_target_is_constant():
    assert np.isnan(r2_score([2.0, 2.0], [1.0, 3.0]))
    assert np.isnan(r2_score([2.0], [2.0]))


def test_normal_nll_matches_scipy():
    draw = np.random.default_rng(0)
    target, mean, sd = draw.normal(size=40), draw.normal(size=40), draw.uniform(0.01, 3, 40)
    expected = -stats.norm.logpdf(target, mean, sd)
    np.testing.assert_allclose(normal_nll_rows(target, mean, sd), expected, rtol=1e-12)


def test_normal_nll_is_nan_only_where_the_sd_is_not_positive():
    losses = normal_nll_rows([1, 1, 1], [1, 1, 1], [0, -1, 1])
    np.testing.assert_allclose(losses, [np.nan, np.nan, np.log(2 * np.pi) / 2])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("digits", [8, 0])
def test_kolmogorov_smirnov_matches_scipy(seed, digits):
    draw = np.random.default_rng(seed)
    a = draw.normal(0, 1, 35).round(digits)
    b = draw.normal(0.4, 1.5, 60).round(digits)
    expected = stats.ks_2samp(a, b, method="asymp").statistic
    assert kolmogorov_smirnov(a, b) == pytest.approx(expected, rel=1e-12)
    assert kolmogorov_smirnov(b, a) == pytest.approx(expected, rel=1e-12)


def test_kolmogorov_smirnov_of_equal_disjoint_and_empty_samples():
    assert kolmogorov_smirnov([1, 2, 2], [2, 1, 2]) == 0
    assert kolmogorov_smirnov([1, 2], [3, 4]) == 1
    assert np.isnan(kolmogorov_smirnov([], [1]))
    assert np.isnan(kolmogorov_smirnov([1], []))


def test_distribution_parity_is_the_largest_distance_of_any_pair():
    draw = np.random.default_rng(1)
    # The most distant groups are neither the first nor next to each other.
    samples = [draw.normal(mean, 1, 40) for mean in (0, 1.5, 0.2, -1.5)]
    expected = max(stats.ks_2samp(a, b).statistic for a, b in itertools.combinations(samples, 2))
    assert distribution_parity(samples) == pytest.approx(expected)
    assert expected == pytest.approx(kolmogorov_smirnov(samples[1], samples[3]))


def test_distribution_parity_needs_two_groups_with_rows():
    assert np.isnan(distribution_parity([[1.0, 2.0]]))
    assert np.isnan(distribution_parity([[1.0, 2.0], []]))
