"""The reductions equal fairlearn's around the plain estimator, and so do its moments."""

from dataclasses import replace
from types import SimpleNamespace

import fairlearn.reductions
import numpy as np
import pandas as pd
import pytest
import sklearn.linear_model
import xgboost
from sklearn.dummy import DummyClassifier
from threadpoolctl import threadpool_limits

from fairbench.components.algorithms.estimators import moments
from fairbench.components.algorithms.estimators.xgboost import XGBoostEstimator
from fairbench.components.algorithms.interventions.exponentiated_gradient import (
    ExponentiatedGradient,
    drawn_values,
)
from fairbench.components.algorithms.interventions.grid_search import GridSearch
from fairbench.components.algorithms.interventions.rows import OnRows, Rows
from fairbench.components.algorithms.learners.logistic_regression import LogisticRegression
from fairbench.components.algorithms.learners.xgboost import XGBoost
from fairbench.components.algorithms.losses import SquaredError
from fairbench.core.errors import UserError
from fairbench.data.features import Encoding
from fairbench.experiments.execute import carry_out
from tests.algorithms.interventions.encoded import rows, wrapped
from tests.harness import TINY, configuration, quick

# As many bins as rows: fairlearn's estimator would place fewer by the weights of each refit.
TREES = {"max_depth": 3, "max_bin": 1024}
PLAIN = {**TREES, "n_estimators": 5, "n_jobs": 1}
PARITIES = {
    "demographic_parity": fairlearn.reductions.DemographicParity,
    "equalized_odds": fairlearn.reductions.EqualizedOdds,
    "equal_opportunity": fairlearn.reductions.TruePositiveRateParity,
}
CLASSIFIERS = {
    "xgboost": (XGBoost(rounds=5, **TREES), xgboost.XGBClassifier(**PLAIN)),
    "logistic_regression": (
        LogisticRegression(max_iter=1000, tol=1e-8),
        sklearn.linear_model.LogisticRegression(max_iter=1000, tol=1e-8),
    ),
}
# Combinations beyond the first few take long.
THREE = pytest.param(3, marks=pytest.mark.slow)
LINEAR = pytest.param("logistic_regression", marks=pytest.mark.thorough)


def classified(intervention, learner=CLASSIFIERS["xgboost"][0]):
    return wrapped(intervention, learner)


def regressed(intervention):
    return intervention.wrap(XGBoost(rounds=5, **TREES).estimator(SquaredError(), 0), 0)


def theirs(reduction, train):
    return reduction.fit(train.X, train.y, sensitive_features=train.groups.astype(str))


@pytest.fixture(autouse=True)
def one_thread():
    """Fit as cells are computed."""
    with threadpool_limits(1):
        yield


