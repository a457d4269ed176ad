"""Several classes: cells without all of them, folds, XGBoost, and outputs of members."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fairbench.components.algorithms.fitters.single import Single
from fairbench.components.algorithms.interventions.none import NoIntervention
from fairbench.components.algorithms.learners.xgboost import XGBoost
from fairbench.components.algorithms.losses import Softmax
from fairbench.data.dataset import Task
from fairbench.data.splits import Fold
from fairbench.experiments.compute import _flatten, compute, raw_outputs
from fairbench.experiments.contracts import Study

NAMES = ("low", "middle", "high")


def classes(make_dataset, n=120):
    data = make_dataset(n)
    code = pd.Series(np.random.default_rng(1).integers(3, size=n), name="grade")
    return replace(data, task=Task.MULTICLASS, classes=NAMES, target=code)


def test_training_rows_of_one_class_make_a_cell_invalid(make_dataset):
    data, rows = classes(make_dataset), np.arange(120)
    first = np.flatnonzero(data.target == 0)
    fold = Fold(0, 0, first, np.array([], np.intp), np.setdiff1d(rows, first))
    study = Study(data, XGBoost(), NoIntervention(), Single(), 0, ("sex",))
    assert compute(study, fold)[1]["invalid"] == f"only class 0 among {len(first)} training rows"


def test_xgboost_minimises_the_softmax_loss_as_its_own_objective_does():
    xgboost = pytest.importorskip("xgboost")
    draw = np.random.default_rng(0)
    X = draw.normal(size=(400, 4)).astype(np.float32)
    y = (X[:, 0] + draw.normal(size=400) > 0) * 1.0 + (X[:, 1] > 0.5)
    ours = XGBoost(rounds=8, max_depth=3).estimator(Softmax(3), 0).fit(X, y)
    parameters = {**ours.train_parameters, "objective": "multi:softprob", "num_class": 3}
    matrix = xgboost.QuantileDMatrix(X, y, max_bin=256, nthread=1)
    start = Softmax(3).initial(y)
    matrix.set_base_margin(np.tile(start, 400).astype(np.float32))
    theirs = xgboost.train(parameters, matrix, num_boost_round=8).predict(matrix)
    np.testing.assert_allclose(ours.predict_proba(X), theirs, atol=1e-5)
    assert (ours.predict(X) == theirs.argmax(axis=1)).all()


def test_outputs_of_members_and_classes_come_back_in_their_shape():
    score = np.random.default_rng(0).random((5, 4, 3)).astype(np.float32).astype(float)
    raw = {"score": score, "prediction": score[:, 0, 0], "extra": score[:, 0]}
    back = raw_outputs({"part": np.zeros(5), **_flatten(raw)})
    for name, values in raw.items():
        np.testing.assert_array_equal(back[name], values)
