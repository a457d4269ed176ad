"""Heart disease, Cleveland (Detrano et al. 1989): whether an artery is narrowed."""

from __future__ import annotations

from fairbench.components.datasets.raw_files import raw_file
from fairbench.data.columns import at_least
from fairbench.data.dataset import Dataset, Datasheet
from fairbench.data.download import Archive
from fairbench.data.tables import RawTable

DATASHEET = Datasheet(
    title="Heart disease, Cleveland (Detrano et al. 1989)",
    source="UCI Machine Learning Repository, data set 45, DOI 10.24432/C52P4X. File of the "
    "FairGround collection (github.com/reliable-ai/fairground-dataset-cache)",
    licence="CC BY 4.0",
    paper_differences="The 303 patients of Cleveland. Label 1 is num 1 to 4 (139 patients), label "
    "0 is num 0. The six missing values (four of ca, two of thal) stay missing. The kind of chest "
    "pain, the electrocardiogram, the slope and the thallium test are categories.",
    criticism="The patients had been sent to an angiography, so their rate of disease, 46 %, is "
    "not that of other people. Only 97 are women. 26 % of the women and 55 % of the men are ill, "
    "so equal shares of positive predictions would be wrong. Most features are results of tests "
    "that are made when a disease is suspected. In some copies, 'target' is 1 for healthy people.",
)
HEART = raw_file("fairground/heart_disease.parquet")
_NUMERIC = ("trestbps", "chol", "thalach", "oldpeak")
_CODES = ("cp", "restecg", "slope")
_SEX = {"1": "male", "0": "female"}


def load(archive: Archive, *, keep_sensitive: bool = True) -> Dataset:
    """Return the 303 patients; label 1 is a narrowed artery, so 0 is favourable.

    Parameters
    ----------
    archive : where the file is found.
    keep_sensitive : keep sex and age among the features.
    """
    raw = RawTable.read(archive, HEART, width=14)
    sex = raw.labels("sex", _SEX)
    age = raw.number("age")
    columns = {name: raw.number(name) for name in _NUMERIC}
    columns |= {name: raw.category(name) for name in _CODES}
    columns |= {name: raw.flag(name).astype(int) for name in ("fbs", "exang")}
    columns["ca"] = raw.number("ca", missing="")
    columns["thal"] = raw.category("thal", allowed=("3", "6", "7"), missing="")
    if keep_sensitive:
        columns |= {"male": sex == "male", "age": age}
    return raw.dataset(
        "heart_disease",
        columns,
        {"sex": sex, "age": at_least(age, 55, "age")},
        (raw.category("num", allowed=tuple("01234")) != "0").rename("disease"),
        target_name="angiography",
        positive_label="heart disease",
        favourable=0,
    )
