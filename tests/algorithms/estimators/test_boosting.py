"""Boosted trees, support vector machines and TabPFN: as their packages, and under our losses."""

import sys

import fairgbm
import numpy as np
import pandas as pd
import pytest
import sklearn.svm
from scipy.sparse import csr_matrix

from fairbench.components.algorithms.estimators import xgboost as shared
from fairbench.components.algorithms.learners.lightgbm import LightGBM
from fairbench.components.algorithms.learners.linear_svm import LinearSVM
from fairbench.components.algorithms.learners.svm import SVM
from fairbench.components.algorithms.learners.tabpfn import TabPFN
from fairbench.components.algorithms.learners.xgboost import XGBoost
from fairbench.components.algorithms.learners.xgboost_tuned import TunedXGBoost
from fairbench.components.algorithms.losses import Binomial, NormalLoss, Softmax, SquaredError
from fairbench.core.errors import UserError
from fairbench.experiments.execute import carry_out
from tests.harness import TINY, configuration


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
    mean = faithful.predict_distribution(rows[0])[:, 0]
    np.testing.assert_array_equal(mean, plain.predict(rows[0]))


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
    one, other = (model.predict_distribution(coarse) for model in (weighted, copied))
    np.testing.assert_allclose(one, other, rtol=1e-4)


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
    assert learner.estimator(NormalLoss(), 0).fit(*rows).chosen_["min_child_weight"] == 1


@pytest.mark.thorough
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


def scores(learner, X, y, X_new):
    return learner.estimator(Binomial(), 0).fit(X, y).predict_proba(X_new)[:, 1]


@pytest.mark.parametrize("learner", [LinearSVM(), SVM()], ids=lambda each: type(each).__name__)
def test_margins_become_calibrated_probabilities(learner):
    draw = np.random.default_rng(1)
    X = draw.normal(size=(4000, 3))
    p = 1 / (1 + np.exp(-1.5 * X[:, 0]))
    y = (draw.random(4000) < p).astype(float)
    score = scores(learner, X[:1500], y[:1500], X[1500:])
    assert np.abs(score - p[1500:]).mean() < 0.08
    assert score.mean() == pytest.approx(p[1500:].mean(), abs=0.03)


def test_a_machine_needs_two_rows_of_each_class():
    X, row = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200)
    assert np.isfinite(scores(LinearSVM(), X, (row < 3).astype(float), X)).all()
    with pytest.raises(UserError, match="class 1 has 1$"):
        scores(SVM(), X, (row < 1).astype(float), X)


@pytest.mark.parametrize("learner", [SVM(folds=0), LinearSVM(folds=0)], ids=["svm", "linear_svm"])
def test_without_folds_labels_are_the_sides_of_the_margin(learner):
    draw = np.random.default_rng(0)
    X = draw.normal(size=(300, 5))
    y = (X[:, 0] + draw.normal(size=300) > 0.8).astype(float)
    weight = draw.integers(0, 3, 300).astype(float)
    mine = learner.estimator(Binomial(), 0).fit(X, y, sample_weight=weight)
    kept = weight > 0
    machine = sklearn.svm.SVC() if isinstance(learner, SVM) else sklearn.svm.LinearSVC(dual=False)
    theirs = machine.fit(X[kept], y[kept], sample_weight=weight[kept]).predict(X)
    assert 0 < theirs.mean() < 1
    np.testing.assert_array_equal(mine.predict(X), theirs)
    np.testing.assert_array_equal(mine.predict_proba(X)[:, 1] > 0.5, theirs)


