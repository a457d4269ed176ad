"""Group rows of an evaluation: values against fairlearn, statuses, and exact posteriors."""

import dataclasses
import itertools
from functools import cache, partial

import numpy as np
import pandas as pd
import pytest
from fairlearn import metrics as fl
from scipy import integrate, stats

from fairbench import Evaluator
from fairbench.evaluation.table import BELOW_EPSILON, DEBIASED, OUTSIDE_BAND, VALUE, values_of
from fairbench.inference.rates import rate_limits
from fairbench.metrics import group as of_groups
from fairbench.metrics import registry
from fairbench.metrics.registry import BINARY, metrics_of
from tests.evaluation.labelled import FAIRLEARN, GAPS_OF_RATES, evaluate
from tests.harness import ours


def table_of(counts, evaluator=None, **options):
    """Return the table of labels that have these counts: group -> TN, FP, FN, TP."""
    rows = [
        (target, prediction, group)
        for group, cells in counts.items()
        for (target, prediction), n in zip(itertools.product((0, 1), (0, 1)), cells, strict=True)
        for _ in range(n)
    ]
    target, prediction, group = (np.array(column) for column in zip(*rows, strict=True))
    table = evaluate(target, prediction, sensitive_features=group, evaluator=evaluator, **options)
    return table.set_index(["metric", "attribute", "group"]).sort_index()


def row(table, metric, attribute="group", group="", *, statistic=VALUE):
    rows = table.loc[[(metric, attribute, group)]]
    rows = rows[rows["statistic"] == statistic]
    assert len(rows) == 1
    return rows.iloc[0]


def test_attributes_and_intersections_match_their_own_metric_frames():
    draw = np.random.default_rng(5)
    sex, race = draw.choice(["F", "M"], 800), draw.choice(["p", "q", "r"], 800)
    target = (draw.random(800) < 0.3 + 0.3 * (sex == "M")).astype(int)
    prediction = np.where(draw.random(800) < 0.2 + 0.2 * (race == "q"), 1 - target, target)
    sensitive = pd.DataFrame({"sex": sex, "race": race})
    table = values_of(evaluate(target, prediction, sensitive_features=sensitive))
    for attributes in (["sex"], ["race"], ["sex", "race"]):
        labels = {"y_true": target, "y_pred": prediction}
        groups = sensitive[attributes]
        frame = fl.MetricFrame(metrics=FAIRLEARN, **labels, sensitive_features=groups)
        own = table[table["attribute"] == " x ".join(attributes)]
        rows = own.set_index(["metric", "group"])["value"]
        for names, expected in frame.by_group.iterrows():
            group = names if isinstance(names, str) else " x ".join(names)
            values = rows[[(name, group) for name in FAIRLEARN]]
            np.testing.assert_allclose(values, expected[list(FAIRLEARN)], rtol=1e-12)
        widest = frame.difference()
        for gap, rate in GAPS_OF_RATES.items():
            assert rows[gap, ""] == pytest.approx(widest[rate], rel=1e-12)
        odds = widest[["true_positive_rate", "false_positive_rate"]].max()
        assert rows["equalized_odds", ""] == pytest.approx(odds, rel=1e-12)
    impact = frame.ratio()["selection_rate"]
    assert rows["disparate_impact", ""] == pytest.approx(impact, rel=1e-12)
    overall = table[(table["attribute"] == "") & (table["group"] == "")].set_index("metric")
    np.testing.assert_allclose(overall["value"][list(FAIRLEARN)], frame.overall, rtol=1e-12)


def test_combinations_that_do_not_occur_are_left_out_and_one_level_can_be_asked_for():
    sensitive = {"sex": list("MMFFFM"), "race": list("pqppqp"), "age": list("ooyooo")}
    labels = [0, 1, 0, 1, 1, 0], [0, 1, 1, 1, 0, 0]
    table = evaluate(*labels, sensitive_features=sensitive)
    pairs = {"sex x race", "sex x age", "race x age"}
    assert set(table["attribute"]) == {"", "sex", "race", "age", *pairs}
    crossed = table.loc[table["attribute"] == "race x age", "group"]
    assert set(crossed) == {"", "p x o", "p x y", "q x o"}
    single = evaluate(*labels, sensitive_features=sensitive, evaluator=Evaluator(intersections=1))
    assert set(single["attribute"]) == {"", "sex", "race", "age"}


