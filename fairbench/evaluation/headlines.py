"""The three numbers that a run is first looked at by: its error, its log loss and its gap."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from fairbench.core.arrays import Floats
from fairbench.evaluation.columns import DEBIASED, values_of
from fairbench.metrics.registry import BINARY, MULTICLASS, REGRESSION, metrics_of

# The first columns of a table of runs: error, uncertainty, and differences between groups.
HEADLINES: Mapping[str, Mapping[str, str]] = {
    BINARY: {"error": "error_rate", "log loss": "log_loss", "gap": "equalized_odds"},
    MULTICLASS: {
        "error": "error_rate",
        "log loss": "log_loss",
        "gap": "equal_opportunity_class_mean",
    },
    REGRESSION: {"error": "rmse", "log loss": "nll", "gap": "statistical_parity"},
}
# What stands beside a gap among more than two groups, which chance makes larger.
DEBIASED_MEANS = f"{DEBIASED}: the gap less what chance adds to the largest of more than two groups"
_KEYS = ("run", "variant", "metric", "attribute", "group", "outcome")
_UNKNOWN = (float("nan"), float("nan"), float("nan"))
Estimate = tuple[float, float, float]


def headlines(summary: pd.DataFrame, protect: str) -> dict[str, Estimate]:
    """Return ``error``, ``log loss`` and ``gap`` of a run: its mean, and the ends of its interval.

    Parameters
    ----------
    summary : the summary of a run, as :func:`fairbench.evaluation.summary.summarise` returns it.
    protect : the attribute, or combination, whose groups the gap is between.
    """
    names = HEADLINES[task_of(summary)]
    return {name: estimate(summary, metric, protect) for name, metric in names.items()}


def task_of(summary: pd.DataFrame) -> str:
    """Return what a run predicts, by the metrics that it has."""
    if not (summary["metric"] == HEADLINES[BINARY]["error"]).any():
        return REGRESSION
    of_classes = (summary["metric"] == "base_rate") & summary["outcome"].notna()
    return MULTICLASS if of_classes.any() else BINARY


def estimate(summary: pd.DataFrame, metric: str, protect: str) -> Estimate:
    """Return a metric of everyone, or of the groups of `protect`, with its interval; NaN if none.

    A metric with several settings, such as rates of abstention, counts as none.
    """
    summary = values_of(summary)
    rows = summary[(summary["metric"] == metric) & (summary["variant"] == "")]
    rows = rows[(rows["group"] == "") & rows["attribute"].isin(["", protect])]
    rows = rows[rows["attribute"] == rows["attribute"].min()]  # everyone's, if there is one
    rows = rows[(rows["binning"] != "mass") & rows["outcome"].isna()]
    if len(rows) != 1:
        return _UNKNOWN
    row = rows.iloc[0]
    return float(row["mean"]), float(row["lower"]), float(row["upper"])


def debiased_gaps(rows: pd.DataFrame, summary: pd.DataFrame) -> Floats:
    """Return the means of gaps (n,) less what chance adds to them; NaN of what has no such mean.

    Parameters
    ----------
    rows : n rows of the summary's values.
    summary : the whole summary, of one run or of several.
    """
    keys = [name for name in _KEYS if name in summary]
    gaps = [name for name, metric in metrics_of(BINARY, "widest").items() if metric.is_gap]
    debiased = summary[(summary["statistic"] == DEBIASED) & summary["metric"].isin(gaps)]
    mean_of = dict(zip(_as_texts(debiased[keys]), debiased["mean"], strict=True))
    return np.array([mean_of.get(key, np.nan) for key in _as_texts(rows[keys])], float)


def debiased_headline_gap(summary: pd.DataFrame, protect: str) -> float:
    """Return the debiased headline gap of a run; NaN between two groups."""
    rows = values_of(summary)
    rows = rows[(rows["metric"] == HEADLINES[task_of(summary)]["gap"]) & (rows["variant"] == "")]
    rows = rows[(rows["group"] == "") & (rows["attribute"] == protect) & rows["outcome"].isna()]
    return float(debiased_gaps(rows, summary)[0]) if len(rows) == 1 else _UNKNOWN[0]


def _as_texts(keys: pd.DataFrame) -> list[tuple[str, ...]]:
    return list(zip(*(keys[name].astype(str) for name in keys), strict=True))
