"""Uncertainty Matters' figures: on German from packed cross-validations, and on Adult's test rows.

All are of the text's columns, machines and posteriors, on as many cross-validations as are packed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from fairbench.components.papers.engine.matching import Drawn, Effort
from fairbench.components.papers.uncertainty_matters import adult, grid, readings
from fairbench.components.papers.uncertainty_matters.ground_truth import ALGORITHMS, Counts
from fairbench.components.papers.uncertainty_matters.tables import Pair, pairs
from fairbench.core.arrays import Floats, rng
from fairbench.inference.comparing import highest_density_region
from fairbench.inference.posterior import independent_draws, margins, table_draws
from fairbench.inference.survey import mean_shrinkage, variance_ratio
from fairbench.metrics import registry
from fairbench.metrics.registry import accuracy, total, true_positive_rate
from fairbench.reporting.charts import BLUE, COLOURS, GREEN, GREY, ORANGE

RHO_UP = readings.Setting("rho_rel_up")
# What section 14.2 quotes of Donini et al. (2018): A - B, in accuracy and in fairness.
QUOTED = {2: (0.71 - 0.61, 0.15 - 0.11), 3: (0.61 - 0.69, 0.05 - 0.15)}
_SIZE: dict[str, Any] = {"fontsize": 13}
_ACCURACY, _OPPORTUNITY = "Δ accuracy (A better →)", "Δ equal opportunity (A better →)"
_SHOWN = 500  # cross-validations that are drawn


def _panels(
    size: tuple[float, float], rows: int = 1, columns: int = 1, **options: Any
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its panels, row by row."""
    figure = Figure(size, dpi=90, layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False, **options).flat)


def _draws(effort: Effort) -> int:
    return effort.choose(10000, 2000, 200)


def _pair(place: int, effort: Effort) -> Pair:
    return pairs(readings.TEXT, effort.choose(None, None, 20))[" vs ".join(readings.PAIRS[place])]


def figure_1(results: Path, effort: Effort) -> Drawn:
    """Yield accuracy and equal opportunity of 100 cross-validations by algorithm."""
    yield "", instability_figure(_counted(), {"equal opportunity": true_positive_rate})


def figure_7_1(results: Path, effort: Effort) -> Drawn:
    """Yield the same with demographic parity and predictive parity."""
    rates = {
        "demographic parity": registry.selection_rate,
        "predictive parity": registry.positive_predictive_value,
    }
    yield "", instability_figure(_counted(), rates)


def figure_2(results: Path, effort: Effort) -> Drawn:
    """Yield both comparisons: all cross-validations, one of them, and its posterior."""
    compared, draws = [_pair(place, effort) for place in (0, 1)], _draws(effort)
    size = 17, 5.5 * len(compared)
    figure, panels = _panels(size, len(compared), 3, sharex=True, sharey=True)
    for place, pair in enumerate(compared):
        truth, one, posterior = panels[3 * place : 3 * place + 3]
        _points(truth, pair.delta, "black")
        _points(one, pair.delta[pair.nearest[:1]], "black")
        _region(posterior, pair.difference_draws(RHO_UP, furthest=False, draws=draws), BLUE, "")
        names = " against ".join(map(readings.short, pair.names))
        for axes, title in ((truth, f"{len(pair.delta)} cross-validations"),
                            (one, "one of them"), (posterior, "its posterior")):  # fmt: skip
            _rope(axes)
            _labels(axes, f"{names}:\n{title}", _ACCURACY, _OPPORTUNITY)
    yield "", figure


def figure_3(results: Path, effort: Effort) -> Drawn:
    """Yield the plane of two objectives with its events, and a comparison's region on it."""
    pair, draws = _pair(0, effort), _draws(effort)
    figure, (axes,) = _panels((8, 7))
    delta = pair.difference_draws(RHO_UP, furthest=False, draws=draws)
    _region(axes, delta, BLUE, "95 % of A - B")
    _rope(axes)
    texts = {
        (1, 1): "A outperforms",
        (-1, -1): "B outperforms",
        (1, -1): "A more accurate, B fairer",
        (-1, 1): "B more accurate, A fairer",
    }
    for (x, y), text in texts.items():
        axes.annotate(text, (0.5 + 0.4 * x, 0.5 + 0.45 * y), xycoords="axes fraction",
                      ha="right" if x > 0 else "left", fontsize=11)  # fmt: skip
    _labels(axes, "two objectives", _ACCURACY, _OPPORTUNITY)
    yield "", figure


def figure_10_1(results: Path, effort: Effort) -> Drawn:
    """Yield the ratio of FERM's variance to the support vector machine's by half-splits."""
    yield "", ratio_figure(grid.estimates("FERM"), grid.estimates(readings.REFERENCE))


