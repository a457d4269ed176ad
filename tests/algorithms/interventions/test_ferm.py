"""FERM solves its quadratic programme exactly, and linear FERM is the same of a linear kernel."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC

from fairbench.components.algorithms.estimators.ferm import EqualOpportunitySVC, mean_difference
from fairbench.components.algorithms.interventions.ferm import FERM
from fairbench.components.algorithms.interventions.linear_ferm import LinearFERM
from fairbench.components.algorithms.learners.linear_svm import LinearSVM
from fairbench.components.algorithms.learners.logistic_regression import LogisticRegression
from fairbench.components.algorithms.learners.svm import SVM
from fairbench.components.algorithms.losses import Binomial
from fairbench.core.errors import UserError
from tests.algorithms.interventions.encoded import rows, wrapped
from tests.harness import Lazily

cvxpy = Lazily("cvxpy")


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
    dropped = (np.abs(seen).max(axis=0) < 1e-12).sum()
    assert dropped == (representation == "substitution")


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
