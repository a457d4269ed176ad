"""Bank marketing (Moro, Cortez, Rita 2014): whether a client subscribes to a term deposit."""

from __future__ import annotations

import pandas as pd

from fairbench.data.columns import at_least, binary, categories, numbers, require_columns
from fairbench.data.dataset import Dataset, Datasheet, Source, Task
from fairbench.data.download import Archive
from fairbench.data.tables import read_table

DATASHEET = Datasheet(
    title="Bank marketing, with the macro-economic columns (Moro, Cortez, Rita 2014)",
    source="UCI Machine Learning Repository, data set 222, DOI 10.24432/C5K306; Decision Support "
    "Systems 62:22-31",
    licence="CC BY 4.0",
    paper_differences="The loader follows FairlyUncertain, which reads the data through AIF360. "
    "It drops rows with an 'unknown' value (30488 of 41188 stay), and replaces the age by whether "
    "it is >= 40. This gives 57 columns. Ji et al. keep all 41188 rows. `duration` is kept, as in "
    "the papers. Set `keep_duration=false` for any other purpose.",
    criticism="The duration of a call is known only when the call has ended, and then its outcome "
    "is known too. The duration leaks the label, and a model that needs it cannot be used in "
    "practice. pdays = 999 means never contacted. The rows dropped for an 'unknown' value are a "
    "quarter of all rows, and these values are not missing at random. A subscription is an "
    "outcome that the bank wants. Comparing clients under and over the age of 40 is a convention "
    "of the papers.",
)
BANK = Source(
    "bank/bank-additional-full.csv",
    "74adfc578bf77a7ff4bb1ba4a9f8709d9e3c6907342959c2c8416847e0afb4d8",
    ("https://archive.ics.uci.edu/ml/machine-learning-databases/00222/bank-additional.zip",),
    "https://archive.ics.uci.edu/dataset/222/bank+marketing",
    member="bank-additional/bank-additional-full.csv",
    size=5_834_924,
)
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
    file = BANK.path
    raw = read_table(archive.read(BANK), file, separator=";")
    wanted = ("age", "duration", "marital", "y", *_NUMERIC, *_CATEGORICAL)
    require_columns(raw, wanted, file, width=21)
    raw = raw[(raw != "unknown").all(axis=1)]
    age_group = at_least(numbers(raw, "age", file), privileged_age, "age")
    marital = categories(raw, "marital", file, allowed=("divorced", "married", "single"))
    columns = {name: numbers(raw, name, file) for name in _NUMERIC}
    if keep_duration:
        columns |= {"duration": numbers(raw, "duration", file)}
    columns |= {name: categories(raw, name, file) for name in _CATEGORICAL}
    if keep_sensitive:
        columns |= {"privileged_age": age_group == f"age >= {privileged_age}", "marital": marital}
    target = binary(raw, "y", file, positive="yes", negative="no")
    return Dataset(
        name="bank",
        task=Task.BINARY,
        features=pd.DataFrame(columns).reset_index(drop=True),
        target=target.rename("subscribes").reset_index(drop=True),
        sensitive=pd.DataFrame({"age": age_group, "marital": marital}).reset_index(drop=True),
        privileged={"age": f"age >= {privileged_age}", "marital": "married"},
        target_name="term deposit",
        positive_label="subscribes",
        favourable=1,
        sources=(BANK,),
    )
