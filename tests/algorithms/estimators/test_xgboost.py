"""XGBoost under losses of its own objectives and of ours."""

from glob import glob

import numpy as np
import pytest

from fairbench.components.algorithms.estimators import xgboost as shared
from fairbench.components.algorithms.learners.xgboost import XGBoost
from fairbench.components.algorithms.learners.xgboost_tuned import TunedXGBoost
from fairbench.components.algorithms.losses import Binomial, NormalLoss, SquaredError
from fairbench.core.errors import UserError

TWO_SCORES = [
    NormalLoss(),
    NormalLoss("beta_nll"),
    NormalLoss("faithful_nll"),
    NormalLoss("normal_nll_reference"),
]


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


@pytest.mark.parametrize("loss", TWO_SCORES, ids=lambda loss: loss.name)
def test_two_scores_give_a_mean_and_a_standard_deviation(rows, loss):
    model = fit(loss, rows)
    outputs = model.predict_distribution(rows[0])
    assert outputs.shape == (500, 2)
    assert outputs.dtype == np.float64
    np.testing.assert_array_equal(model.predict(rows[0]), outputs[:, 0])
    assert not hasattr(model, "predict_proba")
    assert not hasattr(fit(SquaredError(), rows), "predict_distribution")


def test_each_score_has_its_own_tree_unless_leaves_are_vectors(rows):
    def trees(loss, **options):
        return len(fit(loss, rows, rounds=3, **options).booster_.get_dump())

    assert trees(NormalLoss()) == 6
    assert trees(NormalLoss(), vector_leaves=True) == 3
    assert trees(NormalLoss("normal_nll_reference")) == 3
    assert trees(SquaredError(), vector_leaves=True) == 3


@pytest.mark.parametrize("loss", TWO_SCORES[:3], ids=lambda loss: loss.name)
def test_whole_weights_repeat_rows(rows, loss):
    X, y = rows
    weight = np.random.default_rng(1).integers(0, 3, 500).astype(float)
    repeated = np.repeat(np.arange(500), weight.astype(int))
    # Depth 1 and few values: the same candidate cuts whether rows are repeated or weighted.
    coarse = np.round(X)
    weighted = fit(loss, (coarse, y), weight, max_depth=1, min_child_weight=0)
    copied = fit(loss, (coarse[repeated], y[repeated]), max_depth=1, min_child_weight=0)
    np.testing.assert_allclose(
        weighted.predict_distribution(coarse), copied.predict_distribution(coarse), rtol=1e-4
    )


def test_fits_of_all_losses_share_one_binned_matrix(rows):
    X, y = rows
    before = shared.binned(X, 256)
    fit(NormalLoss(), rows)
    XGBoost().estimator(Binomial(), 0).fit(X, (y > 0).astype(float))
    assert shared.binned(X, 256) is before


def test_a_fit_follows_nothing_but_its_own_labels_and_weights(rows):
    first = fit(NormalLoss(), rows).predict_distribution(rows[0])
    fit(SquaredError(), (rows[0], -rows[1]), np.full(500, 3.0))
    fit(NormalLoss("normal_nll_reference"), (rows[0], 5 * rows[1]))
    np.testing.assert_array_equal(fit(NormalLoss(), rows).predict_distribution(rows[0]), first)


def test_the_device_reaches_xgboost_and_others_are_refused():
    parameters = XGBoost(device="cuda:1").estimator(SquaredError(), 0).parameters
    assert parameters["device"] == "cuda:1"


@pytest.mark.skipif(bool(glob("/dev/nvidia[0-9]*")), reason="this machine has a GPU")
def test_a_gpu_that_is_not_there_is_refused():
    X, y = np.zeros((4, 1)), np.arange(4.0)
    for learner in (XGBoost(device="cuda"), TunedXGBoost(device="cuda:0")):
        with pytest.raises(UserError, match="^learner.device=cuda.*, but XGBoost finds no GPU"):
            learner.estimator(SquaredError(), 0).fit(X, y)
    with pytest.raises(UserError, match="^learner.device is 'gpu': "):
        XGBoost(device="gpu")


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


def test_tuning_ignores_rows_of_weight_zero(rows):
    X, y = rows
    weight = (np.arange(500) < 400).astype(float)
    spoiled = np.where(weight == 0, 1e3, y)
    learner = TunedXGBoost(depths=(1, 3), rounds=30, patience=5)
    one, other = (
        learner.estimator(NormalLoss(), 0).fit(X, values, sample_weight=weight)
        for values in (y, spoiled)
    )
    assert (one.chosen_, one.rounds_) == (other.chosen_, other.rounds_)
    np.testing.assert_array_equal(one.predict_distribution(X), other.predict_distribution(X))


@pytest.mark.parametrize("loss", TWO_SCORES[:2], ids=lambda loss: loss.name)
@pytest.mark.parametrize("make", [XGBoost, TunedXGBoost], ids=lambda make: make.__name__)
@pytest.mark.parametrize("scale", [1e-5, 1e5])
def test_a_fit_does_not_depend_on_the_unit_of_its_labels(rows, loss, make, scale):
    X, y = rows
    y = y.astype(np.float32).astype(float)
    one, other = (
        make(rounds=8).estimator(loss, 0).fit(X, values).predict_distribution(X)
        for values in (y, scale * y)
    )
    near = np.isclose(other, scale * one, rtol=1e-3, atol=1e-3 * scale).all(axis=1)
    # Rounding may move a row over a tied cut.
    assert near.mean() > 0.98


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
