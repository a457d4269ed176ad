"""Rows of a regression: errors, parities, intervals and likelihoods per group, and the truth."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fairbench import Evaluator
from fairbench.data.dataset import Task
from fairbench.evaluation.groups import CountIntervals, LabelledIntervals
from fairbench.evaluation.regression import evaluate_against_truth, evaluate_regression
from fairbench.inference.survey import LabelledRows
from fairbench.metrics.registry import BINARY, binary_confusion, metrics_of
from fairbench.metrics.regression import crps_normal_rows
from tests.evaluation.labelled import added, by_place, evaluate, labelled, table_of

UA_SP = "uncertainty_aware_statistical_parity"
PARITIES = ("statistical_parity", "label_parity", UA_SP)
DRAW = np.random.default_rng(0)
GROUP = DRAW.choice(["a", "b", "c"], 1500)
TARGET = DRAW.normal(1.0 * (GROUP == "b"), 1)
MEAN, SD = TARGET + DRAW.normal(0, 0.5, 1500), DRAW.uniform(0.3, 1, 1500)


def evaluated(target=TARGET, mean=MEAN, group=GROUP, **options):
    return evaluate(target, mean, sensitive_features=group, task="regression", **options)


def test_without_sds_the_parity_of_uncertain_predictions_is_that_of_the_predictions():
    rows = evaluated().query("attribute == 'group'").set_index("metric")
    assert rows["value"][UA_SP] == rows["value"]["statistical_parity"]
    assert (rows.loc[[*PARITIES], "n"] == 1500).all()
    assert "nll" not in rows.index


def test_an_empty_group_is_said_to_be_empty():
    result = by_place(evaluated(sd=SD, privileged={"group": "z"}).query("attribute == 'group'"))
    of_the_group = [(metric, "z") for metric in ("mae", "rmse", "r2", "nll")]
    for metric, group in (*of_the_group, *((metric, "") for metric in PARITIES)):
        assert result[metric, group, ""].status == "undefined: no rows in group 'z'"
        assert np.isnan(result[metric, group, ""].value)


def test_what_one_group_one_row_and_a_constant_target_leave_undefined():
    constant = evaluated(np.where(GROUP == "b", 2.0, TARGET))
    assert constant[constant["metric"] == "r2"].set_index("group")["status"].to_dict() == {
        "": "ok",
        "a": "ok",
        "b": "undefined: target is constant in b",
        "c": "ok",
    }
    everyone = by_place(evaluated([3.0, 3.0], [1.0, 2.0], list("aa")))
    assert everyone["r2", "", ""].status == "undefined: target is constant in the part"
    for metric in PARITIES:
        assert everyone[metric, "", ""].status == "undefined: only one group"
    row = by_place(evaluated([1.0, 2.0], [1.5, 3.0], list("ab")))["mae", "a", ""]
    assert (row.value, row.n) == (0.5, 1)
    assert np.isnan([row.lower, row.upper]).all()


# Intervals and likelihoods by hand, and impossible sds.

LEVELS = (0.5, 0.9)
FOUR = {"y": [0.0, 1.0, 2.0, 3.0], "prediction": [0.1, 3.0, 2.0, 4.0]}
SDS = [1.0, 1.0, 0.5, 1.0]
PARTS = (("", slice(None)), ("a", slice(2)), ("b", slice(2, 4)))


def rows_of(levels=LEVELS, **columns):
    columns = {**FOUR, **columns}
    data = labelled(columns.pop("y"), "aabb", task=Task.REGRESSION, **columns)
    # Of few rows there is no other interval.
    return added(evaluate_regression, data, levels, frequentist=False)


def test_normal_intervals_and_likelihoods_by_hand_for_everyone_and_each_group():
    result = rows_of(sd=SDS)
    arguments = (*FOUR.values(), SDS)
    crps, nll = crps_normal_rows(*arguments), -stats.norm.logpdf(*arguments)
    # Distances in sds are 0.1, 2, 0 and 1; the levels reach 0.674 and 1.645.
    for group, rows in PARTS:
        for level, covered in ((0.5, [1, 0, 1, 0]), (0.9, [1, 0, 1, 1])):
            reach = stats.norm.ppf((1 + level) / 2)
            row = result["coverage", group, f"level={level:g}"]
            assert row.value == pytest.approx(np.mean(covered[rows]))
            assert (row.n, row.status) == (4 if group == "" else 2, "ok")
            width = result["interval_width", group, f"level={level:g}"].value
            assert width == pytest.approx(2 * reach * np.mean(SDS[rows]))
        assert result["crps", group, ""].value == pytest.approx(crps[rows].mean())
        assert result["nll", group, ""].value == pytest.approx(nll[rows].mean())
    other = rows_of(uncertainty=SDS)  # has a likelihood and no more
    assert other["nll", "", ""].value == pytest.approx(nll.mean())
    assert not {"crps", "coverage", "interval_width"} & {metric for metric, _, _ in other}


def test_a_methods_own_intervals_stand_before_those_of_its_sd():
    own = {"lower_90": [0, 2, 2, 0], "upper_90": [1, 3, 2, 10]}
    rows = rows_of(sd=SDS, **own)
    for metric, group, level, value in (
        ("coverage", "", 0.9, 3 / 4),  # the ends belong to it
        ("coverage", "a", 0.9, 1 / 2),
        ("interval_width", "", 0.9, (1 + 1 + 0 + 10) / 4),
        ("coverage", "", 0.5, 1 / 2),  # the level it has no interval for is the normal one's
    ):
        assert rows[metric, group, f"level={level:g}"].value == pytest.approx(value)
    settings = {setting for metric, _, setting in rows_of(**own) if metric == "coverage"}
    assert settings == {"level=0.9"}


def test_an_invalid_sd_leaves_no_parity_of_uncertain_predictions():
    """The published code's largest distance skips the NaN, and calls the method perfectly fair."""
    rows = rows_of(sd=[-1, -1, 1, 1])
    assert rows[UA_SP, "", ""].status == "invalid: sd invalid in 2 of 4 rows"
    assert np.isnan(rows[UA_SP, "", ""].value)
    assert rows["statistical_parity", "", ""].status == "ok"


