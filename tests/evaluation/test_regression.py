"""Rows of a regression: errors, likelihood and parity of distributions, per group."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn import metrics as sk

from fairbench.data.dataset import Task
from fairbench.evaluation.predictions import Labelled
from fairbench.evaluation.regression import evaluate_against_truth, evaluate_regression
from fairbench.evaluation.table import MetricTable
from fairbench.metrics.regression import uncertainty_aware_parity
from tests.evaluation.labelled import by_place, evaluate, labelled

UA_SP = "uncertainty_aware_statistical_parity"


def sample(n=1500):
    draw = np.random.default_rng(0)
    group = draw.choice(["a", "b", "c"], n)
    target = draw.normal(1.0 * (group == "b"), 1)
    mean, sd = target + draw.normal(0, 0.5, n), draw.uniform(0.3, 1, n)
    return target, mean, sd, group


def table_of(**options):
    target, mean, sd, group = sample()
    table = evaluate(target, mean, sd=sd, sensitive_features=group, task="regression", **options)
    return table[table["setting"] == ""].set_index(["metric", "attribute", "group"])


@pytest.mark.parametrize("group", ["", "a", "b", "c"])
def test_errors_of_everyone_and_of_each_group_match_scikit_learn(group):
    target, mean, sd, groups = sample()
    rows, attribute = (groups == group) | (group == ""), "group" if group else ""
    y, m = target[rows], mean[rows]
    expected = {
        "mae": sk.mean_absolute_error(y, m),
        "rmse": sk.root_mean_squared_error(y, m),
        "r2": sk.r2_score(y, m),
        "mean_prediction": m.mean(),
        "nll": -stats.norm.logpdf(y, m, sd[rows]).mean(),
    }
    table = table_of()
    for metric, value in expected.items():
        result = table.loc[(metric, attribute, group)]
        assert result["value"] == pytest.approx(value, rel=1e-10)
        assert (result["n"], result["status"]) == (rows.sum(), "ok")


def test_parity_of_predictions_and_of_labels_is_the_largest_ks_distance():
    target, mean, _, groups = sample()
    table = table_of()
    for metric, values in (("statistical_parity", mean), ("label_parity", target)):
        samples = [values[groups == g] for g in "abc"]
        expected = max(
            stats.ks_2samp(samples[i], samples[j]).statistic for i, j in ((0, 1), (0, 2), (1, 2))
        )
        result = table.loc[(metric, "group", "")]
        assert result["value"] == pytest.approx(expected)
        assert result["n"] == len(target)


def test_parity_of_uncertain_predictions_is_that_of_their_mixtures():
    _, mean, sd, groups = sample()
    parts = [groups == g for g in "abc"]
    expected = uncertainty_aware_parity([mean[g] for g in parts], [sd[g] for g in parts])
    result = table_of().loc[(UA_SP, "group", "")]
    assert result["value"] == expected
    assert (result["n"], result["status"]) == (len(mean), "ok")


def test_parity_of_predictions_without_an_uncertainty_is_that_of_points():
    target, mean, _, group = sample()
    table = evaluate(target, mean, sensitive_features=group, task="regression")
    value = table[table["attribute"] == "group"].set_index("metric")["value"]
    assert value[UA_SP] == value["statistical_parity"]


def test_an_invalid_sd_leaves_no_parity_of_uncertain_predictions_and_is_counted():
    """The published code's largest distance skips the NaN, and calls the method perfectly fair."""
    _, mean, sd, groups = sample()
    table = MetricTable()
    wrong = np.where(np.arange(len(sd)) < 2, -sd, sd)
    predictions = pd.DataFrame({"prediction": mean, "sd": wrong})
    labels = pd.Series(pd.Categorical(groups))
    evaluate_regression(
        table, Labelled(mean, predictions, {"group": labels}, Task.REGRESSION), levels=()
    )
    rows = table.frame().query("attribute == 'group' and group == ''").set_index("metric")
    assert rows.loc[UA_SP, "reason"] == "sd invalid in 2 of 1500 rows"
    assert np.isnan(rows.loc[UA_SP, "value"])
    assert rows.loc["statistical_parity", "status"] == "ok"


def test_without_an_sd_there_is_no_likelihood():
    target, mean, _, group = sample()
    table = evaluate(target, mean, sensitive_features=group, task="regression")
    assert "nll" not in set(table["metric"])
    assert "rmse" in set(table["metric"])


@pytest.mark.parametrize(
    ("metric", "group"),
    [
        ("mae", "z"),
        ("rmse", "z"),
        ("r2", "z"),
        ("nll", "z"),
        ("mean_prediction", "z"),
        ("statistical_parity", ""),
        ("label_parity", ""),
        (UA_SP, ""),
    ],
)
def test_an_empty_group_is_said_to_be_empty(metric, group):
    result = table_of(privileged={"group": "z"}).loc[(metric, "group", group)]
    assert result["status"] == "undefined: no rows in group 'z'"
    assert np.isnan(result["value"])


def test_r2_of_a_constant_target():
    target, mean, _, group = sample()
    constant = np.where(group == "b", 2.0, target)
    table = evaluate(constant, mean, sensitive_features=group, task="regression")
    rows = table[table["metric"] == "r2"].set_index("group")
    assert rows["status"].to_dict() == {
        "": "ok",
        "a": "ok",
        "b": "undefined: target is constant in b",
        "c": "ok",
    }
    everyone = evaluate([3.0, 3.0], [1.0, 2.0], sensitive_features=list("aa"), task="regression")
    status = everyone.query("metric == 'r2' and group == ''")["status"].iloc[0]
    assert status == "undefined: target is constant in the part"


def test_parity_needs_two_groups():
    table = evaluate([1.0, 2.0], [1.0, 3.0], sensitive_features=list("aa"), task="regression")
    rows = table[table["metric"].isin(["statistical_parity", "label_parity", UA_SP])]
    assert list(rows["status"]) == ["undefined: only one group"] * 3
    assert rows["value"].isna().all()


def test_the_mean_of_a_single_row_has_no_interval():
    table = evaluate([1.0, 2.0], [1.5, 3.0], sensitive_features=list("ab"), task="regression")
    result = table.query("metric == 'mae' and group == 'a'").iloc[0]
    assert (result["value"], result["n"]) == (0.5, 1)
    assert np.isnan(result["lower"])
    assert np.isnan(result["upper"])


def test_errors_whose_squares_overflow_have_a_root_mean_square_and_an_interval():
    target, mean, _, group = sample()
    known = evaluate(target, mean, sensitive_features=group, task="regression")
    factor = np.where(group == "c", 1e-180, np.where(group == "b", 1.0, 1e199))
    result = evaluate(target * factor, mean * factor, sensitive_features=group, task="regression")
    for metric in ("rmse", "r2"):
        one, two = (t[t["metric"] == metric].set_index("group") for t in (known, result))
        for name, scale in (("a", 1e199), ("b", 1.0), ("c", 1e-180)):
            scale = scale if metric == "rmse" else 1.0
            for column in ("value", "lower", "upper"):
                expected = one.loc[name, column] * scale
                assert two.loc[name, column] == pytest.approx(expected, rel=1e-9, abs=0)
            assert two.loc[name, "status"] == "ok"


# Rows against the truth of a simulated population, by hand.

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
