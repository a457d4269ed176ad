"""Uncertainty Matters' figures: on German from packed cross-validations, and on Adult's test rows.

The captions were not at hand. Each is drawn from what its section is about, as the tables of that
section and the published code have it: both groups' rates, both algorithms' posteriors, and the
posterior of their difference with the region of practical equivalence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from fairbench.components.papers.uncertainty_matters import adult, halves, packed
from fairbench.components.papers.uncertainty_matters.algorithms import ALGORITHMS
from fairbench.components.papers.uncertainty_matters.measured import RHOS, Measured
from fairbench.components.papers.uncertainty_matters.one_partition import PAIRS, Pair, pairs
from fairbench.components.papers.uncertainty_matters.posteriors import (
    LEVEL,
    ROPE,
    favourable,
    short,
    values,
)
from fairbench.components.papers.uncertainty_matters.published_ratios import readings
from fairbench.components.papers.uncertainty_matters.readings import CHOSEN, Setting
from fairbench.components.papers.uncertainty_matters.tables import (
    AREA,
    packed_measure,
    read_published,
    table_12_1,
)
from fairbench.core.arrays import Floats
from fairbench.core.seeds import rng
from fairbench.inference.comparing.practical_difference import Density, highest_density_region
from fairbench.inference.posterior import (
    independent_draws,
    margins,
    paired_draws,
    table_draws,
)
from fairbench.metrics.rates import false_positive_rate, true_positive_rate
from fairbench.reporting.charts import BLUE, COLOURS, GREEN, GREY, ORANGE
from fairbench.reporting.papers.running import Effort

RHO = "rho=1/K"
PRIORS = {"Dir(1)": 1.0, "Dir(1/2)": 0.5, "Dir(0)": 0.0}
_GROUPS = ("age > 25", "age <= 25")
_SIZE: dict[str, Any] = {"fontsize": 13}
_ACCURACY, _OPPORTUNITY = "Δ accuracy (A better →)", "Δ equal opportunity (A better →)"
_SHOWN = 500  # cross-validations that are drawn


def _figure(size: tuple[float, float]) -> Figure:
    figure = Figure(size, dpi=90, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def figure_1(results: Path, effort: Effort) -> Iterator[tuple[str, Figure]]:
    """Yield both comparisons of Tables 2 and 3: groups, algorithms, and their difference."""
    measured = _measured(effort)
    for place, names in enumerate(PAIRS[:2], start=1):
        yield f"pair{place}", pair_figure(measured, names)


def figure_10_1(results: Path, effort: Effort) -> Iterator[tuple[str, Figure]]:
    """Yield the ratios r of variances from half-splits, five at a time, by algorithm."""
    estimates = {name: packed.half_split_estimates(name) for name in ALGORITHMS}
    yield "", ratios_figure(estimates, readings(read_published())["r"])


def figure_12_1(results: Path, effort: Effort) -> Iterator[tuple[str, Figure]]:
    """Yield the areas of the 95 % regions of all algorithms, and each region on its truth."""
    measured = _measured(effort)
    published = read_published()
    rows = published[published["table"] == "12.1"].head(effort.choose(None, None, 16))
    yield "areas", areas_figure(table_12_1(measured, rows))
    yield "regions", regions_figure(measured)


def figure_14_1(results: Path, effort: Effort) -> Iterator[tuple[str, Figure]]:
    """Yield the differences of the three hold-out comparisons on Adult (section 14.1)."""
    draws = effort.choose(adult.DRAWS, adult.DRAWS // 4, 200)
    joint = adult.joint_tables(adult.machines(adult.load(), effort))
    yield "", adult_figure(joint, draws)


def figure_14_3(results: Path, effort: Effort) -> Iterator[tuple[str, Figure]]:
    """Yield the K-fold comparison on German of both machines with Hardt's rule (section 14.2)."""
    yield "", rhos_figure(_pair(2, effort), _draws(effort))


def figure_15_1(results: Path, effort: Effort) -> Iterator[tuple[str, Figure]]:
    """Yield Table 15.1's comparison under three priors."""
    yield "", priors_figure(_pair(0, effort), _draws(effort))


def figure_15_2(results: Path, effort: Effort) -> Iterator[tuple[str, Figure]]:
    """Yield Table 15.2's comparison under three priors."""
    yield "", priors_figure(_pair(1, effort), _draws(effort))


def _draws(effort: Effort) -> int:
    return effort.choose(10000, 2000, 200)


def _measured(effort: Effort) -> Measured:
    whole, kept = packed_measure(), effort.choose(_SHOWN, _SHOWN, 50)
    counts = {name: tables[:kept] for name, tables in whole.counts.items()}
    posteriors = effort.choose(20, 2, 1)
    return replace(whole, counts=counts, posteriors=posteriors, draws=_draws(effort))


