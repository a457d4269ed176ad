"""Default of credit card clients (Yeh, Lien 2009): whether the next payment is missed."""

from __future__ import annotations

from fairbench.components.datasets.raw_files import raw_file
from fairbench.data.dataset import Dataset, Datasheet
from fairbench.data.download import Archive
from fairbench.data.tables import RawTable, read_table

DATASHEET = Datasheet(
    title="Default of credit card clients, Taiwan 2005 (Yeh, Lien 2009)",
    source="UCI Machine Learning Repository, data set 350, DOI 10.24432/C55S3H",
    licence="CC BY 4.0",
    paper_differences="As in Le Quy et al. 2022: all 30000 rows, by sex, education and marriage. "
    "The file is the archive's xls file as csv, with its two header lines. The client number is "
    "dropped.",
    criticism="EDUCATION holds the undocumented codes 0, 5 and 6, and MARRIAGE the undocumented "
    "code 0. Here each of these codes is a group. The PAY columns hold -2 and 0, which the code "
    "book does not explain either. The data were recorded during a debt crisis.",
)
CREDIT = raw_file("credit_default/default_of_credit_card_clients.csv")
_NUMERIC = (
    "LIMIT_BAL",
    "AGE",
    *(f"PAY_{month}" for month in (0, 2, 3, 4, 5, 6)),
    *(f"BILL_AMT{month}" for month in range(1, 7)),
    *(f"PAY_AMT{month}" for month in range(1, 7)),
)
_CODED = {
    "sex": {"1": "male", "2": "female"},
    "education": {
        "1": "graduate school",
        "2": "university",
        "3": "high school",
        "4": "others",
        **{code: f"undocumented {code}" for code in "056"},
    },
    "marriage": {"1": "married", "2": "single", "3": "others", "0": "undocumented 0"},
}


def load(archive: Archive, *, keep_sensitive: bool = True) -> Dataset:
    """Return the 30000 clients; label 1 is a default, so 0 is favourable.

    Parameters
    ----------
    archive : where the file is found.
    keep_sensitive : keep sex, education and marriage among the features.
    """
    content = archive.read(CREDIT)
    frame = read_table(content, CREDIT.path, skip=int(b",X1," in content[:8]))
    raw = RawTable(frame, CREDIT, width=25)
    sensitive = {name: raw.labels(name.upper(), names) for name, names in _CODED.items()}
    columns = {name: raw.number(name) for name in _NUMERIC}
    if keep_sensitive:
        columns |= {"male": sensitive["sex"] == "male"}
        columns |= {name: sensitive[name] for name in ("education", "marriage")}
    return raw.dataset(
        "credit_default",
        columns,
        sensitive,
        raw.flag("default payment next month").rename("default"),
        target_name="payment next month",
        positive_label="default",
        favourable=0,
    )