@pytest.mark.parametrize("n_groups", [2, THREE])
@pytest.mark.parametrize("constraints", quick(PARITIES, ["equalized_odds"]))
@pytest.mark.parametrize("learner", ["xgboost", LINEAR])
def test_labels_equal_fairlearn_called_directly(learner, constraints, n_groups):
    train, test = rows(n=600, n_groups=n_groups, base_rate_gap=2.0)
    (mine, plain), parity = CLASSIFIERS[learner], PARITIES[constraints]
    ours = train.fit(classified(ExponentiatedGradient(constraints, max_iter=8), mine))
    direct = fairlearn.reductions.ExponentiatedGradient(plain, parity(), max_iter=8)
    expected = theirs(direct, train).predict(test.X, random_state=7)
    np.testing.assert_array_equal(test.outputs(ours, 7)["prediction"], expected)
    ours = train.fit(classified(GridSearch(constraints, grid_size=16), mine))
    direct = fairlearn.reductions.GridSearch(plain, parity(), grid_size=16)
    expected = theirs(direct, train).predict_proba(test.X)[:, 1]
    np.testing.assert_allclose(test.outputs(ours)["score"], expected, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("n_groups", [2, 3])
@pytest.mark.parametrize("loss", ["SquareLoss", "AbsoluteLoss"])
def test_values_equal_fairlearn_called_directly(loss, n_groups):
    train, test = rows(n=600, n_groups=n_groups, task="regression")
    mean = xgboost.XGBRegressor(**PLAIN)
    measured = getattr(fairlearn.reductions, loss)(train.y.min(), train.y.max())
    name = loss.removesuffix("Loss").lower()
    for bound in (0.5, 100.0):
        moment = fairlearn.reductions.BoundedGroupLoss(measured, upper_bound=bound)
        ours = train.fit(regressed(ExponentiatedGradient(loss=name, bound=bound, max_iter=8)))
        direct = fairlearn.reductions.ExponentiatedGradient(mean, moment, max_iter=8)
        direct = theirs(direct, train)
        direct.weights_ = direct.weights_.sort_index()
        expected = direct.predict(test.X, random_state=7)
        np.testing.assert_allclose(test.outputs(ours, 7)["mean"], expected, rtol=1e-5, atol=1e-6)
    ours = train.fit(regressed(GridSearch(loss=name)))
    expected = theirs(fairlearn.reductions.GridSearch(mean, moment), train).predict(test.X)
    np.testing.assert_allclose(test.outputs(ours)["mean"], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("encoding", [Encoding.ONEHOT, Encoding.NATIVE])
@pytest.mark.parametrize("intervention", [ExponentiatedGradient(max_iter=2), GridSearch()])
def test_a_frame_of_any_layout_is_binned_once(intervention, encoding, monkeypatch):
    train, _ = rows(encoding, n=300, n_groups=2, base_rate_gap=2.0)
    made, whole = [], xgboost.QuantileDMatrix
    monkeypatch.setattr(
        xgboost, "QuantileDMatrix", lambda X, **kwargs: made.append(X) or whole(X, **kwargs)
    )
    for weight in (None, np.arange(len(train.y)) % 3.0):
        train.fit(classified(intervention, XGBoost(features=encoding)), weight)
    assert len(made) == 1
    assert made[0] is train.X


@pytest.mark.thorough
def test_a_problem_met_again_is_not_fitted_again(monkeypatch):
    """Trees that fit perfectly are fair by equalized odds, so that no refit differs."""
    train, _ = rows(n=300, n_groups=2)
    deep = XGBoost(rounds=60, max_depth=9, min_child_weight=0, reg_lambda=0)
    fits, fit = [], XGBoostEstimator.fit
    monkeypatch.setattr(
        XGBoostEstimator, "fit", lambda self, *args, **kw: fits.append(1) or fit(self, *args, **kw)
    )
    model = train.fit(classified(ExponentiatedGradient("equalized_odds"), deep))
    assert model.fitted.n_oracle_calls_ > 20
    assert len(fits) == 1
    assert model.diagnostics == {"constraint_active": 0.0}


# --- edges


def test_values_are_drawn_by_the_weights_of_their_own_models():
    constants = [SimpleNamespace(predict=lambda rows, v=v: np.full(len(rows), v)) for v in (0.0, 1)]
    fitted = SimpleNamespace(predictors_=constants, weights_=pd.Series([0.2, 0.8], index=[1, 0]))
    drawn = drawn_values(fitted, Rows.of(np.zeros((10_000, 1))), 0)
    # Five standard errors of a share of 0.2.
    assert abs(drawn.mean() - 0.2) < 5 * 0.004


def test_a_certain_label_where_one_class_has_all_the_weight():
    y = np.array([0.0, 0, 1, 1])
    oracle = OnRows(sklearn.linear_model.LogisticRegression())
    every = Rows.of(np.eye(4))
    oracle.fit(every, y, sample_weight=y)
    np.testing.assert_array_equal(oracle.predict(every), 1)
    chosen = classified(GridSearch())
    for chosen.fitted in (oracle, DummyClassifier(strategy="constant", constant=1)):
        if chosen.fitted is not oracle:
            chosen.fitted.fit(every, np.ones(4))
        outputs = chosen.outputs(np.eye(2), sensitive_features=None, random_state=0)
        np.testing.assert_array_equal(outputs["score"], [1.0, 1.0])


def test_a_group_without_positives_can_be_protected():
    train, test = rows(n=600, n_groups=3)
    train.y[(train.groups == train.groups.cat.categories[2]).to_numpy()] = 0
    for intervention in (
        ExponentiatedGradient("equalized_odds", max_iter=8),
        GridSearch("equalized_odds", grid_size=16),
    ):
        (values,) = test.outputs(train.fit(classified(intervention))).values()
        assert np.isfinite(values).all()


def test_a_grid_too_small_for_its_groups_is_refused():
    train, _ = rows(n=300, n_groups=3)
    train.fit(classified(GridSearch()))
    with pytest.raises(UserError, match="grid_size is 10, and 3 groups need .* least 16"):
        train.fit(classified(GridSearch("equalized_odds")))
    with pytest.raises(UserError, match="training rows have one"):
        train.fit(classified(GridSearch()), (train.groups == train.groups.iloc[0]).to_numpy(float))


@pytest.mark.filterwarnings("ignore:overflow")
def test_losses_too_large_for_the_bound_are_refused_in_one_line():
    train, _ = rows(n=200, task="regression")
    large = replace(train, y=1e4 * train.y)
    with pytest.raises(UserError, match="raise the bound, which is in the unit of the target"):
        large.fit(regressed(ExponentiatedGradient(bound=0.1)))


# --- bounds that do nothing


@pytest.mark.thorough
@pytest.mark.parametrize(("bound", "active"), [(0.01, 1), (1e6, 0)])
def test_a_run_reports_whether_its_bound_is_active(bound, active, tmp_path):
    words = "dataset=simulated_regression intervention=exponentiated_gradient method=ensemble"
    small = "method.members=2", "intervention.max_iter=5", "learner.rounds=3", *TINY
    asked = *words.split(), f"intervention.bound={bound}", *small
    metrics = carry_out(configuration(*asked, results=tmp_path)).prepared.folder.all_metrics()
    (row,) = metrics[metrics["metric"] == "constraint_active"].itertuples()
    assert (row.value, row.n, row.status) == (active, 160, "ok")


def loaded(moments, groups):
    """Give moments people of so many groups, and return a generator."""
    draw = np.random.default_rng(groups)
    labels = (draw.random(400) < 0.4).astype(float)
    codes = draw.choice(groups, 400, p={2: [0.6, 0.4], 3: [0.5, 0.3, 0.2]}[groups])
    labels[codes == 2] = 0  # a group without positives has no constraint on theirs
    for moment in moments:
        moment.load_data(np.zeros((400, 1)), labels, sensitive_features=codes.astype(str))
    return draw


@pytest.mark.thorough
@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("name", PARITIES)
def test_multipliers_are_projected_as_by_fairlearn(name, groups):
    ours, theirs = getattr(moments, name.title().replace("_", ""))(), PARITIES[name]()
    draw = loaded((ours, theirs), groups)
    for _ in range(20):
        multipliers = pd.Series(draw.exponential(size=len(ours.index)), ours.index)
        both = (each.project_lambda(multipliers) for each in (ours, theirs))
        pd.testing.assert_series_equal(*both, rtol=1e-12)


@pytest.mark.parametrize("groups", [2, 3])
def test_rows_are_weighted_as_by_fairlearn(groups):
    loss = fairlearn.reductions.SquareLoss(0, 1)
    ours, theirs = moments.BoundedGroupLoss(loss), fairlearn.reductions.BoundedGroupLoss(loss)
    pairs = [(ours, theirs), (ours.default_objective(), theirs.default_objective())]
    for mine, plain in pairs:
        draw = loaded((mine, plain), groups)
        for given in (None, pd.Series(draw.exponential(size=len(mine.index)), mine.index)):
            both = (each.signed_weights(given) for each in (mine, plain))
            pd.testing.assert_series_equal(*both, check_names=False)
