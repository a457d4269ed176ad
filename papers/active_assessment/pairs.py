"""Which of two arms is the more accurate: labels until the answer is as sure as all labels make it.

Table 3.7: every pair of arms. As the text has it, the most probable region and its mass are looked
at after every ten labels, and are to be those of all labels, the mass within 5 %. As the released
code has it, they are looked at after every label, and the region is that of the accuracies' own
difference.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
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


@dataclass(frozen=True)
class Reading:
    """How a comparison is judged: after every so many labels, and against which region."""

    name: str
    every: int
    by_accuracies: bool


TEXT = Reading("text", 10, by_accuracies=False)
CODED = Reading("code", 1, by_accuracies=True)


def labels_to_compare(
    pool: ArmPool, method: Method, folder: Path, *, passes: int, reading: Reading = TEXT
) -> Integers:
    """Return the labels of every pair, (passes, pairs), from their file where it is there."""
    parts = (pool.name, "every pair", reading.name, method.file, str(passes))
    path = folder / "curves" / ("-".join(parts).replace(" ", "_") + ".npy")
    if not path.exists():
        needed = _computed(pool, method, passes, reading)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic(path) as file:
            np.save(file, needed)
    stored: Integers = np.load(path, allow_pickle=False)
    return stored


def _computed(pool: ArmPool, method: Method, passes: int, reading: Reading) -> Integers:
    comparison = ComparisonReward(MARGIN)
    once = np.array(list(combinations(range(len(pool.sizes)), 2)))
    pairs = np.tile(once, (passes, 1))
    generator = rng(0, "active", pool.name, "every pair", reading.name, method.name)
    queues, arms = _of_pairs(pool, method, pairs)
    region, goal = _goal(pool, pairs, comparison, reading)
    needed = np.full(len(pairs), -1)
    live = np.arange(len(pairs))
    for labels in range(1, int(arms.unlabelled.sum(axis=1).max()) + 1):
        queues.label(arms, choose(method.strategy, arms, comparison, generator))
        # The prior may keep a pair from the goal; it has then cost all its labels.
        done = arms.unlabelled.sum(axis=1) == 0
        if labels % reading.every == 0:
            masses = comparison.regions(arms)
            mass = masses[np.arange(len(live)), region[live]]
            answered = np.abs(mass - goal[live]) < TOLERANCE * goal[live]
            if not reading.by_accuracies:
                answered &= masses.argmax(axis=1) == region[live]
            done |= answered
        needed[live[done]] = labels
        live, arms = live[~done], arms.take(np.flatnonzero(~done))
        queues = replace(queues, outcome=queues.outcome[~done], sizes=queues.sizes[~done])
        if len(live) == 0:
            break
    return needed.reshape(passes, -1)


def _of_pairs(pool: ArmPool, method: Method, pairs: Integers) -> tuple[Queues, BetaArms]:
    everyone = pool.queues(len(pairs))
    outcome = np.take_along_axis(everyone.outcome, pairs[:, :, None], axis=1)
    sizes = pool.sizes[pairs]
    prior = pool.prior(method.prior, method.strength)
    chosen = Beta(prior.successes[pairs], prior.failures[pairs])
    return Queues(outcome, sizes), BetaArms.of(chosen, sizes, replications=len(pairs))


def _goal(
    pool: ArmPool, pairs: Integers, comparison: ComparisonReward, reading: Reading
) -> tuple[Integers, Floats]:
    """Return the true region of each pair, and its mass given every label."""
    accuracy, size = pool.accuracy[pairs], pool.sizes[pairs]
    known = Beta(size * (accuracy + 1e-6), size * (1 - accuracy + 1e-6))
    masses = comparison.regions(BetaArms(known, np.zeros_like(size)))
    region = masses.argmax(axis=1)
    if reading.by_accuracies:
        gap = accuracy[:, 0] - accuracy[:, 1]
        region = np.where(gap > comparison.margin, 0, np.where(gap < -comparison.margin, 2, 1))
    return region, masses[np.arange(len(pairs)), region]
