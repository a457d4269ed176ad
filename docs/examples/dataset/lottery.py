"""An invented lottery: who won a prize, by age, sex and the number of tickets bought."""

from __future__ import annotations

from fairbench.data.dataset import Dataset, Datasheet, Source
from fairbench.data.download import Archive
from fairbench.data.tables import RawTable

DATASHEET = Datasheet(
    title="Lottery, an example",
    source="Drawn at random for this example; docs/examples/dataset/lottery.csv",
    licence="MIT, as fairbench",
    paper_differences="No paper uses it.",
    criticism="Nobody in it exists.",
)
LOTTERY = Source(
    "lottery/lottery.csv",
    sha256="75b3f4089ed781cafd3accc7c4eeb14c71c8f8f50a854c814e859ab11c75563c",
)


def load(archive: Archive, *, keep_sensitive: bool = True) -> Dataset:
    """Return the 240 people who took part.

    Parameters
    ----------
    archive : where the raw file is found.
    keep_sensitive : keep sex among the features.
    """
    raw = RawTable.read(archive, LOTTERY, width=4)
    sex = raw.category("sex", allowed=("female", "male"))
    columns = {name: raw.number(name) for name in ("age", "tickets")}
    if keep_sensitive:
        columns |= {"male": sex == "male"}
    return raw.dataset(
        "lottery",
        columns,
        {"sex": sex},
        raw.flag("won", positive="yes", negative="no"),
        privileged={"sex": "male"},
        target_name="won a prize",
        positive_label="yes",
        favourable=1,
        redistributable=True,  # nobody in it exists: results may be passed on with its labels
    )
