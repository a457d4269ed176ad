"""Uncertainty Matters' pictures on German, from the ground truth and its posteriors.

``python -m papers.uncertainty_matters.figures [CVS]`` draws, of each pair of Tables 2 and 3, the
groups' rates, both algorithms' posteriors with all cross-validations on top, and the posterior of
their difference; and all regions' areas. The files are in results/report/uncertainty_matters.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from fairbench.core.files import atomic
from fairbench.core.seeds import rng
from fairbench.inference.posterior import table_draws
from fairbench.inference.practical_difference import Density, highest_density_region
from fairbench.metrics.rates import false_positive_rate, true_positive_rate
from fairbench.reporting.charts import BLUE, GREEN, GREY, ORANGE
from papers.uncertainty_matters.measured import RHOS, Measured, measure
from papers.uncertainty_matters.posteriors import LEVEL, ROPE, favourable, short, values
from papers.uncertainty_matters.tables import AREA, REPORT, pairs, read_published, table_12_1

Array = NDArray[np.float64]
RHO = "rho=1/K"
_GROUPS = ("age > 25", "age <= 25")
_SIZE = {"fontsize": 13}


def pair_figure(measured: Measured, names: tuple[str, str]) -> Figure:
    """Draw four panels from one cross-validation, and what all others found."""
    figure = Figure((12, 11), dpi=90, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(2, 2)
    for axes, name in zip(panels[0], names, strict=True):
        _rates(axes, measured, name)
    _algorithms(panels[1, 0], measured, names)
    _difference(panels[1, 1], measured, names)
    cvs = measured.cvs(*names)
    figure.suptitle(
        f"German, age > 25: 95 % regions of one ten-fold cross-validation ({RHO}), and the point "
        f"estimates of {cvs}", fontsize=14,
    )  # fmt: skip
    return figure


def _rates(axes: Axes, measured: Measured, name: str) -> None:
    """Show the posterior of both groups' true and false positive rates."""
    counts = favourable(measured.counts[name])
    worth = measured.effective_fraction(name, RHO) or 1.0
    draws = table_draws(counts[0] * worth, measured.draws, rng(0, "figure", name))
    for g, (label, colour) in enumerate(zip(_GROUPS, (BLUE, ORANGE), strict=True)):
        of = (true_positive_rate, false_positive_rate)
        cloud = np.column_stack([rate(draws[:, g : g + 1])[:, 0] for rate in of])
        points = np.column_stack([rate(counts[:, g : g + 1])[:, 0] for rate in of])
        _region(axes, cloud, colour, label)
        _points(axes, points, colour)
    _labels(axes, short(name), "true positive rate (good loans)", "false positive rate")


def _algorithms(axes: Axes, measured: Measured, names: Sequence[str]) -> None:
    for name, colour in zip(names, (BLUE, ORANGE), strict=True):
        _region(axes, _cloud(measured, name), colour, short(name))
        _points(axes, values(measured.counts[name]), colour)
    axes.axhline(0, color=GREY, linestyle=":", linewidth=1)
    _labels(axes, "both algorithms", "accuracy", "equal opportunity difference")


def _difference(axes: Axes, measured: Measured, names: Sequence[str]) -> None:
    first, second = (_cloud(measured, name) for name in names)
    _region(axes, first - second, GREEN, f"A - B, {RHO}, independent")
    found = [values(measured.counts[name][: measured.cvs(*names)]) for name in names]
    _points(axes, found[0] - found[1], "black", "A - B in each cross-validation")
    x, y = ROPE
    axes.add_patch(Rectangle((-x, -y), 2 * x, 2 * y, color=GREY, alpha=0.5, zorder=4))
    for end in (-1, 1):
        axes.axvline(end * x, color=GREY, linestyle=":", linewidth=1)
        axes.axhline(end * y, color=GREY, linestyle=":", linewidth=1)
    title = f"A: {short(names[0])}, B: {short(names[1])}"
    _labels(axes, title, "Δ accuracy (A better →)", "Δ equal opportunity difference (A better →)")


def _cloud(measured: Measured, name: str) -> Array:
    cloud = measured.cloud(name, RHO)
    assert cloud is not None
    first: Array = cloud.draws[0]
    return first


def _region(axes: Axes, draws: Array, colour: str, label: str) -> None:
    density = highest_density_region(draws[~np.isnan(draws).any(axis=1)], LEVEL).density
    if density is not None:
        _contour(axes, density, colour)
    axes.plot([], [], color=colour, linewidth=2, label=label)


def _contour(axes: Axes, density: Density, colour: str) -> None:
    grid = density.x, density.y, density.values.T
    levels = [density.threshold, float(density.values.max())]
    axes.contourf(*grid, levels=levels, colors=[colour], alpha=0.2, zorder=2)
    axes.contour(*grid, levels=levels[:1], colors=[colour], linewidths=2, zorder=3)


def _points(axes: Axes, points: Array, colour: str, label: str | None = None) -> None:
    shown = points[:500]
    style: dict[str, Any] = {"markersize": 3, "alpha": 0.5, "zorder": 5}
    axes.plot(*shown.T, ".", color=colour, label=label, **style)


def _labels(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=14)
    axes.set_xlabel(x, fontsize=13)
    axes.set_ylabel(y, fontsize=13)
    axes.tick_params(labelsize=12)
    axes.legend(edgecolor="none", framealpha=0.8, fontsize=12)
    axes.grid(alpha=0.25)


def areas_figure(rows: pd.DataFrame) -> Figure:
    """Draw the area of every algorithm's region by the choice of rho, the published one beside it.

    Parameters
    ----------
    rows : of :func:`papers.uncertainty_matters.tables.table_12_1`.
    """
    rows = rows[rows["metric"] == AREA]
    names = list(dict.fromkeys(rows["method"]))[::-1]
    figure = Figure((13, 7), dpi=90, layout="constrained")
    FigureCanvasAgg(figure)
    for axes, rho in zip(figure.subplots(1, len(RHOS), sharey=True), RHOS, strict=True):
        mine = rows[rows["setting"] == rho].set_index("method").loc[names]
        at = np.arange(len(names))
        error = 2 * mine["posterior sd"]
        axes.errorbar(mine["posterior"], at, xerr=error, fmt="o", color=BLUE, label="posterior")
        axes.plot(mine["predictive"], at, "s", color=ORANGE, fillstyle="none", label="predictive")
        axes.plot(mine["published"], at, "x", color="black", label="published")
        axes.set_yticks(at, [short(name) for name in names], **_SIZE)
        axes.set_title(rho, fontsize=14)
        axes.set_xlabel("area of the 95 % region", **_SIZE)
        axes.locator_params(axis="x", nbins=4)
        axes.tick_params(labelsize=12)
        axes.set_xlim(0, None)
        axes.grid(alpha=0.25)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, **_SIZE)
    return figure


def save(figure: Figure, name: str) -> Path:
    """Write a figure and return its path."""
    path = REPORT / f"{name}.png"
    with atomic(path) as temporary:
        figure.savefig(temporary, format="png")
    return path


def main() -> None:
    """Draw and write all figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cvs", nargs="?", type=int, default=200)
    parser.add_argument("--results", default=Path("results"), type=Path)
    options = parser.parse_args()
    published = read_published()
    chosen = pairs(published)
    measured = measure(chosen, options.results, options.cvs)
    for i, names in enumerate(chosen, start=1):
        if set(names) <= measured.counts.keys():
            print(save(pair_figure(measured, names), f"pair{i}"))
    print(save(areas_figure(table_12_1(measured, published)), "region_areas"))


if __name__ == "__main__":
    main()
