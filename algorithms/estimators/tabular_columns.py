"""Turns a table's columns into what a tabular network reads: standard numbers, and codes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

Array = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class TabularColumns:
    """What was learnt of the columns of the training rows.

    Attributes
    ----------
    numbers : name of a number or truth value -> its known training values, sorted.
    categories : name of a categorical -> the code of each of its dtype's codes, the last that of a
        missing one. What no training row has takes the code of what most of them have: nothing
        was learnt of it.
    """

    numbers: dict[str, Array]
    categories: dict[str, Codes]

    @staticmethod
    def of(features: pd.DataFrame) -> TabularColumns:
        """Learn from training rows (n, d)."""
        numbers, categories = {}, {}
        for name in features.columns:
            column = features[name]
            if isinstance(column.dtype, pd.CategoricalDtype):
                categories[name] = _codes(column)
            else:
                values = column.to_numpy(np.float64, na_value=np.nan)
                numbers[name] = np.sort(values[~np.isnan(values)])
        return TabularColumns(numbers, categories)

    @property
    def cardinalities(self) -> list[int]:
        """How many codes each categorical has."""
        return [int(codes.max()) + 1 for codes in self.categories.values()]

    def matrix(self, features: pd.DataFrame) -> NDArray[np.float32]:
        """Return numbers, then codes, (n, d): whole numbers up to 2^24 are exact."""
        columns = [
            _normal_scores(features[name].to_numpy(np.float64, na_value=np.nan), known)
            for name, known in self.numbers.items()
        ]
        columns += [
            codes[features[name].cat.codes.to_numpy()] for name, codes in self.categories.items()
        ]
        shape = (len(columns), len(features))
        return np.asarray(columns, np.float32).reshape(shape).T.copy()


def _codes(column: pd.Series) -> Codes:
    """Return the code of each category, and last of a missing one, (categories + 1,)."""
    counts = np.bincount(
        column.cat.codes.to_numpy() % (len(column.cat.categories) + 1),
        minlength=len(column.cat.categories) + 1,
    )
    codes: Codes = np.cumsum(counts > 0) - 1
    return np.where(counts > 0, codes, codes[np.argmax(counts)])


def _normal_scores(values: Array, known: Array) -> Array:
    """Return the normal quantiles of ranks among `known` training values; missing ones are 0.

    A tie takes the middle of its ranks, and what lies beyond the training values their end. The
    scores have no heavy tail and no unit, whatever the values have.
    """
    if not len(known):
        return np.zeros(len(values))
    below, upto = (np.searchsorted(known, values, side) for side in ("left", "right"))
    share = (below + upto) / (2 * len(known))
    scores = ndtri(np.clip(share, 0.5 / len(known), 1 - 0.5 / len(known)))
    return np.where(np.isnan(values), 0.0, scores)
