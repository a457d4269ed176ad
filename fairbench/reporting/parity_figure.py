"""Uncertainty-aware parity of regressions beside what tells it from mere vagueness."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fairbench.reporting.palette import BLUE, GREY, ORANGE

UA_SP = "uncertainty_aware_statistical_parity"
_LEVEL = 0.9
_COLUMNS = {"coverage": "in 90 %\ninterval", "crps": "CRPS"}


def parity(metrics: pd.DataFrame) -> Iterator[tuple[str, Figure]]:
    """Draw each method's parity as normals and as points, with that of the labels as a line.

    Large sds lower the first without making anything fairer: the share of targets that the 90 %
    intervals cover and the continuous ranked probability score are printed beside it. Means over
    repeats, bars and band one sd either way; groups are those of each data set's first attribute.
    """
    if UA_SP not in set(metrics["metric"]):
        return
    methods = list(dict.fromkeys(metrics["method"]))
    datasets = list(dict.fromkeys(metrics["dataset"]))
    columns = min(2, len(datasets))
    rows = ceil(len(datasets) / columns)
    with rc_context({"font.size": 11}):
        figure = Figure((6.4 * columns, rows * (1.2 + 0.28 * len(methods))), dpi=110)
        FigureCanvasAgg(figure)
        figure.set_layout_engine("constrained")
        grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
        for axes, name in zip(grid.flat, datasets, strict=False):
            _panel(axes, metrics[metrics["dataset"] == name], methods)
            axes.set_title(f"{name}, by {_attribute(metrics, name)}", loc="left")
        for axes in grid.flat[len(datasets) :]:
            axes.remove()
        figure.supxlabel("largest Kolmogorov-Smirnov distance between groups")
        handles, labels = grid.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
    yield "", figure


def _attribute(metrics: pd.DataFrame, dataset: str) -> str:
    mine = metrics[(metrics["dataset"] == dataset) & (metrics["metric"] == "label_parity")]
    return str(mine["attribute"].iloc[0])


def _panel(axes: Axes, metrics: pd.DataFrame, methods: list[str]) -> None:
    attribute = _attribute(metrics, str(metrics["dataset"].iloc[0]))
    mine = metrics[(metrics["attribute"] == attribute) & (metrics["group"] == "")]
    labels = mine.loc[mine["metric"] == "label_parity", "value"]
    axes.axvline(labels.mean(), color=ORANGE, label="labels")
    band = labels.mean() + np.array([-1, 1]) * labels.std(ddof=0)
    axes.axvspan(*band, color=ORANGE, alpha=0.15, linewidth=0)
    for metric, label, colour, marker, shift in (
        ("statistical_parity", "predictions as points", GREY, "o", 0.13),
        (UA_SP, "predictions as normals (UA-SP)", BLUE, "D", -0.13),
    ):
        values = mine[mine["metric"] == metric].groupby("method")["value"]
        mean, sd = values.mean().reindex(methods), values.std().fillna(0).reindex(methods)
        axes.errorbar(
            mean, np.arange(len(methods)) + shift, xerr=sd, fmt=marker, color=colour, capsize=2,
            markerfacecolor="none" if colour == GREY else colour, markersize=5, label=label,
        )  # fmt: skip
    _print_beside(axes, metrics, methods)
    axes.set_yticks(range(len(methods)), [name.replace("_", " ") for name in methods])
    axes.set_ylim(len(methods) - 0.5, -0.5)
    axes.set_xlim(-0.02 * axes.get_xlim()[1], None)
    axes.grid(axis="x", alpha=0.3)


def _print_beside(axes: Axes, metrics: pd.DataFrame, methods: list[str]) -> None:
    """Print everyone's coverage and score right of each method."""
    everyone = metrics[(metrics["attribute"] == "") & metrics["level"].isin([np.nan, _LEVEL])]
    means = everyone.groupby(["method", "metric"])["value"].mean().unstack().reindex(methods)
    for i, (metric, name) in enumerate(_COLUMNS.items()):
        x = 1.13 + 0.14 * i
        where = axes.get_yaxis_transform()
        axes.text(x, -0.75, name, transform=where, ha="right", va="bottom", fontsize=9)
        for y, value in enumerate(means.get(metric, pd.Series(np.nan, methods))):
            text = "-" if np.isnan(value) else f"{value:.3f}"
            axes.text(x, y, text, transform=where, ha="right", va="center", fontsize=9)
