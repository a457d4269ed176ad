"""The columns of the long table of metrics: their names, their types, and their settings in words.

A value is of a metric, of everyone or of a group of an attribute, and at a setting: a share
abstained on, a number of bins, a level. Each kind of setting is a column of its own, empty where
the metric does not depend on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

STATUSES = ("ok", "insufficient", "undefined", "invalid")
KEYS = ("repeat", "fold", "variant")
# What a metric was taken at, with the type of each column.
SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "rate": "float64",  # share of rows abstained on
        "feature": "category",
        "bins": "Int64",  # bins of a diagram or a calibration error
        "bin": "Int64",  # which of them, from 0
        "binning": "category",  # bins of equal "width" or equal "mass"
        "variants": "Int64",  # how many variants of a method were compared
        "quantile": "float64",  # of the individuals
        "level": "float64",  # probability of a prediction interval
        "epsilon": "float64",  # the gap that makes no practical difference
        "band": "float64",  # the distance of a ratio from 1 that does not
        "constraint": "category",  # the metric that thresholds keep small
        "relaxation": "float64",  # how large they let it be
        "outcome": "category",  # TN, FP, FN, TP
        "k": "Int64",  # nearest neighbours
    }
)
COLUMNS = (
    *("metric", "attribute", "group", "value", "lower", "upper", "n", "status", "reason"),
    *SETTINGS,
)
TEXTS = (  # columns of few different texts, which a file holds once each
    *("variant", "metric", "attribute", "group", "status", "reason"),
    *(name for name, dtype in SETTINGS.items() if dtype == "category"),
)


def setting_codes(metrics: pd.DataFrame) -> tuple[NDArray[np.intp], pd.DataFrame]:
    """Return which of the different settings each row has, and these settings.

    Returns
    -------
    (n,) codes 0, 1 ... in the order of their first rows, and a data frame of one row a code with
    the columns of `SETTINGS` that `metrics` has.
    """
    names = [name for name in SETTINGS if name in metrics]
    code = np.zeros(len(metrics), np.intp)
    for name in names:
        if metrics[name].notna().any():
            own, values = pd.factorize(metrics[name])
            code = pd.factorize(code * (len(values) + 1) + own + 1)[0]
    first = np.flatnonzero(~pd.Series(code).duplicated().to_numpy())
    return code, metrics[names].iloc[first].reset_index(drop=True)


def setting_text(metrics: pd.DataFrame) -> pd.Series:
    """Return each row's setting as a person reads it, such as ``rate=0.1 feature=age``.

    A categorical column, with the index of `metrics`; empty where a row has no setting.
    """
    code, settings = setting_codes(metrics)
    texts = [
        " ".join(f"{name}={_text(value)}" for name, value in row.items() if not pd.isna(value))
        for row in settings.to_dict("records")
    ]
    return pd.Series(pd.Categorical.from_codes(code, texts), metrics.index, name="setting")


def without_classes(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return a long table without the rows that are of one of several classes."""
    of_class = metrics["outcome"].notna().to_numpy(bool)
    if not of_class.any():
        return metrics
    named = metrics["metric"].astype(str).str.startswith("individual_fairness")
    return metrics[~of_class | named]


def status_text(status: str, reason: str) -> str:
    """Return a status with its reason, such as ``undefined: no positives``.

    The reason of a value that is ok says why it has no interval, which is not said again here.
    """
    return f"{status}: {reason}" if reason and status != "ok" else status


# Endings of metrics that have no interval, and why; of others, none is known to hold.
_WITHOUT_INTERVAL = (
    (("_below", "_worst", "_outside_band"), "it is a probability itself"),
    (("_pairs",), "it counts what is sure"),
    (("_debiased",), "see that of the gap itself"),
    (("_seconds",), "it was measured"),
    (("_chosen_rate",), "it was chosen"),
)


def without_interval(metric: str) -> str:
    """Return why a metric's value has no interval."""
    for endings, why in _WITHOUT_INTERVAL:
        if metric.endswith(endings):
            return f"no interval: {why}"
    return "no interval: none is known to hold"


def records(metrics: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows as dictionaries, each with the settings that it has."""
    return [
        {name: value for name, value in row.items() if name not in SETTINGS or not pd.isna(value)}
        for row in metrics.to_dict("records")
    ]


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
