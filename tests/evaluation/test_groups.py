"""Group rows of an evaluation: values, posterior probabilities, and every status in words."""

import itertools
from functools import cache

import numpy as np
import pandas as pd
import pytest
from fairlearn import metrics as fl
from scipy import integrate, stats
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, precision_score

from fairbench import Evaluator, evaluate
from fairbench.metrics.group import GROUP_METRICS
from fairbench.metrics.rates import RATES

DRAWS = 20_000


def labels_from(counts):
    """Return target, prediction and group that have these counts: group -> TN, FP, FN, TP."""
    rows = [
        (target, prediction, group)
        for group, cells in counts.items()
        for (target, prediction), n in zip(itertools.product((0, 1), (0, 1)), cells, strict=True)
        for _ in range(n)
    ]
    return tuple(np.array(column) for column in zip(*rows, strict=True))


def table_of(counts, evaluator=None, **options):
    target, prediction, group = labels_from(counts)
    table = evaluate(target, prediction, sensitive_features=group, evaluator=evaluator, **options)
    return table.set_index(["metric", "attribute", "group"]).sort_index()


def row(table, metric, attribute="", group=""):
    rows = table.loc[[(metric, attribute, group)]]
    assert len(rows) == 1
    return rows.iloc[0]


# --- values


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


@pytest.mark.parametrize("seed", range(3))
def test_intersections_match_a_metric_frame_of_two_sensitive_features(seed):
    target, prediction, sensitive = random_labels(seed)
    frame = fl.MetricFrame(
        metrics=METRIC_FRAME, y_true=target, y_pred=prediction, sensitive_features=sensitive
    )
    table = evaluate(target, prediction, sensitive_features=sensitive)
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
    table = evaluate(target, prediction, sensitive_features=sensitive)
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


# --- intervals and probabilities from the posterior

COUNTS = {"a": [30, 10, 12, 28], "b": [25, 14, 5, 16], "c": [12, 4, 9, 15]}
PAIR = {name: COUNTS[name] for name in "ab"}


@cache
def fine_table(groups, **settings):
    """Return the table of the groups called so, from many draws."""
    return table_of({name: COUNTS[name] for name in groups}, Evaluator(draws=DRAWS, **settings))


def beta(counts, numerator, denominator):
    """Return the posterior of a rate, with a uniform prior: a Beta distribution."""
    weights, top, bottom = np.array(counts) + 1, np.array(numerator), np.array(denominator)
    return stats.beta(weights[top > 0].sum(), weights[(bottom > 0) & (top == 0)].sum())


def posteriors(groups, rate):
    return [beta(COUNTS[name], rate.numerator, rate.denominator) for name in groups]


def integral(function):
    return integrate.quad(function, 0, 1, limit=200)[0]


def probability_below(groups, epsilon):
    """Return P(largest - smallest < epsilon), by which group is the smallest."""
    return sum(
        integral(
            lambda x, g=g: (
                groups[g].pdf(x)
                * np.prod(
                    [
                        other.cdf(x + epsilon) - other.cdf(x)
                        for h, other in enumerate(groups)
                        if h != g
                    ]
                )
            )
        )
        for g in range(len(groups))
    )


def probability_outside(group, reference, band):
    """Return P(|group / reference - 1| > band)."""
    return 1 - integral(
        lambda x: reference.pdf(x) * (group.cdf(x * (1 + band)) - group.cdf(x * (1 - band)))
    )


def assert_probability(estimate, exact):
    assert 0.02 < exact < 0.98
    assert abs(estimate - exact) < 5 * np.sqrt(exact * (1 - exact) / DRAWS)


SINGLE_RATE = [name for name, metric in GROUP_METRICS.items() if metric.is_gap]
SINGLE_RATE.remove("equalized_odds")


@pytest.mark.parametrize("groups", ["ab", "abc"])
@pytest.mark.parametrize("name", SINGLE_RATE)
def test_probability_of_a_small_gap_is_that_of_the_posterior(name, groups):
    found = row(fine_table(groups, epsilon=0.15), f"{name}_below", "group")
    assert found["setting"] == "epsilon=0.15"
    (rate,) = GROUP_METRICS[name].rates
    assert_probability(found["value"], probability_below(posteriors(groups, rate), 0.15))


