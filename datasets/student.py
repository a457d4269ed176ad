"""Student performance (Cortez, Silva 2008): who passes mathematics, or Portuguese."""

from __future__ import annotations

from fairbench.components.datasets.raw_files import raw_file
from fairbench.data.columns import at_least, one_of
from fairbench.data.dataset import Dataset, Datasheet
from fairbench.data.download import Archive
from fairbench.data.tables import RawTable

DATASHEET = Datasheet(
    title="Student performance, mathematics and Portuguese (Cortez, Silva 2008)",
    source="UCI Machine Learning Repository, data set 320, DOI 10.24432/C5TG7T; the final grade "
    "was cut into two classes by Le Quy et al. 2022 (github.com/tailequy/fairness_dataset)",
    licence="CC BY 4.0",
    paper_differences="As in Le Quy et al. 2022, with 395 and 649 rows. Label 1 is a final grade "
    "of 10 or more, and the first two grades are among the features.",
    criticism="The first two grades of the year nearly determine the third; `keep_grades=false` "
    "leaves them out. The pupils are of two schools. 382 pupils occur in both files, so the two "
    "data sets are not independent.",
)
TITLES = {
    "student_mat": "Student performance: passing mathematics (Cortez, Silva 2008)",
    "student_por": "Student performance: passing Portuguese (Cortez, Silva 2008)",
}
SOURCES = {name: raw_file(f"student/student_{name}_derived.csv") for name in ("mat", "por")}
_NUMERIC = (
    *("age", "Medu", "Fedu", "traveltime", "studytime", "failures", "famrel", "freetime"),
    *("goout", "Dalc", "Walc", "health", "absences"),
)
_CATEGORICAL = ("school", "address", "famsize", "Pstatus", "Mjob", "Fjob", "reason", "guardian")
_FLAGS = (
    *("schoolsup", "famsup", "paid", "activities", "nursery", "higher", "internet", "romantic"),
)
_SEX = {"M": "male", "F": "female"}


def load(
    archive: Archive, *, subject: str, keep_grades: bool = True, keep_sensitive: bool = True
) -> Dataset:
    """Return the pupils of a subject; label 1 is a pass.

    Parameters
    ----------
    archive : where the files are found.
    subject : ``mat`` (mathematics) or ``por`` (Portuguese).
    keep_grades : keep the grades of the first two periods among the features.
    keep_sensitive : keep sex and age among the features.
    """
    source = SOURCES[one_of("subject", subject, tuple(SOURCES))]
    raw = RawTable.read(archive, source, width=33)
    numeric = (*_NUMERIC, "G1", "G2") if keep_grades else _NUMERIC
    sex = raw.labels("sex", _SEX)
    columns = {name: raw.number(name) for name in numeric}
    age = at_least(columns["age"], 18, "age")
    columns |= {name: raw.category(name) for name in _CATEGORICAL}
    columns |= {name: raw.flag(name, "yes", "no") for name in _FLAGS}
    if keep_sensitive:
        columns |= {"male": sex == "male"}
    else:
        del columns["age"]
    return raw.dataset(
        f"student_{subject}",
        columns,
        {"sex": sex, "age": age},
        raw.flag("class", "High", "Low").rename("pass"),
        privileged={"age": "age < 18"},
        target_name="final grade",
        positive_label="passes",
        favourable=1,
    )
