"""Confusion counts of stored runs, from the rates of their groups and the rows they rest on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

_RATES = ("false_positive_rate", "true_positive_rate")


def confusion_counts(
    metrics: pd.DataFrame, protect: str
) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Yield each run and its counts (R, K, G, 4) of R repeats, K folds and the groups of `protect`.

    A run without predictions in some split, or of a regression, is left out.

    Parameters
    ----------
    metrics : the long table of several runs, with the column ``run`` and texts that are no
        categories.
    """
    rows = metrics[metrics["metric"].isin(_RATES) & (metrics["attribute"] == protect)]
    rows = rows[rows["group"] != ""]
    if rows.empty:
        return
    table = rows.pivot(
        index=["run", "repeat", "fold"], columns=["metric", "group"], values=["value", "n"]
    ).sort_index()
    groups = list(dict.fromkeys(rows["group"]))
    of_rates = [
        np.stack([table[column][rate][groups].to_numpy(float) for column in ("value", "n")])
        for rate in _RATES
    ]
    counts = np.concatenate([_split(*each) for each in of_rates], axis=-1)
    repeats = table.index.get_level_values("repeat")
    places = table.groupby(level="run", observed=True).indices
    for run in rows["run"].unique():
        mine = counts[places[run]]
        if not np.isnan(mine).any():
            n_repeats = repeats[places[run]].nunique()
            yield str(run), mine.reshape(n_repeats, -1, *mine.shape[1:])


def _split(rate: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how many of the rows were predicted 0 and 1, (..., 2); a group may have none."""
    rows = np.nan_to_num(rows)
    ones = np.where(rows == 0, 0, np.rint(rate * rows))
    return np.stack([rows - ones, ones], axis=-1)
