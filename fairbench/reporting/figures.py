"""The figures of runs, audits and methods, drawn from tables alone.

First those of one run or audit, then those of several methods in one panel, with a panel for each
data set, and last the difference of two runs. Nothing has pyplot's global state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from io import BytesIO
from itertools import cycle
from math import ceil
from pathlib import Path
from textwrap import fill
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from fairbench.core.arrays import Floats
from fairbench.core.text import fixed, mathtext, visible
from fairbench.evaluation.many_groups import CLASS, with_class
from fairbench.evaluation.table import values_of, without_classes
from fairbench.inference.comparing import Comparison, Density, Region, event_name
from fairbench.metrics.registry import label as metric_label
from fairbench.reporting.charts import BLUE, COLOURS, GREEN, GREY, ORANGE

MARKERS = "os^DvPX*<"
SHIFT_LABEL = "shift of the rows kept, in sd (numbers) or share (categories)"
TOP_FEATURES = 10
MOST_GROUPS = 60  # in one figure
_ACROSS = 4  # small diagrams in a row
_BOX_LABELS = {"consistency": "across variants", "noise": "across draws alone"}
_FOUND = "true_positive_rate"
_RATES = ("selection_rate", "true_positive_rate", "false_positive_rate", "error_rate")


def figures(metrics: pd.DataFrame, title: str, protect: str) -> Iterator[tuple[str, Figure]]:
    """Yield (name, figure) for every figure that the metrics of the run's own variant allow."""
    every = values_of(metrics[metrics["variant"] == ""])
    metrics = without_classes(every)
    for name, needed, draw in _OF_A_RUN:
        rows = every if draw is group_rates_figure else metrics
        if needed in set(rows["metric"]):
            yield name, draw(rows, mathtext(title), protect)


def draw_figures(metrics: pd.DataFrame, title: str, protect: str, folder: Path) -> None:
    """Draw every figure of a run into a folder, as PNG files."""
    for name, figure in figures(metrics, title, protect):
        figure.savefig(folder / f"{name}.png", format="png")


class _DrawnFigure(Figure):
    """A figure that a notebook shows, though it was drawn without pyplot."""

    def _repr_png_(self) -> bytes:
        """Return the figure as a notebook shows it."""
        content = BytesIO()
        self.savefig(content, format="png")
        return content.getvalue()


def _new_figure(width: float, height: float, *, layout: Any = None) -> Figure:
    """Return an empty figure, in inches; the layout is matplotlib's."""
    figure = _DrawnFigure(figsize=(width, height), dpi=110, layout=layout)
    FigureCanvasAgg(figure)
    return figure


def _new(width: float = 4.8, height: float = 4.2) -> tuple[Figure, Axes]:
    """Return a figure with fixed margins: fitting them takes as long as all the drawing."""
    figure = _new_figure(width, height)
    figure.subplots_adjust(left=0.14, right=0.96, bottom=0.13, top=0.92)
    return figure, figure.add_subplot()


def _binned_figure(
    points: pd.DataFrame, title: str, labels: tuple[str, str], top: float | None = None
) -> Figure:
    """Draw a metric of bins of rows, y, against another, x; `top` is where both axes end."""
    end = top or float(np.nanmax(points[["x", "y"]].to_numpy())) * 1.05
    figure, axes = _new()
    axes.plot([0, end], [0, end], color=GREY, linestyle="--", linewidth=1, label="calibrated")
    axes.plot(
        points["x"], points["y"], "o", color=BLUE, alpha=0.2, markersize=3, label="one repeat"
    )
    mean = points.groupby("bin", sort=False)[["x", "y"]].mean().sort_values("x")
    axes.plot(mean["x"], mean["y"], "o-", color=ORANGE, markersize=5, label="mean of repeats")
    axes.set(xlabel=labels[0], ylabel=labels[1], title=title, xlim=(0, top), ylim=(0, top))
    axes.legend(frameon=False)
    return figure


def reliability_figure(metrics: pd.DataFrame, title: str, protect: str) -> Figure:
    """Draw observed share of positives against mean predicted probability, per bin."""
    labels = "mean predicted probability", "share of positives"
    points = _paired(metrics, "reliability_mean_score", "reliability_base_rate")
    return _binned_figure(points, title, labels, 1)


