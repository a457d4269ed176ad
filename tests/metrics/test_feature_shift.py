"""Feature shift: against scipy's distance, by hand, and where values are missing or constant."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import wasserstein_distance

from fairbench.metrics.abstention import feature_shift, keep_weights


def frame(n=400, seed=0):
    draw = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "number": draw.normal(size=n),
            "tied": draw.integers(0, 5, n),
            "flag": draw.random(n) < 0.3,
            "label": pd.Categorical(draw.choice(list("abc"), n), categories=list("abcd")),
        }
    )


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_numeric_features_move_by_scipys_distance_in_standard_deviations(rate):
    features = frame()
    weights = keep_weights(np.round(features["number"] + 0.5 * features["tied"], 1), rate)
    result = feature_shift(features, weights)
    for i, name in enumerate(["number", "tied"]):
        values = features[name].to_numpy(float)
        expected = wasserstein_distance(values, values, v_weights=weights) / values.std()
        assert result[i] == pytest.approx(expected, rel=1e-10)


def test_categories_move_by_scipys_distance_of_their_indicators():
    # Under a 0/1 metric the distance is half the sum over categories of each indicator's.
    features = frame()
    weights = np.random.default_rng(1).random(400) * (features["label"] != "b")
    result = feature_shift(features, weights)
    for i, name in ((2, "flag"), (3, "label")):
        indicators = [(features[name] == value).astype(float) for value in set(features[name])]
        moved = [
            wasserstein_distance(indicator, indicator, v_weights=weights)
            for indicator in indicators
        ]
        assert result[i] == pytest.approx(sum(moved) / 2, rel=1e-10)


def test_by_hand():
    features = pd.DataFrame({"x": [0.0, 1, 2, 3], "c": pd.Categorical(list("aabb"))})
    # The mean of x falls from 1.5 to 0.5, that of "is b" from a half to none.
    np.testing.assert_allclose(feature_shift(features, [1, 1, 0, 0]), [1 / np.sqrt(1.25), 0.5])


def test_several_sets_of_rows_at_once_and_none_shifts_when_all_are_kept():
    features = frame()
    several = np.stack([np.ones(400), np.arange(400) % 2, np.arange(400) < 30])
    result = feature_shift(features, several)
    np.testing.assert_allclose(result[0], 0, atol=1e-12)
    for row, weights in zip(result, several, strict=True):
        np.testing.assert_allclose(row, feature_shift(features, weights))
    assert feature_shift(features[[]], several).shape == (3, 0)


def test_the_unit_of_a_feature_has_no_say():
    features, kept = frame()[["number"]], np.arange(400) < 100
    one, other = feature_shift(features, kept), feature_shift(3 - 1e4 * features, kept)
    np.testing.assert_allclose(one, other)


def test_missing_values_are_left_out_of_numbers_and_are_a_category():
    features = pd.DataFrame(
        {
            "x": [0.0, 1, np.nan, np.nan],
            "c": pd.Categorical(["a", "a", None, None]),
            "f": pd.array([True, True, None, None], "boolean"),
            "constant": [7, 7, 7, 7],
        }
    )
    result = feature_shift(features, [[1, 0, 1, 0], [1, 1, 0, 0], [0, 0, 1, 1]])
    np.testing.assert_allclose(result[0], [1, 0, 0, 0])
    np.testing.assert_allclose(result[1], [0, 0.5, 0.5, 0])
    np.testing.assert_allclose(result[2], [np.nan, 0.5, 0.5, 0])
