"""Group rows of an evaluation: values, against fairlearn, of attributes and intersections."""

import numpy as np
import pandas as pd
import pytest
from fairlearn import metrics as fl
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, precision_score

from fairbench import Evaluator, evaluate
from fairbench.evaluation.table import values_of
from tests.evaluation.counted import row, table_of


def random_labels(seed, n=800):
    draw = np.random.default_rng(seed)
    sex, race = draw.choice(["F", "M"], n), draw.choice(["p", "q", "r"], n)
    target = (draw.random(n) < 0.3 + 0.3 * (sex == "M")).astype(int)
    prediction = np.where(draw.random(n) < 0.2 + 0.2 * (race == "q"), 1 - target, target)
    return target, prediction, pd.DataFrame({"sex": sex, "race": race})


METRIC_FRAME = {
    "selection_rate": fl.selection_rate,
    "accuracy": accuracy_score,
    "true_positive_rate": fl.true_positive_rate,
    "false_positive_rate": fl.false_positive_rate,
    "true_negative_rate": fl.true_negative_rate,
    "false_negative_rate": fl.false_negative_rate,
    "positive_predictive_value": precision_score,
    "f1_score": f1_score,
    "balanced_accuracy": balanced_accuracy_score,
}
GAPS = {
    "statistical_parity": "selection_rate",
    "equal_opportunity": "true_positive_rate",
    "false_positive_rate_gap": "false_positive_rate",
    "predictive_parity": "positive_predictive_value",
    "accuracy_gap": "accuracy",
}


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(3))
def test_intersections_match_a_metric_frame_of_two_sensitive_features(seed):
    target, prediction, sensitive = random_labels(seed)
    frame = fl.MetricFrame(
        metrics=METRIC_FRAME, y_true=target, y_pred=prediction, sensitive_features=sensitive
    )
    table = values_of(evaluate(target, prediction, sensitive_features=sensitive))
    rows = table[table["attribute"] == "sex x race"].set_index(["metric", "group"])["value"]
    assert set(rows.xs("accuracy").index) == {f"{s} x {r}" for s, r in frame.by_group.index}
    for (sex, race), expected in frame.by_group.iterrows():
        values = rows[[(name, f"{sex} x {race}") for name in METRIC_FRAME]]
        np.testing.assert_allclose(values, expected[list(METRIC_FRAME)], rtol=1e-12)
    widest = frame.difference()
    for gap, rate in GAPS.items():
        assert rows[gap, ""] == pytest.approx(widest[rate], rel=1e-12)
    odds = widest[["true_positive_rate", "false_positive_rate"]].max()
    assert rows["equalized_odds", ""] == pytest.approx(odds, rel=1e-12)
    impact = frame.ratio()["selection_rate"]
    assert rows["disparate_impact", ""] == pytest.approx(impact, rel=1e-12)


def test_every_attribute_matches_its_own_metric_frame():
    target, prediction, sensitive = random_labels(5)
    table = values_of(evaluate(target, prediction, sensitive_features=sensitive))
    for attribute in ("sex", "race"):
        frame = fl.MetricFrame(
            metrics=METRIC_FRAME,
            y_true=target,
            y_pred=prediction,
            sensitive_features=sensitive[attribute],
        )
        rows = table[table["attribute"] == attribute].set_index(["metric", "group"])["value"]
        for name in METRIC_FRAME:
            expected = frame.by_group[name]
            np.testing.assert_allclose(rows[name][expected.index], expected, rtol=1e-12)
    overall = table[(table["attribute"] == "") & (table["group"] == "")].set_index("metric")
    np.testing.assert_allclose(overall["value"][list(METRIC_FRAME)], frame.overall, rtol=1e-12)


def test_combinations_that_do_not_occur_are_left_out_and_one_level_can_be_asked_for():
    sensitive = {"sex": list("MMFFFM"), "race": list("pqppqp")}
    target, prediction = [0, 1, 0, 1, 1, 0], [0, 1, 1, 1, 0, 0]
    sensitive["age"] = list("oyoyoo")
    table = evaluate(target, prediction, sensitive_features=sensitive)
    assert set(table["attribute"]) == {
        "", "sex", "race", "age", "sex x race", "sex x age", "race x age"
    }  # fmt: skip
    pairs = set(table.loc[table["attribute"] == "race x age", "group"]) - {""}
    assert pairs == {"p x o", "p x y", "q x o", "q x y"}
    pairs = set(table.loc[table["attribute"] == "sex x age", "group"]) - {""}
    assert pairs == {"F x o", "F x y", "M x o", "M x y"}
    single = evaluate(
        target, prediction, sensitive_features=sensitive, evaluator=Evaluator(intersections=1)
    )
    assert set(single["attribute"]) == {"", "sex", "race", "age"}
    without = evaluate(
        [0, 1, 1], [0, 1, 0], sensitive_features={"u": list("aab"), "v": list("xyy")}
    )
    assert set(without.loc[without["attribute"] == "u x v", "group"]) == {
        "", "a x x", "a x y", "b x y"
    }  # fmt: skip


def test_differences_and_ratios_are_of_other_groups_against_the_privileged_one():
    table = table_of({"a": [6, 4, 5, 5], "b": [2, 8, 2, 8]}, privileged={"group": "b"})
    for metric, group, expected in (
        ("statistical_parity_difference", "a", 0.45 - 0.8),
        ("statistical_parity_ratio", "a", 0.45 / 0.8),
        ("disparate_impact", "", 0.45 / 0.8),
    ):
        assert row(table, metric, "group", group)["value"] == pytest.approx(expected)
    assert ("statistical_parity_difference", "group", "b") not in table.index
    default = table_of({"a": [6, 4, 5, 5], "b": [2, 8, 2, 8]})
    assert row(default, "accuracy_difference", "group", "b")["value"] == pytest.approx(0.5 - 0.55)