def _spread_figure(metrics: pd.DataFrame, title: str, protect: str) -> Figure:
    """Draw the sd of the residuals against mean predicted uncertainty, per group of rows."""
    labels = "mean predicted uncertainty", "sd of target - prediction"
    points = _paired(metrics, "spread_predicted", "spread_empirical")
    return _binned_figure(points[points["bins"] == points["bins"].iloc[0]], title, labels)


def _paired(metrics: pd.DataFrame, x: str, y: str) -> pd.DataFrame:
    keys = ["repeat", "fold", "variant", "bins", "bin"]
    sides = [metrics[metrics["metric"] == name].set_index(keys)["value"] for name in (x, y)]
    return pd.DataFrame({"x": sides[0], "y": sides[1]}).reset_index()


_LIMITS = ["value", "lower", "upper"]


def _intervals(axes: Axes, rows: pd.DataFrame, places: Any, g: int, **style: Any) -> None:
    """Draw values with their intervals at some places of the vertical axis, for the g-th group."""
    low = np.maximum(rows["value"] - rows["lower"], 0)
    high = np.maximum(rows["upper"] - rows["value"], 0)
    colour = COLOURS[g % len(COLOURS)]
    axes.errorbar(rows["value"], places, xerr=[low, high], capsize=3, color=colour, **style)


_OF_REPEATS = "rate, with 95 % interval of one repeat (medians over repeats)"


def group_rates_figure(
    metrics: pd.DataFrame, title: str, protect: str, *, label: str = _OF_REPEATS
) -> Figure:
    """Draw the rates of each group of `protect` with their intervals; `label` is of the axis.

    Of several classes it is the error rate and the true positive rate of each class.
    """
    rates = metrics[(metrics["attribute"] == protect) & (metrics["group"] != "")]
    rates = rates.assign(metric=with_class(rates).astype(str))
    class_rates = [name for name in rates["metric"].unique() if name.startswith(f"{_FOUND}{CLASS}")]
    shown_rates = ["error_rate", *class_rates] if class_rates else list(_RATES)
    groups, title = _groups_and_title(rates, title)
    figure, axes = _new(7.2, 1.6 + 0.32 * len(groups) * len(shown_rates) / 2)
    figure.set_layout_engine("constrained")  # the groups' names may be of any length
    step = 0.8 / len(groups)
    for g, group in enumerate(groups):
        rows = rates[rates["group"] == group].groupby("metric")[_LIMITS].median()
        y = np.arange(len(shown_rates)) + (g - (len(groups) - 1) / 2) * step
        marker = MARKERS[g % len(MARKERS)]
        looks = {"fmt": marker, "markersize": 5, "label": short(group)}
        _intervals(axes, rows.reindex(shown_rates), y, g, **looks)
    _name_rows(axes, [short(name.replace("_", " "), 40) for name in shown_rates])
    axes.set(xlabel=label, title=title, xlim=(0, 1))
    axes.legend(title=short(protect), frameon=False, bbox_to_anchor=(1.01, 1), loc="upper left")
    return figure


def _name_rows(axes: Axes, names: Sequence[str], *, bins: int = 0) -> None:
    """Name the rows of a picture, the first on top, on a grid that begins at 0.

    Parameters
    ----------
    bins : the most parts of an axis that begins at 0; 0 where its limits are the caller's.
    """
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_axisbelow(True)
    axes.grid(axis="x", alpha=0.3)
    if bins:
        axes.set_xlim(0, None)
        axes.locator_params(axis="x", nbins=bins)


def intervals_figure(rows: pd.DataFrame, epsilon: float, label: str) -> Figure:
    """Draw intervals one below the other; the region of practical equivalence is shaded.

    Parameters
    ----------
    rows : a frame with the columns title, value, lower and upper.
    label : the label of the axis.
    """
    figure = _new_figure(7.0, 1.2 + 0.3 * len(rows), layout="constrained")
    axes = figure.add_subplot()
    places = np.arange(len(rows))
    axes.axvspan(-epsilon, epsilon, color="#dcebf5", label=f"less than {epsilon:g}")
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.hlines(
        places, rows["lower"], rows["upper"], color=BLUE, linewidth=2, label="95 % interval"
    )
    axes.plot(rows["value"], places, "o", color=BLUE, markersize=5)
    _name_rows(axes, [short(title, 48) for title in rows["title"]])
    axes.set_xlabel(label)
    figure.legend(frameon=False, loc="outside lower right", ncols=2)
    return figure


