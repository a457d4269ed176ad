"""Ji's thesis, chapter 2: Figures 2.1 to 2.9, the numbers of its text, and errors of the ECE.

``python -m papers.black_box.estimation [cifar100 svhn] [runs=200]`` prints how far estimates of the
ECE are off by the number of labels, which Figure 2.6 draws. ``fairbench paper black_box
figures=true run=true`` draws all figures, and ``fairbench paper black_box table=text run=true``
sets ours beside each number that its text prints. The released predictions and the cost matrices,
which chapter 3 shares, come first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fairbench.components.papers import CONF, number_of_runs, run_main
from fairbench.components.papers.engine.matching import Drawn, Effort, Numbers, number
from fairbench.components.papers.released_scores import MulticlassFile
from fairbench.core.arrays import Codes, Floats, Mask, rng
from fairbench.core.errors import check_choice
from fairbench.core.options import option
from fairbench.data.columns import MulticlassScores
from fairbench.data.download import Archive
from fairbench.experiments.build import constructor
from fairbench.inference.posterior import (
    Beta,
    accuracy_posterior,
    central_interval,
    confusion_posterior,
    prior_from_scores,
    ranks,
    reliability_diagram,
    uniform,
    uninformative_prior,
)
from fairbench.metrics.probability import reliability
from fairbench.reporting.charts import BLUE, GREEN, GREY, ORANGE
from fairbench_label.active import BetaArms, ComparisonReward

# The two cost matrices of CIFAR-100 (thesis 3.6.2, Figure 3.5): some mistakes are dearer.

SUPERCLASSES: list[str] = yaml.safe_load(
    Path(__file__).with_name("superclasses.yaml").read_text(encoding="utf-8")
)
_PEOPLE = ("baby", "boy", "girl", "man", "woman")
DEAR = 10.0  # what an expensive mistake costs, where another costs 1


def superclasses(classes: tuple[str, ...]) -> Codes:
    """Return the code of each class's superclass, 0 to 19, (C,)."""
    place = {name: i for i, line in enumerate(SUPERCLASSES) for name in line.split()}
    return np.array([place[name] for name in classes])


def superclass_costs(classes: tuple[str, ...], dear: float = DEAR) -> Floats:
    """Return (C, C) costs: 1 for a mistake within a superclass, `dear` for one across."""
    code = superclasses(classes)
    return _priced(code[:, None] != code, dear)


def human_costs(classes: tuple[str, ...], dear: float = DEAR) -> Floats:
    """Return (C, C) costs: `dear` where a person is taken for what is none, 1 for the rest."""
    person = np.isin(classes, _PEOPLE)
    return _priced(person[:, None] & ~person, dear)


def person_costs(classes: tuple[str, ...], dear: float = DEAR) -> Floats:
    """Return (C, C) costs: `dear` for every mistake about a person, other persons included."""
    person = np.isin(classes, _PEOPLE)
    return _priced(np.tile(person[:, None], len(classes)), dear)


def _priced(is_dear: Mask, dear: float) -> Floats:
    costs = np.where(is_dear, dear, 1.0)
    np.fill_diagonal(costs, 0)
    return costs


# The released predictions, and labels of a few rows at a time.


@cache
def released_pool(name: str) -> MulticlassScores:
    """Return the predictions that conf/scores/<name>.yaml describes.

    Raises
    ------
    UserError : no such file of several classes, or what it describes is not there.
    """
    texts = {path.stem: path.read_text() for path in (CONF / "scores").glob("*.yaml")}
    files = [each for each, text in texts.items() if MulticlassFile.__name__ in text]
    check_choice("scores of several classes", name, files)
    file: MulticlassFile = constructor("scores", yaml.safe_load(texts[name]))()
    return file.scores(Archive(download=False))


def replications(
    scores: MulticlassScores, name: str, labels: int, runs: int
) -> Iterator[MulticlassScores]:
    """Yield the pool with labels of other rows each time."""
    for run in range(runs):
        chosen = rng(0, "labels", name, run).permutation(len(scores))[:labels]
        yield scores.showing(np.sort(chosen))


# Errors of estimates.

