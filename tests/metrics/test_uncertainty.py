"""The spread diagram: by hand, on calibrated draws, and where nothing varies."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from scipy.special import entr
from scipy.stats import wasserstein_distance

from fairbench.metrics import uncertainty as metrics


def test_groups_of_equal_size_in_the_order_of_uncertainty_by_hand():
    uncertainty = np.array([0.6, 0.1, 0.5, 0.2, 0.4, 0.3])
    residual = np.array([6.0, 1.0, 2.0, 3.0, 4.0, 8.0])
    diagram = metrics.spread_diagram(residual, uncertainty, 3)
    expected = [[2, 2, 2], [0.15, 0.35, 0.55], [1, 2, 2]]
    np.testing.assert_allclose([diagram.size, diagram.predicted, diagram.empirical], expected)
    assert diagram.error() == pytest.approx((0.85 + 1.65 + 1.45) / 3)
    assert diagram.rank_correlation() == pytest.approx(np.sqrt(0.75))


def test_more_groups_than_rows_give_one_row_each():
    diagram = metrics.spread_diagram([1.0, 2.0], [0.2, 0.1], 10)
    np.testing.assert_array_equal([diagram.size, diagram.empirical], [[1, 1], [0, 0]])


@pytest.mark.parametrize("n", [155, 23, 57])
def test_a_constant_uncertainty_has_no_rank_correlation_despite_rounding(n):
    # Means of 15 and of 16 copies of 0.22 differ in the last digit.
    draw = np.random.default_rng(n)
    for constant in np.linspace(0.01, 0.5, 50):
        residual = draw.integers(2, size=n) - draw.random(n).round(2)
        diagram = metrics.spread_diagram(residual, np.full(n, constant), 10)
        assert np.isnan(diagram.rank_correlation())


def test_a_small_spread_about_a_large_offset_is_not_lost():
    residual = 1e6 + np.tile([-1e-3, 1e-3], 50)
    diagram = metrics.spread_diagram(residual, np.repeat([1.0, 2.0], 50), 2)
    np.testing.assert_allclose(diagram.empirical, [1e-3, 1e-3], rtol=1e-6)


# Weights of the rows kept, and risk against coverage: brute force and extremes.

RATES = (0.0, 0.05, 0.1, 0.25, 1 / 3, 0.5, 0.77, 0.99)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("seed", range(4))
def test_exactly_the_share_asked_for_is_kept(rate, seed):
    """In expectation over random tie-breaks: each block of ties is filled in turn."""
    draw = np.random.default_rng(seed)
    for uncertainty in (draw.integers(4, size=24) / 10, draw.random(37), np.zeros(11)):
        kept = left = max(len(uncertainty) - round(rate * len(uncertainty)), 1)
        expected = np.zeros(len(uncertainty))
        for value in np.unique(uncertainty):
            rows = uncertainty == value
            expected[rows] = min(left / rows.sum(), 1)
            left = max(left - rows.sum(), 0)
        weights = metrics.keep_weights(uncertainty, rate)
        assert weights.sum() == pytest.approx(kept, abs=1e-9)
        np.testing.assert_allclose(weights, expected)


# Feature shift: against scipy's distance, by hand, and where values are missing or constant.


def frame(n=400, seed=0):
    draw = np.random.default_rng(seed)
    numbers = {"number": draw.normal(size=n), "tied": draw.integers(0, 5, n)}
    label = pd.Categorical(draw.choice(list("abc"), n), categories=list("abcd"))
    return pd.DataFrame({**numbers, "flag": draw.random(n) < 0.3, "label": label})


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_numeric_features_move_by_scipys_distance_in_standard_deviations(rate):
    features = frame()
    weights = metrics.keep_weights(np.round(features["number"] + 0.5 * features["tied"], 1), rate)
    result = metrics.feature_shift(features, weights)
    for moved, name in zip(result, ["number", "tied"], strict=False):
        values = features[name].to_numpy(float)
        expected = wasserstein_distance(values, values, v_weights=weights) / values.std()
        assert moved == pytest.approx(expected, rel=1e-10)


def test_categories_move_by_scipys_distance_of_their_indicators():
    # Under a 0/1 metric the distance is half the sum over categories of each indicator's.
    features = frame()
    weights = np.random.default_rng(1).random(400) * (features["label"] != "b")
    result = metrics.feature_shift(features, weights)
    for i, name in ((2, "flag"), (3, "label")):
        indicators = pd.get_dummies(features[name]).to_numpy(float).T
        moved = [wasserstein_distance(each, each, v_weights=weights) for each in indicators]
        assert result[i] == pytest.approx(sum(moved) / 2, rel=1e-10)


def test_missing_values_are_left_out_of_numbers_and_are_a_category():
    columns = {
        "x": [0.0, 1, np.nan, np.nan],
        "c": pd.Categorical(["a", "a", None, None]),
        "f": pd.array([True, True, None, None], "boolean"),
        "constant": [7, 7, 7, 7],
    }
    weights = [[1, 0, 1, 0], [1, 1, 0, 0], [0, 0, 1, 1]]
    result = metrics.feature_shift(pd.DataFrame(columns), weights)
    expected = [[1, 0, 0, 0], [0, 0.5, 0.5, 0], [np.nan, 0.5, 0.5, 0]]
    np.testing.assert_allclose(result, expected)


SHAPES = st.tuples(st.integers(1, 12), st.integers(0, 6))
PROBABILITIES = arrays(np.float64, SHAPES, elements=st.floats(0, 1))
DECOMPOSED = {
    metrics.variance_decomposition: lambda p: p * (1 - p),
    metrics.entropy_decomposition: entr,
}


@pytest.mark.parametrize("decompose", DECOMPOSED)
@settings(derandomize=True, deadline=None)
@given(members=PROBABILITIES, copies=st.integers(1, 12))
@example(members=np.array([[0.0], [5e-324]]), copies=1)
def test_parts_are_never_negative_sum_to_that_of_the_mean_and_vanish(decompose, members, copies):
    parts, mean = decompose(members), members.mean(axis=0)
    assert min(part.min(initial=0) for part in parts) == 0
    of_mean = DECOMPOSED[decompose](mean) + DECOMPOSED[decompose](1 - mean)
    np.testing.assert_allclose(parts.predictive, of_mean, atol=1e-12)
    np.testing.assert_allclose(decompose(np.stack([1 - members, members], -1)), parts, atol=1e-12)
    assert not decompose(np.repeat(members[:1], copies, axis=0)).epistemic.any()
    assert not decompose(np.round(members)).aleatoric.any()


@pytest.mark.parametrize("decompose", DECOMPOSED)
def test_parts_of_three_classes_sum_to_those_of_the_mean(decompose):
    members = np.random.default_rng(0).dirichlet([0.5, 1, 2], size=(7, 100))
    of_mean = DECOMPOSED[decompose](members.mean(axis=0))
    np.testing.assert_allclose(decompose(members).predictive, of_mean.sum(axis=-1))


# Means of groups and their ratios: closed forms, and means of 0.

LEVEL = 0.95


def test_means_are_normal_on_the_scale_of_logarithms_and_differences_as_they_are():
    draw = np.random.default_rng(0)
    parts = draw.exponential(size=40), 1.2 * draw.exponential(size=60)
    values, codes = np.concatenate(parts)[:, None], np.repeat([0, 1], [40, 60])
    result = metrics.GroupMeans.of(values, codes, 2)
    (first, second), (error, other) = (list(map(of, parts)) for of in (np.mean, stats.sem))
    relative = np.hypot(error / first, other / second)
    for found, centre, sd, turn in (
        (result.interval(LEVEL), np.log(second), other / second, np.exp),
        (result.difference(LEVEL)[1:], second - first, np.hypot(error, other), lambda x: x),
        (result.ratio(LEVEL)[1:], np.log(second / first), relative, np.exp),
    ):
        ends = turn(np.array(stats.norm.interval(LEVEL, centre, sd)))
        np.testing.assert_allclose([end[1, 0] for end in found], ends)
    inside = np.diff(stats.norm.cdf(np.log([0.8, 1.2]), np.log(second / first), relative))
    assert result.ratio_outside(0.2)[1, 0] == pytest.approx(1 - inside[0])


def test_a_mean_of_zero_has_a_ratio_of_zero_and_one_row_no_interval_and_no_row_no_mean():
    values, codes = np.array([[1.0], [3], [0], [0], [7]]), np.array([0, 0, 1, 1, 2])
    result = metrics.GroupMeans.of(values, codes, 4)
    assert result.size.tolist() == [2, 2, 1, 0]
    np.testing.assert_array_equal(result.mean[:, 0], [2, 0, 7, np.nan])
    lower, upper = result.interval(LEVEL)
    np.testing.assert_array_equal(np.isnan(lower[:, 0]), [False, False, True, True])
    found = result.ratio(LEVEL)[0][1, 0], result.ratio_outside(0.2)[1, 0], upper[1, 0]
    assert found == (0, 1, 0)


# Individual fairness against loops over rows, with ties on one point and too few rows.


def naive(features, values, k):
    """Return individual fairness, equal distances counting with their mean value."""
    fairness = np.full((len(values), k), np.nan)
    for i, own in enumerate(features):
        distance = np.delete(np.linalg.norm(features - own, axis=1), i)
        others = np.delete(values, i)
        near = [others[distance == d].mean() for d in np.sort(distance)[:k]]
        means = np.cumsum(near) / np.arange(1, len(near) + 1)
        fairness[i, : len(near)] = 1 - abs(values[i] - means)
    return fairness


@pytest.mark.parametrize("kind", ["distinct", "on points", "one point"])
def test_neighbourhoods_are_those_of_loops_over_rows(kind):
    """Points on a line at powers of two have no equal distances but those of one point."""
    draw = np.random.default_rng(0)
    features = draw.random((80, 5)).astype(np.float32).astype(float)
    if kind != "distinct":
        features = 2.0 ** draw.integers(12 if kind == "on points" else 1, size=(80, 1))
    values = draw.random(80)
    result = metrics.individual_fairness(features, 20)(values)
    np.testing.assert_allclose(result, naive(features, values, 20), atol=1e-12)


@pytest.mark.parametrize("features", [[[0], [1], [5]], [[2], [2], [2]], [[2], [2], [5]]])
def test_more_neighbours_than_there_are_rows_is_undefined(features):
    values = np.array([0.1, 0.2, 0.6])
    result = metrics.individual_fairness(features, 4)(values)
    np.testing.assert_array_equal(np.isnan(result), [[False, False, True, True]] * 3)
    np.testing.assert_allclose(result[:, 1], [1 - 0.3, 1 - 0.15, 1 - 0.45])


def test_minus_zero_is_zero():
    fairness = metrics.individual_fairness([[0.0], [-0.0], [1.0]], 1)(np.array([0.0, 1.0, 0.0]))
    np.testing.assert_allclose(fairness[:, 0], [0.0, 0.0, 0.5])
