"""Group rows of an evaluation: every status in words, and the rows a value rests on."""

import numpy as np
import pytest

from fairbench import Evaluator
from fairbench.evaluation.table import BELOW_EPSILON, DEBIASED, OUTSIDE_BAND, VALUE
from fairbench.metrics.registry import BINARY, metrics_of
from tests.evaluation.counted import row, table_of
from tests.evaluation.labelled import evaluate

NO_POSITIVES = {"a": [8, 5, 6, 20], "b": [9, 6, 0, 0]}


@pytest.mark.parametrize(
    ("metric", "group", "n", "status"),
    [
        ("true_positive_rate", "b", 0, "undefined: no positives in group 'b'"),
        ("false_negative_rate", "b", 0, "undefined: no positives in group 'b'"),
        ("balanced_accuracy", "b", 0, "undefined: no positives in group 'b'"),
        ("equal_opportunity_difference", "b", 0, "undefined: no positives in group 'b'"),
        ("equal_opportunity_ratio", "b", 0, "undefined: no positives in group 'b'"),
        ("equal_opportunity", "", 0, "undefined: no positives in group 'b'"),
        ("equalized_odds", "", 0, "undefined: no positives in group 'b'"),
        ("true_positive_rate", "a", 26, "ok"),
        ("false_positive_rate", "b", 15, "ok"),
        ("false_positive_rate_gap", "", 13, "ok"),
        ("statistical_parity", "", 15, "ok"),
        ("positive_predictive_value", "b", 6, "insufficient: n=6 in group 'b'"),
        ("predictive_parity", "", 6, "insufficient: n=6 in group 'b'"),
        ("predictive_parity_difference", "b", 6, "insufficient: n=6 in group 'b'"),
        ("f1_score", "b", 6, "insufficient: n=6 in group 'b'"),
        ("f1_score", "a", 31, "ok"),
    ],
)
def test_rows_of_a_group_without_positives(metric, group, n, status):
    result = row(table_of(NO_POSITIVES), metric, "group", group)
    assert (result["n"], result["status"]) == (n, status)
    assert np.isnan(result["value"]) == status.startswith("undefined")


@pytest.mark.parametrize(
    ("metric", "statistic", "group"),
    [
        ("equal_opportunity_ratio", OUTSIDE_BAND, "b"),
        ("equal_opportunity", BELOW_EPSILON, ""),
        ("equalized_odds", BELOW_EPSILON, ""),
    ],
)
def test_nothing_is_said_of_a_metric_of_a_group_without_positives(metric, statistic, group):
    result = row(table_of(NO_POSITIVES), metric, "group", group, statistic=statistic)
    assert (result["n"], result["status"]) == (0, "undefined: no positives in group 'b'")
    assert np.isnan(result["value"])


def test_f1_is_flagged_by_its_rows_not_by_its_denominator():
    result = row(table_of({"a": [20, 0, 0, 7], "b": [9, 1, 1, 9]}), "f1_score", "group", "a")
    assert (result["value"], result["n"]) == (1, 7)
    assert result["status"] == "insufficient: n=7 in group 'a'"


@pytest.mark.parametrize(
    ("metric", "status"),
    [
        ("positive_predictive_value", "undefined: no predicted positives in group 'b'"),
        ("f1_score", "undefined: no positives and no predicted positives in group 'b'"),
        ("true_positive_rate", "undefined: no positives in group 'b'"),
        ("negative_predictive_value", "ok"),
        ("predictive_parity_difference", "undefined: no predicted positives in group 'b'"),
    ],
)
def test_rows_of_a_group_of_true_negatives_only(metric, status):
    result = row(table_of({"a": [9, 9, 9, 9], "b": [20, 0, 0, 0]}), metric, "group", "b")
    assert result["status"] == status


def test_a_group_of_predicted_positives_only():
    table = table_of({"a": [9, 9, 9, 9], "b": [0, 0, 0, 20]})
    for metric, what in (
        ("negative_predictive_value", "no predicted negatives"),
        ("false_positive_rate", "no negatives"),
        ("true_negative_rate", "no negatives"),
    ):
        assert row(table, metric, "group", "b")["status"] == f"undefined: {what} in group 'b'"


@pytest.mark.parametrize(
    ("metric", "group"),
    [
        ("selection_rate", "z"),
        ("accuracy", "z"),
        ("statistical_parity_difference", "a"),
        ("accuracy_ratio", "b"),
    ],
)
def test_a_reference_group_without_rows_is_kept_and_said_to_be_empty(metric, group):
    table = table_of({"a": [9, 9, 9, 9], "b": [9, 8, 7, 6]}, privileged={"group": "z"})
    result = row(table, metric, "group", group)
    assert (result["n"], result["status"]) == (0, "undefined: no rows in group 'z'")
    assert result[["value", "lower", "upper"]].isna().all()


@pytest.mark.parametrize("metric", ["statistical_parity", "disparate_impact", "accuracy_gap"])
def test_a_group_without_rows_is_named_and_voids_nothing(metric):
    counts = {"a": [9, 9, 9, 9], "b": [9, 8, 7, 6]}
    result = row(table_of(counts, privileged={"group": "z"}), metric, "group")
    alone = row(table_of(counts), metric, "group")
    assert result[["value", "lower", "upper"]].equals(alone[["value", "lower", "upper"]])
    assert result["status"] == "insufficient: without 'z': no rows"
    posterior = table_of(counts, Evaluator(interval="dirichlet"), privileged={"group": "z"})
    assert row(posterior, metric, "group")["status"] == "undefined: no rows in group 'z'"