# What TabPFN 9.2 takes and gives, of what is used: it knows as much as the mean of the labels.
PACKAGE = """
from pathlib import Path
import numpy as np
import torch

class Stored:
    def __init__(
        self, *, model_path, n_estimators, device, random_state, ignore_pretraining_limits
    ):
        assert Path(model_path).is_file() and device == "cpu" and ignore_pretraining_limits
    def fit(self, X, y):
        self.y, self.rows = y, len(X)
        return self

class TabPFNClassifier(Stored):
    def fit(self, X, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.share = counts / counts.sum()
        return super().fit(X, y)
    def predict_proba(self, X):
        return np.tile(self.share, (len(X), 1)).astype(np.float32)

class Criterion:
    def variance(self, logits):
        return logits.square()

class TabPFNRegressor(Stored):
    def predict(self, X, *, output_type="mean"):
        mean = np.full(len(X), self.y.mean(), np.float32)
        if output_type == "mean":
            return mean
        logits = torch.full((len(X),), float(self.y.std()))
        return {"mean": mean, "criterion": Criterion(), "logits": logits}
"""


@pytest.fixture
def weights(tmp_path, monkeypatch):
    """Return a file of weights, for a package that is found."""
    (tmp_path / "tabpfn.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "weights.safetensors"
    file.write_bytes(b"weights")
    yield str(file)
    sys.modules.pop("tabpfn", None)


def test_gives_what_the_package_gives(weights):
    X, y = pd.DataFrame({"x": np.arange(6.0)}), np.array([0, 1, 1, 0, 1, 1.0])
    learner = TabPFN(weights)
    p = learner.estimator(Binomial(), 0).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(p, [[1 / 3, 2 / 3]] * 6, rtol=1e-6)
    copies = np.array([1, 0, 0, 0, 0, 2.0])
    model = learner.estimator(NormalLoss(), 0).fit(X, 3 * y, copies)
    assert model.fitted_.rows == 3
    np.testing.assert_allclose(model.predict_distribution(X), [[2, np.sqrt(2)]] * 6, rtol=1e-6)
    np.testing.assert_allclose(learner.estimator(SquaredError(), 0).fit(X, y).predict(X), y.mean())
    one = learner.estimator(Binomial(), 0).fit(X, np.ones(6)).predict_proba(X)
    np.testing.assert_array_equal(one, [[0, 1]] * 6)
    p = learner.estimator(Softmax(4), 0).fit(X, 3 * y).predict_proba(X)
    np.testing.assert_allclose(p, [[1 / 3, 0, 0, 2 / 3]] * 6, rtol=1e-6)
    with pytest.raises(UserError, match="weights that count copies"):
        learner.estimator(Binomial(), 0).fit(X, y, y / 2)


def test_a_run_composes_it_as_any_learner(weights, tmp_path):
    chosen = ["learner=tabpfn", f"learner.checkpoint={weights}", "method=binomial_nll", *TINY]
    metrics = carry_out(configuration(*chosen, results=tmp_path)).prepared.folder.all_metrics()
    assert metrics.query("metric == 'log_loss'")["status"].eq("ok").any()


def test_other_weights_in_a_file_of_the_same_name_are_another_fit(weights):
    one = TabPFN(weights)
    assert one == TabPFN(weights)
    with open(weights, "ab") as file:
        file.write(b"!")
    assert one != TabPFN(weights)


def test_xgboost_minimises_the_softmax_loss_as_its_own_objective_does():
    xgboost = pytest.importorskip("xgboost")
    draw = np.random.default_rng(0)
    X = draw.normal(size=(400, 4)).astype(np.float32)
    y = (X[:, 0] + draw.normal(size=400) > 0) * 1.0 + (X[:, 1] > 0.5)
    ours = XGBoost(rounds=8, max_depth=3).estimator(Softmax(3), 0).fit(X, y)
    parameters = {**ours.train_parameters, "objective": "multi:softprob", "num_class": 3}
    matrix = xgboost.QuantileDMatrix(X, y, max_bin=256, nthread=1)
    matrix.set_base_margin(np.tile(Softmax(3).initial(y), 400).astype(np.float32))
    theirs = xgboost.train(parameters, matrix, num_boost_round=8).predict(matrix)
    np.testing.assert_allclose(ours.predict_proba(X), theirs, atol=1e-5)
    assert (ours.predict(X) == theirs.argmax(axis=1)).all()
