"""Bank marketing (Moro, Cortez, Rita 2014): whether a client subscribes to a term deposit."""

from __future__ import annotations

from fairbench.components.datasets.raw_files import raw_file
from fairbench.data.columns import at_least
from fairbench.data.dataset import Dataset, Datasheet
from fairbench.data.download import Archive
from fairbench.data.tables import RawTable

DATASHEET = Datasheet(
    title="Bank marketing, with the macro-economic columns (Moro, Cortez, Rita 2014)",
    source="UCI Machine Learning Repository, data set 222, DOI 10.24432/C5K306; Decision Support "
    "Systems 62:22-31",
    licence="CC BY 4.0",
    paper_differences="As FairlyUncertain reads it through AIF360: rows with an 'unknown' value "
    "are dropped (30488 of 41188 stay), and the age is replaced by whether it is >= 40; 57 "
    "columns. Ji et al. keep all 41188 rows. `duration` is kept, as in the papers: set "
    "`keep_duration=false` for any other purpose.",
    criticism="The duration of a call is known only with its outcome: it leaks the label, and a "
    "model that needs it cannot be used. pdays = 999 means never contacted. The dropped rows are a "
    "quarter of all, and not missing at random. A subscription is what the bank wants. The cut at "
    "40 is a convention of the papers.",
)
BANK = raw_file("bank/bank-additional-full.csv")
_NUMERIC = (
    "campaign",
    "pdays",
    "previous",
    "emp.var.rate",
    "cons.price.idx",
    "cons.conf.idx",
    "euribor3m",
    "nr.employed",
)
_CATEGORICAL = (
    "job",
    "education",
    "default",
    "housing",
    "loan",
    "contact",
    "month",
    "day_of_week",
    "poutcome",
)


def load(
    archive: Archive,
    *,
    keep_duration: bool = True,
    privileged_age: int = 40,
    keep_sensitive: bool = True,
) -> Dataset:
    """Return the 30488 clients without an unknown value; label 1 is a subscription.

    Parameters
    ----------
    archive : where the raw file is found.
    keep_duration : keep the duration of the call, as the papers do; it leaks the outcome.
    privileged_age : clients of this age or more are privileged; a feature that says so replaces
        the age (FairlyUncertain: 40; AIF360: 25).
    keep_sensitive : keep the age group and the marital status among the features.
    """
    raw = RawTable.read(archive, BANK, width=21, separator=";")
    raw = raw.where((raw.frame != "unknown").all(axis=1))
    age_group = at_least(raw.number("age"), privileged_age, "age")
    marital = raw.category("marital", allowed=("divorced", "married", "single"))
    columns = {name: raw.number(name) for name in _NUMERIC}
    if keep_duration:
        columns |= {"duration": raw.number("duration")}
    columns |= {name: raw.category(name) for name in _CATEGORICAL}
    if keep_sensitive:
        columns |= {"privileged_age": age_group == f"age >= {privileged_age}", "marital": marital}
    return raw.dataset(
        "bank",
        columns,
        {"age": age_group, "marital": marital},
        raw.flag("y", "yes", "no").rename("subscribes"),
        privileged={"marital": "married"},
        target_name="term deposit",
        positive_label="subscribes",
        favourable=1,
    )
