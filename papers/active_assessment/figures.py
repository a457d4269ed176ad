"""Figures 3.1 to 3.12 of Ji's thesis: learning curves, one line a strategy or a prior.

``fairbench paper active_assessment figures=true run=true``. Curves are kept in
results/report/active/curves, those of the tables among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import stats

from fairbench.components.papers.active_assessment import least_calibrated, most_costly
from fairbench.components.papers.active_assessment.curves import GOAL, Curves, Question, curves
from fairbench.components.papers.active_assessment.methods import OTHERS, PUBLISHED, Method
from fairbench.components.papers.active_assessment.pairs import labels_to_compare
from fairbench.components.papers.active_assessment.pools import (
    Pool,
    by_class,
    by_score,
    by_superclass,
    released,
)
from fairbench.components.papers.active_assessment.tables import (
    DATASETS,
    TOP,
    accuracy_question,
    ece_question,
    worst_question,
)
from fairbench.core.seeds import rng
from fairbench.inference.active.arms import BetaArms
from fairbench.inference.active.rewards import Highest
from fairbench.inference.active.strategies import Queues, assess, thompson
from fairbench.inference.beta import uniform
from fairbench.reporting.charts import COLOURS
from fairbench.reporting.papers.running import Effort

METHODS = (*PUBLISHED, *OTHERS)
_COMPARED = tuple(method for method in METHODS if method.prior != "none")
_SEVERAL = tuple(
    Method("scores", strategy)
    for strategy in ("thompson", "epsilon_greedy", "bayesian_ucb", "bayesian_ucb_quantile")
)
_RATES = (0.8, 0.2)
_SEEN = (0, 10, 100)
_DRAWN = 500  # labels, of the demonstration's arms
_QUICK_LABELS = 1500
_RANK = "mean reciprocal rank of the {} class{}"
Drawn = Iterator[tuple[str, Figure]]


def _folder(results: Path) -> Path:
    return results / "report" / "active"


def _lines(
    pool: Pool,
    question: Question,
    methods: Sequence[Method],
    results: Path,
    effort: Effort,
) -> dict[Method, Curves]:
    asked = _asked(question, effort)
    return {
        method: curves(
            pool, asked, method, _folder(results), replications=_replications(method, effort)
        )
        for method in methods
    }


def _asked(question: Question, effort: Effort) -> Question:
    """Return the question, of which a quick look sees the first labels alone."""
    few = min(question.labels, _QUICK_LABELS)
    quick = replace(question, name=f"{question.name} quick", labels=few)
    return effort.choose(question, quick, question.within(effort))


def _replications(method: Method, effort: Effort) -> int:
    """Return how many there are: a table's own where a table has the curve, and else fewer."""
    if method.strategy == "bayesian_ucb_quantile":
        return effort.choose(10, 2, 2)
    return effort.choose(1000, 50, 2) if method in PUBLISHED else effort.choose(200, 20, 2)


def figure_3_1(results: Path, effort: Effort) -> Drawn:
    """Draw what Thompson sampling knows of two arms after 0, 10 and 100 labels."""
    generator = rng(0, "active", "demonstration")
    arm = np.repeat(np.arange(len(_RATES)), _DRAWN)
    success = generator.random(len(arm)) < np.array(_RATES)[arm]
    queues = Queues.of(success, arm, generator, replications=1)
    arms = BetaArms.of(uniform(len(_RATES)), queues.sizes)
    posteriors = assess(
        queues,
        arms,
        lambda held: thompson(held, Highest(), generator),
        observe=lambda held: held.take(np.zeros(1, np.int64)).posterior,
        rounds=max(_SEEN),
    )
    figure, axes = _panels([f"{labels} labels" for labels in _SEEN])
    share = np.linspace(0, 1, 401)[1:-1]
    for ax, labels in zip(axes, _SEEN, strict=True):
        won, lost = posteriors[labels].successes[0], posteriors[labels].failures[0]
        density = stats.beta.pdf(share[:, None], won, lost)
        for i, colour in zip(range(len(_RATES)), COLOURS, strict=False):
            name = f"rate {_RATES[i]}, {won[i] + lost[i] - 2:.0f} labels"
            ax.plot(share, density[:, i], color=colour, label=name)
        ax.set_ylim(0, 1.3 * density.max())
        ax.set_xlabel("success rate")
        ax.legend(frameon=False, fontsize=8)
    axes[0].set_ylabel("posterior density")
    yield "", figure


