"""Weights of rows, predictors that are derived, FairGBM: as in AIF360, fairlearn and so on."""

import warnings

import fairgbm
import fairlearn.postprocessing
import numpy as np
import pandas as pd
import pytest

from fairbench.components.algorithms.interventions.disparate_mistreatment import (
    DisparateMistreatment,
)
from fairbench.components.algorithms.interventions.exponentiated_gradient import (
    ExponentiatedGradient,
)
from fairbench.components.algorithms.interventions.fairgbm import FairGBM
from fairbench.components.algorithms.interventions.grid_search import GridSearch
from fairbench.components.algorithms.interventions.hardt import Hardt, equalised_odds
from fairbench.components.algorithms.interventions.none import NoIntervention
from fairbench.components.algorithms.interventions.reweighing import (
    Reweighing,
    independence_weights,
)
from fairbench.components.algorithms.interventions.threshold_optimizer import ThresholdOptimizer
from fairbench.components.algorithms.learners.lightgbm import LightGBM
from fairbench.components.algorithms.learners.logistic_regression import LogisticRegression
from fairbench.components.algorithms.learners.xgboost import XGBoost
from fairbench.components.algorithms.losses import Binomial
from fairbench.core.errors import UserError
from fairbench.data.features import Encoding
from tests.algorithms.interventions.encoded import Rows, rows, wrapped

DERIVED = [
    Hardt(),
    Hardt(derived_from="scores"),
    ThresholdOptimizer(),
    ThresholdOptimizer(predict_method="predict", constraints="equal_opportunity"),
]
INTERVENTIONS = [
    DisparateMistreatment(),
    ExponentiatedGradient(max_iter=8),
    GridSearch(),
    NoIntervention(),
    Reweighing(),
    *DERIVED,
]
LEARNER = LogisticRegression(tol=1e-10, max_iter=10_000)


@pytest.mark.thorough
@pytest.mark.parametrize("intervention", INTERVENTIONS, ids=str)
def test_a_whole_weight_is_a_number_of_copies(intervention):
    train, _ = rows(n_groups=2, base_rate_gap=2.0)
    n = len(train.y)
    weight = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n)).astype(float)
    copies = train.take(np.repeat(np.arange(n), weight.astype(int)))
    fits = [(train, weight), (copies, None), (train, None)]
    models = [part.fit(wrapped(intervention, LEARNER), given) for part, given in fits]
    weighted, copied, plain = (next(iter(train.outputs(each).values())) for each in models)
    # Estimators agree to their solver's tolerance, so a row at a threshold may differ.
    assert np.mean(np.abs(weighted - copied) > 2e-3) < 0.01
    assert np.mean(np.abs(weighted - plain) > 2e-3) > 0.01


def test_closed_form():
    groups = pd.Series(list("aaab"))
    weights = independence_weights(groups, np.array([0.0, 1, 1, 1]), np.array([1.0, 1, 1, 3]))
    # P(a) = P(b) = 1/2, P(1) = 5/6, P(a, 1) = 1/3, P(a, 0) = 1/6, P(b, 1) = 1/2.
    np.testing.assert_allclose(weights, [1 / 2, 5 / 4, 5 / 4, 5 / 6])
    groups, y = pd.Series(list("aabb")), np.arange(4) % 2.0
    nobody = independence_weights(groups, y, np.array([1.0, 1, 1, 0]))
    assert (nobody > 0).tolist() == [True, True, True, False]


def test_group_and_class_become_independent():
    draw = np.random.default_rng(0)
    group, other = draw.integers(3, size=400), draw.integers(2, size=400)
    y = (draw.random(400) < 0.2 + 0.25 * group) + 2.0 * other  # of four classes
    groups, weight = pd.Series(group.astype(str)), draw.integers(4, size=400).astype(float)
    reweighed = weight * independence_weights(groups, y, weight)
    table = pd.crosstab(groups, y, values=reweighed, aggfunc="sum", normalize=True).to_numpy()
    np.testing.assert_allclose(table, table.sum(axis=1, keepdims=True) * table.sum(axis=0))
    assert reweighed.sum() == pytest.approx(weight.sum())


