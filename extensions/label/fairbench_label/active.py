"""Which row to label next: groups of rows as arms, what a label would teach, and strategies.

Everything is batched over R replications, which are independent; a person's audit has R = 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaln, ndtri

from fairbench.core.arrays import Codes, Floats, Rows
from fairbench.core.errors import check_choice
from fairbench.inference.posterior import Beta


@dataclass(frozen=True, eq=False)
class Normal:
    """Independent normal distributions of means, each known from some labels.

    Attributes
    ----------
    mean, variance : (...) of the means.
    strength : (...) how many labels each is known from.
    """

    mean: Floats
    variance: Floats
    strength: Floats

    @staticmethod
    def of(mean: Floats, spread: ArrayLike, strength: Floats) -> Normal:
        """Return means of values whose variance is `spread`."""
        return Normal(mean, np.asarray(spread, float) / strength + np.zeros_like(mean), strength)

    def take(self, place: Any) -> Normal:
        """Return the distributions at some places, which the arrays are indexed by."""
        return Normal(self.mean[place], self.variance[place], self.strength[place])

    def draws(self, draws: int, generator: Generator) -> Floats:
        """Draw (T, ...) means."""
        shape = (draws, *self.mean.shape)
        return generator.normal(self.mean, np.sqrt(self.variance), shape)

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return the equal-tailed interval."""
        half_width = np.sqrt(self.variance) * ndtri((1 + level) / 2)
        return self.mean - half_width, self.mean + half_width


@dataclass(frozen=True, eq=False)
class BetaArms:
    """Arms whose rows are successes or failures, or have a number: each a posterior of its mean.

    Attributes
    ----------
    posterior : (R, A) of rates, prior pseudo-counts plus the successes and failures seen; or, as
        `Normal`, of means of losses or other numbers.
    unlabelled : (R, A) rows whose label is not known.
    """

    posterior: Any
    unlabelled: Codes

    def draw(self, generator: Generator) -> Floats:
        """Draw every arm's rate or mean once, (R, A)."""
        return self.posterior.draws(1, generator)[0]

    def take(self, rows: Any) -> BetaArms:
        """Return some of the replications, or other places that the arrays are indexed by."""
        return BetaArms(self.posterior.take(rows), self.unlabelled[rows])

    @staticmethod
    def of(prior: Beta, sizes: Sequence[int] | Codes, *, replications: int = 1) -> BetaArms:
        """Return unlabelled arms.

        Parameters
        ----------
        prior : (A,) or (R, A): `uniform(A)`, or `centred(scores)`, Ji et al.'s informative prior.
        sizes : (A,) or (R, A) rows of each arm.
        """
        rows = np.asarray(sizes, np.int64)
        shape = (replications, rows.shape[-1])
        pseudo = (np.broadcast_to(of, shape).copy() for of in (prior.successes, prior.failures))
        return BetaArms(Beta(*pseudo), np.broadcast_to(rows, shape).copy())

    def record(self, rows: Codes, arms: Codes, success: NDArray[Any]) -> None:
        """Count, in place, one label for each (replication, arm); no pair may come twice."""
        self.posterior.successes[rows, arms] += success
        self.posterior.failures[rows, arms] += 1 - success
        self.unlabelled[rows, arms] -= 1


Arms: TypeAlias = Any  # these, or others with `unlabelled`, `draw` and `take`


# The expected reward of a label: how much it would teach (Ji et al., 2021, AAAI, section 4).
#
# A reward is a function of the arms and of success rates theta, drawn or assumed. Each one pays
# something for a success and something for a failure, so that its expectation is linear in theta;
# its posterior mean and standard deviation follow from those of theta. The exceptions are the
# calibration error, a function of theta itself, and what is of several outcomes.


class Reward(Protocol):
    """The expected reward of a label, arm by arm."""

    def expected(self, arms: Any, theta: Floats) -> Floats:
        """Return the reward, (R, A), were the arms' parameters `theta`."""

    def moments(self, arms: Any) -> tuple[Floats, Floats]:
        """Return the posterior mean and standard deviation of the reward, (R, A) each."""


