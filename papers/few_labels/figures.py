"""The figures of the paper and of the thesis's chapter 4 and appendix B, of the released scores.

The caption of Figure 4.1, the paper's Figure 1, is at hand. What the others show, and in which
order, is taken from the released code and from memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import ceil
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from scipy.stats import beta, gaussian_kde

from fairbench.components.papers.few_labels.curves import METHODS, Curves, curves, figure_pools
from fairbench.components.papers.few_labels.errors import METHODS as PUBLISHED_METHODS
from fairbench.components.papers.few_labels.errors import kept_errors
from fairbench.components.papers.few_labels.methods import AS_PUBLISHED, Method
from fairbench.components.papers.few_labels.pools import (
    everyone_else,
    label_orders,
    true_difference,
)
from fairbench.components.papers.few_labels.tables import CONFIGURATION, Key, answers, pool
from fairbench.core.arrays import Floats
from fairbench.core.seeds import rng
from fairbench.inference.few_labels.bayesian_calibration import (
    CalibrationPosterior,
    bayesian_calibration,
)
from fairbench.inference.few_labels.calibration import BETA
from fairbench.inference.few_labels.table import PartlyLabelled
from fairbench.inference.posterior import central_interval
from fairbench.metrics.group import difference
from fairbench.metrics.rates import Rate, accuracy, true_positive_rate
from fairbench.reporting.charts import BLUE, COLOURS, GREY, ORANGE
from fairbench.reporting.papers.running import Effort

T = TypeVar("T")
Drawn = Iterator[tuple[str, Figure]]
# Four data sets with two groups each, as the caption of Figure 4.1 has it; it names no model.
_BINARY: tuple[Key, ...] = tuple(
    (*pair, "logistic_regression")
    for pair in (("adult", "sex"), ("bank", "age"), ("compas_r", "sex"), ("german", "sex"))
)
_BOX_LABELS = (50, 100, 200)
_SHOWN_LABELS = (10, 100, 1000)
_GRID = np.linspace(0.005, 0.995, 100)
_BINS = 10
_COLUMNS = 5
_RATE_NAMES = {"accuracy": "accuracies", "tpr": "TPRs", "fpr": "FPRs"}


def figure_4_1(results: Path, effort: Effort) -> Drawn:
    """Draw estimates of the TPRs' difference from labels alone, over 1000 label orders."""
    runs = effort.choose(1000, 200, 5)
    yield "", _panels(_BINARY, partial(_boxes, runs=runs), "difference of TPRs, labels alone")


def figure_4_2(results: Path, effort: Effort) -> Drawn:
    """Draw calibration curves of the two largest groups, from few and from many labels."""
    cases = list(figure_pools().items())
    for labels in (20, 200):
        label = f"P(label 1) by score, {labels} labels"
        yield str(labels), _panels(cases, partial(_calibration, labels=labels), label)


def figure_4_3(results: Path, effort: Effort) -> Drawn:
    """Draw posterior densities of the difference of accuracies."""
    cases = list(figure_pools().items())
    label = "posterior of the difference of accuracies"
    yield "", _panels(cases, partial(_densities, rate=accuracy), label)


def figure_4_4(results: Path, effort: Effort) -> Drawn:
    """Draw every method's estimates and intervals of one run by number of labels."""
    drawn = [curves(name, table, accuracy, 1) for name, table in figure_pools().items()]
    yield "", _panels(drawn, _estimates, "difference of accuracies, one run")


def figure_4_5(results: Path, effort: Effort) -> Drawn:
    """Draw errors and coverages of the accuracies' difference: two models, every pair of groups."""
    yield from _by_labels("accuracy", ("mlp", "gaussian_nb"), results, effort, coverage=True)


def figure_4_6(results: Path, effort: Effort) -> Drawn:
    """Draw errors of the TPRs' difference: two models, every pair of groups."""
    yield from _by_labels("tpr", ("mlp", "gaussian_nb"), results, effort)


def figure_b_1(results: Path, effort: Effort) -> Drawn:
    """Draw errors of the accuracies' difference for the other two models."""
    yield from _by_labels("accuracy", ("logistic_regression", "random_forest"), results, effort)


def figure_b_2(results: Path, effort: Effort) -> Drawn:
    """Draw errors of the TPRs' difference for the other two models."""
    yield from _by_labels("tpr", ("logistic_regression", "random_forest"), results, effort)


def figure_b_3(results: Path, effort: Effort) -> Drawn:
    """Draw errors of the FPRs' difference for all four models."""
    yield from _by_labels("fpr", ("mlp", "gaussian_nb"), results, effort)
    yield from _by_labels("fpr", ("logistic_regression", "random_forest"), results, effort)


def _by_labels(
    rate: str, learners: Sequence[str], results: Path, effort: Effort, *, coverage: bool = False
) -> Drawn:
    """Draw a picture a model: errors by number of labels, and coverages if asked for."""
    frame = kept_errors(results, effort)
    frame = frame[frame["rate"] == rate]
    for learner in learners:
        of_learner = frame[frame["learner"] == learner]
        names = of_learner.groupby(CONFIGURATION[:2], sort=False)
        cases = [(f"{data} {attribute}", rows) for (data, attribute), rows in names]
        if not cases:
            continue
        label = f"error of the {_RATE_NAMES[rate]}' difference, points"
        yield learner, _panels(cases, _errors, label)
        if coverage:
            yield f"{learner}_coverage", _panels(cases, _coverage, "coverage of 95 % intervals, %")


