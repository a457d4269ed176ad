"""Tables in memory are read as the file they would be written to."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairbench.audits.question import Options
from fairbench.audits.table import read_audit_table, read_frame
from fairbench.core.errors import UserError
from fairbench.data.in_memory import texts_of_table, with_columns
from tests.audits.tables import predictions

ASKED = Options(path=Path("frame"), target="label", score="score", group=("sex", "race"))


def test_values_are_written_as_in_a_file():
    frame = pd.DataFrame({"a": [1.0, np.nan, 2.5], "b": [True, None, False], "c": [None, "", "x"]})
    texts = texts_of_table(frame, "frame", every=True)[0]
    assert texts.to_numpy().T.tolist() == [["1", "", "2.5"], ["True", "", "False"], ["", "", "x"]]


@pytest.mark.parametrize("kind", ["float32", "Float32", "float[pyarrow]"])
def test_single_floats_are_the_decimals_that_a_file_of_them_has(kind):
    values = pd.Series([0.3, None, 1e-8, 16777216], dtype=kind)
    frame = pd.DataFrame({"a": values, "b": values})
    texts = texts_of_table(frame, "frame", every=True, numeric=["a"])[0]
    np.testing.assert_array_equal(texts["a"], [0.3, np.nan, 1e-8, 16777216])
    assert texts["b"].tolist() == ["0.3", "", "1e-08", "16777216"]


PEOPLE = predictions(60)
LARGE = 2**53
COLUMNS = {
    "label": [0, 1] * 60,
    "score": [0, 1, 1] * 40,
    "sex": [LARGE, LARGE, LARGE + 1, LARGE + 1, None, LARGE + 1] * 20,
    "race": [-0.0, 0.0, 1.0, 1.0, 0.0, -0.0] * 20,
}


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ([1, 2], "a list is no table: give a DataFrame"),
        (PEOPLE.drop(columns="sex"), "frame has no column 'sex': its columns are '"),
        (PEOPLE.iloc[:0], "no rows"),
        (PEOPLE.assign(sex=[["Male"]] * 60), "column 'sex' holds lists or records"),
        (pd.concat([PEOPLE, PEOPLE[["sex"]] + "?"], axis=1), "2 columns are named"),
        (pd.DataFrame(COLUMNS), "column 'sex' is the float 9007199254740992 in row 0"),
    ],
    ids=["list", "column", "rows", "lists", "twice", "floats that cannot tell ids apart"],
)
def test_what_is_no_table_is_refused_in_a_line(source, sentence):
    with pytest.raises(UserError, match=sentence):
        read_frame(ASKED, source=source)


FRAMES = {
    "pandas": lambda sex: pd.DataFrame(COLUMNS | {"sex": pd.array(sex, "Int64")}),
    "arrow-backed": lambda sex: pd.DataFrame(COLUMNS | {"sex": pd.array(sex, "int64[pyarrow]")}),
    "polars": lambda sex: pl.DataFrame(COLUMNS),
    "arrow": lambda sex: pa.table(COLUMNS),
    "file": None,
}


@pytest.mark.parametrize("made", FRAMES.values(), ids=FRAMES)
def test_whole_numbers_stay_apart_and_zeros_together(made, tmp_path):
    asked = replace(ASKED, path=tmp_path / "frame.parquet")
    pq.write_table(pa.table(COLUMNS), asked.path)
    source = made(COLUMNS["sex"]) if made else None
    groups = read_audit_table(asked, frame=read_frame(asked, source=source)).groups
    sizes = {str(LARGE): 40, str(LARGE + 1): 60, "unknown": 20}
    assert groups["sex"].value_counts().to_dict() == sizes
    assert groups["race"].value_counts().to_dict() == {"0": 80, "1": 40}


# Columns by value, beside a table.

FRAME = pd.DataFrame({"y": [0, 1] * 60, "p": [0, 1, 1] * 40})


@pytest.mark.parametrize("made", [pl.Series, pa.array, pd.array, list, np.ma.array])
def test_a_column_by_value_without_an_index_is_paired_in_order(made):
    shuffled = FRAME.set_axis(np.random.default_rng(0).permutation(120))
    groups = ["a", "b", "b", "a", "a", "a"] * 20
    for given in [made(groups)] + [pl.DataFrame({"g": groups})] * (made is pl.Series):
        table, names = with_columns(shuffled, "frame", {"groups": given})
        (name,) = names["groups"]
        assert table[name].tolist() == groups


def test_masked_values_by_value_are_missing():
    masked = np.ma.array(["a", "b"] * 60, mask=[True] + [False] * 119)
    table, _ = with_columns(FRAME, "frame", {"groups": masked})
    texts, _ = texts_of_table(table, "frame", ["groups"])
    assert texts["groups"].tolist() == ["", *["b", "a"] * 59, "b"]


def test_a_series_beside_a_table_without_an_index_is_refused_in_another_order():
    groups = pd.Series(["a", "b"] * 60)
    table, _ = with_columns(pl.from_pandas(FRAME), "frame", {"groups": groups})
    assert table["groups"].tolist() == groups.tolist()
    with pytest.raises(UserError, match="groups= is a Series"):
        with_columns(pl.from_pandas(FRAME), "frame", {"groups": groups.iloc[::-1]})


def test_two_columns_of_one_name_are_refused():
    twice = pd.DataFrame([["a", "b"]] * 120, columns=["g", "g"])
    for groups in (twice, {1: ["a"] * 120, "1": ["b"] * 120}):
        with pytest.raises(UserError, match="groups=: 2 columns are named"):
            with_columns(FRAME, "frame", {"groups": groups})
