"""What posteriors say of known populations: of cross-validations, and of upsampled test sets.

`rho_coverage` asks how often intervals by each choice of rho hold an algorithm's true difference,
and `upsampling` what copies of a small group's rows do to a posterior (Figure 15.3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import norm

from fairbench.components.papers import print_table, run_main
from fairbench.components.papers.engine.matching import Drawn, Effort
from fairbench.components.papers.uncertainty_matters.ground_truth import Counts
from fairbench.core.arrays import Codes, Floats, Mask, Rows, rng
from fairbench.core.options import option
from fairbench.inference.comparing import objective
from fairbench.inference.gaps import cells_of
from fairbench.inference.posterior import independent_draws, margins, paired_draws
from fairbench.inference.survey import (
    half_splits,
    mean_relative_shrinkage,
    mean_shrinkage,
    relative_rho,
    shrinkage,
    variance_ratio,
)
from fairbench.metrics.registry import accuracy, binary_confusion, true_positive_rate
from fairbench.reporting.charts import BLUE, GREY, ORANGE

FEATURES, FOLDS, HALVINGS, COVERAGE_DRAWS, POPULATION = 12, 10, 5, 1000, 20000
SIZES = (100, 500)  # rows of a data set: with few, logistic regression is not stable
OBJECTIVES = ("accuracy", "equal_opportunity_difference", "equal_opportunity")
SEEN = {"A": slice(None), "B": slice(0, 1 + FEATURES // 2)}
BATCH = 100  # replications whose draws are held at once


@dataclass(frozen=True)
class _RhoCoverageOptions:
    """How much is drawn."""

    data_sets: int = option(1000, "How many data sets of each size.", least=1)


@dataclass(frozen=True)
class Sample:
    """Rows of the population: a constant and features (n, d), groups, probabilities, labels."""

    X: Floats
    group: Codes
    probability: Floats
    target: Codes

    @classmethod
    def draw(cls, rows: int, generator: np.random.Generator) -> Sample:
        """Draw rows of two groups, 30 % in the second, whose features and labels differ."""
        group = (generator.random(rows) < 0.3).astype(np.int64)
        features = generator.normal(size=(rows, FEATURES)) - 0.3 * group[:, None]
        weights = np.tile([0.9, -0.6, 0.4], FEATURES // 3) / np.arange(1, FEATURES + 1) ** 0.3
        probability = expit(features @ weights - 0.5 * group)
        target = (generator.random(rows) < probability).astype(np.int64)
        return cls(np.column_stack([np.ones(rows), features]), group, probability, target)


def fit(X: Floats, y: Codes, used: Mask) -> Floats:
    """Return ridge logistic regressions (B, d), each on the rows that its row of `used` marks."""
    weights, penalty = used.astype(float), np.eye(X.shape[1])
    beta = np.zeros((len(used), X.shape[1]))
    for _ in range(6):
        p = expit(beta @ X.T)
        curvature = (X.T * (weights * p * (1 - p))[:, None, :]) @ X + penalty
        gradient = (weights * (y - p)) @ X - beta
        beta += np.linalg.solve(curvature, gradient[..., None])[..., 0]
    return beta


def cross_validated(
    data: Sample, parts: list[Rows], seen: slice, generator: np.random.Generator
) -> list[tuple[NDArray[np.int64], Rows]]:
    """Return each part's out-of-fold predictions, and the folds its rows were in."""
    X = data.X[:, seen]
    folds = [generator.permutation(np.arange(len(part)) % FOLDS) for part in parts]
    used = np.zeros((len(parts), FOLDS, len(X)), bool)
    for i, (part, fold) in enumerate(zip(parts, folds, strict=True)):
        used[i][:, part] = fold != np.arange(FOLDS)[:, None]
    beta = fit(X, data.target, used.reshape(-1, len(X))).reshape(len(parts), FOLDS, -1)
    return [
        ((np.einsum("nd,nd->n", X[part], beta[i, fold]) > 0).astype(np.int64), fold)
        for i, (part, fold) in enumerate(zip(parts, folds, strict=True))
    ]


