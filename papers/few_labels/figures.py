"""The figures of the thesis's chapter 4 and appendix B; 4.1, 4.3, 4.5, 4.6 are the paper's 1 to 4.

The people are those of the first random third, as the text prepares them and with its models;
errors are means over the thirds of the tables. Figure 4.4 is the diagram of the model. The studies
`labels_needed`, `curves` and `reports` print what its text says beside the figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, product
from math import ceil
from pathlib import Path
from statistics import NormalDist
from typing import TypeVar

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import beta

from fairbench.cli.command import Results
from fairbench.components.papers import Look, number_of_runs, run_main
from fairbench.components.papers.engine.matching import Drawn, Effort
from fairbench.components.papers.few_labels.methods import (
    ATTRIBUTES,
    CONFIGURATION,
    FIGURE_POOLS,
    HIERARCHY,
    LEARNERS,
    POOL_NOISE,
    Key,
    Method,
    beta_binomial,
    everyone_else,
    intervals,
    label_orders,
    measures,
    released_pool,
    run_pools,
    third_of,
    true_difference,
)
from fairbench.components.papers.few_labels.tables import METHODS, third_errors
from fairbench.core.arrays import Floats, rng
from fairbench.core.options import option
from fairbench.inference import few_labels
from fairbench.inference.posterior import central_interval
from fairbench.metrics.group import difference
from fairbench.metrics.registry import accuracy, true_positive_rate
from fairbench.reporting.charts import BLUE, COLOURS, GREY, ORANGE

PUBLISHED = 96_000


# The shares of rows that are positives of the larger and of the smaller group; their TPRs.
EXAMPLE = (0.8 * 0.2, 0.2 * 0.2), (0.95, 0.90)
Pair = tuple[float, float]


def by_normal(positives: Pair, rates: Pair, margin: float = 0.01) -> int:
    """Return the rows for which the gap's normal error stays within `margin` in 95 %.

    z² Σ θ (1 - θ) / (share of positives) / margin².
    """
    variance = sum(rate * (1 - rate) / share for share, rate in zip(positives, rates, strict=True))
    return ceil(NormalDist().inv_cdf(0.975) ** 2 * variance / margin**2)


def chance(
    positives: Pair, rates: Pair, rows: int, *, margin: float = 0.01, draws: int = 100_000
) -> float:
    """Return how often the gap of `rows` labelled rows is within `margin` of the true one.

    Samples without a positive in both groups have no gap, and count as outside.
    """
    generator = rng(0, "labels_needed")
    found = generator.multinomial(rows, [*positives, 1 - sum(positives)], size=draws)[:, :2]
    shares = generator.binomial(found, rates) / np.maximum(found, 1)
    within = np.abs(np.diff(shares)[:, 0] - (rates[1] - rates[0])) <= margin
    return float((within & (found > 0).all(axis=1)).mean())


def by_simulation(positives: Pair, rates: Pair, margin: float = 0.01, *, step: int = 1000) -> int:
    """Return the smallest multiple of `step` whose simulated chance is 95 %."""
    steps = count(step, step)
    return next(rows for rows in steps if chance(positives, rates, rows, margin=margin) >= 0.95)


def labels_needed() -> None:
    """How many labels a gap of true positive rates takes from labels alone: Ji et al.'s 96,000.

    Their example (NeurIPS 2020), from memory, the text not being at hand: one in five people has
    label 1, one in five belongs to the smaller group, true positive rates are 0.95 and 0.90;
    for a chance of 95 % that the estimated gap lies between 0.04 and 0.06, some 96,000 rows
    must have labels. Here the smallest number by a closed form and by simulation. ``python -m
    papers.few_labels.figures labels_needed``
    """
    print(f"published: {PUBLISHED:,}; normal: {by_normal(*EXAMPLE):,}; ", end="")
    print(f"simulated: {by_simulation(*EXAMPLE):,}")
    within = chance(*EXAMPLE, PUBLISHED, draws=1_000_000)
    print(f"chance at {PUBLISHED:,} rows: {within:.4f}")
    for share in (0.5, 0.2, 0.1, 0.05):
        positives = 0.2 * (1 - share), 0.2 * share
        needed = [f"±{m:g}: {by_normal(positives, EXAMPLE[1], m):,}" for m in (0.05, 0.02, 0.01)]
        print(f"smaller group of {share:.0%}: rows for {'; '.join(needed)}")


BUDGETS = (10, 20, 40, 100, 200, 400, 1000)
CURVE_METHODS = {
    "labels alone": Method("frequentist"),
    "beta-binomial": Method("beta_binomial"),
    "calibration, as published": Method("beta_calibration"),
    "calibration, pool noise": Method("beta_calibration", reading=POOL_NOISE),
    "labels helped by scores": Method("helped_by_scores"),
    "scores as they are": Method("plug_in"),
}


@dataclass(frozen=True)
class CurvesOptions(Results):
    """Which pools, and over how many choices of the labels."""

    runs: int = number_of_runs(100)
    run: str = option(
        "", "A run of ours in place of the released pools, by id or name.", shown="RUN"
    )
    group: str = option("", "Its column of groups; otherwise the protected one.", shown="COLUMN")


def curves(options: CurvesOptions) -> None:
    """Every method's error, coverage and interval by the number of labels, over many label orders.

    ``python -m papers.few_labels.figures curves [runs=100] [run=ID] [group=COLUMN]``: errors and
    coverages of the difference of accuracies, of four released pools or of the first repeat of one
    of our runs.
    """
    pools = {" ".join(key): released_pool(key, as_released=True) for key in FIGURE_POOLS}
    if options.run:
        pools = run_pools(options.run, options.group or None, options.results)
    rows = []
    for name, table in pools.items():
        orders, truth = label_orders(table, options.runs), true_difference(table, accuracy)
        # A third of the pool stays unlabelled.
        budgets = [labels for labels in BUDGETS if labels <= 2 / 3 * len(table.score)]
        for (method_name, method), labels in product(CURVE_METHODS.items(), budgets):
            subsets, generator = [o[:labels] for o in orders], rng(0, "few_labels", name, labels)
            (values,) = intervals(table, subsets, method, [accuracy], generator)
            place = {"pool": name, "method": method_name, "labels": labels}
            rows.append({**place, **measures(values, truth)})
    frame = pd.DataFrame(rows)
    for name in ("error", "coverage"):
        by_labels = frame.pivot_table(name, ["pool", "method"], "labels", sort=False)
        print(f"\n{name}\n{by_labels.round(1).to_string()}")


EPSILON, LABELS = 0.02, 20
PAIRS = {("adult", "sex"): "0.99 (positive)", ("bank", "age"): "0.87 (within 0.02)"}


def reported(table: few_labels.PartlyLabelled, runs: int) -> Floats:
    """Return P(difference > 0) and P(|difference| < 0.02) of each label order, (R, 2)."""
    subsets = [order[:LABELS] for order in label_orders(table, runs)]
    generator = rng(0, "few_labels", "reports")
    family = few_labels.PosteriorFamily.of(table, generator, draws=512, pool_noise=False)
    posteriors = (family.posterior(rows, generator) for rows in subsets)
    draws = [difference(accuracy, everyone_else(p.counts))[:, 0] for p in posteriors]
    return np.array([probabilities(drawn) for drawn in draws])


def probabilities(draws: Floats) -> tuple[float, float]:
    """Return how many draws of a difference are positive, and how many within epsilon."""
    return float((draws > 0).mean()), float((np.abs(draws) < EPSILON).mean())


def posterior_reports(
    thirds: int, runs: int, results: Path, pairs: int = len(PAIRS)
) -> pd.DataFrame:
    """Return a row a pair: what the text says, and quartiles of ours over thirds and orders."""
    rows = []
    for pair, theirs in list(PAIRS.items())[-pairs:]:
        tables = [third_of(*pair, "mlp", third, results) for third in range(thirds)]
        ours = np.concatenate([reported(table, runs) for table in tables])
        low, middle, high = np.quantile(ours, [0.25, 0.5, 0.75], axis=0)
        row: dict[str, object] = {"pair": " ".join(pair), "text": theirs}
        for place, name in enumerate(("positive", f"within {EPSILON}")):
            row[name] = f"{middle[place]:.2f} ({low[place]:.2f} to {high[place]:.2f})"
        rows.append(row)
    return pd.DataFrame(rows)


def reports(options: Look) -> None:
    """Print what a posterior of 20 labels reports: section 4.7, over thirds and labels.

    ``python -m papers.few_labels.figures reports [quick=true]``: by the perceptron, how sure
    calibration is that decisions on Adult's women are more often right than on its men, and that
    those on the groups of Bank differ by less than 0.02. The text gives those of one set of labels:
    0.99 and 0.87. A quick look is at Bank alone.
    """
    size = (2, 2, options.results, 1) if options.quick else (8, 20, options.results, 2)
    print(posterior_reports(*size).to_string(index=False))


# The figures.

T = TypeVar("T")
Case = tuple[str, few_labels.PartlyLabelled]
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
        frame = third_errors(keys, results, effort)
        frame = frame[frame["rate"] == rate]
        cases = [
            (f"{data} {attribute}", rows)
            for (data, attribute), rows in frame.groupby(CONFIGURATION[:2], sort=False)
        ]
        label = f"error of the {_RATE_NAMES[rate]}' difference, points"
        yield learner, _panels(cases, partial(_errors, names=names), label)


# Errors of the differences: of the network's FPRs, and of each rate of all models.
figure_4_6 = partial(_by_labels, "fpr", ("mlp",), names=("beta-binomial", "calibration"))
figure_b_1 = partial(_by_labels, "accuracy", LEARNERS)
figure_b_2 = partial(_by_labels, "tpr", LEARNERS)
figure_b_3 = partial(_by_labels, "fpr", LEARNERS)


def _panels(cases: Sequence[T], draw: Callable[[Axes, T], None], label: str) -> Figure:
    columns, rows = min(_COLUMNS, len(cases)), ceil(len(cases) / _COLUMNS)
    size = (1.2 + (3.6 if rows == 1 else 2.6) * columns, 0.8 + (3.1 if rows == 1 else 2.6) * rows)
    figure = Figure(figsize=size, dpi=110, layout="constrained")
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
    method, estimates = Method("frequentist"), []
    for labels in _BOX_LABELS:
        subsets, generator = [order[:labels] for order in orders], rng(0, "few_labels")
        (values,) = intervals(table, subsets, method, [true_positive_rate], generator)
        estimates.append(values[~np.isnan(values[:, 0]), 0])  # of runs that have one
    names = [str(labels) for labels in _BOX_LABELS]
    axes.boxplot(estimates, tick_labels=names, sym=".", medianprops={"color": BLUE})
    axes.axhline(true_difference(table, true_positive_rate), color=ORANGE, label="all labels")
    axes.set(xlabel="labels", title=name, ylim=(-1, 1))


def _chances(axes: Axes, draws: int) -> None:
    shares = [100 * chance(*EXAMPLE, rows, draws=draws) for rows in _NEEDED]
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
    posterior = few_labels.CalibrationPosterior.of(
        table.showing(shown), generator, pool_noise=False
    )
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
    posterior = few_labels.CalibrationPosterior.of(shown, rng(0, "few_labels", name, labels))
    coefficients = few_labels.BETA.coefficients(posterior.theta)
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle=":")
    for group, colour in enumerate((BLUE, ORANGE)):
        odds = coefficients[:, group] @ few_labels.BETA.features(_GRID)
        calibrated = 1 / (1 + np.exp(-odds))
        lower, upper = central_interval(calibrated)
        label = ("privileged", "others")[group]
        axes.plot(_GRID, calibrated.mean(axis=0), color=colour, linewidth=1)
        axes.fill_between(_GRID, lower, upper, color=colour, alpha=0.25, label=label)
        # The share of label 1 in five bins of as many people each, by all labels.
        rows = np.flatnonzero(table.group == group)
        bins = np.array_split(rows[np.argsort(table.score[rows], kind="stable")], _BINS)
        positives = np.array([table.label[rows].sum() for rows in bins])
        size = np.array([len(rows) for rows in bins])
        ends = beta.ppf([[0.025], [0.975]], positives + 0.5, size - positives + 0.5)
        share = positives / size
        error = np.maximum([share - ends[0], ends[1] - share], 0)
        score = [table.score[rows].mean() for rows in bins]
        axes.errorbar(score, share, error, fmt=".", color=colour, linewidth=1)
    axes.set(xlabel="score", title=name, xlim=(0, 1), ylim=(0, 1))


if __name__ == "__main__":
    run_main(labels_needed, curves, reports)
