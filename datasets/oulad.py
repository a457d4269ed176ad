"""Open University learning analytics (Kuzilek et al. 2017): whether a student passes a module."""

from __future__ import annotations

import pandas as pd

from fairbench.components.datasets.raw_files import raw_file
from fairbench.data.dataset import Dataset, Datasheet
from fairbench.data.download import Archive
from fairbench.data.tables import RawTable

DATASHEET = Datasheet(
    title="OULAD: the Open University's students of 2013 and 2014 (Kuzilek, Hlosta, Zdrahal 2017)",
    source="analyse.kmi.open.ac.uk/open_dataset, Scientific Data 4; cleaned by Le Quy et al. 2022 "
    "(github.com/tailequy/fairness_dataset)",
    licence="CC BY 4.0",
    paper_differences="As in Le Quy et al. 2022: the 21562 complete enrolments that ended in Pass "
    "or Fail. A student's rows stay on one side of a split: 1246 enrolments are of a student who "
    "has another.",
    criticism="Students who withdrew (a third) or passed with distinction are left out, so the "
    "base rate is a selected population's. The deprivation band is that of the region, not of the "
    "student. Clicks and assessments, most of the signal, are not in this table.",
)
OULAD = raw_file("oulad/oulad_clean_derived.csv")
_NUMERIC = ("num_of_prev_attempts", "studied_credits")
_CATEGORICAL = (
    "code_module",
    "code_presentation",
    "region",
    "highest_education",
    "imd_band",
    "age_band",
)
_SEX = {"M": "male", "F": "female"}
_DISABILITY = {"N": "no disability", "Y": "disability"}


def load(archive: Archive, *, keep_sensitive: bool = True) -> Dataset:
    """Return the 21562 enrolments; label 1 is a pass.

    Parameters
    ----------
    archive : where the file is found.
    keep_sensitive : keep sex and disability among the features.
    """
    raw = RawTable.read(archive, OULAD, width=12)
    sex, disability = raw.labels("gender", _SEX), raw.labels("disability", _DISABILITY)
    columns = {name: raw.number(name) for name in _NUMERIC}
    columns |= {name: raw.category(name) for name in _CATEGORICAL}
    if keep_sensitive:
        columns |= {"male": sex == "male", "disability": disability == "disability"}
    return raw.dataset(
        "oulad",
        columns,
        {"sex": sex, "disability": disability},
        raw.flag("final_result", "Pass", "Fail"),
        target_name="result of the module",
        positive_label="passes",
        favourable=1,
        clusters=pd.Series(pd.factorize(raw.text("id_student"))[0], name="student"),
    )