def replicate(rows: int, index: int) -> tuple[NDArray[np.int64], float, tuple[float, float]]:
    """Draw a data set, cross-validate both algorithms on it and on its halves.

    Returns
    -------
    The joint counts (G, 8), the ratio r of A to B, and Bayle et al.'s interval.
    """
    data = Sample.draw(rows, rng(0, "coverage sample", index))
    halves = half_splits(rows, HALVINGS, rng(0, "coverage halves", index))
    parts = [np.arange(rows), *(half for pair in halves for half in pair)]
    read = {
        name: cross_validated(data, parts, seen, rng(0, "coverage folds", index))
        for name, seen in SEEN.items()
    }
    first, second = (read[name][0][0] for name in SEEN)
    joint = cells_of(data.target, first, second, data.group, groups=2)
    estimates = {}
    for name, each in read.items():
        counts = [
            binary_confusion(data.target[part], predicted, data.group[part], n_groups=2)
            for part, (predicted, _) in zip(parts[1:], each[1:], strict=True)
        ]
        # Accuracy and TPR of every group in every half, (J, 2, objectives, G).
        rates = [[rate(tables) for rate in (accuracy, true_positive_rate)] for tables in counts]
        estimates[name] = np.reshape(rates, (HALVINGS, 2, 2, 2))
    ratio = float(variance_ratio(estimates["A"], estimates["B"], pooled=True))
    hits = [(each == data.target).astype(float) for each in (first, second)]
    return joint, ratio, bayle_interval(hits[0] - hits[1], read["A"][0][1])


def bayle_interval(values: Floats, fold: Rows, level: float = 0.95) -> tuple[float, float]:
    """Return the interval of a K-fold mean from the variance within folds (theorem 4)."""
    within = np.mean([values[fold == k].var(ddof=1) for k in range(FOLDS)])
    half = norm.ppf((1 + level) / 2) * np.sqrt(within / len(values))
    return float(values.mean() - half), float(values.mean() + half)


