"""Figures of uncertainty as a fairness measure (Kuzucu et al. 2024): by group, and individual."""

from __future__ import annotations

from itertools import cycle

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fairbench.reporting.palette import COLOURS

PARTS = ("aleatoric", "epistemic", "predictive")
FEWEST = 10  # rows: the mean of fewer is left out
OUTCOMES = {
    "TP": "true positives",
    "FP": "false positives",
    "TN": "true negatives",
    "FN": "false negatives",
}


def uncertainties_figure(metrics: pd.DataFrame, title: str, protect: str) -> Figure:
    """Draw the mean uncertainties of each group of `protect`, with the intervals of one repeat."""
    mine = metrics[(metrics["attribute"] == protect) & (metrics["group"] != "")]
    parts = [part for part in PARTS if f"{part}_uncertainty" in set(mine["metric"])]
    groups = list(dict.fromkeys(mine["group"]))
    figure = _new(1.2 + 2.6 * len(parts), 1.4 + 0.35 * len(groups))
    for axes, part in zip(figure.subplots(1, len(parts), squeeze=False)[0], parts, strict=True):
        rows = mine[mine["metric"] == f"{part}_uncertainty"].groupby("group", sort=False)
        middle = rows[["value", "lower", "upper"]].median().reindex(groups)
        reach = [middle["value"] - middle["lower"], middle["upper"] - middle["value"]]
        for g, group in enumerate(groups):
            error = [[max(side[group], 0)] for side in reach]
            colour = COLOURS[g % len(COLOURS)]
            axes.errorbar(middle["value"][group], g, xerr=error, fmt="o", capsize=3, color=colour)
        axes.set_yticks(range(len(groups)), groups if part == parts[0] else [])
        axes.set(xlabel=part, ylim=(len(groups) - 0.5, -0.5))
        axes.set_xlim(0, None)
        axes.locator_params(axis="x", nbins=4)
        axes.grid(axis="x", alpha=0.3)
    figure.supxlabel("variance, with 95 % interval of one repeat (medians over repeats)")
    figure.suptitle(title)
    return figure


def individual_fairness_figure(metrics: pd.DataFrame, title: str, protect: str) -> Figure:
    """Draw individual fairness against the number of neighbours, by group and outcome.

    A row of panels for what is compared, a column for each outcome; means over repeats, with a
    band of one sd. An outcome that fewer than `FEWEST` rows of a group have is left out.
    """
    mine = metrics[(metrics["attribute"] == protect) & metrics["outcome"].notna()]
    mine = mine[mine["n"] >= FEWEST]
    names = [f"individual_fairness_{part}" for part in ("prediction", *PARTS)]
    names = [name for name in names if name in set(mine["metric"])]
    colours = dict(zip(dict.fromkeys(mine["group"]), cycle(COLOURS), strict=False))
    figure = _new(2.4 * len(OUTCOMES), 0.8 + 1.9 * len(names))
    grid = figure.subplots(len(names), len(OUTCOMES), sharex=True, sharey="row", squeeze=False)
    for row, name in zip(grid, names, strict=True):
        for axes, outcome in zip(row, OUTCOMES, strict=True):
            chosen = mine[(mine["metric"] == name) & (mine["outcome"] == outcome)]
            _curves(axes, chosen, colours)
        row[0].set_ylabel(name.removeprefix("individual_fairness_"))
    for axes, words in zip(grid[0], OUTCOMES.values(), strict=True):
        axes.set_title(words, fontsize="medium")
    lines = {line.get_label(): line for axes in grid[0] for line in axes.lines}
    figure.legend(lines.values(), lines, title=protect, frameon=False, loc="outside right upper")
    figure.supxlabel("neighbours (mean, sd over repeats)")
    figure.suptitle(title)
    return figure


def _curves(axes: Axes, rows: pd.DataFrame, colours: dict[str, str]) -> None:
    for group, colour in colours.items():
        of_group = rows[rows["group"] == group]
        if of_group.empty:
            continue
        curve = of_group.groupby("k")["value"]
        mean, sd = curve.mean(), curve.std().fillna(0)
        axes.plot(mean.index, mean, color=colour, label=group)
        axes.fill_between(mean.index, mean - sd, mean + sd, color=colour, alpha=0.15, linewidth=0)
    axes.grid(alpha=0.3)


def _new(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    return figure
