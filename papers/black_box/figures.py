"""Figures 2.1 to 2.8 of Ji's thesis, on the released predictions of CIFAR-100 and SVHN.

``fairbench paper black_box figures=true run=true``; ``estimation`` prints what Figure 2.3 shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fairbench.components.papers.black_box.costs import SUPERCLASSES, human_costs, superclass_costs
from fairbench.components.papers.black_box.estimation import (
    ESTIMATES,
    NUMBERS,
    EceErrors,
    ece_errors,
    full_ece,
)
from fairbench.components.papers.black_box.pools import pool as released
from fairbench.components.papers.black_box.pools import shown
from fairbench.core.arrays import Floats
from fairbench.core.seeds import rng
from fairbench.data.class_scores import MulticlassScores
from fairbench.inference.beta import Beta, probability_less, uniform
from fairbench.inference.confusion_matrix import (
    confusion_posterior,
    cost_draws,
    expected_cost,
    score_prior,
    uninformative_prior,
)
from fairbench.inference.posterior import central_interval
from fairbench.inference.reliability import (
    Ranks,
    ReliabilityDiagram,
    accuracy_posterior,
    ranks,
    reliability_diagram,
)
from fairbench.metrics.probability import reliability
from fairbench.reporting.charts import BLUE, GREEN, GREY, ORANGE
from fairbench.reporting.papers.running import Effort

NAMES = {"cifar100": "CIFAR-100", "svhn": "SVHN"}
MARGIN = 0.05
_FEW, _SOME = 100, 1000
_NAMED = ("woman", "oak_tree")  # a class of each superclass that is compared
_COLOURS = (BLUE, GREEN, ORANGE)
_MOST = 10


def _panels(columns: int, rows: int = 1, *, width: float = 3.6, height: float = 3.4,
            **options: Any) -> tuple[Figure, NDArray[np.object_]]:  # fmt: skip
    figure = Figure(figsize=(width * columns, height * rows), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def reliability_figure(pools: Sequence[MulticlassScores], title: str) -> Figure:
    """Draw reliability diagrams at growing numbers of labels, the posterior as a band."""
    figure, axes = _panels(len(pools), sharey="row")
    for ax, pool in zip(axes[0], pools, strict=True):
        diagram, rows = reliability_diagram(pool.confidence, pool.correct), pool.labelled
        _posterior_band(ax, diagram)
        plain = reliability(pool.correct[rows], pool.confidence[rows], bins=10)
        ax.plot(plain.mean_score, plain.base_rate, "^", color=ORANGE, ms=5, label="frequentist")
        ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="score", title=f"{len(rows):,} labels")
    axes[0, 0].set_ylabel("accuracy")
    axes[0, 0].legend(frameon=False, loc="upper left", fontsize=8)
    figure.suptitle(title)
    return figure


def _posterior_band(ax: Axes, diagram: ReliabilityDiagram) -> None:
    used = diagram.weight[0] > 0
    score, weight = diagram.score[0][used], diagram.weight[0][used]
    lower, upper = (end[0][used] for end in diagram.accuracy.interval())
    ax.bar(score, 0.4 * weight, width=0.06, color="#dcebf5")
    ax.plot([0, 1], [0, 1], "--", color=GREY, lw=1)
    ax.fill_between(score, lower, upper, color=BLUE, alpha=0.2, lw=0, label="95 % interval")
    ax.plot(score, diagram.accuracy.mean[0][used], "o-", color=BLUE, ms=4, lw=1, label="posterior")


def ece_figure(
    pools: Sequence[MulticlassScores],
    errors: Sequence[EceErrors],
    truth: float,
    title: str,
    *,
    draws: int,
) -> Figure:
    """Draw the posterior of the ECE at growing numbers of labels, and the errors of estimates."""
    figure, axes = _panels(2, width=4.6)
    left, right = axes[0]
    for pool, colour in zip(pools, _COLOURS, strict=False):
        diagram, labels = reliability_diagram(pool.confidence, pool.correct), len(pool.labelled)
        error = diagram.calibration_error_draws(draws, rng(0, "ece", title, labels))[:, 0]
        height, edge = np.histogram(error, bins=120)
        left.stairs(height / height.max(), edge, fill=True, alpha=0.35, color=colour,
                    label=f"{labels:,} labels")  # fmt: skip
    left.axvline(truth, color="black", lw=1, label="ECE of all labels")
    left.set(
        xlabel="ECE",
        ylabel="posterior density, highest = 1",
        yticks=[],
        xlim=(0, min(5 * truth, 0.25)),
    )
    left.legend(frameon=False, fontsize=8)
    numbers = [each.labels for each in errors]
    for i, (estimate, colour) in enumerate(zip(ESTIMATES, _COLOURS, strict=True)):
        right.plot(numbers, [each.error[i] / truth for each in errors], "o-", ms=4, color=colour,
                   label=estimate)  # fmt: skip
    right.set(xscale="log", xlabel="labels", ylabel="mean absolute error / ECE", ylim=(0, None))
    right.legend(frameon=False, fontsize=8)
    figure.suptitle(title)
    return figure


def classes_figure(pool: MulticlassScores, title: str, *, draws: int) -> Figure:
    """Draw every predicted class's ECE against its accuracy, with 95 % intervals."""
    accuracy, diagram = _accuracy_and_reliability(pool)
    error = diagram.expected_calibration_error()
    ends = central_interval(diagram.calibration_error_draws(draws, rng(0, "classes", title)))
    figure, axes = _panels(1, width=5.6, height=4.6)
    ax = axes[0, 0]
    ax.errorbar(accuracy.mean, error, xerr=_arms(accuracy.mean, accuracy.interval()),
                yerr=_arms(error, ends), fmt="o", ms=3, lw=0.5, color=BLUE,
                ecolor="#9dbfd6")  # fmt: skip
    marked = {*np.argsort(accuracy.mean)[:3], *np.argsort(-error)[:3], int(accuracy.mean.argmax())}
    for k in marked:
        ax.annotate(pool.classes[k], (accuracy.mean[k], error[k]), xytext=(4, 4),
                    textcoords="offset points", fontsize=8)  # fmt: skip
    ax.set(xlabel="accuracy of the predicted class", ylabel="ECE", title=title, ylim=(0, None))
    return figure


