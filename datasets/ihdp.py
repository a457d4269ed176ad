"""Infant Health and Development Program (Hill 2011): simulated test scores of real infants."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fairbench.components.datasets.raw_files import raw_file
from fairbench.core.errors import UserError
from fairbench.data.columns import target_scale_of
from fairbench.data.dataset import Dataset, Datasheet, Task
from fairbench.data.download import Archive
from fairbench.data.tables import RawTable

DATASHEET = Datasheet(
    title="IHDP, semi-synthetic (Hill 2011), realisations 1 to 10",
    source="AMLab-Amsterdam/CEVAE (Louizos et al. 2017), made with the NPCI package of V. Dorie",
    licence="None stated in CEVAE; the NPCI package is GPL (>= 2)",
    paper_differences="As in FairlyUncertain: the target is the factual outcome of realisation 1, "
    "the features are the treatment and x1 to x25 (26 columns). The target is scaled to [0, 1] "
    "over all rows. `truth` holds the true mean (mu0 or mu1, by the treatment received) and "
    "standard deviation (1 in the source's unit), unused in the paper.",
    criticism="The covariates are of 747 real low-birth-weight infants, but the outcomes are "
    "simulated. The noise is the same for everyone by construction. The source does not say which "
    "sex is coded 1. x14 is coded 1 and 2, not 0 and 1. Treated infants of non-white mothers were "
    "removed to make the trial unbalanced.",
)
SOURCES = {number: raw_file(f"ihdp/ihdp_npci_{number}.csv") for number in range(1, 11)}
_SEX = {"1": "sex 1", "0": "sex 0"}
_COVARIATES = tuple(f"x{number}" for number in range(1, 26))
_COLUMNS = ("treatment", "y_factual", "y_cfactual", "mu0", "mu1", *_COVARIATES)


def load(
    archive: Archive,
    *,
    realisation: int = 1,
    target_scale: str = "minmax",
    keep_sensitive: bool = True,
) -> Dataset:
    """Return the 747 infants with the factual outcome of a realisation, and its true mean and sd.

    Parameters
    ----------
    archive : where the raw files are found.
    realisation : 1 to 10.
    target_scale : ``minmax`` scales by the minimum and maximum of the realisation; or ``none``.
    keep_sensitive : keep sex (x7) among the features.
    """
    if realisation not in SOURCES:
        raise UserError(f"dataset.realisation is {realisation}: it must be 1 to {len(SOURCES)}")
    source = SOURCES[realisation]
    raw = RawTable.read(archive, source, names=_COLUMNS)
    treated = raw.flag("treatment")
    sex = raw.labels("x7", _SEX)
    for name in _COVARIATES[7:]:
        raw.category(name, allowed=("1", "2") if name == "x14" else ("0", "1"))
    values = pd.DataFrame({name: raw.number(name) for name in _COLUMNS})
    low, span = target_scale_of(values["y_factual"], target_scale)
    left_out = () if keep_sensitive else ("x7",)
    mean = values["mu1"].where(treated, values["mu0"])
    return raw.dataset(
        "ihdp" if realisation == 1 else f"ihdp_{realisation}",
        values[["treatment", *_COVARIATES]].drop(columns=list(left_out)),
        {"sex": sex},
        (values["y_factual"] - low) / span,
        task=Task.REGRESSION,
        target_name="cognitive score",
        truth=pd.DataFrame({"mean": (mean - low) / span, "sd": np.full(len(values), 1 / span)}),
    )
