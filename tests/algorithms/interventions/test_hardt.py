"""Hardt's linear programme equals AIF360's, satisfies its constraints and beats what it must."""

import warnings

import numpy as np
import pandas as pd
import pytest

from fairbench.components.algorithms.interventions.hardt import Hardt, equalised_odds
from fairbench.components.algorithms.learners.logistic_regression import LogisticRegression
from fairbench.components.algorithms.losses import Binomial
from tests.algorithms.interventions.encoded import rows


def random_rates(groups, seed=0):
    positive = np.random.default_rng(seed).uniform(size=(groups, 2))
    return np.stack([1 - positive, positive], axis=2)


@pytest.fixture(scope="module")
def population():
    """Predicted label, label and group of many rows: better than chance, unequal rates."""
    draw = np.random.default_rng(3)
    group = draw.integers(2, size=2000)
    y = (draw.random(2000) < np.where(group, 0.3, 0.6)).astype(float)
    positive = np.array([[0.1, 0.65], [0.3, 0.9]])[group, y.astype(int)]
    return (draw.random(2000) < positive).astype(float), y, group


def aif360_chances(label, y, group):
    datasets = pytest.importorskip("aif360.datasets")
    postprocessing = pytest.importorskip("aif360.algorithms.postprocessing")

    def dataset(labels):
        return datasets.BinaryLabelDataset(
            df=pd.DataFrame({"y": labels, "g": group.astype(float)}),
            label_names=["y"],
            protected_attribute_names=["g"],
            favorable_label=1,
            unfavorable_label=0,
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = postprocessing.EqOddsPostprocessing([{"g": 1}], [{"g": 0}]).fit(
            dataset(y), dataset(label)
        )
    # Its variables are P(1 | 1) and P(1 | 0) of the privileged group, then of the other.
    return fitted.model_params.x.reshape(2, 2)[:, ::-1]


def rates_of(label, y, group):
    positive = [[label[(group == g) & (y == truth)].mean() for truth in (0, 1)] for g in (0, 1)]
    return np.stack([1 - np.array(positive), positive], axis=2)


def test_equals_aif360(population):
    rates = rates_of(*population)
    ours = equalised_odds(rates, np.ones(2))
    np.testing.assert_allclose(ours, aif360_chances(*population), atol=1e-7)
    assert np.abs(ours - [0, 1]).max() > 0.01


@pytest.mark.parametrize("groups", [1, 2, 5])
def test_derived_rates_are_equal_and_no_worse_than_chance(groups):
    rates = random_rates(groups)
    chances = equalised_odds(rates, np.ones(2))
    assert ((chances >= 0) & (chances <= 1)).all()
    false_positive, true_positive = np.einsum("gyh,gh->yg", rates, chances)
    np.testing.assert_allclose(false_positive, false_positive[0], atol=1e-7)
    np.testing.assert_allclose(true_positive, true_positive[0], atol=1e-7)
    assert true_positive[0] >= false_positive[0]


def test_perfect_labels_are_kept():
    rates = np.tile(np.eye(2), (3, 1, 1))
    np.testing.assert_allclose(equalised_odds(rates, np.ones(2)), [[0, 1]] * 3)


def test_costs_say_where_to_stop():
    rates = random_rates(2, seed=1)
    np.testing.assert_allclose(equalised_odds(rates, np.array([1, 0])), 0, atol=1e-9)
    np.testing.assert_allclose(equalised_odds(rates, np.array([0, 1])), 1, atol=1e-9)


def rate_gap(prediction, of):
    gaps = []
    for truth in (0, 1):
        rates = [
            prediction[(of.groups == name).to_numpy() & (of.y == truth)].mean()
            for name in of.groups.cat.categories
        ]
        gaps.append(max(rates) - min(rates))
    return max(gaps)


@pytest.mark.thorough
@pytest.mark.parametrize("source", ["labels", "scores"])
def test_error_rates_are_equal_on_training_rows_in_expectation(source):
    train, _ = rows(base_rate_gap=2.0)
    intervention = Hardt(derived_from=source)
    model = train.fit(intervention.wrap(LogisticRegression().estimator(Binomial(), 0), 0))
    mean = np.mean([train.outputs(model, seed)["prediction"] for seed in range(200)], axis=0)
    assert rate_gap(model.estimator.predict(train.X), train) > 0.2
    # The smallest cell has about 30 rows: sd under 0.5 / sqrt(30 * 200) = 0.007.
    assert rate_gap(mean, train) < 0.04
