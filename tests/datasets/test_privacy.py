"""No name, date of birth or case number of a person is ever in a Dataset."""

import dataclasses

import pandas as pd
import pytest

from fairbench.components.datasets import compas
from fairbench.core.errors import DataError
from fairbench.data.dataset import Dataset
from fairbench.data.download import Archive
from fairbench.data.tables import read_table
from tests.datasets.raw_files import RAW, SECRETS
from tests.harness import archive_with

PERSONAL = ("name", "first", "last", "dob", "c_case_number", "r_case_number", "vr_case_number")
loaders = pytest.mark.parametrize(
    ("task", "loader", "source"),
    [("compas", compas.load, compas.COMPAS), ("compas_violent", compas.violent, compas.VIOLENT)],
)


def everything_said(data: Dataset) -> str:
    """Return every column name, label and value of a data set as one text."""
    pieces = []
    for value in (getattr(data, field.name) for field in dataclasses.fields(data)):
        if not isinstance(value, pd.Series | pd.DataFrame):
            pieces.append(repr(value))
            continue
        for name, column in pd.DataFrame(value).items():
            labels = column.cat.categories if column.dtype == "category" else []
            pieces += map(str, [name, *labels, *column.unique()])
    return "\n".join(pieces)


@loaders
def test_generated_persons_stay_out_of_data_and_of_messages_about_bad_files(
    task, loader, source, load
):
    with pytest.raises(DataError) as caught:
        load(task, RAW[task]().with_cell(2, "age", "x"))
    text = everything_said(load(task)) + str(caught.value)
    for secret in SECRETS:
        assert secret not in text


@pytest.mark.data
@loaders
def test_real_persons_stay_out(task, loader, source):
    said = set(everything_said(loader(archive_with(source))).split("\n"))
    raw = read_table(Archive.of(download=False).read(source), source.path)
    for column in PERSONAL:
        assert not said & (set(raw[column]) - {""}), column
        assert column not in said
