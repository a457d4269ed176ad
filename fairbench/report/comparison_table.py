"""Printing comparisons: the events of two runs, and all pairs of several as a matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.table import Table

from fairbench.assessment.comparison import Comparison


def events_table(everywhere: pd.DataFrame, inside: pd.DataFrame, title: str) -> Table:
    """Return the events' probabilities, with medians and ranges over repeats.

    Parameters
    ----------
    everywhere, inside : (repeats, events) probabilities over all draws, and within the region.
    """
    table = Table(title=title, title_justify="left", caption_justify="left")
    table.add_column("event")
    several = len(inside) > 1
    headers = ["all draws", "inside the region", *(["over repeats"] if several else [])]
    for header in headers:
        table.add_column(header, justify="right")
    for name in everywhere.columns:
        cells = [f"{everywhere[name].median():.3f}", f"{inside[name].median():.3f}"]
        if several:
            cells.append(f"{inside[name].min():.3f} to {inside[name].max():.3f}")
        table.add_row(name.replace("_", " "), *cells)
    if several:
        table.caption = f"medians of {len(inside)} repeats, which need not sum to 1"
    return table


def differences_table(comparison: Comparison, level: float) -> Table:
    """Return mean and central interval of the difference in every objective."""
    table = Table(title="A - B, more is better", title_justify="left")
    for i, header in enumerate(("objective", "mean", f"{level:.0%} interval", "rope")):
        table.add_column(header, justify="right" if i else "left")
    ends = np.quantile(comparison.delta, [(1 - level) / 2, (1 + level) / 2], axis=0)
    means = comparison.delta.mean(axis=0)
    for i, name in enumerate(comparison.objectives):
        interval = f"{ends[0, i]:.3f} to {ends[1, i]:.3f}"
        rope = f"{comparison.rope[i]:g}"
        table.add_row(name.replace("_", " "), f"{means[i]:.3f}", interval, rope)
    return table


def matrix_table(
    outperforms: NDArray[np.float64],
    ranks: NDArray[np.int64],
    names: Sequence[str],
    ids: Sequence[str],
    title: str,
) -> Table:
    """Return every pair's P(row >> column), rows and columns in the order of the ranks."""
    table = Table(title=title, title_justify="left")
    order = np.argsort(ranks, kind="stable")
    for header in ("rank", "", "run", "id"):
        table.add_column(header, justify="right" if header == "rank" else "left")
    for column in range(len(order)):
        table.add_column(str(column + 1), justify="right")
    for row, i in enumerate(order):
        tied = "=" if (ranks == ranks[i]).sum() > 1 else ""
        cells = ["" if i == j else f"{outperforms[i, j]:.2f}" for j in order]
        table.add_row(f"{ranks[i]}{tied}", str(row + 1), names[i], ids[i][:6], *cells)
    return table
