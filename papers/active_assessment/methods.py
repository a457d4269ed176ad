"""The table's methods: a prior, and how the next row is chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairbench.inference.active.arms import BetaArms, Integers
from fairbench.inference.active.rewards import Estimation, Lowest, Reward
from fairbench.inference.active.strategies import choose
from fairbench.inference.active.threshold_arms import ThresholdArms
from fairbench.inference.beta import Beta, centred, uniform
from papers.active_assessment.pools import ArmPool

STRENGTH = 2.0
_NO_PRIOR = 1e-6
_MANY_ARMS = 50  # from which thresholds are cheaper than draws


@dataclass(frozen=True)
class Method:
    """A prior ("none", "uniform", "scores") and a strategy."""

    prior: str
    strategy: str

    @property
    def name(self) -> str:
        """Return what a table calls it."""
        return f"{self.strategy}, prior: {self.prior}"

    def posterior(self, pool: ArmPool) -> Beta:
        """Return the prior of each arm.

        "none" has the weight of a millionth label, which is what the paper's code gives its
        "uniform prior" unless it compares two groups.
        """
        if self.prior == "scores":
            return centred(pool.confidence, STRENGTH)
        return uniform(len(pool.sizes), _NO_PRIOR if self.prior == "none" else STRENGTH)


# The published names of the table's methods. "none" is what the paper's code does.
PUBLISHED = {
    Method("none", "random"): "uniform_prior",
    Method("scores", "random"): "informative_prior",
    Method("scores", "thompson"): "informative_prior_thompson",
}
OTHERS = (
    Method("uniform", "random"),
    Method("uniform", "thompson"),
    Method("scores", "top_two"),
    Method("scores", "epsilon_greedy"),
    Method("scores", "bayesian_ucb"),
)


def estimation(pool: ArmPool) -> Reward:
    """Return the reward of estimating every arm."""
    return Estimation(pool.share)


def lowest(pool: ArmPool) -> Reward:
    """Return the reward of finding the least accurate arms."""
    return Lowest()


def start(
    method: Method,
    pool: ArmPool,
    reward: Reward,
    generator: np.random.Generator,
    *,
    replications: int,
    plays: int = 1,
) -> tuple[Any, Callable[[Any], Integers]]:
    """Return the arms before the first label, and what chooses the next ones."""
    arms = BetaArms.of(method.posterior(pool), pool.sizes, replications=replications)
    single = method.strategy == "thompson" and plays == 1 and isinstance(reward, Lowest)
    if single and len(pool.sizes) >= _MANY_ARMS:
        return ThresholdArms.of(arms), lambda held: held.lowest(generator)
    strategy = "multiple_play" if method.strategy == "thompson" and plays > 1 else method.strategy
    return arms, lambda held: choose(strategy, held, reward, generator, plays=plays)