def figure_3_2(results: Path, effort: Effort) -> Drawn:
    """Draw Thompson and top-two Thompson sampling side by side: the least accurate class."""
    methods = (Method("scores", "thompson"), Method("scores", "top_two"))
    for dataset, title in DATASETS.items():
        lines = _lines(by_class(dataset), worst_question(1), methods, results, effort)
        yield dataset, _ranks([(title, lines)], _RANK.format("least accurate", ""))


def figure_3_3(results: Path, effort: Effort) -> Drawn:
    """Draw strategies that label several classes at once: the m least accurate classes."""
    for dataset, title in DATASETS.items():
        m = TOP[dataset]
        lines = _lines(by_class(dataset), worst_question(m), _SEVERAL, results, effort)
        yield dataset, _ranks([(title, lines)], _RANK.format(f"{m} least accurate", "es"))


def figure_3_4(results: Path, effort: Effort) -> Drawn:
    """Draw the identification of the least accurate class and of the m least accurate ones."""
    for dataset, title in DATASETS.items():
        panels = [
            (
                f"{title}, {m} least accurate",
                _lines(by_class(dataset), worst_question(m), tuple(PUBLISHED), results, effort),
            )
            for m in (1, TOP[dataset])
        ]
        yield dataset, _ranks(panels, "mean reciprocal rank")


def figure_3_5(results: Path, effort: Effort) -> Drawn:
    """Draw the identification of the least calibrated class and of the m least calibrated."""
    replications = effort.choose(100, 10, 2)
    for dataset, title in DATASETS.items():
        panels = []
        for m in (1, TOP[dataset]):
            asked = _asked(least_calibrated.question(m), effort)
            lines = {
                method: curves(
                    least_calibrated.pool(dataset),
                    asked,
                    method,
                    _folder(results),
                    replications=replications,
                )
                for method in least_calibrated.DEFINED
            }
            panels.append((f"{title}, {m} least calibrated", lines))
        yield dataset, _ranks(panels, "mean reciprocal rank")


def figure_3_6(results: Path, effort: Effort) -> Drawn:
    """Draw the identification of the most costly classes under both cost matrices."""
    for kind in most_costly.COSTS:
        panels = [
            (f"{kind} costs, {m} most costly", _costs(kind, m, _COST_METHODS, results, effort))
            for m in most_costly.TOP
        ]
        yield kind, _ranks(panels, "mean reciprocal rank")


_COST_METHODS = tuple(most_costly.METHODS.values())


def _costs(
    kind: str, m: int, methods: Sequence[Method], results: Path, effort: Effort
) -> dict[Method, Curves]:
    labelled = most_costly.pool(released(most_costly.DATASET), kind)
    asked = _asked(most_costly.question(kind, m), effort)
    replications = effort.choose(most_costly.RUNS, 10, 2)
    return {
        method: curves(labelled, asked, method, _folder(results), replications=replications)
        for method in methods
    }


def figure_3_7(results: Path, effort: Effort) -> Drawn:
    """Draw the error of the classes' accuracies."""
    for dataset, title in DATASETS.items():
        pool = by_class(dataset)
        lines = _lines(pool, accuracy_question(pool), METHODS, results, effort)
        yield dataset, _errors(lines, "rmse", "RMSE of class accuracies, points", title)


def figure_3_8(results: Path, effort: Effort) -> Drawn:
    """Draw the error of the ECE."""
    for dataset, title in DATASETS.items():
        lines = _lines(by_score(dataset), ece_question(), METHODS, results, effort)
        yield dataset, _errors(lines, "ece", "error of the ECE, percent of it", title)


def figure_3_9(results: Path, effort: Effort) -> Drawn:
    """Draw the share of pairs of groups whose comparison is answered."""
    replications = effort.choose(1000, 50, 2)
    for dataset, title in DATASETS.items():
        figure, (ax,) = _panels([title])
        for method, colour in zip(_COMPARED, COLOURS, strict=False):
            needed = labels_to_compare(
                by_superclass(dataset), method, _folder(results), replications=replications
            )
            _share_done(ax, needed, method.name, colour)
        ax.set(
            xlabel="labels",
            ylabel="share of pairs whose answer is sure",
            xscale="log",
            ylim=(0, 1),
        )
        ax.legend(frameon=False, fontsize=8)
        yield dataset, figure


