"""One rule of what a text is as a number and as a label, and of what columns are called."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbench.core.errors import UserError
from fairbench.data.columns import numbers, spelled, to_numbers, unique_names
from fairbench.data.tables import read_any_table


@given(st.floats(allow_nan=False), st.sampled_from(["", "NA", "x", "1e5", "0.1"]))
def test_a_number_does_not_depend_on_the_other_rows(value, other):
    read = to_numbers(pd.Series([repr(value), other], dtype="str"))
    assert read[0] == value
    assert np.isnan(read[1]) == (other in ("", "NA", "x"))


def test_what_is_no_number():
    texts = ["1,5", "1_000", "0x1", "1e", "--1", "\u22121", "1 2", "nan", "true"]
    assert np.isnan(to_numbers(pd.Series(texts, dtype="str"))).all()


def test_labels_are_one_label_if_they_are_one_number():
    for first, second, same in (
        ("1", "1.0", True),
        ("1e3", "1000", True),
        ("-0.0", "0", True),
        ("TRUE", "true", True),
        ("NA", "", True),
        ("0.1234567", "0.1234568", False),
        ("9007199254740993", "9007199254740992", False),
        ("1e400", "1e401", False),
    ):
        assert (spelled(first) == spelled(second)) is same


def test_no_column_takes_the_name_of_another():
    for header, names in (
        (["x", "x", "x"], ["x", "x.1", "x.2"]),
        (["x", "x", "x.1"], ["x", "x.2", "x.1"]),
        (["x.1", "x", "x"], ["x.1", "x", "x.2"]),
        (["", "x", ""], ["column 1", "x", "column 3"]),
        (["", "column 1"], ["column 1.1", "column 1"]),
        (["x", "__index_level_0__"], ["x", "column 2"]),
    ):
        assert unique_names(header) == names


def read_numbers(folder, texts):
    path = folder / "numbers.csv"
    path.write_text("".join(f"{text};x\n" for text in ["a", *texts]))
    return read_any_table(path, ["a"], numeric=["a"])["a"].tolist()


MANY_ENDS = [f"{1 + i % 3}.{101 + 9 * i}" for i in range(90)]


@pytest.mark.parametrize("texts", [["2.424", "352"], ["-1.200", "1", "800"], [*MANY_ENDS, "2"]])
def test_points_that_may_mark_thousands_are_asked(texts, tmp_path):
    with pytest.raises(UserError, match=r"row 1: .* has a point that may be .* mark thousands"):
        read_numbers(tmp_path, texts)


@pytest.mark.parametrize(
    "texts",
    [["0.123", "352"], ["1.5", "2.125", "9"], ["3.333", "3.667", "4"] * 40, ["2.424", "352.000"],
     ["2.424", "3520"], ["2.424", "", "NA"]],
)  # fmt: skip
def test_points_of_decimals_are_read(texts, tmp_path):
    assert read_numbers(tmp_path, texts) == texts


@pytest.mark.parametrize("text", ["12.928,00", "13,980.0", "$5", "2\u202f424", "2'424"])
def test_a_number_with_signs_is_named_and_not_the_decimal_comma_before(text, tmp_path):
    frame = pd.DataFrame({"a": read_numbers(tmp_path, ["520,00", text])})
    with pytest.raises(UserError, match="row 2: .* is no number: leave out marks of thousands"):
        numbers(frame, "a", "x.csv")
