"""Learning curves over replications, computed once and kept in results/report/active/curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from fairbench.components.papers.active_assessment.measures import Measure
from fairbench.components.papers.active_assessment.methods import Method, plays_of, start
from fairbench.components.papers.active_assessment.pools import Pool
from fairbench.core.arrays import Floats
from fairbench.core.files import atomic
from fairbench.core.seeds import rng
from fairbench.inference.active.rewards import Reward
from fairbench.inference.active.strategies import assess
from fairbench.reporting.papers.running import Effort

BATCHES, EVERY = 10, 10
GOAL = 0.99
_FIRST_LABELS = 60
_RESAMPLED = 400


@dataclass(frozen=True)
class Question:
    """What is asked of a pool: a reward for choosing, measures for judging.

    Attributes
    ----------
    reward : from the pool and the arms as they are.
    labels : how many are bought, at most the whole pool.
    plays : how many arms a round labels, for the strategies that can.
    every : after how many labels the measures are taken.
    """

    name: str
    reward: Callable[[Any, Any], Reward]
    measures: Mapping[str, Measure]
    labels: int
    plays: int = 1
    every: int = EVERY

    def within(self, effort: Effort) -> Question:
        """Return the question, which the smallest effort asks of its first labels alone."""
        first = replace(self, name=f"{self.name} first", labels=min(self.labels, _FIRST_LABELS))
        return effort.choose(self, self, first)


@dataclass(frozen=True, eq=False)
class Curves:
    """Means of each measure over batches of replications.

    Attributes
    ----------
    labels : (T,) labels bought.
    batches : measure -> (T, B).
    sd : measure -> (T,) standard deviation over replications.
    """

    labels: Floats
    batches: Mapping[str, Floats]
    sd: Mapping[str, Floats] = field(default_factory=dict)

    def mean(self, measure: str) -> Floats:
        """Return the mean over replications, (T,)."""
        mean: Floats = self.batches[measure].mean(axis=1)
        return mean

    def at(self, measure: str, labels: float) -> tuple[float, float]:
        """Return mean and sd after that many labels, or the next number that was looked at.

        Of curves that end before, the last.
        """
        place = min(int(np.searchsorted(self.labels, labels)), len(self.labels) - 1)
        return float(self.mean(measure)[place]), float(self.sd[measure][place])

    def reached(self, measure: str, *, skipped: int = 0) -> tuple[float, float]:
        """Return the first number of labels at which the mean passes the goal, and its error.

        The goal is 0.99, or 99 % of the highest mean where that is less. The error is that of the
        whole mean's passage, with batches drawn anew: a batch's own passes earlier, and scatters
        more than by the root of their number.

        Parameters
        ----------
        skipped : places of the curve that are not looked at.
        """
        batches = self.batches[measure]
        whole = self._first(batches.mean(axis=1), skipped)
        generator, count = rng(0, "active", "first passage"), batches.shape[1]
        resampled = [
            self._first(batches[:, generator.integers(count, size=count)].mean(axis=1), skipped)
            for _ in range(_RESAMPLED)
        ]
        return whole, float(np.std(resampled))

    def reached_by_batch(self, measure: str, *, skipped: int = 0) -> Floats:
        """Return the first number of labels at which each batch's own mean passes the goal, (B,).

        A mean of few runs is noisier, and its first passage earlier: that of a batch is what a
        study of a tenth of the runs would have printed.
        """
        return np.array([self._first(batch, skipped) for batch in self.batches[measure].T])

    def _first(self, curve: Floats, skipped: int) -> float:
        skipped = min(skipped, len(curve) - 1)
        passed = curve[skipped:] > min(GOAL, GOAL * curve.max())
        return float(self.labels[skipped:][np.argmax(passed)])


def curves(
    pool: Pool, question: Question, method: Method, folder: Path, *, replications: int
) -> Curves:
    """Return the curves of a method, from their file where it is there."""
    parts = (pool.name, question.name, method.file, str(replications))
    path = folder / "curves" / ("-".join(parts).replace(" ", "_") + ".npz")
    if not path.exists():
        computed = _computed(pool, question, method, replications)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic(path) as file:
            sd = {f"sd of {name}": values for name, values in computed.sd.items()}
            arrays: dict[str, Any] = {"labels": computed.labels, **computed.batches, **sd}
            np.savez(file, **arrays)
    with np.load(path, allow_pickle=False) as stored:
        batches = {name: stored[name] for name in question.measures}
        sd = {name: stored[f"sd of {name}"] for name in question.measures}
        return Curves(stored["labels"], batches, sd)


def _computed(pool: Pool, question: Question, method: Method, replications: int) -> Curves:
    """Label all replications at once, and look every so many labels, or every round of more."""
    generator = rng(0, "active", pool.name, question.name, method.name)
    plays = plays_of(method, question.plays)
    options = {"replications": replications, "plays": plays}
    arms, chooser = start(method, pool, question.reward, generator, **options)
    rows = len(pool.arm)
    labels = min(question.labels, rows)
    every = max(question.every // plays, 1)
    batches = min(BATCHES, replications)

    def observe(held: Any) -> tuple[float, list[Floats], list[float]]:
        values = [measure(pool, held) for measure in question.measures.values()]
        bought = rows - held.unlabelled.sum(axis=1).mean()
        means = [v.reshape(batches, -1).mean(axis=1) for v in values]
        return bought, means, [v.std(ddof=1) for v in values]

    rounds = -(-labels // plays)
    if plays > 1 and labels == rows:
        rounds = int(rounds + pool.sizes.max())  # the last rounds find fewer arms with rows
    queues = pool.queues(replications)
    seen = assess(queues, arms, chooser, observe=observe, rounds=rounds, every=every)
    bought, values, sd = (np.array(each) for each in zip(*seen, strict=True))
    names = list(question.measures)
    return Curves(
        bought,
        {name: values[:, i] for i, name in enumerate(names)},
        {name: sd[:, i] for i, name in enumerate(names)},
    )