class Highest:
    """Identification of the most accurate arms, or of the highest error rates."""

    sign = 1

    def expected(self, arms: Arms, theta: Floats) -> Floats:
        """Return theta, or its negative where the lowest are sought."""
        return self.sign * theta

    def moments(self, arms: Arms) -> tuple[Floats, Floats]:
        """Return the moments of that."""
        return self.sign * arms.posterior.mean, np.sqrt(arms.posterior.variance)


class Lowest(Highest):
    """Identification of the least accurate arms: the lower the success rate, the better."""

    sign = -1


@dataclass(frozen=True, eq=False)
class LeastCalibrated:
    """Identification of the arms with the largest expected calibration error.

    Attributes
    ----------
    confidence : (A,) mean score of each arm's rows, or (A, B) of the rows of each of its bins.
    weight : (A, B) share of each arm's rows in each bin, over which the error is summed; without
        it an arm is a single bin.
    """

    confidence: Floats
    weight: Floats | None = None

    def expected(self, arms: Any, theta: Floats) -> Floats:
        """Return the sum over the bins of weight |theta - confidence|, (R, A)."""
        return self._sum(np.abs(theta - self.confidence))

    def moments(self, arms: Any) -> tuple[Floats, Floats]:
        """Return the posterior mean and sd; E|theta - s| is more than |E theta - s|."""
        posterior, score = arms.posterior, self.confidence
        distance = posterior.absolute_error(score)
        square = posterior.variance + (posterior.mean - score) ** 2
        variance = np.maximum(square - distance**2, 0)
        return self._sum(distance), np.sqrt(self._sum(variance, power=2))

    def _sum(self, values: Floats, *, power: int = 1) -> Floats:
        if self.weight is None:
            return values
        return (self.weight**power * values).sum(axis=-1)


class _LinearReward:
    """A reward that pays something for a success and something for a failure."""

    pays: Callable[[BetaArms], tuple[Floats, Floats]]

    def expected(self, arms: BetaArms, theta: Floats) -> Floats:
        """Return the reward, (R, A), were the success rates `theta`; it may be negative."""
        success, failure = self.pays(arms)
        return failure + theta * (success - failure)

    def moments(self, arms: BetaArms) -> tuple[Floats, Floats]:
        """Return the posterior mean and sd of the reward, (R, A) each."""
        success, failure = self.pays(arms)
        slope, posterior = success - failure, arms.posterior
        return failure + posterior.mean * slope, np.abs(slope) * np.sqrt(posterior.variance)


@dataclass(frozen=True, eq=False)
class Estimation(_LinearReward):
    """Estimation of every arm's rate: the fall in its posterior variance, weighted by its share.

    That is p (V - theta V(success) - (1 - theta) V(failure)), whose mean is p V / (alpha + beta +
    1).

    Attributes
    ----------
    share : (A,) share of the pool's rows in each arm, the p_g of the weighted squared error.
    """

    share: Floats

    def pays(self, arms: BetaArms) -> tuple[Floats, Floats]:
        """Return the fall of the variance after a success, and after a failure.

        The variance of Beta(a, b) is a b / ((a + b)^2 (a + b + 1)).
        """
        a, b = arms.posterior.successes, arms.posterior.failures
        strength, variance = a + b, arms.posterior.variance
        scale = 1 / ((strength + 1) ** 2 * (strength + 2))
        after_success, after_failure = (a + 1) * b * scale, a * (b + 1) * scale
        return self.share * (variance - after_success), self.share * (variance - after_failure)


_SPREAD = 8.0  # standard deviations of a posterior that are integrated over
# Errors stay under 1e-5, and under 1e-3 after the first failure of an arm with a score of 0.99.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)  # for each of the two directions
_NODES, _WEIGHTS = (_NODES + 1) / 2, _WEIGHTS / 2


