"""South German credit (Groemping 2019): German credit with its coding errors corrected."""

from __future__ import annotations

from fairbench.components.datasets.raw_files import raw_file
from fairbench.data.columns import at_least, one_of
from fairbench.data.dataset import Dataset, Datasheet
from fairbench.data.download import Archive
from fairbench.data.tables import RawTable

DATASHEET = Datasheet(
    title="South German credit: German credit with its codes corrected (Groemping 2019)",
    source="UCI Machine Learning Repository, data set 522. File of the FairGround collection "
    "(github.com/reliable-ai/fairground-dataset-cache); U. Groemping, 'South German Credit Data: "
    "Correcting a Widely Used Data Set', Beuth University, report 4/2019",
    licence="CC BY 4.0",
    paper_differences="The papers use `german`, the same 1000 loans with wrong meanings of several "
    "attributes' codes. Label 1 is bad (300 loans), as there. `privileged_age` sets the cut to >= "
    "25 or to > 25.",
    criticism="The 1000 loans are of 1973 to 1975 in southern Germany, and bad loans are "
    "oversampled to 30 %, so no rate is a bank's. Sex is not an attribute: one of the four labels "
    "of its column holds women who are not single and single men (310 rows). 150 people are under "
    "25 and 37 are foreign workers, whose codes the published german exchanges.",
    family="german",
)
SOUTH = raw_file("fairground/south_german_credit.parquet")
_NUMERIC = ("duration", "amount")
_CATEGORICAL = (
    *("status", "credit_history", "purpose", "savings", "employment_duration", "installment_rate"),
    *("other_debtors", "present_residence", "property", "other_installment_plans", "housing"),
    *("number_credits", "job", "people_liable", "telephone"),
)


def load(
    archive: Archive, *, privileged_age: str = ">= 25", keep_sensitive: bool = True
) -> Dataset:
    """Return the 1000 loans; label 1 is a bad risk, so 0 is favourable.

    Parameters
    ----------
    archive : where the file is found.
    privileged_age : ``>= 25`` or ``> 25``.
    keep_sensitive : keep age, foreign worker and personal status among the features.
    """
    one_of("privileged_age", privileged_age, (">= 25", "> 25"))
    raw = RawTable.read(archive, SOUTH, width=21)
    age = raw.number("age")
    status = raw.category("personal_status_sex")
    foreign = raw.category("foreign_worker", allowed=("no", "yes"))
    columns = {name: raw.number(name) for name in _NUMERIC}
    columns |= {name: raw.category(name) for name in _CATEGORICAL}
    if keep_sensitive:
        columns |= {"age": age, "foreign_worker": foreign, "personal_status_sex": status}
    groups = at_least(age, 25, "age", strict=privileged_age == "> 25")
    return raw.dataset(
        "south_german_credit",
        columns,
        {"age": groups, "foreign_worker": foreign},
        raw.flag("credit_risk", "bad", "good"),
        target_name="credit risk",
        positive_label="bad risk",
        favourable=0,
    )
