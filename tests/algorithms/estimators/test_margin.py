"""Support vector machines that nobody calibrated."""

import numpy as np
import pytest
import sklearn.svm

from fairbench.components.algorithms.learners.linear_svm import LinearSVM
from fairbench.components.algorithms.learners.svm import SVM
from fairbench.components.algorithms.losses import Binomial
from fairbench.core.errors import UserError


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
