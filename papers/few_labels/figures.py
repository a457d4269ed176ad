"""The paper's Figures 2 to 4: estimates, errors, coverage, densities, calibration curves.

``python -m papers.few_labels.figures [--run ID] [--group COLUMN] [--runs 100]``: of the released
scores, or of a finished run of ours.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import beta, gaussian_kde

from fairbench.core.seeds import rng
from fairbench.inference.few_labels.bayesian_calibration import (
    CalibrationPosterior,
    bayesian_calibration,
)
from fairbench.inference.few_labels.calibration import BETA
from fairbench.inference.few_labels.table import PartlyLabelled
from fairbench.inference.posterior import central_interval
from fairbench.metrics.group import difference
from fairbench.metrics.rates import Rate, accuracy
from fairbench.reporting.charts import BLUE, COLOURS, GREY, ORANGE
from papers import ROOT
from papers.few_labels.curves import METHODS, Curves, curves
from papers.few_labels.pools import (
    everyone_else,
    label_orders,
    released_pools,
    run_pools,
    true_difference,
)

Floats = NDArray[np.float64]
T = TypeVar("T")
Pools = Mapping[str, PartlyLabelled]
_SHOWN_LABELS = (10, 100, 1000)
_GRID = np.linspace(0.005, 0.995, 100)
_BINS = 10


def curve_figures(results: Sequence[Curves], folder: Path) -> None:
    """Draw estimates of one run, mean errors and coverages against the number of labels."""
    _panels(results, _estimates, folder / "estimates.png", "difference of accuracies, one run")
    _panels(results, _errors, folder / "errors.png", "mean absolute error, points")
    _panels(results, _coverage, folder / "coverage.png", "coverage of 95 % intervals, %")


def posterior_figures(pools: Pools, rate: Rate, folder: Path) -> None:
    """Draw posterior densities of the difference and calibration curves of the largest groups."""
    cases = list(pools.items())
    title = f"posterior of the difference of {rate.name.replace('_', ' ')}"
    _panels(cases, partial(_densities, rate=rate), folder / "densities.png", title)
    for labels in (20, 200):
        path, title = folder / f"calibration_{labels}.png", f"P(label 1) by score, {labels} labels"
        _panels(cases, partial(_calibration, labels=labels), path, title)


def _panels(cases: Sequence[T], draw: Callable[[Axes, T], None], path: Path, label: str) -> None:
    figure = Figure(figsize=(1.2 + 3.6 * len(cases), 3.9), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(cases), squeeze=False)[0]
    for axes, case in zip(panels, cases, strict=True):
        draw(axes, case)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel(label)
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(
        handles, names, loc="outside lower center", ncols=min(6, len(names)), frameon=False
    )
    figure.savefig(path)


def _by_labels(axes: Axes, result: Curves) -> None:
    axes.set(xscale="log", xlabel="labels", title=result.pool)
    axes.set_xticks(result.budgets, [str(labels) for labels in result.budgets])
    axes.minorticks_off()


def _estimates(axes: Axes, result: Curves) -> None:
    _by_labels(axes, result)
    steps = np.linspace(0.88, 1.13, len(METHODS))
    for (name, values), colour, step in zip(result.values.items(), COLOURS, steps, strict=False):
        centre, lower, upper = values[:, 0].T
        ends = np.maximum([centre - lower, upper - centre], 0)
        place = np.array(result.budgets) * step
        axes.errorbar(place, centre, ends, fmt=".", color=colour, label=name, linewidth=1)
    axes.axhline(result.truth, color="black", linewidth=0.8, label="all labels")
    axes.set_ylim(-0.75, 0.75)


def _errors(axes: Axes, result: Curves) -> None:
    _by_labels(axes, result)
    for name, colour in zip(result.values, COLOURS, strict=False):
        style = "--" if name == "calibration, pool noise" else "-"
        axes.plot(result.budgets, result.error(name), style, color=colour, label=name, marker=".")
    axes.set(yscale="log", ylim=(0.3, 60))
    axes.set_yticks([0.5, 1, 2, 5, 10, 20, 50], ["0.5", "1", "2", "5", "10", "20", "50"])


def _coverage(axes: Axes, result: Curves) -> None:
    _by_labels(axes, result)
    for name, colour in zip(result.values, COLOURS, strict=False):
        axes.plot(result.budgets, result.coverage(name), color=colour, label=name, marker=".")
    axes.axhline(95, color="black", linewidth=0.8, label="95 %")
    axes.set_ylim(0, 102)


def _posterior(table: PartlyLabelled, labels: int, key: str) -> CalibrationPosterior:
    (order,) = label_orders(table, 1)
    return bayesian_calibration(table.showing(order[:labels]), rng(0, "few_labels", key, labels))


def _densities(axes: Axes, case: tuple[str, PartlyLabelled], *, rate: Rate) -> None:
    pool, table = case
    grid = np.linspace(-0.3, 0.3, 301)
    for labels, colour in zip(_SHOWN_LABELS, (GREY, ORANGE, BLUE), strict=True):
        if labels < len(table.score):
            counts = _posterior(table, labels, pool).counts
            draws = difference(rate, everyone_else(counts))[:, 0]
            density = gaussian_kde(draws[~np.isnan(draws)])(grid)
            axes.plot(grid, density, color=colour, label=f"{labels} labels")
    axes.axvline(true_difference(table, rate), color="black", linewidth=0.8, label="all labels")
    axes.set(title=pool, xlabel="difference", yticks=[])


def _calibration(axes: Axes, case: tuple[str, PartlyLabelled], *, labels: int) -> None:
    """Draw maps of the two largest groups, and what all their labels say."""
    pool, table = case
    posterior = _posterior(table, min(labels, len(table.score) - 1), pool)
    coefficients = BETA.coefficients(posterior.theta)
    largest = np.argsort(-table.sizes().sum(axis=1))[:2]
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle=":")
    for place, (group, colour) in enumerate(zip(largest, (BLUE, ORANGE), strict=False)):
        odds = coefficients[:, group] @ BETA.features(_GRID)
        lower, upper = central_interval(1 / (1 + np.exp(-odds)))
        name = ("first", "second")[place]
        axes.fill_between(_GRID, lower, upper, color=colour, alpha=0.25, label=f"{name} group")
        _shares(axes, table, int(group), colour)
    names = ", ".join(str(table.groups[group]) for group in largest)
    axes.set(xlabel="score", title=f"{pool}: {names}", xlim=(0, 1), ylim=(0, 1))


def _shares(axes: Axes, table: PartlyLabelled, group: int, colour: str) -> None:
    rows = table.group == group
    bins = np.minimum((table.score[rows] * _BINS).astype(int), _BINS - 1)
    size = np.bincount(bins, minlength=_BINS)
    positives = np.bincount(bins, weights=table.label[rows], minlength=_BINS)
    total = np.bincount(bins, weights=table.score[rows], minlength=_BINS)
    full = size > 0
    size, positives, total = size[full], positives[full], total[full]
    ends = beta.ppf([[0.025], [0.975]], positives + 0.5, size - positives + 0.5)
    score, share = total / size, positives / size
    error = np.maximum([share - ends[0], ends[1] - share], 0)
    axes.errorbar(score, share, error, fmt=".", color=colour, linewidth=1)


def main() -> None:
    """Draw the figures, and print errors and coverages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--run", help="the beginning of a run's id, in place of released scores")
    parser.add_argument("--group", help="the run's sensitive column; what it protects by default")
    options = parser.parse_args()
    _draw(options.run, options.group, options.runs)


def _draw(run: str | None, group: str | None, runs: int) -> None:
    pools = released_pools() if run is None else run_pools(run, group)
    folder = ROOT / "results" / "report" / "few_labels"
    folder = folder / run if run else folder
    folder.mkdir(parents=True, exist_ok=True)
    posterior_figures(pools, accuracy, folder)
    results = [curves(name, table, accuracy, runs) for name, table in pools.items()]
    curve_figures(results, folder)
    frame = pd.concat([result.frame() for result in results])
    frame.to_csv(folder / "curves.csv", index=False)
    for name in ("error", "coverage"):
        print(f"\n{name}")
        table = frame.pivot_table(name, ["pool", "method"], "labels", sort=False)
        print(table.round(1).to_string())
    print(f"\nwritten to {folder}")


if __name__ == "__main__":
    main()
