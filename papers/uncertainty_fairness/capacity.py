"""Kuzucu et al.'s Figure 6 on COMPAS: the groups' uncertainties against the hidden layer's size.

``python -m papers.uncertainty_fairness.capacity`` prints accuracies, uncertainties and ratios of
the finished runs of the experiments ``uncertainty_fairness/figure6`` and ``figure6_trained``;
brackets are one sd over splits, which overlap. ``fairbench paper uncertainty_fairness figure=6``
draws them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.table import Table

from fairbench.cli.command import Results
from fairbench.components.papers import run_main
from fairbench.components.papers.uncertainty_fairness.tables import needed, ratios, single_runs

UNITS = (25, 50, 100, 200, 400)
# What was run -> its experiment, and the initial means where the experiment varies them.
NETWORKS = {
    "standard normal initial means, 10 epochs": ("figure6", "normal"),
    "initial means within 1 / sqrt(fan in), 10 epochs": ("figure6", "uniform"),
    "trained until held-out rows no longer improve": ("figure6_trained", ""),
}
METRICS = ("accuracy", "aleatoric_uncertainty", "epistemic_uncertainty")
ATTRIBUTES = ("race", "sex")
BySize = Mapping[int, pd.DataFrame]


def by_size(networks: str, results: Path) -> dict[int, pd.DataFrame]:
    """Return the groups' metrics of every size that was run of one of `NETWORKS`.

    Raises
    ------
    UserError : none was run; it says which command runs them.
    """
    experiment, means = NETWORKS[networks]
    chosen = {"learner__initial_means": means} if means else {}
    runs = needed(experiment, results, **chosen)
    sizes = {units: runs[runs["learner.hidden"] == f"[{units}]"] for units in UNITS}
    return {units: ours for units, ours in sizes.items() if len(ours)}


def mean_series(sizes: BySize, attribute: str, group: str, metric: str) -> pd.DataFrame:
    """Return mean and sd over splits of a group's metric, a row for each size."""
    key = ("compas", attribute, metric, group)
    every = {units: single_runs(ours, *key) for units, ours in sizes.items()}
    return pd.DataFrame(every).agg(["mean", "std"]).T


def ratio_series(sizes: BySize, attribute: str, metric: str) -> pd.DataFrame:
    """Return mean and sd over splits of a ratio G0 / G1, a row for each size."""
    every = {units: ratios(ours, "compas", attribute, metric) for units, ours in sizes.items()}
    return pd.DataFrame(every).agg(["mean", "std"]).T


def table(networks: str, sizes: BySize) -> Table:
    """Return the black group's metrics, and the ratios of the uncertainties, of each size."""
    shown = Table(title=f"COMPAS, {networks}: mean (sd over splits)", title_justify="left")
    shown.add_column("units", justify="right")
    columns = []
    for metric in METRICS:
        short = metric.removesuffix("_uncertainty")
        shown.add_column(f"{short}, black", justify="right")
        columns.append(mean_series(sizes, "race", "black", metric))
        for attribute in ATTRIBUTES if metric != "accuracy" else ():
            shown.add_column(f"{short}, ratio by {attribute}", justify="right")
            columns.append(ratio_series(sizes, attribute, metric))
    for units in sizes:
        cells = [series.loc[units] for series in columns]
        shown.add_row(str(units), *(f"{cell['mean']:.3g} ({cell['std']:.1g})" for cell in cells))
    return shown


def main(options: Results) -> None:
    """Print a table for each kind of network."""
    for networks in NETWORKS:
        Console(width=150).print(table(networks, by_size(networks, options.results)))


if __name__ == "__main__":
    run_main(main, Results)
