"""The documents of comparisons: the events of two runs, and all pairs of several."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.inference.practical_difference import Comparison
from fairbench.reporting.document.model import Column, Document, Section, Table

Array = NDArray[np.float64]
MATRIX = "P(row outperforms column), percent"


def pair_document(
    everywhere: pd.DataFrame,
    inside: pd.DataFrame,
    shown: Comparison,
    names: Sequence[str],
    level: float,
) -> Document:
    """Return the comparison of two runs.

    Parameters
    ----------
    everywhere, inside : (repeats, events) probabilities over all draws, and within the region.
    shown : the repeat whose differences are shown.
    names : of A and B.
    level : of the intervals.
    """
    title = "\n".join(f"{letter}: {name}" for letter, name in zip("AB", names, strict=True))
    tables = [_events(everywhere, inside), _differences(shown, level)]
    return Document(title, [Section("", tables)])


def _events(everywhere: pd.DataFrame, inside: pd.DataFrame) -> Table:
    several = len(inside) > 1
    columns = [
        Column("event"),
        Column("all draws", "number"),
        Column("inside the region", "number"),
    ]
    rows = [
        [
            str(name).replace("_", " "),
            everywhere[name].median(),
            inside[name].median(),
            (inside[name].min(), inside[name].max()),
        ]
        for name in everywhere.columns
    ]
    if several:
        columns.append(Column("over repeats", "interval"))
    caption = f"medians of {len(inside)} repeats, which need not sum to 1" if several else ""
    return Table(columns, [row[: len(columns)] for row in rows], caption=caption)


def _differences(comparison: Comparison, level: float) -> Table:
    ends = np.quantile(comparison.delta, [(1 - level) / 2, (1 + level) / 2], axis=0)
    means = comparison.delta.mean(axis=0)
    columns = [
        Column("objective"),
        Column("mean", "number"),
        Column(f"{level:.0%} interval", "interval"),
        Column("no difference up to", "general"),
    ]
    rows = [
        [name.replace("_", " "), means[i], (ends[0, i], ends[1, i]), comparison.rope[i]]
        for i, name in enumerate(comparison.objectives)
    ]
    return Table(columns, rows, title="A - B, more is better")


def ranking_document(
    outperforms: Array,
    ranks: NDArray[np.int64],
    names: Sequence[str],
    ids: Sequence[str],
    title: str,
) -> Document:
    """Return the comparison of all pairs of several runs, in the order of their ranks.

    Parameters
    ----------
    outperforms : (R, R) probabilities that the row's run outperforms the column's.
    ranks : (R,), from 1; equal ones are tied.
    """
    order = np.argsort(ranks, kind="stable")
    places = [
        [rank_of(ranks, i), place, names[i], ids[i]] for place, i in enumerate(order, start=1)
    ]
    columns = [Column("rank", right=True), Column("", "count"), Column("run"), Column("id")]
    return Document(title, [Section("", [Table(columns, places), _matrix(outperforms, order)])])


def rank_of(ranks: NDArray[np.int64], i: int) -> str:
    """Return a run's rank, with = where it is tied."""
    return f"{ranks[i]}{'=' * bool((ranks == ranks[i]).sum() > 1)}"


def _matrix(outperforms: Array, order: NDArray[np.intp]) -> Table:
    """Return every pair's probability; ``<1`` is no impossibility."""
    columns = [Column("", "count", narrow=True)]
    columns += [Column(str(i), "percent", narrow=True) for i in range(1, len(order) + 1)]
    rows = [
        [place, *(None if i == j else outperforms[i, j] for j in order)]
        for place, i in enumerate(order, start=1)
    ]
    return Table(columns, rows, title=MATRIX, repeated=1)