def _true_differences(rows: int, models: int = 400) -> Floats:
    """Return the mean difference in every objective of models of (K - 1) / K of the rows."""
    population = Sample.draw(POPULATION, rng(0, "coverage population"))
    differences = np.empty((models, len(OBJECTIVES)))
    for i in range(models):
        data = Sample.draw(rows * (FOLDS - 1) // FOLDS, rng(0, "coverage truth", i))
        tables = {name: _expected_tables(data, population, seen) for name, seen in SEEN.items()}
        for j, name in enumerate(OBJECTIVES):
            differences[i, j] = objective(name)(tables["A"]) - objective(name)(tables["B"])
    return differences.mean(axis=0)


def _expected_tables(data: Sample, population: Sample, seen: slice) -> Floats:
    """Return the (G, 4) table that a model fitted on `data` has in the population."""
    everything = np.ones((1, len(data.target)), bool)
    beta = fit(data.X[:, seen], data.target, everything)[0]
    chosen = population.X[:, seen] @ beta > 0
    p = population.probability
    cells = np.stack([(1 - p) * ~chosen, (1 - p) * chosen, p * ~chosen, p * chosen], axis=-1)
    return np.stack([cells[population.group == g].sum(axis=0) for g in range(2)])


Worth = Callable[[Floats], tuple[Floats | float, Floats | float]]


def variants() -> dict[str, tuple[str, Worth]]:
    """Return name -> (kind of draws, function of the ratios r to the worth of A's and B's counts).

    B is the reference learner: its own rho is rho_0.
    """
    at_most, averaged = shrinkage(1 / FOLDS, FOLDS), mean_shrinkage(FOLDS)
    fixed: dict[str, Floats | float] = {
        "rho = 0": 1.0, "rho = 1/K": at_most, "rho in [0, 1/K]": averaged
    }  # fmt: skip
    found: dict[str, Worth] = {}
    for kind in ("paired", "independent"):
        found |= {f"{kind}, {name}": _alike(worth) for name, worth in fixed.items()}
    found["independent, rho_rel"] = lambda r: (shrinkage(relative_rho(r, FOLDS), FOLDS), at_most)
    found["independent, rho_rel up"] = lambda r: (mean_relative_shrinkage(r, FOLDS), averaged)
    found["predictive, rho = 1/K"] = _alike(at_most)
    return {name: (name.partition(",")[0], worth) for name, worth in found.items()}


def _alike(worth: Floats | float) -> Worth:
    return lambda ratios: (worth, worth)


def intervals(joint: Counts, ratios: Floats, kind: str, worth: Worth, batch: int) -> Floats:
    """Return the 95 % intervals of every replication and objective, (2, R, objectives)."""
    generator = rng(0, "coverage draws", batch)
    first, second = (np.broadcast_to(w, ratios.shape)[:, None, None] for w in worth(ratios))
    if kind == "paired":
        tables = paired_draws(joint * first, COVERAGE_DRAWS, generator)
    else:
        one, other = margins(joint)
        predictive = kind == "predictive"
        tables = independent_draws(
            one * first, other * second, COVERAGE_DRAWS, generator, predictive=predictive
        )
    values = [objective(name)(tables[0]) - objective(name)(tables[1]) for name in OBJECTIVES]
    samples = np.stack(values, axis=-1)
    # A predictive draw without positives has no rate, and is left out, which takes longer.
    quantile = np.nanquantile if np.isnan(samples).any() else np.quantile
    return quantile(samples, (0.025, 0.975), axis=0)


def _cells(ends: Floats, truth: Floats) -> list[str]:
    """Return coverage in percent and mean width for each objective."""
    covered = (ends[0] <= truth) & (truth <= ends[1])
    width = (ends[1] - ends[0]).mean(axis=0)
    return [f"{c:.1%} ({w:.3f})" for c, w in zip(covered.mean(axis=0), width, strict=True)]


def show(rows: int, count: int) -> None:
    """Print the coverage of every choice over `count` fresh data sets of `rows` rows."""
    truth = _true_differences(rows)
    replications = (replicate(rows, index) for index in range(count))
    joint, ratios, bayle = map(np.array, zip(*replications, strict=True))
    error = np.sqrt(0.95 * 0.05 / count)
    title = f"95 % intervals of A - B, {count} data sets of {rows} rows: coverage (mean width)"
    named = zip(OBJECTIVES, truth, strict=True)
    headings = [f"{name.replace('_', ' ')}, true {value:.3f}" for name, value in named]
    caption = f"the standard error of a coverage of 95 % is {error:.1%}"
    cells = []
    for name, (kind, worth) in variants().items():
        batches = (slice(start, start + BATCH) for start in range(0, count, BATCH))
        ends = [intervals(joint[b], ratios[b], kind, worth, b.start) for b in batches]
        cells.append([name, *_cells(np.concatenate(ends, axis=1), truth)])
    cells.append(["Bayle et al. (2020)", *_cells(bayle.T[..., None], truth[:1]), "-", "-"])
    print_table(title, ("interval", *headings), cells, caption=caption)
    rhos = []  # that each accuracy's variance over data sets amounts to
    for name, tables in zip(SEEN, margins(joint.sum(axis=1)), strict=True):
        values = accuracy(tables)
        inflation = values.var(ddof=1) / (values.mean() * (1 - values.mean()) / rows)
        rhos.append(f"{name} {(inflation - 1) / (FOLDS - 1):.3f}")
    print(f"rho that the accuracies' variance over data sets amounts to: {', '.join(rhos)}\n")


def rho_coverage(options: _RhoCoverageOptions) -> None:
    """How well K-fold posteriors cover an algorithm's true mean difference, over fresh data sets.

    Barrainkua et al. judge their choices of rho by repeated cross-validations of one data set,
    whose spread is partition noise alone. Here every replication draws a new data set from a
    known population, runs ten folds of two logistic regressions (A sees all features, B half of
    them), and asks whether the 95 % interval of A - B holds the mean difference of models
    trained on so many rows. Beside the choices of rho stands the interval of Bayle et al.
    (NeurIPS 2020), whose variance is that of the loss differences within folds.
    """
    for rows in SIZES:
        show(rows, options.data_sets)


# Good loans of both groups in a test set, and the share of each that is found: those of German's
# young and older people under a support vector machine, in a hold-out of a fifth.
LOANS, RATES = (118, 22), (0.92, 0.84)
GAP = RATES[1] - RATES[0]  # of the small group
FACTORS = (1, 2, 4, 8)
LEVEL = 0.95
UPSAMPLED_DRAWS, TEST_SETS = 1000, 2000


def upsampled(found: Counts, rows: int, factor: int, generator: np.random.Generator) -> Counts:
    """Return the counts (T,) of a group of `rows` after copies drawn at random were added.

    Parameters
    ----------
    factor : how many times as large the group becomes; its own rows stay.
    """
    return found + generator.binomial((factor - 1) * rows, found / rows)


def gaps(
    found: Counts,
    factor: int,
    generator: np.random.Generator,
    *,
    draws: int = UPSAMPLED_DRAWS,
) -> Floats:
    """Return draws (T, D) of the posterior of the gap, the small group upsampled.

    Parameters
    ----------
    found : how many good loans of each group are found in test sets, (T, 2).
    """
    first, second = found.T
    copied = upsampled(second, LOANS[1], factor, generator)
    sizes = LOANS[0], LOANS[1] * factor
    larger, smaller = (
        generator.beta(1 + hits[:, None], 1 + size - hits[:, None], (len(found), draws))
        for hits, size in zip((first, copied), sizes, strict=True)
    )
    return smaller - larger


def coverage(factor: int, test_sets: int) -> tuple[float, float]:
    """Return how often the 95 % interval of the gap holds the true one, and its mean width."""
    generator = rng(0, "upsampling", factor)
    found = generator.binomial(LOANS, RATES, (test_sets, 2))
    drawn = gaps(found, factor, generator)
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1)
    held = (low <= GAP) & (high >= GAP)
    return float(held.mean()), float((high - low).mean())


