"""Ricci v. DeStefano (2006): whether a firefighter passes the promotion examination."""

from __future__ import annotations

import pandas as pd

from fairbench.data.columns import categories, labels, numbers, require_columns
from fairbench.data.dataset import Dataset, Datasheet, Source, Task
from fairbench.data.download import Archive
from fairbench.data.tables import read_table

DATASHEET = Datasheet(
    title="Ricci: the New Haven promotion examinations of 2003 (Miao 2010)",
    source="Journal of Statistics Education Data Archive; Ricci v. DeStefano, 554 F. Supp. 2d 142",
    licence="Free for educational use (JSE archive)",
    paper_differences="The loader follows Friedler et al. and Ji et al.: a candidate passes with "
    "Combine >= 70 (56 of 118). The combined score stays among the features "
    "(`keep_combined=false` leaves it out). Ji et al. compare white candidates with everyone "
    "else, which is the attribute `race_white`.",
    criticism="The label is a function of the features: Combine = 0.6 Written + 0.4 Oral, cut at "
    "70. So every model that sees the combined score can be right for everyone. There are only "
    "118 candidates. To pass is not to be promoted: promotion depended on rank and vacancies, and "
    "nobody was promoted. The csv file is a conversion of the archive's fixed-width text.",
)
RICCI = Source(
    "ricci/ricci.csv",
    "f6f7eb66c88f5ec047c81cd0d1bf68536988c38b9212715c33109f1f08592b29",
    (),
    "https://github.com/algofairness/fairness-comparison",
    size=3_320,
)
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
    file = RICCI.path
    raw = read_table(archive.read(RICCI), file)
    require_columns(raw, ("Position", "Oral", "Written", "Race", "Combine"), file, width=5)
    race = labels(categories(raw, "Race", file, allowed=tuple(_RACES)), _RACES)
    white = labels(raw["Race"], {"W": "White", "B": "not White", "H": "not White"})
    combined = numbers(raw, "Combine", file)
    columns = {name: numbers(raw, name, file) for name in ("Oral", "Written")}
    position = categories(raw, "Position", file, allowed=("Captain", "Lieutenant"))
    columns |= {"captain": position == "Captain"}
    if keep_combined:
        columns |= {"Combine": combined}
    if keep_sensitive:
        columns |= {"race": race}
    return Dataset(
        name="ricci",
        task=Task.BINARY,
        features=pd.DataFrame(columns),
        target=(combined >= _PASS).astype(int).rename("pass"),
        sensitive=pd.DataFrame({"race": race, "race_white": white}),
        privileged={"race": "White", "race_white": "White"},
        target_name="promotion examination",
        positive_label="passes",
        favourable=1,
        sources=(RICCI,),
    )
