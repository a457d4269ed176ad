"""The figures of runs, audits and methods as matplotlib draws them; nothing has pyplot's state.

What they show is decided in :mod:`fairbench.reporting.panels`: `figures` and `draw_figures` are of
one run, `DRAWN` of several methods. Those of an audit and of the difference of two runs are here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from io import BytesIO
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
from matplotlib.patches import Polygon, Rectangle

from fairbench.core.arrays import Floats
from fairbench.core.text import mathtext, visible
from fairbench.evaluation.table import values_of, without_classes
from fairbench.inference.comparing import Comparison, Density, Region, event_name
from fairbench.metrics.registry import label as metric_label
from fairbench.reporting import panels as shown
from fairbench.reporting.charts import BLUE, GREEN, GREY, ORANGE, Panel, Series, reach_of

Named: TypeAlias = tuple[str, Figure]
_MARKERS = "os^DvPX*<"
_LINES = ("-", "--", ":", "-.", (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1)))
_LETTERS_PER_INCH = 10
_OUTCOMES = len(shown.OUTCOMES)


def figures(metrics: pd.DataFrame, title: str, protect: str) -> Iterator[Named]:
    """Yield (name, figure) for every figure that the metrics of the run's own variant allow."""
    every = values_of(metrics[metrics["variant"] == ""])
    metrics = without_classes(every)
    for name, (needed, panels_of) in shown.OF_A_RUN.items():
        rows = every if panels_of is shown.group_rates else metrics
        if needed in set(rows["metric"]):
            columns = _OUTCOMES if panels_of is shown.individual_fairness else 0
            yield name, _figure_of([*panels_of(rows, protect)], title, columns=columns)


def draw_figures(metrics: pd.DataFrame, title: str, protect: str, folder: Path) -> None:
    """Draw every figure of a run into a folder, as PNG files."""
    for name, figure in figures(metrics, title, protect):
        figure.savefig(folder / f"{name}.png", format="png")


def _of_methods(metrics: pd.DataFrame, kind: str) -> Iterator[Named]:
    """Yield (name, figure) of several methods, with a panel for each data set."""
    styles = shown.method_styles(metrics["method"])
    panels = {
        (name, dataset): panel
        for dataset, rows in metrics.groupby("dataset", sort=False, observed=True)
        for name, panel in shown.OF_METHODS[kind](rows, styles)
    }
    for name in dict.fromkeys(name for name, _ in panels):
        of_name = {dataset: panel for (of, dataset), panel in panels.items() if of == name}
        titles = [
            ", ".join(filter(None, (str(dataset), panel.title)))
            for dataset, panel in of_name.items()
        ]
        with rc_context({"font.size": 12}):
            figure = _figure_of([*of_name.values()], titles=titles)
        yield name, figure


# The figures of several methods, which yield (name, figure), by what they show.
DRAWN: Mapping[str, Callable[[pd.DataFrame], Iterator[Named]]] = {
    kind: partial(_of_methods, kind=kind) for kind in shown.OF_METHODS
}


def individual_fairness_figure(metrics: pd.DataFrame, title: str, protect: str) -> Figure:
    """Draw individual fairness against the number of neighbours, by group and outcome."""
    return _figure_of([*shown.individual_fairness(metrics, protect)], title, columns=_OUTCOMES)


def group_rates_figure(metrics: pd.DataFrame, title: str, protect: str, *, label: str) -> Figure:
    """Draw the rates of each group of `protect` with their intervals; `label` is of the axis."""
    return _figure_of([*shown.group_rates(metrics, protect, label)], title)


def intervals_figure(rows: pd.DataFrame, epsilon: float, label: str) -> Figure:
    """Draw intervals one below the other; the region of practical equivalence is shaded.

    Parameters
    ----------
    rows : a frame with the columns title, value, lower and upper.
    label : the label of the axis.
    """
    ends = rows[["lower", "upper"]].to_numpy(float)
    looks: dict[str, Any] = {"filled": True, "lined": False, "ends": ends}
    series = Series("95 % interval", rows["value"], np.arange(len(rows)), BLUE, **looks)
    panel = Panel([series], label, "", from_zero="", names=[*rows["title"]])
    figure = _figure_of([panel], legend=False)
    axes = figure.axes[0]
    axes.axvspan(-epsilon, epsilon, color="#dcebf5", label=f"less than {epsilon:g}", zorder=0)
    axes.axvline(0, color=GREY, linewidth=0.8, zorder=0)
    _legend(figure)
    return figure


