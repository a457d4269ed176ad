"""What is learnt does not depend on the units that features and targets are measured in."""

from dataclasses import replace
from functools import cache
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

from fairbench.components.algorithms.estimators.xgboost import unit_of
from fairbench.components.algorithms.fitters.single import Single
from fairbench.components.algorithms.interventions.none import NoIntervention
from fairbench.components.algorithms.losses import NormalLoss, SquaredError
from fairbench.components.datasets import simulated
from fairbench.data.dataset import Task
from fairbench.data.features import Encoder, Encoding, SequenceEncoding, Unit
from fairbench.data.splits import RepeatedHoldout
from fairbench.experiments.compute import compute, raw_outputs
from fairbench.experiments.contracts import Study
from tests.conformance import grid
from tests.harness import options, quick

# Seconds within some minutes; values in a billionth of a unit, or in one beyond single precision.
FEATURES = {
    "Unix seconds": lambda t: t + 1.7e9,
    "billionths": lambda t: t * 1e-9,
    "tiny": lambda t: t * 1e-50,
    "huge": lambda t: t * 1e30,
}
TARGETS = {f"times {k:g}": lambda y, k=k: y * k for k in (1e-12, 1e-6, 1e-3, 1e3, 1e6, 1e20)}
TARGETS |= {"in tiny units": lambda y: y * 1e-40, "Unix seconds": lambda y: y + 1.7e9}
# Forests break ties by the last digit, and LightGBM gives 0 a bin of its own.
TOLERANCES = {"random_forest": 0.03, "lightgbm": 0.03}
LOSSES = ("squared_error", "normal_nll", "beta_nll", "faithful_nll")


@cache
def population(task):
    """Return people of whom a first feature in seconds, t, says most."""
    data = simulated.load(None, task=task, n_samples=240, n_features=3, noise=0.3)
    features = data.features.rename(columns={"x0": "t"})
    return replace(data, features=features.assign(t=(20 * features["t"]).round(2)))


def outputs(learner, dataset, loss="squared_error"):
    """Return the targets of test rows, and what is stored of a fit."""
    fitter = Single() if loss == "squared_error" else Single(NormalLoss(loss))
    study = Study(dataset, learner, NoIntervention(), fitter, 0, ("group",))
    (fold,) = RepeatedHoldout(repeats=1, validation=0.0).folds(dataset, 0)
    columns, _ = compute(study, fold)
    return dataset.target.to_numpy()[columns["row"]], raw_outputs(columns)


def r2(y, raw):
    return 1 - ((y - raw["mean"]) ** 2).sum() / ((y - y.mean()) ** 2).sum()


def learners(task):
    """Yield the names of the learners of columns that this machine has."""
    for name in options("learner"):
        learner = grid._component("learner", name)
        needs = learner.capabilities
        of_columns = not isinstance(learner.encoding, SequenceEncoding)
        if of_columns and task in needs.tasks and all(map(find_spec, needs.requires)):
            yield name


FEW = ("lightgbm", "logistic_regression", "sklearn_mlp", "xgboost")


def in_units(features, change):
    return features.assign(t=change(features["t"]))


@pytest.mark.parametrize("task", [Task.BINARY, Task.MULTICLASS])
@pytest.mark.parametrize("name", quick(learners(Task.BINARY), FEW))
def test_scores_do_not_depend_on_the_units_of_features(name, task):
    learner, dataset = grid._component("learner", name), population(task)
    if task not in learner.capabilities.tasks:
        pytest.skip(f"{name} has no {task} task")
    _, expected = outputs(learner, dataset)
    (kind,) = expected.keys() & {"score", "prediction"}
    for unit, change in FEATURES.items():
        changed = replace(dataset, features=in_units(dataset.features, change))
        _, found = outputs(learner, changed)
        assert np.abs(found[kind] - expected[kind]).mean() <= TOLERANCES.get(name, 1e-4), unit