def extremes_figure(pools: Sequence[MulticlassScores], title: str, *, draws: int) -> Figure:
    """Draw the probabilities of being the least accurate and the least calibrated class."""
    figure, axes = _panels(len(pools), 2, height=3.0)
    for column, pool in zip(axes.T, pools, strict=True):
        accuracy, diagram = _accuracy_and_reliability(pool)
        generator = rng(0, "extremes", title, len(pool.labelled))
        drawn = (
            accuracy.draws(draws, generator),
            diagram.calibration_error_draws(draws, generator),
        )
        for ax, values, largest in zip(column, drawn, (False, True), strict=True):
            _most_probable(ax, ranks(values, m=_top(pool), largest=largest), pool.classes)
        column[0].set_title(f"{len(pool.labelled):,} labels")
    for ax, extreme in zip(axes[:, 0], ("least accurate", "least calibrated"), strict=True):
        ax.set_ylabel(extreme)
    for ax in axes[-1]:
        ax.set_xlabel(f"probability: first (dark), first {_top(pools[0])} (light)", fontsize=8)
    figure.suptitle(title)
    return figure


def confusion_figure(pools: Sequence[MulticlassScores], title: str) -> Figure:
    """Draw expected confusion matrices by number of labels, without and with the scores' prior."""
    figure, axes = _panels(len(pools), 2, width=3.0, height=3.0, sharex="all", sharey="all")
    n = len(pools[0].classes)
    for column, pool in zip(axes.T, pools, strict=True):
        for ax, prior in zip(
            column, (uninformative_prior(n, strength=2.0), score_prior(pool)), strict=True
        ):
            mean = confusion_posterior(pool, prior).mean
            image = ax.imshow(np.log10(mean.T), vmin=-4, vmax=0, cmap="viridis", aspect="auto")
        column[0].set_title(f"{len(pool.labelled):,} labels")
        column[1].set_xlabel("predicted class")
    for ax, prior_name in zip(axes[:, 0], ("uninformative", "score-based"), strict=True):
        ax.set_ylabel(f"{prior_name} prior\ntrue class")
    figure.colorbar(image, ax=axes, label="log10 P(true | predicted)", shrink=0.7)
    figure.suptitle(title)
    return figure


