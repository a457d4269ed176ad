"""The figures of an audit for a paper or a notebook, drawn with matplotlib from its data alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairbench.audits.gaps import RATE_NAMES
from fairbench.evaluation.columns import values_of
from fairbench.reporting.charts import BLUE, GREY
from fairbench.reporting.figures import DrawnFigure, group_rates_figure, short

_JOINED = " x "  # between the attributes of a combination
_ACROSS = 4  # small diagrams side by side
_MOST = 40  # rows of a figure


def figures_of(data: Mapping[str, Any]) -> Iterator[tuple[str, Figure]]:
    """Yield (name, figure) for every figure that an audit's data allow.

    Parameters
    ----------
    data : of the document of an audit, as its JSON has them.
    """
    options = data.get("options", {})
    epsilon = float(options.get("epsilon", 0))
    for name, label in (("gaps", "gap between groups"), ("comparison", "difference of the gaps")):
        rows = [each for each in data.get(name, []) if _has_interval(each)]
        if rows:
            yield name, gaps_figure(rows, epsilon, label)
    metrics = pd.DataFrame(data.get("metrics", []))
    metrics = values_of(metrics) if len(metrics) else metrics
    rates = metrics[metrics["metric"] == "selection_rate"] if len(metrics) else metrics
    for attribute in rates["attribute"].unique() if len(rates) else ():
        if attribute and _JOINED not in attribute:
            drawn = group_rates_figure(metrics, "", attribute, label="rate, with 95 % interval")
            yield f"rates_{attribute}", drawn
    groups = [each for each in data.get("calibration", []) if len(each["bins"])]
    groups = [each for each in groups if _JOINED not in each["attribute"]]
    if groups:
        yield "calibration", calibration_figure(groups)


def _has_interval(row: Mapping[str, Any]) -> bool:
    ends = [row.get("lower"), row.get("upper")]
    return all(isinstance(each, int | float) and np.isfinite(each) for each in ends)


def gaps_figure(rows: Sequence[Mapping[str, Any]], epsilon: float, label: str) -> Figure:
    """Draw each gap with its 95 % interval, and what makes no practical difference shaded."""
    rows = rows[:_MOST]
    figure = DrawnFigure(figsize=(7.0, 1.2 + 0.3 * len(rows)), dpi=110, layout="constrained")
    axes = figure.add_subplot()
    values = np.array([each.get("value", each.get("difference", np.nan)) for each in rows], float)
    ends = np.array([[each["lower"], each["upper"]] for each in rows], float)
    places = np.arange(len(rows))
    axes.axvspan(-epsilon, epsilon, color="#dcebf5", label=f"less than {epsilon:g}")
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.hlines(places, ends[:, 0], ends[:, 1], color=BLUE, linewidth=2, label="95 % interval")
    axes.plot(values, places, "o", color=BLUE, markersize=5)
    axes.set_yticks(places, [_named(each) for each in rows])
    axes.invert_yaxis()
    axes.set_xlabel(label)
    axes.grid(axis="x", alpha=0.3)
    figure.legend(frameon=False, loc="outside lower right", ncols=2)
    return figure


def _named(row: Mapping[str, Any]) -> str:
    metric = str(row.get("metric", ""))
    metric = RATE_NAMES.get(metric, metric.replace("_", " "))
    return short(": ".join(filter(None, [str(row.get("attribute", "")), metric])), 48)


def calibration_figure(groups: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw the share of positives among rows of similar scores, a small diagram each group."""
    groups = groups[:_MOST]
    across = min(len(groups), _ACROSS)
    down = -(-len(groups) // across)
    figure = DrawnFigure(
        figsize=(2.4 * across + 0.4, 2.4 * down + 0.4), dpi=110, layout="constrained"
    )
    panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    for axes in panels.flat[len(groups) :]:
        axes.set_axis_off()
    for axes, group in zip(panels.flat, groups, strict=False):
        _reliability(axes, group)
    figure.supxlabel("mean score", fontsize="medium")
    figure.supylabel("share of positives, with 95 % interval", fontsize="medium")
    return figure


def _reliability(axes: Axes, group: Mapping[str, Any]) -> None:
    bins = pd.DataFrame(list(group["bins"]))
    axes.plot([0, 1], [0, 1], "--", color=GREY, linewidth=0.8)
    axes.vlines(bins["score"], bins["lower"], bins["upper"], color=BLUE, linewidth=1.5)
    axes.plot(bins["score"], bins["share"], "o", color=BLUE, markersize=4)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_title(short(f"{group['attribute']}: {group['group']}"), fontsize="small")
