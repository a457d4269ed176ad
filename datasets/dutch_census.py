"""Dutch virtual census of 2001: whether a person works in a prestigious occupation."""

from __future__ import annotations

from fairbench.components.datasets.raw_files import raw_file
from fairbench.core.errors import DataError
from fairbench.data.dataset import Dataset, Datasheet
from fairbench.data.download import Archive
from fairbench.data.tables import RawTable, read_table

DATASHEET = Datasheet(
    title="Dutch census 2001 (Zliobaite, Kamiran, Calders 2011)",
    source="Statistics Netherlands, Virtual Census 2001, as prepared for ICDM 2011 and kept by Le "
    "Quy et al. 2022 (github.com/tailequy/fairness_dataset)",
    licence="None stated. The original microdata have terms of use for research: check them "
    "before you pass the file on",
    paper_differences="As in Le Quy et al. 2022: 60420 rows and eleven categorical attributes. "
    "Label 1 is an occupation of level 2 or 1 (managers, professionals), label 0 one of level 5, 4 "
    "or 9.",
    criticism="Middle occupations, people under age and other rows were removed: the classes are "
    "extremes, which balances them. Age is coded in seventeen bands. Sex explains much of the "
    "label. The data describe the year 2001 only.",
)
DUTCH = raw_file("dutch_census/dutch_census_2001.arff")
_CATEGORICAL = (
    "age",
    "household_position",
    "household_size",
    "prev_residence_place",
    "citizenship",
    "country_birth",
    "edu_level",
    "economic_status",
    "cur_eco_activity",
    "Marital_status",
)
_COLUMNS = ("sex", *_CATEGORICAL, "occupation")


def load(archive: Archive, *, keep_sensitive: bool = True) -> Dataset:
    """Return the 60420 persons; label 1 is a high-level occupation.

    Parameters
    ----------
    archive : where the file is found.
    keep_sensitive : keep sex among the features.
    """
    file = DUTCH.path
    content = archive.read(DUTCH)
    head, mark, _ = content.partition(b"@data")
    if not mark:
        raise DataError(f"{file}: no line '@data': is this the ARFF file?")
    lines = head.decode("utf-8", "replace").splitlines()
    declared = [line.split()[1] for line in lines if line.startswith("@attribute")]
    if declared != list(_COLUMNS):
        raise DataError(f"{file}: attributes {', '.join(declared)}; expected {', '.join(_COLUMNS)}")
    raw = RawTable(read_table(content, file, names=_COLUMNS, skip=len(lines) + 1), DUTCH)
    sex = raw.labels("sex", {"1": "male", "2": "female"})
    columns = {name: raw.category(name) for name in _CATEGORICAL}
    if keep_sensitive:
        columns |= {"male": sex == "male"}
    return raw.dataset(
        "dutch_census",
        columns,
        {"sex": sex},
        raw.flag("occupation", "2_1", "5_4_9"),
        target_name="occupation",
        positive_label="high level",
        favourable=1,
    )
