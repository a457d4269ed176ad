"""Effective counts: the variance of Definition 2.2, and the relations between the rhos."""

import numpy as np
import pytest

from fairbench.inference.effective_counts import (
    clip_correlation,
    effective_counts,
    half_splits,
    mean_relative_shrinkage,
    mean_shrinkage,
    overestimated_variance,
    relative_rho,
    shrinkage,
    variance_ratio,
)

FOLDS = 10


@pytest.mark.parametrize("rho", [0.0, 0.1, 0.5])
def test_mean_of_correlated_folds_has_the_variance_of_the_effective_counts(rho):
    """Row i of every fold copies a common draw with probability sqrt(rho): correlation rho."""
    draw, size, p, replications = np.random.default_rng(0), 30, 0.3, 4000
    common = draw.random((replications, size)) < p
    hits = np.empty((FOLDS, replications))
    for fold in range(FOLDS):
        copies = draw.random((replications, size)) < np.sqrt(rho)
        fresh = draw.random((replications, size)) < p
        hits[fold] = np.where(copies, common, fresh).sum(axis=1)
    mean = hits.sum(axis=0) / (FOLDS * size)
    effective = effective_counts(np.full((FOLDS, 1), size), shrinkage(rho, FOLDS))
    expected = p * (1 - p) / effective[0]
    np.testing.assert_allclose(mean.var(), expected, rtol=5 * np.sqrt(2 / replications))


def test_shrinkages_are_the_published_ones():
    assert shrinkage(1 / FOLDS, FOLDS) == pytest.approx(0.526, abs=5e-4)
    assert mean_shrinkage(FOLDS) == pytest.approx(np.log(1.9) / 0.9)
    grid = np.linspace(0, 1 / FOLDS, 2001)
    average = np.trapezoid(shrinkage(grid, FOLDS), grid) * FOLDS
    assert mean_shrinkage(FOLDS) == pytest.approx(average, rel=1e-6)
    assert shrinkage(0, FOLDS) == 1


def test_effective_counts_sum_folds_group_by_group():
    counts = np.arange(24).reshape(3, 2, 4)
    per_group = np.array([[0.5], [1.0]])
    np.testing.assert_allclose(effective_counts(counts, 0.5), counts.sum(axis=0) / 2)
    np.testing.assert_allclose(effective_counts(counts, per_group), counts.sum(axis=0) * per_group)


def test_relative_rho_makes_the_variance_ratio():
    for ratio in (0.6, 1.0, 1.8):
        rho = relative_rho(ratio, FOLDS)
        inflation = shrinkage(1 / FOLDS, FOLDS) / shrinkage(rho, FOLDS)
        assert inflation == pytest.approx(ratio)
    assert relative_rho(1.0, FOLDS, 0.07) == pytest.approx(0.07)


def test_rhos_that_no_variance_allows_are_clipped():
    np.testing.assert_allclose(clip_correlation(np.array([-3, 0.2, np.inf]), FOLDS), [-0.1, 0.2, 1])
    assert (shrinkage(np.array([-10.0, -1 / 9, 50]), FOLDS) > 0).all()
    assert relative_rho(0.0, FOLDS) == -1 / FOLDS
    assert mean_relative_shrinkage(1e9, FOLDS) == pytest.approx(np.log(10) / 9)  # rho in [0, 1]


def test_mean_relative_shrinkage_averages_up_to_rho_rel():
    assert mean_relative_shrinkage(1.0, FOLDS) == pytest.approx(mean_shrinkage(FOLDS))
    ratios = np.array([0.4, 0.8, 1.25])
    for ratio, shrunk in zip(ratios, mean_relative_shrinkage(ratios, FOLDS), strict=True):
        grid = np.linspace(0, relative_rho(ratio, FOLDS), 2001)
        average = np.trapezoid(shrinkage(grid, FOLDS), grid) / grid[-1]
        assert shrunk == pytest.approx(average, rel=1e-6)
    assert mean_relative_shrinkage(1 / 1.9, FOLDS) == pytest.approx(1)  # rho_rel is 0


def test_overestimated_variance_is_the_variance_of_one_half():
    """Halves of independent rows: (1 / 2J) sum (a - b)^2 estimates the variance of either."""
    draw, splits = np.random.default_rng(1), 20000
    halves = draw.normal(0, [1.0, 3.0], size=(splits, 2, 2))
    np.testing.assert_allclose(overestimated_variance(halves), [1, 9], rtol=5 * np.sqrt(2 / splits))


def test_each_group_has_its_variance_ratio_and_the_mean_of_all_leaves_out_the_undefined():
    halves = np.array([[[0.1, 0.4, 0.0], [0.3, 0.2, 0.0]]])
    reference = np.array([[[0.1, 0.2, 0.5], [0.2, 0.1, 0.5]]])
    each = variance_ratio(halves, reference)
    np.testing.assert_allclose(each, [4, 4, np.nan])
    assert variance_ratio(halves, reference, pooled=True) == pytest.approx(4)


def test_half_splits_are_disjoint_halves():
    for first, second in half_splits(101, 5, np.random.default_rng(0)):
        assert len(first) == len(second) == 50
        assert not set(first) & set(second)
