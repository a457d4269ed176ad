"""Rows for abstention, by hand on eight rows, and for thresholds per group."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fairbench import Evaluator
from fairbench.data.dataset import Task
from fairbench.evaluation import abstention
from fairbench.evaluation.abstention import CONSTRAINTS, evaluate_group_thresholds
from fairbench.metrics.uncertainty import feature_shift
from tests.evaluation.labelled import added, by_place, labelled, table_of

# Target, prediction, uncertainty, group: the two most uncertain rows are the two errors.
EIGHT = [
    (1, 1, 0.10, "a"), (0, 0, 0.20, "a"), (1, 0, 0.60, "a"), (0, 0, 0.30, "a"),
    (1, 1, 0.15, "b"), (0, 1, 0.50, "b"), (0, 0, 0.25, "b"), (1, 1, 0.35, "b"),
]  # fmt: skip


def data(rows=EIGHT):
    target, prediction, uncertainty, groups = zip(*rows, strict=True)
    return labelled(target, groups, prediction=prediction, uncertainty=uncertainty)


def rows_of(test, chooser=None, *, rates=(), candidates=(0.0,)):
    return added(abstention.evaluate_abstention, test, chooser, rates, candidates, "g")


LACKS = "undefined: a group of the rows kept lacks what it is a share of"
TIED = [(1, 0, 0.5, "a"), (1, 1, 0.5, "a"), (0, 0, 0.5, "b"), (0, 0, 0.5, "b")]
BY_HAND = [
    # The rows, the rate; a metric and a group; the value, the rows, the status.
    *((EIGHT, rate, name, "", value, kept, "ok")
      for rate, kept, *values in ((0, 8, 2 / 8, 1 / 2, 1 / 2), (0.25, 6, 0, 1 / 3, 0),
                                  (0.5, 4, 0, 0, 0))
      for name, value in zip(("error_rate", "statistical_parity", "equalized_odds"), values,
                             strict=True)),
    # Of the five rows kept at 3/8, three are of a (0.1, 0.2, 0.3) and two of b (0.15, 0.25).
    *((EIGHT, 0, name, group, value, 4, "ok")
      for group in "ab" for name, value in (("error_rate", 1 / 4), ("rate", 0))),
    *((EIGHT, 3 / 8, "error_rate", group, 0, kept, "ok") for group, kept in (("a", 3), ("b", 2))),
    *((EIGHT, 3 / 8, "rate", group, value, 4, "ok") for group, value in (("a", 1 / 4), ("b", 0.5))),
    # Tied rows count with the share that is kept.
    (TIED, 0.5, "error_rate", "", 1 / 4, 2, "ok"),
    (TIED, 0.5, "rate", "a", 0.5, 2, "ok"),
    (TIED, 0.5, "error_rate", "a", 1 / 2, 1, "ok"),
    # What too few rows leave undefined.
    (EIGHT, 0.75, "statistical_parity", "", 0, 2, "ok"),
    (EIGHT, 0.75, "equalized_odds", "", np.nan, 2, LACKS),
    (EIGHT, 0.875, "error_rate", "", 0, 1, "ok"),
    (EIGHT, 0.875, "statistical_parity", "", np.nan, 1, LACKS),
    (EIGHT, 0.875, "error_rate", "b", np.nan, 0, "undefined: no rows kept in group 'b'"),
    (EIGHT, 0.875, "rate", "b", 1, 4, "ok"),
    (EIGHT, 0, "rate", "z", np.nan, 0, "undefined: no rows in group 'z'"),
    (EIGHT, 0, "error_rate", "z", np.nan, 0, "undefined: no rows kept in group 'z'"),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "rate", "metric", "group", "value", "n", "status"), BY_HAND)
def test_curves_and_their_statuses_by_hand(rows, rate, metric, group, value, n, status):
    given = data(rows)
    if group == "z":
        given = replace(given, groups={"g": given.groups["g"].cat.add_categories(["z"])})
    row = rows_of(given, rates=[rate])["abstention_" + metric, group, f"rate={rate:g}"]
    assert row.value == pytest.approx(value, nan_ok=True)
    assert (row.n, row.status, row.attribute) == (n, status, "g")


def test_the_chosen_rate_has_the_least_normalised_sum():
    for rows, candidates, best in (
        (EIGHT, (0, 0.25, 0.5), 0.5),
        # Odds are equal (0) among all rows; without the errors no group has a negative.
        ([(1, 1, 0.1, g) for g in "aabb"] + [(0, 1, 0.9, g) for g in "ab"], (0, 1 / 3), 0),
        # An objective that is undefined for all rows has no say: there is no negative.
        ([(1, 1, 0.1, "a"), (1, 1, 0.1, "b"), (1, 1, 0.2, "a"), (1, 0, 0.9, "b")], (0, 0.25), 0.25),
    ):
        given = data(rows)
        result = rows_of(given, given, rates=[best], candidates=candidates)
        assert result["abstention_chosen_rate", "", ""].value == best
        on_curve = result["abstention_statistical_parity", "", f"rate={best:g}"].value
        assert result["abstained_statistical_parity", "", ""].value == pytest.approx(on_curve)


# --- through the evaluator


def simulated(seed, n=300):
    draw = np.random.default_rng(seed)
    target, prediction = draw.integers(2, size=(2, n))
    uncertainty = draw.random(n) + (target != prediction) * 0.3
    return labelled(target, draw.choice([*"ab"], n), prediction=prediction, uncertainty=uncertainty)


def test_the_rate_is_chosen_on_the_rows_named():
    test, validation, place = simulated(0), simulated(50, n=200), ("abstention_chosen_rate", "", "")
    best_of_test, best_of_validation = (
        (
            rows_of(test, rows, candidates=[i / 100 for i in range(26)])[place].value,
            len(rows.target),
        )
        for rows in (test, validation)
    )
    for choose_on, others, expected in (
        ("validation", validation, best_of_validation),
        ("test", validation, best_of_test),
        ("test", None, best_of_test),
        ("validation", None, None),
    ):
        evaluator = Evaluator(draws=100, choose_on=choose_on)
        result = by_place(table_of(test, evaluator, validation=others))
        assert ("abstention_error_rate", "", "rate=0.5") in result
        chosen = result.get(place)
        assert (chosen and (chosen.value, chosen.n)) == expected


def test_the_protected_attribute_is_the_one_judged_by():
    rows = simulated(0)
    two = replace(rows, groups={"g": rows.groups["g"], "h": rows.groups["g"]})
    for protect, attribute in (("", "g"), ("h", "h")):
        table = table_of(two, protect=protect).frame()
        assert set(table[table["metric"] == "abstention_error_rate"]["attribute"]) == {attribute}


def test_only_ordered_classifications_abstain():
    unordered, numbers = labelled([1, 0], prediction=[1, 0]), replace(data(), task=Task.REGRESSION)
    for rows, expected in ((data(), True), (unordered, False), (numbers, False)):
        metrics = table_of(rows).frame()["metric"]
        assert metrics.str.startswith("abstention_").any() == expected


# Feature shift: which rows are compared, and when there is nothing to compare.

FEATURES = pd.DataFrame({"hours per week": [1.0, 2, 3, 4], "job": pd.Categorical(list("aabb"))})


def featured(uncertainty=(0.1, 0.2, 0.3, 0.4), features=FEATURES):
    rows = labelled([0, 1, 0, 1], prediction=[0, 1, 1, 1], uncertainty=uncertainty)
    return replace(rows, features=features)


def shifts_of(rows, rates):
    return added(abstention.evaluate_feature_shift, rows, rates)


def test_the_most_certain_rows_are_compared_with_everyone():
    rows = shifts_of(featured(), [0.0, 0.25, 0.5])
    for rate, kept in ((0.0, 4), (0.25, 3), (0.5, 2)):
        expected = feature_shift(FEATURES, np.arange(4) < kept)
        for name, value in zip(FEATURES, expected, strict=True):
            row = rows["feature_shift", "", f"rate={rate:g} feature={name}"]
            assert (row.value, row.n, row.status) == (value, kept, "ok")
        mean = rows["mean_feature_shift", "", f"rate={rate:g}"]
        assert mean.value == pytest.approx(expected.mean())


def test_a_feature_without_a_value_is_undefined_and_left_out_of_the_mean():
    features = FEATURES.assign(late=[np.nan, np.nan, 1, 2])
    rows = shifts_of(featured(features=features), [0.5])
    row = rows["feature_shift", "", "rate=0.5 feature=late"]
    assert np.isnan(row.value)
    assert row.status == "undefined: no value among the rows kept"
    assert rows["mean_feature_shift", "", "rate=0.5"].status == "ok"


def test_invalid_uncertainties_are_counted():
    rows = shifts_of(featured(uncertainty=(0.1, np.nan, np.inf, 0.2)), [0.5])
    assert {row.status for row in rows.values()} == {"invalid: uncertainty invalid in 2 of 4 rows"}
    assert all(np.isnan(row.value) for row in rows.values())


def test_without_features_uncertainty_or_rates_there_are_no_rows():
    certain = featured()
    unordered = replace(certain, predictions=certain.predictions[["prediction"]])
    without = replace(certain, features=None)
    for rows, rates in ((without, [0.5]), (unordered, [0.5]), (certain, [])):
        assert not shifts_of(rows, rates)


# Thresholds per group: what they are chosen on and judged by, and when there are none.

PERFECT = labelled([0, 1, 0, 1], "aabb", prediction=[0, 1, 0, 1], score=[0.1, 0.9, 0.6, 0.8])


def thresholds_of(data, validation, relaxations=(0.0, 1.0), attribute="g"):
    return added(evaluate_group_thresholds, data, validation, relaxations, attribute)


def test_thresholds_of_the_validation_rows_are_judged_on_the_test_rows():
    """Group a is parted at 0.5, b at 0.7: on the test rows that is wrong once in a."""
    test = labelled([0, 1, 0, 1], "aabb", prediction=[0] * 4, score=[0.6, 0.9, 0.6, 0.75])
    rows, gaps = thresholds_of(test, PERFECT), {"statistical_parity": 0.5, "equal_opportunity": 0}
    for constraint in CONSTRAINTS:
        expected = {"error_rate": 0.25, "gap": gaps.get(constraint, 1), "validation_error_rate": 0}
        for name, value in expected.items():
            place = f"postprocessed_{name}", "", f"constraint={constraint} relaxation=1"
            assert rows[place].value == pytest.approx(value)


def test_a_group_without_positives_leaves_only_selection_to_be_equalised():
    missing = labelled([0, 1, 0, 0], "aabb", prediction=[0] * 4, score=[0.1, 0.9, 0.6, 0.8])
    of_validation, of_test = thresholds_of(PERFECT, missing), thresholds_of(missing, PERFECT)
    for constraint in CONSTRAINTS:
        place = "postprocessed_error_rate", "", f"constraint={constraint} relaxation=0"
        reason = "undefined: no positives in group 'b'"
        if constraint in ("statistical_parity", "false_positive_rate_gap"):
            assert of_validation[place].status == of_test[place].status == "ok"
        else:
            assert of_test[place].status == reason
            assert of_validation[place].status == f"{reason} of the validation rows"


def test_without_scores_validation_rows_or_relaxations_there_are_no_rows():
    labels = labelled([0, 1, 0, 1], "aabb", prediction=[0, 1, 0, 1])
    assert not thresholds_of(labels, labels)
    assert not thresholds_of(PERFECT, None)
    assert not thresholds_of(PERFECT, PERFECT, relaxations=())
    assert not thresholds_of(PERFECT, PERFECT, attribute="other")
