"""The Dataset contract: what it refuses and in which words, slices and groups."""

import numpy as np
import pandas as pd
import pytest

from fairbench.core.errors import DataError, UserError
from fairbench.data.dataset import Task, combine, reference_first


def categorical(*labels):
    return pd.Series(pd.Categorical(labels))


def numeric(values, name="x"):
    return pd.DataFrame({name: values})


def several(*classes):
    return {"task": Task.MULTICLASS, "classes": classes}


REFUSED = {
    "features of another length": (
        {"features": numeric([1.0, 2.0, 3.0])},
        "toy: features has 3 rows, the target 4",
    ),
    "sensitive of another length": (
        {"sensitive": pd.DataFrame({"sex": categorical("M", "F")})},
        "toy: sensitive has 2 rows, the target 4",
    ),
    "partition of another length": (
        {"partition": pd.Series(["train"] * 5)},
        "toy: partition has 5 rows, the target 4",
    ),
    "clusters of another length": (
        {"clusters": pd.Series([1])},
        "toy: clusters has 1 rows, the target 4",
    ),
    "truth of another length": (
        {"truth": pd.DataFrame({"probability": [0.5]})},
        "toy: truth has 1 rows, the target 4",
    ),
    "text feature": (
        {"features": numeric(pd.Series(["red", 3, "red", "blue"], dtype=object), "colour")},
        "toy: column 'colour' is object; a feature is numeric, boolean or categorical "
        "(first value: 'red')",
    ),
    "date feature": (
        {"features": numeric(pd.to_datetime(["2020-01-01"] * 4).astype("datetime64[ns]"), "day")},
        "toy: column 'day' is datetime64[ns]; a feature is numeric, boolean or categorical "
        "(first value: Timestamp('2020-01-01 00:00:00'))",
    ),
    "empty feature": (
        {"features": numeric([np.nan] * 4, "income")},
        "toy: column 'income' has no value in any of 4 rows",
    ),
    "infinite feature": (
        {"features": numeric([1.0, np.nan, np.inf, -np.inf], "income")},
        "toy: column 'income' is infinite in row 2",
    ),
    "feature beyond single precision": (
        {"features": numeric([1.0, np.nan, 2.0, 1e300], "t")},
        "toy: column 't' is 1e+300 in row 3; learners take numbers up to 3.4e+38: leave the cell "
        "empty if it stands for a missing value",
    ),
    "whole numbers that may be missing": (
        {"features": numeric(pd.Series([1, None, 2, 1e300], dtype="Float64"), "t")},
        "toy: column 't' is 1e+300 in row 3; learners take numbers up to 3.4e+38: leave the cell "
        "empty if it stands for a missing value",
    ),
    "target beyond single precision": (
        {"target": pd.Series([1.0, 2.0, -1e300, 0.0], name="y"), "task": Task.REGRESSION},
        "toy: target 'y' is -1e+300 in row 2; learners take numbers up to 3.4e+38: leave the row "
        "out if it stands for a missing value",
    ),
    "missing target": (
        {"target": pd.Series([0, 1, np.nan, 0], name="y")},
        "toy: target 'y' has missing or non-numeric values",
    ),
    "text target": (
        {"target": pd.Series(["no", "yes", "no", "no"], name="y")},
        "toy: target 'y' has missing or non-numeric values",
    ),
    "infinite target": (
        {"target": pd.Series([0.5, np.inf, 1, 0], name="y"), "task": Task.REGRESSION},
        "toy: target 'y' has missing or non-numeric values",
    ),
    "third target value": (
        {"target": pd.Series([0, 1, 1, 2], name="y")},
        "toy: target 'y' is 2 in row 3; a binary target is 0 or 1",
    ),
    "labels 1 and 2": (
        {"target": pd.Series([1, 2, 1, 2], name="y")},
        "toy: target 'y' is 2 in row 1; a binary target is 0 or 1",
    ),
    "share as a label": (
        {"target": pd.Series([0, 0.5, 1, 1], name="y")},
        "toy: target 'y' is 0.5 in row 1; a binary target is 0 or 1",
    ),
    "code without a class": (
        {"target": pd.Series([0, 1, 3, 2], name="y"), **several("a", "b", "c")},
        "toy: target 'y' is 3 in row 2; the codes of 3 classes are 0 .. 2",
    ),
    "two of several classes": (
        several("a", "b"),
        "toy: classes are 'a', 'b'; several classes are three or more names, each given once (of "
        "two, the task is binary)",
    ),
    "a class given twice": (
        several("a", "b", "a"),
        "toy: classes are 'a', 'b', 'a'; several classes are three or more names, each given once "
        "(of two, the task is binary)",
    ),
    "classes of a binary target": (
        {"classes": ("a", "b")},
        "toy: classes are named, and the task is binary",
    ),
    "sensitive column of numbers": (
        {"sensitive": pd.DataFrame({"sex": [0, 1, 0, 1]})},
        "toy: sensitive attribute 'sex' is not categorical",
    ),
    "missing sensitive label": (
        {"sensitive": pd.DataFrame({"sex": categorical("M", None, "F", "M")})},
        "toy: sensitive attribute 'sex' has missing labels; give them a label of their own",
    ),
    "no privileged label": (
        {"privileged": {"race": "White"}},
        "toy: privileged label None of 'sex' is not one of F, M",
    ),
    "unknown privileged label": (
        {"privileged": {"sex": "Male"}},
        "toy: privileged label 'Male' of 'sex' is not one of F, M",
    ),
}


