"""The figures of the thesis's chapter 4 and appendix B; 4.1, 4.3, 4.5, 4.6 are the paper's 1 to 4.

The people are those of the first random third, as the text prepares them and with its models;
errors are means over the thirds of the tables. Figure 4.4 is the diagram of the model.
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
from scipy.stats import beta

from fairbench.components.papers.few_labels.errors import METHODS, errors
from fairbench.components.papers.few_labels.labels_needed import Population, chance
from fairbench.components.papers.few_labels.methods import HIERARCHY, Method, intervals
from fairbench.components.papers.few_labels.people import third_of
from fairbench.components.papers.few_labels.pools import (
    ATTRIBUTES,
    LEARNERS,
    everyone_else,
    label_orders,
    true_difference,
)
from fairbench.components.papers.few_labels.study import CONFIGURATION, Key
from fairbench.core.arrays import Floats
from fairbench.core.seeds import rng
from fairbench.inference.few_labels.bayesian_calibration import bayesian_calibration
from fairbench.inference.few_labels.calibration import BETA
from fairbench.inference.few_labels.frequentist import beta_binomial
from fairbench.inference.few_labels.table import PartlyLabelled
from fairbench.inference.posterior import central_interval
from fairbench.metrics.group import difference
from fairbench.metrics.rates import accuracy, true_positive_rate
from fairbench.reporting.charts import BLUE, COLOURS, GREY, ORANGE
from fairbench.reporting.papers.running import Effort

T = TypeVar("T")
Drawn = Iterator[tuple[str, Figure]]
Case = tuple[str, PartlyLabelled]
# Four data sets with two groups each; the captions name no others.
_PAIRS = (("adult", "sex"), ("bank", "age"), ("compas_r", "sex"), ("german", "sex"))
# The text leaves these out of TPRs and FPRs: some of their groups have no positive.
_LEFT_OUT = (("compas_vr", "race"), ("ricci", "race"))
_BOX_LABELS = (50, 100, 200)
_FEW, _RUNS = 20, 20
_NEEDED = tuple(range(8_000, 120_001, 8_000))
_GRID = np.linspace(0.005, 0.995, 100)
_BINS = 5
_COLUMNS = 5
_RATE_NAMES = {"accuracy": "accuracies", "tpr": "TPRs", "fpr": "FPRs"}


def _cases(learner: str, results: Path, effort: Effort) -> list[Case]:
    pairs = effort.choose(_PAIRS, _PAIRS, _PAIRS[-1:])
    return [(" ".join(pair), third_of(*pair, learner, 0, results)) for pair in pairs]


def figure_4_1(results: Path, effort: Effort) -> Drawn:
    """Draw estimates of the TPRs' difference from labels alone, over 1000 label orders."""
    runs = effort.choose(1000, 200, 5)
    cases = _cases("logistic_regression", results, effort)
    yield "", _panels(cases, partial(_boxes, runs=runs), "difference of TPRs, labels alone")


def figure_4_2(results: Path, effort: Effort) -> Drawn:
    """Draw how often a gap of TPRs is found to within 0.01, by the number of labels."""
    draws = effort.choose(10_000, 10_000, 100)
    yield "", _panels([draws], _chances, "estimates in [0.04, 0.06], %")


def figure_4_3(results: Path, effort: Effort) -> Drawn:
    """Draw calibration curves of two groups, and what all their labels say."""
    cases = _cases("mlp", results, effort)
    yield "", _panels(cases, partial(_calibration, labels=200), "P(label 1) by score, 200 labels")


def figure_4_5(results: Path, effort: Effort) -> Drawn:
    """Draw posteriors of the difference of accuracies from 20 labels, and 20 runs' intervals."""
    cases = _cases("mlp", results, effort)
    yield "posteriors", _panels(cases, _histograms, f"draws, {_FEW} labels")
    yield "intervals", _panels(cases, _runs, f"run, {_FEW} labels each")


def figure_4_6(results: Path, effort: Effort) -> Drawn:
    """Draw errors of the FPRs' difference of the multi-layer perceptron."""
    names = ("beta-binomial", "calibration")
    yield from _by_labels("fpr", ("mlp",), results, effort, names)