BINS = 10
NUMBERS = (20, 50, 100, 200, 500, 1000, 2000, 5000)
ESTIMATES = ("posterior mean of the ECE", "ECE of the posterior mean", "frequentist")


@dataclass(frozen=True)
class Options:
    """Which scores, and over how many choices of the labels."""

    scores: tuple[str, ...] = option(
        ("cifar100", "svhn"), "Scores of several classes, files in conf/scores.", argument="NAME"
    )
    runs: int = number_of_runs(200)


# A number of labels, and over the runs the mean absolute error and the bias of each of `ESTIMATES`.
EceErrors = tuple[int, Floats, Floats]


def full_ece(scores: MulticlassScores) -> float:
    """Return the ECE of all labels."""
    return reliability(scores.correct, scores.confidence, bins=BINS).expected_calibration_error()


def ece_errors(
    scores: MulticlassScores, name: str, numbers: tuple[int, ...], runs: int
) -> Iterator[EceErrors]:
    """Yield the errors at each number of labels."""
    truth = full_ece(scores)
    for labels in numbers:
        estimates = [_estimates(each) for each in replications(scores, name, labels, runs)]
        off = np.array(estimates) - truth
        yield labels, np.abs(off).mean(axis=0), off.mean(axis=0)


def _estimates(scores: MulticlassScores) -> tuple[float, ...]:
    diagram = reliability_diagram(scores.confidence, scores.correct, bins=BINS)
    naive = (diagram.weight * np.abs(diagram.accuracy.mean - diagram.score)).sum()
    rows = scores.labelled
    plain = reliability(scores.correct[rows], scores.confidence[rows], bins=BINS)
    mean = diagram.expected_calibration_error()[0]
    return float(mean), float(naive), plain.expected_calibration_error()


def main(options: Options) -> None:
    """Print the errors of the scores that are named, in percent of the ECE of all labels."""
    for name in options.scores:
        scores = released_pool(name)
        truth, right = full_ece(scores), scores.correct.mean()
        print(f"{name}: {len(scores):,} rows, accuracy {right:.4f}, ECE {truth:.4f}")
        print("mean absolute error of the ECE in percent of it (bias), by number of labels")
        cells = {}
        for labels, *found in ece_errors(scores, name, NUMBERS, options.runs):
            percent = 100 * np.column_stack(found) / truth
            cells[labels] = [f"{error:.1f} ({bias:+.1f})" for error, bias in percent]
        print(pd.DataFrame.from_dict(cells, "index", columns=ESTIMATES).to_string())


NAMES = {"cifar100": "CIFAR-100", "svhn": "SVHN"}
TOP = {"cifar100": 10, "svhn": 3}  # how many of the extreme classes are asked for
MARGIN = 0.05
_FEW, _SOME = 100, 1000
_NOTHING = 1e-6  # of a label: the frequentist estimate, and equal shares of what has no label
_NAMED = ("woman", "oak_tree")  # a class of each superclass that is compared
_COLOURS = (BLUE, GREEN, ORANGE)
_MOST = 10


def _panels(columns: int, rows: int = 1, *, width: float = 3.6, height: float = 3.4,
            **options: Any) -> tuple[Figure, NDArray[np.object_]]:  # fmt: skip
    figure = Figure(figsize=(width * columns, height * rows), dpi=110, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def reliability_figure(
    pools: Sequence[MulticlassScores], title: str, *, strength: float = 2.0, rows: int = 1
) -> Figure:
    """Draw reliability diagrams at growing numbers of labels, the posterior as a band.

    They are in the first of so many rows of axes.
    """
    figure, axes = _panels(len(pools), rows, sharey="row")
    for ax, pool in zip(axes[0], pools, strict=True):
        labelled = pool.labelled
        diagram = reliability_diagram(pool.confidence, pool.correct, strength=strength)
        used = diagram.weight[0] > 0
        score, mean = diagram.score[0][used], diagram.accuracy.mean[0][used]
        lower, upper = (end[0][used] for end in diagram.accuracy.interval())
        ax.bar(score, 0.4 * diagram.weight[0][used], width=0.06, color="#dcebf5")
        ax.plot([0, 1], [0, 1], "--", color=GREY, lw=1)
        ax.fill_between(score, lower, upper, color=BLUE, alpha=0.2, lw=0, label="95 % interval")
        ax.plot(score, mean, "o-", color=BLUE, ms=4, lw=1, label="posterior")
        plain = reliability(pool.correct[labelled], pool.confidence[labelled], bins=BINS)
        ax.plot(plain.mean_score, plain.base_rate, "^", color=ORANGE, ms=5, label="frequentist")
        ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="score", title=f"{len(labelled):,} labels")
    axes[0, 0].set_ylabel("accuracy")
    axes[0, 0].legend(frameon=False, loc="upper left", fontsize=8)
    figure.suptitle(title)
    return figure


