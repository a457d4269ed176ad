"""Adult census income (Kohavi 1996): whether income exceeds 50,000 dollars a year."""

from __future__ import annotations

import pandas as pd

from fairbench.data import Dataset, Source, Task
from fairbench.download import Archive
from fairbench.tabular import at_least, categories, numbers, read_table

_PAGE = "https://archive.ics.uci.edu/dataset/2/adult"
_URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult"
TRAIN = Source(
    "adult/adult.data",
    "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    (f"{_URL}/adult.data",),
    _PAGE,
)
TEST = Source(
    "adult/adult.test",
    "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    (f"{_URL}/adult.test",),
    _PAGE,
)
_NUMERIC = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
_CATEGORICAL = (
    "workclass",
    "education",
    "marital-status",
    "occupation",
    "relationship",
    "native-country",
)
_COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)


def load(archive: Archive, *, keep_sensitive: bool = True) -> Dataset:
    """Return the 45222 complete rows of both files, without the sampling weight fnlwgt.

    `partition` marks the archive's own 30162 training and 15060 test rows. Privileged are men,
    whites and people of 25 or more.

    Parameters
    ----------
    archive : where the raw files are found.
    keep_sensitive : keep sex and race among the features, as the papers do.
    """
    parts = {name: _read(archive, source) for name, source in (("train", TRAIN), ("test", TEST))}
    raw = pd.concat(parts.values(), ignore_index=True)
    partition = pd.Series([name for name, part in parts.items() for _ in range(len(part))])
    complete = (raw != "?").all(axis=1)
    raw, partition = (
        raw[complete].reset_index(drop=True),
        partition[complete].reset_index(drop=True),
    )

    file = TRAIN.path
    columns = {name: numbers(raw, name, file) for name in _NUMERIC}
    columns |= {name: categories(raw, name, file) for name in _CATEGORICAL}
    sex = categories(raw, "sex", file, allowed=("Female", "Male"))
    race = categories(raw, "race", file)
    if keep_sensitive:
        columns |= {"male": sex == "Male", "race": race}
    income = categories(raw, "income", file, allowed=("<=50K", ">50K"))
    return Dataset(
        name="adult",
        task=Task.BINARY,
        features=pd.DataFrame(columns),
        target=(income == ">50K").astype(int).rename("income"),
        sensitive=pd.DataFrame(
            {"sex": sex, "race": race, "age": at_least(columns["age"], 25, "age")}
        ),
        privileged={"sex": "Male", "race": "White", "age": "age >= 25"},
        target_name="income",
        positive_label="> 50K a year",
        favourable=1,
        partition=partition,
        sources=(TRAIN, TEST),
    )


def _read(archive: Archive, source: Source) -> pd.DataFrame:
    """Read one file; the test file's first line is no row, and its labels end in a period."""
    content = archive.read(source)
    if content.startswith(b"|"):
        content = content.split(b"\n", 1)[1]
    raw = read_table(content, source.path, names=_COLUMNS)
    raw["income"] = raw["income"].str.rstrip(".")
    return raw
