"""The table a run prints: headline metrics in 100 columns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from rich.table import Table

_OVERALL = (
    "error_rate",
    "balanced_accuracy",
    "f1_score",
    "roc_auc",
    "nll",
    "log_loss",
    "brier_score",
    "expected_calibration_error",
    "spread_error",
    "rmse",
    "mae",
    "r2",
)
_GAPS = (
    "statistical_parity",
    "disparate_impact",
    "equal_opportunity",
    "false_positive_rate_gap",
    "equalized_odds",
    "predictive_parity",
    "accuracy_gap",
    "label_parity",
)
_PER_GROUP = (
    "selection_rate",
    "error_rate",
    "true_positive_rate",
    "false_positive_rate",
    "rmse",
)
_FITS = ("constraint_active", "fit_seconds", "predict_seconds")
_NAMES = {"nll": "nll (of the uncertainty)", "log_loss": "log loss (of the score)"}


def headline(summary: pd.DataFrame, protect: str) -> pd.DataFrame:
    """Return the rows worth showing first: overall, gaps of `protect`, its groups, the fits."""
    summary = summary[summary["variant"] == ""]
    overall = summary["attribute"] == ""
    gaps = (summary["attribute"] == protect) & (summary["group"] == "")
    groups = (summary["attribute"] == protect) & (summary["group"] != "")
    mass = summary["setting"].str.endswith(" mass")
    parts = [
        summary[overall & summary["metric"].isin(_OVERALL) & ~mass],
        summary[gaps & summary["metric"].isin(_GAPS)],
        summary[groups & summary["metric"].isin(_PER_GROUP)],
        summary[overall & summary["metric"].isin(_FITS)],
    ]
    return pd.concat(parts, ignore_index=True)


def metrics_table(summary: pd.DataFrame, title: str, protect: str) -> Table:
    """Return the headline metrics as a rich table."""
    table = Table(title=title, title_justify="left", caption_justify="left", expand=False)
    table.caption = (
        "sd: over repeats; interval: median 95 % posterior (or normal) interval of one repeat; "
        "all rows are in metrics.parquet"
    )
    for column, justify in (
        ("metric", "left"),
        ("of", "left"),
        ("mean", "right"),
        ("sd", "right"),
        ("95 % interval", "right"),
        ("n", "right"),
        ("status", "left"),
    ):
        table.add_column(column, justify=justify, overflow="fold")  # type: ignore[arg-type]
    previous = None
    for cells, section in _rows(headline(summary, protect)):
        if previous is not None and section != previous:
            table.add_section()
        table.add_row(*cells)
        previous = section
    return table


def _rows(rows: pd.DataFrame) -> Iterator[tuple[list[str], tuple[str, bool]]]:
    for row in rows.itertuples():
        name = _NAMES.get(str(row.metric), str(row.metric).replace("_", " "))
        where = f"{row.attribute}: {row.group}" if row.group else str(row.attribute)
        interval = "" if np.isnan(row.lower) else f"{row.lower:.3f} to {row.upper:.3f}"
        status = "" if row.status == "ok" else str(row.status)
        cells = [name, where, _number(row.mean), _number(row.sd), interval, f"{row.n:.0f}", status]
        yield cells, (str(row.attribute), bool(row.group))


def _number(value: float) -> str:
    if np.isnan(value):
        return "-"
    return f"{value:.4f}" if abs(value) < 100 else f"{value:.1f}"