def _classes_figure(pool: MulticlassScores, name: str, *, draws: int) -> Figure:
    """Draw every predicted class's ECE against its accuracy, the m at both ends in colour."""
    accuracy, n, title = _accuracy(pool), len(pool.classes), NAMES[name]
    diagram = reliability_diagram(pool.confidence, pool.correct, pool.prediction, n_groups=n)
    error = diagram.expected_calibration_error()
    ends = central_interval(diagram.calibration_error_draws(draws, rng(0, "classes", title)))
    figure, axes = _panels(1, width=5.6, height=4.6)
    ax = axes[0, 0]
    order, m = np.argsort(accuracy.mean), TOP[name]
    kinds = ((order[m:-m], GREY), (order[:m], ORANGE), (order[-m:], BLUE))
    bars = (_arms(accuracy.mean, accuracy.interval()), _arms(error, ends))
    for chosen, colour in kinds:
        across, up = (bar[:, chosen] for bar in bars)
        ax.errorbar(accuracy.mean[chosen], error[chosen], xerr=across, yerr=up, fmt="o", ms=3,
                    lw=0.5, color=colour)  # fmt: skip
    marked = {*np.argsort(accuracy.mean)[:3], *np.argsort(-error)[:3], int(accuracy.mean.argmax())}
    for k in marked:
        ax.annotate(pool.classes[k], (accuracy.mean[k], error[k]), xytext=(4, 4),
                    textcoords="offset points", fontsize=8)  # fmt: skip
    ax.set(xlabel="accuracy of the predicted class", ylabel="ECE", title=title, ylim=(0, None))
    return figure


def _accuracy(pool: MulticlassScores) -> Beta:
    """Return what all labels say of the accuracy of every predicted class."""
    return accuracy_posterior(pool.correct, pool.prediction, uniform(len(pool.classes)))


def _density(ax: Axes, drawn: Floats, colour: str) -> None:
    height, edge = np.histogram(drawn, bins=80)
    ax.stairs(height / height.max(), edge, fill=True, alpha=0.4, color=colour)


def _arms(value: Floats, ends: Sequence[Floats]) -> Floats:
    """Return the lengths of error bars, none below 0 where a skew mean leaves its interval."""
    lower, upper = ends
    return np.maximum(np.stack([value - lower, upper - value]), 0)


def group_pairs(pool: MulticlassScores) -> dict[tuple[str, str], Beta]:
    """Return the posteriors of both accuracies, (2,), for people and trees, and women and men."""
    groups = {
        name: line.split() for line in SUPERCLASSES for name in _NAMED if name in line.split()
    }
    pairs = {
        ("people", "trees"): (groups["woman"], groups["oak_tree"]),
        ("woman", "man"): (["woman"], ["man"]),
    }
    predicted = np.array(pool.classes)[pool.prediction]
    found = {}
    for names, pair in pairs.items():
        rows = np.flatnonzero(np.isin(predicted, [*pair[0], *pair[1]]))
        second = np.isin(predicted[rows], pair[1]).astype(np.int64)
        found[names] = accuracy_posterior(pool.correct[rows], second, uniform(2))
    return found


def regions(accuracy: Beta) -> tuple[float, float, float]:
    """Return P(first less by the margin), P(equivalent), P(first greater), of a pair, (2,)."""
    pair = BetaArms.of(accuracy, [0, 0])
    greater, same, less = ComparisonReward(MARGIN).regions(pair)[0]
    return float(less), float(same), float(greater)


