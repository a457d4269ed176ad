"""The convex-concave procedure meets its constraints, at a loss that cvxpy's steps reach too."""

import numpy as np
import pandas as pd
import pytest

from fairbench.components.algorithms.estimators import disparate_mistreatment
from fairbench.components.algorithms.estimators.convex_concave import step
from fairbench.components.algorithms.interventions.disparate_mistreatment import (
    DisparateMistreatment,
)
from fairbench.components.algorithms.learners.logistic_regression import LogisticRegression
from fairbench.components.algorithms.losses import Binomial
from fairbench.core.errors import UserError
from tests.algorithms.interventions.encoded import Rows, wrapped
from tests.harness import Lazily

cvxpy = Lazily("cvxpy")

LABELS = {"false_negative_rate": [1], "false_positive_rate": [0], "misclassification_rate": [0, 1]}


@pytest.fixture(scope="module")
def unfair():
    """People whose label follows another feature in each group: b's positives are missed."""
    draw = np.random.default_rng(0)
    group = draw.random(3000) < 0.4
    X = draw.normal(size=(3000, 4))
    X[:, 2] = group + 0.5 * X[:, 2]
    signal = np.where(group, X[:, 1] - 1, 1.5 * X[:, 0] + 0.5)
    y = (signal + 0.6 * draw.normal(size=3000) > 0).astype(float)
    return Rows(X, y, pd.Series(np.where(group, "b", "a"), dtype="category"))


def fitted(rows, weight=None, C=1.0, **options):
    learner = LogisticRegression(C=C, tol=1e-10)
    return rows.fit(wrapped(DisparateMistreatment(**options), learner), weight)


def margins(model, rows):
    coefficients = model.estimator.coefficients_
    return rows.X @ coefficients[:-1] + coefficients[-1]


def covariance(model, rows, labels):
    d = np.minimum(0, (2 * rows.y - 1) * margins(model, rows))
    part = np.isin(rows.y, labels)
    return np.cov((rows.groups == "b")[part], d[part], bias=True)[0, 1]


def gap(model, rows, label):
    wrong = (margins(model, rows) > 0) != rows.y
    rates = [wrong[(rows.groups == g) & (rows.y == label)].mean() for g in "ab"]
    return abs(rates[1] - rates[0])


def plain(rows, weight=None, C=1.0):
    return fitted(rows, weight, C, threshold=1e3)


@pytest.mark.parametrize("weight", [None, "counts"])
def test_a_loose_constraint_is_logistic_regression(unfair, weight):
    if weight:
        weight = np.random.default_rng(1).integers(0, 3, size=len(unfair.y)).astype(float)
    model = LogisticRegression(tol=1e-10, C=0.1).estimator(Binomial(), 0)
    model.fit(unfair.X, unfair.y, sample_weight=weight)
    ours = plain(unfair, weight, C=0.1).estimator.coefficients_
    np.testing.assert_allclose(ours, np.append(model.coef_[0], model.intercept_), atol=1e-6)


@pytest.mark.parametrize("constraint", LABELS)
def test_a_constraint_holds_and_narrows_its_gap(unfair, constraint):
    rows, labels = unfair, LABELS[constraint]
    if constraint == "false_positive_rate":
        rows = Rows(unfair.X, 1 - unfair.y, unfair.groups)
    model, before = fitted(rows, constraint=constraint), plain(rows)
    assert abs(covariance(before, rows, labels)) > 0.02
    assert abs(covariance(model, rows, labels)) < 1.5e-4
    assert model.diagnostics == {"converged": 1.0}
    if len(labels) == 1:
        assert gap(before, rows, *labels) > 0.3
        assert gap(model, rows, *labels) < 0.1


def test_both_constraints_hold_together(unfair):
    model = fitted(unfair)
    for labels in ([0], [1]):
        assert abs(covariance(model, unfair, labels)) < 1.5e-4


def test_a_threshold_that_binds_is_used_up(unfair):
    model = fitted(unfair, constraint="false_negative_rate", threshold=0.02)
    assert abs(covariance(model, unfair, [1])) == pytest.approx(0.02, abs=1.5e-4)


def by_cvxpy(rows, at, threshold, side):
    """Return the solution of one convexified problem with C = 1: the oracle of a step."""
    X = np.column_stack([rows.X, np.ones(len(rows.y))])
    sign = 2 * rows.y - 1
    group = (rows.groups == "b").to_numpy()
    positive = rows.y == 1
    share = np.where(positive, group - group[positive].mean(), 0) / positive.sum() * side
    theta = cvxpy.Variable(X.shape[1])
    margin = cvxpy.multiply(sign, X @ theta)
    concave = np.where((share > 0) & (sign * (X @ at) < 0), share, 0) * sign @ X
    convex = np.maximum(-share, 0) @ cvxpy.pos(-margin)
    loss = cvxpy.sum(cvxpy.logistic(-margin)) + cvxpy.sum_squares(theta[:-1]) / 2
    problem = cvxpy.Problem(cvxpy.Minimize(loss), [concave @ theta + convex <= threshold])
    problem.solve(solver=cvxpy.CLARABEL)
    return theta.value


def test_a_step_equals_cvxpy(unfair):
    few = unfair.take(np.arange(300))
    at = plain(few).estimator.coefficients_
    side = np.sign(covariance(plain(few), few, [1]))
    ones, group = np.ones(300), (few.groups == "b").to_numpy().astype(float)
    problem, whitener = disparate_mistreatment.whitened(few.X, few.y, ones, at, C=1.0)
    share = side * disparate_mistreatment.covariance_shares(group, ones * (few.y == 1))
    start = whitener @ at
    ours = np.linalg.solve(whitener, step(problem, [problem.room(share, 0.01, start)], start))
    np.testing.assert_allclose(ours, by_cvxpy(few, at, 0.01, side), atol=5e-3)
    assert np.abs(ours - at).max() > 0.1


def test_refuses_a_group_without_the_label_and_other_learners(unfair):
    y = unfair.y * (unfair.groups == "a").to_numpy()
    lacking = Rows(unfair.X, y, unfair.groups)
    with pytest.raises(UserError, match="label 1 in every group.*group 'b'"):
        fitted(lacking, constraint="false_negative_rate")
    assert fitted(lacking, constraint="false_positive_rate").diagnostics["converged"]
