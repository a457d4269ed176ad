"""Which predicted classes of CIFAR-100 cost most, under two cost matrices: Table 3.8, Figure 3.6.

A row costs 0, 1 or what an expensive mistake costs by its true class, and true classes of one cost
merge, as a Dirichlet distribution lets them. CIFAR-100's file has the probability of the predicted
class alone: the scores' prior shares the rest equally among the other classes.

Without choosing, the text labels random rows; the released code labels a row of a random class, or
one of each of m random classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fairbench.components.papers.active_assessment.curves import Curves, Question, curves
from fairbench.components.papers.active_assessment.measures import mean_reciprocal_rank
from fairbench.components.papers.active_assessment.methods import CODE, Method
from fairbench.components.papers.active_assessment.pools import (
    Codes,
    OutcomePool,
    mean_scores,
    released,
)
from fairbench.components.papers.black_box.costs import (
    DEAR,
    human_costs,
    person_costs,
    superclass_costs,
)
from fairbench.core.arrays import Floats
from fairbench.data.class_scores import MulticlassScores
from fairbench.inference.active.arms import DirichletArms
from fairbench.inference.active.rewards import MostCostly
from fairbench.reporting.papers.running import Effort

RUNS = 100
DATASET = "cifar100"
COSTS = {"human": human_costs, "superclass": superclass_costs}
# The other reading of "misclassifying a person": another person is a mistake as dear as a thing.
READINGS = {**COSTS, "person": person_costs}
ANY_PERSON = "any mistake about a person"  # a cause
NEEDED = (
    "the scores' prior needs the probabilities of all hundred classes; ours shares them equally"
)
TOP = (1, 10)
DEARS = (1.0, 2.0, 5.0, 10.0)  # what an expensive mistake costs
STRENGTH = 1.0
EVERY = 50
PRIORS = {"uniform": "uniform_prior", "scores": "informative_prior"}
THOMPSON = Method("scores", "thompson", STRENGTH)
TEXT = (*(Method(prior, "random", STRENGTH) for prior in PRIORS), THOMPSON)


def pool(scores: MulticlassScores, kind: str, dear: float = DEAR) -> OutcomePool:
    """Return the rows by predicted class; a label shows which of the prices it costs."""
    costs = READINGS[kind](scores.classes, dear)
    prices, place = np.unique(costs, return_inverse=True)
    return _pool(scores, f"{kind} costs {dear:g}", place.reshape(costs.shape), len(prices))


def every_price(scores: MulticlassScores) -> OutcomePool:
    """Return the rows by predicted class; a label shows what it costs under every matrix.

    The codes are those of `prices`: each is a set of matrices under which a mistake is dear.
    """
    dear = [costs(scores.classes, 2.0) == 2 for costs in READINGS.values()]
    place = 1 + sum(2**i * matrix.astype(np.int64) for i, matrix in enumerate(dear))
    np.fill_diagonal(place, 0)
    return _pool(scores, "every cost", place, 1 + 2 ** len(dear))


def prices(kind: str, dear: float) -> Floats:
    """Return the price of each code of `every_price`, (9,)."""
    sets = np.arange(2 ** len(READINGS))
    is_dear = sets >> list(READINGS).index(kind) & 1
    return np.concatenate([[0.0], np.where(is_dear, dear, 1.0)])


def _pool(scores: MulticlassScores, name: str, place: Codes, codes: int) -> OutcomePool:
    """Return the pool whose labels show the (true, predicted) class's code."""
    classes = len(scores.classes)
    costing = place.T[:, None] == np.arange(codes)[:, None]  # (predicted, code, true)
    priors = {
        prior: (costing * shares[:, None]).sum(axis=-1)
        for prior, shares in (
            ("uniform", np.full((classes, classes), 1 / classes)),
            ("scores", mean_scores(scores)),
        )
    }
    outcome = place[scores.target, scores.prediction]
    return OutcomePool(f"{DATASET} {name}", scores.prediction, outcome, priors)


