"""The picture of a comparison by two objectives: where the difference lies, and how surely."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from fairbench.inference.practical_difference import Comparison, event_name
from fairbench.inference.region import Density, Region
from fairbench.reporting.palette import BLUE, GREEN, GREY, ORANGE

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
    names : what A and B are.
    """
    figure = Figure(figsize=(6.4, 6.0), dpi=110)
    FigureCanvasAgg(figure)
    figure.subplots_adjust(left=0.15, right=0.96, bottom=0.20, top=0.92)
    axes = figure.add_subplot()
    _limits(axes, comparison, region)
    _rope(axes, comparison.rope)
    if region.density is None:
        axes.plot(*comparison.delta.T, ".", color=BLUE, markersize=2, alpha=0.3)
    else:
        _contours(axes, region.density)
    _events(axes, comparison, region)
    x, y = (name.replace("_", " ") for name in comparison.objectives)
    axes.set_xlabel(f"Δ {x}, A - B  (A better →)", fontsize=13)
    axes.set_ylabel(f"Δ {y}, A - B  (A better →)", fontsize=13)
    axes.set_title(title, fontsize=13)
    axes.tick_params(labelsize=12)
    figure.text(0.02, 0.055, f"A: {names[0]}", fontsize=12, color=BLUE)
    figure.text(0.02, 0.015, f"B: {names[1]}", fontsize=12, color=ORANGE)
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
    probability = comparison.events(region.inside)
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 2}
    for outcome, x, y in _CORNERS:
        name = event_name(outcome, comparison.objectives)
        text = f"{_words(name)}\n{probability[name]:.2f}"
        drawn = axes.text(x, y, text, transform=axes.transAxes, fontsize=13, bbox=box, zorder=5)
        drawn.set_horizontalalignment("right" if x > 0.5 else "left")
        drawn.set_verticalalignment("top" if y > 0.5 else "bottom")
    name = event_name((1, 1), comparison.objectives)
    axes.annotate(
        f"{_words(name)}  {probability[name]:.2f}",
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


def _words(event: str) -> str:
    for ascii_, symbol in ((">>", "≫"), ("~", "≈")):
        event = event.replace(ascii_, symbol)
    return event.replace("_", " ").replace(", ", ",\n")
