"""LSAC bar passage study (Wightman 1998): the grades of the first year in law school."""

from __future__ import annotations

from typing import Any

from fairbench.components.datasets.raw_files import raw_file
from fairbench.data.columns import scaled
from fairbench.data.dataset import Dataset, Datasheet, Task, reference_first
from fairbench.data.download import Archive
from fairbench.data.tables import RawTable

DATASHEET = Datasheet(
    title="Law school, first-year grades (LSAC study, Wightman 1998)",
    source="LSAC Research Report Series, eric.ed.gov/?id=ED469370. The tables are derived; the "
    "raw file lsac.sas7bdat (27478 rows) is not published with them",
    licence="None stated",
    paper_differences="`law_school` is FairlyUncertain's, from AIF360's table: 22342 rows and 4 "
    "columns (race, gender, LSAT score and undergraduate average), here in the file's order and in "
    "their own units. The target is scaled to [0, 1] by its minimum -4.44 and maximum 3.48. "
    "`law_school_kusner` is the table of Kusner et al. 2017 (21791 rows).",
    criticism="The students entered in 1991. AIF360's table drops everyone who is neither Black "
    "nor white, and fills in missing gender as 'female'. Grades are standardised within schools, "
    "which select by the two features, so these predict little.",
)
TITLES = {
    "law_school": "Law school, first-year grades, Black and white students (LSAC study, Wightman "
    "1998)",
    "law_school_kusner": "Law school, first-year grades, the table of Kusner et al. 2017 (LSAC "
    "study, Wightman 1998)",
}
_FIRST_YEAR: dict[str, Any] = {"task": Task.REGRESSION, "target_name": "first-year average"}
GPA = raw_file("law_school/law_school_gpa_reconstructed.csv")
KUSNER = raw_file("law_school/law_data.csv")


def gpa(archive: Archive, *, target_scale: str = "minmax", keep_sensitive: bool = True) -> Dataset:
    """Return 22342 Black and white students; the target is the standardised first-year average.

    Parameters
    ----------
    archive : where the file is found.
    target_scale : ``minmax`` scales by the minimum and maximum of all rows; or ``none``.
    keep_sensitive : keep race and gender among the features.
    """
    raw = RawTable.read(archive, GPA, width=7)
    groups = {
        "race": raw.labels("race", {"white": "white", "black": "black"}),
        "gender": raw.labels("gender", {"male": "male", "female": "female"}),
    }
    columns = {name: raw.number(name) for name in ("lsat", "ugpa")}
    if keep_sensitive:
        columns |= {"white": groups["race"] == "white", "male": groups["gender"] == "male"}
    return raw.dataset(
        "law_school", columns, groups, scaled(raw.number("zfygpa"), target_scale), **_FIRST_YEAR
    )


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
    raw = RawTable.read(archive, KUSNER, width=9)
    race = raw.category("race")
    sex = raw.labels("sex", {"2": "male", "1": "female"})
    columns = {name: raw.number(name) for name in ("LSAT", "UGPA")}
    if keep_sensitive:
        columns |= {"race": race, "male": sex == "male"}
    groups = {"race": reference_first(race, "White"), "sex": sex}
    average = scaled(raw.number("ZFYA"), target_scale)
    return raw.dataset("law_school_kusner", columns, groups, average, **_FIRST_YEAR)
