"""LSAC bar passage study (Wightman 1998): who passes the bar examination."""

from __future__ import annotations

from typing import Any

import pandas as pd

from fairbench.components.datasets.raw_files import raw_file
from fairbench.data.dataset import Dataset, Datasheet
from fairbench.data.download import Archive
from fairbench.data.tables import RawTable

DATASHEET = Datasheet(
    title="Law school, passing the bar (LSAC study, Wightman 1998)",
    source="LSAC Research Report Series, eric.ed.gov/?id=ED469370. The tables are derived; the "
    "raw file lsac.sas7bdat (27478 rows) is not published with them",
    licence="None stated",
    paper_differences="`law_school_survey` is the table of Le Quy et al. 2022 (20798 rows), and "
    "`law_school_black_white` a selection of two races (18692 rows). Their pass rate is near that "
    "of the first attempt (88.5 %); `law_school_bar` has the eventual one (94.8 %, 22407 rows, "
    "missing values kept). Do not mix the three.",
    criticism="The students entered in 1991. Those who left school are not in the data. Grades in "
    "law school (deciles, zfygpa, zgpa) come after admission. The birth years and "
    "`dnn_bar_pass_prediction`, the output of a model that somebody added, are not read.",
    family="law_school",
)
TITLES = {
    "law_school_bar": "Law school, passing the bar eventually (LSAC study, Wightman 1998)",
    "law_school_survey": "Law school, passing the bar, the table of Le Quy et al. 2022 (LSAC "
    "study, Wightman 1998)",
    "law_school_black_white": "Law school, passing the bar, Black and white students (LSAC study, "
    "Wightman 1998)",
}
BAR = raw_file("law_school/bar_pass_prediction.csv")
SURVEY = raw_file("law_school/law_school_clean_derived.csv")
BLACK_WHITE = raw_file("law_school/law_dataset.csv")
_STUDIES = ("decile1b", "decile3", "lsat", "ugpa", "zfygpa", "zgpa", "fulltime", "fam_inc", "tier")
_PASSAGE: dict[str, Any] = {
    "target_name": "bar examination",
    "positive_label": "passes",
    "favourable": 1,
}


def bar(archive: Archive, *, keep_sensitive: bool = True) -> Dataset:
    """Return the 22407 students with a bar outcome; label 1 is to pass eventually.

    Missing values stay missing. The 16 missing races and 5 missing genders are groups ``unknown``.

    Parameters
    ----------
    archive : where the file is found.
    keep_sensitive : keep race and gender among the features.
    """
    raw = RawTable.read(archive, BAR, width=38)
    races = {name: name for name in ("white", "asian", "black", "hisp", "other")}
    genders = {"male": "male", "female": "female", "": "unknown"}
    groups = {
        "race": raw.labels("race1", {**races, "": "unknown"}),
        "gender": raw.labels("gender", genders),
    }
    columns = {name: raw.number(name, missing="") for name in _STUDIES}
    if keep_sensitive:
        columns |= groups
    return raw.dataset("law_school_bar", columns, groups, raw.flag("pass_bar"), **_PASSAGE)


def survey(archive: Archive, *, keep_sensitive: bool = True) -> Dataset:
    """Return the 20798 students of the survey of Le Quy et al. 2022; label 1 is a pass.

    Parameters
    ----------
    archive : where the file is found.
    keep_sensitive : keep race and sex among the features.
    """
    raw = RawTable.read(archive, SURVEY, width=12)
    race = raw.labels("race", {"White": "White", "Non-White": "Non-White"})
    passed = raw.flag("pass_bar", "1.0", "0.0")
    return _two_groups("law_school_survey", raw, race, passed, keep_sensitive)


def black_white(archive: Archive, *, keep_sensitive: bool = True) -> Dataset:
    """Return the 18692 Black and white students of a common selection; label 1 is a pass.

    Parameters
    ----------
    archive : where the file is found.
    keep_sensitive : keep race and sex among the features.
    """
    raw = RawTable.read(archive, BLACK_WHITE, width=12)
    race = raw.labels("racetxt", {"1": "White", "0": "Black"})
    return _two_groups("law_school_black_white", raw, race, raw.flag("pass_bar"), keep_sensitive)


def _two_groups(
    name: str, raw: RawTable, race: pd.Series, passed: pd.Series, keep_sensitive: bool
) -> Dataset:
    sex = raw.labels("male", {"1.0": "male", "1.00": "male", "0.0": "female", "0.00": "female"})
    columns = {column: raw.number(column) for column in _STUDIES}
    if keep_sensitive:
        columns |= {"white": race == "White", "male": sex == "male"}
    return raw.dataset(name, columns, {"race": race, "sex": sex}, passed, **_PASSAGE)