def four_rows(make_dataset, **parts):
    defaults = {
        "features": numeric([1.0, 2.0, 3.0, 4.0]),
        "target": pd.Series([0, 1, 1, 0], name="y"),
        "sensitive": pd.DataFrame({"sex": categorical("M", "F", "F", "M")}),
        "privileged": {"sex": "M"},
    }
    return make_dataset(4, **{**defaults, **parts})


@pytest.mark.parametrize("case", REFUSED)
def test_a_malformed_data_set_is_refused_with_the_reason(make_dataset, case):
    parts, message = REFUSED[case]
    with pytest.raises(DataError) as refusal:
        four_rows(make_dataset, **parts)
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    "values",
    [
        [1.5, np.nan, 2.5, 0.0],
        [1, 2, 3, 4],
        [True, False, True, True],
        pd.Categorical(["a", "b", None, "a"]),
        pd.array([1, None, 2, 3], dtype="Int64"),
        pd.array([0.5, None, 2, 3], dtype="Float64"),
    ],
    ids=["float", "int", "bool", "categorical", "Int64", "Float64"],
)
def test_numbers_booleans_and_categories_are_features_with_or_without_gaps(make_dataset, values):
    assert len(four_rows(make_dataset, features=numeric(values))) == 4


def test_a_regression_target_is_any_number(make_dataset):
    target = pd.Series([-1.5, 0.0, 2.0, 1e6], name="y")
    data = four_rows(make_dataset, target=target, task=Task.REGRESSION)
    np.testing.assert_array_equal(data.target, target)


