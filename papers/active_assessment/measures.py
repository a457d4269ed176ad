"""How far an assessment has come: one number for each replication."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.components.papers.active_assessment.pools import ArmPool
from fairbench.core.arrays import Floats
from fairbench.inference.active.arms import BetaArms

# From a pool and its arms, one number for each replication.
Measure = Callable[[Any, Any], Floats]
_PAPERS_BINS = 20


def accuracy_error(pool: ArmPool, arms: BetaArms) -> Floats:
    """Return the root mean squared error of the arms' accuracies, weighted by rows, in points."""
    square = (arms.posterior.mean - pool.accuracy) ** 2
    error: Floats = 100 * np.sqrt(square @ pool.share)
    return error


def published_ece_error(pool: ArmPool, arms: BetaArms) -> Floats:
    """Return the paper's error of the ECE in percent of it.

    The distance of the posterior means in ten bins of equal size, against the ECE of the whole
    pool in twenty bins of equal width.
    """
    estimate = np.abs(arms.posterior.mean - pool.confidence) @ pool.share
    cell = np.digitize(pool.score, np.linspace(0, 1, _PAPERS_BINS + 1)[1:-1])
    gap = np.bincount(cell, weights=pool.outcome - pool.score, minlength=_PAPERS_BINS)
    return _percent(estimate, float(np.abs(gap).sum() / len(cell)))


def ece_error(pool: ArmPool, arms: BetaArms) -> Floats:
    """Return the text's error of the ECE in percent of it: all labels are in the same ten bins."""
    estimate = np.abs(arms.posterior.mean - pool.confidence) @ pool.share
    return _percent(estimate, float(np.abs(pool.accuracy - pool.confidence) @ pool.share))


def reciprocal_rank(m: int) -> Measure:
    """Return the mean reciprocal rank of the m least accurate arms."""

    def measure(pool: ArmPool, arms: BetaArms) -> Floats:
        worst = np.argsort(pool.accuracy, kind="stable")[:m]
        return mean_reciprocal_rank(arms.posterior.mean, worst)

    return measure


def mean_reciprocal_rank(seen: Floats, extreme: NDArray[np.int64]) -> Floats:
    """Return how high the extreme arms rank, (R,): 1 where they are the lowest.

    An arm's rank is 1 plus the number of other arms, not among the extreme ones, that seem lower;
    arms that seem as low count a half.

    Parameters
    ----------
    seen : (R, A) what the arms seem to be, such as posterior means of their accuracies.
    extreme : the arms that truly are lowest.
    """
    others = np.delete(seen, extreme, axis=1)
    mean = np.zeros(len(seen))
    for arm in extreme:
        own = seen[:, arm, None]
        rank = 1 + (others < own).sum(axis=1) + (others == own).sum(axis=1) / 2
        mean += 1 / rank / len(extreme)
    return mean


def _percent(estimate: Floats, truth: float) -> Floats:
    error: Floats = 100 * np.abs(estimate - truth) / truth
    return error