def _pair(place: int, effort: Effort) -> Pair:
    compared = pairs(CHOSEN, cvs=effort.choose(None, None, 100))
    return compared[" vs ".join(PAIRS[place])]


def pair_figure(measured: Measured, names: tuple[str, str]) -> Figure:
    """Draw four panels from one cross-validation, and what all others found."""
    figure = _figure((12, 11))
    panels = figure.subplots(2, 2)
    for axes, name in zip(panels[0], names, strict=True):
        _rates(axes, measured, name)
    _algorithms(panels[1, 0], measured, names)
    _both(panels[1, 1], measured, names)
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


def _both(axes: Axes, measured: Measured, names: Sequence[str]) -> None:
    first, second = (_cloud(measured, name) for name in names)
    _region(axes, first - second, GREEN, f"A - B, {RHO}, independent")
    found = [values(measured.counts[name][: measured.cvs(*names)]) for name in names]
    _points(axes, found[0] - found[1], "black", "A - B in each cross-validation")
    _rope(axes)
    title = f"A: {short(names[0])}, B: {short(names[1])}"
    _labels(axes, title, _ACCURACY, "Δ equal opportunity difference (A better →)")


def _cloud(measured: Measured, name: str) -> Floats:
    cloud = measured.cloud(name, RHO)
    assert cloud is not None
    first: Floats = cloud.draws[0]
    return first


def ratios_figure(estimates: Mapping[str, Floats], implied: pd.Series) -> Figure:
    """Draw an algorithm's variance over the reference's, of every five half-splits and of all.

    Parameters
    ----------
    estimates : by algorithm, (J, 2, R, G), the reference among them.
    implied : r by algorithm as the published areas have it.
    """
    names = [name for name in estimates if name != halves.REFERENCE][::-1]
    figure = _figure((10, 7))
    axes = figure.subplots()
    for place, name in enumerate(names):
        own = estimates[name]
        reference = estimates[halves.REFERENCE][: len(own)]
        fives = halves.ratios(own, reference)
        style: dict[str, Any] = {"color": BLUE, "alpha": 0.5}
        label = f"{halves.AT_A_TIME} half-splits" if place == 0 else None
        axes.plot(fives, [place] * len(fives), "o", label=label, **style)
        whole = halves.ratios(own, reference, len(own))[0]
        label = "all of ours" if place == 0 else None
        axes.plot(whole, place, "D", color=ORANGE, markersize=9, label=label)
        label = "implied by the published areas" if place == 0 else None
        axes.plot(implied.get(name, np.nan), place, "x", color="black", markersize=9, label=label)
    axes.axvline(1, color=GREY, linestyle=":")
    axes.set_xscale("log")
    axes.minorticks_off()
    axes.set_xticks(ticks := [0.25, 0.5, 1, 2, 4, 8], [f"{tick:g}" for tick in ticks])
    axes.set_yticks(range(len(names)), [short(name) for name in names], **_SIZE)
    _labels(axes, "German: r, the variance over the support vector machine's", "r", "")
    return figure


def areas_figure(rows: pd.DataFrame) -> Figure:
    """Draw the area of every algorithm's region by the choice of rho, with the published area.

    Parameters
    ----------
    rows : of :func:`papers.uncertainty_matters.tables.table_12_1`.
    """
    rows = rows[rows["metric"] == AREA]
    names = list(dict.fromkeys(rows["method"]))[::-1]
    figure = _figure((13, 7))
    for axes, rho in zip(figure.subplots(1, len(RHOS), sharey=True), RHOS, strict=True):
        ours = rows[rows["setting"] == rho].set_index("method").loc[names]
        at = np.arange(len(names))
        error = 2 * ours["posterior sd"]
        axes.errorbar(ours["posterior"], at, xerr=error, fmt="o", color=BLUE, label="posterior")
        axes.plot(ours["predictive"], at, "s", color=ORANGE, fillstyle="none", label="predictive")
        axes.plot(ours["published"], at, "x", color="black", label="published")
        axes.set_yticks(at, [short(name) for name in names], **_SIZE)
        axes.set_title(rho, fontsize=14)
        axes.set_xlabel("area of the 95 % region", **_SIZE)
        axes.locator_params(axis="x", nbins=4)
        axes.tick_params(labelsize=12)
        axes.set_xlim(0, None)
        axes.grid(alpha=0.25)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, **_SIZE)
    return figure