def _each(draw: Callable[[str, MulticlassScores], Figure]) -> Drawn:
    for name in NAMES:
        yield name, draw(name, released_pool(name))


def growing(
    scores: MulticlassScores, name: str, numbers: Sequence[int] = (_FEW, _SOME)
) -> list[MulticlassScores]:
    """Return the pool with so many labels each, and with all of them."""
    order = rng(0, "labels", name).permutation(len(scores))  # more labels keep those of fewer
    fewer = (labels for labels in numbers if labels < len(scores))
    return [scores.showing(order[:labels]) for labels in (*fewer, len(scores))]


def _draws(effort: Effort) -> int:
    return effort.choose(20_000, 4_000, 100)


def figure_2_1(results: Path, effort: Effort) -> Drawn:
    """Draw the reliability diagram of all labels of CIFAR-100, and where its scores lie."""
    yield "", reliability_figure([released_pool("cifar100")], NAMES["cifar100"])


def figure_2_2(results: Path, effort: Effort) -> Drawn:
    """Draw the accuracies of the predicted classes of CIFAR-100."""
    pool, title = released_pool("cifar100"), NAMES["cifar100"]
    accuracy = _accuracy(pool)
    order = np.argsort(accuracy.mean)
    lower, upper = accuracy.interval()
    figure, axes = _panels(1, width=4.6, height=0.14 * len(order) + 1.0)
    ax = axes[0, 0]
    bars = _arms(accuracy.mean[order], (lower[order], upper[order]))
    ax.errorbar(accuracy.mean[order], np.arange(len(order)), xerr=bars, fmt="o", ms=2, lw=0.6,
                color=ORANGE)  # fmt: skip
    ax.set_yticks(np.arange(len(order)), [pool.classes[k] for k in order], fontsize=5)
    ax.set(xlim=(0, 1), ylim=(-1, len(order)), xlabel="accuracy", title=title)
    yield "", figure


def figure_2_3(results: Path, effort: Effort) -> Drawn:
    """Draw the ranks of CIFAR-100's classes, and which is the most or the least accurate."""
    pool, title, draws = released_pool("cifar100"), NAMES["cifar100"], _draws(effort)
    accuracy = _accuracy(pool)
    drawn = accuracy.draws(draws, rng(0, "ranks", title))
    best, worst = (ranks(drawn, largest=largest) for largest in (True, False))
    order, m = np.argsort(best["mean"]), TOP["cifar100"]
    figure, axes = _panels(3, width=3.6, height=4.2)
    ends = np.concatenate([order[:m], order[-m:]])[::-1]
    bars = _arms(best["mean"][ends], (best["lower"][ends], best["upper"][ends]))
    axes[0, 0].errorbar(best["mean"][ends], [pool.classes[k] for k in ends], xerr=bars, fmt="o",
                        ms=3, color=BLUE)  # fmt: skip
    axes[0, 0].set(xlabel="rank, 1 the most accurate")
    for ax, result, name in ((axes[0, 1], best, "most"), (axes[0, 2], worst, "least")):
        probable = np.argsort(-result["first"])[:_MOST][::-1]
        ax.barh([pool.classes[k] for k in probable], result["first"][probable], color=BLUE)
        ax.set(xlim=(0, 1), xlabel=f"probability of being the {name} accurate")
    for ax in axes[0]:
        ax.tick_params(axis="y", labelsize=7)
    figure.suptitle(title)
    yield "", figure


def figure_2_4(results: Path, effort: Effort) -> Drawn:
    """Draw reliability diagrams at growing numbers of labels."""
    yield from _each(lambda name, pool: reliability_figure(growing(pool, name), NAMES[name]))


