"""Fitters of distributions: constant sd, marginal, deep ensemble, conformal."""

import numpy as np
import pandas as pd
import pytest

from fairbench.components.algorithms.fitters.bag import DeepEnsemble
from fairbench.components.algorithms.fitters.conformal import Conformal
from fairbench.components.algorithms.fitters.constant_sd import ConstantSD
from fairbench.components.algorithms.fitters.marginal import Marginal
from fairbench.components.algorithms.interventions.none import Unconstrained
from fairbench.components.algorithms.learners.xgboost import XGBoost
from fairbench.components.algorithms.losses import SquaredError
from fairbench.core.errors import UserError
from fairbench.data.dataset import Task
from fairbench.experiments.contracts import TrainingSet


def drawn(n=200, seeded=False, task=Task.REGRESSION, noise=0.5):
    draw = np.random.default_rng(0)
    X = draw.normal(size=(n, 2))
    y = X[:, 0] + noise * draw.normal(size=n)
    if task is Task.BINARY:
        y = (y > 0).astype(float)
    groups = pd.Series(pd.Categorical(np.where(np.arange(n) % 4, "many", "few")))
    return TrainingSet(X, y, groups, task, seeded)


class MeanModel:
    """Predicts the weighted mean of its labels, and remembers how it was fitted."""

    made = []

    def __init__(self, seed):
        self.seed = seed
        self.made.append(self)

    def fit(self, X, y, *, sensitive_features, sample_weight=None):
        self.frame, self.weight = X, sample_weight
        self.mean = np.average(y, weights=sample_weight)
        return self

    def outputs(self, X, *, sensitive_features, random_state):
        return {"mean": np.full(len(X), self.mean)}


@pytest.fixture
def make_mean():
    MeanModel.made = []
    return MeanModel


def test_the_constant_sd_is_that_of_residuals_of_rows_left_out(make_mean):
    train = drawn(20)
    fitted = ConstantSD(folds=5).fit(make_mean, train, np.random.default_rng(0))
    *folds, whole = make_mean.made
    assert whole.weight is None
    left_out = np.array([model.weight == 0 for model in folds])
    assert (left_out.sum(axis=0) == 1).all()
    assert (left_out.sum(axis=1) == 4).all()
    residuals = [train.y[out] - train.y[~out].mean() for out in left_out]
    outputs = fitted.outputs(train.X[:3], train.sensitive[:3], np.random.default_rng(0))
    expected = np.sqrt(np.mean(np.concatenate(residuals) ** 2))
    np.testing.assert_allclose(outputs["sd"], np.full(3, expected))
    np.testing.assert_allclose(outputs["mean"], train.y.mean())
    assert all(model.frame is train.X for model in make_mean.made)


def test_the_marginal_fits_nothing(make_mean):
    train = drawn(30)
    fitted = Marginal().fit(make_mean, train, np.random.default_rng(0))
    outputs = fitted.outputs(train.X[:2], train.sensitive[:2], np.random.default_rng(0))
    assert not make_mean.made
    np.testing.assert_allclose(outputs["mean"], train.y.mean())
    np.testing.assert_allclose(outputs["sd"], train.y.std())
    labels = drawn(30, task=Task.BINARY)
    score = Marginal().fit(make_mean, labels, np.random.default_rng(0))
    outputs = score.outputs(train.X[:2], train.sensitive[:2], np.random.default_rng(0))
    np.testing.assert_allclose(outputs["score"], labels.y.mean())


def test_members_see_all_rows_where_seeds_make_them_differ_and_bootstraps_elsewhere(make_mean):
    DeepEnsemble(3).fit(make_mean, drawn(50, seeded=True), np.random.default_rng(0))
    assert [model.weight for model in make_mean.made] == [None] * 3
    assert len({model.seed for model in make_mean.made}) == 3
    DeepEnsemble(3).fit(make_mean, drawn(50), np.random.default_rng(0))
    weights = [model.weight for model in make_mean.made[3:]]
    assert len({weight.tobytes() for weight in weights}) == 3
    assert all(weight.sum() == 50 for weight in weights)


def test_a_deep_ensemble_minimises_a_likelihood():
    assert DeepEnsemble().loss(Task.BINARY).name == "binomial"
    assert DeepEnsemble().loss(Task.REGRESSION).name == "normal_nll"
    with pytest.raises(UserError, match=r"^method\.members is 1; "):
        DeepEnsemble(1)


def conformal(make, train, levels=(0.5, 0.9), share=0.25, seed=0):
    fitter = Conformal(levels, share, scaled=False)
    fitted = fitter.fit(make, train, np.random.default_rng(seed))
    return fitted, fitted.outputs(train.X, train.sensitive, np.random.default_rng(0))


def test_conformal_radii_are_quantiles_of_rows_the_model_has_not_seen(make_mean):
    train = drawn(76)
    _, outputs = conformal(make_mean, train)
    (model,) = make_mean.made
    held_out = model.weight == 0
    scores = np.sort(np.abs(train.y[held_out] - train.y[~held_out].mean()))
    assert len(scores) == 19
    np.testing.assert_allclose(outputs["radius"][0], [scores[9], scores[17]])
    for group in ("many", "few"):
        inside = (train.sensitive == group).to_numpy()
        own = np.sort(np.abs(train.y[held_out & inside] - model.mean))
        rank = int(np.ceil((len(own) + 1) * 0.5))
        np.testing.assert_allclose(outputs["group_radius"][inside, 0], own[rank - 1])


def test_too_few_rows_and_unseen_groups_have_infinite_radii(make_mean):
    train = drawn(40)
    fitted, _ = conformal(make_mean, train, levels=(0.5, 0.95))
    strangers = pd.Series(pd.Categorical(["new", "many"]))
    outputs = fitted.outputs(train.X[:2], strangers, np.random.default_rng(0))
    assert np.isinf(outputs["group_radius"][0]).all()
    assert np.isfinite(outputs["group_radius"][1, 0])
    # 10 rows cannot promise 95 %: the smallest level they cannot is 10 / 11.
    assert np.isinf(outputs["radius"][0, 1])


def test_both_classes_stay_among_the_fitted_rows(make_mean):
    train = drawn(30, task=Task.BINARY)
    rare = TrainingSet(train.X, (np.arange(30) < 2).astype(float), train.sensitive, Task.BINARY)

    class Scores(MeanModel):
        def outputs(self, X, *, sensitive_features, random_state):
            return {"score": np.full(len(X), self.mean)}

    for seed in range(50):
        conformal(Scores, rare, share=0.5, seed=seed)
    assert all(model.mean > 0 for model in Scores.made)


def test_held_out_predictions_do_not_bin_the_frame_again():
    from fairbench.components.algorithms.estimators import xgboost

    train = drawn(80)
    matrix = xgboost.binned(train.X, 256)
    learner = XGBoost(rounds=2)
    ConstantSD(2).fit(
        lambda seed: Unconstrained(learner.estimator(SquaredError(), seed)),
        train,
        np.random.default_rng(0),
    )
    assert xgboost.binned(train.X, 256) is matrix
