"""What FairlyUncertain's printed numbers say of themselves, and how its causes are judged."""

import pandas as pd
import pytest

from fairbench.components.papers import PAPERS
from fairbench.components.papers.fairlyuncertain.abstention import SPLITS, our_number, ways
from fairbench.components.papers.fairlyuncertain.whom import without
from fairbench.reporting.papers.mapping import Paper


@pytest.fixture(scope="module")
def printed():
    rows = Paper.read("fairlyuncertain", PAPERS).rows
    return rows.assign(number=pd.to_numeric(rows["value"]))


def test_seven_numbers_of_table_7_are_no_calibration_errors(printed):
    errors = printed[printed["table"] == "7"]
    assert (errors["number"] > 1).sum() == 7


def test_table_7_is_table_1s_likelihood_to_more_digits(printed):
    keys = ["dataset", "method"]
    likelihood = printed[(printed["table"] == "1") & (printed["metric"] == "nll")]
    both = printed[printed["table"] == "7"].merge(likelihood, on=keys, suffixes=("", " 1"))
    assert len(both) == 20
    # Two digits of Table 1, with German's 1.05 printed as 1.0 there.
    assert ((both["number"] - both["number 1"]).abs() <= 0.0501).all()


def test_the_selective_ensemble_errs_less_than_self_consistency_in_table_3(printed):
    errors = printed[(printed["table"] == "3") & (printed["metric"] == "error_rate")]
    by_method = errors.set_index(["method", "setting"])["number"]
    for setting in by_method["self_consistency"].index:
        assert by_method["selective_ensemble", setting] < by_method["self_consistency", setting]


def test_best_rows_are_counted_by_metric():
    metrics = ["statistical_parity", "equalized_odds", "equal_opportunity", "disparate_impact"]
    metrics += ["predictive_parity", "false_positive_rate_gap"]
    rows = pd.DataFrame(
        [{"metric": name, "method": "baseline", "value": 0.5} for name in metrics]
        + [{"metric": name, "method": "random", "value": 0.4} for name in metrics]
    )
    assert without(rows, "value") == 1  # a ratio of 0.5 is nearer to 1 than one of 0.4


def test_of_other_splits_a_printed_mean_of_ten_scatters_as_ours():
    values = pd.Series([0.0, 2.0] * 20)
    found = our_number(values, SPLITS)
    assert found["mean"] == 1
    assert found["error"] == pytest.approx(values.std() * (1 / 10 + 1 / 40) ** 0.5)
    assert our_number(values, "")["error"] != our_number(values, "")["error"]  # NaN


def test_the_first_way_of_abstaining_is_the_texts():
    first, *others = ways("ensemble", "german")
    assert (first.cause, first.objectives, first.words[1]) == ("", (), "method.reading=majority")
    assert all(way.cause for way in others)
    causes = Paper.read("fairlyuncertain", PAPERS).causes
    assert {way.cause for way in others} <= set(causes)
