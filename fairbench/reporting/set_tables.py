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
_LEVEL = 0.9  # the one that is shown, or the nearest to it


def set_tables(summary: pd.DataFrame, protect: str) -> Iterator[Table]:
    """Yield the coverage and the size of sets of labels, of everyone and of the groups."""
    mine = values_of(summary)
    mine = mine[(mine["variant"] == "") & mine["attribute"].isin(["", protect])]
    levels = mine.loc[mine["metric"] == "set_size", "level"]
    if not len(levels):
        return
    level = float(levels.iloc[(levels - _LEVEL).abs().argmin()])
    mine = mine[(mine["level"] == level) & ((mine["group"] != "") | (mine["attribute"] == ""))]
    found = {(row.metric, row.group): row for row in mine.itertuples()}
    rows: list[list[object]] = []
    for group in [group for metric, group in found if metric == "set_size"]:
        coverage, size = found["coverage", group], found["set_size", group]
        both = [(each.mean, (each.lower, each.upper)) for each in (coverage, size)]
        empty = found["empty_sets", group].mean
        rows.append([group or "everyone", *both[0], *both[1], empty, size.n])
    yield Table(_SET_COLUMNS, rows, f"sets that promise {level:.0%}", _SET_CAPTION)
