"""Encodings: widths and names of columns, gaps, and statistics of training rows alone."""

import numpy as np
import pandas as pd
import pytest
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


def standard(train, test):
    return Encoder(Encoding.STANDARD).fit(train).transform(test)


def test_onehot_has_a_column_per_category_in_the_order_of_the_frame_and_learns_nothing():
    features = frame()
    names = ["age", "employed", "city=Bern", "city=Oslo", "city=Rome", "children"]
    assert onehot_names(features) == names
    matrix = onehot(features)
    assert matrix.dtype == np.float32
    expected = pd.get_dummies(features, prefix_sep="=")[names].astype(np.float32)
    np.testing.assert_array_equal(matrix, expected)
    encoded = Encoder(Encoding.ONEHOT).fit(frame(seed=1)).transform(features)
    np.testing.assert_array_equal(encoded.toarray(), matrix)
    assert Encoder(Encoding.NATIVE).fit(features).transform(features) is features


def test_a_wide_categorical_has_exactly_one_1_a_row():
    codes = np.random.default_rng(0).integers(300, size=500)
    column = pd.Categorical.from_codes(codes, [f"c{i}" for i in range(300)])
    matrix = onehot(pd.DataFrame({"x": column}))
    np.testing.assert_array_equal(matrix, np.eye(300)[codes])


def test_a_missing_category_is_a_row_of_zeros_and_a_missing_number_stays_missing():
    city = pd.Categorical(["Oslo", None, "Bern"])
    children = pd.array([1, None, 3], dtype="Int64")
    features = pd.DataFrame({"city": city, "income": [1.0, 2.0, np.nan], "children": children})
    expected = [[0, 1, 1, 1], [0, 0, 2, np.nan], [1, 0, np.nan, 3]]
    np.testing.assert_array_equal(onehot(features), expected)


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
    predictions = [
        XGBoost().estimator(Binomial(), 0).fit(matrix, y).predict_proba(matrix)
        for matrix in (onehot(features), sparse_onehot(features))
    ]
    np.testing.assert_array_equal(*predictions)


def test_other_rows_are_scaled_with_the_training_rows_statistics_each_on_its_own():
    train, test = frame(seed=1), frame(seed=2)
    test.loc[0, "city"] = "Rome"  # which no training row has
    encoded = standard(train, test)
    assert encoded.dtype == np.float64
    scaler = StandardScaler().fit(onehot(train).astype(float))
    np.testing.assert_allclose(encoded, scaler.transform(onehot(test).astype(float)))
    np.testing.assert_array_equal(standard(train, test[::-1]), encoded[::-1])


def test_missing_numbers_take_the_training_rows_median_and_columns_without_any_stay():
    train = pd.DataFrame({"income": [1.0, 2.0, 9.0, np.nan], "none": [np.nan] * 4})
    test = pd.DataFrame({"income": [np.nan, 2.0, 100.0], "none": [np.nan, 5.0, 1.0]})
    encoded = standard(train, test)
    assert np.isfinite(encoded).all() and encoded.shape == (3, 2)
    values = np.array([1, 2, 9, 2])
    assert encoded[:2, 0].tolist() == pytest.approx([(2 - values.mean()) / values.std()] * 2)


def test_encodings_are_found_by_name():
    assert [parse_encoding(kind.value) for kind in Encoding] == list(Encoding)
    with pytest.raises(UserError, match="^unknown encoding 'one-hot': valid: onehot, standard, na"):
        parse_encoding("one-hot")