def test_differences_and_ratios_are_of_other_groups_against_the_privileged_one():
    counts = {"a": [6, 4, 5, 5], "b": [2, 8, 2, 8]}
    table = table_of(counts, privileged={"group": "b"})
    for metric, group, expected in (
        ("statistical_parity_difference", "a", 0.45 - 0.8),
        ("statistical_parity_ratio", "a", 0.45 / 0.8),
        ("disparate_impact", "", 0.45 / 0.8),
    ):
        assert row(table, metric, "group", group)["value"] == pytest.approx(expected)
    assert ("statistical_parity_difference", "group", "b") not in table.index
    default = table_of(counts)
    assert row(default, "accuracy_difference", group="b")["value"] == pytest.approx(0.5 - 0.55)
    assert ("accuracy_difference", "group", "a") not in default.index


# Every status in words, and the rows that a value rests on.

NO_POSITIVES = {"a": [8, 5, 6, 20], "b": [9, 6, 0, 0]}
TRUE_NEGATIVES = {"a": [9, 9, 9, 9], "b": [20, 0, 0, 0]}
TRUE_POSITIVES = {"a": [9, 9, 9, 9], "b": [0, 0, 0, 20]}
NONE_SELECTED = {"a": [20, 0, 15, 0], "b": [9, 8, 11, 12]}
NOBODY = {name: [20, 0, 15, 0] for name in "abc"}
FEW = {"a": [2, 1, 0, 1], "b": [1, 1, 0, 0]}
NONE_IN_B = "undefined: no positives in group 'b'"
SIX_IN_B = "insufficient: n=6 in group 'b'"
STATUSES = [
    (NO_POSITIVES, "true_positive_rate", "b", 0, NONE_IN_B),
    (NO_POSITIVES, "balanced_accuracy", "b", 0, NONE_IN_B),
    (NO_POSITIVES, "equal_opportunity_difference", "b", 0, NONE_IN_B),
    (NO_POSITIVES, "equal_opportunity_ratio", "b", 0, NONE_IN_B),
    (NO_POSITIVES, "equal_opportunity", "", 0, NONE_IN_B),
    (NO_POSITIVES, "equalized_odds", "", 0, NONE_IN_B),
    (NO_POSITIVES, "true_positive_rate", "a", 26, "ok"),
    (NO_POSITIVES, "false_positive_rate_gap", "", 13, "ok"),
    (NO_POSITIVES, "positive_predictive_value", "b", 6, SIX_IN_B),
    (NO_POSITIVES, "predictive_parity", "", 6, SIX_IN_B),
    (NO_POSITIVES, "predictive_parity_difference", "b", 6, SIX_IN_B),
    (NO_POSITIVES, "f1_score", "b", 6, SIX_IN_B),
    # By its rows, not by its denominator.
    ({"a": [20, 0, 0, 7], "b": [9, 1, 1, 9]}, "f1_score", "a", 7, "insufficient: n=7 in group 'a'"),
    (TRUE_NEGATIVES, "positive_predictive_value", "b", 0,
     "undefined: no predicted positives in group 'b'"),
    (TRUE_NEGATIVES, "f1_score", "b", 0,
     "undefined: no positives and no predicted positives in group 'b'"),
    (TRUE_POSITIVES, "negative_predictive_value", "b", 0,
     "undefined: no predicted negatives in group 'b'"),
    (TRUE_POSITIVES, "false_positive_rate", "b", 0, "undefined: no negatives in group 'b'"),
    (NONE_SELECTED, "disparate_impact", "", 35, "undefined: selection_rate of group 'a' is 0"),
    (NONE_SELECTED, "equal_opportunity_ratio", "b", 15,
     "undefined: true_positive_rate of group 'a' is 0"),
    (NONE_SELECTED, "statistical_parity_difference", "b", 35, "ok"),
    (NONE_SELECTED, "accuracy_ratio", "b", 35, "ok"),
    (NOBODY, "disparate_impact", "", 35, "undefined: selection_rate of every group is 0"),
    (NOBODY | {"c": [5, 5, 5, 5]}, "disparate_impact", "", 20, "ok"),
    (FEW, "accuracy", "a", 4, "insufficient: n=4 in group 'a'"),
    (FEW, "accuracy", "everyone", 6, "insufficient: n=6"),
    ({"a": [20, 5, 0, 0]}, "true_positive_rate", "everyone", 0, "undefined: no positives"),
]  # fmt: skip


