"""Beta posteriors against scipy, quadrature and closed forms."""

from itertools import product

import numpy as np
import pytest
from scipy import integrate, stats

from fairbench.inference.beta import Beta, centred, probability_less, uniform

SHAPES = [(1.0, 1.0), (5.0, 2.0), (0.5, 0.5), (30.0, 1.0), (1.998, 0.002), (400.0, 90.0)]
ALL = Beta(*np.array(SHAPES).T)


def test_moments_and_quantiles_are_those_of_scipy():
    oracle = stats.beta(ALL.successes, ALL.failures)
    np.testing.assert_allclose(ALL.mean, oracle.mean())
    np.testing.assert_allclose(ALL.variance, oracle.var())
    np.testing.assert_allclose(ALL.interval(0.9), oracle.interval(0.9), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("point", [0.0, 0.3, 0.95, 1.0])
def test_expected_distance_from_a_point_against_quadrature(point):
    for shape, error in zip(SHAPES, ALL.absolute_error(point), strict=True):
        oracle = stats.beta(*shape)
        below = integrate.quad(oracle.cdf, 0, point, limit=200)[0]
        above = integrate.quad(oracle.sf, point, 1, limit=200)[0]
        assert error == pytest.approx(below + above, abs=1e-8)


def test_comparison_of_whole_counts_against_the_closed_form():
    """P(theta_1 < theta_2) is a finite sum for whole parameters (Cook 2005)."""
    from scipy.special import betaln

    a, b, c, d = 4, 3, 6, 2
    i = np.arange(c)
    terms = betaln(a + i, b + d) - np.log(d + i) - betaln(1 + i, d) - betaln(a, b)
    value = probability_less(
        *(Beta(*np.array(parameters, float)) for parameters in ((a, b), (c, d)))
    )
    assert value == pytest.approx(np.exp(terms).sum(), abs=1e-9)


@pytest.mark.parametrize(("margin", "error"), [(0.0, 2e-4), (0.05, 2e-3), (-0.2, 2e-3)])
def test_comparison_against_quadrature(margin, error):
    grid = (np.arange(10000) + 0.5) / 10000
    pairs = Beta(ALL.successes[:, None], ALL.failures[:, None])
    less = probability_less(pairs, ALL, margin=margin)
    quantiles = stats.beta(pairs.successes, pairs.failures).ppf(grid)
    for (i, first), (j, second) in product(enumerate(SHAPES), repeat=2):
        # With a margin, a distribution that is all but a point at 1 is out of its reach.
        if first != second and not (margin and 0.002 in (*first, *second)):
            above = stats.beta(*second).sf(quantiles[i] + margin).mean()
            assert less[i, j] == pytest.approx(above, abs=error)


def test_a_share_is_less_than_its_like_half_of_the_time():
    pairs = Beta(ALL.successes[:4], ALL.failures[:4])
    np.testing.assert_allclose(probability_less(pairs, pairs), 0.5, atol=1e-8)


def test_priors_are_worth_their_strength():
    np.testing.assert_array_equal(uniform(3).successes, [1, 1, 1])
    prior = centred([0.2, 1.0], 10.0)
    np.testing.assert_allclose(prior.strength, 10)
    np.testing.assert_allclose(prior.mean, [0.2, 0.999])
    posterior = prior.after(np.array([8, 0]), np.array([2, 0]))
    np.testing.assert_allclose(posterior.mean, [0.5, 0.999])