@pytest.mark.thorough
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", quick(learners(Task.REGRESSION), FEW, rest=pytest.mark.slow))
def test_r2_does_not_depend_on_the_units_of_features_and_target(name, loss):
    learner, dataset = grid._component("learner", name), population(Task.REGRESSION)
    losses = learner.capabilities.losses
    if losses is not None and loss not in losses:
        pytest.skip(f"{name} has no {loss}")
    expected = r2(*outputs(learner, dataset, loss))
    features, target = dataset.features, dataset.target
    changed = {
        **{unit: {"features": in_units(features, change)} for unit, change in FEATURES.items()},
        **{f"y {unit}": {"target": change(target)} for unit, change in TARGETS.items()},
    }
    tolerance = TOLERANCES.get(name, 1e-4)
    for unit, parts in changed.items():
        found = r2(*outputs(learner, replace(dataset, **parts), loss))
        assert found == pytest.approx(expected, abs=tolerance), unit


ORDINARY = {
    "normal": np.random.default_rng(0).normal(size=5000),
    "log-normal": np.random.default_rng(0).lognormal(8, 2, size=5000),
    "ages": np.arange(18.0, 90.0),
    "years": 2000.0 + np.arange(30),
    "kelvin": 280 + np.random.default_rng(0).normal(0, 10, 500).round(2),
    "shares": np.random.default_rng(0).beta(2, 5, 500),
    "mostly one": np.append(np.full(500, 0.1), [0.2, 0.3, 0.7]),
    "missing": np.append(np.random.default_rng(0).normal(size=50), np.nan),
    "constant": np.full(20, 0.1),
    "labels": np.array([0.0, 1.0, 1.0]),
    "zero": np.zeros(5),
}


@pytest.mark.parametrize("values", ORDINARY.values(), ids=ORDINARY)
def test_numbers_of_an_ordinary_size_keep_their_unit(values):
    assert Unit.of_feature(values) == Unit()
    assert Unit.of_target(values[~np.isnan(values)]) == Unit()


def test_a_scale_is_a_power_of_two_so_that_no_digit_changes():
    y = np.random.default_rng(0).normal(size=100) * 1e-6
    unit = Unit.of_target(y)
    assert unit.shift == 0
    assert np.frexp(unit.scale)[0] == 0.5
    np.testing.assert_array_equal(unit.mean(unit.standard(y)), y)


def test_a_penalty_that_is_given_is_in_the_unit_of_the_target():
    y = np.random.default_rng(0).normal(size=100) * 1e-6
    assert unit_of(SquaredError(), {"gamma": 0.0}, y, None) != Unit()
    for name in ("gamma", "reg_alpha"):
        assert unit_of(SquaredError(), {name: 1e-14}, y, None) == Unit()


@pytest.mark.parametrize("encoding", Encoding)
def test_neither_rounding_nor_a_placeholder_merges_what_differs(encoding):
    features = population(Task.BINARY).features
    seconds = features["t"] + 1.7e9
    placeholder = np.arange(len(seconds)) % 2 == 0
    for column in (seconds, seconds.mask(placeholder, 0.0), seconds.mask(placeholder)):
        frame = features.assign(t=column)
        matrix = Encoder(encoding).fit(frame).transform(frame)
        dense = matrix.toarray() if hasattr(matrix, "toarray") else matrix
        found = pd.DataFrame(dense).iloc[:, 0].to_numpy()[~column.isna()].astype(np.float32)
        if encoding is not Encoding.STANDARD or not (column == 0).any():
            assert len(np.unique(found)) == column.nunique()


def test_what_is_far_from_the_training_rows_stays_finite():
    training = pd.DataFrame({"t": np.arange(20) * 1e-50})
    fitted = Encoder(Encoding.ONEHOT).fit(training)
    found = fitted.transform(pd.DataFrame({"t": [1e-49, 1e30, -1e30, np.nan]})).toarray()[:, 0]
    assert np.isfinite(found[:3]).all()
    assert found[2] < found[0] < found[1]
    assert np.isnan(found[3])
