"""Summing up a run's metrics over its repeats and folds."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from fairbench.evaluation.columns import SETTINGS, STATUSES, setting_codes

_BY = ["variant", "metric", "attribute", "group"]


def summarise(metrics: pd.DataFrame, per: Sequence[str] = ()) -> pd.DataFrame:
    """Return mean, sd over repeats, median interval, median n and status of every metric.

    Hold-out repeats overlap, so their intervals are not pooled: `lower` and `upper` are medians of
    the per-repeat ends. Undefined repeats are left out of the means and counted in the reason.

    Parameters
    ----------
    per : further columns, such as ``run``, each of whose values is summed up by itself.

    Returns
    -------
    The columns of `per`, variant, metric, attribute, group, mean, sd, lower, upper, n, repeats,
    status (the most frequent that is not ok), reason (with the repeats that have one, such as
    ``no positives (2 of 20)``) and the columns of the settings.
    """
    code, settings = setting_codes(metrics)
    metrics, by = metrics.assign(_setting=code), [*per, *_BY, "_setting"]
    grouped = metrics.groupby(by, sort=False, observed=True)
    summary = grouped.agg(
        mean=("value", "mean"),
        sd=("value", "std"),
        lower=("lower", "median"),
        upper=("upper", "median"),
        n=("n", "median"),
        repeats=("value", "count"),
    )
    statuses = _statuses(metrics, summary.index, by)
    summary = pd.concat([summary, statuses], axis=1).reset_index()
    place = summary.pop("_setting").to_numpy()
    return summary.assign(
        **{name: settings[name].array.take(place) for name in SETTINGS if name in settings}
    )


def _statuses(metrics: pd.DataFrame, index: pd.MultiIndex, by: list[str]) -> pd.DataFrame:
    """Return status and reason: ok, or what is most frequent and in how many repeats there is any.

    ``status`` and ``reason`` by the columns `by`.
    """
    found = pd.DataFrame({"status": "ok", "reason": ""}, index, dtype=object)
    flagged = metrics[(metrics["status"] != "ok").to_numpy(bool)]
    if len(flagged):
        total = metrics.groupby(by, sort=False, observed=True).size()
        reasons = flagged.groupby([*by, "status", "reason"], observed=True).size().rename("runs")
        often = reasons.reset_index().sort_values("runs", ascending=False, kind="stable")
        first = often.drop_duplicates(by).set_index(by)[["status", "reason"]].astype(str)
        flags = flagged.groupby(by, observed=True).size()[first.index]
        counted = " (" + flags.astype(str) + " of " + total[first.index].astype(str) + ")"
        place = index.get_indexer(first.index)
        values = found.to_numpy(copy=True)
        values[place, 0], values[place, 1] = first["status"], first["reason"] + counted
        found = pd.DataFrame(values, index, ["status", "reason"])
    return found.assign(status=pd.Categorical(found["status"], list(STATUSES)))
