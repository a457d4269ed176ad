"""Printing a trade-off: every run's error and gap, whether it is dominated and how surely."""

from __future__ import annotations

import numpy as np
import pandas as pd
from rich.table import Table


def tradeoff_table(rows: pd.DataFrame, metric: str, base: str) -> Table:
    """Return the runs of one metric by error, those that no other dominates marked.

    Parameters
    ----------
    rows : of :func:`fairbench.comparison.tradeoff_points.tradeoff`, one metric.
    base : whose thresholds the last column is about; empty where there is none.
    """
    title = f"error against the {metric.replace('_', ' ')} gap"
    table = Table(title=title, title_justify="left", caption_justify="left")
    table.add_column("run")
    for header in ("error (sd)", "gap (sd)", "dominated", "thresholds"):
        table.add_column(header, justify="right")
    parts = ["intervention", *(["learner"] * (rows["learner"].nunique() > 1)), "method"]
    for row in rows.sort_values("error", kind="stable").to_dict("records"):
        mark = " " if row["dominated"] or np.isnan(row["gap"]) else "*"
        table.add_row(
            f"{mark} {', '.join(str(row[part]) for part in parts)}",
            f"{row['error']:.3f} ({np.sqrt(row['error_variance']):.3f})",
            f"{row['gap']:.3f} ({np.sqrt(row['gap_variance']):.3f})",
            f"{row['certainty']:.2f}",
            "-" if np.isnan(row["postprocessed_error"]) else f"{row['postprocessed_error']:.3f}",
        )
    table.caption = (
        "*: no other run has a smaller mean in one and no larger in the other; sd: posterior of "
        "one repeat; dominated: probability that the likeliest other run is better in both, paired"
    )
    if base:
        table.caption += f"; thresholds: error of {base}, a threshold per group, at no larger gap"
    return table
