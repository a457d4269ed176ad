"""Every learner, intervention and method found in conf/, run on a tiny simulated task."""

from copy import deepcopy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from fairbench.core.errors import IncompatibleError
from fairbench.core.seeds import rng
from fairbench.evaluation.predictions import read_predictions
from fairbench.evaluation.table import COLUMNS, KEYS
from fairbench.experiments import pipeline
from fairbench.experiments.compute import compute, raw_outputs
from fairbench.experiments.study import cells_of
from tests.harness import TINY, configuration, options

TASKS = {"binary": "simulated", "regression": "simulated_regression"}
COMPOSITIONS = [
    *((learner, "none", method) for learner in options("learner") for method in options("method")),
    *(
        (learner, intervention, method)
        for learner in options("learner")
        for intervention in options("intervention")
        if intervention != "none"
        for method in ("baseline", "ensemble")
    ),
]


# What has nothing to do with how components compose, and only takes time.
QUICK = {
    "bayesian_nn": ["learner.epochs=4"],
    "mlp": ["learner.epochs=4", "learner.dropout=0.1"],
    "random_forest": ["learner.n_estimators=4"],
    "sklearn_mlp": ["learner.max_iter=4"],
    "xgboost": ["learner.rounds=3"],
    "xgboost_tuned": ["learner.depths=[1,3]", "learner.rounds=6", "learner.patience=2"],
    "constant_sd": ["method.folds=2"],
    "deep_ensemble": ["method.members=2"],
    "ensemble": ["method.members=3"],
    "selective_ensemble": ["method.members=3"],
    "self_consistency": ["method.members=3"],
}


@cache
def composed(*overrides):
    """Return a configuration, composed once: that costs more than most of the fits."""
    return configuration(*overrides, *TINY)


@pytest.fixture(scope="module", params=COMPOSITIONS, ids="-".join)
def composition(request):
    return request.param


@pytest.fixture(scope="module", params=TASKS)
def run(request, composition, tmp_path_factory):
    choices = dict(zip(("learner", "intervention", "method"), composition, strict=True))
    cfg = deepcopy(composed(f"dataset={TASKS[request.param]}"))
    cfg.results = str(tmp_path_factory.mktemp("results"))
    for group, name in choices.items():
        cfg[group] = composed(f"{group}={name}", *QUICK.get(name, []))[group]
    try:
        return pipeline.prepare(cfg)
    except IncompatibleError as refusal:
        assert any(f"{group}={name}" in str(refusal) for group, name in choices.items())
        pytest.skip(str(refusal))


@pytest.fixture(scope="module")
def result(run):
    return pipeline.execute(run)


@pytest.fixture
def stored(run, result):
    """The raw outputs of the run's one cell."""
    return run.store.read(run.cells[0].id).columns


def test_run_gives_a_whole_metric_table(run, result):
    metrics = result.metrics
    assert list(metrics.columns) == [*KEYS, *COLUMNS]
    assert result.computed == len(run.cells)
    undefined = metrics["value"].isna()
    assert (undefined == metrics["status"].str.startswith("undefined")).all()
    assert metrics["n"].ge(0).all()
    assert {"error_rate", "rmse"} & set(metrics.loc[~undefined, "metric"])
    keys = [*KEYS, "metric", "attribute", "group", "setting"]
    assert not metrics.duplicated(keys).any()


def test_outputs_are_reproducible_and_blind_to_test_targets(run, stored):
    fold = run.cells[0].fold
    target = run.dataset.target.copy()
    target.iloc[fold.test] = target.iloc[fold.test].to_numpy()[::-1]
    other = replace(run.study, dataset=replace(run.dataset, target=target))
    again, _ = compute(other, fold)
    assert set(stored) == set(again)
    for name, values in stored.items():
        np.testing.assert_array_equal(values, again[name], err_msg=name)


def test_reading_is_pure(run, stored):
    raw = raw_outputs(stored)
    kept = {name: values.copy() for name, values in raw.items()}
    task = run.dataset.task
    kept_as_is = run.method.capabilities.keep_invalid
    tables = [
        read_predictions(
            run.method.read(raw, task, rng(0, "read")), task, "any", keep_invalid=kept_as_is
        )
        for _ in range(2)
    ]
    assert tables[0].equals(tables[1])
    assert len(tables[0]) == len(stored["row"])
    for name, values in kept.items():
        np.testing.assert_array_equal(raw[name], values)


def test_cell_ids_name_what_determines_the_outputs(run):
    folds = [cell.fold for cell in run.cells]
    assert [cell.id for cell in cells_of(run.study, folds)] == [cell.id for cell in run.cells]
    other = replace(run.study, seed=run.study.seed + 1)
    assert {cell.id for cell in cells_of(other, folds)}.isdisjoint(cell.id for cell in run.cells)
