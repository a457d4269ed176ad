"""The figures of an audit for a paper or a notebook, drawn with matplotlib from its data alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairbench.audits.gaps import RATE_NAMES
from fairbench.evaluation.columns import values_of
from fairbench.reporting.charts import BLUE, GREY
from fairbench.reporting.figures import DrawnFigure, group_rates_figure, short

_JOINED = " x "  # between the attributes of a combination
_ACROSS = 4  # small diagrams side by side
_MOST = 40  # rows of a figure
_OF_A_GAP = ["attribute", "metric", "value", "difference", "lower", "upper"]


def figures_of(data: Mapping[str, Any]) -> Iterator[tuple[str, Figure]]:
    """Yield (name, figure) for every figure that an audit's data allow.

    Parameters
    ----------
    data : of the document of an audit, as its JSON has them.
    """
    epsilon = float(data.get("options", {}).get("epsilon", 0))
    for name, label in (("gaps", "gap between groups"), ("comparison", "difference of the gaps")):
        gaps = pd.DataFrame(data.get(name, [])).reindex(columns=_OF_A_GAP)
        gaps = gaps.fillna({"attribute": "", "metric": ""})
        ends = gaps[["lower", "upper"]].apply(pd.to_numeric, errors="coerce")
        gaps = gaps[np.isfinite(ends).all(axis=1)]
        if len(gaps):
            yield name, gaps_figure(gaps.head(_MOST), epsilon, label)
    metrics = pd.DataFrame(data.get("metrics", []))
    if len(metrics):
        metrics = values_of(metrics)
        rates = metrics[metrics["metric"] == "selection_rate"]
        for attribute in rates["attribute"].unique():
            if attribute and _JOINED not in attribute:
                drawn = group_rates_figure(metrics, "", attribute, label="rate, with 95 % interval")
                yield f"rates_{attribute}", drawn
    groups = [
        group
        for group in data.get("calibration", [])
        if len(group["bins"]) and _JOINED not in group["attribute"]
    ]
    if groups:
        yield "calibration", calibration_figure(groups[:_MOST])


def gaps_figure(gaps: pd.DataFrame, epsilon: float, label: str) -> Figure:
    """Draw each gap with its 95 % interval, and what makes no practical difference shaded."""
    figure = DrawnFigure(figsize=(7.0, 1.2 + 0.3 * len(gaps)), dpi=110, layout="constrained")
    axes = figure.add_subplot()
    values, places = gaps["value"].fillna(gaps["difference"]).astype(float), np.arange(len(gaps))
    axes.axvspan(-epsilon, epsilon, color="#dcebf5", label=f"less than {epsilon:g}")
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.hlines(
        places, gaps["lower"], gaps["upper"], color=BLUE, linewidth=2, label="95 % interval"
    )
    axes.plot(values, places, "o", color=BLUE, markersize=5)
    names = [RATE_NAMES.get(metric, metric.replace("_", " ")) for metric in gaps["metric"]]
    titles = [
        f"{of}: {name}" if of else name for of, name in zip(gaps["attribute"], names, strict=True)
    ]
    axes.set_yticks(places, [short(title, 48) for title in titles])
    axes.invert_yaxis()
    axes.set_xlabel(label)
    axes.grid(axis="x", alpha=0.3)
    figure.legend(frameon=False, loc="outside lower right", ncols=2)
    return figure


def calibration_figure(groups: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw the share of positives among rows of similar scores, a small diagram each group."""
    across = min(len(groups), _ACROSS)
    down = -(-len(groups) // across)
    figure = DrawnFigure(
        figsize=(2.4 * across + 0.4, 2.4 * down + 0.4), dpi=110, layout="constrained"
    )
    panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    for axes in panels.flat[len(groups) :]:
        axes.set_axis_off()
    for axes, group in zip(panels.flat, groups, strict=False):
        bins = pd.DataFrame(list(group["bins"]))
        axes.plot([0, 1], [0, 1], "--", color=GREY, linewidth=0.8)
        axes.vlines(bins["score"], bins["lower"], bins["upper"], color=BLUE, linewidth=1.5)
        axes.plot(bins["score"], bins["share"], "o", color=BLUE, markersize=4)
        axes.set(xlim=(0, 1), ylim=(0, 1))
        axes.set_title(short(f"{group['attribute']}: {group['group']}"), fontsize="small")
    figure.supxlabel("mean score", fontsize="medium")
    figure.supylabel("share of positives, with 95 % interval", fontsize="medium")
    return figure
