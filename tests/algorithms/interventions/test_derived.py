"""Predictors derived from an estimator: copies of rows, unseen groups, degenerate groups."""

import numpy as np
import pandas as pd
import pytest

from fairbench.components.algorithms.interventions.derived import Derived
from fairbench.components.algorithms.interventions.hardt import Hardt
from fairbench.components.algorithms.interventions.threshold_optimizer import ThresholdOptimizer
from fairbench.components.algorithms.learners.logistic_regression import LogisticRegression
from fairbench.components.algorithms.losses import Binomial
from fairbench.core.errors import UserError
from tests.algorithms.interventions.encoded import Rows, rows

INTERVENTIONS = [
    Hardt(),
    Hardt(derived_from="scores"),
    ThresholdOptimizer(),
    ThresholdOptimizer(predict_method="predict", constraints="equal_opportunity"),
]
each = pytest.mark.parametrize("intervention", INTERVENTIONS, ids=str)


@pytest.fixture(scope="module")
def train():
    return rows()[0]


def wrapped(intervention):
    return intervention.wrap(LogisticRegression().estimator(Binomial(), 0), 0)


@each
def test_a_weight_is_a_number_of_copies(intervention, train):
    n = len(train.y)
    weight = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n)).astype(float)
    kept = np.repeat(np.arange(n), weight.astype(int))
    copies = Rows(train.X[kept], train.y[kept], train.groups.iloc[kept])
    weighted, repeated = train.fit(wrapped(intervention), weight), copies.fit(wrapped(intervention))
    one, other = (train.outputs(model)["prediction"] for model in (weighted, repeated))
    # The estimators agree to their solver's tolerance, so a row at a threshold may differ.
    assert np.mean(one != other) < 0.01
    assert 0 < one.mean() < 1


@each
def test_draws_are_the_seeds(intervention, train):
    model = train.fit(wrapped(intervention))
    outputs = [train.outputs(model, seed)["prediction"] for seed in (1, 1, 2)]
    np.testing.assert_array_equal(outputs[0], outputs[1])
    assert (outputs[0] != outputs[2]).any()
    assert set(train.outputs(model)) == {"prediction"}


@each
def test_a_group_without_training_rows_keeps_the_estimators_labels(intervention, train):
    model = train.fit(wrapped(intervention))
    strangers = pd.Series(["stranger"] * len(train.y))
    out = model.outputs(train.X, sensitive_features=strangers, random_state=0)["prediction"]
    np.testing.assert_array_equal(out, model.estimator.predict(train.X))


@each
def test_one_row_can_be_predicted(intervention, train):
    model = train.fit(wrapped(intervention))
    one = Rows(train.X[:1], train.y[:1], train.groups.iloc[:1])
    assert one.outputs(model)["prediction"].shape == (1,)


@each
def test_a_group_with_one_label_is_named(intervention, train):
    rare = train.groups.cat.categories[-1]
    members = (train.groups == rare).to_numpy()
    y = np.where(members, 1.0, train.y)
    with pytest.raises(UserError, match=f"{members.sum()} training rows of group '{rare}'.*1"):
        Rows(train.X, y, train.groups).fit(wrapped(intervention))


def test_weights_that_count_nothing_are_refused(train):
    with pytest.raises(UserError, match="count copies"):
        train.fit(wrapped(Hardt()), np.full(len(train.y), 0.5))


def test_the_rule_sees_each_copy_of_a_row():
    seen = {}

    def derive(output, y, groups):
        seen.update(output=output, y=y, groups=groups)
        return lambda output, groups, seed: output

    class Echo:
        def fit(self, X, y, sample_weight=None):
            return self

        def predict_proba(self, X):
            return np.column_stack([1 - X[:, 0], X[:, 0]])

    population = Rows(
        np.array([[0.1], [0.2], [0.3], [0.9]]), np.array([0.0, 1, 1, 0]), pd.Series(list("abab"))
    )
    population.fit(Derived("any", Echo(), False, derive), np.array([1.0, 2, 3, 1]))
    np.testing.assert_array_equal(seen["groups"], list("abbaaab"))
    np.testing.assert_allclose(seen["output"], [0.1, 0.2, 0.2, 0.3, 0.3, 0.3, 0.9])