INTERVAL, COVERS = ("coverage", "interval_width"), "level=0.9"


@pytest.mark.parametrize(
    ("column", "bad", "metrics", "setting"),
    [
        *(("sd", bad, ("nll", "crps"), "") for bad in (np.nan, 0.0, -1.0, np.inf)),
        *(("sd", bad, INTERVAL, COVERS) for bad in (np.nan, -1.0)),
        *(("prediction", bad, ("mae", "rmse", "r2", "mean_prediction", "statistical_parity"), "")
          for bad in (np.nan, np.inf)),
    ],
)  # fmt: skip
def test_an_impossible_value_is_counted_where_it_is_and_never_a_number(
    column, bad, metrics, setting
):
    values = {"prediction": FOUR["prediction"], "sd": SDS}
    values[column] = [values[column][0], bad, *values[column][2:]]
    rows, what = rows_of(**values), "interval" if setting else column
    for metric in metrics:
        row = rows[metric, "", setting]
        assert np.isnan(row.value)
        assert (row.status, row.n) == (f"invalid: {what} invalid in 1 of 4 rows", 4)
        if (metric, "a", setting) in rows:
            of_a, of_b = (rows[metric, name, setting].status for name in "ab")
            assert (of_a, of_b) == (f"invalid: {what} invalid in 1 of 2 rows", "ok")
    assert rows["label_parity", "", ""].status == "ok"


def test_an_impossible_uncertainty_has_no_spread_diagram():
    columns = {"prediction": FOUR["prediction"], "uncertainty": [1, np.nan, -2, 1]}
    data = labelled(FOUR["y"], "aabb", task=Task.REGRESSION, **columns)
    result = by_place(table_of(data, Evaluator(spread_groups=(2,))))
    spread = {key: row.status for key, row in result.items() if key[0].startswith("spread")}
    places = [(f"spread_{name}", "", "bins=2") for name in ("error", "rank_correlation")]
    assert spread == dict.fromkeys(places, "invalid: uncertainty invalid in 2 of 4 rows")


