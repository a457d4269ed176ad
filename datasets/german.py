"""German credit (Hofmann 1994): whether a loan is a bad risk."""

from __future__ import annotations

import pandas as pd

from fairbench.data.columns import at_least, binary, categories, labels, numbers, one_of
from fairbench.data.dataset import Dataset, Datasheet, Source, Task
from fairbench.data.download import Archive
from fairbench.data.tables import read_table

DATASHEET = Datasheet(
    title="German credit (Hofmann 1994)",
    source="UCI Machine Learning Repository, data set 144 (Statlog), DOI 10.24432/C5NC77",
    licence="CC BY 4.0",
    paper_differences="`columns=fairlyuncertain` gives the table of AIF360: the age group in "
    "place of the age, no personal status, 57 one-hot columns, and age >= 25 as the privileged "
    "group. Uncertainty Matters cuts at > 25 (`privileged_age='> 25'`) and reads sex from the "
    "personal status. The published score files of Ji et al. hold P(bad) although their label 1 "
    "is good. Here label 1 is always bad.",
    criticism="The 1000 loans are of 1973-1975 in southern Germany, and bad loans are oversampled "
    "to 30 %. The published code book is wrong in several attributes. Sex cannot be read from the "
    "personal status: code A92, which everyone reads as female, also includes single men "
    "(Groemping 2019). Only 149 people are under 25, so the rates of this group have wide "
    "intervals.",
)
GERMAN = Source(
    "german/german.data",
    "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
    ("https://archive.ics.uci.edu/ml/machine-learning-databases/statlog/german/german.data",),
    "https://archive.ics.uci.edu/dataset/144/statlog+german+credit+data",
    size=79_793,
)
_COLUMNS = (
    "status",
    "month",
    "credit_history",
    "purpose",
    "credit_amount",
    "savings",
    "employment",
    "investment_as_income_percentage",
    "personal_status",
    "other_debtors",
    "residence_since",
    "property",
    "age",
    "installment_plans",
    "housing",
    "number_of_credits",
    "skill_level",
    "people_liable_for",
    "telephone",
    "foreign_worker",
    "credit",
)
_NUMERIC = (
    "month",
    "credit_amount",
    "investment_as_income_percentage",
    "residence_since",
    "number_of_credits",
    "people_liable_for",
)
_CATEGORICAL = (
    "status",
    "credit_history",
    "purpose",
    "savings",
    "employment",
    "other_debtors",
    "property",
    "installment_plans",
    "housing",
    "skill_level",
    "telephone",
    "foreign_worker",
)
_SEX = {"A91": "male", "A92": "female", "A93": "male", "A94": "male", "A95": "female"}


def load(
    archive: Archive,
    *,
    columns: str = "fairlyuncertain",
    privileged_age: str = ">= 25",
    keep_sensitive: bool = True,
) -> Dataset:
    """Return the 1000 loans; label 1 is a bad risk, as in the papers, so 0 is favourable.

    Parameters
    ----------
    archive : where the raw file is found.
    columns : ``fairlyuncertain`` has the age group in place of the age, and no personal status (57
        one-hot columns); ``all`` has the 20 attributes of the file (61 columns).
    privileged_age : ``>= 25`` (FairlyUncertain) or ``> 25`` (Uncertainty Matters).
    keep_sensitive : keep the age, or its group, and the personal status among the features.
    """
    one_of("columns", columns, ("fairlyuncertain", "all"))
    one_of("privileged_age", privileged_age, (">= 25", "> 25"))
    file = GERMAN.path
    raw = read_table(archive.read(GERMAN), file, names=_COLUMNS, separator=" ")
    age = numbers(raw, "age", file)
    age_group = at_least(age, 25, "age", strict=privileged_age == "> 25")
    status = categories(raw, "personal_status", file, allowed=tuple(_SEX))
    features = {name: numbers(raw, name, file) for name in _NUMERIC}
    features |= {name: categories(raw, name, file) for name in _CATEGORICAL}
    if keep_sensitive:
        if columns == "all":
            features |= {"age": age, "personal_status": status}
        else:
            features |= {"privileged_age": age_group == f"age {privileged_age}"}
    credit = binary(raw, "credit", file, positive="2", negative="1")
    return Dataset(
        name="german",
        task=Task.BINARY,
        features=pd.DataFrame(features),
        target=credit.rename("credit"),
        sensitive=pd.DataFrame({"age": age_group, "sex": labels(status, _SEX)}),
        privileged={"age": f"age {privileged_age}", "sex": "male"},
        target_name="credit risk",
        positive_label="bad risk",
        favourable=0,
        sources=(GERMAN,),
    )
