"""Pools as a strategy sees them: rows in arms, right or wrong, and the mean score of each arm."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from fairbench.core.seeds import rng
from fairbench.inference.active.strategies import Queues
from fairbench.inference.confusion_matrix import MulticlassScores
from papers.black_box.costs import SUPERCLASSES
from papers.black_box.pools import pool

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
BINS = 10


@dataclass(frozen=True, eq=False)
class ArmPool:
    """(n,) rows: the arm each is in, whether its prediction is right, and its score."""

    name: str
    arm: Codes
    correct: Codes
    score: Floats

    @cached_property
    def sizes(self) -> Codes:
        """Return the rows of each arm, (A,)."""
        return np.bincount(self.arm)

    @cached_property
    def share(self) -> Floats:
        """Return the share of the rows in each arm, (A,)."""
        return self.sizes / len(self.arm)

    @cached_property
    def accuracy(self) -> Floats:
        """Return each arm's accuracy on the whole pool, (A,)."""
        return np.bincount(self.arm, weights=self.correct) / self.sizes

    @cached_property
    def confidence(self) -> Floats:
        """Return each arm's mean score, (A,)."""
        return np.bincount(self.arm, weights=self.score) / self.sizes

    def queues(self, replications: int) -> Queues:
        """Return the orders of labelling, the same for every strategy."""
        generator = rng(0, "active", self.name)
        return Queues.of(self.correct, self.arm, generator, replications=replications)


@lru_cache
def released(dataset: str) -> MulticlassScores:
    """Return the released predictions of a data set."""
    return pool(dataset)


def by_class(dataset: str) -> ArmPool:
    """Return a pool whose arms are the predicted classes."""
    scores = released(dataset)
    return _pool(f"{dataset} by class", scores, scores.prediction)


def by_score(dataset: str) -> ArmPool:
    """Return a pool whose arms are ten bins of the score, of equal size."""
    scores = released(dataset)
    rank = np.argsort(np.argsort(scores.confidence, kind="stable"), kind="stable")
    return _pool(f"{dataset} by score", scores, rank * BINS // len(rank))


def by_superclass(dataset: str) -> ArmPool:
    """Return CIFAR-100's pool by superclass of the predicted class; others by class."""
    scores = released(dataset)
    if dataset != "cifar100":
        return by_class(dataset)
    lines = SUPERCLASSES.strip().splitlines()
    place = {name: i for i, line in enumerate(lines) for name in line.split()}
    code = np.array([place[name] for name in scores.classes])
    return _pool(f"{dataset} by superclass", scores, code[scores.prediction])


def _pool(name: str, scores: MulticlassScores, arm: Codes) -> ArmPool:
    return ArmPool(name, arm, scores.correct.astype(np.int64), scores.confidence)
