"""Diabetes progression (Efron et al. 2004), embedded in scikit-learn; needs no file."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from fairbench.data.dataset import Dataset, Datasheet, Task
from fairbench.data.download import Archive

DATASHEET = Datasheet(
    title="Diabetes progression (Efron, Hastie, Johnstone, Tibshirani 2004)",
    source="scikit-learn's copy of the data of 'Least Angle Regression', Ann. Statist. 32(2)",
    licence="BSD, as part of scikit-learn",
    paper_differences="It needs no file. Variables are in their own units; scikit-learn's default "
    "scales them. `diabetes_high_progression` cuts the progression at its median, our own cut.",
    criticism="The source codes sex as 1 and 2 without saying which is which. 442 patients are "
    "too few to find differences between groups. Race is not recorded.",
)
TITLES = {
    "diabetes": "Diabetes progression after one year (Efron et al. 2004)",
    "diabetes_high_progression": "Diabetes progression: whether it is over the median (Efron et "
    "al. 2004)",
}


def load(archive: Archive, *, keep_sensitive: bool = True) -> Dataset:
    """Return 442 patients: ten baseline variables, and the disease progression after a year.

    Parameters
    ----------
    archive : unused; the data come with scikit-learn.
    keep_sensitive : keep sex among the features.

    Notes
    -----
    The source codes sex as 1 and 2 without saying which is which, and so do the labels.
    """
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes(as_frame=True, scaled=False)
    features = bunch.data.astype(float)
    second = features.pop("sex") == 2
    if keep_sensitive:
        features["sex_2"] = second
    sex = pd.Categorical.from_codes(second.astype(int), ["sex 1", "sex 2"])
    return Dataset(
        name="diabetes",
        task=Task.REGRESSION,
        features=features,
        target=bunch.target.astype(float).rename("progression"),
        sensitive=pd.DataFrame({"sex": sex}),
        privileged={"sex": "sex 1"},
        target_name="disease progression after one year",
    )


def high_progression(archive: Archive, *, keep_sensitive: bool = True) -> Dataset:
    """Return the 442 patients; label 1 is a progression over the median of all patients.

    Parameters
    ----------
    archive : unused; the data come with scikit-learn.
    keep_sensitive : keep sex among the features.
    """
    data = load(archive, keep_sensitive=keep_sensitive)
    return replace(
        data,
        name="diabetes_high_progression",
        task=Task.BINARY,
        target=(data.target > data.target.median()).astype(int).rename("high_progression"),
        positive_label="over the median",
        favourable=0,
    )
