"""The figures of runs and audits, drawn from tables alone, without pyplot's global state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from io import BytesIO
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font

from fairbench.core.escaping import mathtext
from fairbench.core.formats import visible
from fairbench.evaluation.columns import values_of, without_classes
from fairbench.evaluation.many_groups import CLASS, with_class
from fairbench.reporting.charts import BLUE, COLOURS, GREEN, GREY, MARKERS, ORANGE

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
    title = mathtext(title)
    names = set(metrics["metric"])
    if "reliability_mean_score" in names:
        yield "reliability", reliability_figure(metrics, title)
    if "spread_predicted" in names:
        yield "spread", spread_figure(metrics, title)
    if "selection_rate" in set(every["metric"]):
        yield "group_rates", group_rates_figure(every, title, protect)
    if "abstention_error_rate" in names:
        yield "abstention", abstention_figure(metrics, title, protect)
    if "feature_shift" in names:
        yield "feature_shift", feature_shift_figure(metrics, title)
    if "consistency_sd" in names:
        yield "consistency", consistency_figure(metrics, title)
    if "predictive_uncertainty" in names:
        yield "uncertainties", uncertainties_figure(metrics, title, protect)
    if "individual_fairness_prediction" in names:
        yield "individual_fairness", individual_fairness_figure(metrics, title, protect)


def draw_figures(metrics: pd.DataFrame, title: str, protect: str, folder: Path) -> None:
    """Draw every figure of a run into a folder, as PNG files."""
    for name, figure in figures(metrics, title, protect):
        figure.savefig(folder / f"{name}.png", format="png")


class DrawnFigure(Figure):
    """A figure that a notebook shows, though it was drawn without pyplot."""

    def _repr_png_(self) -> bytes:
        """Return the figure as a notebook shows it."""
        content = BytesIO()
        self.savefig(content, format="png")
        return content.getvalue()


def _new(width: float = 4.8, height: float = 4.2) -> tuple[Figure, Axes]:
    """Return a figure with fixed margins: fitting them takes as long as all the drawing."""
    figure = DrawnFigure(figsize=(width, height), dpi=110)
    FigureCanvasAgg(figure)
    figure.subplots_adjust(left=0.14, right=0.96, bottom=0.13, top=0.92)
    return figure, figure.add_subplot()


def reliability_figure(metrics: pd.DataFrame, title: str) -> Figure:
    """Draw observed share of positives against mean predicted probability, per bin."""
    points = _paired(metrics, "reliability_mean_score", "reliability_base_rate")
    figure, axes = _new()
    _identity(axes, 0, 1)
    _per_repeat(axes, points)
    axes.set(xlabel="mean predicted probability", ylabel="share of positives", title=title)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.legend(frameon=False)
    return figure


def spread_figure(metrics: pd.DataFrame, title: str) -> Figure:
    """Draw the sd of the residuals against mean predicted uncertainty, per group of rows."""
    points = _paired(metrics, "spread_predicted", "spread_empirical")
    points = points[points["bins"] == points["bins"].iloc[0]]
    figure, axes = _new()
    top = float(np.nanmax(points[["x", "y"]].to_numpy())) * 1.05
    _identity(axes, 0, top)
    _per_repeat(axes, points)
    axes.set(xlabel="mean predicted uncertainty", ylabel="sd of target - prediction", title=title)
    axes.set(xlim=(0, None), ylim=(0, None))
    axes.legend(frameon=False)
    return figure


_OF_REPEATS = "rate, with 95 % interval of one repeat (medians over repeats)"


def group_rates_figure(
    metrics: pd.DataFrame, title: str, protect: str, *, label: str = _OF_REPEATS
) -> Figure:
    """Draw the rates of each group of `protect` with their intervals; `label` is of the axis.

    Of several classes it is the error rate and the true positive rate of each class.
    """
    rates = metrics[(metrics["attribute"] == protect) & (metrics["group"] != "")]
    rates = rates.assign(metric=with_class(rates).astype(str))
    class_rates = [
        name for name in dict.fromkeys(rates["metric"]) if name.startswith(f"{_FOUND}{CLASS}")
    ]
    shown_rates = ["error_rate", *class_rates] if class_rates else list(_RATES)
    groups, title = _groups_and_title(rates, title)
    figure, axes = _new(7.2, 1.6 + 0.32 * len(groups) * len(shown_rates) / 2)
    figure.set_layout_engine("constrained")  # the groups' names may be of any length
    step = 0.8 / len(groups)
    for g, group in enumerate(groups):
        rows = (
            rates[rates["group"] == group].groupby("metric")[["value", "lower", "upper"]].median()
        )
        rows = rows.reindex(shown_rates)
        y = np.arange(len(shown_rates)) + (g - (len(groups) - 1) / 2) * step
        low = np.maximum(rows["value"] - rows["lower"], 0)
        high = np.maximum(rows["upper"] - rows["value"], 0)
        axes.errorbar(
            rows["value"],
            y,
            xerr=[low, high],
            fmt=MARKERS[g % len(MARKERS)],
            markersize=5,
            capsize=3,
            color=COLOURS[g % len(COLOURS)],
            label=short(group),
        )
    axes.set_yticks(
        range(len(shown_rates)), [short(name.replace("_", " "), 40) for name in shown_rates]
    )
    axes.invert_yaxis()
    axes.set(xlabel=label, title=title)
    axes.set_xlim(0, 1)
    axes.grid(axis="x", alpha=0.3)
    axes.legend(title=short(protect), frameon=False, bbox_to_anchor=(1.01, 1), loc="upper left")
    return figure


def intervals_figure(rows: pd.DataFrame, epsilon: float, label: str) -> Figure:
    """Draw intervals one below the other; the region of practical equivalence is shaded.

    Parameters
    ----------
    rows : a frame with the columns title, value, lower and upper.
    label : the label of the axis.
    """
    figure = DrawnFigure(figsize=(7.0, 1.2 + 0.3 * len(rows)), dpi=110, layout="constrained")
    axes = figure.add_subplot()
    places = np.arange(len(rows))
    axes.axvspan(-epsilon, epsilon, color="#dcebf5", label=f"less than {epsilon:g}")
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.hlines(
        places, rows["lower"], rows["upper"], color=BLUE, linewidth=2, label="95 % interval"
    )
    axes.plot(rows["value"], places, "o", color=BLUE, markersize=5)
    axes.set_yticks(places, [short(title, 48) for title in rows["title"]])
    axes.invert_yaxis()
    axes.set_xlabel(label)
    axes.grid(axis="x", alpha=0.3)
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
    figure = DrawnFigure(
        figsize=(2.4 * across + 0.4, 2.4 * down + 0.4), dpi=110, layout="constrained"
    )
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


def abstention_figure(metrics: pd.DataFrame, title: str, protect: str) -> Figure:
    """Draw error and fairness of the rows kept, and each group's abstention, against the rate."""
    curves = metrics[(metrics["attribute"] == protect) & metrics["rate"].notna()]
    figure = Figure(figsize=(9, 4), dpi=110)
    FigureCanvasAgg(figure)
    figure.subplots_adjust(left=0.09, right=0.98, bottom=0.13, top=0.9, wspace=0.22)
    left, right = figure.subplots(1, 2)
    overall = curves[curves["group"] == ""]
    names = ("error_rate", "statistical_parity", "equalized_odds")
    for name, colour, marker in zip(names, (BLUE, ORANGE, GREEN), "os^", strict=True):
        curve = overall[overall["metric"] == f"abstention_{name}"].groupby("rate")["value"]
        _band(left, curve, name.replace("_", " "), colour, marker)
    rates = curves[(curves["group"] != "") & (curves["metric"] == "abstention_rate")]
    rates_by_group = rates.groupby("group", sort=False, observed=True)
    for (group, rows), colour in zip(rates_by_group, cycle(COLOURS), strict=False):
        _band(right, rows.groupby("rate")["value"], short(str(group)), colour, "o")
    left.set(xlabel="share abstained on", ylabel="of the rows kept (mean, sd over repeats)")
    right.set(xlabel="share abstained on", ylabel=f"share abstained on, by {short(protect)}")
    left.set_ylim(0, None)
    for axes in (left, right):
        axes.legend(frameon=False)
    figure.suptitle(title)
    return figure


