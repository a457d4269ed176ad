"""Adult census income (Kohavi 1996): whether income exceeds 50,000 dollars a year."""

from __future__ import annotations

import pandas as pd

from fairbench.components.datasets.raw_files import raw_file
from fairbench.data.columns import at_least
from fairbench.data.dataset import Dataset, Datasheet, Source, Task
from fairbench.data.download import Archive
from fairbench.data.tables import RawTable, read_table

DATASHEET = Datasheet(
    title="Adult, or census income (Becker and Kohavi 1996)",
    source="UCI Machine Learning Repository, data set 2, DOI 10.24432/C5XW20; Kohavi, KDD 1996",
    licence="CC BY 4.0",
    paper_differences="As FairlyUncertain reads it through AIF360, but for the order of columns: "
    "the complete rows of both files, without the sampling weight fnlwgt, with sex as one column "
    "and race one-hot encoded; 102 columns. Uncertainty Matters and Ji et al. use the training "
    "file only (30162 complete rows). `split=predefined` tests on the archive's test rows.",
    criticism="50,000 dollars was the 76th percentile of income in 1994, the 88th for Black people "
    "and the 89th for women, and fairness measures change a lot with this cut (Ding et al. 2021). "
    "Results describe the country only with `evaluator.weights=true` (by fnlwgt). Rows with "
    "missing values are dropped, which are not missing at random. The feature 'relationship' "
    "(Husband, Wife) reveals sex.",
)
TRAIN = raw_file("adult/adult.data")
TEST = raw_file("adult/adult.test")
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
_NUMERIC = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
_APART = ("fnlwgt", "race", "sex", "income")
_CATEGORICAL = [name for name in _COLUMNS if name not in (*_NUMERIC, *_APART)]


def load(archive: Archive, *, keep_sensitive: bool = True) -> Dataset:
    """Return the 45222 complete rows of both files, without the sampling weight fnlwgt.

    `partition` marks the archive's own 30162 training and 15060 test rows. The privileged groups
    are men, White people and people aged 25 or more.

    Parameters
    ----------
    archive : where the raw files are found.
    keep_sensitive : keep sex and race among the features, as the papers do.
    """
    parts = {name: _read(archive, source) for name, source in (("train", TRAIN), ("test", TEST))}
    raw = pd.concat(parts.values(), ignore_index=True)
    raw["partition"] = [name for name, part in parts.items() for _ in range(len(part))]
    complete = (raw[[*_CATEGORICAL, "race", "sex"]] != "?").all(axis=1)
    raw = raw[complete].reset_index(drop=True)

    columns = {name: raw[name] for name in _NUMERIC}
    columns |= {name: raw[name].astype("category") for name in _CATEGORICAL}
    sex, race = raw["sex"].astype("category"), raw["race"].astype("category")
    if keep_sensitive:
        columns |= {"male": sex == "Male", "race": race}
    return Dataset(
        name="adult",
        task=Task.BINARY,
        features=pd.DataFrame(columns),
        target=raw["income"],
        sensitive=pd.DataFrame(
            {"sex": sex, "race": race, "age": at_least(columns["age"], 25, "age")}
        ),
        privileged={"sex": "Male", "race": "White", "age": "age >= 25"},
        target_name="income",
        positive_label="> 50K a year",
        favourable=1,
        partition=raw["partition"],
        weight=raw["fnlwgt"],
        sources=(TRAIN, TEST),
    )


def _read(archive: Archive, source: Source) -> pd.DataFrame:
    """Read one file; the test file begins with a line to skip, and its labels end in a period."""
    content = archive.read(source)
    frame = read_table(content, source.path, names=_COLUMNS, skip=int(content.startswith(b"|")))
    frame["income"] = frame["income"].str.rstrip(".")
    raw = RawTable(frame, source)
    for name in (*_CATEGORICAL, "race"):
        raw.category(name)
    raw.category("sex", allowed=("Female", "Male"))
    income = raw.flag("income", ">50K", "<=50K").astype(int)
    return frame.assign(income=income, **{n: raw.number(n) for n in (*_NUMERIC, "fnlwgt")})
