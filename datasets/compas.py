"""COMPAS (Angwin et al., ProPublica 2016): who is charged again within two years."""

from __future__ import annotations

from fairbench.components.datasets.raw_files import raw_file
from fairbench.core.errors import DataError
from fairbench.data.dataset import Dataset, Datasheet, Source
from fairbench.data.download import Archive
from fairbench.data.tables import RawTable

DATASHEET = Datasheet(
    title="COMPAS recidivism, general and violent (Angwin, Larson, Mattu, Kirchner 2016)",
    source="ProPublica, github.com/propublica/compas-analysis; Broward County, Florida, 2013-2014",
    licence="None stated. Published by ProPublica for re-analysis, from public records",
    paper_differences="As FairlyUncertain reads it through AIF360: the rows that pass ProPublica's "
    "filter and have a charge description, with sex as one column and the rest one-hot encoded; "
    "406 columns. Names, dates of birth and case numbers are dropped while reading. The violent "
    "file is filtered by `score_text`, as in Friedler et al. and Ji et al. (4010 rows); ProPublica "
    "filters it by `v_score_text` (4020 rows).",
    criticism="The labels are arrests, not crimes, and policing differs between the groups. People "
    "with less than two years of follow-up were kept only if they reoffended, which raises the "
    "base rate of the two-year file from 36 % to 45 % (Barenstein 2019). The risk scores were made "
    "for pretrial decisions but are judged on another outcome (Bao et al. 2021, 'It's "
    "COMPASlicated'). Charge descriptions make up most of the one-hot columns. The raw files name "
    "real persons.",
)
TITLES = {
    "compas": "COMPAS: charged again within two years (Angwin et al. 2016)",
    "compas_violent": "COMPAS: charged with a violent crime within two years (Angwin et al. 2016)",
}
COMPAS = raw_file("compas/compas-scores-two-years.csv")
VIOLENT = raw_file("compas/compas-scores-two-years-violent.csv")
_NUMERIC = ("age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count")
_CATEGORICAL = ("age_cat", "c_charge_degree", "c_charge_desc")
_FILTER = ("days_b_screening_arrest", "is_recid", "score_text", "sex", "race", "two_year_recid")
AGES = {"25 - 45": "25 to 45", "Less than 25": "under 25", "Greater than 45": "over 45"}


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
    target = "two-year violent recidivism"
    return _load(archive, VIOLENT, "compas_violent", target, keep_sensitive=keep_sensitive)


def _load(
    archive: Archive, source: Source, name: str, target_name: str, *, keep_sensitive: bool
) -> Dataset:
    raw = filtered(archive, source)
    raw = raw.where(raw.text("c_charge_desc") != "")
    sex = raw.category("sex", allowed=("Female", "Male"))
    race = raw.category("race")
    features = {column: raw.number(column) for column in _NUMERIC}
    features |= {column: raw.category(column) for column in _CATEGORICAL}
    if keep_sensitive:
        features |= {"male": sex == "Male", "race": race}
    else:
        del features["age"], features["age_cat"]
    return raw.dataset(
        name,
        features,
        {"sex": sex, "race": race, "age": raw.labels("age_cat", AGES)},
        raw.flag("two_year_recid"),
        privileged={"sex": "Male", "race": "Caucasian"},
        target_name=target_name,
        positive_label="charged again",
        favourable=0,
    )


def filtered(archive: Archive, source: Source) -> RawTable:
    """Return the rows that pass ProPublica's filter; refuse a repeated column that differs."""
    raw = RawTable.read(archive, source, width=54 if source is VIOLENT else 53)
    for column in (*_NUMERIC, *_CATEGORICAL, *_FILTER):
        again = f"{column}.1"
        if again in raw.frame and (raw.text(column) != raw.frame[again]).any():
            raise DataError(f"{source.path}: the two columns named '{column}' differ")
    return raw.where(
        (raw.number("days_b_screening_arrest", missing="").abs() <= 30)
        & (raw.text("is_recid") != "-1")
        & (raw.text("c_charge_degree") != "O")
        & ~raw.text("score_text").isin(("", "N/A"))
    )
