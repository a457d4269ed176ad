"""Figures of several methods in one panel, a panel for each data set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import cycle
from math import ceil
from textwrap import fill
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fairbench.core.escaping import mathtext
from fairbench.core.formats import fixed
from fairbench.reporting.charts import BLUE, COLOURS, GREY, MARKERS, ORANGE
from fairbench.reporting.figures import (
    SHIFT_LABEL,
    TOP_FEATURES,
    feature_shifts,
    quantile_box,
    short,
)

Named: TypeAlias = tuple[str, Figure]
_LETTERS_PER_INCH = 10
_GROUP_LINES = ("-", "--", ":", "-.")
_OBJECTIVES = ("error_rate", "statistical_parity", "equalized_odds")


class Style(NamedTuple):
    """The style of a method in every panel; two that coincide can both be seen."""

    colour: str
    marker: str
    line: str

    @property
    def options(self) -> dict[str, Any]:
        """Return options for :meth:`matplotlib.axes.Axes.plot`, with hollow markers."""
        return {"color": self.colour, "marker": self.marker, "markerfacecolor": "none"}


Draw: TypeAlias = Callable[[Axes, pd.DataFrame, Mapping[str, Style]], None]


def consistency(metrics: pd.DataFrame) -> Iterator[Named]:
    """Draw how far individuals' uncertainties move across variants, a box for each method.

    Boxes run from the 25th to the 75th percentile of individuals, whiskers from the 5th to the
    95th, crosses mark the maximum; grey are the same for fits that differ in their draws alone.
    """
    figure = _panels(metrics, _boxes, columns=2, height=0.9 + 0.38 * metrics["method"].nunique())
    _x_label(figure, "sd of an individual's uncertainty across variants")
    if "noise_sd" in set(metrics["metric"]):
        _x_label(figure, "sd of an individual's uncertainty across variants (grey: draws alone)")
    yield "", figure


def spread(metrics: pd.DataFrame) -> Iterator[Named]:
    """Draw the sd of residuals against mean uncertainty, a figure for each number of groups."""
    points = metrics[metrics["metric"].isin(["spread_predicted", "spread_empirical"])]
    for bins, bin_points in points.groupby("bins"):
        figure = _panels(bin_points, _diagram)
        _x_label(figure, f"mean predicted uncertainty, of {bins} groups of like uncertainty")
        figure.supylabel("sd of target - prediction")
        _legend(figure)
        yield f"groups{bins}", figure


def abstention(metrics: pd.DataFrame) -> Iterator[Named]:
    """Draw error and fairness of the rows kept, and the shift of their features, against rates."""
    curves = metrics[metrics["rate"].notna() & metrics["feature"].isna()]
    names = {f"abstention_{name}": name.replace("_", " ") for name in _OBJECTIVES}
    names["mean_feature_shift"] = "mean feature shift"
    for metric, label in names.items():
        rows = curves[(curves["metric"] == metric) & (curves["group"] == "")]
        if len(rows):
            figure = _panels(rows, _curves)
            _x_label(figure, "share abstained on")
            figure.supylabel(f"{label}, rows kept")
            _legend(figure)
            yield metric.removeprefix("abstention_"), figure
    for rate, rows in feature_shifts(metrics).groupby("rate"):
        figure = _panels(rows, _dots, columns=2, height=3.6)
        _x_label(figure, f"{SHIFT_LABEL}, abstaining on {rate:.0%}")
        _legend(figure)
        yield f"feature_shift_rate{rate:g}", figure


def group_errors(metrics: pd.DataFrame) -> Iterator[Named]:
    """Draw the error on each group's kept rows against the share abstained on overall."""
    yield from _by_group(metrics, "abstention_error_rate", "error rate, rows kept")


def group_abstention(metrics: pd.DataFrame) -> Iterator[Named]:
    """Draw the share abstained on in each group against the share overall."""
    yield from _by_group(metrics, "abstention_rate", "share of the group abstained on")


def _by_group(metrics: pd.DataFrame, metric: str, label: str) -> Iterator[Named]:
    """Draw a metric of groups at every rate of abstention, a line for each method and group."""
    rows = metrics[(metrics["metric"] == metric) & metrics["rate"].notna()]
    rows = rows[rows["group"] != ""]
    if rows.empty:
        return
    figure = _panels(rows, _group_curves, columns=2)
    _x_label(figure, "share abstained on, of everyone")
    figure.supylabel(label)
    _legend(figure)
    yield "", figure


