"""Printing comparisons: the events of two runs, and all pairs of several as a matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.table import Table

from fairbench.inference.practical_difference import Comparison

_COLUMNS = 18


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


def ranking_table(
    ranks: NDArray[np.int64], names: Sequence[str], ids: Sequence[str], title: str
) -> Table:
    """Return the runs in the order of their ranks, with the numbers that `matrix_tables` uses."""
    table = Table(title=title, title_justify="left")
    for header in ("rank", "", "run", "id"):
        table.add_column(header, justify="left" if header in ("run", "id") else "right")
    for number, i in enumerate(_order(ranks), start=1):
        tied = "=" if (ranks == ranks[i]).sum() > 1 else ""
        table.add_row(f"{ranks[i]}{tied}", str(number), names[i], ids[i])
    return table


def matrix_tables(
    outperforms: NDArray[np.float64], ranks: NDArray[np.int64], title: str
) -> Iterator[Table]:
    """Yield every pair's P(row >> column) in percent, so many columns a table as fit a terminal.

    Rows and columns are numbered in the order of the ranks; ``<1`` is no impossibility.
    """
    order = _order(ranks)
    for start in range(0, len(order), _COLUMNS):
        shown = order[start : start + _COLUMNS]
        style: dict[str, Any] = {"title_justify": "left", "box": SIMPLE_HEAD}
        table = Table(title=title, min_width=len(title), collapse_padding=True, **style)
        table.add_column("")
        for column in range(start, start + len(shown)):
            table.add_column(str(column + 1), justify="right")
        for row, i in enumerate(order, start=1):
            cells = ["" if i == j else percent(outperforms[i, j]) for j in shown]
            table.add_row(str(row), *cells)
        yield table


def _order(ranks: NDArray[np.int64]) -> NDArray[np.intp]:
    return np.argsort(ranks, kind="stable")


def percent(probability: float) -> str:
    """Return a probability in percent, that neither 0 nor 100 is said of what is only near."""
    if 0 < probability < 0.01:
        return "<1"
    return ">99" if 0.99 < probability < 1 else f"{100 * probability:.0f}"