@dataclass(frozen=True)
class ComparisonReward(_LinearReward):
    """Comparison of two arms under a region of practical equivalence; needs A = 2.

    The reward is the expected gain of the most probable region.
    """

    margin: float = 0.05

    def regions(self, arms: BetaArms) -> Floats:
        """Return the mass of the regions first larger, equivalent, second larger: (R, 3)."""
        return self._masses(arms.posterior)[..., 0, :]

    def pays(self, arms: BetaArms) -> tuple[Floats, Floats]:
        """Return the gain of the most probable region after a success, and after a failure."""
        best = self._masses(arms.posterior).max(axis=-1)
        return best[..., 1:3] - best[..., :1], best[..., 3:] - best[..., :1]

    def _masses(self, posterior: Beta) -> Floats:
        """Return regions' masses now and after each possible label, (..., 5, 3).

        The five are now, a success of either arm, a failure of either arm.
        """
        first, second = (posterior.take((..., i)) for i in (0, 1))
        first_larger = _exceeds(first, second, self.margin)
        # Seen from the second arm, the labels of the arms change places.
        second_larger = _exceeds(second, first, self.margin)[..., [0, 2, 1, 4, 3]]
        neither = np.maximum(1 - first_larger - second_larger, 0)
        return np.stack([first_larger, neither, second_larger], axis=-1)


def _exceeds(high: Beta, low: Beta, margin: float) -> Floats:
    """Return P(high > low + margin) now, and after a success or failure of either, (..., 5).

    An integral over the higher arm's density of the lower one's distribution function. One label
    more multiplies a Beta density by x / mean or by (1 - x) / (1 - mean), and adds or takes a
    density's multiple from a distribution function, so that one evaluation serves all five.
    """
    x, mass = _quadrature(high, margin)
    won, lost = low.successes[..., None], low.failures[..., None]
    y = x - margin
    below = betainc(won, lost, y)
    density = np.exp(won * np.log(y) + lost * np.log1p(-y) - betaln(won, lost))
    of_now, of_density = mass * below, mass * density
    now, slope = of_now.sum(axis=-1), of_density.sum(axis=-1)
    success = (of_now * x).sum(axis=-1) / high.mean
    failure = (now - success * high.mean) / (1 - high.mean)
    values = (now, success, now - slope / low.successes, failure, now + slope / low.failures)
    return np.stack(values, axis=-1)


def _quadrature(beta: Beta, lowest: float) -> tuple[Floats, Floats]:
    """Return nodes above `lowest`, and the mass of the Beta distribution each stands for.

    Gauss-Legendre in (1 - x)^p, with p so that a density that is singular at 1, as that of an
    arm without a failure is, becomes smooth.
    """
    won, lost = beta.successes[..., None], beta.failures[..., None]
    # The ends of the range hold for the posteriors after one more label, too.
    ends = [Beta(won + 1, lost), Beta(won, lost + 1)]
    right, left = (1 - end.mean for end in ends)
    reach_right, reach_left = (_SPREAD * np.sqrt(end.variance) for end in ends)
    power = np.where(lost < 2, lost, 1.0)
    start = np.maximum(right - reach_right, 0) ** power
    length = np.minimum(left + reach_left, 1 - lowest) ** power - start
    inside = start + np.maximum(length, 0) * _NODES
    log_rest = np.log(np.maximum(inside, np.finfo(float).tiny)) / power
    x = np.maximum(-np.expm1(log_rest), lowest + 1e-15)
    log_density = (won - 1) * np.log(x) + (lost - power) * log_rest - betaln(won, lost)
    return x, np.exp(log_density) / power * np.maximum(length, 0) * _WEIGHTS


# Under any gain, which is a difference of probabilities.
_OTHERS = -2.0


@dataclass(frozen=True)
class WidestGap:
    """Comparison of the two arms that are furthest apart, whichever they may be.

    Which they are is itself unknown: a strategy that draws the rates draws the pair, too. Of that
    pair, the reward is that of `ComparisonReward`; other arms have less than any gain.
    """

    margin: float = 0.05

    def expected(self, arms: BetaArms, theta: Floats) -> Floats:
        """Return the expected gain, (R, A), if these rates tell which arms are furthest apart."""
        pair = _furthest(theta)
        of_pair = np.take_along_axis(theta, pair, axis=1)
        gain = ComparisonReward(self.margin).expected(_arms_of_pair(arms, pair), of_pair)
        return _spread(gain, pair, theta.shape, _OTHERS)

    def moments(self, arms: BetaArms) -> tuple[Floats, Floats]:
        """Return mean and sd of the gain, (R, A) each, for the arms whose means are furthest."""
        pair, shape = _furthest(arms.posterior.mean), arms.unlabelled.shape
        mean, sd = ComparisonReward(self.margin).moments(_arms_of_pair(arms, pair))
        return _spread(mean, pair, shape, _OTHERS), _spread(sd, pair, shape, 0.0)


