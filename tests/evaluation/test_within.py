"""Groups within strata: values as fairlearn's control features have them, and one mix of strata."""

import numpy as np
import pandas as pd
import pytest
from fairlearn import metrics as fl
from sklearn.metrics import accuracy_score

from fairbench import Evaluator, evaluate
from fairbench.core.errors import UserError
from fairbench.evaluation.table import COLUMNS, IN_STRATUM, STANDARDISED, STRATA
from fairbench.inference.gaps import StandardisedRates

RATES = {
    "selection_rate": fl.selection_rate,
    "accuracy": accuracy_score,
    "true_positive_rate": fl.true_positive_rate,
    "false_positive_rate": fl.false_positive_rate,
}
GAPS = {
    "statistical_parity": "selection_rate",
    "accuracy_gap": "accuracy",
    "equal_opportunity": "true_positive_rate",
    "false_positive_rate_gap": "false_positive_rate",
}


def people(rows=900, seed=0, groups=("F", "M")):
    draw = np.random.default_rng(seed)
    sex, age = draw.choice(list(groups), rows), draw.choice(["old", "young"], rows)
    site = draw.choice(["a", "b", "c"], rows)
    target = (draw.random(rows) < 0.4 + 0.2 * (age == "old")).astype(int)
    wrong = draw.random(rows) < 0.2 + 0.1 * (sex == "F")
    prediction = np.where(wrong, 1 - target, target)
    return target, prediction, pd.Series(sex, name="sex"), pd.DataFrame({"age": age, "site": site})


def of_fairlearn(target, prediction, sex, control):
    labels = {"y_true": target, "y_pred": prediction}
    return fl.MetricFrame(metrics=RATES, **labels, sensitive_features=sex, control_features=control)


def rows_of(table, statistic):
    return table[table["statistic"] == statistic]


def test_values_of_strata_are_those_of_fairlearns_control_features():
    target, prediction, sex, control = people(groups=("F", "M", "X"))
    frame = of_fairlearn(target, prediction, sex, control)
    table = evaluate(target, prediction, sensitive_features=sex, within=control)
    own = rows_of(table, IN_STRATUM)
    assert set(own["within"]) == {"age x site"}
    assert set(own["attribute"]) == {"sex"}
    values = own.set_index(["metric", "stratum", "group"])["value"].sort_index()
    for (age, site, group), expected in frame.by_group.iterrows():
        stratum = f"{age} x {site}"
        got = [values[name, stratum, group] for name in RATES]
        np.testing.assert_allclose(got, expected[list(RATES)], rtol=1e-12)
    for (age, site), expected in frame.difference().iterrows():
        got = [values[gap, f"{age} x {site}", ""] for gap in GAPS]
        np.testing.assert_allclose(got, expected[list(GAPS.values())], rtol=1e-12)


def test_the_standardised_gap_is_the_mean_over_strata_of_fairlearns_differences():
    target, prediction, sex, control = people()
    frame = of_fairlearn(target, prediction, sex, control["site"])
    table = evaluate(target, prediction, sensitive_features=sex, within=control["site"])
    own = rows_of(table, STANDARDISED).set_index(["metric", "group"])
    apart = frame.by_group.xs("M", level="sex") - frame.by_group.xs("F", level="sex")
    of_rate = {
        "statistical_parity": np.ones(len(target), bool),
        "accuracy_gap": np.ones(len(target), bool),
        "equal_opportunity": target == 1,
        "false_positive_rate_gap": target == 0,
    }
    for gap, rate in GAPS.items():
        weight = control["site"][of_rate[gap]].value_counts(normalize=True)[apart.index]
        expected = float(weight @ apart[rate])
        assert own["value"][gap, ""] == pytest.approx(abs(expected), rel=1e-9), gap
    pair = {"statistical_parity_difference": "selection_rate", "accuracy_difference": "accuracy"}
    for difference, rate in pair.items():
        expected = float(control["site"].value_counts(normalize=True)[apart.index] @ apart[rate])
        row = own.loc[(difference, "M")]
        assert row["value"] == pytest.approx(expected, rel=1e-9)
        assert row["lower"] < row["value"] < row["upper"]
        assert row["status"] == "ok"
    odds = own["value"]["equalized_odds", ""]
    apart_in = own["value"][["equal_opportunity", "false_positive_rate_gap"]]
    assert odds == pytest.approx(apart_in.max())


