"""LSAC bar passage study (Wightman 1998): who passes the bar examination."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from fairbench.components.datasets.law_school import Columns, assembled, decoded, read
from fairbench.data.columns import binary, numbers
from fairbench.data.dataset import Dataset, Datasheet, Source, Task
from fairbench.data.download import Archive

DATASHEET = Datasheet(
    title="Law school, passing the bar (LSAC study, Wightman 1998)",
    source="LSAC Research Report Series, eric.ed.gov/?id=ED469370. The tables are derived; the "
    "raw file lsac.sas7bdat (27478 rows) is not published with them",
    licence="None stated",
    paper_differences="`law_school_survey` is the table of Le Quy et al. 2022 (20798 rows), and "
    "`law_school_black_white` a selection of two races (18692 rows). Their pass rate is near that "
    "of the first attempt (88.5 %). It is not the eventual pass rate, which `law_school_bar` has "
    "(94.8 %, 22407 rows, missing values kept). So do not mix the three tables.",
    criticism="The data are of students who entered in 1991. Students who left school have no bar "
    "outcome and are not in the data. Grades in law school (deciles, zfygpa, zgpa) come after "
    "admission, so admission cannot be based on them. Two things in the file are not read: the "
    "birth years, and a column `dnn_bar_pass_prediction`, the output of a model that somebody "
    "added.",
    family="law_school",
)
TITLES = {
    "law_school_bar": "Law school, passing the bar eventually (LSAC study, Wightman 1998)",
    "law_school_survey": "Law school, passing the bar, the table of Le Quy et al. 2022 (LSAC "
    "study, Wightman 1998)",
    "law_school_black_white": "Law school, passing the bar, Black and white students (LSAC study, "
    "Wightman 1998)",
}
_PAGE = "https://eric.ed.gov/?id=ED469370"
BAR = Source(
    "law_school/bar_pass_prediction.csv",
    "76ebfdb0427ce8db038d53fa5943180ac77096bffb8264f000ed21e9f0ec82f2",
    page=_PAGE,
    size=3_512_800,
)
SURVEY = Source(
    "law_school/law_school_clean_derived.csv",
    "23c1b173f3480beb7afc4957b107a9917dfc4a8dc9d87ea6034ec35222152452",
    page="https://github.com/tailequy/fairness_dataset",
    size=1_135_557,
)
BLACK_WHITE = Source(
    "law_school/law_dataset.csv",
    "76244ae957d224a9cc49464196f53ad621585705418ad3c3cda27a7699471a16",
    page="https://github.com/damtharvey/law-school-dataset",
    size=993_161,
)
_STUDIES = ("decile1b", "decile3", "lsat", "ugpa", "zfygpa", "zgpa", "fulltime", "fam_inc")


def bar(archive: Archive, *, keep_sensitive: bool = True) -> Dataset:
    """Return the 22407 students with a bar outcome; label 1 is to pass eventually.

    Missing values stay missing. The 16 missing races and 5 missing genders are groups ``unknown``.

    Parameters
    ----------
    archive : where the file is found.
    keep_sensitive : keep race and gender among the features.
    """
    file = BAR.path
    raw = read(archive, BAR, (*_STUDIES, "tier", "race1", "gender", "pass_bar"), width=38)
    races = ("white", "asian", "black", "hisp", "other")
    groups = {
        "race": decoded(raw, BAR, "race1", {**dict(zip(races, races, strict=True)), "": "unknown"}),
        "gender": decoded(raw, BAR, "gender", {"male": "male", "female": "female", "": "unknown"}),
    }
    columns = {name: numbers(raw, name, file, missing="") for name in (*_STUDIES, "tier")}
    if keep_sensitive:
        columns |= groups
    return _passage("law_school_bar", BAR, columns, groups, raw, ("1", "0"))


def survey(archive: Archive, *, keep_sensitive: bool = True) -> Dataset:
    """Return the 20798 students of the survey of Le Quy et al. 2022; label 1 is a pass.

    Parameters
    ----------
    archive : where the file is found.
    keep_sensitive : keep race and sex among the features.
    """
    race = {"White": "White", "Non-White": "Non-White"}
    return _two_groups("law_school_survey", archive, SURVEY, "race", race, keep_sensitive)


def black_white(archive: Archive, *, keep_sensitive: bool = True) -> Dataset:
    """Return the 18692 Black and white students of a common selection; label 1 is a pass.

    Parameters
    ----------
    archive : where the file is found.
    keep_sensitive : keep race and sex among the features.
    """
    race = {"1": "White", "0": "Black"}
    name = "law_school_black_white"
    return _two_groups(name, archive, BLACK_WHITE, "racetxt", race, keep_sensitive)


def _two_groups(
    name: str,
    archive: Archive,
    source: Source,
    race_column: str,
    races: Mapping[str, str],
    keep_sensitive: bool,
) -> Dataset:
    raw = read(archive, source, (*_STUDIES, "tier", race_column, "male", "pass_bar"), width=12)
    sex = {"1.0": "male", "1.00": "male", "0.0": "female", "0.00": "female"}
    groups = {
        "race": decoded(raw, source, race_column, races),
        "sex": decoded(raw, source, "male", sex),
    }
    columns = {column: numbers(raw, column, source.path) for column in (*_STUDIES, "tier")}
    if keep_sensitive:
        columns |= {"white": groups["race"] == "White", "male": groups["sex"] == "male"}
    positive = ("1", "0") if source is BLACK_WHITE else ("1.0", "0.0")
    return _passage(name, source, columns, groups, raw, positive)


def _passage(
    name: str,
    source: Source,
    columns: Columns,
    groups: Columns,
    raw: pd.DataFrame,
    values: tuple[str, str],
) -> Dataset:
    positive, negative = values
    target = binary(raw, "pass_bar", source.path, positive=positive, negative=negative)
    about = {"task": Task.BINARY, "target_name": "bar examination", "positive_label": "passes"}
    return assembled(
        name, source, columns, groups, target.rename("pass_bar"), favourable=1, **about
    )