def test_intervals_of_some_labels_have_the_values_and_are_no_wider_than_of_the_labels_alone():
    """tests/coverage has how often they hold."""
    draw, groups, rows = np.random.default_rng(11), 60, 1000
    score = draw.random(groups * rows)
    decision, label = ((score > cut).astype(np.int64) for cut in (0.5, draw.random(len(score))))
    group = np.repeat(np.arange(groups), rows)
    known = (np.arange(groups)[:, None] * rows + np.arange(60)).ravel()
    labels = LabelledRows(score, decision, group, groups, known, label[known])
    counts = binary_confusion(label[known], decision[known], group[known], n_groups=groups)
    helped = LabelledIntervals.of(labels, counts, 0.95, draw)
    names = ("accuracy", "f1_score", "positive_predictive_value", "balanced_accuracy")
    metrics = [metrics_of(BINARY)[name] for name in names]
    lower, upper = helped.rates(metrics)
    alone = CountIntervals(counts, 0.95).rates(metrics)
    assert (np.mean(upper - lower, axis=1) < 1.005 * np.mean(alone[1] - alone[0], axis=1)).all()
    value = metrics[-1](helped.counts_of(metrics[-1]))
    assert ((lower[-1] <= value) & (value <= upper[-1])).all()


# Rows against the truth of a simulated population, by hand.

P = np.array([0.1, 0.5, 0.8, 0.98])
NORMAL = pd.DataFrame({"mean": [1.0, 2.0, 3.0], "sd": [0.5, 1.0, 2.0]})


def truth_rows(data):
    rows = added(evaluate_against_truth, data)
    return {metric.removeprefix("truth_"): row for (metric, _, _), row in rows.items()}


def binary(probability=P, **columns):
    truth, zeros = pd.DataFrame({"probability": probability}), np.zeros(len(probability))
    return labelled(zeros, prediction=zeros, truth=truth, **columns)


def regression(**columns):
    return labelled([0.0] * 3, task=Task.REGRESSION, truth=NORMAL, **columns)


def test_a_label_has_the_sd_of_a_bernoulli_and_a_regression_its_own():
    sd, true = np.array([0.3, 0.6, 0.3, 0.14]), np.sqrt(P * (1 - P))
    rows = truth_rows(binary(score=P + [0.1, -0.1, 0.1, 0], sd=sd, uncertainty=sd))
    assert {name: row.value for name, row in rows.items()} == {
        "rmse_mean": pytest.approx(np.sqrt(0.03 / 4)),
        "rmse_sd": pytest.approx(np.sqrt(np.mean((sd - [0.3, 0.5, 0.4, 0.14]) ** 2))),
        "rank_correlation": pytest.approx(stats.spearmanr(sd, true).statistic),
    }
    assert {row.n for row in rows.values()} == {4}
    rows = truth_rows(regression(prediction=[1, 2, 6], sd=[0.5, 1, 5], uncertainty=[3, 2, 1]))
    assert [row.value for row in rows.values()] == pytest.approx([np.sqrt(3), np.sqrt(3), -1])


def test_what_there_is_no_sd_score_or_truth_of_is_not_compared():
    rows = truth_rows(binary(score=P, uncertainty=np.sqrt(P * (1 - P)) ** 3))
    values = {name: row.value for name, row in rows.items()}
    assert values == {"rmse_mean": 0, "rank_correlation": pytest.approx(1)}
    assert set(truth_rows(binary(uncertainty=P))) == {"rank_correlation"}
    assert truth_rows(labelled([0, 1], prediction=[0, 1], uncertainty=[0, 1])) == {}


def test_statuses_of_a_rank_correlation_that_does_not_exist():
    for uncertainty, probability, status in (
        ([0.3] * 4, P, "undefined: the uncertainty is constant"),
        ([0.1, 0.2, 0.3, 0.4], np.full(4, 0.3), "undefined: the true sd is constant"),
        ([0.1, np.nan, -1, 0.4], P, "invalid: uncertainty invalid in 2 of 4 rows"),
    ):
        row = truth_rows(binary(probability, uncertainty=uncertainty))["rank_correlation"]
        assert row.status == status
        assert np.isnan(row.value)


@pytest.mark.parametrize("bad", [np.nan, -0.5, np.inf])
def test_an_sd_that_cannot_be_is_counted(bad):
    columns = {"prediction": [1, 2, np.nan], "sd": [1, bad, bad], "uncertainty": [1, 2, 3]}
    rows = truth_rows(regression(**columns))
    assert rows["rmse_sd"].status == "invalid: sd invalid in 2 of 3 rows"
    assert rows["rmse_mean"].status == "invalid: prediction invalid in 1 of 3 rows"
    assert np.isnan([rows["rmse_sd"].value, rows["rmse_mean"].value]).all()
