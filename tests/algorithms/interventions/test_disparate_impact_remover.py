"""Quantile repair: closed forms, equal distributions, every layout of a frame, one frame a bag."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from fairbench.components.algorithms.interventions.disparate_impact_remover import (
    DisparateImpactRemover,
)
from fairbench.components.algorithms.learners.xgboost import XGBoost
from fairbench.data.features import Encoding, sparse_onehot
from tests.algorithms.interventions.encoded import Rows, rows, wrapped


class Seen:
    """An estimator that remembers what it is shown."""

    def fit(self, X, y, sample_weight=None):
        self.training = X
        return self

    def predict(self, X):
        self.test = X
        return np.zeros(X.shape[0])


def repaired(X, groups, level=1.0, test=None, test_groups=None):
    """Return the training and the test frame that an estimator would see."""
    seen = Seen()
    model = DisparateImpactRemover(level).wrap(seen, 0)
    Rows(X, np.zeros(X.shape[0]), pd.Series(groups)).fit(model)
    test, test_groups = (X, groups) if test is None else (test, test_groups)
    Rows(test, None, pd.Series(test_groups)).outputs(model)
    return seen.training, seen.test


GROUPS = list("aaabbb")


@pytest.mark.parametrize("level", [0.0, 0.25, 1.0])
def test_closed_form_for_two_groups(level):
    X = np.array([[1.0], [2], [3], [10], [40], [20]])
    full = np.array([[5.5], [11], [21.5], [5.5], [21.5], [11]])
    training, test = repaired(X, GROUPS, level)
    np.testing.assert_allclose(training, (1 - level) * X + level * full)
    np.testing.assert_array_equal(test, training)


def test_the_target_is_hazens_quantile_of_the_median_group():
    draw = np.random.default_rng(0)
    samples = [draw.normal(size=20), draw.normal(3, 2, size=33), draw.normal(9, size=57)]
    groups = np.repeat(list("abc"), [20, 33, 57])
    training, _ = repaired(np.concatenate(samples)[:, None], groups)
    shares = (np.arange(20) + 0.5) / 20
    quantiles = [np.quantile(sample, shares, method="hazen") for sample in samples]
    np.testing.assert_allclose(np.sort(training[:20, 0]), np.median(quantiles, axis=0))


def test_missing_numbers_stay_missing_and_do_not_count():
    X = np.array([[1.0], [np.nan], [2], [3], [10], [40], [np.nan], [20]])
    training, _ = repaired(X, list("aaaabbbb"))
    np.testing.assert_allclose(training[:, 0], [5.5, np.nan, 11, 21.5, 5.5, 21.5, np.nan, 11])


def test_a_group_without_training_values_takes_its_quantile_among_all():
    X = np.array([[1.0], [2], [3], [10], [40], [20]])
    strangers = np.array([[0.0], [6.5], [99], [np.nan]])
    _, test = repaired(X, GROUPS, test=strangers, test_groups=["c"] * 4)
    np.testing.assert_allclose(test[:, 0], [5.5, 11, 21.5, np.nan])
    never = np.column_stack([X[:, 0], [np.nan, np.nan, np.nan, 1, 2, 3]])
    _, test = repaired(never, GROUPS, test=np.array([[2.0, 2.0]]), test_groups=["a"])
    np.testing.assert_allclose(test, [[11, 2]])


def test_indicators_are_left_alone():
    X = np.column_stack([[0.0, 0, 1, 1, 1, 0], [1.0, 2, 3, 10, 40, 20]])
    training, _ = repaired(X, GROUPS)
    np.testing.assert_array_equal(training[:, 0], X[:, 0])
    assert (training[:, 1] != X[:, 1]).any()


@pytest.fixture
def features():
    draw = np.random.default_rng(2)
    return pd.DataFrame(
        {
            "whole": draw.integers(0, 4, 60),
            "city": pd.Categorical(draw.choice(["x", "y", "z"], 60)),
            "real": np.where(draw.random(60) < 0.1, np.nan, draw.normal(size=60)),
            "flag": draw.random(60) < 0.5,
        }
    )


def test_sparse_rows_are_repaired_as_dense_ones_and_keep_their_layout(features):
    groups = np.repeat(["a", "b"], 30)
    sparse = sparse_onehot(features)
    dense, _ = repaired(sparse.toarray(), groups)
    _, ours = repaired(sparse, groups)
    assert isinstance(ours, csr_matrix)
    assert ours.dtype == sparse.dtype
    np.testing.assert_array_equal(ours.indices, sparse.indices)
    np.testing.assert_array_equal(ours.indptr, sparse.indptr)
    np.testing.assert_array_equal(ours.toarray(), dense)
    assert (ours.data != sparse.data).any()


def test_data_frames_keep_what_is_no_number(features):
    groups = np.repeat(["a", "b"], 30)
    training, _ = repaired(features, groups)
    assert list(training.columns) == list(features.columns)
    pd.testing.assert_frame_equal(training[["city", "flag"]], features[["city", "flag"]])
    dense, _ = repaired(features[["whole", "real"]].to_numpy(float), groups)
    np.testing.assert_allclose(training[["whole", "real"]].to_numpy(float), dense)
    assert features["whole"].dtype.kind == "i"


def test_members_of_a_bag_share_one_frame():
    train, test = rows(Encoding.ONEHOT)
    intervention = DisparateImpactRemover()
    models = [train.fit(wrapped(intervention, XGBoost())) for _ in "123"]
    assert len({id(model.repair.training) for model in models}) == 1
    scores = [test.outputs(model)["score"] for model in models]
    np.testing.assert_array_equal(scores[0], scores[2])
    other = Rows(train.X, train.y, train.groups.iloc[::-1])
    assert other.fit(wrapped(intervention, XGBoost())).repair is not models[0].repair