def test_probability_of_small_equalized_odds_is_the_product_of_both_gaps():
    # True and false positive rates of a Dirichlet posterior are independent.
    table = fine_table("ab", epsilon=0.2)
    one, other = (
        probability_below(posteriors("ab", rate), 0.2)
        for rate in GROUP_METRICS["equalized_odds"].rates
    )
    assert_probability(row(table, "equalized_odds_below", "group")["value"], one * other)


@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("statistical_parity", "selection_rate"),
        ("equal_opportunity", "true_positive_rate"),
        ("false_positive_rate", "false_positive_rate"),
        ("predictive_parity", "positive_predictive_value"),
        ("accuracy", "accuracy"),
    ],
)
@pytest.mark.parametrize("group", ["b", "c"])
def test_probability_of_a_ratio_outside_the_band_is_that_of_the_posterior(name, rate, group):
    found = row(fine_table("abc"), f"{name}_ratio_outside_band", "group", group)
    assert found["setting"] == "band=0.2"
    (rate,) = [each for each in RATES if each.name == rate]
    reference, other = posteriors(["a", group], rate)
    assert_probability(found["value"], probability_outside(other, reference, 0.2))


@pytest.mark.parametrize("level", [0.95, 0.5])
@pytest.mark.parametrize(
    "rate", [rate for rate in RATES if rate.name != "f1_score"], ids=lambda rate: rate.name
)
def test_interval_of_a_groups_rate_has_the_probability_asked_for(rate, level):
    table, tail = fine_table("ab", level=level), (1 - level) / 2
    error = 6 * np.sqrt(tail * (1 - tail) / DRAWS)
    for group, exact in zip("ab", posteriors("ab", rate), strict=True):
        found = row(table, rate.name, "group", group)
        assert abs(exact.cdf(found["lower"]) - tail) < error
        assert abs(exact.sf(found["upper"]) - tail) < error


def test_interval_of_a_signed_difference_is_that_of_the_posterior():
    found = row(fine_table("ab"), "statistical_parity_difference", "group", "b")
    a, b = (beta(PAIR[g], [0, 1, 0, 1], [1, 1, 1, 1]) for g in "ab")
    for end, level in ((found["lower"], 0.025), (found["upper"], 0.975)):
        below = integral(lambda x, end=end: a.pdf(x) * b.cdf(x + end))
        assert abs(below - level) < 6 * np.sqrt(0.025 * 0.975 / DRAWS)


def test_alpha_is_the_prior_count_of_every_cell():
    table = fine_table("ab", alpha=50)
    found, cells = row(table, "selection_rate", "group", "b"), np.array(PAIR["b"]) + 50
    exact = stats.beta(cells[[1, 3]].sum(), cells[[0, 2]].sum())
    assert abs(exact.cdf(found["lower"]) - 0.025) < 6 * np.sqrt(0.025 * 0.975 / DRAWS)


def test_debiased_gaps_come_with_more_than_two_groups_only():
    metrics = {name for name, metric in GROUP_METRICS.items() if metric.is_gap}
    for counts, expected in ((PAIR, set()), (COUNTS, {f"{name}_debiased" for name in metrics})):
        names = table_of(counts).index.get_level_values("metric")
        assert {name for name in names if name.endswith("_debiased")} == expected
    table = fine_table("abc")
    for name in metrics:
        plug_in = row(table, name, "group")["value"]
        assert 0 <= row(table, f"{name}_debiased", "group")["value"] < plug_in


# --- n and status

NO_POSITIVES = {"a": [8, 5, 6, 20], "b": [9, 6, 0, 0]}


