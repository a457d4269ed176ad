"""Strategies: which arm's row to label next, given the arms and the reward of a label.

Every strategy takes the arms, a reward, and a generator, and returns (R, m) arms, m = 1 unless it
is asked for several plays at once. An arm without unlabelled rows is never chosen; where fewer than
m arms have unlabelled rows, -1 stands for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.core.errors import unknown_name
from fairbench.inference.active.arms import Arms, BetaArms, DirichletArms, Integers, NormalArms
from fairbench.inference.active.rewards import Reward

Strategy = Callable[[Arms, Reward, np.random.Generator], Integers]
_REDRAWS = 20


def random_row(arms: Arms, reward: Reward, generator: np.random.Generator) -> Integers:
    """Return the arm of a row drawn from all unlabelled ones: what labelling at random does."""
    cumulative = np.cumsum(arms.unlabelled, axis=1)
    drawn = generator.random((len(cumulative), 1)) * cumulative[:, -1:]
    return _or_none(arms, (cumulative <= drawn).sum(axis=1, keepdims=True))


def random_arm(
    arms: Arms, reward: Reward, generator: np.random.Generator, *, plays: int = 1
) -> Integers:
    """Return arms drawn from those with unlabelled rows, all equally likely."""
    return _largest(generator.random(arms.unlabelled.shape), arms, plays=plays)


def thompson(arms: Arms, reward: Reward, generator: np.random.Generator) -> Integers:
    """Return the arm of the largest reward under one posterior draw (Thompson 1933)."""
    return _largest(reward.expected(arms, arms.draw(generator)), arms)


def top_two(
    arms: Arms, reward: Reward, generator: np.random.Generator, *, best: float = 0.5
) -> Integers:
    """Return Thompson's arm with probability `best`, and otherwise its challenger (Russo 2016).

    The challenger is the first different arm that further draws give; where twenty draws give
    the same arm, it is the second best of the last.
    """
    chosen = thompson(arms, reward, generator)[:, 0]
    challenged = (arms.unlabelled > 0).sum(axis=1) > 1
    challenged &= generator.random(len(chosen)) >= best
    pending = np.flatnonzero(challenged)
    for _ in range(_REDRAWS):
        if len(pending) == 0:
            break
        few = arms.take(pending)
        values = _available(reward.expected(few, few.draw(generator)), few)
        leader, other = chosen[pending], values.argmax(axis=1)
        chosen[pending] = other
        values[np.arange(len(pending)), leader] = -np.inf
        # A reward may rule out every other arm, which leaves the leader.
        second = np.where(values.max(axis=1) > -np.inf, values.argmax(axis=1), leader)
        same = other == leader
        pending, second = pending[same], second[same]
    if len(pending):
        chosen[pending] = second
    return chosen[:, None]


def multiple_play(
    arms: Arms, reward: Reward, generator: np.random.Generator, *, plays: int = 1
) -> Integers:
    """Return the arms of the `plays` largest rewards under one draw (Komiyama et al. 2015)."""
    values = _available(reward.expected(arms, arms.draw(generator)), arms)
    if plays < values.shape[1]:
        chosen = np.argpartition(-values, plays - 1, axis=1)[:, :plays]
    else:
        chosen = np.broadcast_to(np.arange(values.shape[1]), values.shape).copy()
    chosen[~np.isfinite(np.take_along_axis(values, chosen, axis=1))] = -1
    return chosen


def epsilon_greedy(
    arms: Arms,
    reward: Reward,
    generator: np.random.Generator,
    *,
    epsilon: float = 0.1,
    plays: int = 1,
) -> Integers:
    """Return the arms of the largest mean rewards, or with probability `epsilon` any arms."""
    greedy = _largest(reward.moments(arms)[0], arms, generator, plays=plays)
    any_arm = random_arm(arms, reward, generator, plays=plays)
    return np.where(generator.random((len(greedy), 1)) < epsilon, any_arm, greedy)


def bayesian_ucb(
    arms: Arms,
    reward: Reward,
    generator: np.random.Generator,
    *,
    width: float = 1.0,
    plays: int = 1,
) -> Integers:
    """Return the arms of the largest mean rewards plus `width` posterior standard deviations."""
    mean, sd = reward.moments(arms)
    return _largest(mean + width * sd, arms, generator, plays=plays)


def bayesian_ucb_quantile(
    arms: Arms,
    reward: Reward,
    generator: np.random.Generator,
    *,
    level: float = 0.975,
    draws: int = 400,
    plays: int = 1,
) -> Integers:
    """Return the arms of the largest upper quantiles of the reward's posterior.

    Parameters
    ----------
    arms, reward, generator, plays : as in :func:`choose`.
    level : the level of the quantile.
    draws : the number of posterior draws whose quantile is taken, which serves any reward.

    Notes
    -----
    Kaufmann, Cappe and Garivier (2012), "On Bayesian upper confidence bounds for bandit problems".
    """
    replications = len(arms.unlabelled)
    many = arms.take(np.repeat(np.arange(replications), draws))
    values = reward.expected(many, many.draw(generator)).reshape(replications, draws, -1)
    # A reward may be minus infinity, between which there is nothing to interpolate.
    upper = np.quantile(values, level, axis=1, method="higher")
    return _largest(upper, arms, generator, plays=plays)


STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {
        "random": random_row,
        "random_arm": random_arm,
        "thompson": thompson,
        "top_two": top_two,
        "epsilon_greedy": epsilon_greedy,
        "bayesian_ucb": bayesian_ucb,
        "bayesian_ucb_quantile": bayesian_ucb_quantile,
        "multiple_play": multiple_play,
    }
)
_SEVERAL: Mapping[str, Callable[..., Integers]] = MappingProxyType(
    {
        "random_arm": random_arm,
        "epsilon_greedy": epsilon_greedy,
        "bayesian_ucb": bayesian_ucb,
        "bayesian_ucb_quantile": bayesian_ucb_quantile,
        "multiple_play": multiple_play,
    }
)


def choose(
    strategy: str, arms: Arms, reward: Reward, generator: np.random.Generator, *, plays: int = 1
) -> Integers:
    """Return the arms to label next, (R, m) by a strategy's name.

    Parameters
    ----------
    plays : m, for strategies that choose several arms at once; the others choose one.

    Raises
    ------
    UserError : an unknown strategy.
    """
    if strategy not in STRATEGIES:
        raise unknown_name("strategy", strategy, STRATEGIES)
    if strategy in _SEVERAL:
        return _SEVERAL[strategy](arms, reward, generator, plays=plays)
    return STRATEGIES[strategy](arms, reward, generator)


def _available(values: Floats, arms: Arms) -> Floats:
    """Return the values of arms, minus infinity where an arm has no unlabelled row."""
    return np.where(arms.unlabelled > 0, values, -np.inf)


def _largest(
    values: Floats, arms: Arms, generator: np.random.Generator | None = None, *, plays: int = 1
) -> Integers:
    """Return the arms of the largest values, (R, m); ties at random, if a generator is given."""
    if plays > 1:
        ties = np.zeros(values.shape) if generator is None else generator.random(values.shape)
        order = np.lexsort((ties, -_available(values, arms)))[:, :plays]
        return np.where(np.take_along_axis(arms.unlabelled, order, axis=1) > 0, order, -1)
    values = _available(values, arms)
    if generator is not None:
        tied = values == values.max(axis=1, keepdims=True)
        values = np.where(tied & (arms.unlabelled > 0), generator.random(values.shape), -np.inf)
    return _or_none(arms, values.argmax(axis=1)[:, None])


def _or_none(arms: Arms, chosen: Integers) -> Integers:
    """Return the chosen arms (R, 1); -1 where no arm has an unlabelled row."""
    left = arms.unlabelled.max(axis=1, keepdims=True) > 0
    return np.where(left, chosen, -1)


def next_arm(arms: Arms, reward: Reward, strategy: str, generator: np.random.Generator) -> int:
    """Return the arm whose row to label next; -1 where every row has its label.

    Parameters
    ----------
    arms : the arms of one replication, R = 1.
    reward : the reward of a label.
    strategy : the name of the strategy.
    generator : draws.
    """
    return int(choose(strategy, arms, reward, generator)[0, 0])


def next_arms(
    arms: BetaArms | NormalArms | DirichletArms,
    reward: Reward,
    strategy: str,
    generator: np.random.Generator,
    *,
    labels: int,
    given: Integers | None = None,
    least_share: float = 0.0,
) -> Integers:
    """Return the arms of the next labels, chosen before any of them is known, (at most labels,).

    A row is chosen with what is known now, and counts as used up for the next choice: with
    Thompson's draws the arms spread as the posterior does, so that a sitting is not spent on one
    arm (batched Thompson sampling, Kandasamy et al. 2018).

    Parameters
    ----------
    arms, reward, strategy, generator : as in :func:`next_arm`.
    labels : the number of labels.
    given : (A,) the labels that each arm was given before; none by default.
    least_share : an arm that has less than this part of an equal share of the labels goes first.
    """
    remaining = replace(arms, unlabelled=arms.unlabelled.copy())
    n_labels = np.zeros(arms.unlabelled.shape[1], np.int64) if given is None else given.copy()
    chosen: list[int] = []
    while len(chosen) < labels and remaining.unlabelled.any():
        available = np.where(remaining.unlabelled[0] > 0, n_labels, np.iinfo(np.int64).max)
        arm = int(available.argmin())
        if available[arm] >= least_share * n_labels.mean():
            arm = next_arm(remaining, reward, strategy, generator)
        remaining.unlabelled[0, arm] -= 1
        n_labels[arm] += 1
        chosen.append(arm)
    return np.array(chosen, np.int64)


Codes = NDArray[np.uint8]


class LabelledArms(Protocol):
    """Arms that take labels."""

    @property
    def unlabelled(self) -> Integers:
        """Return the rows of each arm without a label, (R, A)."""

    def record(self, rows: Integers, arms: Integers, success: Any) -> None:
        """Count one label for each (replication, arm)."""


AnyArms = TypeVar("AnyArms", bound=LabelledArms)


@dataclass(frozen=True, eq=False)
class Queues:
    """The rows of each arm in the order in which they would be labelled, for R replications.

    Attributes
    ----------
    outcome : (R, A, N) what each label turns out to be; anything after an arm's last row.
    sizes : (A,) or (R, A) rows of each arm.
    """

    outcome: Codes
    sizes: Integers

    @staticmethod
    def of(
        outcome: NDArray[Any], arm: Integers, generator: np.random.Generator, *, replications: int
    ) -> Queues:
        """Shuffle a pool: (n,) outcomes, codes from 0, of rows in (n,) arms 0 .. A - 1."""
        sizes = np.bincount(arm)
        queues = np.zeros((replications, len(sizes), sizes.max(initial=0)), np.uint8)
        for g, size in enumerate(sizes):
            members = np.asarray(outcome, np.uint8)[arm == g]
            tiled = np.broadcast_to(members, (replications, size))
            queues[:, g, :size] = generator.permuted(tiled, axis=1)
        return Queues(queues, sizes)

    def label(self, arms: LabelledArms, chosen: Integers) -> None:
        """Give each replication's (R, m) chosen arms, all different, one label; skip -1."""
        replications, columns = np.nonzero(chosen >= 0)
        arm = chosen[replications, columns]
        sizes = np.broadcast_to(self.sizes, arms.unlabelled.shape)
        next_row = sizes[replications, arm] - arms.unlabelled[replications, arm]
        outcome = self.outcome[replications, arm, next_row]
        arms.record(replications, arm, outcome.astype(np.int64))


def assess(
    queues: Queues,
    arms: AnyArms,
    choose: Callable[[AnyArms], Integers],
    *,
    observe: Callable[[AnyArms], Any],
    rounds: int,
    every: int = 1,
) -> list[Any]:
    """Label the chosen arms' next rows, round by round, and return what was observed.

    Parameters
    ----------
    queues : the rows of each arm, in the order in which they are labelled.
    arms : the arms, which are changed in place.
    choose : returns the (R, m) arms to label next.
    observe : called before the first label, after every `every`-th round, and after the last.
    rounds : the number of rounds.
    every : how many rounds there are between two observations.

    Returns
    -------
    What `observe` returned, 1 + ceil(rounds / every) times.
    """
    seen = [observe(arms)]
    for i in range(rounds):
        queues.label(arms, choose(arms))
        if (i + 1) % every == 0 or i + 1 == rounds:
            seen.append(observe(arms))
    return seen
