"""Figures 3.2 to 3.12 of Ji's thesis: learning curves, one line a strategy or a prior.

``fairbench paper active_assessment figures=true run=true``. Curves are kept in
results/report/active/curves, those of the tables among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from fairbench.components.papers.active_assessment import assessment, tables
from fairbench.components.papers.black_box import estimation
from fairbench.components.papers.engine.matching import Drawn, Effort
from fairbench.core.arrays import Floats, rng
from fairbench.inference.posterior import uniform
from fairbench.reporting.charts import BLUE, COLOURS, GREY
from fairbench_label.active import BetaArms, Highest, thompson

_STRATEGIES = tuple(
    assessment.Method("uniform", strategy)
    for strategy in ("thompson", "epsilon_greedy", "bayesian_ucb_quantile")
)
_TOP_TWO = (assessment.Method("uniform", "thompson"), assessment.Method("uniform", "top_two"))
_PRIORS = (assessment.Method("scores", "thompson"), assessment.Method("uniform", "thompson"))
_RATES = (0.8, 0.2)
_SEEN = (0, 10, 100)
_DRAWN = 500  # labels, of the demonstration's arms
_QUICK_LABELS = 1500
_FREQUENTIST = 1e-6  # labels that the prior of a frequentist estimate is worth


def _demonstrated(replications: int) -> list[tuple[Floats, Floats]]:
    """Return successes and failures of two arms, (R, 2), before and after each of 100 labels."""
    generator = rng(0, "active", "demonstration")
    arm = np.repeat(np.arange(len(_RATES)), _DRAWN)
    success = generator.random(len(arm)) < np.array(_RATES)[arm]
    queues = assessment.Queues.of(success, arm, generator, replications=replications)
    arms = BetaArms.of(uniform(len(_RATES)), queues.sizes, replications=replications)
    return assessment.assess(
        queues,
        arms,
        lambda held: thompson(held, Highest(), generator),
        observe=lambda held: (held.posterior.successes.copy(), held.posterior.failures.copy()),
        rounds=max(_SEEN),
    )


def figure_3_2(results: Path, effort: Effort) -> Drawn:
    """Draw what Thompson sampling knows of two arms after 0, 10 and 100 labels."""
    posteriors = _demonstrated(1)
    figure, axes = _panels([f"{labels} labels" for labels in _SEEN])
    share = np.linspace(0, 1, 401)[1:-1]
    for ax, labels in zip(axes, _SEEN, strict=True):
        won, lost = (counts[0] for counts in posteriors[labels])
        density = stats.beta.pdf(share[:, None], won, lost)
        for i, colour in zip(range(len(_RATES)), COLOURS, strict=False):
            name = f"rate {_RATES[i]}, {won[i] + lost[i] - 2:.0f} labels"
            ax.plot(share, density[:, i], color=colour, label=name)
        ax.set_ylim(0, 1.3 * density.max())
        ax.set_xlabel("success rate")
        ax.legend(frameon=False, fontsize=8)
    axes[0].set_ylabel("posterior density")
    yield "", figure


def chosen_share(runs: int) -> tuple[Floats, Floats]:
    """Return how often the better arm was chosen at each label, (100,), and its standard error."""
    labels = np.array([(won + lost)[:, 0] - 2 for won, lost in _demonstrated(runs)])
    chosen = np.diff(labels, axis=0)
    return chosen.mean(axis=1), chosen.std(axis=1) / np.sqrt(runs)


def figure_3_3(results: Path, effort: Effort) -> Drawn:
    """Draw how often Thompson sampling chooses the better of two arms."""
    share, error = chosen_share(effort.choose(10_000, 1000, 20))
    figure, (ax,) = _panels([f"success rates {_RATES[0]} and {_RATES[1]}"])
    labels = np.arange(1, len(share) + 1)
    ax.plot(labels, 100 * share, color=BLUE)
    ends = (100 * (share - 1.96 * error), 100 * (share + 1.96 * error))
    ax.fill_between(labels, *ends, color=BLUE, alpha=0.2, lw=0)
    ax.axhline(50, color=GREY, lw=0.6)
    ax.set(xlabel="labels", ylabel="percent that choose the better arm", ylim=(0, 100))
    yield "", figure


def figure_3_5(results: Path, effort: Effort) -> Drawn:
    """Draw both cost matrices of CIFAR-100, classes in the order of their superclasses."""
    classes = estimation.released_pool(tables.COST_DATASET).classes
    order = np.argsort(estimation.superclasses(classes), kind="stable")
    figure, axes = _panels(list(tables.COSTS))
    for ax, costs in zip(axes, tables.COSTS.values(), strict=True):
        image = ax.imshow(costs(classes)[np.ix_(order, order)], cmap="viridis")
        ax.set(xlabel="predicted class", ylabel="true class")
    figure.colorbar(image, ax=list(axes), label="cost")
    yield "", figure


def figure_3_6(results: Path, effort: Effort) -> Drawn:
    """Draw the identification of the most costly classes under both cost matrices."""
    runs, scores = (
        effort.choose(tables.COST_RUNS, 2, 2),
        estimation.released_pool(tables.COST_DATASET),
    )
    for kind in tables.COSTS:
        asked = {
            f"{kind} costs, {m} most costly": tables.cost_question(kind, m) for m in tables.COST_TOP
        }
        pool = tables.cost_pool(scores, kind)
        yield kind, _ranks(pool, asked, tables.COST_METHODS, results, effort, runs)


def _least(
    methods: Sequence[assessment.Method],
    results: Path,
    effort: Effort,
    *,
    what: str = "accurate",
    tops: int = 2,
) -> Drawn:
    """Draw the identification of the least accurate or calibrated class, and of the m least."""
    is_accuracy = what == "accurate"
    question = tables.worst_question if is_accuracy else tables.calibrated_question
    for dataset, title in estimation.NAMES.items():
        pool = assessment.by_class(dataset) if is_accuracy else tables.calibrated_pool(dataset)
        numbers = (1, estimation.TOP[dataset])[:tops]
        asked = {f"{title}, {m} least {what}": question(m) for m in numbers}
        runs = 0 if is_accuracy else effort.choose(100, 2, 2)
        yield dataset, _ranks(pool, asked, methods, results, effort, runs)


def _strengths(*labels: float) -> Iterator[assessment.Method]:
    return (assessment.Method("scores", "thompson", strength) for strength in labels)


# Thompson sampling beside epsilon-greedy and Bayesian UCB; beside top-two Thompson sampling; with
# the scores' prior and with the uniform one; and with priors of several strengths.
figure_3_7 = partial(_least, _STRATEGIES)
figure_3_8 = partial(_least, _TOP_TWO, tops=1)
figure_3_9 = partial(_least, _PRIORS)
figure_3_11 = partial(_least, (*_strengths(2.0, 10.0, 100.0), assessment.NO_PRIOR))
figure_3_12 = partial(
    _least,
    (*_strengths(2.0, 5.0, 10.0), assessment.Method("scores", "random", _FREQUENTIST)),
    what="calibrated",
)


def figure_3_10(results: Path, effort: Effort) -> Drawn:
    """Draw reliability diagrams with priors worth 10 and 100 labels a bin."""
    for strength in (10.0, 100.0):
        for dataset, title in estimation.NAMES.items():
            pools = estimation.growing(estimation.released_pool(dataset), dataset)
            name = f"{title}, a prior worth {strength:g} labels"
            yield (
                f"{dataset}_{strength:g}",
                estimation.reliability_figure(pools, name, strength=strength),
            )


def _ranks(
    pool: assessment.Pool,
    asked: Mapping[str, assessment.Question],
    methods: Sequence[assessment.Method],
    results: Path,
    effort: Effort,
    replications: int = 0,
) -> Figure:
    """Draw the curves of some methods, a panel a question; a quick look sees first labels alone.

    By default they are of as many replications as a table's own, and fewer where none has them.
    """
    figure, axes = _panels(list(asked))
    for ax, whole in zip(axes, asked.values(), strict=True):
        question = effort.choose(whole, whole.first(_QUICK_LABELS), whole.first())
        for method, colour in zip(methods, COLOURS, strict=False):
            of_table = method in assessment.TEXT or method == assessment.NO_PRIOR
            runs = replications or effort.choose(1000 if of_table else 200, 10, 2)
            folder = results / "report" / "active"
            curve = assessment.curves(pool, question, method, folder, replications=runs)
            mean, bought = curve.mean("mrr"), curve.labels > 0
            style = "--" if method.strategy.startswith("random") else "-"
            named: dict[str, Any] = {"color": colour, "label": method.name}
            ax.plot(curve.labels[bought], mean[bought], style, lw=1.4, **named)
        ax.axhline(assessment.GOAL, color="black", lw=0.6)
        ax.set(xlabel="labels", xscale="log", ylim=(0, 1.02))
        ax.legend(frameon=False, fontsize=8)
    axes[0].set_ylabel("mean reciprocal rank")
    return figure


def _panels(titles: Sequence[str]) -> tuple[Figure, Sequence[Axes]]:
    width = 6.4 if len(titles) == 1 else 4.6 * len(titles)
    figure = Figure(figsize=(width, 4.2), dpi=110, layout="constrained")
    axes: Sequence[Axes] = figure.subplots(1, len(titles), squeeze=False)[0]
    for ax, title in zip(axes, titles, strict=True):
        ax.set_title(title)
        ax.spines[["top", "right"]].set_visible(False)
    return figure, axes
