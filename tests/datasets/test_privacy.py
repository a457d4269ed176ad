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
    for field in dataclasses.fields(data):
        value = getattr(data, field.name)
        if isinstance(value, pd.Series):
            value = value.to_frame()
        if isinstance(value, pd.DataFrame):
            pieces += [str(column) for column in value]
            for column in value:
                kind = value[column].dtype
                if isinstance(kind, pd.CategoricalDtype):
                    pieces += map(str, kind.categories)
                pieces += map(str, value[column].unique())
        else:
            pieces.append(repr(value))
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
