"""COMPAS as Zafar et al. (2017) prepare it: all who pass ProPublica's filter, 14 columns."""

from __future__ import annotations

import pandas as pd

from fairbench.components.datasets.compas import COMPAS
from fairbench.data.columns import binary, categories, labels, numbers, require_columns
from fairbench.data.dataset import Dataset, Datasheet, Task
from fairbench.data.download import Archive
from fairbench.data.tables import read_table

DATASHEET = Datasheet(
    title="COMPAS with five attributes: charged again (Zafar et al. 2017)",
    source="ProPublica, github.com/propublica/compas-analysis; Broward County, Florida, 2013-2014",
    licence="None stated. Published by ProPublica for re-analysis, from public records",
    paper_differences="Zafar et al. keep the 6172 rows that pass ProPublica's filter, and of each "
    "the age group, race, sex, number of prior charges and degree of the charge. One-hot these are "
    "14 columns, the number that Kuzucu et al. (2024) print. Zafar et al. go on with African-"
    "Americans and Caucasians alone and leave out one column of each category of two; Kuzucu et "
    "al. keep everyone, and so does this loader.",
    criticism="That of `compas`: the labels are arrests, and policing differs between the groups. "
    "Here race, sex and age are features.",
    family="compas",
)
_AGES = {"25 - 45": "25 to 45", "Less than 25": "under 25", "Greater than 45": "over 45"}
_WANTED = (
    *("age_cat", "race", "sex", "priors_count", "c_charge_degree", "two_year_recid"),
    *("days_b_screening_arrest", "is_recid", "score_text"),
)


def load(archive: Archive, *, keep_sensitive: bool = True) -> Dataset:
    """Return the 6172 defendants who pass ProPublica's filter, also without a charge description.

    The reference groups, called privileged, are men, Caucasians and people over 45, as Kuzucu et
    al. have them.

    Parameters
    ----------
    archive : where the raw file is found.
    keep_sensitive : keep sex, race and age group among the features, as both papers do.
    """
    file = COMPAS.path
    raw = read_table(archive.read(COMPAS), file)
    require_columns(raw, _WANTED, file, width=53)
    raw = raw[list(_WANTED)]
    raw = raw[
        (numbers(raw, "days_b_screening_arrest", file, missing="").abs() <= 30)
        & (raw["is_recid"] != "-1")
        & (raw["c_charge_degree"] != "O")
        & ~raw["score_text"].isin(("", "N/A"))
    ].reset_index(drop=True)
    sex = categories(raw, "sex", file, allowed=("Female", "Male"))
    race = categories(raw, "race", file)
    age = labels(categories(raw, "age_cat", file, allowed=tuple(_AGES)), _AGES)
    people = {"age": age, "race": race, "sex": sex}
    features = {
        **(people if keep_sensitive else {}),
        "charge_degree": categories(raw, "c_charge_degree", file, allowed=("F", "M")),
        "priors_count": numbers(raw, "priors_count", file),
    }
    return Dataset(
        name="compas_zafar",
        task=Task.BINARY,
        features=pd.DataFrame(features),
        target=binary(raw, "two_year_recid", file, positive="1", negative="0"),
        sensitive=pd.DataFrame(people),
        privileged={"sex": "Male", "race": "Caucasian", "age": "over 45"},
        target_name="two-year recidivism",
        positive_label="charged again",
        favourable=0,
        sources=(COMPAS,),
    )