def figure_2_5(results: Path, effort: Effort) -> Drawn:
    """Draw CIFAR-100's reliability diagrams with the posteriors of the ECE."""
    pools, title = growing(released_pool("cifar100"), "cifar100"), NAMES["cifar100"]
    draws, truth = _draws(effort), full_ece(pools[-1])
    figure = reliability_figure(pools, title, rows=2)
    axes = figure.axes[len(pools) :]
    for ax, pool in zip(axes, pools, strict=True):
        diagram, rows = reliability_diagram(pool.confidence, pool.correct), pool.labelled
        error = diagram.calibration_error_draws(draws, rng(0, "ece", title, len(rows)))[:, 0]
        _density(ax, error, ORANGE)
        plain = reliability(pool.correct[rows], pool.confidence[rows], bins=BINS)
        ax.axvline(truth, color="black", lw=1, label="all labels")
        ax.axvline(plain.expected_calibration_error(), color=BLUE, lw=1, label="frequentist")
        ax.set(xlabel="ECE", xlim=(0, 0.25))
    axes[0].set_ylabel("posterior density, highest = 1")
    axes[0].legend(frameon=False, fontsize=8)
    yield "", figure


def figure_2_6(results: Path, effort: Effort) -> Drawn:
    """Draw by how many percent Bayesian and frequentist estimates of the ECE are off."""
    runs, numbers = effort.choose(1000, 40, 2), effort.choose(NUMBERS, NUMBERS, NUMBERS[:1])
    figure, axes = _panels(len(NAMES), width=4.6)
    for ax, (name, title) in zip(axes[0], NAMES.items(), strict=True):
        scores = released_pool(name)
        truth = full_ece(scores)
        bias = np.array([each for _, _, each in ece_errors(scores, name, numbers, runs)])
        for off, estimate, colour in zip(bias.T, ESTIMATES, _COLOURS, strict=True):
            ax.plot(numbers, 100 * off / truth, "o-", ms=4, color=colour, label=estimate)
        ax.axhline(0, color=GREY, lw=0.6)
        ax.set(xscale="log", xlabel="labels", title=title)
    axes[0, 0].set_ylabel("error of the mean estimate, percent of the ECE")
    axes[0, 0].legend(frameon=False, fontsize=8)
    yield "", figure


def figure_2_7(results: Path, effort: Effort) -> Drawn:
    """Draw every class's ECE against its accuracy."""
    draws = effort.choose(4000, 1000, 50)
    yield from _each(lambda name, pool: _classes_figure(pool, name, draws=draws))


def figure_2_8(results: Path, effort: Effort) -> Drawn:
    """Draw the differences of two pairs of groups of CIFAR-100."""
    pool, title, draws = released_pool("cifar100"), NAMES["cifar100"], _draws(effort)
    pairs = group_pairs(pool)
    figure, axes = _panels(len(pairs), width=4.6)
    for ax, (names, accuracy) in zip(axes[0], pairs.items(), strict=True):
        drawn = accuracy.draws(draws, rng(0, "difference", *names))
        _density(ax, drawn[:, 0] - drawn[:, 1], BLUE)
        for end in (-MARGIN, MARGIN):
            ax.axvline(end, color=ORANGE, lw=1)
        frequentist = (accuracy.successes - 1) / (accuracy.strength - 2)
        ax.axvline(frequentist[0] - frequentist[1], color=BLUE, lw=1, ls="--")
        less, same, greater = regions(accuracy)
        ax.set(xlabel=f"accuracy of {names[0]} less that of {names[1]}", yticks=[],
               title=f"P: under {less:.2f}, within {same:.2f}, over {greater:.2f}")  # fmt: skip
    axes[0, 0].set_ylabel("posterior density, highest = 1")
    figure.suptitle(f"{title}: equivalent within {MARGIN}")
    yield "", figure


