"""German credit (Hofmann 1994): whether a loan is a bad risk."""

from __future__ import annotations

from fairbench.components.datasets.raw_files import raw_file
from fairbench.data.columns import at_least, labels, one_of
from fairbench.data.dataset import Dataset, Datasheet
from fairbench.data.download import Archive
from fairbench.data.tables import RawTable

DATASHEET = Datasheet(
    title="German credit (Hofmann 1994)",
    source="UCI Machine Learning Repository, data set 144 (Statlog), DOI 10.24432/C5NC77",
    licence="CC BY 4.0",
    paper_differences="`columns=fairlyuncertain` gives the table of AIF360: the age group in "
    "place of the age, no personal status, 57 one-hot columns, and age >= 25 as the privileged "
    "group. Uncertainty Matters cuts at > 25 (`privileged_age='> 25'`) and reads sex from the "
    "personal status. Here label 1 is always bad; the score files of Ji et al. hold P(bad) "
    "although their label 1 is good.",
    criticism="The 1000 loans are of 1973-1975 in southern Germany, and bad loans are oversampled "
    "to 30 %. The published code book is wrong in several attributes. Sex cannot be read from the "
    "personal status: code A92, which everyone reads as female, also includes single men "
    "(Groemping 2019). Only 149 people are under 25, so the rates of this group have wide "
    "intervals.",
)
GERMAN = raw_file("german/german.data")
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
_APART = ("personal_status", "age", "credit")
_CATEGORICAL = [name for name in _COLUMNS if name not in (*_NUMERIC, *_APART)]
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
    raw = RawTable.read(archive, GERMAN, names=_COLUMNS, separator=" ")
    age = raw.number("age")
    age_group = at_least(age, 25, "age", strict=privileged_age == "> 25")
    status = raw.category("personal_status", allowed=_SEX)
    features = {name: raw.number(name) for name in _NUMERIC}
    features |= {name: raw.category(name) for name in _CATEGORICAL}
    if keep_sensitive:
        if columns == "all":
            features |= {"age": age, "personal_status": status}
        else:
            features |= {"privileged_age": age_group == f"age {privileged_age}"}
    return raw.dataset(
        "german",
        features,
        {"age": age_group, "sex": labels(status, _SEX)},
        raw.flag("credit", "2", "1"),
        privileged={"sex": "male"},
        target_name="credit risk",
        positive_label="bad risk",
        favourable=0,
    )