@pytest.mark.parametrize(("counts", "metric", "group", "n", "status"), STATUSES)
def test_a_status_is_said_in_words_with_the_rows_it_rests_on(counts, metric, group, n, status):
    table, attribute = table_of(counts), "" if group == "everyone" else "group"
    group = "" if group == "everyone" else group
    result = row(table, metric, attribute, group)
    assert (result["n"], result["status"]) == (n, status)
    assert np.isnan(result["value"]) == status.startswith("undefined")
    if status == NONE_IN_B:  # nor is anything said of how small a gap is, or how large a ratio
        every = table.loc[[(metric, attribute, group)]]
        assert (every["status"] == status).all() and every["value"].isna().all()


def test_a_reference_group_without_rows_is_named_and_voids_no_gap():
    counts = {"a": [9, 9, 9, 9], "b": [9, 8, 7, 6]}
    table, empty = table_of(counts, privileged={"group": "z"}), "no rows in group 'z'"
    for metric, group in (("accuracy", "z"), ("statistical_parity_difference", "a"),
                          ("accuracy_ratio", "b")):  # fmt: skip
        result = row(table, metric, "group", group)
        assert (result["n"], result["status"]) == (0, f"undefined: {empty}")
        assert result[["value", "lower", "upper"]].isna().all()
    posterior = table_of(counts, Evaluator(interval="dirichlet"), privileged={"group": "z"})
    for metric in ("statistical_parity", "disparate_impact", "accuracy_gap"):
        result, alone = row(table, metric), row(table_of(counts), metric)
        assert result[["value", "lower", "upper"]].equals(alone[["value", "lower", "upper"]])
        assert result["status"] == "insufficient: without 'z': no rows"
        assert row(posterior, metric)["status"] == f"undefined: {empty}"


def test_the_gap_of_all_groups_allows_for_one_that_has_no_row_of_the_rate():
    counts = {"a": [90, 90, 90, 90], "b": [90, 80, 70, 60], "c": [9, 8, 0, 0]}
    table = table_of(counts)
    result = row(table, "equal_opportunity")
    others = row(table_of({name: counts[name] for name in "ab"}), "equal_opportunity")
    single = [row(table, "true_positive_rate", "group", name) for name in "ab"]
    assert result["status"] == "insufficient: without 'c': no positives"
    assert (result["value"], result["lower"]) == (others["value"], others["lower"])
    assert result["upper"] == max(max(pair["upper"], 1 - pair["lower"]) for pair in single)
    assert row(table, "equal_opportunity", statistic=BELOW_EPSILON)["value"] <= 0.95
    assert row(table, "statistical_parity")["upper"] < 1


def test_a_ratio_over_a_rate_of_zero_says_what_it_exceeds_and_another_whether_it_is_in_the_band():
    table = table_of(NONE_SELECTED)
    result = row(table, "statistical_parity_ratio", "group", "b")
    assert np.isnan(result["value"])
    assert 1 < result["lower"] < result["upper"] == np.inf
    result = row(table, "accuracy_ratio", "group", "b", statistic=OUTSIDE_BAND)
    assert result["status"] == "ok"
    assert 0 <= result["value"] <= 1


def test_the_minimum_group_size_is_the_evaluators():
    for minimum, status in ((20, "ok"), (21, "insufficient: n=20 in group 'b'")):
        evaluator = Evaluator(minimum_group_size=minimum)
        table = table_of({"a": [9, 9, 9, 9], "b": [5, 5, 5, 5]}, evaluator)
        assert row(table, "selection_rate", "group", "b")["status"] == status
        assert row(table, "statistical_parity")["status"] == status


def test_one_group_has_rates_and_neither_gaps_nor_differences():
    names = set(table_of({"a": [9, 9, 9, 9]}).index.get_level_values("metric"))
    assert names == set(metrics_of(BINARY, "rate"))