def group_reliability_figure(groups: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw the share of positives among rows of similar scores, a small diagram each group.

    Parameters
    ----------
    groups : name -> its bins, with the columns score, share, lower and upper.
    """
    across = min(len(groups), _ACROSS)
    down = -(-len(groups) // across)
    figure = _new_figure(2.4 * across + 0.4, 2.4 * down + 0.4, layout="constrained")
    panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    for axes in panels.flat[len(groups) :]:
        axes.set_axis_off()
    for axes, (name, bins) in zip(panels.flat, groups.items(), strict=False):
        axes.plot([0, 1], [0, 1], "--", color=GREY, linewidth=0.8)
        axes.vlines(bins["score"], bins["lower"], bins["upper"], color=BLUE, linewidth=1.5)
        axes.plot(bins["score"], bins["share"], "o", color=BLUE, markersize=4)
        axes.set(xlim=(0, 1), ylim=(0, 1))
        axes.set_title(short(name), fontsize="small")
    figure.supxlabel("mean score", fontsize="medium")
    figure.supylabel("share of positives, with 95 % interval", fontsize="medium")
    return figure


def _groups_and_title(metrics: pd.DataFrame, title: str) -> tuple[list[str], str]:
    """Return the largest groups, as many as fit, and a title that tells so."""
    sizes = metrics.groupby("group", sort=False, observed=True)["n"].max()
    if len(sizes) <= MOST_GROUPS:
        return list(sizes.index), title
    largest = sizes.index.isin(sizes.nlargest(MOST_GROUPS).index)
    return list(sizes.index[largest]), f"{title}: the {MOST_GROUPS} largest of {len(sizes)} groups"


def _abstention_figure(metrics: pd.DataFrame, title: str, protect: str) -> Figure:
    """Draw error and fairness of the rows kept, and each group's abstention, against the rate."""
    curves = metrics[(metrics["attribute"] == protect) & metrics["rate"].notna()]
    figure = _new_figure(9, 4)
    figure.subplots_adjust(left=0.09, right=0.98, bottom=0.13, top=0.9, wspace=0.22)
    left, right = figure.subplots(1, 2)
    overall = curves[curves["group"] == ""]
    for name, colour, marker in zip(_OBJECTIVES, COLOURS, "os^", strict=False):
        curve = overall[overall["metric"] == f"abstention_{name}"].groupby("rate")["value"]
        label = name.replace("_", " ")
        _band(left, curve, color=colour, marker=marker, markersize=4, label=label)
    rates = curves[(curves["group"] != "") & (curves["metric"] == "abstention_rate")]
    rates_by_group = rates.groupby("group", sort=False, observed=True)
    for (group, rows), colour in zip(rates_by_group, cycle(COLOURS), strict=False):
        curve = rows.groupby("rate")["value"]
        _band(right, curve, color=colour, marker="o", markersize=4, label=short(str(group)))
    left.set(ylabel="of the rows kept (mean, sd over repeats)", ylim=(0, None))
    right.set(ylabel=f"share abstained on, by {short(protect)}")
    for axes in (left, right):
        axes.set_xlabel("share abstained on")
        axes.legend(frameon=False)
    figure.suptitle(title)
    return figure


def _feature_shift_figure(metrics: pd.DataFrame, title: str, protect: str) -> Figure:
    """Draw the features that abstention moves most, at the highest rate of abstention."""
    shifts = _feature_shifts(metrics)
    rate = shifts["rate"].max()
    by_feature = shifts[shifts["rate"] == rate].groupby("feature", sort=False)["value"]
    shift = by_feature.agg(mean="mean", sd="std").fillna({"sd": 0}).nlargest(TOP_FEATURES, "mean")
    figure, axes = _new(6.4, 1.3 + 0.32 * len(shift))
    figure.set_layout_engine("constrained")  # the features' names may be of any length
    places = range(len(shift))
    axes.barh(
        places, shift["mean"], xerr=shift["sd"], color=BLUE, ecolor="black", capsize=3, height=0.6
    )
    _name_rows(axes, [short(name) for name in shift.index], bins=5)
    axes.set(xlabel=f"{SHIFT_LABEL}\nabstaining on {rate:.0%} (mean, sd over repeats)", title=title)
    return figure


def _feature_shifts(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of feature shift."""
    rows = metrics[metrics["metric"] == "feature_shift"]
    return rows.assign(feature=rows["feature"].astype(str))


def short(name: str, length: int = 28) -> str:
    """Return a name as it is drawn: cut to what an axis has room for, and nothing else than text.

    Signs that the font does not have are written as their codes.
    """
    text = "".join(sign if _font_has(sign) else ascii(sign)[1:-1] for sign in visible(str(name)))
    if len(text) > length:
        end = length // 3  # long names often differ only at the end
        text = f"{text[: length - 1 - end]}…{text[-end:]}"
    return mathtext(text)


@cache
def _font_has(sign: str) -> bool:
    """Return whether the font of the figures has a sign."""
    return sign.isascii() or bool(get_font(findfont(FontProperties())).get_char_index(ord(sign)))


def _consistency_figure(metrics: pd.DataFrame, title: str, protect: str) -> Figure:
    """Draw the distribution over individuals of the sd across variants, and the noise's beside it.

    Boxes run from the 25th to the 75th percentile, whiskers from the 5th to the 95th, crosses mark
    the maximum; all are means over repeats.
    """
    figure, axes = _new()
    found = {label: _quantile_box(metrics, name) for name, label in _BOX_LABELS.items()}
    boxes = [{**box, "label": label} for label, box in found.items() if box is not None]
    axes.bxp(boxes, flierprops={"marker": "x"}, medianprops={"color": ORANGE})
    axes.set(ylabel="sd of an individual's uncertainty", title=title, ylim=(0, None))
    return figure


def _quantile_box(metrics: pd.DataFrame, name: str) -> dict[str, Any] | None:
    """Return the box of ``consistency`` or ``noise``, means over repeats; None without one."""
    rows = metrics[metrics["metric"] == f"{name}_sd"]
    if rows["value"].notna().sum() == 0:
        return None
    q = rows.groupby("quantile")["value"].mean()
    top = metrics.loc[metrics["metric"] == f"{name}_max_sd", "value"].mean()
    box = {"whislo": q[0.05], "q1": q[0.25], "med": q[0.5], "q3": q[0.75], "whishi": q[0.95]}
    return {**box, "fliers": [top]}


def _band(axes: Axes, curve: Any, *, color: str, **style: Any) -> None:
    """Draw the mean over repeats with a band of one sd either way."""
    mean, sd = curve.mean(), curve.std().fillna(0)
    axes.plot(mean.index, mean, color=color, **style)
    axes.fill_between(mean.index, mean - sd, mean + sd, color=color, alpha=0.15, linewidth=0)


PARTS = ("aleatoric", "epistemic", "predictive")
FEWEST = 10  # means of fewer rows are not drawn
OUTCOMES = {
    "TP": "true positives",
    "FP": "false positives",
    "TN": "true negatives",
    "FN": "false negatives",
}


def _uncertainties_figure(metrics: pd.DataFrame, title: str, protect: str) -> Figure:
    """Draw the mean uncertainties of each group of `protect`, with the intervals of one repeat."""
    of_attribute = metrics[(metrics["attribute"] == protect) & (metrics["group"] != "")]
    parts = [part for part in PARTS if f"{part}_uncertainty" in set(of_attribute["metric"])]
    groups, title = _groups_and_title(of_attribute, title)
    size = 1.2 + 2.6 * len(parts), 1.4 + 0.35 * len(groups)
    figure = _new_figure(*size, layout="constrained")
    for axes, part in zip(figure.subplots(1, len(parts), squeeze=False)[0], parts, strict=True):
        rows = of_attribute[of_attribute["metric"] == f"{part}_uncertainty"].groupby(
            "group", sort=False
        )
        middle = rows[_LIMITS].median()
        for g, group in enumerate(groups):
            _intervals(axes, middle.reindex([group]), [g], g, fmt="o")
        _name_rows(axes, [short(group) if part == parts[0] else "" for group in groups], bins=4)
        axes.set_xlabel(part)
    figure.supxlabel("variance, with 95 % interval of one repeat (medians over repeats)")
    figure.suptitle(title)
    return figure


def individual_fairness_figure(metrics: pd.DataFrame, title: str, protect: str) -> Figure:
    """Draw individual fairness against the number of neighbours, by group and outcome.

    A row of panels for what is compared, a column for each outcome; means over repeats, with a
    band of one sd. An outcome that fewer than `FEWEST` rows of a group have is left out.
    """
    rows = metrics[(metrics["attribute"] == protect) & metrics["outcome"].notna()]
    rows = rows[rows["n"] >= FEWEST]
    names = [f"individual_fairness_{part}" for part in ("prediction", *PARTS)]
    names = [name for name in names if name in set(rows["metric"])]
    groups = dict.fromkeys(rows["group"])
    looks = list(zip(groups, cycle(COLOURS), cycle(LINES), strict=False))
    figure = _new_figure(2.4 * len(OUTCOMES), 0.8 + 1.9 * len(names), layout="constrained")
    grid = figure.subplots(len(names), len(OUTCOMES), sharex=True, sharey="row", squeeze=False)
    for panels, name in zip(grid, names, strict=True):
        for axes, outcome in zip(panels, OUTCOMES, strict=True):
            chosen = rows[(rows["metric"] == name) & (rows["outcome"] == outcome)]
            for group, colour, line in looks:
                of_group = chosen[chosen["group"] == group]
                if len(of_group):
                    curve = of_group.groupby("k")["value"]
                    _band(axes, curve, color=colour, linestyle=line, label=short(group))
            axes.grid(alpha=0.3)
        panels[0].set_ylabel(name.removeprefix("individual_fairness_"))
    for axes, words in zip(grid[0], OUTCOMES.values(), strict=True):
        axes.set_title(words, fontsize="medium")
    lines = {line.get_label(): line for axes in grid[0] for line in axes.lines}
    figure.legend(
        lines.values(), lines, title=short(protect), frameon=False, loc="outside right upper"
    )
    figure.supxlabel("neighbours (mean, sd over repeats)")
    figure.suptitle(title)
    return figure


# The figures of a run: name, metric that it needs, and what draws it.
_OF_A_RUN = (
    ("reliability", "reliability_mean_score", reliability_figure),
    ("spread", "spread_predicted", _spread_figure),
    ("group_rates", "selection_rate", group_rates_figure),
    ("abstention", "abstention_error_rate", _abstention_figure),
    ("feature_shift", "feature_shift", _feature_shift_figure),
    ("consistency", "consistency_sd", _consistency_figure),
    ("uncertainties", "predictive_uncertainty", _uncertainties_figure),
    ("individual_fairness", "individual_fairness_prediction", individual_fairness_figure),
)
LINES = ("-", "--", ":", "-.", (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1)))


Named: TypeAlias = tuple[str, Figure]
_LETTERS_PER_INCH = 10
_OBJECTIVES = ("error_rate", "statistical_parity", "equalized_odds")


# How a method looks in every panel; two that coincide can both be seen, as markers are hollow.
Style: TypeAlias = Mapping[str, Any]
Draw: TypeAlias = Callable[[Axes, pd.DataFrame, Mapping[str, Style]], None]


def consistency(metrics: pd.DataFrame) -> Iterator[Named]:
    """Draw how far individuals' uncertainties move across variants, a box for each method.

    Boxes run from the 25th to the 75th percentile of individuals, whiskers from the 5th to the
    95th, crosses mark the maximum; grey are the same for fits that differ in their draws alone.
    """
    draws = " (grey: draws alone)" if "noise_sd" in set(metrics["metric"]) else ""
    label = f"sd of an individual's uncertainty across variants{draws}"
    height = 0.9 + 0.38 * metrics["method"].nunique()
    yield "", _panels(metrics, _boxes, label, columns=2, height=height, key=False)


def spread(metrics: pd.DataFrame) -> Iterator[Named]:
    """Draw the sd of residuals against mean uncertainty, a figure for each number of groups."""
    points = metrics[metrics["metric"].isin(["spread_predicted", "spread_empirical"])]
    for bins, bin_points in points.groupby("bins"):
        label = f"mean predicted uncertainty, of {bins} groups of like uncertainty"
        yield f"groups{bins}", _panels(bin_points, _diagram, label, "sd of target - prediction")


def abstention(metrics: pd.DataFrame) -> Iterator[Named]:
    """Draw error and fairness of the rows kept, and the shift of their features, against rates."""
    curves = metrics[metrics["rate"].notna() & metrics["feature"].isna()]
    names = {f"abstention_{name}": name.replace("_", " ") for name in _OBJECTIVES}
    names["mean_feature_shift"] = "mean feature shift"
    for metric, label in names.items():
        rows = curves[(curves["metric"] == metric) & (curves["group"] == "")]
        if len(rows):
            figure = _panels(rows, _method_curves, "share abstained on", f"{label}, rows kept")
            yield metric.removeprefix("abstention_"), figure
    for rate, rows in _feature_shifts(metrics).groupby("rate"):
        label = f"{SHIFT_LABEL}, abstaining on {rate:.0%}"
        figure = _panels(rows, _dots, label, columns=2, height=3.6)
        yield f"feature_shift_rate{rate:g}", figure


def _by_group(metrics: pd.DataFrame, metric: str, label: str) -> Iterator[Named]:
    """Draw a metric of groups at every rate of abstention, a line for each method and group."""
    rows = metrics[(metrics["metric"] == metric) & metrics["rate"].notna()]
    rows = rows[rows["group"] != ""]
    if len(rows):
        yield "", _panels(rows, _group_curves, "share abstained on, of everyone", label, columns=2)


# The error on each group's kept rows, and the share abstained on in each group, against the share
# abstained on overall.
group_errors = partial(_by_group, metric="abstention_error_rate", label="error rate, rows kept")
group_abstention = partial(
    _by_group, metric="abstention_rate", label="share of the group abstained on"
)


def _panels(
    metrics: pd.DataFrame,
    draw: Draw,
    x_label: str,
    y_label: str = "",
    *,
    columns: int = 3,
    height: float = 3.2,
    width: float = 0.0,
    sharey: bool = False,
    key: bool = True,
) -> Figure:
    """Return a figure with a panel for each data set, and the same style of a method in all.

    Parameters
    ----------
    x_label, y_label : of all panels.
    height, width : of a panel, in inches; as wide as fits on a page by default.
    key : whether there is a legend of all panels.
    """
    methods = list(dict.fromkeys(metrics["method"]))
    styles = {
        name: {
            "color": COLOURS[i % 8],
            "marker": MARKERS[i % 9],
            "linestyle": ("-", "--")[i % 2],
            "markerfacecolor": "none",
        }
        for i, name in enumerate(methods)
    }
    datasets = list(dict.fromkeys(metrics["dataset"]))
    columns = min(columns, len(datasets))
    rows = ceil(len(datasets) / columns)
    width = width or 9.6 / max(columns, 2)
    with rc_context({"font.size": 12}):
        figure = _new_figure(width * columns, height * rows, layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False, sharey=sharey)
        for axes, name in zip(grid.flat, datasets, strict=False):
            axes.set_title(mathtext(name))
            draw(axes, metrics[metrics["dataset"] == name], styles)
        for axes in grid.flat[len(datasets) :]:
            axes.remove()
    figure.supxlabel(fill(x_label, int(figure.get_figwidth() * _LETTERS_PER_INCH)))
    if y_label:
        figure.supylabel(y_label)
    if key:
        _legend(figure)
    return figure


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
            box = _quantile_box(metrics[metrics["method"] == method], name)
            if box is None:
                continue
            colour = GREY if name == "noise" else style["color"]
            line = {"color": colour, "linewidth": 1.5}
            axes.bxp(
                [box], positions=[position + shift], widths=width, orientation="horizontal",
                manage_ticks=False, boxprops=line, whiskerprops=line, capprops=line,
                medianprops=line, flierprops={"marker": "x", "markeredgecolor": colour},
            )  # fmt: skip
    _name_rows(axes, [name.replace("_", " ") for name in styles], bins=5)


def _diagram(axes: Axes, points: pd.DataFrame, styles: Mapping[str, Style]) -> None:
    """Draw the sd of residuals against predicted uncertainty, a curve for each method."""
    top = 0.0
    many_bins = points["bins"].iloc[0] > 30
    for method, style in styles.items():
        means = points[points["method"] == method].groupby(["bin", "metric"])["value"].mean()
        if means.empty:
            continue
        many = {"linestyle": "", "alpha": 0.6} if many_bins else {}
        x, y = (means.unstack()[f"spread_{side}"] for side in ("predicted", "empirical"))
        top = float(np.nanmax([top, x.max(), y.max()]))
        axes.plot(
            x, y, **{**style, **many}, linewidth=1,
            markersize=3 if many_bins else 5, label=mathtext(method),
        )  # fmt: skip
    axes.plot([0, top], [0, top], color=GREY, linestyle="--", linewidth=1, label="calibrated")
    axes.set(xlim=(0, None), ylim=(0, None))


def _method_curves(axes: Axes, rows: pd.DataFrame, styles: Mapping[str, Style]) -> None:
    """Draw each method's mean over repeats, with a band of one standard deviation."""
    for method, style in styles.items():
        curve: Any = rows[rows["method"] == method].groupby("rate")["value"]
        label = mathtext(method)
        _band(axes, curve, **style, markersize=5, label=label)
    axes.set_ylim(0, None)


def _group_curves(axes: Axes, rows: pd.DataFrame, styles: Mapping[str, Style]) -> None:
    """Draw curves against the rate of abstention: a line style a group, a colour a method."""
    lines = dict(zip(dict.fromkeys(rows["group"]), cycle(LINES), strict=False))
    for group, line in lines.items():
        group_rows = rows[rows["group"] == group]
        for method, style in styles.items():
            means = group_rows[group_rows["method"] == method].groupby("rate")["value"].mean()
            looks = {**style, "linestyle": line, "markersize": 4}
            axes.plot(means.index, means, **looks, label=mathtext(method))
    handles = [Line2D([], [], color="black", linestyle=line) for line in lines.values()]
    axes.legend(handles, [short(str(group), 22) for group in lines], fontsize=9, frameon=False)
    axes.set_ylim(0, None)


def _dots(axes: Axes, rows: pd.DataFrame, styles: Mapping[str, Style]) -> None:
    """Draw the features that abstention moves most, a dot for each method."""
    means = rows.groupby(["feature", "method"], sort=False)["value"].mean().unstack()
    means = means.loc[means.max(axis=1).nlargest(TOP_FEATURES).index]
    for method, style in styles.items():
        if method in means:
            looks = {**style, "linestyle": ""}
            axes.plot(means[method], range(len(means)), **looks, label=mathtext(method))
    _name_rows(axes, [short(str(name), 22) for name in means.index], bins=5)


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
    height = 1.2 + 0.28 * metrics["method"].nunique()
    label = "largest Kolmogorov-Smirnov distance between groups"
    yield "", _panels(metrics, _panel, label, columns=2, height=height, width=6.4, sharey=True)


def _panel(axes: Axes, metrics: pd.DataFrame, styles: Mapping[str, Style]) -> None:
    """Draw the parity of each method's predictions, as points and as normals."""
    methods = list(styles)
    attribute = str(metrics.loc[metrics["metric"] == "label_parity", "attribute"].iloc[0])
    name = axes.get_title()
    axes.set_title("")
    axes.set_title(f"{name}, by {mathtext(attribute)}", loc="left")
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
    _name_rows(axes, [name.replace("_", " ") for name in methods])
    axes.set_xlim(-0.02 * axes.get_xlim()[1], None)


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


# The picture of two runs' difference.

_PALE_BLUE = "#56B4E9"
_SHARES = (0.8, 0.5)  # of the region's mass, inside the inner contours
# The place of an event that wins both objectives, none, one, or the other, A wins upwards; and of
# the one that nothing matters, to which a line leads from the middle.
_PLACES = {
    (0, 0): (0.97, 0.97), (2, 2): (0.03, 0.03), (2, 0): (0.03, 0.97), (0, 2): (0.97, 0.03),
    (1, 1): (0.5, 0.97),
}  # fmt: skip


def comparison_figure(
    comparison: Comparison, region: Region, title: str, names: tuple[str, str]
) -> Figure:
    """Draw the posterior of two differences, its region, and the events' probabilities.

    Parameters
    ----------
    comparison : two objectives; on both axes, A is better to the right and upwards.
    region : the highest-density region, to which the probabilities are restricted.
    names : the names of A and B.
    """
    figure = _new_figure(6.4, 6.0)
    figure.subplots_adjust(left=0.15, right=0.96, bottom=0.20, top=0.92)
    axes = figure.add_subplot()
    _limits(axes, comparison, region)
    _rope(axes, comparison.rope)
    if region.density is None:
        axes.plot(*comparison.delta.T, ".", color=BLUE, markersize=2, alpha=0.3)
    else:
        _contours(axes, region.density)
    _events(axes, comparison, region)
    x, y = map(metric_label, comparison.objectives)
    axes.set_xlabel(f"{x}: A ahead by  (A better →)", fontsize=13)
    axes.set_ylabel(f"{y}: A ahead by  (A better →)", fontsize=13)
    axes.set_title(mathtext(title), fontsize=13)
    axes.tick_params(labelsize=12)
    figure.text(0.02, 0.055, mathtext(f"A: {names[0]}"), fontsize=12, color=BLUE)
    figure.text(0.02, 0.015, mathtext(f"B: {names[1]}"), fontsize=12, color=ORANGE)
    return figure


def _limits(axes: Axes, comparison: Comparison, region: Region) -> None:
    """Show the region, the rope where it is finite, and room for the corners' texts."""
    rope = np.where(np.isfinite(comparison.rope), comparison.rope, 0)
    low = np.minimum(region.bounds[:, 0], -rope)
    high = np.maximum(region.bounds[:, 1], rope)
    room = np.array([0.2, 0.4]) * np.maximum(high - low, 1e-6)
    axes.set_xlim(low[0] - room[0], high[0] + room[0])
    axes.set_ylim(low[1] - room[1], high[1] + room[1])


def _rope(axes: Axes, rope: Floats) -> None:
    """Draw the region of practical equivalence, and dotted lines at its limits."""
    x, y = rope
    style: dict[str, Any] = {"color": GREY, "linestyle": ":", "linewidth": 1.2, "zorder": 1}
    for draw, reach in ((axes.axvline, x), (axes.axhline, y)):
        for end in (-reach, reach) if np.isfinite(reach) else ():
            draw(end, **style)
    if np.isfinite(rope).all():
        axes.add_patch(Rectangle((-x, -y), 2 * x, 2 * y, color=GREEN, alpha=0.35, zorder=3))


def _contours(axes: Axes, density: Density) -> None:
    levels = [density.threshold, *_inner_thresholds(density)]
    shades = [*levels, max(float(density.values.max()), levels[-1] * 1.001)]
    grid = density.x, density.y, density.values.T
    axes.contourf(*grid, levels=shades, colors=["#DCEEF9", "#A9D5F2", _PALE_BLUE], zorder=2)
    axes.contour(*grid, levels=levels[:1], colors=BLUE, linewidths=2, zorder=4)


def _inner_thresholds(density: Density) -> list[float]:
    """Return the densities above which shares of the region's mass lie."""
    ordered = np.sort(density.values[density.values >= density.threshold])[::-1]
    mass = np.cumsum(ordered) / ordered.sum()
    return [float(ordered[np.searchsorted(mass, share)]) for share in _SHARES]


def _events(axes: Axes, comparison: Comparison, region: Region) -> None:
    """Write the probability of each event into its place of the plot."""
    probability = comparison.events(region.inside)
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 2}
    line = {"arrowstyle": "-", "color": "#00664B", "shrinkB": 0}
    for outcome, (x, y) in _PLACES.items():
        name = event_name(outcome, comparison.objectives)
        between, looks = "\n", dict[str, Any](zorder=5)
        if outcome == (1, 1):
            between, looks = "  ", {"zorder": 6, "color": line["color"], "arrowprops": line}
        event = name.replace(">>", "≫").replace("~", "≈").replace("_", " ").replace(", ", ",\n")
        axes.annotate(
            f"{event}{between}{probability[name]:.2f}", (0, 0), (x, y), textcoords="axes fraction",
            ha={0.03: "left", 0.5: "center", 0.97: "right"}[x],
            va="top" if y > 0.5 else "bottom", fontsize=13, bbox=box, **looks,
        )  # fmt: skip
