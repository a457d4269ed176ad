"""Ricci v. DeStefano (2006): whether a firefighter passes the promotion examination."""

from __future__ import annotations

from fairbench.components.datasets.raw_files import raw_file
from fairbench.data.columns import labels
from fairbench.data.dataset import Dataset, Datasheet
from fairbench.data.download import Archive
from fairbench.data.tables import RawTable

DATASHEET = Datasheet(
    title="Ricci: the New Haven promotion examinations of 2003 (Miao 2010)",
    source="Journal of Statistics Education Data Archive; Ricci v. DeStefano, 554 F. Supp. 2d 142",
    licence="Free for educational use (JSE archive)",
    paper_differences="As in Friedler et al. and Ji et al., a candidate passes with Combine >= 70 "
    "(56 of 118). The combined score stays among the features (`keep_combined=false` leaves it "
    "out). Ji et al. compare white candidates with everyone else, which is the attribute "
    "`race_white`.",
    criticism="The label is a function of the features: Combine = 0.6 Written + 0.4 Oral, cut at "
    "70. So a model that sees the combined score can be right for everyone. Nobody was promoted. "
    "The csv file is a conversion of the archive's fixed-width text.",
)
RICCI = raw_file("ricci/ricci.csv")
_RACES = {"W": "White", "B": "Black", "H": "Hispanic"}
_PASS = 70.0


def load(archive: Archive, *, keep_combined: bool = True, keep_sensitive: bool = True) -> Dataset:
    """Return the 118 candidates; label 1 is a combined score of 70 or more.

    Parameters
    ----------
    archive : where the file is found.
    keep_combined : keep the combined score, which determines the label, as the papers do.
    keep_sensitive : keep race among the features.
    """
    raw = RawTable.read(archive, RICCI, width=5)
    race = raw.labels("Race", _RACES)
    white = labels(raw.text("Race"), {"W": "White", "B": "not White", "H": "not White"})
    combined = raw.number("Combine")
    columns = {name: raw.number(name) for name in ("Oral", "Written")}
    columns |= {"captain": raw.flag("Position", "Captain", "Lieutenant")}
    if keep_combined:
        columns |= {"Combine": combined}
    if keep_sensitive:
        columns |= {"race": race}
    return raw.dataset(
        "ricci",
        columns,
        {"race": race, "race_white": white},
        (combined >= _PASS).rename("pass"),
        target_name="promotion examination",
        positive_label="passes",
        favourable=1,
    )
