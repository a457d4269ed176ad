"""LSAC bar passage study (Wightman 1998): the grades of the first year in law school."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from fairbench.data.columns import categories, labels, numbers, require_columns, scaled
from fairbench.data.dataset import Dataset, Datasheet, Source, Task, reference_first
from fairbench.data.download import Archive
from fairbench.data.tables import read_table

DATASHEET = Datasheet(
    title="Law school, first-year grades (LSAC study, Wightman 1998)",
    source="LSAC Research Report Series, eric.ed.gov/?id=ED469370. The tables are derived; the "
    "raw file lsac.sas7bdat (27478 rows) is not published with them",
    licence="None stated",
    paper_differences="`law_school` is the data set of FairlyUncertain, which reads AIF360's "
    "table: 22342 rows and 4 columns (race, gender, LSAT score and undergraduate average). Here "
    "it has the file's order, and the features have their own units. The target is scaled to [0, "
    "1] by its minimum -4.44 and maximum 3.48. `law_school_kusner` is the table of Kusner et al. "
    "2017 (21791 rows).",
    criticism="The data are of students who entered in 1991. AIF360's table drops everyone who is "
    "neither Black nor white, and fills in missing gender as 'female'. Grades are standardised "
    "within schools, and schools select by LSAT and undergraduate average, so these two features "
    "predict little of the grades.",
)
TITLES = {
    "law_school": "Law school, first-year grades, Black and white students (LSAC study, Wightman "
    "1998)",
    "law_school_kusner": "Law school, first-year grades, the table of Kusner et al. 2017 (LSAC "
    "study, Wightman 1998)",
}
Columns = Mapping[str, pd.Series]
_PAGE = "https://eric.ed.gov/?id=ED469370"
GPA = Source(
    "law_school/law_school_gpa_reconstructed.csv",
    "8df5c1b449c58f18e4e39394fa0d1ee54450fd554a2d757e3fd29322a88e6265",
    page=_PAGE,
    size=834_225,
)
KUSNER = Source(
    "law_school/law_data.csv",
    "cbf494af5e0ac317015cf64945a20587c08ec77118e183d3ddb0026719956d88",
    page="https://github.com/mkusner/counterfactual-fairness",
    size=1_087_804,
)


def gpa(archive: Archive, *, target_scale: str = "minmax", keep_sensitive: bool = True) -> Dataset:
    """Return 22342 Black and white students; the target is the standardised first-year average.

    Parameters
    ----------
    archive : where the file is found.
    target_scale : ``minmax`` scales by the minimum and maximum of all rows; or ``none``.
    keep_sensitive : keep race and gender among the features.
    """
    raw = read(archive, GPA, ("race", "gender", "lsat", "ugpa", "zfygpa"), width=7)
    groups = {
        "race": decoded(raw, GPA, "race", {"white": "white", "black": "black"}),
        "gender": decoded(raw, GPA, "gender", {"male": "male", "female": "female"}),
    }
    columns = {name: numbers(raw, name, GPA.path) for name in ("lsat", "ugpa")}
    if keep_sensitive:
        columns |= {"white": groups["race"] == "white", "male": groups["gender"] == "male"}
    average = numbers(raw, "zfygpa", GPA.path)
    return _first_year("law_school", GPA, columns, groups, average, target_scale)


def kusner(
    archive: Archive, *, target_scale: str = "minmax", keep_sensitive: bool = True
) -> Dataset:
    """Return the 21791 students of Kusner et al. 2017 and their standardised first-year average.

    Parameters
    ----------
    archive : where the file is found.
    target_scale : ``minmax`` scales by the minimum and maximum of all rows; or ``none``.
    keep_sensitive : keep race and sex among the features.
    """
    raw = read(archive, KUSNER, ("race", "sex", "LSAT", "UGPA", "ZFYA"), width=9)
    race = categories(raw, "race", KUSNER.path)
    sex = decoded(raw, KUSNER, "sex", {"2": "male", "1": "female"})
    columns = {name: numbers(raw, name, KUSNER.path) for name in ("LSAT", "UGPA")}
    if keep_sensitive:
        columns |= {"race": race, "male": sex == "male"}
    groups = {"race": reference_first(race, "White"), "sex": sex}
    average = numbers(raw, "ZFYA", KUSNER.path)
    return _first_year("law_school_kusner", KUSNER, columns, groups, average, target_scale)


def _first_year(
    name: str,
    source: Source,
    columns: Columns,
    groups: Columns,
    average: pd.Series,
    how: str,
) -> Dataset:
    target = scaled(average, how)
    about = {"task": Task.REGRESSION, "target_name": "first-year average"}
    return assembled(name, source, columns, groups, target, **about)


def read(archive: Archive, source: Source, columns: Sequence[str], *, width: int) -> pd.DataFrame:
    """Return a file's rows; refuse a file without `width` columns or without one of `columns`."""
    raw = read_table(archive.read(source), source.path)
    require_columns(raw, columns, source.path, width=width)
    return raw


def decoded(raw: pd.DataFrame, source: Source, name: str, names: Mapping[str, str]) -> pd.Series:
    """Return a column of codes as the labels that `names` gives them; refuse other codes."""
    return labels(categories(raw, name, source.path, allowed=tuple(names)), names)


def assembled(
    name: str, source: Source, columns: Columns, groups: Columns, target: pd.Series, **about: Any
) -> Dataset:
    """Return a data set of one file; the first label of every group is the privileged one."""
    return Dataset(
        name=name,
        features=pd.DataFrame(columns),
        target=target,
        sensitive=pd.DataFrame(groups),
        privileged={key: str(group.cat.categories[0]) for key, group in groups.items()},
        sources=(source,),
        **about,
    )
