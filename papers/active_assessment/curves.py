"""Learning curves over replications, computed once and kept in results/report/active/curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.core.files import atomic
from fairbench.core.seeds import rng
from fairbench.inference.active.rewards import Reward
from fairbench.inference.active.strategies import assess
from papers.active_assessment.measures import Measure
from papers.active_assessment.methods import Method, start
from papers.active_assessment.pools import ArmPool

Floats = NDArray[np.float64]
BATCHES, EVERY = 10, 10


@dataclass(frozen=True)
class Question:
    """What is asked of a pool: a reward for choosing, measures for judging.

    Attributes
    ----------
    labels : how many are bought, at most the whole pool.
    plays : how many arms a round labels, for Thompson sampling alone.
    """

    name: str
    reward: Callable[[ArmPool], Reward]
    measures: Mapping[str, Measure]
    labels: int
    plays: int = 1


@dataclass(frozen=True, eq=False)
class Curves:
    """Means of each measure over batches of replications.

    Attributes
    ----------
    labels : (T,) labels bought.
    batches : measure -> (T, B).
    """

    labels: Floats
    batches: Mapping[str, Floats]

    def mean(self, measure: str) -> Floats:
        """Return the mean over replications, (T,)."""
        mean: Floats = self.batches[measure].mean(axis=1)
        return mean

    def at(self, measure: str, labels: float) -> tuple[float, float]:
        """Return mean and standard error after that many labels, or the next that was looked at."""
        values = self.batches[measure][int(np.searchsorted(self.labels, labels))]
        return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def curves(
    pool: ArmPool, question: Question, method: Method, folder: Path, *, replications: int
) -> Curves:
    """Return the curves of a method, from their file where it is there."""
    parts = (pool.name, question.name, method.prior, method.strategy, str(replications))
    path = folder / "curves" / ("-".join(parts).replace(" ", "_") + ".npz")
    if not path.exists():
        found = _computed(pool, question, method, replications)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic(path) as temporary, temporary.open("wb") as file:
            arrays: dict[str, Any] = {"labels": found.labels, **found.batches}
            np.savez(file, **arrays)
    with np.load(path, allow_pickle=False) as stored:
        return Curves(stored["labels"], {name: stored[name] for name in question.measures})


def _computed(pool: ArmPool, question: Question, method: Method, replications: int) -> Curves:
    """Label all replications at once, and look every `EVERY` labels, or every round of more."""
    generator = rng(0, "active", pool.name, question.name, method.name)
    plays = question.plays if method.strategy == "thompson" else 1
    reward = question.reward(pool)
    options = {"replications": replications, "plays": plays}
    arms, chooser = start(method, pool, reward, generator, **options)
    rows = len(pool.arm)
    labels = min(question.labels, rows)
    every = max(EVERY // plays, 1)

    def observe(held: Any) -> tuple[float, list[Floats]]:
        values = [measure(pool, held.posterior) for measure in question.measures.values()]
        bought = rows - held.unlabelled.sum(axis=1).mean()
        return bought, [v.reshape(BATCHES, -1).mean(axis=1) for v in values]

    rounds = -(-labels // plays)
    if plays > 1 and labels == rows:
        rounds = int(rounds + pool.sizes.max())  # the last rounds find fewer arms with rows
    queues = pool.queues(replications)
    seen = assess(queues, arms, chooser, observe=observe, rounds=rounds, every=every)
    bought = np.array([labels for labels, _ in seen])
    values = np.array([each for _, each in seen])
    names = list(question.measures)
    return Curves(bought, {name: values[:, i] for i, name in enumerate(names)})