def feature_shift_figure(metrics: pd.DataFrame, title: str) -> Figure:
    """Draw the features that abstention moves most, at the highest rate of abstention."""
    shifts = feature_shifts(metrics)
    rate = shifts["rate"].max()
    shifts_by_feature = shifts[shifts["rate"] == rate].groupby("feature", sort=False)["value"]
    shift = pd.DataFrame(
        {"mean": shifts_by_feature.mean(), "sd": shifts_by_feature.std().fillna(0)}
    )
    shift = shift.nlargest(TOP_FEATURES, "mean")
    figure, axes = _new(6.4, 1.3 + 0.32 * len(shift))
    figure.set_layout_engine("constrained")  # the features' names may be of any length
    places = range(len(shift))
    axes.barh(
        places, shift["mean"], xerr=shift["sd"], color=BLUE, ecolor="black", capsize=3, height=0.6
    )
    axes.set_yticks(places, [short(name) for name in shift.index])
    axes.invert_yaxis()
    axes.set(xlabel=f"{SHIFT_LABEL}\nabstaining on {rate:.0%} (mean, sd over repeats)", title=title)
    return figure


def feature_shifts(metrics: pd.DataFrame) -> pd.DataFrame:
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


def consistency_figure(metrics: pd.DataFrame, title: str) -> Figure:
    """Draw the distribution over individuals of the sd across variants, and the noise's beside it.

    Boxes run from the 25th to the 75th percentile, whiskers from the 5th to the 95th, crosses mark
    the maximum; all are means over repeats.
    """
    figure, axes = _new()
    boxes = []
    for name in ("consistency", "noise"):
        box = quantile_box(metrics, name)
        if box is not None:
            boxes.append({**box, "label": _BOX_LABELS[name]})
    axes.bxp(boxes, flierprops={"marker": "x"}, medianprops={"color": ORANGE})
    axes.set(ylabel="sd of an individual's uncertainty", title=title, ylim=(0, None))
    return figure


