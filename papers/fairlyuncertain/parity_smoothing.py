"""What a low uncertainty-aware statistical parity (UA-SP) is worth, and what a NaN did to one.

Each prediction is a normal distribution, so large sds smooth every group's distribution function
and bring UA-SP near 0 whatever the means are. The first tables set beside it what that costs:
coverage and the continuous ranked probability score. The last is about sds at or below 0: a
distribution function of them is NaN, which the published code's largest distance reads as 0, as
perfect parity. 80/20 splits, 10 rounds, depth 6.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from hydra import compose, initialize_config_dir
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from fairbench.components.papers import CONF, PAPERS, run_main
from fairbench.components.papers.options import Splits
from fairbench.experiments.compute import raw_outputs
from fairbench.experiments.execute import carry_out
from fairbench.metrics.regression import (
    crps_normal_rows,
    distribution_parity,
    normal_quantile,
    uncertainty_aware_parity,
)
from fairbench.reporting.papers.mapping import Paper
from fairbench.results.predictions import TEST

LEVEL = 0.9
# What is read of which method's predictions: all sds times a number, and its name in the paper.
READINGS = (
    ("baseline", 0, "baseline"),
    ("constant_sd", 1, ""),
    ("constant_sd", 5, ""),
    ("constant_sd", 25, ""),
    ("marginal", 1, ""),
    ("normal_nll_reference", 1, "normal_nll"),
    ("normal_nll", 1, ""),
)
NAN_CELL = ("communities", "faithful_nll_reference")


class Predictions(NamedTuple):
    """The test rows of one split."""

    target: NDArray[np.float64]
    mean: NDArray[np.float64]
    sd: NDArray[np.float64]
    group: NDArray[np.int8]

    def take(self, rows: NDArray[np.bool_]) -> Predictions:
        """Return some of the rows."""
        return Predictions(self.target[rows], self.mean[rows], self.sd[rows], self.group[rows])

    def groups(self) -> list[Predictions]:
        """Return each group's rows."""
        return [self.take(self.group == g) for g in np.unique(self.group)]

    def parity(self) -> float:
        """Return the UA-SP."""
        groups = self.groups()
        return uncertainty_aware_parity([g.mean for g in groups], [g.sd for g in groups])


def predictions(
    dataset: str, method: str, chosen: Splits, *, factor: float = 1
) -> Iterator[Predictions]:
    """Yield the predictions of every split, their sds times `factor`."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        words = ["experiment=fairlyuncertain/table4", f"dataset={dataset}", f"method={method}"]
        cfg = compose("config", [*words, *chosen.overrides], return_hydra_config=True)
    run = carry_out(cfg).prepared
    group = run.dataset.groups(run.protect).cat.codes.to_numpy()
    for cell in run.cells:
        columns = run.store.read(cell.id).columns
        test = columns["part"] == TEST
        rows = columns["row"][test]
        raw = raw_outputs({name: values[test] for name, values in columns.items()})
        mean = raw["mean"].astype(float)
        sd = factor * raw["sd"].astype(float) if factor else np.zeros(len(mean))
        yield Predictions(run.dataset.target.to_numpy(float)[rows], mean, sd, group[rows])


def measures(test: Predictions) -> list[float]:
    """Return UA-SP, parity of points, parity of labels, coverage, CRPS; NaN without sds."""
    groups = test.groups()
    points = distribution_parity([group.mean for group in groups])
    labels = distribution_parity([group.target for group in groups])
    covered = np.abs(test.target - test.mean) <= normal_quantile(LEVEL) * test.sd
    coverage = float(covered.mean()) if test.sd.any() else float("nan")
    crps = float(crps_normal_rows(test.target, test.mean, test.sd).mean())
    return [test.parity(), points, labels, coverage, crps]


def published(dataset: str, method: str) -> str:
    """Return the mean and sd that Table 4 prints."""
    rows = Paper.read("fairlyuncertain", PAPERS).rows
    found = rows[(rows["table"] == "4") & (rows["dataset"] == dataset) & (rows["method"] == method)]
    return " ".join(f"{row.value} ({row.sd})" for row in found.itertuples())


def smoothing(dataset: str, chosen: Splits) -> Table:
    """Return UA-SP and its costs, a row for each reading."""
    table = Table(title=f"{dataset}: means (sd) over {chosen.repeats} splits", title_justify="left")
    for name in ("method", "published", "UA-SP", "points", "labels", f"in {LEVEL:.0%}", "CRPS"):
        table.add_column(name, justify="left" if name == "method" else "right")
    for method, factor, name in READINGS:
        every = predictions(dataset, method, chosen, factor=factor)
        each = np.array([measures(test) for test in every])
        (mean, *means), sd = each.mean(axis=0), each[:, 0].std()
        label = f"{method}, sd x {factor}" if factor > 1 else method
        others = ["-" if np.isnan(value) else f"{value:.3f}" for value in means]
        table.add_row(label, published(dataset, name), f"{mean:.3f} ({sd:.3f})", *others)
    return table


def invalid(chosen: Splits) -> Table:
    """Return the published cell with two zeros in it: Faithful NLL on Communities.

    Rows: its splits without the rows that have no sd; a split with such rows as 0; and two of ten
    splits as 0, which are the published runs.
    """
    many = replace(chosen, repeats=5 * chosen.repeats)
    every = list(predictions(*NAN_CELL, many))
    valid = [test.sd > 0 for test in every]
    left_out = np.array([s.take(rows).parity() for s, rows in zip(every, valid, strict=True)])
    hit = np.array([not rows.all() for rows in valid])
    typical = left_out[~hit]
    two_of_ten = np.sqrt(0.8 * typical.var() + 0.8 * 0.2 * typical.mean() ** 2)
    title = f"{NAN_CELL[0]}, {NAN_CELL[1]}: {hit.sum()} of {len(hit)} splits have rows with sd <= 0"
    table = Table("UA-SP", "mean (sd)", title=title, title_justify="left", min_width=76)
    for name, mean, sd in (
        ("those rows left out", *_moments(left_out)),
        ("those splits read as 0", *_moments(np.where(hit, 0, left_out))),
        ("two of ten splits read as 0", 0.8 * typical.mean(), two_of_ten),
    ):
        table.add_row(name, f"{mean:.3f} ({sd:.3f})")
    table.add_row("published", published("communities", "faithful_nll"))
    return table


def _moments(values: NDArray[np.float64]) -> tuple[float, float]:
    return float(values.mean()), float(values.std())


def main(chosen: Splits) -> None:
    """Print the tables."""
    for dataset in ("communities", "law_school"):
        Console(width=110).print(smoothing(dataset, chosen))
    Console(width=110).print(invalid(chosen))


if __name__ == "__main__":
    run_main(main, Splits)
