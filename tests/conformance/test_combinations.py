"""Learners, interventions, methods and splits found in conf/, every two of them in some run."""

from dataclasses import replace

import numpy as np
import pytest

from fairbench.core.arrays import rng
from fairbench.evaluation.predictions import read_predictions
from fairbench.evaluation.table import COLUMNS, KEYS, SETTINGS
from fairbench.experiments.compute import compute, raw_outputs
from fairbench.experiments.contracts import cells_of
from fairbench.experiments.execute import carry_out
from tests.conformance import grid


def marked():
    """Return the rows; those that only pair what other rows have run already are thorough."""
    rows, marked = grid.rows(), []
    once = grid.cover(rows, enumerate)
    for row in rows:
        marks = () if row in once else pytest.mark.thorough
        marked.append(pytest.param(row, marks=marks, id="-".join(row)))
    return marked


@pytest.mark.parametrize("row", marked())
def test_a_combination_works(row, tmp_path):
    end = carry_out(grid.composed(row, tmp_path))
    run = end.prepared
    assert end.computed == len(run.cells)
    stored = run.store.read(run.cells[0].id).columns
    metric_table_is_whole(run.folder.all_metrics())
    outputs_are_reproducible_and_blind_to_test_targets(run, stored)
    reading_is_pure(run, stored)
    cell_ids_name_what_determines_the_outputs(run)


def metric_table_is_whole(metrics):
    assert list(metrics.columns) == [*KEYS, *COLUMNS]
    undefined = metrics["value"].isna()
    assert (undefined == metrics["status"].isin(["undefined", "invalid"])).all()
    assert metrics["n"].ge(0).all()
    assert {"error_rate", "rmse"} & set(metrics.loc[~undefined, "metric"])
    keys = [*KEYS, "metric", "statistic", "attribute", "group", *SETTINGS]
    assert not metrics.duplicated(keys).any()


def outputs_are_reproducible_and_blind_to_test_targets(run, stored):
    fold = run.cells[0].fold
    target = run.dataset.target.copy()
    target.iloc[fold.test] = target.iloc[fold.test].to_numpy()[::-1]
    sensitive = run.dataset.sensitive.copy()
    if not run.study.group_at_prediction:
        rows = np.concatenate([fold.validation, fold.test])
        sensitive.iloc[rows] = sensitive.iloc[rows[::-1]].to_numpy()
    data = replace(run.dataset, target=target, sensitive=sensitive)
    other = replace(run.study, dataset=data)
    again, _ = compute(other, fold)
    assert set(stored) == set(again)
    for name, values in stored.items():
        np.testing.assert_array_equal(values, again[name], err_msg=name)


def reading_is_pure(run, stored):
    raw = raw_outputs(stored)
    kept = {name: values.copy() for name, values in raw.items()}
    task = run.dataset.task
    kept_as_is = run.method.capabilities.keep_invalid
    checked = {"keep_invalid": kept_as_is, "classes": len(run.dataset.classes)}
    said = (run.method.read(raw, task, rng(0, "read")) for _ in range(2))
    one, other = (read_predictions(columns, task, "any", **checked) for columns in said)
    assert one.equals(other)
    assert len(one) == len(stored["row"])
    for name, values in kept.items():
        np.testing.assert_array_equal(raw[name], values)


def cell_ids_name_what_determines_the_outputs(run):
    folds = [cell.fold for cell in run.cells]
    assert [cell.id for cell in cells_of(run.study, folds)] == [cell.id for cell in run.cells]
    other = replace(run.study, seed=run.study.seed + 1)
    assert {cell.id for cell in cells_of(other, folds)}.isdisjoint(cell.id for cell in run.cells)


def test_every_learner_intervention_and_method_is_run():
    ran = [set(column) for column in zip(*grid.rows(), strict=True)]
    components = map(grid.installed, ("learner", "intervention", "method"))
    assert ran == [set(grid.POPULATIONS), set(grid.SPLITS), *components]


def test_what_cannot_work_is_refused_in_one_line_that_names_a_choice():
    groups = ("learner", "intervention", "method")
    for dataset, *names in grid.every():
        sentence = grid.refused(dataset, *names)
        choices = [f"{group}={name}" for group, name in zip(groups, names, strict=True)]
        assert sentence is None or any(choice in sentence for choice in choices), sentence
        assert sentence is None or "\n" not in sentence
