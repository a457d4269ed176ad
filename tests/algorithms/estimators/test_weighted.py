"""Scikit-learn's estimators under weights, and the calibration of margins."""

import numpy as np
import pytest
import sklearn.svm

from fairbench.components.algorithms.learners.gaussian_nb import GaussianNB
from fairbench.components.algorithms.learners.linear_svm import LinearSVM
from fairbench.components.algorithms.learners.random_forest import RandomForest
from fairbench.components.algorithms.learners.sklearn_mlp import SklearnMLP
from fairbench.components.algorithms.learners.svm import SVM
from fairbench.components.algorithms.losses import Binomial, SquaredError
from fairbench.core.errors import UserError

LEARNERS = [
    GaussianNB(),
    LinearSVM(),
    RandomForest(n_estimators=5),
    SklearnMLP(max_iter=5),
    SVM(),
]
REGRESSORS = [RandomForest(n_estimators=5), SklearnMLP(max_iter=5)]
both = pytest.mark.parametrize(
    ("learner", "loss"),
    [
        *((learner, Binomial()) for learner in LEARNERS),
        *((learner, SquaredError()) for learner in REGRESSORS),
    ],
    ids=lambda each: type(each).__name__,
)


@pytest.fixture(scope="module")
def rows():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(200, 3))
    return X, (X[:, 0] + 0.8 * draw.normal(size=200) > 0).astype(float)


def fitted(learner, loss, rows, weight=None, seed=0):
    model = learner.estimator(loss, seed).fit(*rows, sample_weight=weight)
    return model.predict_proba if loss.name == "binomial" else model.predict


@both
def test_outputs_are_finite_float64_and_repeat_themselves(learner, loss, rows):
    one, again = (fitted(learner, loss, rows)(rows[0]) for _ in range(2))
    assert one.dtype == np.float64
    assert np.isfinite(one).all()
    np.testing.assert_array_equal(one, again)
    if loss.name == "binomial":
        np.testing.assert_allclose(one.sum(axis=1), 1)


@both
def test_rows_of_weight_zero_are_left_out(learner, loss, rows):
    X, y = rows
    weight = (np.arange(200) < 150).astype(float)
    out = fitted(learner, loss, rows, weight)(X)
    np.testing.assert_array_equal(out, fitted(learner, loss, (X[:150], y[:150]))(X))


@both
def test_weights_matter(learner, loss, rows):
    weight = np.where(rows[1] == 1, 3.0, 1.0)
    weighted, plain = (
        fitted(learner, loss, rows, sample_weight)(rows[0]) for sample_weight in (weight, None)
    )
    assert np.abs(weighted - plain).max() > 1e-3


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda each: type(each).__name__)
def test_the_seed_matters_where_the_learner_says_so(learner, rows):
    one, other = (fitted(learner, Binomial(), rows, seed=seed)(rows[0]) for seed in (0, 1))
    assert np.array_equal(one, other) != learner.capabilities.seeded


@pytest.mark.parametrize("learner", [LinearSVM(), SVM()], ids=lambda each: type(each).__name__)
def test_margins_become_calibrated_probabilities(learner):
    draw = np.random.default_rng(1)
    X = draw.normal(size=(4000, 3))
    p = 1 / (1 + np.exp(-1.5 * X[:, 0]))
    y = (draw.random(4000) < p).astype(float)
    score = fitted(learner, Binomial(), (X[:1500], y[:1500]))(X[1500:])[:, 1]
    assert np.abs(score - p[1500:]).mean() < 0.08
    assert score.mean() == pytest.approx(p[1500:].mean(), abs=0.03)


def test_a_machine_needs_two_rows_of_each_class(rows):
    X, _ = rows
    few = (np.arange(200) < 3).astype(float)
    assert np.isfinite(fitted(LinearSVM(), Binomial(), (X, few))(X)).all()
    with pytest.raises(UserError, match="class 1 has 1$"):
        fitted(SVM(), Binomial(), (X, (np.arange(200) < 1).astype(float)))


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


def test_one_fold_is_refused():
    with pytest.raises(UserError, match=r"learner\.folds"):
        SVM(folds=1)