def test_many_tiny_groups_leave_no_resample_to_correct_with():
    table = table_of({str(g): [1, g % 2, (g + 1) % 2, 0] for g in range(40)})
    assert row(table, "equal_opportunity")["status"].startswith("insufficient: ")
    result = row(table, "equal_opportunity", statistic=DEBIASED)
    assert np.isnan(result["value"])
    assert result["status"] == "undefined: no resample has the rates of every group"


# Intervals and probabilities against exact posteriors.

WIDEST = metrics_of(BINARY, "widest", "widest_mean")
EVERY_RATE = metrics_of(BINARY, "rate").items()
RATES = {name: each.function for name, each in EVERY_RATE if len(each.rates) == 1}
DRAWS = 20_000
COUNTS = {"a": [30, 10, 12, 28], "b": [25, 14, 5, 16], "c": [12, 4, 9, 15]}


@cache
def fine_table(groups, **settings):
    """Return the table of the groups called so, from many draws."""
    evaluator = Evaluator(interval="dirichlet", draws=DRAWS, **settings)
    return table_of({name: COUNTS[name] for name in groups}, evaluator)


def posteriors(groups, rate, prior=1):
    """Return the posteriors of a rate, with a uniform prior: Beta distributions."""
    top, bottom = np.array(rate.numerator), np.array(rate.denominator)
    cells = [np.array(COUNTS[name]) + prior for name in groups]
    return [stats.beta(n[top > 0].sum(), n[(bottom > 0) & (top == 0)].sum()) for n in cells]


def integral(function):
    return integrate.quad(function, 0, 1, limit=200)[0]


def assert_probability(result, exact):
    assert 0.02 < exact < 0.98
    assert abs(result["value"] - exact) < 5 * np.sqrt(exact * (1 - exact) / DRAWS)


@pytest.mark.parametrize("name", ["statistical_parity", "equal_opportunity", "predictive_parity"])
@pytest.mark.parametrize("group", ["b", "c"])
def test_probability_of_a_ratio_outside_the_band_is_that_of_the_posterior(name, group):
    result = row(fine_table("abc"), f"{name}_ratio", "group", group, statistic=OUTSIDE_BAND)
    assert result["setting"] == "band=0.2"
    reference, other = posteriors(["a", group], *WIDEST[name].rates)
    inside = integral(lambda x: reference.pdf(x) * (other.cdf(x * 1.2) - other.cdf(x * 0.8)))
    assert_probability(result, 1 - inside)


@pytest.mark.parametrize("settings", [{}, {"level": 0.5}, {"alpha": 50}], ids=str)
def test_interval_of_a_groups_rate_has_the_probability_asked_for(settings):
    table, tail = fine_table("ab", **settings), (1 - settings.get("level", 0.95)) / 2
    error = 6 * np.sqrt(tail * (1 - tail) / DRAWS)
    for name in RATES.keys() - {"f1_score"}:
        exact_ones = posteriors("ab", RATES[name], settings.get("alpha", 1))
        for group, exact in zip("ab", exact_ones, strict=True):
            result = row(table, name, "group", group)
            assert abs(exact.cdf(result["lower"]) - tail) < error, name
            assert abs(exact.sf(result["upper"]) - tail) < error, name


def test_debiased_gaps_come_with_more_than_two_groups_only():
    metrics = {name for name, metric in WIDEST.items() if metric.better == "lower"}
    for groups, expected in (("ab", set()), ("abc", metrics)):
        table = fine_table(groups)
        corrected = table[table["statistic"] == DEBIASED]
        assert set(corrected.index.get_level_values("metric")) == expected
    for name in ours(metrics):
        assert 0 <= row(table, name, statistic=DEBIASED)["value"] < row(table, name)["value"]


MISSES, ALARMS = (registry.RATES[f"false_{of}_rate"] for of in ("negative", "positive"))


GAP = "gap_of_this_test"