def _panels(metrics: pd.DataFrame, draw: Draw, *, columns: int = 3, height: float = 3.2) -> Figure:
    """Return a figure with a panel for each data set, and the same style of a method in all."""
    methods = list(dict.fromkeys(metrics["method"]))
    styles = {
        name: Style(COLOURS[i % 8], MARKERS[i % 9], ("-", "--")[i % 2])
        for i, name in enumerate(methods)
    }
    datasets = list(dict.fromkeys(metrics["dataset"]))
    columns = min(columns, len(datasets))
    rows = ceil(len(datasets) / columns)
    width = 9.6 / max(columns, 2)
    with rc_context({"font.size": 12}):
        figure = Figure((width * columns, height * rows), dpi=110, layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(rows, columns, squeeze=False)
        for axes, name in zip(grid.flat, datasets, strict=False):
            draw(axes, metrics[metrics["dataset"] == name], styles)
            axes.set_title(mathtext(name))
        for axes in grid.flat[len(datasets) :]:
            axes.remove()
    return figure


def _x_label(figure: Figure, text: str) -> None:
    """Write a label under all panels, on as many lines as their width needs."""
    figure.supxlabel(fill(text, int(figure.get_figwidth() * _LETTERS_PER_INCH)))


def _legend(figure: Figure) -> None:
    """Draw one legend for all panels of a figure."""
    handle_by_label: dict[str, Artist] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handle_by_label.setdefault(label.replace("_", " "), handle)
    columns = 3 if len(figure.axes) > 1 else 2
    handles = list(handle_by_label.values())
    figure.legend(
        handles, list(handle_by_label), loc="outside upper center", ncols=columns, frameon=False
    )


def _boxes(axes: Axes, metrics: pd.DataFrame, styles: Mapping[str, Style]) -> None:
    """Draw, for each method, boxes of individuals' uncertainties across variants, and of noise."""
    for name, shift, width in (("noise", 0.25, 0.15), ("consistency", -0.1, 0.4)):
        for position, (method, style) in enumerate(styles.items()):
            box = quantile_box(metrics[metrics["method"] == method], name)
            if box is None:
                continue
            colour = GREY if name == "noise" else style.colour
            line = {"color": colour, "linewidth": 1.5}
            axes.bxp(
                [box], positions=[position + shift], widths=width, orientation="horizontal",
                manage_ticks=False, boxprops=line, whiskerprops=line, capprops=line,
                medianprops=line, flierprops={"marker": "x", "markeredgecolor": colour},
            )  # fmt: skip
    axes.set_yticks(range(len(styles)), [name.replace("_", " ") for name in styles])
    axes.set_ylim(len(styles) - 0.5, -0.5)
    axes.set_xlim(0, None)
    axes.locator_params(axis="x", nbins=5)
    axes.grid(axis="x", alpha=0.3)


def _diagram(axes: Axes, points: pd.DataFrame, styles: Mapping[str, Style]) -> None:
    """Draw the sd of residuals against predicted uncertainty, a curve for each method."""
    top = 0.0
    many_bins = points["bins"].iloc[0] > 30
    for method, style in styles.items():
        means = points[points["method"] == method].groupby(["bin", "metric"])["value"].mean()
        if means.empty:
            continue
        x, y = (means.unstack()[f"spread_{side}"] for side in ("predicted", "empirical"))
        top = float(np.nanmax([top, x.max(), y.max()]))
        axes.plot(
            x, y, **style.options, linestyle="" if many_bins else style.line, linewidth=1,
            markersize=3 if many_bins else 5, alpha=0.6 if many_bins else 1, label=mathtext(method),
        )  # fmt: skip
    axes.plot([0, top], [0, top], color=GREY, linestyle="--", linewidth=1, label="calibrated")
    axes.set(xlim=(0, None), ylim=(0, None))


def _curves(axes: Axes, rows: pd.DataFrame, styles: Mapping[str, Style]) -> None:
    """Draw each method's mean over repeats, with a band of one standard deviation."""
    for method, style in styles.items():
        curve: Any = rows[rows["method"] == method].groupby("rate")["value"]
        mean, sd = curve.mean(), curve.std().fillna(0)
        axes.plot(
            mean.index,
            mean,
            **style.options,
            linestyle=style.line,
            markersize=5,
            label=mathtext(method),
        )
        axes.fill_between(mean.index, mean - sd, mean + sd, color=style.colour, alpha=0.12, lw=0)
    axes.set_ylim(0, None)


def _group_curves(axes: Axes, rows: pd.DataFrame, styles: Mapping[str, Style]) -> None:
    """Draw curves against the rate of abstention: a line style a group, a colour a method."""
    lines = dict(zip(dict.fromkeys(rows["group"]), cycle(_GROUP_LINES), strict=False))
    for group, line in lines.items():
        group_rows = rows[rows["group"] == group]
        for method, style in styles.items():
            means = group_rows[group_rows["method"] == method].groupby("rate")["value"].mean()
            axes.plot(
                means.index,
                means,
                **style.options,
                linestyle=line,
                markersize=4,
                label=mathtext(method),
            )
    handles = [Line2D([], [], color="black", linestyle=line) for line in lines.values()]
    axes.legend(handles, [short(str(group), 22) for group in lines], fontsize=9, frameon=False)
    axes.set_ylim(0, None)


def _dots(axes: Axes, rows: pd.DataFrame, styles: Mapping[str, Style]) -> None:
    """Draw the features that abstention moves most, a dot for each method."""
    means = rows.groupby(["feature", "method"], sort=False)["value"].mean().unstack()
    means = means.loc[means.max(axis=1).nlargest(TOP_FEATURES).index]
    for method, style in styles.items():
        if method in means:
            axes.plot(
                means[method],
                range(len(means)),
                **style.options,
                linestyle="",
                label=mathtext(method),
            )
    axes.set_yticks(range(len(means)), [short(str(name), 22) for name in means.index])
    axes.invert_yaxis()
    axes.set_xlim(0, None)
    axes.locator_params(axis="x", nbins=5)
    axes.grid(axis="y", alpha=0.3)


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
            axes.set_title(mathtext(f"{name}, by {_attribute(metrics, name)}"), loc="left")
        for axes in grid.flat[len(datasets) :]:
            axes.remove()
        figure.supxlabel("largest Kolmogorov-Smirnov distance between groups")
        handles, labels = grid.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
    yield "", figure


def _attribute(metrics: pd.DataFrame, dataset: str) -> str:
    """Return the protected attribute of a data set's metrics."""
    parity_rows = metrics[(metrics["dataset"] == dataset) & (metrics["metric"] == "label_parity")]
    return str(parity_rows["attribute"].iloc[0])


def _panel(axes: Axes, metrics: pd.DataFrame, methods: list[str]) -> None:
    """Draw the parity of each method's predictions, as points and as normals."""
    attribute = _attribute(metrics, str(metrics["dataset"].iloc[0]))
    overall = metrics[(metrics["attribute"] == attribute) & (metrics["group"] == "")]
    labels = overall.loc[overall["metric"] == "label_parity", "value"]
    axes.axvline(labels.mean(), color=ORANGE, label="labels")
    band = labels.mean() + np.array([-1, 1]) * labels.std(ddof=0)
    axes.axvspan(*band, color=ORANGE, alpha=0.15, linewidth=0)
    for metric, label, colour, marker, shift in (
        ("statistical_parity", "predictions as points", GREY, "o", 0.13),
        (UA_SP, "predictions as normals (UA-SP)", BLUE, "D", -0.13),
    ):
        values = overall[overall["metric"] == metric].groupby("method")["value"]
        mean, sd = values.mean().reindex(methods), values.std().fillna(0).reindex(methods)
        axes.errorbar(
            mean, np.arange(len(methods)) + shift, xerr=sd, fmt=marker, color=colour, capsize=2,
            markerfacecolor="none" if colour == GREY else colour, markersize=5, label=label,
        )  # fmt: skip
    _print_scores(axes, metrics, methods)
    axes.set_yticks(range(len(methods)), [name.replace("_", " ") for name in methods])
    axes.set_ylim(len(methods) - 0.5, -0.5)
    axes.set_xlim(-0.02 * axes.get_xlim()[1], None)
    axes.grid(axis="x", alpha=0.3)


def _print_scores(axes: Axes, metrics: pd.DataFrame, methods: list[str]) -> None:
    """Print overall coverage and score to the right of each method."""
    everyone = metrics[(metrics["attribute"] == "") & metrics["level"].isin([np.nan, _LEVEL])]
    means = everyone.groupby(["method", "metric"])["value"].mean().unstack().reindex(methods)
    for i, (metric, name) in enumerate(_COLUMNS.items()):
        x = 1.13 + 0.14 * i
        where = axes.get_yaxis_transform()
        axes.text(x, -0.75, name, transform=where, ha="right", va="bottom", fontsize=9)
        for y, value in enumerate(means.get(metric, pd.Series(np.nan, methods))):
            text = "-" if np.isnan(value) else fixed(value)
            axes.text(x, y, text, transform=where, ha="right", va="center", fontsize=9)


DRAWN: Mapping[str, Callable[[pd.DataFrame], Iterator[Named]]] = {
    "consistency": consistency,
    "spread": spread,
    "abstention": abstention,
    "group_errors": group_errors,
    "group_abstention": group_abstention,
    "parity": parity,
}
