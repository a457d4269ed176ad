"""Heart disease, Cleveland (Detrano et al. 1989): whether an artery is narrowed."""

from __future__ import annotations

import pandas as pd

from fairbench.data.columns import at_least, binary, categories, labels, numbers, require_columns
from fairbench.data.dataset import Dataset, Datasheet, Source, Task
from fairbench.data.download import Archive
from fairbench.data.tables import as_texts, parquet_table

DATASHEET = Datasheet(
    title="Heart disease, Cleveland (Detrano et al. 1989)",
    source="UCI Machine Learning Repository, data set 45, DOI 10.24432/C52P4X. The file is the "
    "Parquet file of the FairGround collection (github.com/reliable-ai/fairground-dataset-cache)",
    licence="CC BY 4.0",
    paper_differences="None of the papers uses it. The data are of the 303 patients of Cleveland. "
    "Label 1 is num 1 to 4 (139 patients), label 0 is num 0. The six missing values (four of ca, "
    "two of thal) stay missing. The kind of chest pain, the electrocardiogram, the slope and the "
    "thallium test are categories.",
    criticism="The 303 patients had been sent to an angiography, so their rate of disease, 46 %, "
    "is not that of any other people. Only 97 are women, so intervals of a gap by sex are wide. "
    "26 % of the women and 55 % of the men are ill, so equal shares of positive predictions would "
    "be wrong for one of the two groups. Most features are results of tests that are made when a "
    "disease is suspected. In some copies of the data, the column 'target' is 1 for healthy "
    "people.",
)
HEART = Source(
    "fairground/heart_disease.parquet",
    "ec28049b669e6354c7855277e01599f25542178940fc9a158b7220030758d6a2",
    (
        "https://github.com/reliable-ai/fairground-dataset-cache/raw/"
        "59cfe415f0359d7dda163f8413f1b6ca1b5a5ccb/fairground_cache/heart_disease.parquet",
    ),
    "https://archive.ics.uci.edu/dataset/45/heart+disease",
    size=10_799,
)
_NUMERIC = ("trestbps", "chol", "thalach", "oldpeak")
_CODES = ("cp", "restecg", "slope")
_GAPS = ("ca", "thal")
_SEX = {"1": "male", "0": "female"}


def load(archive: Archive, *, keep_sensitive: bool = True) -> Dataset:
    """Return the 303 patients; label 1 is a narrowed artery, so 0 is favourable.

    Parameters
    ----------
    archive : where the file is found.
    keep_sensitive : keep sex and age among the features.
    """
    file = HEART.path
    raw = as_texts(parquet_table(archive.read(HEART), file), file)
    needed = (*_NUMERIC, *_CODES, *_GAPS, "fbs", "exang", "sex", "age", "num")
    require_columns(raw, needed, file, width=14)
    sex = labels(categories(raw, "sex", file, allowed=tuple(_SEX)), _SEX)
    age = numbers(raw, "age", file)
    columns = {name: numbers(raw, name, file) for name in _NUMERIC}
    columns |= {name: categories(raw, name, file) for name in _CODES}
    columns |= {
        name: binary(raw, name, file, positive="1", negative="0") for name in ("fbs", "exang")
    }
    columns["ca"] = numbers(raw, "ca", file, missing="")
    columns["thal"] = categories(raw, "thal", file, allowed=("3", "6", "7"), missing="")
    if keep_sensitive:
        columns |= {"male": sex == "male", "age": age}
    return Dataset(
        name="heart_disease",
        task=Task.BINARY,
        features=pd.DataFrame(columns),
        target=_ill(raw).astype(int).rename("disease"),
        sensitive=pd.DataFrame({"sex": sex, "age": at_least(age, 55, "age")}),
        privileged={"sex": "male", "age": "age >= 55"},
        target_name="angiography",
        positive_label="heart disease",
        favourable=0,
        sources=(HEART,),
    )


def _ill(raw: pd.DataFrame) -> pd.Series:
    return categories(raw, "num", HEART.path, allowed=tuple("01234")) != "0"
