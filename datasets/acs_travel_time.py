"""American Community Survey: whether the way to work takes over 20 minutes, in two states."""

from __future__ import annotations

import numpy as np

from fairbench.components.datasets.acs import dataset_of
from fairbench.components.datasets.raw_files import raw_file
from fairbench.core.arrays import rng
from fairbench.core.errors import DataError, check_share
from fairbench.data.columns import require_columns
from fairbench.data.dataset import Dataset, Datasheet
from fairbench.data.download import Archive
from fairbench.data.tables import parquet_table

DATASHEET = Datasheet(
    title="ACS travel time, two states (Ding, Hardt, Miller, Schmidt 2021)",
    source="United States Census Bureau, ACS PUMS, through the package folktables. File of the "
    "FairGround collection (github.com/reliable-ai/fairground-dataset-cache)",
    licence="United States government work, in the public domain. folktables: MIT",
    paper_differences="The whole table of ACSTravelTime for two states, with 216385 workers. Codes "
    "of race and sex start at 0 in the file; the loader adds 1. States and year are not named; by "
    "ST (0 and 20) and the areas they are California and Michigan.",
    criticism="The 12836 people who work at home count as having a short way. PUMA and POWPUMA "
    "number areas within a state: 12 numbers are different places in the two states. There are no "
    "person weights, so rates describe the sample. Nine rows are of Alaska Natives. 'Not "
    "applicable' is code 0.",
    family="acs",
)
TITLES = {
    "acs_travel_time": "ACS travel time to work over 20 minutes, two states (Ding et al. 2021)",
    "acs_travel_time_sample": "ACS travel time to work over 20 minutes, a twentieth of the "
    "workers of acs_travel_time (Ding et al. 2021)",
}
TRAVEL = raw_file("fairground/folktables_acstraveltime_small.parquet")
_COLUMNS = (
    *("AGEP", "SCHL", "MAR", "SEX", "DIS", "ESP", "MIG", "RELP", "RAC1P", "PUMA", "ST", "CIT"),
    *("OCCP", "JWTR", "POWPUMA", "POVPIP"),
)


def load(
    archive: Archive,
    *,
    codes: str = "categorical",
    keep_sensitive: bool = True,
    share: float = 1.0,
) -> Dataset:
    """Return the workers of two states; label 1 is a way to work of over 20 minutes.

    Parameters
    ----------
    archive : where the file is found.
    codes : ``categorical`` or ``numeric``.
    keep_sensitive : keep sex and race among the features.
    share : the share of the rows that is kept; the same rows are drawn every time.
    """
    if share != 1:
        check_share("dataset.share", share)
    file = TRAVEL.path
    raw = parquet_table(archive.read(TRAVEL), file).to_pandas()
    require_columns(raw, (*_COLUMNS, "JWMNP"), file, width=len(_COLUMNS) + 1)
    for name in raw:
        if not np.issubdtype(raw[name].dtype, np.integer):
            raise DataError(f"{file}: column '{name}' is {raw[name].dtype}, not whole numbers")
    raw[["RAC1P", "SEX"]] += 1
    raw = raw[rng(0, "share", "acs_travel_time").random(len(raw)) < share].reset_index(drop=True)
    target = raw.pop("JWMNP")
    name = "acs_travel_time"
    features = raw[list(_COLUMNS)].astype(np.int32)
    return dataset_of(features, target, "travel_time", name, codes, keep_sensitive, (TRAVEL,))