def regions_figure(measured: Measured) -> Figure:
    """Draw each algorithm's region of one cross-validation, and the estimates of all others."""
    figure, names = _figure((15, 11)), list(measured.counts)
    panels = figure.subplots(3, 5, sharex=True, sharey=True)
    for axes, name in zip(panels.ravel(), names, strict=False):
        _region(axes, _cloud(measured, name), BLUE, RHO)
        _points(axes, values(measured.counts[name]), "black")
        axes.axhline(0, color=GREY, linestyle=":", linewidth=1)
        cvs = measured.cvs(name)
        _labels(axes, f"{short(name)} ({cvs})", "", "")
    for axes in panels.ravel()[len(names) :]:
        axes.set_axis_off()
    for axes in panels[-1]:
        axes.set_xlabel("accuracy", **_SIZE)
    for axes in panels[:, 0]:
        axes.set_ylabel("equal opportunity difference", **_SIZE)
    figure.suptitle(
        f"German: 95 % regions of one cross-validation ({RHO}), and all estimates (how many)",
        fontsize=14,
    )
    return figure


def adult_figure(
    joint: Mapping[tuple[str, str], NDArray[np.int64]], draws: int = adult.DRAWS
) -> Figure:
    """Draw the difference of each pair on one test file, by both kinds of posterior.

    Parameters
    ----------
    joint : pair -> joint counts (G, 8) of the test rows.
    """
    figure = _figure((6 * len(joint), 6))
    panels = figure.subplots(1, len(joint), squeeze=False)[0]
    for axes, (names, counts) in zip(panels, joint.items(), strict=True):
        generator = rng(0, "uncertainty matters", "adult figure", *names)
        for label, colour, drawn in (
            ("independent", BLUE, independent_draws(*margins(counts), draws, generator)),
            ("on the same rows", ORANGE, paired_draws(counts, draws, generator)),
        ):
            first, second = (CHOSEN.values(tables) for tables in drawn)
            _region(axes, first - second, colour, label)
        first, second = (CHOSEN.values(table) for table in margins(counts))
        _points(axes, (first - second)[None], "black")
        _rope(axes)
        axes.locator_params(axis="x", nbins=5)
        _labels(axes, f"A: {names[0]}, B: {names[1]}", _ACCURACY, _OPPORTUNITY)
    figure.suptitle("Adult's own test file: 95 % regions of A - B", fontsize=14)
    return figure


def rhos_figure(pair: Pair, draws: int) -> Figure:
    """Draw a pair's difference on the nearest partition under every rho, and all partitions'."""
    figure = _figure((9, 8))
    axes = figure.subplots()
    for rho, colour in zip(RHOS, COLOURS, strict=False):
        _region(axes, pair.difference_draws(Setting(rho), furthest=False, draws=draws), colour, rho)
    _finish(axes, pair)
    return figure


def priors_figure(pair: Pair, draws: int) -> Figure:
    """Draw a pair's difference on the nearest partition under three priors of every cell."""
    figure = _figure((9, 8))
    axes = figure.subplots()
    for (prior, alpha), colour in zip(PRIORS.items(), COLOURS, strict=False):
        setting = Setting("rho_rel_up", alpha=alpha)
        _region(axes, pair.difference_draws(setting, furthest=False, draws=draws), colour, prior)
    _finish(axes, pair)
    return figure


def _finish(axes: Axes, pair: Pair) -> None:
    label = f"A - B in each of {len(pair.delta[:_SHOWN])} cross-validations"
    _points(axes, pair.delta, "black", label)
    _rope(axes)
    title = f"German: A: {short(pair.names[0])}, B: {short(pair.names[1])}"
    _labels(axes, title, _ACCURACY, _OPPORTUNITY)


def _rope(axes: Axes) -> None:
    x, y = ROPE
    axes.add_patch(Rectangle((-x, -y), 2 * x, 2 * y, color=GREY, alpha=0.5, zorder=4))
    for end in (-1, 1):
        axes.axvline(end * x, color=GREY, linestyle=":", linewidth=1)
        axes.axhline(end * y, color=GREY, linestyle=":", linewidth=1)


def _region(axes: Axes, draws: Floats, colour: str, label: str) -> None:
    density = highest_density_region(draws[~np.isnan(draws).any(axis=1)], LEVEL).density
    if density is not None:
        _contour(axes, density, colour)
    axes.plot([], [], color=colour, linewidth=2, label=label)


def _contour(axes: Axes, density: Density, colour: str) -> None:
    grid = density.x, density.y, density.values.T
    levels = [density.threshold, float(density.values.max())]
    axes.contourf(*grid, levels=levels, colors=[colour], alpha=0.2, zorder=2)
    axes.contour(*grid, levels=levels[:1], colors=[colour], linewidths=2, zorder=3)


def _points(axes: Axes, points: Floats, colour: str, label: str | None = None) -> None:
    shown = points[:_SHOWN]
    style: dict[str, Any] = {"markersize": 3, "alpha": 0.5, "zorder": 5}
    axes.plot(*shown.T, ".", color=colour, label=label, **style)


def _labels(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=14)
    axes.set_xlabel(x, fontsize=13)
    axes.set_ylabel(y, fontsize=13)
    axes.tick_params(labelsize=12)
    axes.legend(edgecolor="none", framealpha=0.8, fontsize=12)
    axes.grid(alpha=0.25)