@pytest.fixture
def balanced_error_gap(monkeypatch):
    balanced_error = partial(of_groups.mean_rate, MISSES, ALARMS)
    about = {"name": GAP, "interval": "widest_mean", "rates": (MISSES, ALARMS)}
    like = metrics_of(BINARY)["equalized_odds"]
    metric = dataclasses.replace(like, **about, function=partial(of_groups.gap, balanced_error))
    kept = registry.declared, registry.metrics_of
    monkeypatch.setattr("fairbench.metrics.group.OWN", metric, raising=False)
    for cached in kept:
        cached.cache_clear()
    yield
    for cached in kept:
        cached.cache_clear()


def test_a_gap_of_ones_own_changes_no_other_row(request):
    counts = {"a": [70, 10, 8, 40], "b": [30, 12, 20, 25], "c": [40, 12, 9, 30]}
    before = table_of(counts)
    request.getfixturevalue("balanced_error_gap")
    after = table_of(counts)
    assert GAP in after.index
    pd.testing.assert_frame_equal(after.drop(index=GAP, level=0), before)


def by_hand(counts):
    """Return the balanced errors (3, G) of counts (G, 4), with limits joined by MOVER.

    With fewer than 30 rows of either label, the widths add.
    """
    of = [rate_limits(rate.successes(counts), rate.size(counts), level=0.95)
          for rate in (MISSES, ALARMS)]  # fmt: skip
    few = np.min([rate.size(counts) for rate in (MISSES, ALARMS)], axis=0) < 30
    value = (of[0].value + of[1].value) / 2
    down, up = (
        np.where(few, first + second, np.hypot(first, second)) / 2
        for first, second in (
            [np.abs(limits[end] - limits.value) for limits in of] for end in (1, 2)
        )
    )
    return value, value - down, value + up


@pytest.mark.parametrize("of_second", [[30, 12, 20, 25], [30, 12, 9, 20]])
def test_a_gap_of_the_mean_of_two_rates_has_the_interval_of_that_mean(
    balanced_error_gap, of_second
):
    counts = np.array([[70, 10, 8, 40], of_second])
    found = row(table_of(dict(zip("ab", counts, strict=True))), GAP)
    (a, b), (low_a, low_b), (high_a, high_b) = by_hand(counts)
    tn, fp, fn, tp = of_second
    balanced = (fn / (fn + tp) + fp / (fp + tn)) / 2
    assert found["value"] == pytest.approx(balanced - a) == pytest.approx(b - a)
    assert found["lower"] == pytest.approx(max(0, b - a - np.hypot(b - low_b, high_a - a)))
    assert found["upper"] == pytest.approx(b - a + np.hypot(high_b - b, a - low_a))


def test_a_gap_of_means_of_more_groups_is_that_of_the_two_furthest_apart(balanced_error_gap):
    counts = {"a": [70, 10, 8, 40], "b": [50, 12, 12, 40], "c": [30, 12, 20, 25], "d": [9, 0, 0, 0]}
    table = table_of(counts)
    found = row(table, GAP)
    assert found["status"] == "insufficient: without 'd': no positives"
    value, lower, upper = by_hand(np.array([*counts.values()][:3]))
    assert found["value"] == pytest.approx(np.ptp(value))
    assert 0 < found["lower"] < value[2] - value[0] - np.hypot(value - lower, upper - value)[2]
    assert found["upper"] == pytest.approx(1 - lower.min())  # a group without positives may be 1
    below = row(table, GAP, statistic=BELOW_EPSILON)["value"]
    assert 0 < below <= 0.05  # the interval is above epsilon
    assert row(table_of(counts, Evaluator(interval="dirichlet")), GAP)["status"].startswith(
        "undefined"
    )


def test_the_errors_of_means_in_groups_that_share_clusters_cancel(balanced_error_gap):
    """A couple of the same label and prediction are one cluster: the groups never differ."""
    labels, predictions = np.tile([0, 0, 1, 1, 1], 80), np.tile([0, 1, 1, 1, 0], 80)
    groups = np.repeat(["a", "b"], 200)
    largest = {}
    for name, clusters in {"couples": np.tile(np.arange(200), 2), "rows": np.arange(400)}.items():
        table = evaluate(labels, predictions, sensitive_features=groups, clusters=clusters)
        table = table.set_index(["metric", "attribute", "group"]).sort_index()
        largest[name] = row(table, GAP)["upper"]
    assert largest["couples"] < 0.02 < 0.09 < largest["rows"]
