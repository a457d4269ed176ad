"""Summing up a run's metrics over its repeats and folds."""

from __future__ import annotations

import pandas as pd

_BY = ["variant", "metric", "attribute", "group", "setting"]


def summarise(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return mean, sd over repeats, median interval, median n and status of every metric.

    Hold-out repeats overlap, so their intervals are not pooled: `lower` and `upper` are medians of
    the per-repeat ends. Undefined repeats are left out of the means and counted in the status.
    """
    grouped = metrics.groupby(_BY, sort=False)
    summary = grouped.agg(
        mean=("value", "mean"),
        sd=("value", "std"),
        lower=("lower", "median"),
        upper=("upper", "median"),
        n=("n", "median"),
        repeats=("value", "count"),
    )
    return summary.assign(status=_statuses(metrics, summary)).reset_index()


def _statuses(metrics: pd.DataFrame, summary: pd.DataFrame) -> pd.Series:
    """Return "ok", or the most frequent reason and in how many repeats there is one."""
    flagged = metrics[metrics["status"] != "ok"].groupby(_BY, sort=False)["status"]
    total = metrics.groupby(_BY, sort=False).size()
    statuses = pd.Series("ok", index=summary.index, dtype=object)
    for key, reasons in flagged:
        statuses[key] = f"{reasons.mode()[0]} ({len(reasons)} of {total[key]})"
    return statuses
