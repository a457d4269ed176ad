"""Which predicted classes of CIFAR-100 cost most, under two cost matrices: Table 3.8, Figure 3.6.

``python -m papers.active_assessment.most_costly [runs=100]`` prints the percent of the labels from
which on the classes are identified, and writes ``table3_8.csv`` beside this file when it has the
whole 100 runs. The table as printed is in no text at hand, so that nothing is compared.

A row costs 0, 1 or 10 by its true class, and true classes of one cost merge, as a Dirichlet
distribution lets them. CIFAR-100's file has the probability of the predicted class alone: the
scores' prior shares the rest equally among the other classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairbench.cli.command import Results
from fairbench.components.papers import PAPERS, run_main
from fairbench.components.papers.active_assessment.curves import Question, curves
from fairbench.components.papers.active_assessment.least_calibrated import EVERY
from fairbench.components.papers.active_assessment.measures import mean_reciprocal_rank
from fairbench.components.papers.active_assessment.methods import Method
from fairbench.components.papers.active_assessment.pools import OutcomePool, mean_scores, released
from fairbench.components.papers.black_box.costs import human_costs, superclass_costs
from fairbench.components.papers.options import number_of_runs
from fairbench.core.arrays import Floats
from fairbench.core.files import atomic
from fairbench.data.class_scores import MulticlassScores
from fairbench.inference.active.arms import DirichletArms
from fairbench.inference.active.rewards import MostCostly

RUNS = 100
DATASET = "cifar100"
COSTS = {"human": human_costs, "superclass": superclass_costs}
TOP = (1, 10)
STRENGTH = 1.0
METHODS = {
    "UPrior": Method("uniform", "random_arm", STRENGTH),
    "IPrior": Method("scores", "random_arm", STRENGTH),
    "UPrior+TS": Method("uniform", "thompson", STRENGTH),
    "IPrior+TS": Method("scores", "thompson", STRENGTH),
}
KEPT = PAPERS / "active_assessment" / "table3_8.csv"


@dataclass(frozen=True)
class Options(Results):
    """How many runs, and where their curves are kept."""

    runs: int = number_of_runs(RUNS)


def pool(scores: MulticlassScores, kind: str) -> OutcomePool:
    """Return the rows by predicted class; a label shows which of the prices it costs."""
    costs = COSTS[kind](scores.classes)
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
    return OutcomePool(f"{DATASET} {kind} costs", scores.prediction, outcome, priors)


def question(kind: str, m: int) -> Question:
    """Return the question of the m most costly predicted classes."""
    price = np.unique(COSTS[kind](released(DATASET).classes))

    def reward(pool: OutcomePool, arms: DirichletArms) -> MostCostly:
        return MostCostly(np.broadcast_to(price, (len(pool.sizes), len(price))))

    def rank(pool: OutcomePool, arms: DirichletArms) -> Floats:
        costly = np.argsort(-class_costs(pool, price), kind="stable")[:m]
        return mean_reciprocal_rank(-reward(pool, arms).moments(arms)[0], costly)

    return Question(f"most costly {m}", reward, {"mrr": rank}, 10**9, m, EVERY)


def class_costs(pool: OutcomePool, price: Floats) -> Floats:
    """Return the mean cost of the rows of each predicted class, (A,)."""
    return np.bincount(pool.arm, weights=price[pool.outcome]) / pool.sizes


def rows(folder: Path, runs: int) -> Iterator[dict[str, Any]]:
    """Yield the percent of the labels from which on the most costly classes are identified."""
    for kind in COSTS:
        labelled = pool(released(DATASET), kind)
        for m in TOP:
            for name, method in METHODS.items():
                curve = curves(labelled, question(kind, m), method, folder, replications=runs)
                labels, error = curve.reached("mrr")
                percent = 100 / len(labelled.arm)
                yield {
                    "costs": kind,
                    "top": m,
                    "method": name,
                    "percent": round(percent * labels, 1),
                    "standard_error": round(percent * error, 2),
                    "runs": runs,
                }


def main(options: Options) -> None:
    """Print the table; keep it where it has all runs."""
    table = pd.DataFrame(rows(options.results / "report" / "active", options.runs))
    if options.runs == RUNS:
        with atomic(KEPT) as file:
            table.to_csv(file, index=False)
    print("labels until the most costly classes of CIFAR-100 are identified, percent of 10,000")
    shown = table.pivot(index=["costs", "top"], columns="method", values="percent")
    print(shown[list(METHODS)].to_string())


if __name__ == "__main__":
    run_main(main, Options)