def group_reliability_figure(groups: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw the share of positives among rows of similar scores, a small diagram each group.

    Parameters
    ----------
    groups : name -> its bins, with the columns score, share, lower and upper.
    """
    panels = []
    for name, bins in groups.items():
        band = np.array([bins["share"] - bins["lower"], bins["upper"] - bins["share"]], float)
        looks: dict[str, Any] = {"filled": True, "lined": False, "band": band}
        series = [
            Series("", [0, 1], [0, 1], GREY, dashed=1, marked=False),
            Series("", bins["score"], bins["share"], BLUE, **looks),
        ]
        spans = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
        label = "share of positives, with 95 % interval"
        panels.append(Panel(series, "mean score", label, name, spans=spans))
    return _figure_of(panels, columns=4)


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


def _figure_of(
    panels: Sequence[Panel],
    title: str = "",
    *,
    titles: Sequence[str] = (),
    columns: int = 0,
    legend: bool = True,
) -> Figure:
    """Return panels as a figure: a label that all have stands once, and so does their key.

    Parameters
    ----------
    titles : those of the panels, if not their own.
    columns : how many panels are side by side, on one scale; 0 for as many as have room.
    """
    named, alone = len(panels[0].names) > 0, not columns
    marks = max(sum(np.size(series.y) for series in panel.series) for panel in panels)
    columns = min(columns or (2 if named else 3), len(panels))
    rows = -(-len(panels) // columns)
    width = 9.6 / columns if columns > 1 else 7.2 if named else 4.8
    height = max(0.32 * len(panels[0].names), 0.16 * marks) + 1 if named else min(width, 3.2)
    figure = _new_figure(width * columns, height * rows + 0.4, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharey=False if alone else "row")
    for axes, panel, heading in zip(
        grid.flat, panels, titles or [panel.title for panel in panels], strict=False
    ):
        _render(axes, panel, 48 if columns == 1 else 28)
        axes.set_title(short(heading, 40), fontsize="medium")
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    for axis, write in (("x", figure.supxlabel), ("y", figure.supylabel)):
        labels = [getattr(panel, f"{axis}_label") for panel in panels]
        if len(set(labels)) == 1:
            size = figure.get_figwidth() if axis == "x" else figure.get_figheight()
            write(fill(labels[0], int(size * _LETTERS_PER_INCH)), fontsize="medium")
        else:
            for axes, label in zip(figure.axes, labels, strict=True):
                axes.set(**{f"{axis}label": fill(label, int(10 * width))})
    if legend:
        _legend(figure, title)
    return figure


def _render(axes: Axes, panel: Panel, letters: int) -> None:
    """Draw a panel's series, and set its axes; names of rows have so many letters at most."""
    for series in panel.series:
        colour, x, y = series.colour, np.asarray(series.x, float), np.asarray(series.y, float)
        looks: dict[str, Any] = {
            "color": colour,
            "linestyle": _LINES[int(series.dashed) % len(_LINES)] if series.lined else "",
            "marker": _MARKERS[series.shape % len(_MARKERS)] if series.marked else "",
            "markerfacecolor": colour if series.filled else "none",
        }
        axes.plot(x, y, **looks, markersize=5, label=short(series.name.replace("_", " "), 40))
        below, above = reach_of(series)
        if series.band is not None and series.lined:
            axes.fill_between(x, y - below, y + above, color=colour, alpha=0.15, linewidth=0)
        elif series.band is not None:
            axes.vlines(x, y - below, y + above, color=colour)
        if series.ends is not None:
            axes.hlines(y, *series.ends.T, color=colour)
        if series.outline is not None:
            axes.add_patch(Polygon(series.outline, fill=False, edgecolor=colour))
    axes.set_axisbelow(True)
    axes.grid(axis="x" if len(panel.names) else "both", alpha=0.3)
    if len(panel.names):
        axes.set_yticks(
            range(len(panel.names)), [short(str(name), letters) for name in panel.names]
        )
    for axis, limit in (("x", axes.set_xlim), ("y", axes.set_ylim)):
        if (span := panel.span(axis)) is not None:
            limit(*span)
        elif axis in panel.from_zero:
            limit(0, None)


def _legend(figure: Figure, title: str = "") -> None:
    """Draw a title and one legend for all panels of a figure."""
    handle_by_label: dict[str, Artist] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handle_by_label.setdefault(label, handle)
    handles, labels = list(handle_by_label.values()), list(handle_by_label)
    about: dict[str, Any] = {"title": mathtext(title), "title_fontsize": "large", "frameon": False}
    columns = 3 if len(figure.axes) > 1 else 2
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, **about)


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