def figure(found: dict[int, tuple[float, float]]) -> Figure:
    """Draw the posterior of one test set before and after, and the intervals' coverage."""
    drawn = Figure((12, 5), dpi=90, layout="constrained")
    left, right = drawn.subplots(1, 2)
    generator = rng(0, "upsampling", "one test set")
    one, largest = generator.binomial(LOANS, RATES, (1, 2)), LOANS[0] // LOANS[1]
    for factor, colour in ((1, BLUE), (largest, ORANGE)):
        draws = gaps(one, factor, generator, draws=20 * UPSAMPLED_DRAWS)
        label = "as it is" if factor == 1 else f"small group {factor} times as large"
        left.hist(draws[0], bins=40, density=True, alpha=0.5, color=colour, label=label)
    left.axvline(GAP, color="black", linestyle="--", label="true gap")
    left.legend(edgecolor="none", fontsize=12)
    right.plot([str(factor) for factor in found], [100 * held for held, _ in found.values()], "o-")
    right.axhline(100 * LEVEL, color=GREY, linestyle=":")
    right.set_ylim(0, 100)
    right.grid(alpha=0.25)
    times = "how many times as large the small group is made"
    held = "% of 95 % intervals that hold the true gap"
    for axes, title, x, y in (
        (left, "one test set", "gap in true positive rates", "posterior density"),
        (right, "many test sets", times, held),
    ):
        axes.set_title(title)
        axes.set_xlabel(x, fontsize=13)
        axes.set_ylabel(y, fontsize=13)
    return drawn


def figure_15_3(results: Path, effort: Effort) -> Drawn:
    """Yield the posterior of an upsampled test set, and the coverage of many."""
    test_sets = effort.choose(TEST_SETS, TEST_SETS, 50)
    yield "", figure({factor: coverage(factor, test_sets) for factor in FACTORS})


def upsampling() -> None:
    """Figure 15.3 of Uncertainty Matters: a test set whose small group is upsampled says too much.

    ``python -m papers.uncertainty_matters.simulated upsampling`` copies rows of the small group,
    drawn at random, until it is as large as the other one, as is done to training rows. Copies are
    no new people: the posterior gets narrow around the share of those who happened to be copied.
    The figure has the posterior of one test set before and after, and how often 95 % intervals of
    many hold the truth.
    """
    rows = []
    for factor in FACTORS:
        held, width = coverage(factor, TEST_SETS)
        rows.append((f"{factor} times", f"{held:.1%}", f"{width:.3f}"))
    title = f"95 % intervals of the gap, {TEST_SETS} test sets"
    print_table(title, ("small group", "hold the truth", "mean width"), rows)


if __name__ == "__main__":
    run_main(rho_coverage, upsampling)
