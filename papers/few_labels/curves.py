"""Every method's error, coverage and interval by the number of labels, over many label orders.

``python -m papers.few_labels.curves [runs=100] [run=ID] [group=COLUMN]``: errors and coverages of
the difference of accuracies, of four released pools or of the first repeat of one of our runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fairbench.cli.command import Results
from fairbench.components.papers import run_main
from fairbench.components.papers.few_labels.methods import POOL_NOISE, Method, intervals
from fairbench.components.papers.few_labels.pools import (
    FIGURE_POOLS,
    label_orders,
    run_pools,
    true_difference,
)
from fairbench.components.papers.few_labels.study import released_pool
from fairbench.components.papers.options import number_of_runs
from fairbench.core.arrays import Floats
from fairbench.core.options import option
from fairbench.core.seeds import rng
from fairbench.inference.few_labels.table import PartlyLabelled
from fairbench.metrics.rates import Rate, accuracy

BUDGETS = (10, 20, 40, 100, 200, 400, 1000)
METHODS = {
    "labels alone": Method("frequentist"),
    "beta-binomial": Method("beta_binomial"),
    "calibration, as published": Method("beta_calibration"),
    "calibration, pool noise": Method("beta_calibration", reading=POOL_NOISE),
    "prediction-powered": Method("prediction_powered"),
    "scores as they are": Method("plug_in"),
}


@dataclass(frozen=True)
class Options(Results):
    """Which pools, and over how many choices of the labels."""

    runs: int = number_of_runs(100)
    run: str = option(
        "", "A run of ours in place of the released pools, by id or name.", shown="RUN"
    )
    group: str = option("", "Its column of groups; otherwise the protected one.", shown="COLUMN")


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
        defined = ~np.isnan(errors)
        total = np.where(defined, errors, 0).sum(axis=1)
        mean: Floats = 100 * total / np.maximum(defined.sum(axis=1), 1)
        return np.where(defined.any(axis=1), mean, np.nan)

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


def curves(name: str, table: PartlyLabelled, rate: Rate, runs: int) -> Curves:
    """Compute all methods at all budgets that leave a third of the pool unlabelled."""
    budgets = [labels for labels in BUDGETS if labels <= 2 / 3 * len(table.score)]
    orders = label_orders(table, runs)
    values = {}
    for method_name, method in METHODS.items():
        by_budget = [
            intervals(
                table,
                [order[:labels] for order in orders],
                method,
                [rate],
                rng(0, "few_labels", name, labels),
            )[0]
            for labels in budgets
        ]
        values[method_name] = np.stack(by_budget)
    return Curves(name, true_difference(table, rate), budgets, values)


def figure_pools() -> dict[str, PartlyLabelled]:
    """Return the four released pools that are looked at closely, by name."""
    return {" ".join(key): released_pool(key, as_released=True) for key in FIGURE_POOLS}


def main(options: Options) -> None:
    """Print errors and coverages by method and number of labels."""
    pools = figure_pools()
    if options.run:
        pools = run_pools(options.run, options.group or None, options.results)
    frames = [curves(name, table, accuracy, options.runs).frame() for name, table in pools.items()]
    frame = pd.concat(frames)
    for name in ("error", "coverage"):
        by_labels = frame.pivot_table(name, ["pool", "method"], "labels", sort=False)
        print(f"\n{name}\n{by_labels.round(1).to_string()}")


if __name__ == "__main__":
    run_main(main, Options)
