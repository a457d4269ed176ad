"""Every method's error, coverage and interval by the number of labels, over many label orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.seeds import rng
from fairbench.inference.few_labels.table import PartlyLabelled
from fairbench.metrics.rates import Rate
from papers.few_labels.methods import Method, intervals
from papers.few_labels.pools import label_orders, true_difference

Floats = NDArray[np.float64]
BUDGETS = (10, 20, 40, 100, 200, 400, 1000)
METHODS = {
    "labels alone": Method("frequentist"),
    "beta-binomial": Method("beta_binomial"),
    "calibration, as published": Method("beta_calibration"),
    "calibration, pool noise": Method("beta_calibration", pool_noise=True),
    "prediction-powered": Method("prediction_powered"),
    "scores as they are": Method("plug_in"),
}


@dataclass(frozen=True, eq=False)
class Curves:
    """What the methods say of one pool.

    Attributes
    ----------
    truth : the difference once all rows have a label.
    values : method -> (B, R, 3) estimate, lower and upper end, by budget and run.
    """

    pool: str
    truth: float
    budgets: Sequence[int]
    values: dict[str, Floats]

    def error(self, method: str) -> Floats:
        """Return the mean absolute error in points, (B,); runs without an estimate left out."""
        errors = np.abs(self.values[method][..., 0] - self.truth)
        known = ~np.isnan(errors)
        total = np.where(known, errors, 0).sum(axis=1)
        mean: Floats = 100 * total / np.maximum(known.sum(axis=1), 1)
        return np.where(known.any(axis=1), mean, np.nan)

    def coverage(self, method: str) -> Floats:
        """Return how often the interval has the truth in percent, (B,); none covers nothing."""
        _, lower, upper = np.moveaxis(self.values[method], -1, 0)
        covered: Floats = 100 * ((lower <= self.truth) & (self.truth <= upper)).mean(axis=1)
        return covered

    def frame(self) -> pd.DataFrame:
        """Return errors and coverages as rows."""
        rows = [
            (self.pool, method, labels, error, coverage)
            for method in self.values
            for labels, error, coverage in zip(
                self.budgets, self.error(method), self.coverage(method), strict=True
            )
        ]
        return pd.DataFrame(rows, columns=["pool", "method", "labels", "error", "coverage"])


def curves(pool: str, table: PartlyLabelled, rate: Rate, runs: int) -> Curves:
    """Compute all methods at all budgets that leave a third of the pool unlabelled."""
    budgets = [labels for labels in BUDGETS if labels <= 2 / 3 * len(table.score)]
    orders = label_orders(table, runs)
    values = {}
    for name, method in METHODS.items():
        by_budget = [
            intervals(
                table,
                [order[:labels] for order in orders],
                method,
                rate,
                rng(0, "few_labels", pool, labels),
            )
            for labels in budgets
        ]
        values[name] = np.stack(by_budget)
    return Curves(pool, true_difference(table, rate), budgets, values)