def quantile_box(metrics: pd.DataFrame, name: str) -> dict[str, Any] | None:
    """Return the box of ``consistency`` or ``noise``, means over repeats; None without one."""
    rows = metrics[metrics["metric"] == f"{name}_sd"]
    if rows["value"].notna().sum() == 0:
        return None
    q = rows.groupby("quantile")["value"].mean()
    top = metrics.loc[metrics["metric"] == f"{name}_max_sd", "value"].mean()
    box = {"whislo": q[0.05], "q1": q[0.25], "med": q[0.5], "q3": q[0.75], "whishi": q[0.95]}
    return {**box, "fliers": [top]}


def _band(axes: Axes, curve: Any, label: str, colour: str, marker: str) -> None:
    """Draw the mean over repeats with a band of one sd either way."""
    mean, sd = curve.mean(), curve.std().fillna(0)
    axes.plot(mean.index, mean, color=colour, marker=marker, markersize=4, label=label)
    axes.fill_between(mean.index, mean - sd, mean + sd, color=colour, alpha=0.15, linewidth=0)


def _paired(metrics: pd.DataFrame, x: str, y: str) -> pd.DataFrame:
    keys = ["repeat", "fold", "variant", "bins", "bin"]
    sides = [metrics[metrics["metric"] == name].set_index(keys)["value"] for name in (x, y)]
    return pd.DataFrame({"x": sides[0], "y": sides[1]}).reset_index()


def _identity(axes: Axes, low: float, high: float) -> None:
    axes.plot([low, high], [low, high], color=GREY, linestyle="--", linewidth=1, label="calibrated")


def _per_repeat(axes: Axes, points: pd.DataFrame) -> None:
    """Draw every repeat faintly, and the mean of each bin on top."""
    axes.plot(
        points["x"], points["y"], "o", color=BLUE, alpha=0.2, markersize=3, label="one repeat"
    )
    mean = points.groupby("bin", sort=False)[["x", "y"]].mean().sort_values("x")
    axes.plot(mean["x"], mean["y"], "o-", color=ORANGE, markersize=5, label="mean of repeats")


