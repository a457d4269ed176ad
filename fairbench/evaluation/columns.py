"""The columns of the long table of metrics: their names, their types, and their settings in words.

Each row has a metric, for everyone or for a group of an attribute, at a setting: a share abstained
on, a number of bins, a level. Each kind of setting has its own column, which is empty if the metric
does not depend on it. The column ``statistic`` is nearly always ``value``; further statistics of
a metric have rows of their own.

===================== =============================================================================
``value``             the metric itself
``debiased``          the metric less what chance adds to it
``pooled``            a group's rate, estimated from all groups together
``below_epsilon``     the probability that a gap is under the epsilon of the row
``pairs_that_differ`` how many pairs of groups surely differ
``worst``             the probability that no other group's rate is worse
``outside_band``      the probability that a ratio is further from 1 than the band of the row
``in_stratum``        the metric among the people of one stratum
``standardised``      the metric with everyone's mix of strata in every group
===================== =============================================================================

The last two come from an evaluation within strata, such as bands of age. Only its table has the
columns `STRATA`: the columns that make the strata, and the stratum of the row.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

STATUSES = ("ok", "insufficient", "undefined", "invalid")
VALUE, DEBIASED, POOLED = "value", "debiased", "pooled"
BELOW_EPSILON, PAIRS_THAT_DIFFER = "below_epsilon", "pairs_that_differ"
WORST, OUTSIDE_BAND = "worst", "outside_band"
IN_STRATUM, STANDARDISED = "in_stratum", "standardised"
STATISTICS = (
    *(VALUE, DEBIASED, POOLED, BELOW_EPSILON, PAIRS_THAT_DIFFER, WORST, OUTSIDE_BAND),
    *(IN_STRATUM, STANDARDISED),
)
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
# The columns that make the strata, such as ``age``, and the stratum; only with strata.
STRATA: Mapping[str, str] = MappingProxyType({"within": "category", "stratum": "category"})
COLUMNS = (
    *("metric", "statistic", "attribute", "group"),
    *("value", "lower", "upper", "n", "status", "reason"),
    *SETTINGS,
)
TEXTS = (  # columns of few different texts, which a file holds once each
    *("variant", "metric", "statistic", "attribute", "group", "status", "reason"),
    *(name for name, dtype in SETTINGS.items() if dtype == "category"),
)


def values_of(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a long table, or of a summary, that are metrics themselves.

    Whoever asks for a metric by its name asks here first: of a gap there may be other rows too.
    """
    return table[(table["statistic"] == VALUE).to_numpy(bool)]


def setting_codes(metrics: pd.DataFrame) -> tuple[NDArray[np.intp], pd.DataFrame]:
    """Return which of the different settings each row has, and these settings.

    Returns
    -------
    (n,) codes 0, 1 ... in the order of their first rows, and a data frame of one row per code with
    the columns of `SETTINGS` and `STRATA` that `metrics` has.
    """
    names = [name for name in (*SETTINGS, *STRATA) if name in metrics]
    code = np.zeros(len(metrics), np.intp)
    for name in names:
        if metrics[name].notna().any():
            column_code, values = pd.factorize(metrics[name])
            code = pd.factorize(code * (len(values) + 1) + column_code + 1)[0]
    first_rows = np.flatnonzero(~pd.Series(code).duplicated().to_numpy())
    return code, metrics[names].iloc[first_rows].reset_index(drop=True)


def setting_text(metrics: pd.DataFrame) -> pd.Series:
    """Return each row's setting as a person reads it, such as ``rate=0.1 feature=age``.

    A categorical column, with the index of `metrics`; empty where a row has no setting.
    """
    code, settings = setting_codes(metrics)
    texts = [
        setting_words({name: value for name, value in row.items() if not pd.isna(value)})
        for row in settings.to_dict("records")
    ]
    return pd.Series(pd.Categorical.from_codes(code, texts), metrics.index, name="setting")


def setting_words(settings: Mapping[str, Any]) -> str:
    """Return the settings that a row has, as text for a person."""
    return " ".join(f"{name}={_text(value)}" for name, value in settings.items())


def without_classes(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return a long table without the rows of single classes in a task of several classes."""
    of_class = metrics["outcome"].notna().to_numpy(bool)
    if not of_class.any():
        return metrics
    individual = metrics["metric"].astype(str).str.startswith("individual_fairness")
    return metrics[~of_class | individual]


def status_text(status: str, reason: str) -> str:
    """Return a status with its reason, such as ``undefined: no positives``.

    The reason of a value with the status ok, which is why it has no interval, is left out.
    """
    return f"{status}: {reason}" if reason and status != "ok" else status


COSTS = ("fit_seconds", "predict_seconds")  # metrics that differ each time they are computed
CHOSEN_RATE = "abstention_chosen_rate"
# Why statistics have no interval, and values of some metrics; of others, none is known to hold.
_OF_STATISTICS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys((BELOW_EPSILON, WORST, OUTSIDE_BAND), "it is a probability itself"),
        PAIRS_THAT_DIFFER: "it counts what is sure",
        DEBIASED: "see that of the gap itself",
    }
)
_OF_VALUES: Mapping[str, str] = MappingProxyType(
    {**dict.fromkeys(COSTS, "it was measured"), CHOSEN_RATE: "it was chosen"}
)


def without_interval(metric: str, statistic: str = VALUE) -> str:
    """Return why a row has no interval."""
    reasons, name = (_OF_VALUES, metric) if statistic == VALUE else (_OF_STATISTICS, statistic)
    return f"no interval: {reasons.get(name, 'none is known to hold')}"


def records(metrics: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows as dictionaries, each with the settings that it has."""
    settings = {**SETTINGS, **STRATA}
    return [
        {name: value for name, value in row.items() if name not in settings or not pd.isna(value)}
        for row in metrics.to_dict("records")
    ]


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
