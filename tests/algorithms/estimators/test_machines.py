"""Support vector machines: the calibration of margins, and labels without it."""

import numpy as np
import pytest
import sklearn.svm

from fairbench.components.algorithms.learners.linear_svm import LinearSVM
from fairbench.components.algorithms.learners.svm import SVM
from fairbench.components.algorithms.losses import Binomial
from fairbench.core.errors import UserError


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
