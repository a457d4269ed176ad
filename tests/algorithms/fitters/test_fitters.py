"""Fitters: bags, a constant sd, the marginal, deep ensembles, conformal radii and thresholds."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

from fairbench.components.algorithms.fitters.bag import Bag, DeepEnsemble, bootstrap_weights
from fairbench.components.algorithms.fitters.conditional_quantiles import covering_threshold
from fairbench.components.algorithms.fitters.conformal import Conformal
from fairbench.components.algorithms.fitters.constant_sd import ConstantSD
from fairbench.components.algorithms.fitters.marginal import Marginal
from fairbench.components.algorithms.fitters.single import Single
from fairbench.components.algorithms.interventions.none import Unconstrained
from fairbench.components.algorithms.learners.xgboost import XGBoost
from fairbench.components.algorithms.losses import SquaredError
from fairbench.components.algorithms.overlapping_groups import OverlappingGroups
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
    """A model that remembers how it was called, and says its seed."""

    made = []

    def __init__(self, seed):
        self.seed = seed
        self.made.append(self)

    def fit(self, X, y, *, sensitive_features, sample_weight=None):
        self.frame, self.weight, self.groups = X, sample_weight, sensitive_features
        self.mean = np.average(y, weights=sample_weight)
        return self

    def outputs(self, X, *, sensitive_features, random_state):
        self.random_state = random_state
        return {"score": np.full(len(X), self.seed % 1000 / 1000)}


@pytest.fixture
def recorder():
    Recorder.made = []
    return Recorder


@pytest.mark.parametrize("positives", [1, 2, 29])
def test_each_class_of_the_training_rows_is_in_every_bootstrap(make_dataset, positives):
    target = pd.Series((np.arange(30) < positives).astype(int))
    training = encoded(make_dataset(30, target=target))
    for seed in range(100):
        weight = bootstrap_weights(training, np.random.default_rng(seed))
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


def test_a_bag_follows_its_generator_and_its_members_do_not_depend_on_its_size(training, recorder):
    for members, seed in ((4, 0), (4, 0), (2, 0), (4, 1)):
        Bag(members).fit(recorder, training, np.random.default_rng(seed))
    drawn = [(model.seed, model.weight.tobytes()) for model in recorder.made]
    assert all(len(set(each)) == 4 for each in zip(*drawn[:4], strict=True))
    assert all(model.frame is training.X for model in recorder.made)
    assert all(model.groups is training.sensitive for model in recorder.made)
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


def drawn(n=200, seeded=False, task=Task.REGRESSION, noise=0.5):
    draw = np.random.default_rng(0)
    X = draw.normal(size=(n, 2))
    y = X[:, 0] + noise * draw.normal(size=n)
    if task is Task.BINARY:
        y = (y > 0).astype(float)
    groups = pd.Series(pd.Categorical(np.where(np.arange(n) % 4, "many", "few")))
    return TrainingSet(X, y, groups, task, seeded)


class MeanModel(Recorder):
    """Predicts the weighted mean of its labels."""

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


def test_the_loss_is_that_of_the_task():
    for fitter, name in (
        (Single(), "squared_error"), (Bag(), "squared_error"), (DeepEnsemble(), "normal_nll"),
    ):  # fmt: skip
        assert fitter.loss(Task.BINARY).name == "binomial"
        assert fitter.loss(Task.REGRESSION).name == name


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

    def model(seed):
        return Unconstrained(learner.estimator(SquaredError(), seed))

    ConstantSD(2).fit(model, train, np.random.default_rng(0))
    assert xgboost.binned(train.X, 256) is matrix


# Cells of two attributes with 2 and 3 groups; the groups, and one combination.
CELLS = [(a, b) for a in range(2) for b in range(3)]
MEMBERS = np.array([[a == 0, a == 1, b == 0, b == 1, b == 2, a == b == 0] for a, b in CELLS])


def scores_of(sizes, seed=0):
    draw = np.random.default_rng(seed)
    return [np.sort(draw.exponential(1 + c % 3, n)) for c, n in enumerate(sizes)]


def bisected(scores, members, own, level):
    """Impute scores of the new row until its dual weight reaches its bound, with all rows."""
    cell = np.repeat(np.arange(len(scores)), [len(score) for score in scores])
    known, phi = np.concatenate(scores), np.vstack([members[cell], own]).astype(float)

    def at_bound(score):
        solution = linprog(
            -np.append(known, score), A_eq=phi.T, b_eq=np.zeros(phi.shape[1]),
            bounds=(level - 1, level),
        )  # fmt: skip
        return solution.x[-1] > level - 1e-6

    low, high = -1.0, 100.0
    if not at_bound(high):
        return np.inf
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if at_bound(middle) else (middle, high)
    return high


@pytest.mark.parametrize("seed", range(6))
def test_thresholds_are_those_of_the_programme_with_an_imputed_score(seed):
    draw = np.random.default_rng(seed)
    scores = scores_of(draw.integers(0, 50, len(CELLS)), seed)
    own, level = MEMBERS[draw.integers(len(CELLS))], draw.choice([0.5, 0.8, 0.9])
    result = covering_threshold(scores, MEMBERS, own, level)
    assert result == pytest.approx(bisected(scores, MEMBERS, own, level), abs=1e-6)


def test_a_group_without_calibration_rows_has_an_infinite_threshold():
    scores, stranger = scores_of([50] * 6), np.zeros(6, bool)
    members = np.column_stack([MEMBERS, np.zeros(6, bool)])
    assert covering_threshold(scores, members, np.append(stranger, True), 0.5) == np.inf


def labels(counts):
    named = [label for label, count in counts.items() for _ in range(count)]
    return pd.Series(pd.Categorical(named), name="sex x race")


def test_combinations_are_groups_where_they_have_rows_enough():
    sensitive = labels({"f x a": 30, "f x b": 2, "m x a": 9, "m x b": 10})
    groups = OverlappingGroups.of(sensitive, smallest=10)
    assert groups.names() == ["f", "m", "a", "b", "f x a", "m x b"]
    members = groups.members(["f x a", "m x a", "f x new"]).astype(int).tolist()
    assert members == [[1, 0, 1, 0, 1, 0], [0, 1, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0]]


def test_a_label_of_one_attribute_is_one_group_whatever_it_is_called():
    sensitive = labels({"f x a": 3, "m x b": 3}).rename("household")
    assert OverlappingGroups.of(sensitive, smallest=1).names() == ["f x a", "m x b"]
