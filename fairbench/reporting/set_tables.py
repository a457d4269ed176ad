"""The coverage and the size of sets of labels, of everyone and of the groups, in a table."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from fairbench.evaluation.columns import values_of
from fairbench.reporting.document.model import Column, Table

_SET_COLUMNS = (
    Column("group"),
    Column("coverage", "number", decimals=3),
    Column("95 % interval", "interval", left_out=1),
    Column("mean size", "number", decimals=2),
    Column("95 % interval", "interval", decimals=2, left_out=2),
    Column("empty sets", "number", decimals=3),
    Column("rows", "count", left_out=3),
)
_SET_CAPTION = (
    "coverage: the share of sets that hold the label; mean size: how many labels a set holds; "
    "other levels and groups are in metrics.parquet"
)
_LEVEL = 0.9  # the level that is shown; if it was not run, the nearest one


def set_tables(summary: pd.DataFrame, protect: str) -> Iterator[Table]:
    """Yield the table of coverage and size of label sets, for everyone and each group."""
    set_rows = values_of(summary)
    set_rows = set_rows[(set_rows["variant"] == "") & set_rows["attribute"].isin(["", protect])]
    levels = set_rows.loc[set_rows["metric"] == "set_size", "level"]
    if not len(levels):
        return
    level = float(levels.iloc[(levels - _LEVEL).abs().argmin()])
    set_rows = set_rows[
        (set_rows["level"] == level) & ((set_rows["group"] != "") | (set_rows["attribute"] == ""))
    ]
    row_of = {(row.metric, row.group): row for row in set_rows.itertuples()}
    rows: list[list[object]] = []
    for group in [group for metric, group in row_of if metric == "set_size"]:
        coverage, size = row_of["coverage", group], row_of["set_size", group]
        estimates = [
            (estimate.mean, (estimate.lower, estimate.upper)) for estimate in (coverage, size)
        ]
        empty = row_of["empty_sets", group].mean
        rows.append([group or "everyone", *estimates[0], *estimates[1], empty, size.n])
    yield Table(_SET_COLUMNS, rows, f"sets that promise {level:.0%}", _SET_CAPTION)
