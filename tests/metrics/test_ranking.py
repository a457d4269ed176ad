"""Ranks and what rests on them, against scipy and scikit-learn."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from fairbench.metrics.probability import average_ranks, mean_over_ties, roc_auc, spearman


def values_with_ties(seed, n=80):
    """Return two related columns; few distinct values where the seed is odd."""
    draw = np.random.default_rng(seed)
    a = draw.normal(size=n)
    b = 0.5 * a + draw.normal(size=n)
    return (np.round(a), np.round(b)) if seed % 2 else (a, b)


@pytest.mark.parametrize("seed", range(4))
def test_average_ranks_match_scipy(seed):
    a, _ = values_with_ties(seed)
    np.testing.assert_allclose(average_ranks(a), stats.rankdata(a, method="average"))


@pytest.mark.parametrize("seed", range(4))
def test_spearman_matches_scipy(seed):
    a, b = values_with_ties(seed)
    assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic, rel=1e-12)


def test_spearman_is_nan_where_a_side_is_constant():
    assert np.isnan(spearman([1, 1, 1], [1, 2, 3]))
    assert np.isnan(spearman([1, 2, 3], [0.5, 0.5, 0.5]))
    assert spearman([1, 2, 3], [9, 8, 1]) == pytest.approx(-1)


def test_mean_over_ties_is_the_mean_of_the_rows_with_the_same_key():
    key, draw = [3, 1, 3, 2, 1, 3], np.random.default_rng(0)
    values = draw.normal(size=6)
    means = [stats.tmean(values[np.equal(key, k)]) for k in key]
    np.testing.assert_allclose(mean_over_ties(key, values), means)


def test_mean_over_ties_keeps_values_of_distinct_keys():
    values = np.random.default_rng(1).normal(size=20)
    np.testing.assert_array_equal(mean_over_ties(np.arange(20)[::-1], values), values)


@pytest.mark.parametrize("seed", range(4))
def test_roc_auc_matches_scikit_learn(seed):
    score, noisy = values_with_ties(seed)
    target = (noisy > 0.3).astype(int)
    assert roc_auc(target, score) == pytest.approx(roc_auc_score(target, score), rel=1e-12)


def test_roc_auc_of_ties_alone_is_a_half_and_of_a_perfect_order_one():
    assert roc_auc([0, 1, 1, 0], [0.3] * 4) == 0.5
    assert roc_auc([0, 0, 1, 1], [0.1, 0.2, 0.3, 0.4]) == 1
    assert roc_auc([1, 1, 0, 0], [0.1, 0.2, 0.3, 0.4]) == 0


@pytest.mark.parametrize("target", [[0, 0, 0], [1, 1, 1], []])
def test_roc_auc_is_nan_with_one_class_only(target):
    assert np.isnan(roc_auc(target, np.linspace(0, 1, len(target))))
