"""How far an assessment has come: one number for each replication."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fairbench.inference.beta import Beta
from papers.active_assessment.pools import ArmPool

Floats = NDArray[np.float64]
Measure = Callable[[ArmPool, Beta], Floats]
_PAPERS_BINS = 20


def accuracy_error(pool: ArmPool, posterior: Beta) -> Floats:
    """Return the root mean squared error of the arms' accuracies, weighted by rows, in points."""
    square = (posterior.mean - pool.accuracy) ** 2
    error: Floats = 100 * np.sqrt(square @ pool.share)
    return error


def published_ece_error(pool: ArmPool, posterior: Beta) -> Floats:
    """Return the paper's error of the ECE in percent of it.

    The distance of the posterior means in ten bins of equal size, against the ECE of the whole
    pool in twenty bins of equal width.
    """
    estimate = np.abs(posterior.mean - pool.confidence) @ pool.share
    cell = np.digitize(pool.score, np.linspace(0, 1, _PAPERS_BINS + 1)[1:-1])
    gap = np.bincount(cell, weights=pool.correct - pool.score, minlength=_PAPERS_BINS)
    return _percent(estimate, float(np.abs(gap).sum() / len(cell)))


def ece_error(pool: ArmPool, posterior: Beta) -> Floats:
    """Return the error of the ECE's posterior mean in percent of the ECE in the same bins."""
    estimate = posterior.absolute_error(pool.confidence) @ pool.share
    return _percent(estimate, float(np.abs(pool.accuracy - pool.confidence) @ pool.share))


def reciprocal_rank(m: int) -> Measure:
    """Return the mean reciprocal rank of the m least accurate arms.

    An arm's rank is 1 plus the number of other arms, not among the m, that seem less accurate;
    arms that seem as accurate count a half.
    """

    def measure(pool: ArmPool, posterior: Beta) -> Floats:
        worst = np.argsort(pool.accuracy, kind="stable")[:m]
        seen = posterior.mean
        others = np.delete(seen, worst, axis=1)
        mean = np.zeros(len(seen))
        for arm in worst:
            own = seen[:, arm, None]
            rank = 1 + (others < own).sum(axis=1) + (others == own).sum(axis=1) / 2
            mean += 1 / rank / m
        return mean

    return measure


def _percent(estimate: Floats, truth: float) -> Floats:
    error: Floats = 100 * np.abs(estimate - truth) / truth
    return error
