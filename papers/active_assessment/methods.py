"""The tables' methods: a prior, and how the next row is chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairbench.components.papers.active_assessment.pools import Pool
from fairbench.inference.active.arms import BetaArms, Integers
from fairbench.inference.active.rewards import Estimation, Lowest, Reward
from fairbench.inference.active.strategies import choose
from fairbench.inference.active.threshold_arms import ThresholdArms

STRENGTH = 2.0
CODE = "released code"  # a cause of mapping.yaml, which says what the code does differently
_LEVEL = 0.025  # of an accuracy, whose negative is the reward
_MANY_ARMS = 50  # from which thresholds are cheaper than draws
_ONE_AT_A_TIME = ("random", "top_two")


@dataclass(frozen=True)
class Method:
    """A prior of the pool, how many labels it is worth, and a strategy."""

    prior: str
    strategy: str
    strength: float = STRENGTH

    @property
    def name(self) -> str:
        """Return what a table calls it."""
        worth = "" if self.strength == STRENGTH else f" worth {self.strength:g}"
        return f"{self.strategy}, prior: {self.prior}{worth}"

    @property
    def file(self) -> str:
        """Return the part of a file's name that tells it from others."""
        return "-".join([self.prior, self.strategy, *[f"{self.strength:g}"] * (self.strength != 2)])


# The methods of the tables, as the text defines them, and their published names.
TEXT = {
    Method("uniform", "random"): "uniform_prior",
    Method("scores", "random"): "informative_prior",
    Method("scores", "thompson"): "informative_prior_thompson",
}
NO_PRIOR = Method("none", "random")  # what the released code runs as the uniform prior


def as_coded(method: Method) -> Method:
    """Return what the released code runs in a method's place, outside comparisons."""
    return NO_PRIOR if method.prior == "uniform" else method


def estimation(pool: Pool, arms: Any) -> Reward:
    """Return the reward of estimating every arm."""
    return Estimation(pool.share)


def lowest(pool: Pool, arms: Any) -> Reward:
    """Return the reward of finding the least accurate arms."""
    return Lowest()


def start(
    method: Method,
    pool: Pool,
    reward: Callable[[Any, Any], Reward],
    generator: np.random.Generator,
    *,
    replications: int,
    plays: int = 1,
) -> tuple[Any, Callable[[Any], Integers]]:
    """Return the arms before the first label, and what chooses the next ones.

    Parameters
    ----------
    reward : of a label, from the pool and the arms as they are.
    """
    arms = pool.arms(method.prior, method.strength, replications)
    single = method.strategy == "thompson" and plays == 1
    if single and len(pool.sizes) >= _MANY_ARMS and isinstance(reward(pool, arms), Lowest):
        return ThresholdArms.of(arms), lambda held: held.lowest(generator)
    if method.strategy == "bayesian_ucb_quantile" and isinstance(reward(pool, arms), Lowest):
        return arms, lowest_quantiles(arms, generator, plays=plays)
    if method.strategy.startswith("random"):
        unused = reward(pool, arms)
        return arms, lambda held: choose(method.strategy, held, unused, generator, plays=plays)
    strategy = "multiple_play" if method.strategy == "thompson" and plays > 1 else method.strategy
    return arms, lambda held: choose(strategy, held, reward(pool, held), generator, plays=plays)


def lowest_quantiles(
    arms: BetaArms, generator: np.random.Generator, *, plays: int
) -> Callable[[BetaArms], Integers]:
    """Return Bayesian UCB for the least accurate arms: those of the lowest 2.5 % quantiles.

    It is the 97.5 % quantile of the reward, in closed form; computed anew where a label came.
    """
    quantile, counted = arms.posterior.quantile(_LEVEL), arms.posterior.strength.copy()

    def chosen(held: BetaArms) -> Integers:
        strength = held.posterior.strength
        seen = np.nonzero(strength != counted)
        quantile[seen], counted[seen] = held.posterior.take(seen).quantile(_LEVEL), strength[seen]
        values = quantile + 1e-12 * generator.random(quantile.shape)  # ties at random
        values[held.unlabelled == 0] = np.inf
        few = min(plays, values.shape[1])
        arm: Integers = np.argsort(values, axis=1)[:, :few]
        return np.where(np.isfinite(np.take_along_axis(values, arm, axis=1)), arm, -1)

    return chosen


def plays_of(method: Method, plays: int) -> int:
    """Return how many arms a round of the method labels, where a question allows so many."""
    return 1 if method.strategy in _ONE_AT_A_TIME else plays