def figure_3_10(results: Path, effort: Effort) -> Drawn:
    """Draw the identification of the least accurate class under priors of several strengths."""
    methods = tuple(Method("scores", "thompson", strength) for strength in (2.0, 10.0, 100.0))
    for dataset, title in DATASETS.items():
        lines = _lines(by_class(dataset), worst_question(1), methods, results, effort)
        yield dataset, _ranks([(title, lines)], _RANK.format("least accurate", ""))


def figure_3_11(results: Path, effort: Effort) -> Drawn:
    """Draw the identification of the least calibrated classes under priors of several strengths."""
    methods = tuple(Method("scores", "thompson", strength) for strength in (1.0, 2.0, 5.0, 10.0))
    replications = effort.choose(100, 10, 2)
    for dataset, title in DATASETS.items():
        m = TOP[dataset]
        asked = _asked(least_calibrated.question(m), effort)
        pool = least_calibrated.pool(dataset)
        lines = {
            method: curves(pool, asked, method, _folder(results), replications=replications)
            for method in methods
        }
        yield dataset, _ranks([(title, lines)], _RANK.format(f"{m} least calibrated", "es"))


def figure_3_12(results: Path, effort: Effort) -> Drawn:
    """Draw the identification of the most costly classes under priors of several strengths."""
    strengths = (0.1, 1.0, 2.0, 5.0, 10.0, 100.0)
    methods = tuple(Method("scores", "thompson", strength) for strength in strengths)
    m = max(most_costly.TOP)
    panels = [
        (f"{kind} costs", _costs(kind, m, methods, results, effort)) for kind in most_costly.COSTS
    ]
    yield "", _ranks(panels, _RANK.format(f"{m} most costly", "es"))


def _errors(lines: Mapping[Method, Curves], measure: str, label: str, title: str) -> Figure:
    figure, (ax,) = _panels([title])
    _plot(ax, lines, measure)
    ax.set(xlabel="labels", ylabel=label, xscale="log", yscale="log")
    ax.legend(frameon=False, fontsize=8)
    return figure


def _ranks(panels: Sequence[tuple[str, Mapping[Method, Curves]]], label: str) -> Figure:
    figure, axes = _panels([title for title, _ in panels])
    for ax, (_, lines) in zip(axes, panels, strict=True):
        _plot(ax, lines, "mrr")
        ax.axhline(GOAL, color="black", lw=0.6)
        ax.set(xlabel="labels", xscale="log", ylim=(0, 1.02))
        ax.legend(frameon=False, fontsize=8)
    axes[0].set_ylabel(label)
    return figure


def _plot(ax: Axes, lines: Mapping[Method, Curves], measure: str) -> None:
    strengths = len({method.strategy for method in lines}) == 1
    for (method, curve), colour in zip(lines.items(), COLOURS, strict=False):
        mean, bought = curve.mean(measure), curve.labels > 0
        style = "--" if method.strategy.startswith("random") else "-"
        name = f"prior worth {method.strength:g} labels" if strengths else method.name
        ax.plot(curve.labels[bought], mean[bought], style, color=colour, lw=1.4, label=name)


def _share_done(ax: Axes, needed: NDArray[np.int64], name: str, colour: str) -> None:
    ordered = np.sort(needed)
    ax.step(ordered, np.arange(1, len(ordered) + 1) / len(ordered), color=colour, label=name)


def _panels(titles: Sequence[str]) -> tuple[Figure, Sequence[Axes]]:
    width = 6.4 if len(titles) == 1 else 4.6 * len(titles)
    figure = Figure(figsize=(width, 4.2), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    axes: Sequence[Axes] = figure.subplots(1, len(titles), squeeze=False)[0]
    for ax, title in zip(axes, titles, strict=True):
        ax.set_title(title)
        ax.spines[["top", "right"]].set_visible(False)
    return figure, axes