def figure_12_1(results: Path, effort: Effort) -> Drawn:
    """Yield the nearest and furthest partitions of both comparisons."""
    compared = [_pair(place, effort) for place in (0, 1)]
    figure, panels = _panels((8 * len(compared), 7), columns=len(compared))
    for axes, pair in zip(panels, compared, strict=True):
        _points(axes, pair.delta, GREY)
        for place, colour, label in (
            (pair.nearest[0], GREEN, "nearest to the mean"),
            (pair.furthest[0], ORANGE, "furthest, another conclusion"),
        ):
            axes.plot(*pair.delta[place], "D", color=colour, markersize=9, label=label)
        _rope(axes)
        _labels(axes, " against ".join(map(readings.short, pair.names)), _ACCURACY, _OPPORTUNITY)
    yield "", figure


def figure_14_1(results: Path, effort: Effort) -> Drawn:
    """Yield the three hold-out comparisons on Adult: both posteriors, and their difference."""
    joint = adult.joint_tables(adult.machines(adult.load(), effort))
    drawn = {
        names: independent_draws(
            *margins(counts), _draws(effort), rng(0, "adult figure", *names)
        )
        for names, counts in joint.items()
    }  # fmt: skip
    yield "", cases_figure(drawn)


def figure_14_2(results: Path, effort: Effort) -> Drawn:
    """Yield the differences of section 14.2's cases, and that of Donini et al. (2018)."""
    yield "", quoted_figure({place: _pair(place, effort) for place in QUOTED})


def figure_14_3(results: Path, effort: Effort) -> Drawn:
    """Yield both cases on German: both posteriors, and their difference."""
    drawn = {}
    for place in QUOTED:
        pair = _pair(place, effort)
        drawn[pair.names] = pair.tables(RHO_UP, pair.nearest[0], _draws(effort))
    yield "", cases_figure(drawn)


def figure_15_1(results: Path, effort: Effort) -> Drawn:
    """Yield the rates of both age groups of German by algorithm."""
    tables = {name: grid.counts(name)[0] * mean_shrinkage(readings.FOLDS) for name in ALGORITHMS}
    yield "", groups_figure(tables, ("age > 25", "age <= 25"), _draws(effort))


def figure_15_2(results: Path, effort: Effort) -> Drawn:
    """Yield the rates of both sexes of Adult by machine."""
    joint = adult.joint_tables(adult.machines(adult.load(), effort))
    tables: dict[str, Floats] = {}
    for names, counts in joint.items():
        tables |= dict(zip(names, margins(counts), strict=True))
    yield "", groups_figure(tables, ("men", "women"), _draws(effort))


def _counted() -> dict[str, NDArray[np.int64]]:
    return {name: grid.counts(name)[:100] for name in ALGORITHMS}


