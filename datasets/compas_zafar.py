"""COMPAS as Zafar et al. (2017) prepare it: all who pass ProPublica's filter, 14 columns."""

from __future__ import annotations

from fairbench.components.datasets.compas import AGES, COMPAS, filtered
from fairbench.data.dataset import Dataset, Datasheet
from fairbench.data.download import Archive

DATASHEET = Datasheet(
    title="COMPAS with five attributes: charged again (Zafar et al. 2017)",
    source="ProPublica, github.com/propublica/compas-analysis; Broward County, Florida, 2013-2014",
    licence="None stated. Published by ProPublica for re-analysis, from public records",
    paper_differences="Zafar et al. keep the 6172 rows that pass ProPublica's filter, and of each "
    "the age group, race, sex, number of prior charges and degree of the charge. One-hot these are "
    "14 columns, as Kuzucu et al. (2024) print. Zafar et al. go on with African-Americans and "
    "Caucasians alone and one column for each category of two; Kuzucu et al. and this loader keep "
    "everyone.",
    criticism="That of `compas`: the labels are arrests, and policing differs between the groups. "
    "Here race, sex and age are features.",
    family="compas",
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
    raw = filtered(archive, COMPAS)
    people = {
        "age": raw.labels("age_cat", AGES),
        "race": raw.category("race"),
        "sex": raw.category("sex", allowed=("Female", "Male")),
    }
    features = {
        **(people if keep_sensitive else {}),
        "charge_degree": raw.category("c_charge_degree", allowed=("F", "M")),
        "priors_count": raw.number("priors_count"),
    }
    return raw.dataset(
        "compas_zafar",
        features,
        people,
        raw.flag("two_year_recid"),
        privileged={"sex": "Male", "race": "Caucasian", "age": "over 45"},
        target_name="two-year recidivism",
        positive_label="charged again",
        favourable=0,
    )
