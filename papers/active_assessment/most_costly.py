"""Which predicted classes of CIFAR-100 cost most, under two cost matrices: Table 3.8, Figure 3.6.

A row costs 0, 1 or what an expensive mistake costs by its true class, and true classes of one cost
merge, as a Dirichlet distribution lets them. CIFAR-100's file has the probability of the predicted
class alone: the scores' prior shares the rest equally among the other classes.

Without choosing, the text labels random rows; the released code labels a row of a random class, or
one of each of m random classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fairbench.components.papers.active_assessment.curves import Question, curves
from fairbench.components.papers.active_assessment.measures import mean_reciprocal_rank
from fairbench.components.papers.active_assessment.methods import CODE, Method
from fairbench.components.papers.active_assessment.pools import OutcomePool, mean_scores, released
from fairbench.components.papers.black_box.costs import DEAR, human_costs, superclass_costs
from fairbench.core.arrays import Floats
from fairbench.data.class_scores import MulticlassScores
from fairbench.inference.active.arms import DirichletArms
from fairbench.inference.active.rewards import MostCostly
from fairbench.reporting.papers.running import Effort

RUNS = 100
DATASET = "cifar100"
COSTS = {"human": human_costs, "superclass": superclass_costs}
TOP = (1, 10)
STRENGTH = 1.0
EVERY = 50
TEXT = {
    Method("uniform", "random", STRENGTH): "uniform_prior",
    Method("scores", "random", STRENGTH): "informative_prior",
    Method("scores", "thompson", STRENGTH): "informative_prior_thompson",
}
CODED = {
    Method("uniform", "random_arm", STRENGTH): "uniform_prior",
    Method("scores", "random_arm", STRENGTH): "informative_prior",
}


def pool(scores: MulticlassScores, kind: str, dear: float = DEAR) -> OutcomePool:
    """Return the rows by predicted class; a label shows which of the prices it costs."""
    costs = COSTS[kind](scores.classes, dear)
    prices = np.unique(costs)
    place = np.searchsorted(prices, costs)  # (true class, predicted class)
    classes = len(scores.classes)
    costing = place.T[:, None] == np.arange(len(prices))[:, None]  # (predicted, price, true)
    priors = {
        name: (costing * shares[:, None]).sum(axis=-1)
        for name, shares in (
            ("uniform", np.full((classes, classes), 1 / classes)),
            ("scores", mean_scores(scores)),
        )
    }
    outcome = place[scores.target, scores.prediction]
    return OutcomePool(f"{DATASET} {kind} costs {dear:g}", scores.prediction, outcome, priors)


def question(kind: str, m: int, dear: float = DEAR) -> Question:
    """Return the question of the m most costly predicted classes."""
    price = np.unique(COSTS[kind](released(DATASET).classes, dear))

    def reward(pool: OutcomePool, arms: DirichletArms) -> MostCostly:
        return MostCostly(np.broadcast_to(price, (len(pool.sizes), len(price))))

    def rank(pool: OutcomePool, arms: DirichletArms) -> Floats:
        costly = np.argsort(-class_costs(pool, price), kind="stable")[:m]
        return mean_reciprocal_rank(-reward(pool, arms).moments(arms)[0], costly)

    return Question(f"most costly {m}", reward, {"mrr": rank}, 10**9, m, EVERY)


def class_costs(pool: OutcomePool, price: Floats) -> Floats:
    """Return the mean cost of the rows of each predicted class, (A,)."""
    return np.bincount(pool.arm, weights=price[pool.outcome]) / pool.sizes


def numbers(settings: frozenset[str], folder: Path, effort: Effort) -> Iterator[dict[str, Any]]:
    """Yield the labels from which on the most costly classes are identified.

    Parameters
    ----------
    settings : as printed, such as ``cost_type=human; relative_cost=10; top_m=1``.
    """
    runs = effort.choose(RUNS, 10, 2)
    for setting in sorted(settings):
        kind, dear, top = (part.partition("=")[2] for part in setting.split("; "))
        labelled = pool(released(DATASET), kind, float(dear))
        asked = question(kind, int(top), float(dear)).within(effort)
        for methods, cause in ((TEXT, ""), (CODED, CODE)):
            for method, printed in methods.items():
                curve = curves(labelled, asked, method, folder, replications=runs)
                labels, error = curve.reached("mrr")
                yield {
                    "method": printed,
                    "setting": setting,
                    "cause": cause,
                    "mean": labels,
                    "sd": error * np.sqrt(runs),
                    "repeats": runs,
                }
