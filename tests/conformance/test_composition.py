"""Every learner, intervention and method found in conf/, run on a tiny simulated task."""

from dataclasses import replace

import numpy as np
import pytest

from fairbench import pipeline
from fairbench.compute import compute, raw_outputs
from fairbench.errors import IncompatibleError
from fairbench.evaluation.table import COLUMNS, KEYS
from fairbench.predictions import read_predictions
from fairbench.seeds import rng
from fairbench.study import cells_of
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


@pytest.fixture(params=COMPOSITIONS, ids="-".join)
def composition(request):
    return request.param


@pytest.fixture(params=TASKS)
def run(request, composition, tmp_path):
    learner, intervention, method = composition
    choices = {"learner": learner, "intervention": intervention, "method": method}
    overrides = [f"{group}={name}" for group, name in choices.items()]
    cfg = configuration(f"dataset={TASKS[request.param]}", *overrides, *TINY, results=tmp_path)
    try:
        return pipeline.prepare(cfg)
    except IncompatibleError as refusal:
        assert any(f"{group}={name}" in str(refusal) for group, name in choices.items())
        pytest.skip(str(refusal))


def test_run_gives_a_whole_metric_table(run):
    result = pipeline.execute(run)
    metrics = result.metrics
    assert list(metrics.columns) == [*KEYS, *COLUMNS]
    assert result.computed == len(run.cells)
    undefined = metrics["value"].isna()
    assert (undefined == metrics["status"].str.startswith("undefined")).all()
    assert metrics["n"].ge(0).all()
    assert {"error_rate", "rmse"} & set(metrics.loc[~undefined, "metric"])
    keys = [*KEYS, "metric", "attribute", "group", "setting"]
    assert not metrics.duplicated(keys).any()


def test_outputs_are_reproducible_and_blind_to_test_targets(run):
    fold = run.cells[0].fold
    columns, _ = compute(run.study, fold)
    target = run.dataset.target.copy()
    target.iloc[fold.test] = target.iloc[fold.test].to_numpy()[::-1]
    other = replace(run.study, dataset=replace(run.dataset, target=target))
    again, _ = compute(other, fold)
    assert set(columns) == set(again)
    for name, values in columns.items():
        np.testing.assert_array_equal(values, again[name], err_msg=name)


def test_reading_is_pure(run):
    columns, _ = compute(run.study, run.cells[0].fold)
    raw = raw_outputs(columns)
    kept = {name: values.copy() for name, values in raw.items()}
    task = run.dataset.task
    tables = [
        read_predictions(run.method.read(raw, task, rng(0, "read")), task, "any") for _ in range(2)
    ]
    assert tables[0].equals(tables[1])
    assert len(tables[0]) == len(columns["row"])
    for name, values in kept.items():
        np.testing.assert_array_equal(raw[name], values)


def test_cell_ids_name_what_determines_the_outputs(run):
    folds = [cell.fold for cell in run.cells]
    assert [cell.id for cell in cells_of(run.study, folds)] == [cell.id for cell in run.cells]
    other = replace(run.study, seed=run.study.seed + 1)
    assert {cell.id for cell in cells_of(other, folds)}.isdisjoint(cell.id for cell in run.cells)
