"""Kuzucu et al.'s Figure 6 on COMPAS: uncertainties of the groups against the hidden layer's size.

``python -m papers.uncertainty_fairness.capacity [results]`` draws the finished runs of the
experiment ``uncertainty_fairness/figure6`` and prints their ratios; bands and brackets are one sd
over splits, which overlap.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from fairbench.reporting.charts import COLOURS, GREY
from papers import ROOT
from papers.uncertainty_fairness.tables import BAND, PAIRS, ratios, single_runs, values

UNITS = (0, 5, 25, 100, 200)
PARTS = ("aleatoric", "epistemic")
ATTRIBUTES = ("race", "age", "sex")
BySize = Mapping[int, pd.DataFrame]


def by_size(results: Path) -> dict[int, pd.DataFrame]:
    """Return the groups' metrics of every size that was run; no hidden layer is size 0."""
    found = {
        units: values("figure6", results, learner__hidden=f"[{units or ''}]") for units in UNITS
    }
    return {units: ours for units, ours in found.items() if len(ours)}


def ratio_series(found: BySize, attribute: str, part: str) -> pd.DataFrame:
    """Return mean and sd over splits of a ratio G0 / G1, a row for each size."""
    metric = f"{part}_uncertainty"
    every = {units: ratios(ours, "compas", attribute, metric) for units, ours in found.items()}
    return pd.DataFrame(every).agg(["mean", "std"]).T


def mean_series(found: BySize, attribute: str, group: str, part: str) -> pd.DataFrame:
    """Return mean and sd over splits of a group's uncertainty, a row for each size."""
    key = ("compas", attribute, f"{part}_uncertainty", group)
    every = {units: single_runs(ours, *key) for units, ours in found.items()}
    return pd.DataFrame(every).agg(["mean", "std"]).T


def figure(found: BySize) -> Figure:
    """Draw means by race, and the ratios of every attribute, against the layer's size."""
    drawn = Figure((11, 6.2), dpi=110, layout="constrained")
    FigureCanvasAgg(drawn)
    grid = drawn.subplots(2, len(PARTS), sharex=True)
    for (above, below), part in zip(grid.T, PARTS, strict=True):
        for group, colour in zip(PAIRS["race"], COLOURS, strict=False):
            _curve(above, mean_series(found, "race", group, part), group, colour)
        for attribute, colour in zip(ATTRIBUTES, COLOURS[2:], strict=False):
            label = f"{attribute}: {' / '.join(PAIRS[attribute])}"
            _curve(below, ratio_series(found, attribute, part), label, colour)
        below.axhspan(1 - BAND, 1 + BAND, color=GREY, alpha=0.12, linewidth=0, label="fair")
        below.set_xticks(range(len(found)), [str(units) if units else "none" for units in found])
        above.set(title=part, ylim=(0, None))
        for axes in (above, below):
            axes.grid(axis="y", alpha=0.3)
    for (left, right), label in zip(grid, ("mean variance", "ratio"), strict=True):
        left.set_ylabel(label)
        right.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    drawn.supxlabel("hidden units (mean, sd over splits)")
    drawn.suptitle("COMPAS, bayes_by_backprop")
    return drawn


def _curve(axes: Axes, series: pd.DataFrame, label: str, colour: str) -> None:
    places, mean, sd = range(len(series)), series["mean"], series["std"]
    axes.plot(places, mean, color=colour, marker="o", label=label)
    axes.fill_between(places, mean - sd, mean + sd, color=colour, alpha=0.15, linewidth=0)


def table(found: BySize) -> Table:
    """Return the black group's uncertainties and the ratios of each size."""
    shown = Table(title="COMPAS by hidden units, mean (sd over splits)", title_justify="left")
    columns = [f"{part}, {name}" for part in PARTS for name in ("black", *ATTRIBUTES)]
    for name in ("units", *columns):
        shown.add_column(name, justify="right")
    for units in found:
        rows = []
        for part in PARTS:
            rows.append(mean_series(found, "race", "black", part).loc[units])
            rows += [ratio_series(found, name, part).loc[units] for name in ATTRIBUTES]
        shown.add_row(str(units), *(f"{row['mean']:.3g} ({row['std']:.1g})" for row in rows))
    return shown


def main(results: str = "results") -> None:
    """Print the table and draw the figure."""
    console = Console(width=130)
    found = by_size(Path(results))
    if not found:
        console.print("nothing was run yet of experiment=uncertainty_fairness/figure6")
        return
    console.print(table(found))
    folder = ROOT / "results" / "report" / "uncertainty_fairness"
    folder.mkdir(parents=True, exist_ok=True)
    figure(found).savefig(folder / "figure6.png")


if __name__ == "__main__":
    main(*sys.argv[1:])
