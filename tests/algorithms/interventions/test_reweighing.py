"""Reweighing equals AIF360's, makes group and label independent, and multiplies weights."""

import numpy as np
import pandas as pd
import pytest

from fairbench.components.algorithms.interventions.reweighing import (
    Reweighing,
    independence_weights,
)
from fairbench.components.algorithms.learners.logistic_regression import LogisticRegression
from fairbench.components.algorithms.losses import Binomial
from tests.algorithms.interventions.encoded import rows, wrapped


@pytest.fixture
def draws():
    draw = np.random.default_rng(0)
    group = draw.integers(3, size=400)
    y = (draw.random(400) < 0.2 + 0.25 * group).astype(float)
    return pd.Series(group.astype(str)), y, draw.integers(4, size=400).astype(float)


def test_closed_form():
    groups = pd.Series(list("aaab"))
    weights = independence_weights(groups, np.array([0.0, 1, 1, 1]), np.array([1.0, 1, 1, 3]))
    # P(a) = P(b) = 1/2, P(1) = 5/6, P(a, 1) = 1/3, P(a, 0) = 1/6, P(b, 1) = 1/2.
    np.testing.assert_allclose(weights, [1 / 2, 5 / 4, 5 / 4, 5 / 6])


def test_group_and_class_become_independent(draws):
    groups, y, weight = draws
    y = y + 2 * np.random.default_rng(1).integers(2, size=len(y))  # of four classes
    reweighed = weight * independence_weights(groups, y, weight)
    table = pd.crosstab(groups, y, values=reweighed, aggfunc="sum", normalize=True).to_numpy()
    np.testing.assert_allclose(table, table.sum(axis=1, keepdims=True) * table.sum(axis=0))
    assert reweighed.sum() == pytest.approx(weight.sum())


def test_rows_of_weight_zero_stay_out():
    groups, y = pd.Series(list("aabb")), np.array([0.0, 1, 0, 1])
    weights = independence_weights(groups, y, np.array([1.0, 1, 1, 0]))
    assert weights[3] == 0
    assert (weights[:3] > 0).all()


def test_equals_aif360(draws):
    datasets = pytest.importorskip("aif360.datasets")
    preprocessing = pytest.importorskip("aif360.algorithms.preprocessing")
    groups, y, weight = draws
    two = (groups == "0").to_numpy()
    dataset = datasets.BinaryLabelDataset(
        df=pd.DataFrame({"y": y, "g": two.astype(float), "w": weight + 1}),
        label_names=["y"],
        protected_attribute_names=["g"],
        instance_weights_name="w",
    )
    theirs = preprocessing.Reweighing([{"g": 0}], [{"g": 1}]).fit_transform(dataset)
    ours = (weight + 1) * independence_weights(pd.Series(two), y, weight + 1)
    np.testing.assert_allclose(ours, theirs.instance_weights)


@pytest.mark.parametrize("strength", [0.0, 0.5, 1.0])
def test_the_estimator_is_fitted_with_the_product_of_weights_to_a_power(strength):
    train, test = rows()
    weight = np.random.default_rng(1).integers(3, size=len(train.y)).astype(float)
    ours = test.outputs(train.fit(wrapped(Reweighing(strength)), weight))["score"]
    product = weight * independence_weights(train.groups, train.y, weight) ** strength
    plain = LogisticRegression().estimator(Binomial(), 0).fit(train.X, train.y, product)
    np.testing.assert_array_equal(ours, plain.predict_proba(test.X)[:, 1])
