"""Groups within strata: values as fairlearn's control features have them, and one mix of strata."""

import numpy as np
import pandas as pd
import pytest
from fairlearn import metrics as fl

from fairbench import evaluate
from fairbench.evaluation.table import COLUMNS, IN_STRATUM, STANDARDISED, STRATA
from fairbench.inference.gaps import StandardisedRates
from tests.evaluation.labelled import FAIRLEARN, GAPS_OF_RATES


def people(rows=900, seed=0, groups=("F", "M")):
    draw = np.random.default_rng(seed)
    sex, age = draw.choice(list(groups), rows), draw.choice(["old", "young"], rows)
    site = draw.choice(["a", "b", "c"], rows)
    target = (draw.random(rows) < 0.4 + 0.2 * (age == "old")).astype(int)
    wrong = draw.random(rows) < 0.2 + 0.1 * (sex == "F")
    prediction = np.where(wrong, 1 - target, target)
    return target, prediction, pd.Series(sex, name="sex"), pd.DataFrame({"age": age, "site": site})


RATES = {name: FAIRLEARN[name] for name in GAPS_OF_RATES.values()}


def of_fairlearn(target, prediction, sex, control):
    labels = {"y_true": target, "y_pred": prediction}
    return fl.MetricFrame(metrics=RATES, **labels, sensitive_features=sex, control_features=control)


def standardised(target, prediction, sex, within):
    table = evaluate(target, prediction, sensitive_features=sex, within=within)
    return table[table["statistic"] == STANDARDISED].set_index(["metric", "group"])


def test_values_of_strata_are_those_of_fairlearns_control_features():
    target, prediction, sex, control = people(groups=("F", "M", "X"))
    frame = of_fairlearn(target, prediction, sex, control)
    table = evaluate(target, prediction, sensitive_features=sex, within=control)
    own = table[table["statistic"] == IN_STRATUM]
    assert set(own["within"]) == {"age x site"}
    assert set(own["attribute"]) == {"sex"}
    values = own.set_index(["metric", "stratum", "group"])["value"].sort_index()
    for (age, site, group), expected in frame.by_group.iterrows():
        got = [values[name, f"{age} x {site}", group] for name in RATES]
        np.testing.assert_allclose(got, expected[list(RATES)], rtol=1e-12)
    for (age, site), expected in frame.difference().iterrows():
        got = [values[gap, f"{age} x {site}", ""] for gap in GAPS_OF_RATES]
        np.testing.assert_allclose(got, expected[list(GAPS_OF_RATES.values())], rtol=1e-12)


def test_the_standardised_gap_is_the_mean_over_strata_of_fairlearns_differences():
    target, prediction, sex, control = people()
    frame = of_fairlearn(target, prediction, sex, control["site"])
    own = standardised(target, prediction, sex, control["site"])
    apart = frame.by_group.xs("M", level="sex") - frame.by_group.xs("F", level="sex")
    everyone = np.ones(len(target), bool)
    for gap, of_rate, difference in (
        ("statistical_parity", everyone, "statistical_parity_difference"),
        ("accuracy_gap", everyone, "accuracy_difference"),
        ("equal_opportunity", target == 1, "equal_opportunity_difference"),
        ("false_positive_rate_gap", target == 0, "false_positive_rate_difference"),
        ("predictive_parity", prediction == 1, "predictive_parity_difference"),
    ):
        weight = control["site"][of_rate].value_counts(normalize=True)[apart.index]
        expected = float(weight @ apart[GAPS_OF_RATES[gap]])
        assert own["value"][gap, ""] == pytest.approx(abs(expected), rel=1e-9), gap
        row = own.loc[(difference, "M")]
        assert row["value"] == pytest.approx(expected, rel=1e-9)
        assert row["lower"] < row["value"] < row["upper"]
        assert row["status"] == "ok"
    odds = own["value"]["equalized_odds", ""]
    apart_in = own["value"][["equal_opportunity", "false_positive_rate_gap"]]
    assert odds == pytest.approx(apart_in.max())


def test_intervals_are_those_of_the_counts():
    target, prediction, sex, control = people(300, seed=2)
    table = standardised(target, prediction, sex, control["age"])
    by = sex, control["age"]
    size = pd.crosstab(*by).to_numpy()
    hits = pd.crosstab(*by, prediction, aggfunc="sum").to_numpy()
    rates = StandardisedRates.of(hits, size)
    for place, ends in (
        (("statistical_parity_difference", "M"), rates.differences()),
        (("disparate_impact", ""), rates.ratios()),
    ):
        row = table.loc[place]
        expected = [end[1, 0] for end in ends]
        assert row[["value", "lower", "upper"]].tolist() == pytest.approx(expected)
    assert table.loc[("statistical_parity_difference", "M"), "n"] == size.sum(axis=1).min()


def test_without_within_the_table_is_what_it_was():
    target, prediction, sex, control = people()
    bare = evaluate(target, prediction, sensitive_features=sex)
    table = evaluate(target, prediction, sensitive_features=sex, within=control["age"])
    assert list(bare.columns) == list(COLUMNS)
    assert list(table.columns) == [*COLUMNS, *STRATA]
    pd.testing.assert_frame_equal(bare, table.iloc[: len(bare)][list(COLUMNS)])
    assert table["within"][: len(bare)].isna().all()


def test_strata_of_one_group_alone_are_named_and_left_out():
    target, prediction, sex, control = people()
    stratum = control["site"].where((control["site"] != "c") | (sex == "F"), "b")
    table = standardised(target, prediction, sex, stratum.rename("site"))
    nothing = standardised(target, prediction, sex, sex.rename("twin"))
    row, none = (each.loc[("statistical_parity", "")] for each in (table, nothing))
    assert row["status"] == "insufficient"
    covered = (stratum != "c").mean()
    assert row["reason"].startswith(f"of {covered:.1%} of these people: without 'c'")
    assert not np.isnan([row["lower"], row["upper"]]).any()
    assert table["status"]["selection_rate", "F"] == "ok"
    assert table["status"]["selection_rate", "M"] == "insufficient"
    reason = "no stratum has rows of both 'F' and 'M'"
    assert (none["status"], none["reason"]) == ("undefined", reason)
    assert np.isnan(none["value"])


def test_few_rows_are_flagged_and_rates_of_nobody_said():
    target, prediction, sex, control = people(60, seed=1)
    prediction = np.where(sex == "F", 0, prediction)
    few = sex.where(np.arange(60) >= 4, "X")
    table = standardised(target, prediction, few, control["age"])
    assert table["reason"]["selection_rate", "X"] == "n=4 in group 'X'"
    ratio = table.loc[("statistical_parity_ratio", "M")]
    assert (ratio["status"], ratio["reason"]) == ("undefined", "the rate compared with is 0")
    assert ratio["lower"] > 0
    reason = table["reason"]["predictive_parity_difference", "M"]
    assert reason == "no predicted positives in group 'F'"
