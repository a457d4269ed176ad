"""Tables in memory are read as the file they would be written to."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fairbench.audits.columns import read_frame
from fairbench.audits.question import Options
from fairbench.audits.table import read_audit_table
from fairbench.core.errors import UserError
from fairbench.data.in_memory import texts_of_table
from tests.audits.tables import predictions, written

ASKED = Options(path=Path("frame"), target="label", score="score", group=("sex", "race"))
MAKERS = {
    "pandas": lambda frame: frame,
    "categories and another index": lambda frame: frame.astype({"sex": "category"}).set_axis(
        frame.index[::-1]
    ),
    "truths": lambda frame: frame.assign(label=frame["label"] == 1),
    "polars": pl.from_pandas,
    "arrow": pa.Table.from_pandas,
}


@pytest.mark.parametrize("made", MAKERS.values(), ids=MAKERS)
def test_a_table_is_read_as_its_file(made, tmp_path):
    frame = predictions(300)
    path = written(frame, tmp_path)
    file = Options(path=path, target="label", score="score", group=("sex", "race"))
    expected = read_audit_table(file)
    table = read_audit_table(ASKED, frame=read_frame(ASKED, source=made(frame)))
    np.testing.assert_allclose(table.score, expected.score, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(table.label, expected.label)
    for name, groups in expected.groups.items():
        assert table.groups[name].tolist() == groups.tolist()


def test_values_are_written_as_in_a_file():
    frame = pd.DataFrame({"a": [1.0, np.nan, 2.5], "b": [True, None, False], "c": [None, "", "x"]})
    texts = texts_of_table(frame, "frame")
    assert texts.to_dict("list") == {
        "a": ["1", "", "2.5"], "b": ["True", "", "False"], "c": ["", "", "x"]
    }  # fmt: skip


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ([1, 2], "a list is no table: give a DataFrame"),
        (predictions(60).drop(columns="sex"), "frame has no column 'sex': its columns are '"),
        (predictions(60).iloc[:0], "no rows"),
        (predictions(60).assign(sex=[["Male"]] * 60), "column 'sex' holds lists or records"),
        (pd.concat([predictions(60), predictions(60)[["sex"]]], axis=1), "2 columns are named"),
    ],
    ids=["list", "column", "rows", "lists", "twice"],
)
def test_what_is_no_table_is_refused_in_a_line(source, sentence):
    with pytest.raises(UserError, match=sentence):
        read_frame(ASKED, source=source)
