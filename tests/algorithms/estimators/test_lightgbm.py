"""LightGBM: the package called directly, sparse frames, and weights as copies of rows."""

import fairgbm
import numpy as np
import pytest
from scipy.sparse import csr_matrix

from fairbench.components.algorithms.learners.lightgbm import LightGBM
from fairbench.components.algorithms.losses import Binomial, SquaredError
from fairbench.core.errors import UserError

both = pytest.mark.parametrize(
    ("loss", "objective"), [(Binomial(), "binary"), (SquaredError(), "regression")]
)


@pytest.fixture(scope="module")
def rows():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(400, 4)).astype(np.float32)
    return X, (X[:, 0] + draw.normal(size=400) > 0).astype(float)


def output(model, X):
    return model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else model.predict(X)


@both
@pytest.mark.parametrize("share", [1.0, 0.6])
def test_equals_the_package_called_directly(rows, loss, objective, share):
    X, y = rows
    learner = LightGBM(rounds=15, num_leaves=7, learning_rate=0.2, subsample=share)
    ours = output(learner.estimator(loss, 4).fit(X, y), X)
    parameters = {
        "objective": objective,
        "num_leaves": 7,
        "learning_rate": 0.2,
        "bagging_fraction": share,
        "bagging_freq": 1,
        "seed": 4,
        "num_threads": 1,
        "verbosity": -1,
    }
    theirs = fairgbm.train(parameters, fairgbm.Dataset(X, y), 15).predict(X)
    assert ours.dtype == np.float64
    np.testing.assert_array_equal(ours, theirs)


@both
def test_a_sparse_frame_gives_the_same(rows, loss, objective):
    X, y = rows
    dense, sparse = (
        output(LightGBM(rounds=10).estimator(loss, 0).fit(matrix, y), matrix)
        for matrix in (X, csr_matrix(X))
    )
    np.testing.assert_array_equal(dense, sparse)


@both
def test_whole_weights_are_copies_and_others_weigh(rows, loss, objective):
    X, y = rows
    learner, counts = LightGBM(rounds=10), np.random.default_rng(1).integers(0, 3, size=400)
    index = np.repeat(np.arange(400), counts)
    weighted = learner.estimator(loss, 0).fit(X, y, sample_weight=counts.astype(float))
    copied = learner.estimator(loss, 0).fit(X[index], y[index])
    np.testing.assert_array_equal(output(weighted, X), output(copied, X))
    heavier = learner.estimator(loss, 0).fit(X, y, sample_weight=np.where(y == 1, 2.5, 1))
    assert output(heavier, X).mean() > output(copied, X).mean() + 0.05


def test_the_seed_matters_where_the_learner_says_so(rows):
    X, y = rows
    for learner in (LightGBM(rounds=5), LightGBM(rounds=5, colsample_bytree=0.5)):
        one, other = (output(learner.estimator(Binomial(), s).fit(X, y), X) for s in (0, 1))
        assert np.array_equal(one, other) != learner.capabilities.seeded


def test_refuses_what_the_package_would_refuse_late():
    with pytest.raises(UserError, match="learner.num_leaves is 1"):
        LightGBM(num_leaves=1)
