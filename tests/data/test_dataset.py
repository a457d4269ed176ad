"""The Dataset contract: what it refuses and in which words, slices and groups."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairbench
from fairbench.core.errors import DataError, UserError
from fairbench.data.dataset import Task, check_combinable, combine, reference_first
from fairbench.experiments.build import _load_dataset
from fairbench.experiments.configuration import plain
from tests.harness import configuration


def categorical(*labels):
    return pd.Series(pd.Categorical(labels))


def feature(*values, dtype=None):
    return {"features": pd.DataFrame({"x": pd.Series(values, dtype=dtype)})}


def target(*values, **more):
    return {"target": pd.Series(values, name="y"), **more}


def sex(*labels):
    return {"sensitive": pd.DataFrame({"sex": categorical(*labels)})}


def weight(*values):
    return {"weight": pd.Series(values, name="w")}


SEVERAL = {"task": Task.MULTICLASS, "classes": ("a", "b", "c")}
LARGE = "is 1e+300 in row 3; learners take numbers up to 3.4e+38: leave the cell empty if it stands"
REFUSED = [
    (feature(1.0, 2.0, 3.0), "features has 3 rows, the target 4"),
    ({"truth": pd.DataFrame({"probability": [0.5]})}, "truth has 1 rows, the target 4"),
    (feature("red", 3, "red", "blue"), "column 'x' is object; a feature is numeric, boolean or c"),
    (feature(*pd.to_datetime(["2020-01-01"] * 4)), "column 'x' is datetime64"),
    (feature(*[np.nan] * 4), "column 'x' has no value in any of 4 rows"),
    (feature(1.0, np.nan, np.inf, -np.inf), "column 'x' is infinite in row 2"),
    (feature(1.0, np.nan, 2.0, 1e300), f"column 'x' {LARGE}"),
    (feature(1, None, 2, 1e300, dtype="Float64"), f"column 'x' {LARGE}"),
    (target(1.0, 2.0, -1e300, 0.0, task=Task.REGRESSION), "target 'y' is -1e+300 in row 2; learne"),
    (target(0, 1, np.nan, 0), "target 'y' has missing or non-numeric values"),
    (target(0, 1, 1, 2), "target 'y' is 2 in row 3; a binary target is 0 or 1"),
    (target(0, 0.5, 1, 1), "target 'y' is 0.5 in row 1; a binary target is 0 or 1"),
    (target(0, 1, 3, 2, **SEVERAL), "target 'y' is 3 in row 2; the codes of 3 classes are 0 .. 2"),
    ({**SEVERAL, "classes": ("a", "b")}, "classes are 'a', 'b'; several classes are three or more"),
    ({**SEVERAL, "classes": ("a", "b", "a")}, "classes are 'a', 'b', 'a'; several classes are"),
    ({"classes": ("a", "b")}, "classes are named, and the task is binary"),
    ({"sensitive": pd.DataFrame({"sex": [0, 1, 0, 1]})}, "sensitive attribute 'sex' is not categ"),
    (sex("M", None, "F", "M"), "sensitive attribute 'sex' has missing labels; give them a label"),
    ({"privileged": {"race": "W"}}, "privileged label None of 'sex' is not one of F, M"),
    (weight(1, -2, 1, 1), "weight 'w' is -2 in row 1; a weight is a number of 0 or more"),
    (weight("1", "many", "1", "1"), "weight 'w' is many in row 1"),
    (weight(0, 0, 0, 0), "weight 'w' is 0 in every row"),
]


def four_rows(make_dataset, **parts):
    defaults = {**feature(1.0, 2.0, 3.0, 4.0), **target(0, 1, 1, 0), **sex("M", "F", "F", "M")}
    return make_dataset(4, **{**defaults, "privileged": {"sex": "M"}, **parts})


@pytest.mark.parametrize(("parts", "sentence"), REFUSED)
def test_a_malformed_data_set_is_refused_with_the_reason(make_dataset, parts, sentence):
    with pytest.raises(DataError) as refusal:
        four_rows(make_dataset, **parts)
    assert str(refusal.value).startswith(f"toy: {sentence}")


def test_numbers_booleans_and_categories_are_let_through(make_dataset):
    for parts in (
        feature(1.5, np.nan, 2.5, 0.0),
        feature(True, False, True, True),
        feature("a", "b", None, "a", dtype="category"),
        feature(1, None, 2, 3, dtype="Int64"),
        feature(0.5, None, 2, 3, dtype="Float64"),
        target(-1.5, 0.0, 2.0, 1e6, task=Task.REGRESSION),
    ):
        assert len(four_rows(make_dataset, **parts)) == 4


def test_take_keeps_every_part_in_the_order_of_the_rows(make_dataset):
    n, rows = 20, np.array([7, 0, 19, 3])
    row = pd.Series(np.arange(n))
    parts = {"partition": row.map({0: "test"}).fillna("train"), "clusters": row // 2}
    parts |= {"weight": row + 0.5, "truth": pd.DataFrame({"probability": row / n})}
    data = make_dataset(n, **parts)
    part = data.take(rows)
    assert (part.name, part.task, part.privileged) == (data.name, data.task, data.privileged)
    for name in (*parts, "features", "target", "sensitive"):
        assert getattr(data, name).loc[rows].equals(getattr(part, name))
    bare = make_dataset(6).take(np.array([1, 2]))
    assert bare.partition is bare.clusters is bare.weight is bare.truth is None


def test_weights_are_no_part_of_what_is_fitted(make_dataset):
    weighted = make_dataset(6, weight=pd.Series(np.arange(6.0)))
    assert make_dataset(6).digest == weighted.digest


def test_groups_are_labels_or_their_combinations_with_the_privileged_first(make_dataset):
    data = make_dataset(10)
    sex, race = (data.sensitive[name].astype(str) for name in ("sex", "race"))
    assert list(data.groups("sex").cat.categories) == ["Male", "Female"]
    assert data.groups(["sex"]).tolist() == sex.tolist()
    both = data.groups(["sex", "race"])
    assert (both.name, both.cat.categories[0]) == ("sex x race", "Male x White")
    assert both.tolist() == (sex + " x " + race).tolist()
    with pytest.raises(UserError, match="^unknown sensitive attribute of toy 'rase': did you mean"):
        data.groups(["sex", "rase"])


def test_combinations_that_do_not_occur_are_left_out_except_the_reference():
    first = reference_first(categorical("a", "b", "b"), "a")
    second = reference_first(categorical("y", "x", "y"), "x")
    third = reference_first(categorical("p", "p", "q"), "p").set_axis([7, 3, 5])
    assert [*combine([first, second]).cat.categories] == ["a x x", "a x y", "b x x", "b x y"]
    triple = combine([third, first, second])
    assert list(triple.cat.categories) == ["p x a x x", "p x a x y", "p x b x x", "q x b x y"]
    assert triple.to_dict() == {7: "p x a x y", 3: "p x b x x", 5: "q x b x y"}


def test_reference_first_keeps_the_order_of_the_others_and_a_reference_that_is_absent():
    labels = pd.Series(pd.Categorical(["c", "a", "b"], categories=["c", "b", "a"]))
    assert list(reference_first(labels, "b").cat.categories) == ["b", "c", "a"]
    absent = reference_first(labels, "z")
    assert list(absent.cat.categories) == ["z", "c", "b", "a"]
    assert absent.tolist() == ["c", "a", "b"]


# Names that combinations of groups could not be told apart by are refused.

LABELS = st.lists(st.text("ax ", max_size=5), min_size=1, max_size=3, unique=True)


@given(st.lists(LABELS, min_size=2, max_size=3))
def test_combinations_of_labels_let_through_have_names_of_their_own(columns):
    rows = pd.DataFrame(product(*columns)).astype("category")
    try:
        check_combinable(rows, "")
    except UserError:
        return
    names = combine([rows[column] for column in rows])
    assert names.nunique() == len(rows)


def test_attributes_and_labels_with_an_x_of_their_own_are_refused_where_they_are_combined():
    sensitive = {"sex": ["a x b", "a"], "race": ["c", "b x c"]}
    with pytest.raises(UserError, match="^sensitive_features: label 'a x b' of column 'sex'"):
        fairbench.evaluate([0, 1], [0, 1], sensitive_features=sensitive)
    alone = fairbench.Evaluator(intersections=1)
    table = fairbench.evaluate([0, 1], [0, 1], sensitive_features=sensitive, evaluator=alone)
    assert "a x b" in set(table["group"])
    labels = ({"site": ["c", label]} for label in ("a x", "x b", " x "))
    for other in ({"sex x race": ["b"]}, *labels):
        groups = pd.DataFrame({"sex": "a", **other}, dtype="category")
        with pytest.raises(UserError, match="^people.csv: .*column '.*' has an x between"):
            check_combinable(groups, "people.csv")
    others = {"one": ["x", "axb", "ax b", "4x4", ""], "two": ["x", "xx", "a", "b", "7"]}
    check_combinable(pd.DataFrame(others, dtype="category"), "")


def test_a_data_set_with_such_labels_is_refused_when_it_is_loaded(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("hired,sex,race,age\n0,a x b,c,30\n1,a,b x c,40\n")
    table = ("dataset=table", f"dataset.path={path}", "dataset.target=hired")
    columns = "dataset.sensitive=[sex,race]"
    with pytest.raises(UserError, match="^dataset=.*: label 'a x b' of column 'sex' has an x"):
        _load_dataset(plain(configuration(*table, columns, results=tmp_path)))
