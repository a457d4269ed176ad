"""Pools as a strategy sees them: rows in arms, what a label shows of each, and the arms' priors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.components.papers.black_box.costs import superclasses
from fairbench.components.papers.black_box.pools import pool
from fairbench.core.arrays import Floats
from fairbench.core.seeds import rng
from fairbench.data.class_scores import MulticlassScores
from fairbench.inference.active.arms import BetaArms, BinnedArms, DirichletArms
from fairbench.inference.active.strategies import Queues
from fairbench.inference.beta import Beta, centred, uniform
from fairbench.inference.reliability import ReliabilityDiagram, bin_of, reliability_diagram

Codes = NDArray[np.int64]
BINS = 10
_NO_PRIOR = 1e-6


@dataclass(frozen=True, eq=False)
class Pool(ABC):
    """(n,) rows: the arm each is in, and the code of what its label shows."""

    name: str
    arm: Codes
    outcome: Codes

    @cached_property
    def sizes(self) -> Codes:
        """Return the rows of each arm, (A,)."""
        return np.bincount(self.arm)

    @cached_property
    def share(self) -> Floats:
        """Return the share of the rows in each arm, (A,)."""
        return self.sizes / len(self.arm)

    def queues(self, replications: int) -> Queues:
        """Return the orders of labelling, the same for every strategy."""
        generator = rng(0, "active", self.name)
        return Queues.of(self.outcome, self.arm, generator, replications=replications)

    @abstractmethod
    def arms(self, prior: str, strength: float, replications: int) -> Any:
        """Return the arms before any label, under a prior worth `strength` labels."""


@dataclass(frozen=True, eq=False)
class ArmPool(Pool):
    """Rows whose label shows whether the prediction is right; (n,) scores."""

    score: Floats

    @cached_property
    def accuracy(self) -> Floats:
        """Return each arm's accuracy on the whole pool, (A,)."""
        return np.bincount(self.arm, weights=self.outcome) / self.sizes

    @cached_property
    def confidence(self) -> Floats:
        """Return each arm's mean score, (A,)."""
        return np.bincount(self.arm, weights=self.score) / self.sizes

    def prior(self, prior: str, strength: float) -> Beta:
        """Return the prior of each arm: "none", "uniform" or "scores".

        "none" has the weight of a millionth label, which is what the paper's code gives its
        "uniform prior" unless it compares two groups.
        """
        if prior == "scores":
            return centred(self.confidence, strength)
        return uniform(len(self.sizes), _NO_PRIOR if prior == "none" else strength)

    def arms(self, prior: str, strength: float, replications: int) -> BetaArms:
        """Return the arms before any label."""
        return BetaArms.of(self.prior(prior, strength), self.sizes, replications=replications)


@dataclass(frozen=True, eq=False)
class BinnedPool(Pool):
    """Rows in ten bins of the score, whose label shows whether the prediction is right."""

    score: Floats
    correct: Floats

    def diagram(self, strength: float, *, midpoints: bool, labelled: bool) -> ReliabilityDiagram:
        """Return every arm's reliability diagram, of all labels or of none."""
        correct = self.correct if labelled else np.full(len(self.arm), np.nan)
        return reliability_diagram(
            self.score,
            correct,
            self.arm,
            n_groups=len(self.sizes),
            bins=BINS,
            strength=strength,
            midpoints=midpoints,
        )

    @cached_property
    def bins(self) -> ReliabilityDiagram:
        """Return the shares of the bins in each arm, (A, B), and their mean scores."""
        return self.diagram(2.0, midpoints=False, labelled=False)

    def arms(self, prior: str, strength: float, replications: int) -> BinnedArms:
        """Return the arms before any label: prior means at "scores" or at bins' "midpoints"."""
        unlabelled = self.diagram(strength, midpoints=prior == "midpoints", labelled=False)
        return BinnedArms.of(unlabelled.accuracy, self.sizes, replications=replications)


@dataclass(frozen=True, eq=False)
class OutcomePool(Pool):
    """Rows whose label shows one of C outcomes.

    Attributes
    ----------
    priors : name -> (A, C) probabilities of the outcomes.
    """

    priors: Mapping[str, Floats] = field(default_factory=dict)

    def arms(self, prior: str, strength: float, replications: int) -> DirichletArms:
        """Return the arms before any label."""
        alpha = strength * self.priors[prior]
        return DirichletArms.of(alpha, self.sizes, replications=replications)


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
    return _pool(
        f"{dataset} by superclass", scores, superclasses(scores.classes)[scores.prediction]
    )


def _pool(name: str, scores: MulticlassScores, arm: Codes) -> ArmPool:
    return ArmPool(name, arm, scores.correct.astype(np.int64), scores.confidence)


def binned_by_class(scores: MulticlassScores, name: str, *, held_out: float = 0.0) -> BinnedPool:
    """Return a pool whose arms are the predicted classes, each in bins of the score.

    Parameters
    ----------
    held_out : share of the rows, drawn at random, that the pool does not have.
    """
    kept = rng(0, "active held out", name).permutation(len(scores))
    rows = np.sort(kept[int(held_out * len(scores)) :])
    score, correct = scores.confidence[rows], scores.correct[rows]
    outcome = BinnedArms.outcome(bin_of(score, BINS), correct)
    return BinnedPool(name, scores.prediction[rows], outcome, score, correct)


def mean_scores(scores: MulticlassScores) -> Floats:
    """Return the mean probability of every class among the rows of each predicted class, (C, C)."""
    classes = len(scores.classes)
    total = np.zeros((classes, classes))
    np.add.at(total, scores.prediction, scores.distribution())
    mean: Floats = total / np.bincount(scores.prediction, minlength=classes)[:, None]
    return mean
