"""Boosted trees: LightGBM as its package, XGBoost under our losses, and its tuning."""

import fairgbm
import numpy as np
import pytest
from scipy.sparse import csr_matrix

from fairbench.components.algorithms.estimators import xgboost as shared
from fairbench.components.algorithms.learners.lightgbm import LightGBM
from fairbench.components.algorithms.learners.xgboost import XGBoost
from fairbench.components.algorithms.learners.xgboost_tuned import TunedXGBoost
from fairbench.components.algorithms.losses import Binomial, NormalLoss, SquaredError


@pytest.fixture(scope="module")
def rows():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(500, 4)).astype(np.float32)
    return X, X[:, 0] + np.exp(X[:, 1] / 2) * draw.normal(size=500)


def fit(loss, rows, weight=None, **options):
    X, y = rows
    return XGBoost(**options).estimator(loss, 0).fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("depth", [2, 6])
def test_the_faithful_mean_is_the_squared_error_models_prediction_exactly(rows, weighted, depth):
    weight = np.random.default_rng(1).integers(0, 3, 500).astype(float) if weighted else None
    faithful = fit(NormalLoss("faithful_nll"), rows, weight, max_depth=depth)
    plain = fit(SquaredError(), rows, weight, max_depth=depth)
    np.testing.assert_array_equal(
        faithful.predict_distribution(rows[0])[:, 0], plain.predict(rows[0])
    )


def test_each_score_has_its_own_tree_unless_leaves_are_vectors(rows):
    def trees(loss, **options):
        return len(fit(loss, rows, rounds=3, **options).booster_.get_dump())

    assert trees(NormalLoss()) == 6
    assert trees(NormalLoss(), vector_leaves=True) == 3
    assert trees(NormalLoss("normal_nll_reference")) == 3
    assert trees(SquaredError(), vector_leaves=True) == 3


@pytest.mark.parametrize("name", ["normal_nll", "beta_nll", "faithful_nll"])
def test_whole_weights_repeat_rows(rows, name):
    (X, y), loss = rows, NormalLoss(name)
    weight = np.random.default_rng(1).integers(0, 3, 500).astype(float)
    repeated = np.repeat(np.arange(500), weight.astype(int))
    # Depth 1 and few values: the same candidate cuts whether rows are repeated or weighted.
    coarse = np.round(X)
    weighted = fit(loss, (coarse, y), weight, max_depth=1, min_child_weight=0)
    copied = fit(loss, (coarse[repeated], y[repeated]), max_depth=1, min_child_weight=0)
    np.testing.assert_allclose(
        weighted.predict_distribution(coarse), copied.predict_distribution(coarse), rtol=1e-4
    )


def test_tuning_stops_early_chooses_from_the_grid_and_refits_on_all_rows(rows):
    X, y = rows
    learner = TunedXGBoost(depths=(1, 3), min_child_weights=(1, 20), rounds=60, patience=5)
    model = learner.estimator(NormalLoss(), 0).fit(X, y)
    assert model.chosen_["max_depth"] in (1, 3)
    assert model.chosen_["min_child_weight"] in (1, 20)
    assert 1 <= model.rounds_ < 60
    again = fit(NormalLoss(), rows, rounds=model.rounds_, **model.chosen_)
    np.testing.assert_array_equal(model.predict_distribution(X), again.predict_distribution(X))


@pytest.mark.parametrize("options", [(1, 10_000), (10_000, 1)])
def test_tuning_passes_over_what_fits_held_out_rows_worse(rows, options):
    # A leaf of 10,000 rows is more than there are: no tree ever splits.
    learner = TunedXGBoost(depths=(2,), min_child_weights=options, rounds=20, patience=5)
    model = learner.estimator(NormalLoss(), 0).fit(*rows)
    assert model.chosen_["min_child_weight"] == 1


def test_a_bounded_histogram_cache_grows_the_same_trees(monkeypatch):
    draw = np.random.default_rng(5)
    X, y = draw.normal(size=(1500, 40)), draw.normal(size=1500)
    predictions = []
    for least in (65536, 1):
        monkeypatch.setattr(shared, "_LEAST_NODES", least)
        monkeypatch.setattr(shared, "_CACHE", 0)
        shared._histogram_cache.cache_clear()
        estimator = XGBoost(max_depth=12).estimator(SquaredError(), 0)
        predictions.append(estimator.fit(X, y).predict(X))
    shared._histogram_cache.cache_clear()
    np.testing.assert_array_equal(*predictions)


@pytest.mark.parametrize(
    ("loss", "objective"), [(Binomial(), "binary"), (SquaredError(), "regression")]
)
@pytest.mark.parametrize("share", [1.0, 0.6])
def test_lightgbm_equals_its_package_and_takes_sparse_rows_and_copies(rows, loss, objective, share):
    X, y = rows[0], (rows[1] > 0).astype(float)

    def ours(X_train, y, weight=None, **options):
        learner = LightGBM(rounds=15, num_leaves=7, learning_rate=0.2, **options)
        model = learner.estimator(loss, 4).fit(X_train, y, sample_weight=weight)
        return model.predict_proba(X)[:, 1] if loss.classes else model.predict(X)

    parameters = {
        "objective": objective, "num_leaves": 7, "learning_rate": 0.2, "bagging_fraction": share,
        "bagging_freq": 1, "seed": 4, "num_threads": 1, "verbosity": -1,
    }  # fmt: skip
    theirs = fairgbm.train(parameters, fairgbm.Dataset(X, y), 15).predict(X)
    for layout in (X, csr_matrix(X)):
        np.testing.assert_array_equal(ours(layout, y, subsample=share), theirs)
    counts = np.random.default_rng(1).integers(0, 3, size=500)
    index = np.repeat(np.arange(500), counts)
    np.testing.assert_array_equal(ours(X, y, counts.astype(float)), ours(X[index], y[index]))