def cost_figure(
    pool: MulticlassScores, costs: Mapping[str, Floats], title: str, *, draws: int
) -> Figure:
    """Draw the most costly predicted classes with 95 % intervals, under each cost matrix."""
    figure, axes = _panels(len(costs), width=4.6, height=3.8)
    posterior = confusion_posterior(pool, score_prior(pool))
    for ax, (name, matrix) in zip(axes[0], costs.items(), strict=True):
        mean, _ = expected_cost(posterior, matrix)
        drawn = cost_draws(posterior, matrix, draws, rng(0, "cost", name))
        first = ranks(drawn).first
        costly = np.argsort(-mean)[:_MOST][::-1]
        ends = tuple(end[costly] for end in central_interval(drawn))
        labels = [f"{pool.classes[k]} ({first[k]:.2f})" for k in costly]
        ax.errorbar(mean[costly], labels, xerr=_arms(mean[costly], ends), fmt="o", color=BLUE)
        ax.set(xlabel="expected cost of a row", title=f"{name} costs (P(most costly))")
    figure.suptitle(title)
    return figure


def _accuracy_and_reliability(pool: MulticlassScores) -> tuple[Beta, ReliabilityDiagram]:
    n = len(pool.classes)
    accuracy = accuracy_posterior(pool.correct, pool.prediction, uniform(n))
    diagram = reliability_diagram(pool.confidence, pool.correct, pool.prediction, n_groups=n)
    return accuracy, diagram


def _top(pool: MulticlassScores) -> int:
    return 10 if len(pool.classes) > 20 else 3


def _arms(value: Floats, ends: Sequence[Floats]) -> Floats:
    """Return the lengths of error bars, none below 0 where a skew mean leaves its interval."""
    lower, upper = ends
    return np.maximum(np.stack([value - lower, upper - value]), 0)


def _most_probable(ax: Axes, result: Ranks, classes: tuple[str, ...]) -> None:
    probable = np.lexsort((-result.among, -result.first))[:_MOST][::-1]
    names = [classes[k] for k in probable]
    ax.barh(names, result.among[probable], color="#b9d6ea")
    ax.barh(names, result.first[probable], color=BLUE)
    ax.set(xlim=(0, 1))
    ax.tick_params(axis="y", labelsize=7)