@pytest.mark.parametrize("strength", [0.0, 0.5, 1.0])
def test_the_estimator_is_fitted_with_the_product_of_weights_to_a_power(strength):
    train, test = rows()
    weight = np.random.default_rng(1).integers(3, size=len(train.y)).astype(float)
    ours = test.outputs(train.fit(wrapped(Reweighing(strength)), weight))["score"]
    product = weight * independence_weights(train.groups, train.y, weight) ** strength
    plain = LogisticRegression().estimator(Binomial(), 0).fit(train.X, train.y, product)
    np.testing.assert_array_equal(ours, plain.predict_proba(test.X)[:, 1])


def model(**options):
    return wrapped(FairGBM(**options), LightGBM(rounds=30), 2)


@pytest.mark.parametrize("constraint_type", ["FPR,FNR", "FPR", "FNR"])
def test_equals_the_package_called_directly(constraint_type):
    train, test = rows(Encoding.ONEHOT, n=900)
    ours = train.fit(model(constraint_type=constraint_type, multiplier_learning_rate=0.3))
    parameters = {
        "objective": "constrained_cross_entropy",
        "constraint_type": constraint_type,
        "multiplier_learning_rate": 0.3,
        "seed": 2,
        "num_threads": 1,
        "verbosity": -1,
    }
    groups = pd.factorize(train.groups, sort=True)[0]
    data = fairgbm.Dataset(train.X, train.y, constraint_group=groups)
    theirs = fairgbm.train(parameters, data, 30).predict(test.X)
    np.testing.assert_array_equal(test.outputs(ours)["score"], theirs)


def test_without_multipliers_it_is_the_learner():
    train, test = rows(Encoding.ONEHOT, n=900, n_groups=2)
    weight = np.random.default_rng(0).integers(0, 3, size=len(train.y)).astype(float)
    ours = train.fit(model(multiplier_learning_rate=0), weight)
    learner = LightGBM(rounds=30).estimator(Binomial(), 2)
    plain = learner.fit(train.X, train.y, sample_weight=weight).predict_proba(test.X)[:, 1]
    np.testing.assert_array_equal(test.outputs(ours)["score"], plain)


def test_refuses_what_it_cannot_do():
    train, _ = rows(Encoding.ONEHOT, n=600, n_groups=2)
    with pytest.raises(UserError, match="copies of rows.*fractions"):
        train.fit(model(), np.full(len(train.y), 0.5))
    lacking = Rows(train.X, train.y * (train.groups == "majority").to_numpy(), train.groups)
    with pytest.raises(UserError, match="label 1 in every group.*group 'minority'"):
        lacking.fit(model())
    assert np.isfinite(lacking.outputs(lacking.fit(model(constraint_type="FPR")))["score"]).all()


@pytest.mark.parametrize(
    "constraints", ["demographic_parity", "equalized_odds", "equal_opportunity"]
)
@pytest.mark.parametrize("predict_method", ["auto", "predict"])
@pytest.mark.parametrize("learner", [LogisticRegression(), XGBoost()], ids=["linear", "trees"])
def test_thresholds_equal_fairlearn_called_directly(learner, predict_method, constraints):
    train, test = rows()
    theirs = fairlearn.postprocessing.ThresholdOptimizer(
        estimator=learner.estimator(Binomial(), 0).fit(train.X, train.y),
        constraints=constraints.replace("equal_opportunity", "true_positive_rate_parity"),
        predict_method=predict_method,
        prefit=True,
    ).fit(train.X, train.y, sensitive_features=train.groups.astype(str))
    intervention = ThresholdOptimizer(constraints=constraints, predict_method=predict_method)
    np.testing.assert_array_equal(
        test.outputs(train.fit(wrapped(intervention, learner)), 7)["prediction"],
        theirs.predict(test.X, sensitive_features=test.groups.astype(str), random_state=7),
    )


