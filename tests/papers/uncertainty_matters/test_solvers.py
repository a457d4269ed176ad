"""The solvers of many cross-validations against scikit-learn, fit by fit."""

import numpy as np
import pytest
import sklearn.linear_model
import sklearn.svm
from sklearn.preprocessing import StandardScaler

from fairbench.components.algorithms.interventions.hardt import equalised_odds
from fairbench.components.papers.uncertainty_matters import solvers
from fairbench.components.papers.uncertainty_matters.solvers import training

LOGISTIC = sklearn.linear_model.LogisticRegression(tol=1e-9, max_iter=10_000)
# Solver, scikit-learn's estimator at a tight tolerance, and how far margins may differ.
SOLVERS = {
    "logistic": (solvers.logistic_margins, LOGISTIC, 2e-4),
    "squared hinge": (
        solvers.squared_hinge_margins,
        sklearn.svm.LinearSVC(dual=False, tol=1e-9, max_iter=100_000),
        1e-5,
    ),
    "rbf": (solvers.rbf_margins, sklearn.svm.SVC(tol=1e-6), 2e-4),
}
each_solver = pytest.mark.parametrize("name", SOLVERS)


def rows_of(n, *, seed=0):
    """Return correlated numbers, a rare category and a column constant in some training parts."""
    draw = np.random.default_rng(seed)
    numbers = draw.normal(size=(n, 6)) @ draw.normal(size=(6, 6))
    levels = np.eye(4)[np.searchsorted([0.6, 0.9, 0.97], draw.random(n))]
    almost_constant = (np.arange(n) == 7).astype(float)
    X = np.column_stack([100 * numbers, levels, almost_constant])
    y = (numbers[:, 0] + levels[:, 1] + 2 * draw.normal(size=n) > 1).astype(float)
    return X, y


def folds_of(n, cvs, *, k=10, seed=1):
    draw = np.random.default_rng(seed)
    return np.stack([draw.permutation(np.arange(n) % k) for _ in range(cvs)])


def theirs(estimator, X, y, fold, weight=None):
    margins = np.empty((len(training(fold)), len(X)))
    for part, used in enumerate(training(fold)):
        scaler = StandardScaler().fit(X[used])
        own = None if weight is None else weight[part, used]
        estimator.fit(scaler.transform(X[used]), y[used], sample_weight=own)
        margins[part] = estimator.decision_function(scaler.transform(X))
    return margins


@each_solver
def test_weights_and_C_are_those_of_scikit_learn(name):
    solver, estimator, tolerance = SOLVERS[name]
    X, y = rows_of(200, seed=2)
    fold = folds_of(200, 2, k=5, seed=3)
    weight = np.random.default_rng(4).choice([0.6, 0.9, 1.4], size=(10, 1)) * np.where(y, 1.3, 0.8)
    weight *= np.where(np.arange(200) % 3, 1, 1.5)
    strong = sklearn.base.clone(estimator).set_params(C=3.0)
    mine = solver(X, y, fold, C=3.0, weight=weight)
    np.testing.assert_allclose(mine, theirs(strong, X, y, fold, weight), atol=5 * tolerance)


def test_one_contradiction_at_a_time_ends_circles():
    pivots = solvers.Pivots(10)
    wrong = np.arange(4)
    chosen = [len(pivots.choose(wrong)) for _ in range(6)]
    assert chosen == [4, 4, 4, 4, 1, 1]
    assert len(pivots.choose(wrong[:3])) == 3


def test_chances_are_those_of_the_linear_programme():
    """Rates of any kind, better than chance or worse, and a group whose labels say nothing."""
    draw = np.random.default_rng(8)
    positive = draw.random((60, 2, 2))
    positive[0, 1] = 0.3
    rates = np.stack([1 - positive, positive], axis=-1)
    value = draw.uniform(0.2, 1, (60, 2))
    mine = solvers.hardt_chances(rates, value)
    for own, rate, worth in zip(mine, rates, value, strict=True):
        theirs = equalised_odds(rate, worth)
        prices = [worth * [1, -1] @ (rate[0] @ solution[0]) for solution in (own, theirs)]
        assert prices[0] == pytest.approx(prices[1], abs=1e-9)
        np.testing.assert_allclose(rate[0] @ own[0], rate[1] @ own[1], atol=1e-9)
        assert ((own >= 0) & (own <= 1)).all()