def _panels(cases: Sequence[T], draw: Callable[[Axes, T], None], label: str) -> Figure:
    columns, rows = min(_COLUMNS, len(cases)), ceil(len(cases) / _COLUMNS)
    size = (1.2 + (3.6 if rows == 1 else 2.6) * columns, 0.8 + (3.1 if rows == 1 else 2.6) * rows)
    figure = Figure(figsize=size, dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat[len(cases) :]:
        axes.set_visible(False)
    for axes, case in zip(grid.flat, cases, strict=False):
        draw(axes, case)
        axes.spines[["top", "right"]].set_visible(False)
    figure.supylabel(label, fontsize="medium")
    handles, names = grid[0, 0].get_legend_handles_labels()
    if names:
        columns = min(6, len(names))
        figure.legend(handles, names, loc="outside lower center", ncols=columns, frameon=False)
    return figure


def _boxes(axes: Axes, key: Key, *, runs: int) -> None:
    estimates = [_labels_alone(key, labels, runs) for labels in _BOX_LABELS]
    names = [str(labels) for labels in _BOX_LABELS]
    axes.boxplot(estimates, tick_labels=names, sym=".", medianprops={"color": BLUE})
    axes.axhline(true_difference(pool(*key), true_positive_rate), color=ORANGE, label="all labels")
    axes.set(xlabel="labels", title=" ".join(key), ylim=(-1, 1))


def _labels_alone(key: Key, labels: int, runs: int) -> Floats:
    """Return estimates of the TPRs' difference, without the runs that have none."""
    estimates = answers(key, labels, runs, Method("frequentist"))[AS_PUBLISHED][1, :, 0]
    defined: Floats = estimates[~np.isnan(estimates)]
    return defined


def _labels_axis(axes: Axes, numbers: Sequence[int], title: str) -> None:
    axes.set(xscale="log", xlabel="labels", title=title)
    axes.set_xticks(numbers, [str(labels) for labels in numbers])
    axes.minorticks_off()


def _estimates(axes: Axes, result: Curves) -> None:
    _labels_axis(axes, result.budgets, result.pool)
    steps = np.linspace(0.88, 1.13, len(METHODS))
    for (name, values), colour, step in zip(result.values.items(), COLOURS, steps, strict=False):
        centre, lower, upper = values[:, 0].T
        ends = np.maximum([centre - lower, upper - centre], 0)
        place = np.array(result.budgets) * step
        axes.errorbar(place, centre, ends, fmt=".", color=colour, label=name, linewidth=1)
    axes.axhline(result.truth, color="black", linewidth=0.8, label="all labels")
    axes.set_ylim(-0.75, 0.75)


def _errors(axes: Axes, case: tuple[str, pd.DataFrame]) -> None:
    """Draw each method's error, shaded where 95 % of repeated studies would have it."""
    name, frame = case
    for method, colour in zip(PUBLISHED_METHODS, COLOURS, strict=False):
        rows = frame[frame["method"] == method].sort_values("labels")
        reach = 1.96 * rows["standard error"]
        lower, upper = np.maximum(rows["error"] - reach, 0.05), rows["error"] + reach
        axes.fill_between(rows["labels"], lower, upper, color=colour, alpha=0.2, linewidth=0)
        axes.plot(rows["labels"], rows["error"], color=colour, label=method, marker=".")
    axes.set(yscale="log", ylim=(0.2, 100))
    axes.set_yticks([0.5, 1, 2, 5, 10, 20, 50], ["0.5", "1", "2", "5", "10", "20", "50"])
    _labels_axis(axes, sorted(frame["labels"].unique()), name)


def _coverage(axes: Axes, case: tuple[str, pd.DataFrame]) -> None:
    name, frame = case
    for method, colour in zip(PUBLISHED_METHODS, COLOURS, strict=False):
        rows = frame[frame["method"] == method].sort_values("labels")
        axes.plot(rows["labels"], rows["coverage"], color=colour, label=method, marker=".")
    axes.axhline(95, color="black", linewidth=0.8, label="95 %")
    axes.set_ylim(0, 102)
    _labels_axis(axes, sorted(frame["labels"].unique()), name)


def _posterior(table: PartlyLabelled, labels: int, key: str) -> CalibrationPosterior:
    (order,) = label_orders(table, 1)
    return bayesian_calibration(table.showing(order[:labels]), rng(0, "few_labels", key, labels))


def _densities(axes: Axes, case: tuple[str, PartlyLabelled], *, rate: Rate) -> None:
    name, table = case
    grid = np.linspace(-0.3, 0.3, 301)
    for labels, colour in zip(_SHOWN_LABELS, (GREY, ORANGE, BLUE), strict=True):
        if labels < len(table.score):
            counts = _posterior(table, labels, name).counts
            draws = difference(rate, everyone_else(counts))[:, 0]
            density = gaussian_kde(draws[~np.isnan(draws)])(grid)
            axes.plot(grid, density, color=colour, label=f"{labels} labels")
    axes.axvline(true_difference(table, rate), color="black", linewidth=0.8, label="all labels")
    axes.set(title=name, xlabel="difference", yticks=[])


def _calibration(axes: Axes, case: tuple[str, PartlyLabelled], *, labels: int) -> None:
    """Draw maps of the two largest groups, and what all their labels say."""
    case_name, table = case
    posterior = _posterior(table, min(labels, len(table.score) - 1), case_name)
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
    axes.set(xlabel="score", title=f"{case_name}:\n{names}", xlim=(0, 1), ylim=(0, 1))


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