def question(kind: str, m: int, dear: float = DEAR) -> Question:
    """Return the question of the m most costly predicted classes."""
    price = np.unique(READINGS[kind](released(DATASET).classes, dear))
    return Question(f"most costly {m}", _reward(price), {"mrr": _rank(price, m)}, 10**9, m, EVERY)


def random_question(*tops: int, plays: int = 1) -> Question:
    """Return the questions of all costs at once, whose answers do not decide what is labelled."""
    measures = {
        f"{kind} {dear:g} {m}": _rank(prices(kind, dear), m)
        for kind in READINGS
        for dear in DEARS
        for m in tops
    }
    name = f"every cost {' and '.join(map(str, tops))}"
    return Question(name, _reward(prices("human", DEAR)), measures, 10**9, plays, EVERY)


def _reward(price: Floats) -> Callable[[OutcomePool, DirichletArms], MostCostly]:
    return lambda pool, arms: MostCostly(np.broadcast_to(price, (len(pool.sizes), len(price))))


def _rank(price: Floats, m: int) -> Callable[[OutcomePool, DirichletArms], Floats]:
    def measure(pool: OutcomePool, arms: DirichletArms) -> Floats:
        costly = np.argsort(-class_costs(pool, price), kind="stable")[:m]
        return mean_reciprocal_rank(-(arms.alpha @ price) / arms.alpha.sum(axis=-1), costly)

    return measure


def class_costs(pool: OutcomePool, price: Floats) -> Floats:
    """Return the mean cost of the rows of each predicted class, (A,)."""
    return np.bincount(pool.arm, weights=price[pool.outcome]) / pool.sizes


def numbers(settings: frozenset[str], folder: Path, effort: Effort) -> Iterator[dict[str, Any]]:
    """Yield the labels from which on the most costly classes are identified.

    Parameters
    ----------
    settings : as printed, such as ``cost_type=human; relative_cost=10; top_m=1``.
    """
    runs, scores = effort.choose(RUNS, 2, 2), released(DATASET)
    rows = every_price(scores)

    def number(curve: Curves, measure: str, method: str, setting: str, cause: str) -> Any:
        labels, error = curve.reached(measure)
        # Where every mistake costs the same, the predicted class's probability is the whole prior.
        unknown = method != PRIORS["uniform"] and "relative_cost=1;" not in setting
        reason = NEEDED if unknown else ""
        of = {"method": method, "setting": setting, "cause": cause, "reason": reason}
        return {**of, "mean": labels, "sd": error * np.sqrt(runs), "repeats": runs}

    quick = [setting for setting in settings if "relative_cost=10;" in setting]
    for setting in sorted(effort.choose(settings, quick, settings)):
        printed, cost, top = (part.partition("=")[2] for part in setting.split("; "))
        dear, m = float(cost), int(top)
        for kind, cause in _readings(printed, dear):
            asked = question(kind, m, dear).within(effort)
            curve = curves(pool(scores, kind, dear), asked, THOMPSON, folder, replications=runs)
            yield number(curve, "mrr", f"{PRIORS['scores']}_thompson", setting, cause)
            for prior, name in PRIORS.items():
                for strategy, coded, whole in (
                    ("random", "", random_question(*TOP)),
                    ("random_arm", CODE, random_question(m, plays=m)),
                ):
                    method = Method(prior, strategy, STRENGTH)
                    curve = curves(rows, whole.within(effort), method, folder, replications=runs)
                    if not (cause and coded):  # one setting is changed at a time
                        measure = f"{kind} {dear:g} {m}"
                        yield number(curve, measure, name, setting, cause or coded)


def _readings(printed: str, dear: float) -> Iterator[tuple[str, str]]:
    """Yield the matrices that a printed type may mean, the text's first."""
    yield printed, ""
    if printed == "human" and dear > 1:
        yield "person", ANY_PERSON
