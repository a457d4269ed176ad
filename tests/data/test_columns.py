"""One rule of what a text is as a number and as a label, and of what columns are called."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbench.data.columns import spelled, to_numbers, unique_names


@given(st.floats(allow_nan=False), st.sampled_from(["", "NA", "x", "1e5", "0.1"]))
def test_a_number_does_not_depend_on_the_other_rows(value, other):
    read = to_numbers(pd.Series([repr(value), other], dtype="str"))
    assert read[0] == value
    assert np.isnan(read[1]) == (other in ("", "NA", "x"))


def test_what_is_no_number():
    texts = ["1,5", "1_000", "0x1", "1e", "--1", "\u22121", "1 2", "nan", "true"]
    assert np.isnan(to_numbers(pd.Series(texts, dtype="str"))).all()


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("1", "1.0", True),
        ("1e3", "1000", True),
        ("-0.0", "0", True),
        ("TRUE", "true", True),
        ("NA", "", True),
        ("1000001", "1000002", False),
        ("0.1234567", "0.1234568", False),
        ("9007199254740993", "9007199254740992", False),
        ("1e400", "1e401", False),
    ],
)
def test_labels_are_one_label_if_they_are_one_number(first, second, same):
    assert (spelled(first) == spelled(second)) is same


@pytest.mark.parametrize(
    ("header", "names"),
    [
        (["x", "x", "x"], ["x", "x.1", "x.2"]),
        (["x", "x", "x.1"], ["x", "x.2", "x.1"]),
        (["x.1", "x", "x"], ["x.1", "x", "x.2"]),
        (["", "x", ""], ["column 1", "x", "column 3"]),
        (["", "column 1"], ["column 1.1", "column 1"]),
        (["x", "__index_level_0__"], ["x", "column 2"]),
    ],
)
def test_no_column_takes_the_name_of_another(header, names):
    assert unique_names(header) == names
