"""Regression metrics, against scikit-learn and scipy."""

import numpy as np
import pytest
from scipy import stats

from fairbench.metrics import regression


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (regression.normal_nll_rows, ([1, 1], [1, 1], [0, -1])),
        (regression.crps_normal_rows, ([1] * 3, [1] * 3, [0, -1, np.nan])),
        (regression.uncertainty_aware_parity, ([[1.0]], [[1.0]])),
        (regression.uncertainty_aware_parity, ([[1.0], []], [[1.0], []])),
    ],
)
def test_no_sd_or_less_than_two_groups_have_no_value(function, arguments):
    assert np.isnan(function(*arguments)).all()


# The continuous ranked probability score and intervals of normals: integrals.


def test_normal_quantile_holds_its_level():
    levels = [0.01, 0.5, 0.8, 0.9, 0.95, 0.999]
    reach = [regression.normal_quantile(level) for level in levels]
    np.testing.assert_allclose(stats.norm.cdf(reach) - stats.norm.sf(reach), levels, rtol=1e-10)


# Parity of normal mixtures, against closed forms and distribution functions on a dense grid.

TOLERANCE = 1e-3


def groups(seed, *, scale, shifts=(0.0, 0.7), rows=60, digits=8):
    """Return means and lognormal sds of groups of rows."""
    draw = np.random.default_rng(seed)
    means = [draw.normal(shift, 1, rows + 7 * i).round(digits) for i, shift in enumerate(shifts)]
    return means, [scale * np.exp(draw.normal(0, 1, len(m))) for m in means]


@pytest.mark.parametrize("distance", [0.1, 1, 4])
@pytest.mark.parametrize("sd", [1e-3, 1, 1e3])
def test_two_normals_match_the_closed_form(distance, sd):
    expected = 2 * stats.norm.cdf(distance / 2) - 1
    result = regression.uncertainty_aware_parity([[5.0], [5 + distance * sd]], [[sd], [sd]])
    assert result <= expected + 1e-12
    assert result == pytest.approx(expected, abs=TOLERANCE)


def test_one_narrow_normal_among_wide_ones_is_not_missed():
    """Its step of one half is 1e-9 wide, and the grid's first points are of order 1 apart."""
    means, sds = [[0.0, 0.123], [0.0, 0.456]], [[1.0, 1e-9], [1.0, 1e-9]]
    assert regression.uncertainty_aware_parity(means, sds) == pytest.approx(0.5, abs=TOLERANCE)


@pytest.mark.parametrize("digits", [8, 1])
@pytest.mark.parametrize("seed", range(3))
def test_without_sds_it_is_the_parity_of_the_points(seed, digits):
    means, sds = groups(seed, scale=1, shifts=(0, 0.7, -0.1), digits=digits)
    exact = regression.distribution_distances(means).max()
    assert regression.uncertainty_aware_parity(means, [0 * s for s in sds]) == exact
    small = regression.uncertainty_aware_parity(means, [np.full_like(s, 1e-9) for s in sds])
    assert small == pytest.approx(exact, abs=TOLERANCE)


@pytest.mark.parametrize("seed", range(3))
def test_steps_among_normals_are_the_limit_of_narrow_normals(seed):
    means, sds = groups(seed, scale=0.3, digits=1)
    steps = [np.where(np.arange(len(s)) % 3, s, 0) for s in sds]
    narrow = [np.where(s > 0, s, 1e-9) for s in steps]
    assert regression.uncertainty_aware_parity(means, steps, tolerance=1e-6) == pytest.approx(
        regression.uncertainty_aware_parity(means, narrow, tolerance=1e-6), abs=2e-6
    )


def test_a_step_is_seen_from_its_left():
    """Just under 0 the distance is Phi(1 / 2), at 0 it is the smaller 1 - Phi(1 / 2)."""
    means, sds = [[0.0], [-0.5, -0.5]], [[0.0], [1.0, 1.0]]
    found = regression.uncertainty_aware_parity(means, sds, tolerance=1e-9)
    assert found == pytest.approx(stats.norm.cdf(0.5), abs=1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1e-3])
def test_what_is_no_distribution_has_no_parity(bad):
    assert np.isnan(regression.uncertainty_aware_parity([[0.0, 1.0], [2.0]], [[1.0, bad], [1.0]]))
