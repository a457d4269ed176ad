"""COMPAS (Angwin et al., ProPublica 2016): whether a defendant is charged again in two years."""

from __future__ import annotations

import pandas as pd

from fairbench.data import Dataset, Source, Task
from fairbench.download import Archive
from fairbench.tabular import categories, labels, numbers, read_table, require_columns

COMPAS = Source(
    "compas/compas-scores-two-years.csv",
    "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
    (
        "https://raw.githubusercontent.com/propublica/compas-analysis/master/"
        "compas-scores-two-years.csv",
    ),
    "https://github.com/propublica/compas-analysis",
)
_NUMERIC = ("age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count")
_CATEGORICAL = ("age_cat", "c_charge_degree", "c_charge_desc")
_FILTER = ("days_b_screening_arrest", "is_recid", "score_text")
_AGES = {"25 - 45": "25 to 45", "Less than 25": "under 25", "Greater than 45": "over 45"}


def load(archive: Archive, *, keep_sensitive: bool = True) -> Dataset:
    """Return the 6167 defendants left by ProPublica's filter and a known charge description.

    Names, dates of birth and case numbers are dropped while reading. Privileged, in the sense of
    being the reference, are men (FairlyUncertain), Caucasians and the age group 25 to 45.

    Parameters
    ----------
    archive : where the raw file is found.
    keep_sensitive : keep sex, race and age group among the features, as the papers do.
    """
    file = COMPAS.path
    raw = read_table(archive.read(COMPAS), file)
    wanted = (*_NUMERIC, *_CATEGORICAL, *_FILTER, "sex", "race", "two_year_recid")
    require_columns(raw, wanted, file)
    raw = raw[list(wanted)]
    delay = numbers(raw, "days_b_screening_arrest", file)
    kept = (
        (delay.abs() <= 30)
        & (raw["is_recid"] != "-1")
        & (raw["c_charge_degree"] != "O")
        & (raw["score_text"] != "N/A")
        & (raw["c_charge_desc"] != "")
    )
    raw = raw[kept].reset_index(drop=True)
    sex = categories(raw, "sex", file, allowed=("Female", "Male"))
    race = categories(raw, "race", file)
    age = labels(categories(raw, "age_cat", file, allowed=tuple(_AGES)), _AGES)
    features = {name: numbers(raw, name, file) for name in _NUMERIC}
    features |= {name: categories(raw, name, file) for name in _CATEGORICAL}
    if keep_sensitive:
        features |= {"male": sex == "Male", "race": race}
    else:
        del features["age"], features["age_cat"]
    outcome = categories(raw, "two_year_recid", file, allowed=("0", "1"))
    return Dataset(
        name="compas",
        task=Task.BINARY,
        features=pd.DataFrame(features),
        target=(outcome == "1").astype(int).rename("two_year_recid"),
        sensitive=pd.DataFrame({"sex": sex, "race": race, "age": age}),
        privileged={"sex": "Male", "race": "Caucasian", "age": "25 to 45"},
        target_name="two-year recidivism",
        positive_label="charged again",
        favourable=0,
        sources=(COMPAS,),
    )
