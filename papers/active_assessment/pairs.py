"""Which of two arms is the more accurate: labels until the answer is as sure as all labels make it.

The paper's protocol (Table 3.7): random pairs of arms; the true region is that of the pool's
accuracies; labels are counted until the region's posterior mass first comes within 5 % of its mass
given every label.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fairbench.components.papers.active_assessment.methods import Method
from fairbench.components.papers.active_assessment.pools import ArmPool
from fairbench.core.arrays import Floats
from fairbench.core.files import atomic
from fairbench.core.seeds import rng
from fairbench.inference.active.arms import BetaArms
from fairbench.inference.active.rewards import ComparisonReward
from fairbench.inference.active.strategies import Queues, choose
from fairbench.inference.beta import Beta

Integers = NDArray[np.int64]
MARGIN, TOLERANCE = 0.05, 0.05


def labels_to_compare(
    pool: ArmPool, method: Method, folder: Path, *, replications: int
) -> Integers:
    """Return the labels each replication needs, (R,), from their file where it is there."""
    parts = (pool.name, "pairs", method.file, str(replications))
    path = folder / "curves" / ("-".join(parts).replace(" ", "_") + ".npy")
    if not path.exists():
        needed = _computed(pool, method, replications, ComparisonReward(MARGIN))
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic(path) as file:
            np.save(file, needed)
    stored: Integers = np.load(path, allow_pickle=False)
    return stored


def _computed(
    pool: ArmPool, method: Method, replications: int, comparison: ComparisonReward
) -> Integers:
    pairs = _pairs(len(pool.sizes), replications)
    generator = rng(0, "active", pool.name, "pairs", method.name)
    queues, arms = _of_pairs(pool, method, pairs)
    region, goal = _goal(pool, pairs, comparison)
    needed = np.full(replications, -1)
    live = np.arange(replications)
    for labels in range(1, int(arms.unlabelled.sum(axis=1).max()) + 1):
        queues.label(arms, choose(method.strategy, arms, comparison, generator))
        mass = comparison.regions(arms)[np.arange(len(live)), region[live]]
        done = np.abs(mass - goal[live]) < TOLERANCE * goal[live]
        # The prior may keep a pair from the goal; it has then cost all its labels.
        done |= arms.unlabelled.sum(axis=1) == 0
        needed[live[done]] = labels
        live, arms = live[~done], arms.take(np.flatnonzero(~done))
        queues = replace(queues, outcome=queues.outcome[~done], sizes=queues.sizes[~done])
        if len(live) == 0:
            break
    return needed


def _pairs(arms: int, replications: int) -> Integers:
    generator = rng(0, "active", "pairs", arms)
    order = generator.permuted(np.tile(np.arange(arms), (replications, 1)), axis=1)
    return order[:, :2]


def _of_pairs(pool: ArmPool, method: Method, pairs: Integers) -> tuple[Queues, BetaArms]:
    everyone = pool.queues(len(pairs))
    outcome = np.take_along_axis(everyone.outcome, pairs[:, :, None], axis=1)
    sizes = pool.sizes[pairs]
    prior = pool.prior(method.prior, method.strength)
    chosen = Beta(prior.successes[pairs], prior.failures[pairs])
    return Queues(outcome, sizes), BetaArms.of(chosen, sizes, replications=len(pairs))


def _goal(pool: ArmPool, pairs: Integers, comparison: ComparisonReward) -> tuple[Integers, Floats]:
    """Return the true region of each pair, and its mass given every label."""
    accuracy, size = pool.accuracy[pairs], pool.sizes[pairs]
    gap = accuracy[:, 0] - accuracy[:, 1]
    region = np.where(gap > comparison.margin, 0, np.where(gap < -comparison.margin, 2, 1))
    known = Beta(size * (accuracy + 1e-6), size * (1 - accuracy + 1e-6))
    mass = comparison.regions(BetaArms(known, np.zeros_like(size)))
    return region, mass[np.arange(len(pairs)), region]
