"""Constraints on machines and on logistic regression: met, at losses that cvxpy reaches too."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC

from fairbench.components.algorithms.estimators import disparate_mistreatment
from fairbench.components.algorithms.estimators.convex_concave import step
from fairbench.components.algorithms.estimators.ferm import EqualOpportunitySVC, mean_difference
from fairbench.components.algorithms.interventions.disparate_mistreatment import (
    DisparateMistreatment,
)
from fairbench.components.algorithms.interventions.ferm import FERM
from fairbench.components.algorithms.interventions.linear_ferm import LinearFERM
from fairbench.components.algorithms.learners.linear_svm import LinearSVM
from fairbench.components.algorithms.learners.logistic_regression import LogisticRegression
from fairbench.components.algorithms.learners.svm import SVM
from fairbench.components.algorithms.losses import Binomial
from fairbench.core.errors import UserError
from tests.algorithms.interventions.encoded import Rows, rows, wrapped
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


@pytest.mark.thorough
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


@pytest.fixture(scope="module")
def people():
    """Rows, labels, groups and weights of 60 people whose groups differ in the first feature."""
    draw = np.random.default_rng(0)
    groups = (draw.random(60) < 0.4).astype(float)
    X = draw.normal(size=(60, 3))
    X[:, 0] += groups
    y = (X[:, 0] + 0.7 * draw.normal(size=60) > 0.4).astype(float)
    return X, y, groups, draw.integers(1, 4, size=60).astype(float)


def primal(kernel, y, weight, u, epsilon):
    """Return the least objective of equation 12, and its decisions."""
    root = np.linalg.cholesky(kernel + 1e-9 * np.eye(len(y)))
    w, b = cvxpy.Variable(len(y)), cvxpy.Variable()
    hinge = cvxpy.pos(1 - cvxpy.multiply(2 * y - 1, root @ w + b))
    problem = cvxpy.Problem(
        cvxpy.Minimize(cvxpy.sum_squares(w) / 2 + weight @ hinge),
        [cvxpy.abs((u @ root) @ w) <= epsilon],
    )
    problem.solve(solver=cvxpy.CLARABEL)
    return problem.value, root @ w.value + b.value


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
@pytest.mark.parametrize(
    ("label", "epsilon"), [(1, 0), (1, 0.1), (1, 0.5), (1, 5), (0, 0), (0, 0.1)]
)
def test_equals_the_quadratic_programme(people, kernel, label, epsilon):
    X, y, groups, weight = people
    seen = np.column_stack([X, groups])
    ours = EqualOpportunitySVC(SVC(kernel=kernel, tol=1e-8), epsilon, label)
    ours.fit(seen, y, weight)
    decisions = ours.decision_function(seen)
    u = mean_difference(groups, y == label, weight)
    parameters = {"gamma": ours.gamma_, "degree": 3, "coef0": 0}
    gram = pairwise_kernels(X, metric=kernel, filter_params=True, **parameters)
    least, theirs = primal(gram, y, weight, u, epsilon)
    if epsilon < 5:
        assert abs(u @ decisions) == pytest.approx(epsilon, abs=1e-4 if epsilon else 1e-6)
    else:
        assert abs(u @ decisions) < 5
    np.testing.assert_allclose(decisions, theirs, atol=1e-3)
    a = ours.coefficients_
    squared = a @ pairwise_kernels(ours.rows_, metric=kernel, filter_params=True, **parameters) @ a
    objective = squared / 2 + weight @ np.maximum(0, 1 - (2 * y - 1) * decisions)
    assert objective == pytest.approx(least, rel=1e-5)


def test_a_loose_constraint_leaves_the_learner_as_it_is():
    train, test = rows(n=400, n_groups=2)
    learner = SVM(C=0.7)
    plain = learner.estimator(Binomial(), 3).fit(train.X, train.y).predict_proba(test.X)[:, 1]
    ours = train.fit(wrapped(FERM(epsilon=100), learner, 3))
    np.testing.assert_allclose(test.outputs(ours)["score"], plain, atol=1e-5)


def test_projection_equals_a_linear_kernel():
    train, test = rows(n=300, n_groups=2)
    kernel, linear = (
        train.fit(wrapped(intervention, SVM(kernel="linear")))
        for intervention in (FERM(), LinearFERM("projection"))
    )
    margins = kernel.estimator.estimator.fitted_.fitted_.calibrated_classifiers_[0].estimator
    other = linear.estimator.estimator.fitted_.fitted_.calibrated_classifiers_[0].estimator
    np.testing.assert_allclose(
        margins.decision_function(np.column_stack([test.X, test.y])),
        other.decision_function(linear.estimator.transform(test.X)),
        atol=5e-3,
    )


@pytest.mark.parametrize("label", [1, 0])
@pytest.mark.parametrize("representation", ["substitution", "projection"])
def test_linear_scores_have_equal_means_for_the_label(representation, label):
    train, _ = rows(n=600, n_groups=2)
    model = train.fit(wrapped(LinearFERM(representation, label)))
    seen = model.estimator.transform(train.X)
    groups = (train.groups == train.groups.cat.categories[0]).to_numpy()
    u = mean_difference(groups, train.y == label, np.ones(len(train.y)))
    assert np.abs(u @ train.X).max() > 0.1
    np.testing.assert_allclose(u @ seen, 0, atol=1e-12)
    assert (np.abs(seen).max(axis=0) < 1e-12).sum() == (representation == "substitution")


@pytest.mark.parametrize(
    ("intervention", "learner"),
    [(FERM(), SVM()), (LinearFERM(), LinearSVM()), (LinearFERM(), LogisticRegression())],
    ids=lambda each: type(each).__name__,
)
def test_whole_weights_leave_out_and_repeat_rows(intervention, learner):
    train, test = rows(n=300, n_groups=2)
    weight = (np.arange(len(train.y)) % 4 > 0).astype(float)
    half = train.take(np.flatnonzero(weight))
    weighted = train.fit(wrapped(intervention, learner), weight)
    left = half.fit(wrapped(intervention, learner))
    scores = test.outputs(weighted)["score"]
    np.testing.assert_array_equal(scores, test.outputs(left)["score"])
    heavy = train.fit(wrapped(intervention, learner), weight + train.y)
    assert np.abs(test.outputs(heavy)["score"] - scores).max() > 1e-3


def test_refuses_what_it_cannot_compare():
    train, _ = rows(n=300, n_groups=2)
    model = wrapped(FERM(), SVM())
    minority = (train.groups == "minority").to_numpy()
    good = wrapped(FERM(label=0), SVM())
    with pytest.raises(UserError, match=r"label 0 .* group 'minority'"):
        train.fit(good, 1 - minority * (1 - train.y))
    with pytest.raises(UserError, match=r"label 1 .* group 'minority'"):
        train.fit(model, 1 - minority * train.y)
    with pytest.raises(UserError, match=r"two groups, .* have 1 \(majority\)"):
        train.fit(model, 1.0 - minority)
    three, _ = rows(n=300, n_groups=3)
    with pytest.raises(UserError, match="have 3"):
        three.fit(model)
