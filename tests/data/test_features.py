"""Encodings: widths and names of columns, gaps, and statistics of training rows alone."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import issparse
from sklearn.preprocessing import StandardScaler

from fairbench.components.algorithms.learners.xgboost import XGBoost
from fairbench.components.algorithms.losses import Binomial
from fairbench.core.errors import UserError
from fairbench.data.features import (
    Encoder,
    Encoding,
    onehot,
    onehot_names,
    parse_encoding,
    sparse_onehot,
)


def frame(n=40, seed=0):
    draw = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": draw.normal(40, 10, n),
            "employed": draw.random(n) < 0.5,
            "city": pd.Categorical(draw.choice(["Bern", "Oslo"], n), ["Bern", "Oslo", "Rome"]),
            "children": draw.integers(5, size=n),
        }
    )


def test_onehot_has_a_column_per_category_in_the_order_of_the_frame():
    features = frame()
    assert onehot_names(features) == [
        "age", "employed", "city=Bern", "city=Oslo", "city=Rome", "children"
    ]  # fmt: skip
    matrix = onehot(features)
    assert matrix.shape == (40, 6)
    assert matrix.dtype == np.float32
    np.testing.assert_allclose(matrix[:, 0], features["age"], rtol=1e-6)
    np.testing.assert_array_equal(matrix[:, 1], features["employed"])
    expected = pd.get_dummies(features["city"]).to_numpy()
    np.testing.assert_array_equal(matrix[:, 2:5], expected)
    np.testing.assert_array_equal(matrix[:, 5], features["children"])


@pytest.mark.parametrize("categories", [2, 300])
def test_a_wide_categorical_has_exactly_one_1_a_row(categories):
    codes = np.random.default_rng(0).integers(categories, size=500)
    column = pd.Categorical.from_codes(codes, [f"c{i}" for i in range(categories)])
    matrix = onehot(pd.DataFrame({"x": column}))
    assert matrix.shape == (500, categories)
    np.testing.assert_array_equal(matrix.argmax(axis=1), codes)
    np.testing.assert_array_equal(matrix.sum(axis=1), np.ones(500))


def test_a_missing_category_is_a_row_of_zeros_and_a_missing_number_stays_missing():
    features = pd.DataFrame(
        {
            "city": pd.Categorical(["Oslo", None, "Bern"]),
            "income": [1.0, 2.0, np.nan],
            "children": pd.array([1, None, 3], dtype="Int64"),
        }
    )
    expected = [[0, 1, 1, 1], [0, 0, 2, np.nan], [1, 0, np.nan, 3]]
    np.testing.assert_array_equal(onehot(features), expected)


def test_rows_without_a_category_have_the_same_columns_as_the_training_rows():
    features = frame()
    oslo = features[features["city"] == "Oslo"]
    rome = features.assign(city=pd.Categorical(["Rome"] * 40, ["Bern", "Oslo", "Rome"]))
    for encoding in (Encoding.ONEHOT, Encoding.STANDARD):
        fitted = Encoder(encoding).fit(oslo)
        encoded = [fitted.transform(rows) for rows in (rome, oslo)]
        encoded = [rows.toarray() if issparse(rows) else rows for rows in encoded]
        assert encoded[0].shape == (40, 6)
        assert np.isfinite(encoded[0]).all()
        unseen, seen = encoded[0][:, 4], encoded[1][:, 4]
        assert set(unseen) == {1.0}
        assert set(seen) == {0.0}


def test_native_leaves_the_frame_as_it_is():
    features = frame()
    assert Encoder(Encoding.NATIVE).fit(features).transform(features) is features


def test_onehot_learns_nothing():
    train, test = frame(seed=1), frame(seed=2)
    encoded = Encoder(Encoding.ONEHOT).fit(train).transform(test)
    np.testing.assert_array_equal(encoded.toarray(), onehot(test))


def test_sparse_onehot_stores_numbers_and_booleans_even_where_they_are_zero():
    features = pd.DataFrame(
        {"gain": [0.0, 5.0], "male": [False, True], "city": pd.Categorical(["Bern", None])}
    )
    matrix = sparse_onehot(features)
    assert matrix.indices.tolist() == [0, 1, 2, 0, 1]
    assert matrix.data.tolist() == [0, 0, 1, 5, 1]


def test_trees_grown_on_the_sparse_matrix_are_those_of_the_dense_one():
    draw = np.random.default_rng(0)
    features = pd.DataFrame(
        {
            "gain": np.where(draw.random(2000) < 0.7, 0, draw.normal(size=2000)),
            "male": draw.random(2000) < 0.5,
            "age": np.where(draw.random(2000) < 0.1, np.nan, draw.normal(size=2000)),
            "city": pd.Categorical(draw.choice(list("abcdefgh"), 2000)),
        }
    )
    y = (draw.random(2000) < 0.3 + 0.4 * features["male"]).astype(float)
    learner = XGBoost()
    predictions = [
        learner.estimator(Binomial(), 0).fit(matrix, y).predict_proba(matrix)
        for matrix in (onehot(features), sparse_onehot(features))
    ]
    np.testing.assert_array_equal(*predictions)


def test_standardised_training_columns_have_mean_zero_and_sd_one():
    train = frame()
    encoded = Encoder(Encoding.STANDARD).fit(train).transform(train)
    assert encoded.dtype == np.float64
    varying = [0, 1, 2, 3, 5]
    np.testing.assert_allclose(encoded.mean(axis=0), np.zeros(6), atol=1e-12)
    np.testing.assert_allclose(encoded[:, varying].std(axis=0), np.ones(5))
    np.testing.assert_array_equal(encoded[:, 4], np.zeros(40))


def test_other_rows_are_scaled_with_the_training_rows_statistics():
    train, test = frame(seed=1), frame(seed=2)
    encoded = Encoder(Encoding.STANDARD).fit(train).transform(test)
    scaler = StandardScaler().fit(onehot(train).astype(float))
    np.testing.assert_allclose(encoded, scaler.transform(onehot(test).astype(float)))
    assert np.abs(encoded.mean(axis=0)).max() > 0.1


def test_a_row_is_encoded_the_same_whatever_other_test_rows_there_are():
    train, test = frame(seed=1), frame(seed=2)
    fitted = Encoder(Encoding.STANDARD).fit(train)
    whole, order = fitted.transform(test), np.random.default_rng(0).permutation(40)
    np.testing.assert_array_equal(fitted.transform(test.iloc[order]), whole[order])
    altered = test.copy()
    altered.loc[20:, "age"] = 1e6
    np.testing.assert_array_equal(fitted.transform(altered)[:20], whole[:20])


def test_missing_numbers_take_the_training_rows_median():
    train = pd.DataFrame({"income": [1.0, 2.0, 9.0, np.nan]})
    fitted = Encoder(Encoding.STANDARD).fit(train)
    test = pd.DataFrame({"income": [np.nan, 2.0, 100.0]})
    missing, median, _ = fitted.transform(test)[:, 0]
    assert missing == median
    values = np.array([1, 2, 9, 2])
    assert median == pytest.approx((2 - values.mean()) / values.std())


def test_a_number_missing_in_all_training_rows_keeps_its_column():
    train = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [np.nan] * 3})
    test = pd.DataFrame({"a": [1.0], "b": [5.0]})
    encoded = Encoder(Encoding.STANDARD).fit(train).transform(test)
    assert encoded.shape == (1, 2)
    assert np.isfinite(encoded).all()


@pytest.mark.parametrize("name", ["onehot", "standard", "native"])
def test_encodings_are_found_by_name(name):
    assert parse_encoding(name).value == name


def test_an_unknown_encoding_is_refused_with_the_valid_names():
    with pytest.raises(UserError) as refusal:
        parse_encoding("one-hot")
    assert str(refusal.value) == "unknown encoding 'one-hot': valid: onehot, standard, native"