@dataclass(frozen=True, eq=False)
class LeastKnown:
    """The fall in the variance of arms' means, of all of them or of the two furthest apart.

    Attributes
    ----------
    share : (A,) what the fall of each arm counts.
    furthest : whether only the two arms that are furthest apart have any.
    """

    share: Floats
    furthest: bool = False

    def expected(self, arms: BetaArms, theta: Floats) -> Floats:
        """Return the fall, (R, A), if these means tell which arms are furthest apart."""
        fall: Floats = self.share * arms.posterior.variance / (arms.posterior.strength + 1)
        if not self.furthest:
            return fall
        pair = _furthest(theta)
        return _spread(np.take_along_axis(fall, pair, axis=1), pair, theta.shape, _OTHERS)

    def moments(self, arms: BetaArms) -> tuple[Floats, Floats]:
        """Return the fall that the arms' means would give if they were certain."""
        fall = self.expected(arms, arms.posterior.mean)
        return fall, np.zeros_like(fall)


def _furthest(rates: Floats) -> Rows:
    """Return the arms of the lowest and the highest rate, (R, 2), never the same one twice."""
    return np.argsort(rates, axis=1, kind="stable")[:, [0, -1]]


def _arms_of_pair(arms: BetaArms, pair: Rows) -> BetaArms:
    return arms.take((np.arange(len(pair))[:, None], pair))


def _spread(values: Floats, pair: Rows, shape: tuple[int, ...], fill: float) -> Floats:
    full = np.full(shape, fill)
    np.put_along_axis(full, pair, values, axis=1)
    return full


# Strategies: which arm's row to label next, given the arms and the reward of a label.
#
# Every strategy takes the arms, a reward, and a generator, and returns (R, m) arms, m = 1 unless
# it is asked for several plays at once. An arm without unlabelled rows is never chosen; where
# fewer than m arms have unlabelled rows, -1 stands for the others.

Strategy = Callable[..., Codes]  # of arms, a reward and a generator
_REDRAWS = 20
_LEADER = 0.5  # how often top-two labels the arm that leads
_EXPLORED = 0.1  # how often epsilon-greedy labels any arm
_WIDTH, _UPPER = 1.0, 0.975  # standard deviations and quantile of upper confidence bounds


def random_row(arms: Arms, reward: Reward, generator: Generator) -> Codes:
    """Return the arm of a row drawn from all unlabelled ones: what labelling at random does."""
    cumulative = np.cumsum(arms.unlabelled, axis=1)
    drawn = generator.random((len(cumulative), 1)) * cumulative[:, -1:]
    return _or_none(arms, (cumulative <= drawn).sum(axis=1, keepdims=True))


def _random_arm(arms: Arms, reward: Reward, generator: Generator, *, plays: int = 1) -> Codes:
    """Return arms drawn from those with unlabelled rows, all equally likely."""
    return _largest(generator.random(arms.unlabelled.shape), arms, plays=plays)


def thompson(arms: Arms, reward: Reward, generator: Generator, *, plays: int = 1) -> Codes:
    """Return the arms of the largest rewards under one posterior draw.

    Thompson (1933); of several plays Komiyama et al. (2015).
    """
    return _largest(reward.expected(arms, arms.draw(generator)), arms, plays=plays)


def top_two(arms: Arms, reward: Reward, generator: Generator) -> Codes:
    """Return Thompson's arm with probability 1/2, and otherwise its challenger (Russo 2016).

    The challenger is the first different arm that further draws give; where twenty draws give
    the same arm, it is the second best of the last.
    """
    chosen = thompson(arms, reward, generator)[:, 0]
    challenged = (arms.unlabelled > 0).sum(axis=1) > 1
    challenged &= generator.random(len(chosen)) >= _LEADER
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


def epsilon_greedy(arms: Arms, reward: Reward, generator: Generator, *, plays: int = 1) -> Codes:
    """Return the arms of the largest mean rewards, or in a tenth of cases any arms."""
    greedy = _largest(reward.moments(arms)[0], arms, generator, plays=plays)
    any_arm = _random_arm(arms, reward, generator, plays=plays)
    return np.where(generator.random((len(greedy), 1)) < _EXPLORED, any_arm, greedy)


