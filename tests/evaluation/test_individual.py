"""Rows for individual fairness: whose, of what, among how many neighbours."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fairbench import Evaluator
from fairbench.core.arrays import rng
from fairbench.data.dataset import Task
from fairbench.evaluation.table import MetricTable
from fairbench.evaluation.uncertainties import evaluate_individual
from fairbench.metrics.uncertainty import Neighbours, individual_fairness
from tests.evaluation.labelled import by_place, labelled

DRAW = np.random.default_rng(0)
TARGET, PREDICTION = DRAW.integers(2, size=(2, 80))
SCORE, ENCODED = DRAW.random(80), DRAW.random((80, 3))


def data(groups="ab" * 40, **columns):
    columns = {"prediction": PREDICTION, "score": SCORE, **columns}
    return replace(labelled(TARGET, groups, **columns), encoded=ENCODED)


def rows_of(rows, k=3, attribute="g"):
    table = MetricTable()
    evaluate_individual(table, rows, k, attribute)
    return by_place(table)


def test_every_part_has_the_mean_of_its_rows():
    result, fairness = rows_of(data()), individual_fairness(SCORE, Neighbours.of(ENCODED, 3))
    group = np.array(list("ab" * 40))
    parts = {("", ""): np.ones(80, bool), ("b", ""): group == "b"}
    parts["a", "outcome=FP "] = (group == "a") & (TARGET == 0) & (PREDICTION == 1)
    parts["b", "outcome=FN "] = (group == "b") & (TARGET == 1) & (PREDICTION == 0)
    for (of, prefix), rows in parts.items():
        for k in (1, 3):
            row = result["individual_fairness_prediction", of, f"{prefix}k={k}"]
            assert row.value == pytest.approx(fairness[rows, k - 1].mean())
            few = f"insufficient: n={rows.sum()}, an interval needs 20"
            assert (row.n, row.status) == (rows.sum(), few if rows.sum() < 20 else "ok")
    measures, parts_of_two_groups = 2, 1 + 2 * 5
    assert len(result) == measures * parts_of_two_groups * 3


def test_labels_stand_in_for_scores_and_variances_are_compared_too():
    parts = {"aleatoric": SCORE / 4, "epistemic": SCORE / 5}
    rows = rows_of(data(**parts))
    names = {metric.removeprefix("individual_fairness_") for metric, *_ in rows}
    assert names == {"prediction", "aleatoric", "epistemic", "predictive"}
    labels = data()
    rows = rows_of(replace(labels, predictions=labels.predictions[["prediction"]]))
    expected = individual_fairness(PREDICTION.astype(float), Neighbours.of(ENCODED, 1)).mean()
    assert rows["individual_fairness_prediction", "", "k=1"].value == pytest.approx(expected)


def test_missing_outcomes_groups_and_neighbours_are_said():
    rows = data("a" * 80, prediction=TARGET)
    rows.groups["g"] = rows.groups["g"].cat.add_categories(["b"])
    result, metric = rows_of(rows, k=80), "individual_fairness_prediction"
    assert result[metric, "a", "outcome=FP k=1"].status == "undefined: no FP in group 'a'"
    assert result[metric, "b", "k=1"].status == "undefined: no rows in group 'b'"
    assert result[metric, "a", "k=80"].status == "undefined: nobody has 80 neighbours"
    assert result[metric, "a", "k=79"].status == "ok"


def test_off_by_default_and_for_labels_only():
    table = Evaluator().table(data(), [rng(0, "posterior")]).frame()
    assert not table["metric"].str.startswith("individual").any()
    with_rows = Evaluator(neighbours=2).table(data(), [rng(0, "posterior")]).frame()
    extra = with_rows["metric"].str.startswith("individual")
    same = with_rows[~extra].reset_index(drop=True)
    pd.testing.assert_frame_equal(same, table, check_categorical=False)
    assert not rows_of(replace(data(), task=Task.REGRESSION))
    assert not rows_of(replace(data(), encoded=None))