def test_take_keeps_every_part_in_the_order_of_the_rows(make_dataset):
    n = 20
    data = make_dataset(
        n,
        partition=pd.Series(["train", "test"] * 10),
        clusters=pd.Series(np.arange(n) // 2),
        weight=pd.Series(np.linspace(0.5, 3, n)),
        truth=pd.DataFrame({"probability": np.linspace(0, 1, n)}),
    )
    rows = np.array([7, 0, 19, 3])
    part = data.take(rows)
    assert len(part) == 4
    assert (part.name, part.task, part.privileged) == (data.name, data.task, data.privileged)
    for name in (*("features", "target", "sensitive", "partition", "clusters", "weight", "truth"),):
        whole, piece = getattr(data, name), getattr(part, name)
        assert list(piece.index) == list(rows)
        assert whole.loc[rows].equals(piece)
    assert part.features.dtypes.equals(data.features.dtypes)


def test_take_leaves_absent_parts_absent(make_dataset):
    part = make_dataset(6).take(np.array([1, 2]))
    assert part.partition is part.clusters is part.weight is part.truth is None


def test_weights_are_no_part_of_what_is_fitted(make_dataset):
    plain, weighted = make_dataset(6), make_dataset(6, weight=pd.Series(np.arange(6.0)))
    assert plain.digest == weighted.digest


@pytest.mark.parametrize(
    ("weight", "what"),
    [
        ([1, -2, 1, 1], "weight 'w' is -2 in row 1; a weight is a number of 0 or more"),
        ([1, 1, 1, np.nan], "weight 'w' is nan in row 3; a weight is a number of 0 or more"),
        ([1, 1, np.inf, 1], "weight 'w' is inf in row 2"),
        (["1", "many", "1", "1"], "weight 'w' is many in row 1"),
        ([0, 0, 0, 0], "weight 'w' is 0 in every row"),
    ],
)
def test_weights_that_mean_nothing_are_refused(make_dataset, weight, what):
    with pytest.raises(DataError) as caught:
        four_rows(make_dataset, weight=pd.Series(weight, name="w"))
    assert what in str(caught.value)


def test_groups_put_the_privileged_label_first(make_dataset):
    data = make_dataset(10)
    sex = data.groups("sex")
    assert list(sex.cat.categories) == ["Male", "Female"]
    assert sex.astype(str).tolist() == data.sensitive["sex"].astype(str).tolist()
    assert list(data.groups(["race"]).cat.categories) == ["White", "Black"]


def test_groups_of_several_attributes_are_their_combinations(make_dataset):
    data = make_dataset(10)
    both = data.groups(["sex", "race"])
    assert both.name == "sex x race"
    assert both.cat.categories[0] == "Male x White"
    expected = data.sensitive["sex"].astype(str) + " x " + data.sensitive["race"].astype(str)
    assert both.astype(str).tolist() == expected.tolist()
    swapped = data.groups(["race", "sex"])
    assert swapped.iloc[0] == "Black x Male"


def test_groups_of_an_unknown_attribute_name_the_nearest(make_dataset):
    with pytest.raises(UserError) as refusal:
        make_dataset(10).groups(["sex", "rase"])
    assert str(refusal.value) == (
        "unknown sensitive attribute of toy 'rase': did you mean race? valid: race, sex"
    )


def test_combinations_that_do_not_occur_are_left_out_except_the_reference():
    first = reference_first(categorical("a", "b", "b"), "a")
    second = reference_first(categorical("y", "x", "y"), "x")
    third = reference_first(categorical("p", "p", "q"), "p")
    pair = combine([first, second])
    assert list(pair.cat.categories) == ["a x x", "a x y", "b x x", "b x y"]
    assert pair.tolist() == ["a x y", "b x x", "b x y"]
    triple = combine([first, second, third])
    assert list(triple.cat.categories) == ["a x x x p", "a x y x p", "b x x x p", "b x y x q"]
    assert triple.tolist() == ["a x y x p", "b x x x p", "b x y x q"]


def test_combining_keeps_the_index_and_one_column_as_it_is():
    column = categorical("a", "b").set_axis([7, 3])
    assert combine([column]).equals(column)
    assert list(combine([column, column]).index) == [7, 3]


def test_reference_first_keeps_the_order_of_the_others_and_a_reference_that_is_absent():
    labels = pd.Series(pd.Categorical(["c", "a", "b"], categories=["c", "b", "a"]))
    assert list(reference_first(labels, "b").cat.categories) == ["b", "c", "a"]
    absent = reference_first(labels, "z")
    assert list(absent.cat.categories) == ["z", "c", "b", "a"]
    assert absent.tolist() == ["c", "a", "b"]
