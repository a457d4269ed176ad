"""The document of a trade-off: every run's error and gap, whether it is dominated, how surely."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase
from typing import Any

import numpy as np
import pandas as pd

from fairbench.reporting.charts import COLOURS
from fairbench.reporting.document.model import Column, Document, Section, Table

*_COLOURS, _BLACK = COLOURS
_MARKERS = "os^DvPX*<"  # matplotlib's

_COLUMNS = (
    Column("run"),
    Column("error (sd)", "spread"),
    Column("gap (sd)", "spread"),
    Column("dominated", "number", decimals=2),
    Column("thresholds", "number", left_out=1),
)
_CAPTION = (
    "*: no other run has a smaller mean in one and no larger in the other; sd: posterior of one "
    "repeat; dominated: probability that the likeliest other run is better in both, paired"
)


def tradeoff_document(
    rows: pd.DataFrame, metrics: Sequence[str], title: str, base: str
) -> Document:
    """Return a table for each metric, of the runs by error; those that no other dominates marked.

    Parameters
    ----------
    rows : of :func:`fairbench.comparison.tradeoff_points.tradeoff`.
    base : whose thresholds the last column is about; empty where there is none.
    """
    tables = [_table(rows[rows["metric"] == metric], metric, base) for metric in metrics]
    return Document(title, [Section("", tables)])


def _table(rows: pd.DataFrame, metric: str, base: str) -> Table:
    parts = ["intervention", *(["learner"] * (rows["learner"].nunique() > 1)), "method"]
    shown = [
        [
            _name(row, parts),
            (row["error"], np.sqrt(row["error_variance"])),
            (row["gap"], np.sqrt(row["gap_variance"])),
            row["certainty"],
            row["postprocessed_error"],
        ]
        for row in rows.sort_values("error", kind="stable").to_dict("records")
    ]
    caption = _CAPTION
    if base:
        caption += f"; thresholds: error of {base}, a threshold per group, at no larger gap"
    title = f"error against the {metric.replace('_', ' ')} gap"
    return Table(_COLUMNS, shown, title=title, caption=caption)


def _name(row: dict[object, object], parts: Sequence[str]) -> str:
    best = not row["dominated"] and row["gap"] == row["gap"]
    return f"{'*' if best else ' '} {', '.join(str(row[part]) for part in parts)}"


def with_looks(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with names, colours, markers, and letters of those not dominated."""
    varying = [name for name in ("learner", "method") if table[name].nunique() > 1] or ["method"]
    kind = table[varying].agg(", ".join, axis=1)
    best = table[~table["dominated"] & table["gap"].notna()].sort_values("error", kind="stable")
    letters = dict(zip(dict.fromkeys(best["run"]), ascii_lowercase, strict=False))
    others = [name for name in dict.fromkeys(table["intervention"]) if name != "none"]
    colours = {"none": _BLACK, **_cycled(others, _COLOURS)}
    return table.assign(
        kind=kind,
        best=table.index.isin(best.index),
        letter=table["run"].map(letters),
        colour=table["intervention"].map(colours),
        marker=kind.map(_cycled(dict.fromkeys(kind), _MARKERS)),
    )


def _cycled(names: Any, looks: Sequence[str]) -> dict[str, str]:
    return {name: looks[i % len(looks)] for i, name in enumerate(names)}


def listed(letters: Sequence[str]) -> str:
    """Return sorted letters in a few characters: ``a-d,f``."""
    runs: list[list[str]] = []
    for letter in letters:
        if runs and ord(letter) == ord(runs[-1][-1]) + 1:
            runs[-1].append(letter)
        else:
            runs.append([letter])
    short = (f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(run) for run in runs)
    return ",".join(short)