@pytest.mark.parametrize(
    ("metric", "group", "n", "status"),
    [
        ("true_positive_rate", "b", 0, "undefined: no positives in group 'b'"),
        ("false_negative_rate", "b", 0, "undefined: no positives in group 'b'"),
        ("balanced_accuracy", "b", 0, "undefined: no positives in group 'b'"),
        ("equal_opportunity_difference", "b", 0, "undefined: no positives in group 'b'"),
        ("equal_opportunity_ratio", "b", 0, "undefined: no positives in group 'b'"),
        ("equal_opportunity_ratio_outside_band", "b", 0, "undefined: no positives in group 'b'"),
        ("equal_opportunity", "", 0, "undefined: no positives in group 'b'"),
        ("equal_opportunity_below", "", 0, "undefined: no positives in group 'b'"),
        ("equalized_odds", "", 0, "undefined: no positives in group 'b'"),
        ("equalized_odds_below", "", 0, "undefined: no positives in group 'b'"),
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
    found = row(table_of(NO_POSITIVES), metric, "group", group)
    assert (found["n"], found["status"]) == (n, status)
    assert np.isnan(found["value"]) == status.startswith("undefined")


def test_f1_is_flagged_by_its_rows_not_by_its_denominator():
    found = row(table_of({"a": [20, 0, 0, 7], "b": [9, 1, 1, 9]}), "f1_score", "group", "a")
    assert (found["value"], found["n"]) == (1, 7)
    assert found["status"] == "insufficient: n=7 in group 'a'"


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
    found = row(table_of({"a": [9, 9, 9, 9], "b": [20, 0, 0, 0]}), metric, "group", "b")
    assert found["status"] == status


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
        ("statistical_parity", ""),
        ("statistical_parity_debiased", ""),
        ("disparate_impact", ""),
        ("accuracy_gap", ""),
        ("statistical_parity_difference", "a"),
        ("accuracy_ratio", "b"),
    ],
)
def test_a_reference_group_without_rows_is_kept_and_said_to_be_empty(metric, group):
    table = table_of({"a": [9, 9, 9, 9], "b": [9, 8, 7, 6]}, privileged={"group": "z"})
    found = row(table, metric, "group", group)
    assert (found["n"], found["status"]) == (0, "undefined: no rows in group 'z'")
    assert found[["value", "lower", "upper"]].isna().all()


@pytest.mark.parametrize(
    ("metric", "group", "status"),
    [
        ("disparate_impact", "", "undefined: selection_rate of group 'a' is 0"),
        ("statistical_parity_ratio", "b", "undefined: selection_rate of group 'a' is 0"),
        ("accuracy_ratio_outside_band", "b", "ok"),
        ("equal_opportunity_ratio", "b", "undefined: true_positive_rate of group 'a' is 0"),
        ("false_positive_rate_ratio", "b", "undefined: false_positive_rate of group 'a' is 0"),
        ("statistical_parity_difference", "b", "ok"),
        ("statistical_parity", "", "ok"),
        ("accuracy_ratio", "b", "ok"),
    ],
)  # fmt: skip
def test_ratios_to_a_reference_rate_of_zero(metric, group, status):
    found = row(table_of({"a": [20, 0, 15, 0], "b": [9, 8, 11, 12]}), metric, "group", group)
    assert found["status"] == status
    assert np.isnan(found["value"]) == (status != "ok")


def test_disparate_impact_of_several_groups_is_undefined_only_if_nobody_is_selected():
    nobody = {name: [20, 0, 15, 0] for name in "abc"}
    status = row(table_of(nobody), "disparate_impact", "group")["status"]
    assert status == "undefined: selection_rate of every group is 0"
    found = row(table_of({**nobody, "c": [5, 5, 5, 5]}), "disparate_impact", "group")
    assert (found["value"], found["status"]) == (0, "ok")


def test_everyone_without_positives_or_with_few_rows():
    table = table_of({"a": [20, 5, 0, 0], "b": [20, 5, 0, 0]})
    found = row(table, "true_positive_rate")
    assert (found["n"], found["status"]) == (0, "undefined: no positives")
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
    assert names == {rate.name for rate in RATES} | {"balanced_accuracy"}


def test_many_tiny_groups_leave_no_resample_to_correct_with():
    group = np.repeat(np.arange(40), 2).astype(str)
    target, prediction = np.tile([0, 1], 40), np.tile([0, 1, 1, 0], 20)
    table = evaluate(target, prediction, sensitive_features=group).set_index(["metric", "group"])
    assert table["status"]["equal_opportunity", ""].startswith("insufficient: n=1 in group")
    found = table.loc["equal_opportunity_debiased", ""]
    assert np.isnan(found["value"])
    assert found["status"] == "undefined: no resample has the rates of every group"