def stripes_figure(pool: MulticlassScores, title: str, *, draws: int) -> Figure:
    """Draw accuracy and ECE of the most and the least accurate classes, with 95 % intervals."""
    accuracy, diagram = _accuracy_and_reliability(pool)
    error = diagram.expected_calibration_error()
    ends = central_interval(diagram.calibration_error_draws(draws, rng(0, "stripes", title)))
    order, few = np.argsort(-accuracy.mean), min(_MOST, len(pool.classes) // 2)
    extreme = np.concatenate([order[:few], order[-few:]])
    figure, axes = _panels(1, 2, width=7.2, height=2.4, sharex=True)
    values = (("accuracy", accuracy.mean, accuracy.interval()), ("ECE", error, ends))
    for ax, (name, value, interval), colour in zip(axes[:, 0], values, _COLOURS, strict=False):
        bars = _arms(value[extreme], [end[extreme] for end in interval])
        ax.errorbar([pool.classes[k] for k in extreme], value[extreme], yerr=bars, fmt="_",
                    color=colour)  # fmt: skip
        ax.axvline(few - 0.5, color=GREY, lw=0.6, ls="--")
        ax.set(ylabel=name)
    axes[1, 0].tick_params(axis="x", labelrotation=45, labelsize=8)
    figure.suptitle(title)
    return figure


def difference_figure(pool: MulticlassScores, title: str, *, draws: int) -> Figure:
    """Draw the posterior of the difference of two groups' accuracies, for two pairs of groups."""
    pairs = group_pairs(pool)
    figure, axes = _panels(len(pairs), width=4.6)
    for ax, (names, accuracy) in zip(axes[0], pairs.items(), strict=True):
        drawn = accuracy.draws(draws, rng(0, "difference", *names))
        height, edge = np.histogram(drawn[:, 0] - drawn[:, 1], bins=80)
        ax.stairs(height / height.max(), edge, fill=True, alpha=0.35, color=BLUE)
        for end in (-MARGIN, MARGIN):
            ax.axvline(end, color=ORANGE, lw=1)
        less, same, greater = regions(accuracy)
        ax.set(xlabel=f"accuracy of {names[0]} less that of {names[1]}", yticks=[],
               title=f"P: under {less:.2f}, within {same:.2f}, over {greater:.2f}")  # fmt: skip
    axes[0, 0].set_ylabel("posterior density, highest = 1")
    figure.suptitle(f"{title}: equivalent within {MARGIN}")
    return figure


def group_pairs(pool: MulticlassScores) -> dict[tuple[str, str], Beta]:
    """Return the posteriors of both accuracies, (2,), for people and trees, and women and men."""
    lines = SUPERCLASSES.strip().splitlines()
    groups = {name: line.split() for line in lines for name in _NAMED if name in line.split()}
    pairs = {
        ("people", "trees"): (groups["woman"], groups["oak_tree"]),
        ("woman", "man"): (["woman"], ["man"]),
    }
    predicted = np.array(pool.classes)[pool.prediction]
    return {
        names: _pair_posterior(pool, [np.isin(predicted, group) for group in pair])
        for names, pair in pairs.items()
    }


def _pair_posterior(pool: MulticlassScores, inside: Sequence[NDArray[np.bool_]]) -> Beta:
    rows = np.flatnonzero(inside[0] | inside[1])
    return accuracy_posterior(pool.correct[rows], inside[1][rows].astype(np.int64), uniform(2))


def regions(accuracy: Beta) -> tuple[float, float, float]:
    """Return P(first less by the margin), P(equivalent), P(first greater), of a pair, (2,)."""
    first, second = (
        Beta(accuracy.successes[i : i + 1], accuracy.failures[i : i + 1]) for i in (0, 1)
    )
    less = float(probability_less(first, second, margin=MARGIN)[0])
    greater = float(probability_less(second, first, margin=MARGIN)[0])
    return less, 1 - less - greater, greater


_Drawn = Iterator[tuple[str, Figure]]


def _each(draw: Callable[[str, MulticlassScores], Figure]) -> _Drawn:
    for name in NAMES:
        yield name, draw(name, released(name))


def _growing(scores: MulticlassScores, name: str) -> list[MulticlassScores]:
    numbers = (labels for labels in (_FEW, _SOME) if labels < len(scores))
    return [shown(scores, name, labels) for labels in (*numbers, len(scores))]


def _draws(effort: Effort) -> int:
    return effort.choose(20_000, 4_000, 100)


def figure_2_1(results: Path, effort: Effort) -> _Drawn:
    """Draw accuracy and ECE of the classes of CIFAR-100 at both ends."""
    yield "", stripes_figure(released("cifar100"), NAMES["cifar100"], draws=_draws(effort))


def figure_2_2(results: Path, effort: Effort) -> _Drawn:
    """Draw reliability diagrams at growing numbers of labels."""
    yield from _each(lambda name, pool: reliability_figure(_growing(pool, name), NAMES[name]))


def figure_2_3(results: Path, effort: Effort) -> _Drawn:
    """Draw posteriors of the ECE, and how far its estimates are off."""
    runs, numbers = effort.choose(200, 40, 2), effort.choose(NUMBERS, NUMBERS, NUMBERS[:1])

    def draw(name: str, scores: MulticlassScores) -> Figure:
        errors = list(ece_errors(scores, name, numbers, runs))
        pools = _growing(scores, name)
        return ece_figure(pools, errors, full_ece(scores), NAMES[name], draws=_draws(effort))

    yield from _each(draw)


def figure_2_4(results: Path, effort: Effort) -> _Drawn:
    """Draw every class's ECE against its accuracy."""
    draws = effort.choose(4000, 1000, 50)
    yield from _each(lambda name, pool: classes_figure(pool, NAMES[name], draws=draws))


def figure_2_5(results: Path, effort: Effort) -> _Drawn:
    """Draw the probabilities of being the least accurate and the least calibrated class."""
    yield from _each(
        lambda name, pool: extremes_figure(_growing(pool, name), NAMES[name], draws=_draws(effort))
    )


def figure_2_6(results: Path, effort: Effort) -> _Drawn:
    """Draw expected confusion matrices at growing numbers of labels."""
    yield from _each(lambda name, pool: confusion_figure(_growing(pool, name), NAMES[name]))


def figure_2_7(results: Path, effort: Effort) -> _Drawn:
    """Draw the most costly predicted classes of CIFAR-100 under both cost matrices."""
    scores = released("cifar100")
    costs = {"human": human_costs(scores.classes), "superclass": superclass_costs(scores.classes)}
    yield "", cost_figure(scores, costs, NAMES["cifar100"], draws=_draws(effort))


def figure_2_8(results: Path, effort: Effort) -> _Drawn:
    """Draw the differences of two pairs of groups of CIFAR-100."""
    yield "", difference_figure(released("cifar100"), NAMES["cifar100"], draws=_draws(effort))