def instability_figure(counts: Mapping[str, Counts], rates: Mapping[str, Any]) -> Figure:
    """Draw a point for each cross-validation: accuracy, and the size of a gap in a rate.

    Parameters
    ----------
    rates : name -> what takes tables of good loans to a rate of each group.
    """
    figure, panels = _panels((8 * len(rates), 7), columns=len(rates))
    for axes, (gap, rate) in zip(panels, rates.items(), strict=True):
        for place, (name, tables) in enumerate(counts.items()):
            good = readings.favourable(tables)
            first, second = (rate(good[:, g : g + 1]).ravel() for g in (0, 1))
            x = accuracy(total(good)).ravel()
            style: dict[str, Any] = {"markersize": 4, "alpha": 0.6}
            colour, marker = COLOURS[place % len(COLOURS)], "o^s"[place // len(COLOURS) % 3]
            gaps, style = np.abs(first - second), style | {"color": colour, "linestyle": "none"}
            axes.plot(x, gaps, marker, label=readings.short(name), **style)
        _labels(axes, f"German, {len(x)} cross-validations", "accuracy", f"gap in {gap}")
    return figure


def ratio_figure(own: Floats, reference: Floats) -> Figure:
    """Draw the mean ratio of variances by the number of half-splits, in several orders.

    Parameters
    ----------
    own, reference : (J, 2, R, G) estimates in halves.
    """
    figure, (axes,) = _panels((9, 6))
    whole = min(len(own), len(reference))
    numbers = np.arange(1, whole + 1)
    for order in range(4):
        rows = rng(order, "half-splits").permutation(whole) if order else np.arange(whole)
        each = [variance_ratio(own[rows[:n]], reference[rows[:n]]) for n in numbers]
        ratios = [np.nanmean(np.where(np.isfinite(ratio), ratio, np.nan)) for ratio in each]
        axes.plot(numbers, ratios, color=COLOURS[order], label=f"order {order + 1}")
    axes.axhline(1, color=GREY, linestyle=":")
    axes.set_yscale("log")
    _labels(axes, "German: FERM's variance over the SVM's", "half-splits J", "r")
    return figure


def cases_figure(drawn: Mapping[tuple[str, str], tuple[Floats, Floats]]) -> Figure:
    """Draw a row for each pair: the posterior of either, and that of the difference.

    Parameters
    ----------
    drawn : names -> draws (T, G, 4) of the tables of A and of B, label 0 the favourable one.
    """
    figure, panels = _panels((14, 6 * len(drawn)), len(drawn), 2)
    for both, difference, (names, tables) in zip(
        panels[::2], panels[1::2], drawn.items(), strict=True
    ):
        first, second = (readings.TEXT.values(each) * [1, -1] for each in tables)
        _region(both, first, BLUE, readings.short(names[0]))
        _region(both, second, ORANGE, readings.short(names[1]))
        _labels(both, "posteriors", "accuracy", "gap in equal opportunity")
        _region(difference, (first - second) * [1, -1], GREEN, "A - B")
        _rope(difference)
        title = f"A: {readings.short(names[0])}, B: {readings.short(names[1])}"
        _labels(difference, title, _ACCURACY, _OPPORTUNITY)
    return figure


def quoted_figure(compared: Mapping[int, Pair]) -> Figure:
    """Draw every difference of each pair, and the one that the section quotes."""
    figure, panels = _panels((8 * len(compared), 7), columns=len(compared))
    for axes, (place, pair) in zip(panels, compared.items(), strict=True):
        _points(axes, pair.delta, ORANGE, f"{len(pair.delta)} cross-validations")
        axes.plot(*QUOTED[place], "D", color=BLUE, markersize=9, label="Donini et al. (2018)")
        _rope(axes)
        _labels(axes, " against ".join(map(readings.short, pair.names)), _ACCURACY, _OPPORTUNITY)
    return figure


def groups_figure(
    tables: Mapping[str, Floats], groups: tuple[str, str], draws: int = 10000
) -> Figure:
    """Draw the posterior of the true and false positive rates of two groups by algorithm.

    Parameters
    ----------
    tables : (G, 4) effective counts, label 0 the favourable one. groups : the larger one first.
    """
    across = 4 if len(tables) > 6 else 3
    down = -(-len(tables) // across)
    figure, panels = _panels((4.5 * across, 4.2 * down), down, across)
    for axes in panels[len(tables) :]:
        axes.set_axis_off()
    for axes, (name, counts) in zip(panels, tables.items(), strict=False):
        drawn = table_draws(readings.favourable(counts), draws, rng(0, "groups figure", name))
        order = np.argsort(-np.asarray(counts).sum(axis=-1))
        for label, group, colour in zip(groups, order, (COLOURS[3], GREEN), strict=True):
            of = (true_positive_rate, registry.false_positive_rate)
            rates = np.column_stack([rate(drawn[:, group : group + 1])[:, 0] for rate in of])
            _region(axes, rates, colour, label)
        _labels(axes, readings.short(name), "true positive rate", "false positive rate")
    return figure


def _rope(axes: Axes) -> None:
    x, y = readings.ROPE
    axes.add_patch(Rectangle((-x, -y), 2 * x, 2 * y, color=GREY, alpha=0.5, zorder=4))
    for end in (-1, 1):
        axes.axvline(end * x, color=GREY, linestyle=":", linewidth=1)
        axes.axhline(end * y, color=GREY, linestyle=":", linewidth=1)


def _region(axes: Axes, draws: Floats, colour: str, label: str) -> None:
    density = highest_density_region(draws[~np.isnan(draws).any(axis=1)], readings.LEVEL).density
    if density is not None:
        grid_of = density.x, density.y, density.values.T
        levels = [density.threshold, float(density.values.max())]
        axes.contourf(*grid_of, levels=levels, colors=[colour], alpha=0.2, zorder=2)
        axes.contour(*grid_of, levels=levels[:1], colors=[colour], linewidths=2, zorder=3)
    axes.plot([], [], color=colour, linewidth=2, label=label or None)


def _points(axes: Axes, points: Floats, colour: str, label: str | None = None) -> None:
    shown = points[:_SHOWN]
    style: dict[str, Any] = {"markersize": 4, "alpha": 0.6, "zorder": 5}
    axes.plot(*shown.T, ".", color=colour, label=label, **style)


def _labels(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=14)
    axes.set_xlabel(x, **_SIZE)
    axes.set_ylabel(y, **_SIZE)
    axes.tick_params(labelsize=12)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(edgecolor="none", framealpha=0.8, fontsize=11)
    axes.grid(alpha=0.25)
