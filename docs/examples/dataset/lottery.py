"""An invented lottery: who won a prize, by age, sex and the number of tickets bought."""

from __future__ import annotations

import pandas as pd

from fairbench.data.columns import categories, numbers, require_columns
from fairbench.data.dataset import Dataset, Datasheet, Source, Task
from fairbench.data.download import Archive
from fairbench.data.tables import read_table

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
_COLUMNS = ("age", "sex", "tickets", "won")


def load(archive: Archive, *, keep_sensitive: bool = True) -> Dataset:
    """Return the 240 people who took part.

    Parameters
    ----------
    archive : where the raw file is found.
    keep_sensitive : keep sex among the features.
    """
    raw = read_table(archive.read(LOTTERY), LOTTERY.path)
    require_columns(raw, _COLUMNS, LOTTERY.path)
    sex = categories(raw, "sex", LOTTERY.path, allowed=("female", "male"))
    won = categories(raw, "won", LOTTERY.path, allowed=("no", "yes"))
    columns = {name: numbers(raw, name, LOTTERY.path) for name in ("age", "tickets")}
    if keep_sensitive:
        columns |= {"male": sex == "male"}
    return Dataset(
        name="lottery",
        task=Task.BINARY,
        features=pd.DataFrame(columns),
        target=(won == "yes").astype(int),
        sensitive=pd.DataFrame({"sex": sex}),
        privileged={"sex": "male"},
        target_name="won a prize",
        positive_label="yes",
        favourable=1,
        sources=(LOTTERY,),
        redistributable=True,  # nobody in it exists: results may be passed on with its labels
    )