PARTS = ("aleatoric", "epistemic", "predictive")
FEWEST = 10  # means of fewer rows are not drawn
OUTCOMES = {
    "TP": "true positives",
    "FP": "false positives",
    "TN": "true negatives",
    "FN": "false negatives",
}


def uncertainties_figure(metrics: pd.DataFrame, title: str, protect: str) -> Figure:
    """Draw the mean uncertainties of each group of `protect`, with the intervals of one repeat."""
    of_attribute = metrics[(metrics["attribute"] == protect) & (metrics["group"] != "")]
    parts = [part for part in PARTS if f"{part}_uncertainty" in set(of_attribute["metric"])]
    groups, title = _groups_and_title(of_attribute, title)
    figure = _constrained(1.2 + 2.6 * len(parts), 1.4 + 0.35 * len(groups))
    for axes, part in zip(figure.subplots(1, len(parts), squeeze=False)[0], parts, strict=True):
        rows = of_attribute[of_attribute["metric"] == f"{part}_uncertainty"].groupby(
            "group", sort=False
        )
        middle = rows[["value", "lower", "upper"]].median().reindex(groups)
        reach = [middle["value"] - middle["lower"], middle["upper"] - middle["value"]]
        for g, group in enumerate(groups):
            error = [[max(side[group], 0)] for side in reach]
            colour = COLOURS[g % len(COLOURS)]
            axes.errorbar(middle["value"][group], g, xerr=error, fmt="o", capsize=3, color=colour)
        names = [short(group) for group in groups] if part == parts[0] else []
        axes.set_yticks(range(len(groups)), names)
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
    of_attribute = metrics[(metrics["attribute"] == protect) & metrics["outcome"].notna()]
    of_attribute = of_attribute[of_attribute["n"] >= FEWEST]
    names = [f"individual_fairness_{part}" for part in ("prediction", *PARTS)]
    names = [name for name in names if name in set(of_attribute["metric"])]
    colours = dict(zip(dict.fromkeys(of_attribute["group"]), cycle(COLOURS), strict=False))
    figure = _constrained(2.4 * len(OUTCOMES), 0.8 + 1.9 * len(names))
    grid = figure.subplots(len(names), len(OUTCOMES), sharex=True, sharey="row", squeeze=False)
    for row, name in zip(grid, names, strict=True):
        for axes, outcome in zip(row, OUTCOMES, strict=True):
            chosen = of_attribute[
                (of_attribute["metric"] == name) & (of_attribute["outcome"] == outcome)
            ]
            _curves(axes, chosen, colours)
        row[0].set_ylabel(name.removeprefix("individual_fairness_"))
    for axes, words in zip(grid[0], OUTCOMES.values(), strict=True):
        axes.set_title(words, fontsize="medium")
    lines = {line.get_label(): line for axes in grid[0] for line in axes.lines}
    figure.legend(
        lines.values(), lines, title=short(protect), frameon=False, loc="outside right upper"
    )
    figure.supxlabel("neighbours (mean, sd over repeats)")
    figure.suptitle(title)
    return figure


LINES = ("-", "--", ":", "-.", (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1)))


def _curves(axes: Axes, rows: pd.DataFrame, colours: dict[str, str]) -> None:
    """Draw a curve of means against neighbours, with a band of one sd, for each group."""
    for index, (group, colour) in enumerate(colours.items()):
        group_rows = rows[rows["group"] == group]
        if group_rows.empty:
            continue
        curve = group_rows.groupby("k")["value"]
        mean, sd = curve.mean(), curve.std().fillna(0)
        line = LINES[index % len(LINES)]
        axes.plot(mean.index, mean, color=colour, linestyle=line, label=short(group))
        axes.fill_between(mean.index, mean - sd, mean + sd, color=colour, alpha=0.15, linewidth=0)
    axes.grid(alpha=0.3)


def _constrained(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    return figure
