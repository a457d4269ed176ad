"""Evaluating arrays: forms of input, refusals, and properties of the whole table."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairbench import Evaluator
from fairbench.core.errors import UserError
from fairbench.evaluation.table import (
    BELOW_EPSILON,
    COLUMNS,
    OUTSIDE_BAND,
    PAIRS_THAT_DIFFER,
    POOLED,
    VALUE,
    WORST,
    values_of,
)
from tests.evaluation.labelled import evaluate

KEYS = ["metric", "statistic", "attribute", "group", "setting"]
FAST = Evaluator(draws=100, spread_groups=(3,), bins=5)
deterministic = settings(max_examples=10, deadline=None, derandomize=True)


def sample(n=60, seed=0):
    draw = np.random.default_rng(seed)
    target, prediction = draw.integers(2, size=(2, n))
    return target, prediction, draw.choice(["a", "b", "c"], n)


def ordered(table):
    return table.sort_values(KEYS).reset_index(drop=True)


def assert_same(table, other, **options):
    pd.testing.assert_frame_equal(ordered(table), ordered(other), **options)


# --- forms of input


def test_the_table_has_one_row_for_each_metric_place_and_setting():
    target, prediction, group = sample()
    score, uncertainty = np.linspace(0, 1, 60), np.linspace(0, 0.5, 60)
    table = evaluate(
        target, prediction, sensitive_features=group, score=score, uncertainty=uncertainty
    )
    assert tuple(table.columns) == (*COLUMNS, "setting")
    assert not table.duplicated(KEYS).any()


@pytest.mark.parametrize(
    "wrap",
    [
        list,
        np.array,
        lambda labels: pd.Series(labels, index=np.arange(60)[::-1], name="group"),
        lambda labels: {"group": labels},
        lambda labels: pd.DataFrame({"group": labels}, index=np.arange(100, 160)),
        lambda labels: pd.Series(pd.Categorical(labels, list("zcba"))),
    ],
    ids=["list", "array", "series", "mapping", "frame", "categorical"],
)
def test_sensitive_features_come_in_any_form(wrap):
    target, prediction, group = sample()
    expected = evaluate(target, prediction, sensitive_features=group)
    assert_same(evaluate(target, prediction, sensitive_features=wrap(group)), expected)


def test_a_series_names_its_attribute_and_labels_of_any_type_are_text():
    target, prediction, _ = sample()
    sensitive = pd.Series(np.arange(60) % 2, name="female")
    table = evaluate(target, prediction, sensitive_features=sensitive)
    assert set(table["attribute"]) == {"", "female"}
    assert set(table["group"]) == {"", "0", "1"}
    swapped = evaluate(target, prediction, sensitive_features=sensitive, privileged={"female": 1})
    assert set(swapped["group"]) == {"", "0", "1"}
    difference = "metric == 'accuracy_difference'"
    assert list(swapped.query(difference)["group"]) == ["0"]
    np.testing.assert_allclose(
        swapped.query(difference)["value"], -table.query(difference)["value"]
    )


def test_the_first_label_in_sorted_order_is_the_reference_unless_another_is_named():
    target, prediction, group = sample()
    query = "metric == 'accuracy_difference'"
    default = evaluate(target, prediction, sensitive_features=group)
    assert list(default.query(query)["group"]) == ["b", "c"]
    named = evaluate(target, prediction, sensitive_features=group, privileged={"group": "c"})
    assert list(named.query(query)["group"]) == ["a", "b"]


@pytest.mark.parametrize("missing", [None, np.nan, "", pd.NA], ids=repr)
def test_missing_labels_are_a_group_of_their_own(missing):
    labels = ["a", missing, "a", "b", missing, "b"]
    table = evaluate([0, 1, 0, 1, 1, 0], [0, 1, 1, 1, 0, 0], sensitive_features=labels)
    rows = table[table["metric"] == "selection_rate"].set_index(["attribute", "group"])
    sizes = rows["n"].to_dict()
    assert sizes == {("", ""): 6, ("group", "a"): 2, ("group", "b"): 2, ("group", "unknown"): 2}


def test_booleans_and_floats_are_labels_too():
    target, prediction, group = sample()
    expected = evaluate(target, prediction, sensitive_features=group)
    other = evaluate(target.astype(bool), prediction.astype(float), sensitive_features=group)
    assert_same(other, expected)


@pytest.mark.parametrize("interval", ["frequentist", "dirichlet"])
def test_a_posteriors_intervals_depend_on_the_seed_alone_and_values_do_not(interval):
    target, prediction, group = sample()
    evaluator = Evaluator(interval=interval)
    first, again, other = (
        evaluate(target, prediction, sensitive_features=group, evaluator=evaluator, seed=seed)
        for seed in (0, 0, 1)
    )
    assert_same(first, again)
    pooled = first["statistic"].isin([POOLED, WORST])
    first, other = first[~pooled], other[~pooled]
    differ = (first["lower"].dropna() != other["lower"].dropna()).any()
    assert differ == (interval == "dirichlet")
    columns = [*KEYS, "value"]
    assert_same(values_of(first)[columns], values_of(other)[columns])


def test_inputs_are_left_as_they_were():
    target, prediction, group = sample()
    score = np.linspace(0, 1, 60)
    before = [column.copy() for column in (target, prediction, group, score)]
    evaluate(target, prediction, score=score, sensitive_features=group)
    for column, copy in zip((target, prediction, group, score), before, strict=True):
        np.testing.assert_array_equal(column, copy)


# --- refusals

GOOD = {
    "target": [0, 1, 1, 0],
    "prediction": [0, 1, 0, 0],
    "sensitive_features": ["a", "a", "b", "b"],
}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"prediction": [0, 1, 0]}, "prediction has 3 rows, the target 4"),
        ({"score": [0.1] * 5}, "score has 5 rows, the target 4"),
        ({"uncertainty": [0.1]}, "uncertainty has 1 rows, the target 4"),
        ({"sensitive_features": list("ab")}, "group has 2 rows, the target 4"),
        (
            {"sensitive_features": {"sex": list("abab"), "race": list("ab")}},
            "race has 2 rows, the target 4",
        ),
        ({"target": [], "prediction": [], "sensitive_features": []}, "target has no rows"),
        ({"target": [0, 1, 2, 0]}, "target is 2 in row 2, not 0 or 1"),
        ({"target": [0, 1, np.nan, 0]}, "target is nan in row 2, not 0 or 1"),
        ({"target": [0, 0.5, 1, 0]}, "target is 0.5 in row 1, not 0 or 1"),
        (
            {"target": ["no", "yes", "yes", "no"]},
            "prediction is '0' in row 0, not 'no' or 'yes'",
        ),
        (
            {"target": [0, 1, np.inf, 0], "task": "regression"},
            "target is inf in row 2, not a number",
        ),
        ({"target": [[0], [1], [1], [0]]}, "target has shape (4, 1); it must have one dimension"),
        ({"prediction": [[0] * 4]}, "prediction has shape (1, 4); it must have one dimension"),
        (
            {"sensitive_features": np.full((4, 2), "a")},
            "sensitive feature group has shape (4, 2); it must have one dimension",
        ),
        ({"task": "ranking"}, "unknown task 'ranking'; valid: binary, multiclass, regression"),
        (
            {"task": "regresion"},
            "unknown task 'regresion': did you mean regression? valid: binary, multiclass, "
            "regression",
        ),
        (
            {"privileged": {"sex": "a"}},
            "unknown sensitive feature in privileged 'sex'; valid: group",
        ),
    ],
)
def test_bad_input_is_refused_in_one_sentence(changed, message):
    with pytest.raises(UserError) as refusal:
        evaluate(**{**GOOD, **changed})
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"prediction": [0, 1, 0.5, 0]}, "'prediction' is neither 0 nor 1 in 1 of 4 rows"),
        ({"score": [0.5, 1, 1.2, -1]}, "'score' is outside [0, 1] in 2 of 4 rows"),
        ({"score": [0.5, 1, np.nan, 0]}, "'score' is not finite in 1 of 4 rows"),
        ({"uncertainty": [0.5, 1, -1, 0]}, "'uncertainty' is negative in 1 of 4 rows"),
        ({"sd": [1, 1, 0, 1], "task": "regression"}, "'sd' is exactly 0 in 1 of 4 rows"),
    ],
)
def test_impossible_predictions_are_refused_with_column_count_and_row(changed, reason):
    with pytest.raises(UserError) as refusal:
        evaluate(**{**GOOD, **changed})
    assert str(refusal.value) == f"method evaluate: column {reason} (first: row 2)"


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("draws", 99),
        ("draws", 200.5),
        ("alpha", 0),
        ("alpha", float("nan")),
        ("epsilon", -1),
        ("ratio_band", 5),
        ("minimum_group_size", -3),
        ("intersections", 1.5),
        ("level", 0),
        ("level", 1),
        ("bins", 0),
        ("spread_groups", (10, 0)),
        ("spread_residual", "hard"),
    ],
)
def test_an_evaluator_refuses_settings_that_mean_nothing(option, value):
    with pytest.raises(UserError, match=rf"^evaluator\.{option} is "):
        Evaluator(**{option: value})


# --- properties of the whole table


@st.composite
def inputs(draw):
    """Draw few rows with many ties, empty cells and groups of one."""
    n = draw(st.integers(4, 40))
    columns = {
        "target": st.integers(0, 1),
        "prediction": st.integers(0, 1),
        "score": st.integers(0, 10).map(lambda k: k / 10),
        "uncertainty": st.integers(0, 5).map(lambda k: k / 10),
        "group": st.sampled_from(["a", "b", "c"]),
    }
    drawn = {
        name: np.array(draw(st.lists(values, min_size=n, max_size=n)))
        for name, values in columns.items()
    }
    return drawn, np.array(draw(st.permutations(range(n))))


def table_of(columns, **options):
    given_columns = {name: columns[name] for name in ("score", "uncertainty")}
    return evaluate(
        columns["target"],
        columns["prediction"],
        sensitive_features=columns["group"],
        evaluator=FAST,
        **given_columns,
        **options,
    )


@pytest.mark.thorough
@deterministic
@given(inputs())
def test_the_order_of_the_rows_does_not_matter(drawn):
    columns, order = drawn
    shuffled = {name: values[order] for name, values in columns.items()}
    assert_same(table_of(shuffled), table_of(columns), rtol=1e-9, atol=1e-12)


@pytest.mark.thorough
@deterministic
@given(inputs())
def test_names_of_groups_in_the_same_order_change_labels_alone(drawn):
    columns, _ = drawn
    names = {"a": "Asian", "b": "Black", "c": "Coptic"}
    renamed = {**columns, "group": np.array([names[label] for label in columns["group"]])}
    expected = table_of(columns)
    expected["group"] = expected["group"].replace(names)
    for old, new in names.items():
        for name in ("status", "reason"):
            expected[name] = expected[name].str.replace(f"'{old}'", f"'{new}'")
            expected[name] = expected[name].str.replace(f" in {old}$", f" in {new}", regex=True)
    assert_same(table_of(renamed), expected, check_exact=True)


@pytest.mark.thorough
@deterministic
@given(inputs(), st.permutations(["x", "y", "z"]))
def test_names_of_groups_in_another_order_change_no_value(drawn, new):
    columns, _ = drawn
    names = dict(zip("abc", new, strict=True))
    renamed = {**columns, "group": np.array([names[label] for label in columns["group"]])}
    reference = columns["group"][0]
    expected = table_of(columns, privileged={"group": reference})
    expected["group"] = expected["group"].replace(names)
    result = table_of(renamed, privileged={"group": names[reference]})
    parts = []
    for table in (expected, result):
        observed = table[table["statistic"].isin([VALUE, PAIRS_THAT_DIFFER])]
        reason = observed["status"].str.partition(":")[0]
        parts.append(observed[[*KEYS, "value", "n"]].assign(reason=reason))
    assert_same(*parts, rtol=1e-9, atol=1e-12)


@deterministic
@given(inputs())
def test_exactly_the_undefined_values_are_nan_and_every_row_says_how_many_rows(drawn):
    columns, _ = drawn
    table = table_of(columns)
    undefined = table["status"].str.startswith(("undefined: ", "invalid: "))
    assert (table["value"].isna() == undefined).all()
    # A ratio over a rate of 0 has no value, but exceeds something.
    ratios = table["metric"].str.endswith(("_ratio", "_impact"))
    assert table.loc[undefined & ~ratios, ["lower", "upper"]].isna().all(axis=None)
    rest = table.loc[~undefined, "status"]
    few = rest.str.startswith("insufficient: ")
    assert (rest.eq("ok") | few).all()
    assert table["n"].dtype == np.int64
    assert table["n"].between(0, len(columns["target"])).all()
    # Of an empty group, the others say something.
    empty = (table["n"] == 0) & ~table["statistic"].isin([POOLED, WORST])
    assert (table.loc[empty, "status"].str.startswith("undefined")).all()


@deterministic
@given(inputs())
def test_intervals_are_ordered_and_shares_are_within_zero_and_one(drawn):
    columns, _ = drawn
    table = table_of(columns)
    assert (table["lower"] <= table["upper"])[table["lower"].notna()].all()
    rates = table["metric"].str.endswith(("_rate", "accuracy", "_score", "_value", "_auc"))
    probabilities = table["statistic"].isin([BELOW_EPSILON, OUTSIDE_BAND, WORST])
    shares = table.loc[rates | probabilities, "value"].dropna()
    assert len(shares) > 10
    assert shares.between(0, 1).all()


@pytest.mark.thorough
@deterministic
@given(inputs())
def test_swapping_the_labels_swaps_the_error_rates(drawn):
    columns, _ = drawn
    flipped = {**columns, "target": 1 - columns["target"], "prediction": 1 - columns["prediction"]}
    table, mirrored = (
        values_of(metrics).set_index(["metric", "attribute", "group"])["value"]
        for metrics in (table_of(columns), table_of(flipped))
    )
    for one, other in (
        ("true_positive_rate", "true_negative_rate"),
        ("false_positive_rate", "false_negative_rate"),
        ("positive_predictive_value", "negative_predictive_value"),
        ("accuracy", "accuracy"),
        ("equalized_odds", "equalized_odds"),
        ("statistical_parity", "statistical_parity"),
    ):
        if one in table.index and other in mirrored.index:
            expected = mirrored[other].sort_index()
            result = table[one].sort_index()
            np.testing.assert_allclose(result, expected, atol=1e-12)
