"""Summing up a run's metrics over its repeats and folds."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

_BY = ["variant", "metric", "attribute", "group", "setting"]


def summarise(metrics: pd.DataFrame, per: Sequence[str] = ()) -> pd.DataFrame:
    """Return mean, sd over repeats, median interval, median n and status of every metric.

    Hold-out repeats overlap, so their intervals are not pooled: `lower` and `upper` are medians of
    the per-repeat ends. Undefined repeats are left out of the means and counted in the status.

    Parameters
    ----------
    per : further columns, such as ``run``, each of whose values is summed up by itself.
    """
    by = [*per, *_BY]
    grouped = metrics.groupby(by, sort=False, observed=True)
    summary = grouped.agg(
        mean=("value", "mean"),
        sd=("value", "std"),
        lower=("lower", "median"),
        upper=("upper", "median"),
        n=("n", "median"),
        repeats=("value", "count"),
    )
    return summary.assign(status=_statuses(metrics, summary.index, by)).reset_index()


def _statuses(metrics: pd.DataFrame, index: pd.MultiIndex, by: list[str]) -> pd.Series:
    """Return "ok", or the most frequent reason and in how many repeats there is one."""
    statuses = pd.Series("ok", index=index, dtype=object)
    flagged = metrics[metrics["status"] != "ok"]
    if len(flagged):
        total = metrics.groupby(by, sort=False, observed=True).size()
        reasons = flagged.groupby([*by, "status"], observed=True).size().rename("runs")
        often = reasons.reset_index().sort_values("runs", ascending=False, kind="stable")
        first = often.drop_duplicates(by).set_index(by)["status"].astype(str)
        flags = flagged.groupby(by, observed=True).size()[first.index]
        counted = flags.astype(str) + " of " + total[first.index].astype(str)
        statuses[first.index] = first + " (" + counted + ")"
    return statuses