def _bayesian_ucb(arms: Arms, reward: Reward, generator: Generator, *, plays: int = 1) -> Codes:
    """Return the arms of the largest mean rewards plus a posterior standard deviation."""
    mean, sd = reward.moments(arms)
    return _largest(mean + _WIDTH * sd, arms, generator, plays=plays)


def bayesian_ucb_quantile(
    arms: Arms, reward: Reward, generator: Generator, *, draws: int = 400, plays: int = 1
) -> Codes:
    """Return the arms of the largest upper quantiles of the reward's posterior.

    Parameters
    ----------
    arms, reward, generator, plays : as in :func:`choose`.
    draws : the number of posterior draws whose quantile is taken, which serves any reward.

    Notes
    -----
    Kaufmann, Cappe and Garivier (2012), "On Bayesian upper confidence bounds for bandit problems".
    """
    replications = len(arms.unlabelled)
    many = arms.take(np.repeat(np.arange(replications), draws))
    values = reward.expected(many, many.draw(generator)).reshape(replications, draws, -1)
    # A reward may be minus infinity, between which there is nothing to interpolate.
    upper = np.quantile(values, _UPPER, axis=1, method="higher")
    return _largest(upper, arms, generator, plays=plays)


STRATEGIES: Mapping[str, Strategy] = {
    "random": random_row,
    "random_arm": _random_arm,
    "thompson": thompson,
    "top_two": top_two,
    "epsilon_greedy": epsilon_greedy,
    "bayesian_ucb": _bayesian_ucb,
    "bayesian_ucb_quantile": bayesian_ucb_quantile,
}
_SEVERAL = STRATEGIES.keys() - {"random", "top_two"}  # that choose several arms at once


def choose(
    strategy: str, arms: Arms, reward: Reward, generator: Generator, *, plays: int = 1
) -> Codes:
    """Return the arms to label next, (R, m) by a strategy's name.

    Parameters
    ----------
    plays : m, for strategies that choose several arms at once; the others choose one.

    Raises
    ------
    UserError : an unknown strategy.
    """
    check_choice("strategy", strategy, STRATEGIES)
    several = {"plays": plays} if strategy in _SEVERAL else {}
    return STRATEGIES[strategy](arms, reward, generator, **several)


def _available(values: Floats, arms: Arms) -> Floats:
    """Return the values of arms, minus infinity where an arm has no unlabelled row."""
    return np.where(arms.unlabelled > 0, values, -np.inf)


def _largest(
    values: Floats, arms: Arms, generator: Generator | None = None, *, plays: int = 1
) -> Codes:
    """Return the arms of the largest values, (R, m); ties at random, if a generator is given."""
    values = _available(values, arms)
    if plays > 1:
        ties = np.zeros(values.shape) if generator is None else generator.random(values.shape)
        order = np.lexsort((ties, -values))[:, :plays]
        return np.where(np.isfinite(np.take_along_axis(values, order, axis=1)), order, -1)
    if generator is not None:
        tied = values == values.max(axis=1, keepdims=True)
        values = np.where(tied & (arms.unlabelled > 0), generator.random(values.shape), -np.inf)
    return _or_none(arms, values.argmax(axis=1)[:, None])


def _or_none(arms: Arms, chosen: Codes) -> Codes:
    """Return the chosen arms (R, 1); -1 where no arm has an unlabelled row."""
    left = arms.unlabelled.max(axis=1, keepdims=True) > 0
    return np.where(left, chosen, -1)


def next_arms(
    arms: Arms,
    reward: Reward,
    strategy: str,
    generator: Generator,
    *,
    labels: int,
    given: Codes | None = None,
    least_share: float = 0.0,
) -> Codes:
    """Return the arms of the next labels, chosen before any of them is known, (at most labels,).

    A row is chosen with what is known now, and counts as used up for the next choice: with
    Thompson's draws the arms spread as the posterior does, so that a sitting is not spent on one
    arm (batched Thompson sampling, Kandasamy et al. 2018).

    Parameters
    ----------
    arms, reward, strategy, generator : as in :func:`choose`; the arms of one replication, R = 1.
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
            arm = int(choose(strategy, remaining, reward, generator)[0, 0])
        remaining.unlabelled[0, arm] -= 1
        n_labels[arm] += 1
        chosen.append(arm)
    return np.array(chosen, np.int64)
