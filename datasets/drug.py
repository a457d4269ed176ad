"""Drug consumption (Fehrman et al. 2017): when people last used a substance, in classes."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fairbench.components.datasets.raw_files import raw_file
from fairbench.data.columns import labels, one_of
from fairbench.data.dataset import Dataset, Datasheet, Task
from fairbench.data.download import Archive
from fairbench.data.tables import RawTable

DATASHEET = Datasheet(
    title="Drug consumption (Fehrman, Muhammad, Mirkes, Egan, Gorban 2017)",
    source="UCI Machine Learning Repository, data set 373, DOI 10.24432/C5TC7S. File of the "
    "FairGround collection (github.com/reliable-ai/fairground-dataset-cache)",
    licence="CC BY 4.0",
    paper_differences="The classes are in the order of time: never; before the last year (the "
    "answers 'over a decade ago' and 'in the last decade'); in the last year (the answers 'in the "
    "last year', 'month', 'week' and 'day'). `periods=seven` keeps the seven answers. "
    "`periods=two` separates those who used the substance in the last year from all others, the "
    "year-based cut of Fehrman et al. (`dataset=drug_last_year`). The substance is cannabis by "
    "default. Other substances are not features. The file exchanges the columns nicotine and semer "
    "(75 % would use semer, a made-up substance), so the loader reads nicotine from semer.",
    criticism="1885 volunteers answered an online survey in 2011 and 2012. 91 % are White, and "
    "most are from the UK and the USA. More of them use drugs than in any population, so rates "
    "describe the sample. Nothing is verified. Some groups of age and ethnicity are small (165 are "
    "not White).",
)
TITLES = {
    "drug": "Drug consumption: when somebody last used cannabis, in three classes (Fehrman et al. "
    "2017)",
    "drug_last_year": "Drug consumption: whether somebody used cannabis in the last year (Fehrman "
    "et al. 2017)",
}
DRUG = raw_file("fairground/drug.parquet")
_SUBSTANCES = (
    *("alcohol", "amphet", "amyl", "benzos", "caff", "cannabis", "choc", "coke", "crack"),
    *("ecstasy", "heroin", "ketamine", "legalh", "lsd", "meth", "mushrooms", "nicotine", "vsa"),
)
_COLUMN = {"nicotine": "semer"}  # where the file uses another name
_TRAITS = ("nscore", "escore", "oscore", "ascore", "cscore", "impulsive", "ss")
_ANSWERS = (
    *("never", "over a decade ago", "in the last decade"),
    *("in the last year", "in the last month", "in the last week", "in the last day"),
)
_PERIODS = ("never", "before the last year", "in the last year")


def load(
    archive: Archive,
    *,
    substance: str = "cannabis",
    periods: str = "three",
    keep_sensitive: bool = True,
) -> Dataset:
    """Return the 1885 respondents; the class is when they last used a substance.

    Parameters
    ----------
    archive : where the file is found.
    substance : one of the 18, such as ``cannabis``, ``nicotine``, ``benzos`` or ``mushrooms``.
    periods : ``three`` classes, the ``seven`` answers of the survey, or ``two``: label 1 is a use
        in the last year.
    keep_sensitive : keep gender, age and ethnicity among the features.
    """
    one_of("substance", substance, _SUBSTANCES)
    one_of("periods", periods, ("two", "three", "seven"))
    raw = RawTable.read(archive, DRUG, width=32)
    gender, ethnicity, age = map(raw.category, ("gender", "ethnicity", "age"))
    columns = {name: raw.category(name) for name in ("education", "country")}
    columns |= {name: raw.number(name) for name in _TRAITS}
    if keep_sensitive:
        columns |= {"gender": gender, "age": age, "ethnicity": ethnicity}
    answers = {f"CL{code}": code for code in range(len(_ANSWERS))}
    answer = raw.category(_COLUMN.get(substance, substance), allowed=answers)
    code = answer.map(answers).astype(int)
    if periods != "seven":
        code = pd.Series(np.searchsorted([1, 3] if periods == "three" else [3], code, side="right"))
    classes = {"two": (), "three": _PERIODS, "seven": _ANSWERS}[periods]
    sensitive = {
        "gender": labels(gender, {"Male": "Male", "Female": "Female"}),
        "ethnicity": labels(ethnicity == "White", {True: "White", False: "not White"}),
        "age": labels(age == "18-24", {False: "25 and over", True: "18 to 24"}),
    }
    return raw.dataset(
        "drug",
        columns,
        sensitive,
        code.rename(substance),
        task=Task.MULTICLASS if classes else Task.BINARY,
        target_name=f"last use of {substance}",
        positive_label="" if classes else "in the last year",
        classes=classes,
        ordered=bool(classes),
    )