def test_the_gap_of_all_groups_allows_for_one_that_has_no_row_of_the_rate():
    counts = {"a": [90, 90, 90, 90], "b": [90, 80, 70, 60], "c": [9, 8, 0, 0]}
    table = table_of(counts)
    result = row(table, "equal_opportunity", "group")
    others = row(table_of({name: counts[name] for name in "ab"}), "equal_opportunity", "group")
    single = [row(table, "true_positive_rate", "group", name) for name in "ab"]
    assert result["status"] == "insufficient: without 'c': no positives"
    assert result["value"] == others["value"]
    assert result["lower"] == others["lower"]
    assert result["upper"] == max(max(pair["upper"], 1 - pair["lower"]) for pair in single)
    below = row(table, "equal_opportunity", "group", statistic=BELOW_EPSILON)
    assert below["value"] <= 0.95
    seen = row(table, "statistical_parity", "group")
    assert seen["upper"] < 1


def test_a_probability_that_a_gap_is_small_agrees_with_its_interval():
    draw = np.random.default_rng(0)
    for _ in range(3):
        counts = {name: draw.multinomial(60, [0.3, 0.2, 0.1, 0.4]) for name in "abcdefgh"}
        counts["i"] = draw.multinomial(2000, draw.dirichlet([5, 5, 5, 5]))
        table = table_of(counts, Evaluator(epsilon=0.02))
        below = table[table["statistic"] == BELOW_EPSILON]
        assert len(below) > 4
        for (name, *where), result in below.iterrows():
            gap = row(table, name, *where)
            assert gap["upper"] > 0.02
            least, most = (0, 0.05) if gap["lower"] > 0.02 else (0.05, 0.95)
            assert least <= result["value"] <= most + 1e-12


def test_a_ratio_over_a_rate_of_zero_says_what_it_exceeds():
    table = table_of({"a": [20, 0, 15, 0], "b": [9, 8, 11, 12]})
    result = row(table, "statistical_parity_ratio", "group", "b")
    assert np.isnan(result["value"])
    assert result["lower"] > 1
    assert result["upper"] == np.inf


@pytest.mark.parametrize(
    ("metric", "group", "status"),
    [
        ("disparate_impact", "", "undefined: selection_rate of group 'a' is 0"),
        ("statistical_parity_ratio", "b", "undefined: selection_rate of group 'a' is 0"),
        ("equal_opportunity_ratio", "b", "undefined: true_positive_rate of group 'a' is 0"),
        ("false_positive_rate_ratio", "b", "undefined: false_positive_rate of group 'a' is 0"),
        ("statistical_parity_difference", "b", "ok"),
        ("statistical_parity", "", "ok"),
        ("accuracy_ratio", "b", "ok"),
    ],
)  # fmt: skip
def test_ratios_to_a_reference_rate_of_zero(metric, group, status):
    result = row(table_of({"a": [20, 0, 15, 0], "b": [9, 8, 11, 12]}), metric, "group", group)
    assert result["status"] == status
    assert np.isnan(result["value"]) == (status != "ok")


def test_a_ratio_to_a_rate_above_zero_is_surely_inside_or_outside_the_band():
    table = table_of({"a": [20, 0, 15, 0], "b": [9, 8, 11, 12]})
    result = row(table, "accuracy_ratio", "group", "b", statistic=OUTSIDE_BAND)
    assert result["status"] == "ok"
    assert 0 <= result["value"] <= 1


def test_disparate_impact_of_several_groups_is_undefined_only_if_nobody_is_selected():
    nobody = {name: [20, 0, 15, 0] for name in "abc"}
    status = row(table_of(nobody), "disparate_impact", "group")["status"]
    assert status == "undefined: selection_rate of every group is 0"
    result = row(table_of({**nobody, "c": [5, 5, 5, 5]}), "disparate_impact", "group")
    assert (result["value"], result["status"]) == (0, "ok")


def test_everyone_without_positives_or_with_few_rows():
    table = table_of({"a": [20, 5, 0, 0], "b": [20, 5, 0, 0]})
    result = row(table, "true_positive_rate")
    assert (result["n"], result["status"]) == (0, "undefined: no positives")
    small = table_of({"a": [2, 1, 0, 1], "b": [1, 1, 0, 0]})
    assert row(small, "accuracy")["status"] == "insufficient: n=6"
    assert row(small, "accuracy")["n"] == 6
    assert row(small, "accuracy", "group", "a")["status"] == "insufficient: n=4 in group 'a'"


@pytest.mark.parametrize(
    ("minimum", "status"), [(20, "ok"), (21, "insufficient: n=20 in group 'b'")]
)
def test_the_minimum_group_size_is_the_evaluators(minimum, status):
    evaluator = Evaluator(minimum_group_size=minimum)
    table = table_of({"a": [9, 9, 9, 9], "b": [5, 5, 5, 5]}, evaluator)
    assert row(table, "selection_rate", "group", "b")["status"] == status
    assert row(table, "statistical_parity", "group")["status"] == status


def test_one_group_has_rates_and_neither_gaps_nor_differences():
    names = set(table_of({"a": [9, 9, 9, 9]}).index.get_level_values("metric"))
    assert names == set(metrics_of(BINARY, "rate"))


def test_many_tiny_groups_leave_no_resample_to_correct_with():
    group = np.repeat(np.arange(40), 2).astype(str)
    target, prediction = np.tile([0, 1], 40), np.tile([0, 1, 1, 0], 20)
    table = evaluate(target, prediction, sensitive_features=group)
    table = table.set_index(["metric", "statistic", "group"])
    assert table["status"]["equal_opportunity", VALUE, ""].startswith("insufficient: n=1 in group")
    result = table.loc["equal_opportunity", DEBIASED, ""]
    assert np.isnan(result["value"])
    assert result["status"] == "undefined: no resample has the rates of every group"
