"""Predictions with the labels, groups and, where it is known, the truth they are judged by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.data.dataset import Task


@dataclass(frozen=True)
class Labelled:
    """One table of predictions, ready to evaluate.

    Attributes
    ----------
    target : (n,) labels or values.
    predictions : (n, ...) a table from :func:`fairbench.evaluation.predictions.read_predictions`.
    groups : attribute -> (n,) categorical labels, reference first.
    truth : (n, ...) ``probability``, or ``mean`` and ``sd``; simulated populations only.
    features : (n, d) what the rows were predicted from, where that is to be described.
    encoded : (n, e) the same as numbers, scaled as the training rows are, where rows that are
        alike are to be found.
    """

    target: NDArray[np.float64]
    predictions: pd.DataFrame
    groups: Mapping[str, pd.Series]
    task: Task
    truth: pd.DataFrame | None = None
    features: pd.DataFrame | None = None
    encoded: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.target)

    def column(self, name: str) -> NDArray[np.float64]:
        """Return a column of the predictions as float64."""
        values: NDArray[np.float64] = self.predictions[name].to_numpy(np.float64)
        return values
