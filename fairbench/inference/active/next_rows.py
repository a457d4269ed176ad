"""What to label next, for a person: the arms of one label, or of a sitting of several."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairbench.inference.active.arms import BetaArms, DirichletArms, Integers
from fairbench.inference.active.rewards import Reward
from fairbench.inference.active.strategies import choose


def next_arm(
    arms: BetaArms | DirichletArms, reward: Reward, strategy: str, generator: np.random.Generator
) -> int:
    """Return the arm whose row to label next; -1 where every row has its label.

    Parameters
    ----------
    arms : of one replication, R = 1.
    """
    return int(choose(strategy, arms, reward, generator)[0, 0])


def next_arms(
    arms: BetaArms | DirichletArms,
    reward: Reward,
    strategy: str,
    generator: np.random.Generator,
    *,
    labels: int,
) -> Integers:
    """Return the arms of the next labels, chosen before any of them is known, (at most labels,).

    A row is chosen with what is known now, and counts as used up for the next choice: with
    Thompson's draws the arms spread as the posterior does, so that a sitting is not spent on one
    arm (batched Thompson sampling, Kandasamy et al. 2018).
    """
    left = replace(arms, unlabelled=arms.unlabelled.copy())
    chosen: list[int] = []
    while len(chosen) < labels:
        arm = next_arm(left, reward, strategy, generator)
        if arm < 0:
            break
        left.unlabelled[0, arm] -= 1
        chosen.append(arm)
    return np.array(chosen, np.int64)
