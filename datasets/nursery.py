"""Nursery school applications (Olave et al. 1989): the rank of each, in several classes."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fairbench.components.datasets.raw_files import raw_file
from fairbench.data.columns import one_of
from fairbench.data.dataset import Dataset, Datasheet, Task
from fairbench.data.download import Archive
from fairbench.data.tables import RawTable

DATASHEET = Datasheet(
    title="Nursery school applications in Ljubljana (Olave, Rajkovic, Bohanec 1989)",
    source="UCI Machine Learning Repository, data set 76, DOI 10.24432/C5P88W. File of the "
    "FairGround collection (github.com/reliable-ai/fairground-dataset-cache)",
    licence="CC BY 4.0",
    paper_differences="The classes are in the order of their rank: `not_recom`, recommended, "
    "priority, `spec_prior`. The class recommended combines `very_recom` with the 2 rows of "
    "recommend; `rank=five` keeps these two apart. `rank=two` (`dataset=nursery_priority`) asks "
    "whether the class is `spec_prior`, our own cut.",
    criticism="Rows are not people, but all 12960 combinations of eight attributes, ranked by an "
    "expert system: the class is a function of the features, and a group's rate describes the "
    "list. The family's finances stand in for an attribute of a person. `health=not_recom` alone "
    "decides the class `not_recom`.",
)
TITLES = {
    "nursery": "Nursery school applications: their rank in four classes (Olave et al. 1989)",
    "nursery_priority": "Nursery school applications: special priority (Olave et al. 1989)",
}
NURSERY = raw_file("fairground/nursery.parquet")
_FEATURES = ("parents", "has_nurs", "form", "children", "housing", "social", "health")
_FINANCE = {"convenient": "convenient", "inconv": "inconvenient"}
_RANKS = ("not_recom", "recommend", "very_recom", "priority", "spec_prior")
_MERGED = ("not_recom", "recommended", "priority", "spec_prior")


def load(archive: Archive, *, rank: str = "four", keep_sensitive: bool = True) -> Dataset:
    """Return the 12960 applications; the class is how strongly a place is recommended.

    Parameters
    ----------
    archive : where the file is found.
    rank : ``four`` classes; ``five``, of which one has two rows; or ``two``: label 1 is special
        priority.
    keep_sensitive : keep the family's finances among the features.
    """
    one_of("rank", rank, ("two", "four", "five"))
    raw = RawTable.read(archive, NURSERY, width=9)
    finance = raw.labels("finance", _FINANCE)
    columns = {name: raw.category(name) for name in _FEATURES}
    if keep_sensitive:
        columns["finance"] = finance
    code = np.array([_RANKS.index(each) for each in raw.category("class", allowed=_RANKS)])
    if rank == "four":
        code -= code >= _RANKS.index("very_recom")
    elif rank == "two":
        code = (code == _RANKS.index("spec_prior")).astype(int)
    classes = {"two": (), "four": _MERGED, "five": _RANKS}[rank]
    return raw.dataset(
        "nursery",
        columns,
        {"finance": finance},
        pd.Series(code, name="rank"),
        task=Task.MULTICLASS if classes else Task.BINARY,
        target_name="recommendation of a place",
        positive_label="" if classes else "special priority",
        favourable=None if classes else 1,
        classes=classes,
        ordered=bool(classes),
    )
