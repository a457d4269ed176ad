"""Medical insurance charges (Lantz 2013): the bill for a year of treatment."""

from __future__ import annotations

from fairbench.components.datasets.raw_files import raw_file
from fairbench.data.columns import scaled
from fairbench.data.dataset import Dataset, Datasheet, Task
from fairbench.data.download import Archive
from fairbench.data.tables import RawTable

DATASHEET = Datasheet(
    title="Insurance charges (Lantz, 'Machine Learning with R', 2013)",
    source="github.com/stedy/Machine-Learning-with-R-datasets; simulated by the book's author",
    licence="None stated",
    paper_differences="As in FairlyUncertain: sex and smoking are one column each, and three of "
    "the four regions are columns (`drop_first`), 8 in all. Charges are scaled to [0, 1] by their "
    "minimum 1121.8739 and maximum 63770.42801 over all rows.",
    criticism="The data are simulated from United States demographics, although often presented "
    "as records of patients. One row occurs twice. Smoking explains most of the charges.",
)
INSURANCE = raw_file("insurance/insurance.csv")


def load(
    archive: Archive,
    *,
    drop_first: bool = True,
    target_scale: str = "minmax",
    keep_sensitive: bool = True,
) -> Dataset:
    """Return the 1338 beneficiaries.

    Parameters
    ----------
    archive : where the raw file is found.
    drop_first : make a column of each region except the first, as FairlyUncertain does; otherwise
        the region is one categorical column.
    target_scale : ``minmax`` scales by the minimum and maximum of all rows; ``none`` keeps dollars.
    keep_sensitive : keep sex among the features.
    """
    raw = RawTable.read(archive, INSURANCE, width=7)
    sex = raw.category("sex", allowed=("female", "male"))
    region = raw.category("region")
    columns = {name: raw.number(name) for name in ("age", "bmi", "children")}
    columns |= {"smoker": raw.flag("smoker", "yes", "no")}
    if drop_first:
        columns |= {f"region_{name}": region == name for name in region.cat.categories[1:]}
    else:
        columns |= {"region": region}
    if keep_sensitive:
        columns |= {"male": sex == "male"}
    return raw.dataset(
        "insurance",
        columns,
        {"sex": sex},
        scaled(raw.number("charges"), target_scale),
        privileged={"sex": "male"},
        task=Task.REGRESSION,
        target_name="medical charges",
    )
