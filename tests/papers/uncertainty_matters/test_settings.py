"""The grid of settings fits what the project's own components fit."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

from fairbench.components.algorithms.estimators.ferm import EqualOpportunitySVC
from fairbench.components.algorithms.estimators.without_direction import WithoutDirection
from fairbench.components.papers.uncertainty_matters.settings import (
    AREAS,
    HINGE,
    Part,
    encoded,
    miss,
)


@pytest.fixture(scope="module")
def part():
    draw = np.random.default_rng(0)
    groups = (draw.random(300) < 0.3).astype(int)
    X = draw.normal(size=(300, 5)) * [1, 2, 3, 4, 5]
    X[:, 0] += groups
    y = (X[:, 0] + draw.normal(size=300) > 0.7).astype(float)
    return Part(X, y, groups, np.arange(300) % 10 > 0)


@pytest.mark.parametrize("kernel", ["", "scale", HINGE])
def test_labels_are_those_of_the_components(part, kernel):
    X, y, groups = part.X[part.used], part.y[part.used], part.groups[part.used]
    column = np.column_stack([part.X, part.groups])
    machine = SVC(kernel="linear" if kernel == HINGE else "rbf")
    fair = EqualOpportunitySVC(machine, 0, label=0)
    substitution = WithoutDirection(LogisticRegression(), "substitution", label=0).fit(X, y, groups)
    represented = substitution.transform(part.X)
    expected = {
        "LR": lambda: LogisticRegression(tol=1e-9).fit(X, y).predict(part.X),
        "SVM": lambda: machine.fit(X, y).predict(part.X),
        "FERM": lambda: fair.fit(column[part.used], y).predict(column),
        "Linear FERM": lambda: (
            LinearSVC(dual=False).fit(represented[part.used], y).predict(represented)
        ),
        "Linear SVM": lambda: LinearSVC(dual=False).fit(X, y).predict(part.X),
    }
    if kernel == HINGE:
        expected |= {"Linear SVM": expected["SVM"], "Linear FERM": expected["FERM"]}
    result = dict(part.labels(kernel, 1.0))
    assert len(result) == (2 if kernel else 3)
    for name, labels in result.items():
        np.testing.assert_array_equal(labels, expected[name]() > 0.5)


@pytest.mark.parametrize(
    ("encoding", "scaler"), [("standard", StandardScaler()), ("min-max", MinMaxScaler())]
)
def test_features_are_scaled_by_the_training_rows(part, encoding, scaler):
    X = np.column_stack([part.X, np.ones(len(part.X))])
    theirs = make_pipeline(scaler).fit(X[part.used]).transform(X)
    np.testing.assert_allclose(encoded(X, part.used, encoding), theirs, atol=1e-12)


def test_miss_is_relative():
    assert miss(AREAS) == 0
    assert miss({"LR": 1.1 * AREAS["LR"]}) == pytest.approx(0.1)