def figure_b_1(results: Path, effort: Effort) -> Drawn:
    """Draw errors of the accuracies' difference of all models."""
    yield from _by_labels("accuracy", LEARNERS, results, effort)


def figure_b_2(results: Path, effort: Effort) -> Drawn:
    """Draw errors of the TPRs' difference of all models."""
    yield from _by_labels("tpr", LEARNERS, results, effort)


def figure_b_3(results: Path, effort: Effort) -> Drawn:
    """Draw errors of the FPRs' difference of all models."""
    yield from _by_labels("fpr", LEARNERS, results, effort)


def _by_labels(
    rate: str,
    learners: Sequence[str],
    results: Path,
    effort: Effort,
    names: Sequence[str] = tuple(METHODS.values()),
) -> Drawn:
    """Draw a picture a model: errors by number of labels."""
    pairs = [pair for pair in ATTRIBUTES if rate == "accuracy" or pair not in _LEFT_OUT]
    pairs = effort.choose(pairs, pairs, [("german", "sex")])
    for learner in effort.choose(learners, learners, learners[:1]):
        keys: list[Key] = [(*pair, learner) for pair in pairs]
        frame = errors(keys, results, effort)
        frame = frame[frame["rate"] == rate]
        cases = [
            (f"{data} {attribute}", rows)
            for (data, attribute), rows in frame.groupby(CONFIGURATION[:2], sort=False)
        ]
        label = f"error of the {_RATE_NAMES[rate]}' difference, points"
        yield learner, _panels(cases, partial(_errors, names=names), label)


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


def _boxes(axes: Axes, case: Case, *, runs: int) -> None:
    name, table = case
    orders = label_orders(table, runs)
    estimates = [_labels_alone(table, [order[:n] for order in orders]) for n in _BOX_LABELS]
    names = [str(labels) for labels in _BOX_LABELS]
    axes.boxplot(estimates, tick_labels=names, sym=".", medianprops={"color": BLUE})
    axes.axhline(true_difference(table, true_positive_rate), color=ORANGE, label="all labels")
    axes.set(xlabel="labels", title=name, ylim=(-1, 1))


def _labels_alone(table: PartlyLabelled, subsets: Sequence[np.ndarray]) -> Floats:
    """Return estimates of the TPRs' difference, without the runs that have none."""
    method = Method("frequentist")
    (values,) = intervals(table, subsets, method, [true_positive_rate], rng(0, "few_labels"))
    defined: Floats = values[~np.isnan(values[:, 0]), 0]
    return defined


def _chances(axes: Axes, draws: int) -> None:
    shares = [
        100 * chance(Population(), rows, rng(0, "labels_needed"), draws=draws) for rows in _NEEDED
    ]
    axes.plot(np.array(_NEEDED) / 1000, shares, color=BLUE, marker=".")
    axes.axhline(95, color=GREY, linewidth=0.8, label="95 %")
    axes.set(xlabel="thousand labels", title="one in five in the smaller group")


def _errors(axes: Axes, case: tuple[str, pd.DataFrame], *, names: Sequence[str]) -> None:
    """Draw each method's error, shaded where 95 % of such studies have its mean over thirds."""
    name, frame = case
    for method, colour in zip(METHODS.values(), COLOURS, strict=False):
        if method not in names:
            continue
        rows = frame[frame["method"] == method].sort_values("labels")
        axes.plot(rows["labels"], rows["error"], color=colour, label=method, marker=".")
        if method != METHODS["frequentist"]:  # whose shade would hide the others
            reach = 1.96 * rows["standard error"]
            lower, upper = np.maximum(rows["error"] - reach, 0.05), rows["error"] + reach
            axes.fill_between(rows["labels"], lower, upper, color=colour, alpha=0.2, linewidth=0)
    axes.set(yscale="log", ylim=(0.2, 100), xscale="log", xlabel="labels", title=name)
    axes.set_yticks([0.5, 1, 2, 5, 10, 20, 50], ["0.5", "1", "2", "5", "10", "20", "50"])
    numbers = sorted(frame["labels"].unique())
    axes.set_xticks(numbers, [str(labels) for labels in numbers])
    axes.minorticks_off()


