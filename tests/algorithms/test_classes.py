"""Several classes: learners, what they do with a class they never saw, and readings of members."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, entropy

from fairbench.components.algorithms.fitters.single import Single
from fairbench.components.algorithms.interventions.none import NoIntervention
from fairbench.components.algorithms.learners.gaussian_nb import GaussianNB
from fairbench.components.algorithms.learners.lightgbm import LightGBM
from fairbench.components.algorithms.learners.logistic_regression import LogisticRegression
from fairbench.components.algorithms.learners.random_forest import RandomForest
from fairbench.components.algorithms.learners.xgboost import XGBoost
from fairbench.components.algorithms.losses import Softmax
from fairbench.components.algorithms.methods.baseline import Baseline
from fairbench.components.algorithms.methods.binomial_nll import BinomialNLL
from fairbench.components.algorithms.methods.deep_ensemble import DeepEnsemble
from fairbench.components.algorithms.methods.ensemble import Ensemble
from fairbench.data.dataset import Task
from fairbench.data.splits import Fold, KFold
from fairbench.evaluation.predictions import read_predictions
from fairbench.experiments.compute import _flatten, compute, raw_outputs
from fairbench.experiments.contracts import Study

NAMES = ("low", "middle", "high")
LEARNERS = [
    LogisticRegression(),
    GaussianNB(),
    RandomForest(n_estimators=10),
    XGBoost(rounds=5),
    LightGBM(rounds=5),
]


def classes(make_dataset, n=120):
    data = make_dataset(n)
    code = pd.Series(np.random.default_rng(1).integers(3, size=n), name="grade")
    return replace(data, task=Task.MULTICLASS, classes=NAMES, target=code)


def outputs_without_the_last_class(data, learner):
    """Return the scores of rows 90 and on, by a fit to rows before them that have no class 2."""
    rows = np.arange(len(data))
    low = np.flatnonzero((data.target.to_numpy() < 2) & (rows < 90))
    fold = Fold(0, 0, low, np.array([], np.intp), rows[90:])
    study = Study(data, learner, NoIntervention(), Single(), 0, ("sex",))
    columns, _ = compute(study, fold)
    return raw_outputs(columns)["score"]


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda each: type(each).__name__)
def test_a_class_that_no_training_row_has_gets_next_to_no_probability(make_dataset, learner):
    score = outputs_without_the_last_class(classes(make_dataset), learner)
    assert score.shape == (30, 3)
    np.testing.assert_allclose(score.sum(axis=1), 1, atol=1e-5)
    assert (score[:, 2] < 0.05).all()
    assert (score[:, :2].max(axis=1) > 0.3).all()


def test_training_rows_of_one_class_make_a_cell_invalid(make_dataset):
    data, rows = classes(make_dataset), np.arange(120)
    first = np.flatnonzero(data.target == 0)
    fold = Fold(0, 0, first, np.array([], np.intp), np.setdiff1d(rows, first))
    study = Study(data, XGBoost(), NoIntervention(), Single(), 0, ("sex",))
    assert compute(study, fold)[1]["invalid"] == f"only class 0 among {len(first)} training rows"


def test_folds_deal_out_every_class_evenly(make_dataset):
    data = classes(make_dataset)
    for fold in KFold(4).folds(data, 0):
        counts = data.target.iloc[fold.test].value_counts()
        assert (abs(counts - data.target.value_counts() / 4) <= 1).all()


def test_xgboost_minimises_the_softmax_loss_as_its_own_objective_does():
    xgboost = pytest.importorskip("xgboost")
    draw = np.random.default_rng(0)
    X = draw.normal(size=(400, 4)).astype(np.float32)
    y = (X[:, 0] + draw.normal(size=400) > 0) * 1.0 + (X[:, 1] > 0.5)
    ours = XGBoost(rounds=8, max_depth=3).estimator(Softmax(3), 0).fit(X, y)
    parameters = {**ours.train_parameters, "objective": "multi:softprob", "num_class": 3}
    matrix = xgboost.QuantileDMatrix(X, y, max_bin=256, nthread=1)
    start = Softmax(3).initial(y)
    matrix.set_base_margin(np.tile(start, 400).astype(np.float32))
    theirs = xgboost.train(parameters, matrix, num_boost_round=8).predict(matrix)
    np.testing.assert_allclose(ours.predict_proba(X), theirs, atol=1e-5)
    assert (ours.predict(X) == theirs.argmax(axis=1)).all()


def test_outputs_of_members_and_classes_come_back_in_their_shape():
    score = np.random.default_rng(0).random((5, 4, 3)).astype(np.float32).astype(float)
    raw = {"score": score, "prediction": score[:, 0, 0], "extra": score[:, 0]}
    back = raw_outputs({"part": np.zeros(5), **_flatten(raw)})
    for name, values in raw.items():
        np.testing.assert_array_equal(back[name], values)


# --- readings of (n, M, C) members


def members(n=40, m=7, c=4):
    return np.random.default_rng(0).dirichlet(np.ones(c), (n, m))


def read(method, score):
    columns = method.read({"score": score}, Task.MULTICLASS, np.random.default_rng(0))
    return read_predictions(columns, Task.MULTICLASS, "test", classes=score.shape[-1])


def test_single_models_read_the_likeliest_class_and_of_a_tie_the_first():
    table = read(Baseline(), np.array([[0.25, 0.5, 0.25], [0.4, 0.4, 0.2]]))
    assert table["prediction"].tolist() == [1, 0]
    assert list(table) == ["prediction", "score_0", "score_1", "score_2"]
    p = np.array([[0.2, 0.3, 0.5]])
    expected = np.sqrt((0.16 + 0.21 + 0.25) / 2)
    assert read(BinomialNLL(), p)["uncertainty"].item() == pytest.approx(expected)


def test_votes_are_read_as_a_loop_over_pairs_and_a_sign_test_of_the_two_most_voted():
    score = members()
    winner = score.argmax(axis=2)
    pairs = read(Ensemble(members=7, reading="disagreement"), score)["uncertainty"]
    signs = read(Ensemble(members=7, reading="sign_test"), score)
    for i, votes in enumerate(winner):
        differ = np.mean([votes[a] != votes[b] for a in range(7) for b in range(7) if a != b])
        assert pairs[i] == pytest.approx(differ)
        second, first = np.sort(np.bincount(votes, minlength=4))[-2:]
        p_value = binomtest(int(first), int(first + second)).pvalue
        assert signs["uncertainty"][i] == pytest.approx(p_value)
        assert signs["prediction"][i] == np.bincount(votes, minlength=4).argmax()


@pytest.mark.parametrize("method", [Ensemble(), DeepEnsemble()], ids=["ensemble", "deep"])
def test_parts_of_the_entropy_are_scipys(method):
    score = members()
    table, mean = read(method, score), score.mean(axis=1)
    aleatoric = entropy(score, axis=2).mean(axis=1)
    np.testing.assert_allclose(table["entropy_aleatoric"], aleatoric)
    np.testing.assert_allclose(table["entropy_epistemic"], entropy(mean, axis=1) - aleatoric)
    total = table["aleatoric"] + table["epistemic"]
    np.testing.assert_allclose(total, (mean * (1 - mean)).sum(axis=1))


@pytest.mark.parametrize("reading", ["mean", "majority", "sign_test", "disagreement"])
def test_two_classes_are_read_as_a_label(reading):
    p = np.random.default_rng(0).random((50, 7))
    method = Ensemble(members=7, reading=reading)
    label = method.read({"score": p}, Task.BINARY, np.random.default_rng(0))
    two = method.read({"score": np.stack([1 - p, p], -1)}, Task.MULTICLASS, None)
    np.testing.assert_array_equal(two["prediction"], label["prediction"])
    np.testing.assert_allclose(two["uncertainty"], label["uncertainty"], atol=1e-12)