def figure_2_9(results: Path, effort: Effort) -> Drawn:
    """Draw estimates of CIFAR-100's confusion matrix at growing numbers of labels."""
    pools = growing(released_pool("cifar100"), "cifar100", (10, 100, 1000))
    title = NAMES["cifar100"]
    n = len(pools[0].classes)
    priors = {
        "frequentist": np.full((n, n), _NOTHING / n),
        "uninformative prior": uninformative_prior(n, strength=1.0),
        "scores' prior": prior_from_scores(pools[0], strength=1.0),
    }
    figure, axes = _panels(
        len(pools), len(priors), width=2.6, height=2.6, sharex="all", sharey="all"
    )
    for column, pool in zip(axes.T, pools, strict=True):
        for ax, (name, prior) in zip(column, priors.items(), strict=True):
            alpha = confusion_posterior(pool, prior)
            mean = alpha / alpha.sum(axis=1, keepdims=True)
            image = ax.imshow(np.log10(mean.T), vmin=-4, vmax=0, cmap="viridis", aspect="auto")
            axes[list(priors).index(name), 0].set_ylabel(f"{name}\ntrue class")
        column[0].set_title(f"{len(pool.labelled):,} labels")
        column[-1].set_xlabel("predicted class")
    figure.colorbar(image, ax=axes, label="log10 P(true | predicted)", shrink=0.7)
    figure.suptitle(title)
    yield "", figure


# The numbers: Table 2.1, and those of the text.

MOST_ACCURATE = ("keyboard", "sunflower", "motorcycle")
CUT = "digits cut"
_DRAWS = 100_000
Found = dict[tuple[str, str], float]  # (metric, setting) of a printed number -> ours


def numbers(rows: pd.DataFrame, results: Path, effort: Effort) -> Numbers:
    """Yield our numbers for printed ones.

    Parameters
    ----------
    rows : the printed numbers; the index is the place of each.
    """
    draws = effort.choose(_DRAWS, 10_000, 200)
    for name, title in NAMES.items():
        printed = rows[rows["dataset"] == title]
        if printed.empty:
            continue
        scores = released_pool(name)
        sizes = {"size_thousand": len(scores) / 1000, "test_rows": len(scores)}
        found: Found = {(metric, ""): size for metric, size in sizes.items()}
        found["classes", ""] = len(scores.classes)
        if name == "cifar100":
            high = (scores.confidence > 0.9).mean()
            found |= {
                ("accuracy", ""): scores.correct.mean(),
                ("mean_score", ""): scores.confidence.mean(),
                ("ece", ""): full_ece(scores),
                ("percent_of_scores_above", "score=0.9"): 100 * high,
                **classes(scores, draws),
                **differences(scores),
            }
        for row in printed.itertuples():
            ours, metric = found[str(row.metric), str(row.setting)], str(row.metric)
            # What is drawn is a share, and a draw has it or not.
            sd = np.sqrt(ours * (1 - ours)) if metric.startswith("probability") else 0.0
            yield number(ours, sd, draws, row=row.Index)
            if metric == "ece":
                digits = 10 ** len(str(row.value).partition(".")[2])
                yield number(np.floor(ours * digits) / digits, sd, draws, row=row.Index, cause=CUT)


def classes(scores: MulticlassScores, draws: int) -> Found:
    """Return what is known of the classes at both ends from all labels, under Beta(1, 1)."""
    accuracy = _accuracy(scores)
    places = [scores.classes.index(name) for name in MOST_ACCURATE]
    lower, upper = (end[places] for end in accuracy.interval())
    drawn = accuracy.draws(draws, rng(0, "black box", "classes"))
    most, least = (ranks(drawn, largest=largest)["first"] for largest in (True, False))
    named = zip(MOST_ACCURATE, places, strict=True)
    return {
        ("least_accuracy", "most accurate classes"): lower.min(),
        ("greatest_accuracy", "most accurate classes"): upper.max(),
        ("probability_least_accurate", "lizard"): least[scores.classes.index("lizard")],
        **{("probability_most_accurate", name): most[place] for name, place in named},
    }


def differences(scores: MulticlassScores) -> Found:
    """Return the posteriors of two pairs of groups, and P(the first is less accurate)."""
    found: Found = {}
    for names, accuracy in group_pairs(scores).items():
        pair, right, labels = " and ".join(names), accuracy.successes, accuracy.strength - 2
        first, second = (right - 1) / labels
        found["probability_less_accurate", pair] = regions(accuracy)[0]
        found["percent_less_accurate", pair] = 100 * (second - first)
        for i, name in enumerate(names):
            found["posterior_alpha", name] = right[i]
            found["posterior_beta", name] = accuracy.failures[i]
            found["labels", name] = labels[i]
    return found


if __name__ == "__main__":
    run_main(main)
