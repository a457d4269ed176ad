"""Rows against the truth of a simulated population, by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fairbench.data.dataset import Task
from fairbench.evaluation.regression import evaluate_against_truth
from fairbench.evaluation.table import MetricTable
from tests.evaluation.labelled import by_place, labelled

P = np.array([0.1, 0.5, 0.8, 0.98])
NORMAL = pd.DataFrame({"mean": [1.0, 2.0, 3.0], "sd": [0.5, 1.0, 2.0]})


def rows_of(data):
    table = MetricTable()
    evaluate_against_truth(table, data)
    return {metric: row for (metric, _, _), row in by_place(table).items()}


def binary(probability=P, **columns):
    return labelled(
        np.zeros(len(probability)),
        prediction=np.zeros(len(probability)),
        truth=pd.DataFrame({"probability": probability}),
        **columns,
    )


def regression(truth=NORMAL, **columns):
    return labelled([0.0] * 3, task=Task.REGRESSION, truth=truth, **columns)


def test_a_label_has_the_sd_of_a_bernoulli():
    score, sd = P + [0.1, -0.1, 0.1, 0], np.array([0.3, 0.6, 0.3, 0.14])
    rows = rows_of(binary(score=score, sd=sd, uncertainty=sd))
    assert rows["truth_rmse_mean"].value == pytest.approx(np.sqrt(0.03 / 4))
    expected = np.sqrt(np.mean(np.square([0.3 - 0.3, 0.6 - 0.5, 0.3 - 0.4, 0.14 - 0.14])))
    assert rows["truth_rmse_sd"].value == pytest.approx(expected)
    rank = stats.spearmanr(sd, np.sqrt(P * (1 - P))).statistic
    assert rows["truth_rank_correlation"].value == pytest.approx(rank)
    assert {row.n for row in rows.values()} == {4}


def test_a_regression_is_compared_in_mean_and_sd():
    rows = rows_of(regression(prediction=[1, 2, 6], sd=[0.5, 1, 5], uncertainty=[3, 2, 1]))
    assert rows["truth_rmse_mean"].value == pytest.approx(np.sqrt(3))
    assert rows["truth_rmse_sd"].value == pytest.approx(np.sqrt(3))
    assert rows["truth_rank_correlation"].value == pytest.approx(-1)


def test_an_uncertainty_that_is_no_sd_is_compared_in_rank_alone():
    rows = rows_of(binary(score=P, uncertainty=np.sqrt(P * (1 - P)) ** 3))
    assert set(rows) == {"truth_rmse_mean", "truth_rank_correlation"}
    assert rows["truth_rmse_mean"].value == 0
    assert rows["truth_rank_correlation"].value == pytest.approx(1)


def test_without_a_truth_or_a_score_there_is_nothing_to_compare():
    assert rows_of(labelled([0, 1], prediction=[0, 1], uncertainty=[0, 1])) == {}
    assert set(rows_of(binary(uncertainty=P))) == {"truth_rank_correlation"}


@pytest.mark.parametrize(
    ("uncertainty", "probability", "status"),
    [
        ([0.3] * 4, P, "undefined: the uncertainty is constant"),
        ([0.1, 0.2, 0.3, 0.4], np.full(4, 0.3), "undefined: the true sd is constant"),
        ([0.1, np.nan, -1, 0.4], P, "invalid: uncertainty invalid in 2 of 4 rows"),
    ],
)
def test_statuses_of_a_rank_correlation_that_does_not_exist(uncertainty, probability, status):
    row = rows_of(binary(probability, uncertainty=uncertainty))["truth_rank_correlation"]
    assert row.status == status
    assert np.isnan(row.value)


@pytest.mark.parametrize("bad", [np.nan, -0.5, np.inf])
def test_an_sd_that_cannot_be_is_counted(bad):
    columns = {"prediction": [1, 2, np.nan], "sd": [1, bad, bad], "uncertainty": [1, 2, 3]}
    rows = rows_of(regression(**columns))
    assert rows["truth_rmse_sd"].status == "invalid: sd invalid in 2 of 3 rows"
    assert rows["truth_rmse_mean"].status == "invalid: prediction invalid in 1 of 3 rows"
    assert np.isnan([rows["truth_rmse_sd"].value, rows["truth_rmse_mean"].value]).all()