def test_intervals_are_those_of_the_counts():
    target, prediction, sex, control = people(300, seed=2)
    age = control["age"]
    table = rows_of(
        evaluate(target, prediction, sensitive_features=sex, within=age), STANDARDISED
    ).set_index(["metric", "group"])
    cells = [(sex == group) & (age == level) for group in ("F", "M") for level in ("old", "young")]
    size = np.array([cell.sum() for cell in cells]).reshape(2, 2)
    hits = np.array([prediction[cell].sum() for cell in cells]).reshape(2, 2)
    rates = StandardisedRates.of(hits, size)
    row = table.loc[("statistical_parity_difference", "M")]
    assert row[["value", "lower", "upper"]].tolist() == pytest.approx(
        [end[1, 0] for end in rates.differences()]
    )
    assert row["n"] == size.sum(axis=1).min()
    row = table.loc[("disparate_impact", "")]
    assert row[["value", "lower", "upper"]].tolist() == pytest.approx(
        [end[1, 0] for end in rates.ratios()]
    )


def test_with_one_stratum_standardised_is_raw():
    target, prediction, sex, _ = people(groups=("F", "M", "X"))
    one = np.repeat("all", len(target))
    table = evaluate(target, prediction, sensitive_features=sex, within=one)
    assert set(table["within"].dropna()) == {"stratum"}
    raw = rows_of(table, "value").set_index(["metric", "attribute", "group"])
    own = rows_of(table, STANDARDISED).set_index(["metric", "attribute", "group"])
    assert len(own) > 20
    for column in ("value", "lower", "upper", "n"):
        np.testing.assert_allclose(own[column], raw[column][own.index], rtol=1e-9, atol=1e-12)
    assert own["status"].tolist() == raw["status"][own.index].tolist()


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
    table, nothing = (
        rows_of(evaluate(target, prediction, sensitive_features=sex, within=within), STANDARDISED)
        .set_index(["metric", "group"])
        for within in (stratum.rename("site"), sex.rename("twin"))
    )  # fmt: skip
    row, none = (each.loc[("statistical_parity", "")] for each in (table, nothing))
    assert row["status"] == "insufficient"
    covered = (stratum != "c").mean()
    assert row["reason"].startswith(f"of {covered:.1%} of these people: without 'c'")
    assert not np.isnan([row["lower"], row["upper"]]).any()
    assert table.loc[("selection_rate", "F"), "status"] == "ok"
    assert table.loc[("selection_rate", "M"), "status"] == "insufficient"
    reason = "no stratum has rows of both 'F' and 'M'"
    assert (none["status"], none["reason"]) == ("undefined", reason)
    assert np.isnan(none["value"])


def test_few_rows_are_flagged_and_rates_of_nobody_said():
    target, prediction, sex, control = people(60, seed=1)
    prediction = np.where(sex == "F", 0, prediction)
    few = sex.where(np.arange(60) >= 4, "X")
    table = rows_of(
        evaluate(target, prediction, sensitive_features=few, within=control["age"]), STANDARDISED
    ).set_index(["metric", "group"])
    assert table.loc[("selection_rate", "X"), "reason"] == "n=4 in group 'X'"
    ratio = table.loc[("statistical_parity_ratio", "M")]
    assert (ratio["status"], ratio["reason"]) == ("undefined", "the rate compared with is 0")
    assert ratio["lower"] > 0
    assert table.loc[("predictive_parity_difference", "M"), "reason"] == (
        "no predicted positives in group 'F'"
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"within": "sex"}, "within names 'sex', whose groups are compared"),
        ({"within": "short"}, "feature of within stratum has 3 rows|within stratum has 3 rows"),
        ({"sample_weight": 1}, "within takes neither sample_weight nor clusters"),
        ({"task": "regression"}, "within is of two classes, not of regression"),
        ({"evaluator": Evaluator(interval="dirichlet")}, "within has no interval=dirichlet"),
        ({"within": "rows"}, "makes 900 strata of 900 rows; groups are compared within up to 500"),
    ],
)
def test_what_strata_cannot_be_is_refused(options, sentence):
    target, prediction, sex, control = people()
    special = {"sex": sex, "short": ["a", "b", "c"], "rows": np.arange(900)}
    options = {"within": control["age"], **options}
    if isinstance(options["within"], str):
        options["within"] = special[options["within"]]
    if "sample_weight" in options:
        options["sample_weight"] = np.linspace(1, 2, len(target))
    with pytest.raises(UserError, match=sentence):
        evaluate(target, prediction, sensitive_features=sex, **options)