def random_rates(groups, seed=0):
    positive = np.random.default_rng(seed).uniform(size=(groups, 2))
    return np.stack([1 - positive, positive], axis=2)


def test_chances_equal_aif360():
    """Many rows, labelled better than chance and with unequal rates."""
    datasets = pytest.importorskip("aif360.datasets")
    postprocessing = pytest.importorskip("aif360.algorithms.postprocessing")
    draw = np.random.default_rng(3)
    group = draw.integers(2, size=2000)
    y = (draw.random(2000) < np.where(group, 0.3, 0.6)).astype(float)
    chance = np.array([[0.1, 0.65], [0.3, 0.9]])[group, y.astype(int)]
    label = (draw.random(2000) < chance).astype(float)
    positive = [[label[(group == g) & (y == truth)].mean() for truth in (0, 1)] for g in (0, 1)]
    ours = equalised_odds(np.stack([1 - np.array(positive), positive], axis=2), np.ones(2))
    names = {"label_names": ["y"], "protected_attribute_names": ["g"]}
    true, said = (
        datasets.BinaryLabelDataset(df=pd.DataFrame({"y": labels, "g": group * 1.0}), **names)
        for labels in (y, label)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = postprocessing.EqOddsPostprocessing([{"g": 1}], [{"g": 0}]).fit(true, said)
    # Its variables are P(1 | 1) and P(1 | 0) of the privileged group, then of the other.
    expected = theirs.model_params.x.reshape(2, 2)[:, ::-1]
    np.testing.assert_allclose(ours, expected, atol=1e-7)
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


def test_perfect_labels_are_kept_and_costs_say_where_to_stop():
    perfect = np.tile(np.eye(2), (3, 1, 1))
    np.testing.assert_allclose(equalised_odds(perfect, np.ones(2)), [[0, 1]] * 3)
    rates = random_rates(2, seed=1)
    np.testing.assert_allclose(equalised_odds(rates, np.array([1, 0])), 0, atol=1e-9)
    np.testing.assert_allclose(equalised_odds(rates, np.array([0, 1])), 1, atol=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize("source", ["labels", "scores"])
def test_error_rates_are_equal_on_training_rows_in_expectation(source):
    train, _ = rows(base_rate_gap=2.0)
    model = train.fit(wrapped(Hardt(derived_from=source)))
    mean = np.mean([train.outputs(model, seed)["prediction"] for seed in range(200)], axis=0)
    said = pd.DataFrame({"plain": model.estimator.predict(train.X), "derived": mean})
    rates = said.groupby([train.y, train.groups.to_numpy()]).mean()
    gaps = rates.groupby(level=0).agg(np.ptp).max()
    # The smallest cell has about 30 rows: sd under 0.5 / sqrt(30 * 200) = 0.007.
    assert gaps["plain"] > 0.2 and gaps["derived"] < 0.04


@pytest.mark.parametrize("intervention", DERIVED, ids=str)
def test_draws_are_the_seeds_and_odd_groups_are_met(intervention):
    train, _ = rows()
    model = train.fit(wrapped(intervention))
    outputs = [train.outputs(model, seed)["prediction"] for seed in (1, 1, 2)]
    np.testing.assert_array_equal(outputs[0], outputs[1])
    assert (outputs[0] != outputs[2]).any()
    assert train.take([0]).outputs(model)["prediction"].shape == (1,)
    # A group without training rows keeps the estimator's labels.
    strangers = Rows(train.X, train.y, pd.Series(["stranger"] * len(train.y)))
    plain = model.estimator.predict(train.X)
    np.testing.assert_array_equal(strangers.outputs(model)["prediction"], plain)
    rare = train.groups.cat.categories[-1]
    members = (train.groups == rare).to_numpy()
    alike = Rows(train.X, np.where(members, 1.0, train.y), train.groups)
    with pytest.raises(UserError, match=f"{members.sum()} training rows of group '{rare}'.*1"):
        alike.fit(wrapped(intervention))
    with pytest.raises(UserError, match="count copies"):
        train.fit(wrapped(intervention), np.full(len(train.y), 0.5))
