"""What thresholds per group make of the best score without intervention, for fair comparisons.

"Unprocessing seven years of algorithmic fairness" (Cruz and Hardt, ICLR 2024) compares models at
equal fairness: a run is set beside the best intervention-free score whose thresholds per group,
chosen on validation rows, bring its gap down to the run's.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd


def frontier(tables: Sequence[pd.DataFrame], protect: str) -> pd.DataFrame:
    """Return error and gap of the best score's thresholds per group, means over repeats.

    Parameters
    ----------
    tables : metrics of the runs without intervention; of those that have been postprocessed, the
        one of least unprocessed error on validation rows is taken.

    Returns
    -------
    ``base`` (position in `tables`), ``constraint``, ``relaxation``, ``error``, ``gap``; empty where
    no run was postprocessed.
    """
    columns = ["base", "constraint", "relaxation", "error", "gap"]
    found = []
    for i, metrics in enumerate(tables):
        rows = metrics[metrics["metric"].str.startswith("postprocessed_")]
        rows = rows[(rows["attribute"] == protect) & (rows["variant"] == "")]
        if rows.empty:
            continue
        rows = rows.assign(constraint=rows["constraint"].astype(str))
        by = ["constraint", "relaxation", "metric"]
        mean = rows.groupby(by)["value"].mean().unstack().reset_index().assign(base=i)
        mean.columns = [str(name).removeprefix("postprocessed_") for name in mean.columns]
        found.append(mean.rename(columns={"error_rate": "error"}))
    if not found:
        return pd.DataFrame(columns=columns)
    best = min(found, key=lambda mean: float(mean["validation_error_rate"].min()))
    return best[columns]


def at_equal_fairness(curve: pd.DataFrame, metric: str, gap: float) -> float:
    """Return the least error of the frontier at a gap no larger than `gap`, NaN where it has none.

    Two of its points may be mixed: at random between them, the error is on the line between them,
    and the gap no larger.
    """
    mine = curve.loc[curve["constraint"] == metric, ["error", "gap"]].to_numpy(float)
    under, over = mine[mine[:, 1] <= gap], mine[mine[:, 1] > gap]
    if not len(under):
        return float("nan")
    share = (gap - under[:, None, 1]) / (over[:, 1] - under[:, None, 1])
    mixed = under[:, None, 0] + share * (over[:, 0] - under[:, None, 0])
    return float(min(under[:, 0].min(), mixed.min(initial=float("inf"))))
