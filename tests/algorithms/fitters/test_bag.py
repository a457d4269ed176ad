"""Bags: bootstraps as whole-number weights, one for each member."""

import numpy as np
import pandas as pd
import pytest

from fairbench.components.algorithms.fitters.bag import Bag, bootstrap_weights
from fairbench.components.algorithms.fitters.single import Single
from fairbench.components.algorithms.interventions.none import NoIntervention
from fairbench.components.algorithms.learners.logistic_regression import LogisticRegression
from fairbench.components.algorithms.losses import Binomial
from fairbench.data.dataset import Task
from fairbench.data.features import Encoder, Encoding
from fairbench.experiments.contracts import TrainingSet


@pytest.fixture
def training(make_dataset):
    return encoded(make_dataset(80))


def encoded(data):
    features = Encoder(Encoding.STANDARD).fit(data.features).transform(data.features)
    return TrainingSet(features, data.target.to_numpy(float), data.groups("sex"), data.task)


class Recorder:
    """A model that remembers how it was called."""

    made = []

    def __init__(self, seed):
        self.seed = seed
        self.made.append(self)

    def fit(self, X, y, *, sensitive_features, sample_weight=None):
        self.frame, self.weight, self.groups = X, sample_weight, sensitive_features
        return self

    def outputs(self, X, *, sensitive_features, random_state):
        self.random_state = random_state
        return {"score": np.full(len(X), self.seed % 1000 / 1000)}


@pytest.fixture
def recorder():
    Recorder.made = []
    return Recorder


def test_weights_are_whole_numbers_that_sum_to_the_number_of_rows(training):
    for seed in range(50):
        weight = bootstrap_weights(training, np.random.default_rng(seed))
        assert weight.shape == (80,)
        assert (weight == weight.astype(int)).all()
        assert (weight >= 0).all()
        assert weight.sum() == 80


def test_rows_are_drawn_equally_often_with_replacement(training):
    generator = np.random.default_rng(0)
    weights = np.array([bootstrap_weights(training, generator) for _ in range(4000)])
    # A row's count is binomial(80, 1/80): mean 1, variance 79/80.
    assert (np.abs(weights.mean(axis=0) - 1) < 5 * np.sqrt(79 / 80 / 4000)).all()
    assert weights.var() == pytest.approx(79 / 80, rel=0.02)
    assert (weights == 0).mean() == pytest.approx((79 / 80) ** 80, abs=0.005)


@pytest.mark.parametrize("positives", [1, 2, 29])
def test_each_class_of_the_training_rows_is_in_every_bootstrap(make_dataset, positives):
    target = pd.Series((np.arange(30) < positives).astype(int))
    training = encoded(make_dataset(30, target=target))
    for seed in range(100):
        weight = bootstrap_weights(training, np.random.default_rng(seed))
        assert weight.sum() == 30
        assert {0, 1} == set(training.y[weight > 0])


def test_rows_of_one_class_and_regressions_are_drawn_once(make_dataset):
    one = encoded(make_dataset(5, target=pd.Series(np.ones(5, int))))
    target = pd.Series([1.0, 2.0, 3.0, 4.0, 5.0])
    values = encoded(make_dataset(5, target=target, task=Task.REGRESSION))
    for seed in range(20):
        expected = np.bincount(np.random.default_rng(seed).integers(5, size=5), minlength=5)
        for training in (one, values):
            weight = bootstrap_weights(training, np.random.default_rng(seed))
            np.testing.assert_array_equal(weight, expected)


def test_weights_fit_the_same_model_as_resampled_rows(training):
    learner = LogisticRegression(tol=1e-10, max_iter=10_000)
    weight = bootstrap_weights(training, np.random.default_rng(3))
    rows = np.repeat(np.arange(80), weight.astype(int))
    weighted, resampled = (
        NoIntervention().wrap(learner.estimator(Binomial(), 0), 0) for _ in range(2)
    )
    groups = training.sensitive
    weighted.fit(training.X, training.y, sensitive_features=groups, sample_weight=weight)
    resampled.fit(training.X[rows], training.y[rows], sensitive_features=groups.iloc[rows])
    one, other = (
        model.outputs(training.X, sensitive_features=groups, random_state=0)["score"]
        for model in (weighted, resampled)
    )
    np.testing.assert_allclose(one, other, atol=1e-6)
    plain = NoIntervention().wrap(learner.estimator(Binomial(), 0), 0)
    plain.fit(training.X, training.y, sensitive_features=groups)
    full = plain.outputs(training.X, sensitive_features=groups, random_state=0)["score"]
    assert np.abs(one - full).max() > 0.01


def test_members_differ_in_seed_and_bootstrap_and_share_one_frame(training, recorder):
    Bag(6).fit(recorder, training, np.random.default_rng(0))
    assert len(recorder.made) == 6
    assert len({model.seed for model in recorder.made}) == 6
    assert len({model.weight.tobytes() for model in recorder.made}) == 6
    assert all(model.frame is training.X for model in recorder.made)
    assert all(model.groups is training.sensitive for model in recorder.made)


def test_a_bag_follows_its_generator_and_its_members_do_not_depend_on_its_size(training, recorder):
    for members, seed in ((4, 0), (4, 0), (2, 0), (4, 1)):
        Bag(members).fit(recorder, training, np.random.default_rng(seed))
    drawn = [(model.seed, model.weight.tobytes()) for model in recorder.made]
    assert drawn[:4] == drawn[4:8]
    assert drawn[8:10] == drawn[:2]
    assert not set(drawn[10:]) & set(drawn[:4])


def test_outputs_have_a_column_for_each_member(training, recorder):
    fitted = Bag(5).fit(recorder, training, np.random.default_rng(0))
    outputs = fitted.outputs(training.X[:7], training.sensitive[:7], np.random.default_rng(1))
    assert set(outputs) == {"score"}
    expected = [model.seed % 1000 / 1000 for model in recorder.made]
    np.testing.assert_array_equal(outputs["score"], np.tile(expected, (7, 1)))
    assert len({model.random_state for model in recorder.made}) == 5


def test_a_single_model_is_fitted_once_without_weights(training, recorder):
    fitted = Single().fit(recorder, training, np.random.default_rng(0))
    (model,) = recorder.made
    assert model.weight is None
    assert model.frame is training.X
    outputs = fitted.outputs(training.X[:7], training.sensitive[:7], np.random.default_rng(1))
    assert outputs["score"].shape == (7,)


@pytest.mark.parametrize("fitter", [Single(), Bag()], ids=["single", "bag"])
def test_the_loss_is_that_of_the_task(fitter):
    assert fitter.loss(Task.BINARY).name == "binomial"
    assert fitter.loss(Task.REGRESSION).name == "squared_error"
