"""COMPAS (Angwin et al., ProPublica 2016): who is charged again within two years."""

from __future__ import annotations

import pandas as pd

from fairbench.core.errors import DataError
from fairbench.data.columns import binary, categories, labels, numbers, require_columns
from fairbench.data.dataset import Dataset, Datasheet, Source, Task
from fairbench.data.download import Archive
from fairbench.data.tables import read_table

DATASHEET = Datasheet(
    title="COMPAS recidivism, general and violent (Angwin, Larson, Mattu, Kirchner 2016)",
    source="ProPublica, github.com/propublica/compas-analysis; Broward County, Florida, 2013-2014",
    licence="None stated. Published by ProPublica for re-analysis, from public records",
    paper_differences="The loader follows FairlyUncertain, which reads the data through AIF360. "
    "It keeps the rows that pass ProPublica's filter and have a charge description, and has sex "
    "as one column and the rest one-hot encoded. This gives 406 columns. Names, dates of birth "
    "and case numbers are dropped while reading. The violent file is filtered by `score_text`, as "
    "in Friedler et al. and Ji et al. (4010 rows). ProPublica itself filters that file by "
    "`v_score_text` (4020 rows, of which 4015 have a charge description).",
    criticism="The labels are arrests, not crimes, and policing differs between the groups. "
    "People with less than two years of follow-up were kept if they reoffended and dropped if "
    "they did not (Barenstein 2019). This raises the base rate of the two-year file from 36 % to "
    "45 %. The risk scores were made for pretrial decisions but are judged on another outcome "
    "(Bao et al. 2021, 'It's COMPASlicated'). Charge descriptions make up most of the one-hot "
    "columns. The raw files contain the names of real persons.",
)
TITLES = {
    "compas": "COMPAS: charged again within two years (Angwin et al. 2016)",
    "compas_violent": "COMPAS: charged with a violent crime within two years (Angwin et al. 2016)",
}
_PAGE = "https://github.com/propublica/compas-analysis"
_URL = "https://raw.githubusercontent.com/propublica/compas-analysis/master"
COMPAS = Source(
    "compas/compas-scores-two-years.csv",
    "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
    (f"{_URL}/compas-scores-two-years.csv",),
    _PAGE,
    size=2_546_489,
)
VIOLENT = Source(
    "compas/compas-scores-two-years-violent.csv",
    "918e218ba181d4db8a7266977d23ca7a5ecf1bc7d5defd7b2f27bf3cbd9763e3",
    (f"{_URL}/compas-scores-two-years-violent.csv",),
    _PAGE,
    size=1_603_205,
)
_WIDTH = {COMPAS: 53, VIOLENT: 54}
_NUMERIC = ("age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count")
_CATEGORICAL = ("age_cat", "c_charge_degree", "c_charge_desc")
_FILTER = ("days_b_screening_arrest", "is_recid", "score_text")
_AGES = {"25 - 45": "25 to 45", "Less than 25": "under 25", "Greater than 45": "over 45"}


def load(archive: Archive, *, keep_sensitive: bool = True) -> Dataset:
    """Return the 6167 defendants who pass ProPublica's filter and have a charge description.

    Names, dates of birth and case numbers are dropped while reading. The reference groups, called
    privileged, are men (as in FairlyUncertain), Caucasians and the age group 25 to 45.

    Parameters
    ----------
    archive : where the raw file is found.
    keep_sensitive : keep sex, race and age group among the features, as the papers do.
    """
    return _load(archive, COMPAS, "compas", "two-year recidivism", keep_sensitive=keep_sensitive)


def violent(archive: Archive, *, keep_sensitive: bool = True) -> Dataset:
    """Return the 4010 defendants of the violent file who pass the same filter.

    Everything else is as in `load`; the label is a charge with a violent crime within two years.

    Parameters
    ----------
    archive : where the raw file is found.
    keep_sensitive : keep sex, race and age group among the features, as the papers do.
    """
    return _load(
        archive,
        VIOLENT,
        "compas_violent",
        "two-year violent recidivism",
        keep_sensitive=keep_sensitive,
    )


def _load(
    archive: Archive, source: Source, name: str, target_name: str, *, keep_sensitive: bool
) -> Dataset:
    raw = _filtered(archive, source)
    file = source.path
    sex = categories(raw, "sex", file, allowed=("Female", "Male"))
    race = categories(raw, "race", file)
    age = labels(categories(raw, "age_cat", file, allowed=tuple(_AGES)), _AGES)
    features = {column: numbers(raw, column, file) for column in _NUMERIC}
    features |= {column: categories(raw, column, file) for column in _CATEGORICAL}
    if keep_sensitive:
        features |= {"male": sex == "Male", "race": race}
    else:
        del features["age"], features["age_cat"]
    target = binary(raw, "two_year_recid", file, positive="1", negative="0")
    return Dataset(
        name=name,
        task=Task.BINARY,
        features=pd.DataFrame(features).reset_index(drop=True),
        target=target.rename("two_year_recid").reset_index(drop=True),
        sensitive=pd.DataFrame({"sex": sex, "race": race, "age": age}).reset_index(drop=True),
        privileged={"sex": "Male", "race": "Caucasian", "age": "25 to 45"},
        target_name=target_name,
        positive_label="charged again",
        favourable=0,
        sources=(source,),
    )


def _filtered(archive: Archive, source: Source) -> pd.DataFrame:
    """Return the rows that pass the filter, with the columns that are used and no names."""
    file = source.path
    raw = read_table(archive.read(source), file)
    wanted = (*_NUMERIC, *_CATEGORICAL, *_FILTER, "sex", "race", "two_year_recid")
    require_columns(raw, wanted, file, width=_WIDTH[source])
    for column in wanted:
        if f"{column}.1" in raw and (raw[column] != raw[f"{column}.1"]).any():
            raise DataError(f"{file}: the two columns named '{column}' differ")
    raw = raw[list(wanted)]
    delay = numbers(raw, "days_b_screening_arrest", file, missing="")
    return raw[
        (delay.abs() <= 30)
        & (raw["is_recid"] != "-1")
        & (raw["c_charge_degree"] != "O")
        & ~raw["score_text"].isin(("", "N/A"))
        & (raw["c_charge_desc"] != "")
    ]
