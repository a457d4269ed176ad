"""Names that combinations of groups could not be told apart by are refused."""

from itertools import product

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairbench
from fairbench.core.errors import UserError
from fairbench.data.dataset import check_combinable, combine
from fairbench.experiments.build import load_dataset
from fairbench.experiments.configuration import plain
from tests.harness import configuration

LABELS = st.lists(st.text("ax ", max_size=5), min_size=1, max_size=3, unique=True)


def frame(**columns):
    return pd.DataFrame({name: pd.Categorical(labels) for name, labels in columns.items()})


@pytest.mark.parametrize("label", ["a x b", "a x", "x b", "a x ", " x "])
def test_a_label_with_an_x_of_its_own_is_refused(label):
    groups = frame(sex=["Female", "Male"], site=["c", label])
    with pytest.raises(UserError) as refusal:
        check_combinable(groups, "people.csv")
    assert str(refusal.value) == (
        f"people.csv: label '{label}' of column 'site' has an x between spaces, which joins the "
        "labels of combined attributes: rename it"
    )


def test_an_attribute_named_as_a_combination_is_refused():
    groups = frame(sex=["a"], race=["b"]).assign(**{"sex x race": pd.Categorical(["c"])})
    with pytest.raises(UserError, match="^people.csv: column 'sex x race' has an x between"):
        check_combinable(groups, "people.csv")


def test_other_labels_are_let_through_and_so_is_whatever_is_not_combined():
    check_combinable(frame(one=["x", "axb", "ax b", "4x4", ""], two=["x", "xx", "a", "b", 7]), "")
    check_combinable(frame(one=["a x b", "c"]), "")


@given(st.lists(LABELS, min_size=2, max_size=3))
def test_combinations_of_labels_let_through_have_names_of_their_own(columns):
    rows = pd.DataFrame(product(*columns)).astype("category")
    try:
        check_combinable(rows, "")
    except UserError:
        return
    names = combine([rows[column] for column in rows])
    assert names.nunique() == len(rows)


def test_evaluate_refuses_them_unless_it_combines_nothing():
    sensitive = {"sex": ["a x b", "a"], "race": ["c", "b x c"]}
    with pytest.raises(UserError, match="^sensitive_features: label 'a x b' of column 'sex'"):
        fairbench.evaluate([0, 1], [0, 1], sensitive_features=sensitive)
    alone = fairbench.Evaluator(intersections=1)
    table = fairbench.evaluate([0, 1], [0, 1], sensitive_features=sensitive, evaluator=alone)
    assert "a x b" in set(table["group"])


def test_a_data_set_is_refused_when_it_is_loaded(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("hired,sex,race,age\n0,a x b,c,30\n1,a,b x c,40\n")
    table = ("dataset=table", f"dataset.path={path}", "dataset.target=hired")
    columns = "dataset.sensitive=[sex,race]"
    with pytest.raises(UserError, match="^dataset=.*: label 'a x b' of column 'sex' has an x"):
        load_dataset(plain(configuration(*table, columns, results=tmp_path)))