def _histograms(axes: Axes, case: Case) -> None:
    """Draw both posteriors of the first run, what its labels alone say, and the truth."""
    name, table = case
    (order,) = label_orders(table, 1)
    shown, generator = order[:_FEW], rng(0, "few_labels", name)
    posterior = bayesian_calibration(table.showing(shown), generator, pool_noise=False)
    of_groups = beta_binomial(table.counts(shown), accuracy, generator)
    drawn = {
        "beta-binomial": (BLUE, of_groups[:, 1] - of_groups[:, 0]),
        "calibration": (ORANGE, difference(accuracy, everyone_else(posterior.counts))[:, 0]),
    }
    for label, (colour, draws) in drawn.items():
        axes.hist(draws, bins=30, density=True, color=colour, alpha=0.6, label=label)
    alone = difference(accuracy, table.counts(shown))[0]
    axes.axvline(alone, color=BLUE, linewidth=0.8, linestyle=":", label="labels alone")
    axes.axvline(true_difference(table, accuracy), color="black", linewidth=0.8, label="all labels")
    axes.set(title=name, xlabel="difference of accuracies", yticks=[])


def _runs(axes: Axes, case: Case) -> None:
    """Draw both methods' intervals of the difference of accuracies, a line a run."""
    name, table = case
    subsets = [order[:_FEW] for order in label_orders(table, _RUNS)]
    methods = (("beta_binomial", BLUE, 0.2), (HIERARCHY, ORANGE, -0.2))
    for method, colour, step in methods:
        generator = rng(0, "few_labels", name)
        (values,) = intervals(table, subsets, Method(method), [accuracy], generator)
        centre, lower, upper = values.T
        ends = np.maximum([centre - lower, upper - centre], 0)
        axes.errorbar(
            centre, np.arange(_RUNS) + step, xerr=ends, fmt=".", color=colour,
            label=METHODS[method], linewidth=1,
        )  # fmt: skip
    axes.axvline(true_difference(table, accuracy), color="black", linewidth=0.8, label="all labels")
    axes.set(title=name, xlabel="difference of accuracies", yticks=range(0, _RUNS, 5))


def _calibration(axes: Axes, case: Case, *, labels: int) -> None:
    name, table = case
    (order,) = label_orders(table, 1)
    shown = table.showing(order[: min(labels, len(order) - 1)])
    posterior = bayesian_calibration(shown, rng(0, "few_labels", name, labels))
    coefficients = BETA.coefficients(posterior.theta)
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle=":")
    for group, colour in enumerate((BLUE, ORANGE)):
        odds = coefficients[:, group] @ BETA.features(_GRID)
        calibrated = 1 / (1 + np.exp(-odds))
        lower, upper = central_interval(calibrated)
        label = ("privileged", "others")[group]
        axes.plot(_GRID, calibrated.mean(axis=0), color=colour, linewidth=1)
        axes.fill_between(_GRID, lower, upper, color=colour, alpha=0.25, label=label)
        _shares(axes, table, group, colour)
    axes.set(xlabel="score", title=name, xlim=(0, 1), ylim=(0, 1))


def _shares(axes: Axes, table: PartlyLabelled, group: int, colour: str) -> None:
    """Draw the share of label 1 in five bins of as many people each, by all labels."""
    rows = np.flatnonzero(table.group == group)
    bins = np.array_split(rows[np.argsort(table.score[rows], kind="stable")], _BINS)
    positives = np.array([table.label[rows].sum() for rows in bins])
    size = np.array([len(rows) for rows in bins])
    ends = beta.ppf([[0.025], [0.975]], positives + 0.5, size - positives + 0.5)
    share = positives / size
    error = np.maximum([share - ends[0], ends[1] - share], 0)
    score = [table.score[rows].mean() for rows in bins]
    axes.errorbar(score, share, error, fmt=".", color=colour, linewidth=1)
