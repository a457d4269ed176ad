"""The pictures of two runs' difference, and of error against gaps between groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon, Rectangle
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from fairbench.core.text import mathtext
from fairbench.inference.comparing import Comparison, Density, Region, event_name
from fairbench.metrics.registry import label as metric_label
from fairbench.reporting.charts import (
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    ORANGE,
    near_letters,
    outline_of,
    with_styles,
)
from fairbench.reporting.figures import new_figure

_PALE_BLUE = "#56B4E9"
_SHARES = (0.8, 0.5)  # of the region's mass, inside the inner contours
# The corner of an event that wins both objectives, one, the other, or none: A wins upwards.
_CORNERS = (((0, 0), 0.97, 0.97), ((2, 2), 0.03, 0.03), ((2, 0), 0.03, 0.97), ((0, 2), 0.97, 0.03))


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
    figure = new_figure(6.4, 6.0)
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


def _rope(axes: Axes, rope: NDArray[np.float64]) -> None:
    """Draw the region of practical equivalence, and dotted lines at its limits."""
    x, y = rope
    style: dict[str, Any] = {"color": GREY, "linestyle": ":", "linewidth": 1.2, "zorder": 1}
    for end in (-1, 1):
        if np.isfinite(x):
            axes.axvline(end * x, **style)
        if np.isfinite(y):
            axes.axhline(end * y, **style)
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
    """Write the probability of each event into its corner of the plot."""
    probability = comparison.events(region.inside)
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 2}
    for outcome, x, y in _CORNERS:
        name = event_name(outcome, comparison.objectives)
        text = f"{_event_sentence(name)}\n{probability[name]:.2f}"
        label = axes.text(x, y, text, transform=axes.transAxes, fontsize=13, bbox=box, zorder=5)
        label.set_horizontalalignment("right" if x > 0.5 else "left")
        label.set_verticalalignment("top" if y > 0.5 else "bottom")
    name = event_name((1, 1), comparison.objectives)
    axes.annotate(
        f"{_event_sentence(name)}  {probability[name]:.2f}",
        (0, 0),
        (0.5, 0.97),
        textcoords="axes fraction",
        ha="center",
        va="top",
        fontsize=13,
        color="#00664B",
        bbox=box,
        zorder=6,
        arrowprops={"arrowstyle": "-", "color": "#00664B", "shrinkB": 0},
    )


def _event_sentence(event: str) -> str:
    for ascii_, symbol in ((">>", "≫"), ("~", "≈")):
        event = event.replace(ascii_, symbol)
    return event.replace("_", " ").replace(", ", ",\n")


_BLACK = COLOURS[-1]
_LONGEST = 46  # letters of a name in the key; longer names shrink the font
_NEAR = 0.05  # of an axis; letters of nearer points would overlap


def tradeoff_figure(
    table: pd.DataFrame,
    curve: pd.DataFrame,
    title: str,
    base: str,
    spread: str = "the mean of all repeats",
) -> Figure:
    """Draw a panel for each metric: filled points with a letter are those that none dominates.

    Parameters
    ----------
    table : the result of :func:`fairbench.comparison.runs.tradeoff`.
    curve : the result of :func:`fairbench.inference.comparing.frontier`.
    base : the name of the model that the curve was made from.
    spread : the quantity whose posterior the ellipses describe.
    """
    table = with_styles(table)
    metrics = list(dict.fromkeys(table["metric"]))
    with rc_context({"font.size": 14}):
        figure = new_figure(11, 12, dpi=90, layout="constrained")
        for axes, metric in zip(figure.subplots(2, 2).flat, metrics, strict=True):
            points = table[table["metric"] == metric]
            _points(axes, points)
            _frontier(axes, curve[curve["constraint"] == metric].sort_values("relaxation"))
            axes.set_ylim(0, None)
            _letters(axes, points[points["best"]].sort_values("error"))
            axes.set(xlabel="error rate", ylabel=f"{metric.replace('_', ' ')} gap")
            axes.locator_params(nbins=5)
            axes.grid(alpha=0.25)
        key = _key(table, base)
        lines = [line for handle in key for line in str(handle.get_label()).splitlines()]
        size = min(14.0, 14 * _LONGEST / max(map(len, lines)))
        figure.legend(
            handles=key, loc="outside lower center", ncols=2, frameon=False, fontsize=size
        )
        figure.suptitle(f"{mathtext(title)}, with 95 % posterior ellipses of {spread}")
    return figure


def _points(axes: Axes, rows: pd.DataFrame) -> None:
    """Draw the point of every run, with its posterior ellipse."""
    for row in rows[rows["gap"].notna()].sort_values("best").to_dict("records"):
        colour, best = row["colour"], row["best"]
        ellipse = _ellipse(row)
        ellipse.set(edgecolor=colour, facecolor="none", linewidth=2 if best else 1)
        ellipse.set(alpha=0.9 if best else 0.3)
        axes.add_patch(ellipse)
        axes.plot(
            row["error"], row["gap"], row["marker"], color=colour, zorder=3 + best, markersize=10,
            markerfacecolor=colour if best else "white", markeredgewidth=2,
        )  # fmt: skip
    axes.margins(0.07)


def _letters(axes: Axes, best: pd.DataFrame) -> None:
    """Write each point's letter beside it, those of points too near for two in one place."""
    size = np.array([np.ptp(axes.get_xlim()), np.ptp(axes.get_ylim())])
    outline = withStroke(linewidth=3, foreground="white")
    rows = best.to_dict("records")
    for first, letters in near_letters(rows, _NEAR * size).items():
        axes.annotate(
            letters, (rows[first]["error"], rows[first]["gap"]), (-8, 5), ha="right",
            textcoords="offset points", fontsize=15, fontweight="bold", zorder=5,
            path_effects=[outline], color=rows[first]["colour"],
        )  # fmt: skip


def _ellipse(row: Mapping[str, Any]) -> Polygon:
    """Return the ellipse that holds 95 % of a normal of the row's covariance."""
    return Polygon(outline_of(row))


def _frontier(axes: Axes, curve: pd.DataFrame) -> None:
    """Draw the curve from its tightest constraint to its loosest, which has a ring."""
    if curve.empty:
        return
    axes.plot(curve["error"], curve["gap"], ".-", color=_BLACK, linewidth=1.5, zorder=2)
    end = curve.iloc[-1]
    axes.plot(end["error"], end["gap"], "o", color=_BLACK, markerfacecolor="none", markersize=12)


def _key(table: pd.DataFrame, base: str) -> list[Line2D]:
    """Return the entries of the legend."""
    key = []
    for row in table.drop_duplicates("run").sort_values("letter").to_dict("records"):
        best = isinstance(row["letter"], str)
        letter = f"{row['letter']}  " if best else ""
        point = Line2D([], [], linestyle="", marker=row["marker"], color=row["colour"])
        name = mathtext(f"{letter}{row['intervention']}, {row['kind']}")
        point.set(markersize=10, markeredgewidth=2, label=name)
        point.set_markerfacecolor(row["colour"] if best else "white")
        key.append(point)
    if base:
        label = f"{mathtext(base)}, a threshold per group,\nfrom unprocessed (ring) to parity"
        key.append(Line2D([], [], color=_BLACK, marker=".", label=label))
    return key
