"""The expected reward of a label: how much it would teach (Ji et al., 2021, AAAI, section 4).

A reward is a function of the arms and of success rates theta, drawn or assumed. Each one pays
something for a success and something for a failure, so that its expectation is linear in theta;
its posterior mean and standard deviation follow from those of theta. The exceptions are the
calibration error, a function of theta itself, and what is of several outcomes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaln

from fairbench.core.arrays import Floats
from fairbench.inference.active.arms import BetaArms, BinnedArms, DirichletArms, NormalArms
from fairbench.inference.beta import Beta


class Reward(Protocol):
    """The expected reward of a label, arm by arm."""

    def expected(self, arms: Any, theta: Floats) -> Floats:
        """Return the reward, (R, A), were the arms' parameters `theta`."""

    def moments(self, arms: Any) -> tuple[Floats, Floats]:
        """Return the posterior mean and standard deviation of the reward, (R, A) each."""


@dataclass(frozen=True)
class Lowest:
    """Identification of the least accurate arms: the lower the success rate, the better."""

    def expected(self, arms: BetaArms | NormalArms, theta: Floats) -> Floats:
        """Return the negative of theta."""
        return -theta

    def moments(self, arms: BetaArms | NormalArms) -> tuple[Floats, Floats]:
        """Return the moments of the negative of theta."""
        return -arms.posterior.mean, np.sqrt(arms.posterior.variance)


@dataclass(frozen=True)
class Highest:
    """Identification of the most accurate arms, or of the highest error rates."""

    def expected(self, arms: BetaArms | NormalArms, theta: Floats) -> Floats:
        """Return theta."""
        return theta

    def moments(self, arms: BetaArms | NormalArms) -> tuple[Floats, Floats]:
        """Return the moments of theta."""
        return arms.posterior.mean, np.sqrt(arms.posterior.variance)


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

    def expected(self, arms: BetaArms | BinnedArms, theta: Floats) -> Floats:
        """Return the sum over the bins of weight |theta - confidence|, (R, A)."""
        return self._sum(np.abs(theta - self.confidence))

    def moments(self, arms: BetaArms | BinnedArms) -> tuple[Floats, Floats]:
        """Return the posterior mean and sd; E|theta - s| is more than |E theta - s|."""
        posterior, score = arms.posterior, self.confidence
        distance = posterior.absolute_error(score)
        square = posterior.variance + (posterior.mean - score) ** 2
        variance = np.maximum(square - distance**2, 0)
        return self._sum(distance), np.sqrt(self._sum(variance, power=2))

    def _sum(self, values: Floats, *, power: int = 1) -> Floats:
        if self.weight is None:
            return values
        total: Floats = (self.weight**power * values).sum(axis=-1)
        return total


@dataclass(frozen=True, eq=False)
class MostCostly:
    """Identification of the arms whose rows cost most.

    Attributes
    ----------
    cost : (A, C) cost of each outcome of each arm's rows.
    """

    cost: Floats

    def expected(self, arms: DirichletArms, theta: Floats) -> Floats:
        """Return the expected cost under (R, A, C) outcome probabilities."""
        total: Floats = (self.cost * theta).sum(axis=-1)
        return total

    def moments(self, arms: DirichletArms) -> tuple[Floats, Floats]:
        """Return the moments of the expected cost under the Dirichlet posterior."""
        strength = arms.alpha.sum(axis=-1)
        share = arms.alpha / strength[..., None]
        mean = (self.cost * share).sum(axis=-1)
        square = (self.cost**2 * share).sum(axis=-1)
        return mean, np.sqrt(np.maximum(square - mean**2, 0) / (strength + 1))


@dataclass(frozen=True, eq=False)
class Estimation:
    """Estimation of every arm's rate: the fall in its posterior variance, weighted by its share.

    Attributes
    ----------
    share : (A,) share of the pool's rows in each arm, the p_g of the weighted squared error.
    """

    share: Floats

    def expected(self, arms: BetaArms, theta: Floats) -> Floats:
        """Return p (V - theta V(success) - (1 - theta) V(failure)); may be negative."""
        success, failure = self._falls(arms)
        return failure + theta * (success - failure)

    def moments(self, arms: BetaArms) -> tuple[Floats, Floats]:
        """Return the moments; the mean is p V / (alpha + beta + 1)."""
        return linear_moments(arms, *self._falls(arms))

    def _falls(self, arms: BetaArms) -> tuple[Floats, Floats]:
        """Return the fall of the variance after a success, and after a failure.

        The variance of Beta(a, b) is a b / ((a + b)^2 (a + b + 1)).
        """
        a, b = arms.posterior.successes, arms.posterior.failures
        strength, variance = a + b, arms.posterior.variance
        scale = 1 / ((strength + 1) ** 2 * (strength + 2))
        after_success, after_failure = (a + 1) * b * scale, a * (b + 1) * scale
        return self.share * (variance - after_success), self.share * (variance - after_failure)


@dataclass(frozen=True, eq=False)
class OutcomeEstimation:
    """Estimation of every arm's outcome probabilities: the fall in their summed variance.

    With arms for predicted classes and true classes for outcomes, it estimates a confusion matrix.

    Attributes
    ----------
    share : (A,) share of the pool's rows in each arm, the weight of its squared error.
    """

    share: Floats

    def expected(self, arms: DirichletArms, theta: Floats) -> Floats:
        """Return p (V - sum_j theta_j V(outcome j)) under (R, A, C) outcome probabilities."""
        return self._fall(arms, (theta * arms.alpha).sum(axis=-1))

    def moments(self, arms: DirichletArms) -> tuple[Floats, Floats]:
        """Return the moments; the mean is p V / (strength + 1)."""
        alpha = arms.alpha
        strength = alpha.sum(axis=-1)
        square = (alpha**2).sum(axis=-1)
        variance = (alpha**3).sum(axis=-1) / strength - (square / strength) ** 2
        sd = np.sqrt(np.maximum(variance, 0) / (strength + 1))
        slope = 2 * self.share / ((strength + 1) ** 2 * (strength + 2))
        return self._fall(arms, square / strength), slope * sd

    def _fall(self, arms: DirichletArms, seen: Floats) -> Floats:
        """Return the fall where `seen` is the expected pseudo-count of the next outcome."""
        strength, square = arms.alpha.sum(axis=-1), (arms.alpha**2).sum(axis=-1)
        now = (1 - square / strength**2) / (strength + 1)
        after = (1 - (square + 2 * seen + 1) / (strength + 1) ** 2) / (strength + 2)
        fall: Floats = self.share * (now - after)
        return fall


def linear_moments(arms: BetaArms, success: Floats, failure: Floats) -> tuple[Floats, Floats]:
    """Return mean and sd of a reward that pays (R, A) for a success and (R, A) for a failure."""
    slope = success - failure
    return failure + arms.posterior.mean * slope, np.abs(slope) * np.sqrt(arms.posterior.variance)


_SPREAD = 8.0  # standard deviations of a posterior that are integrated over
# Errors stay under 1e-5, and under 1e-3 after the first failure of an arm with a score of 0.99.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)  # for each of the two directions
_NODES, _WEIGHTS = (_NODES + 1) / 2, _WEIGHTS / 2


@dataclass(frozen=True)
class ComparisonReward:
    """Comparison of two arms under a region of practical equivalence; needs A = 2."""

    margin: float = 0.05

    def expected(self, arms: BetaArms, theta: Floats) -> Floats:
        """Return the expected gain of the most probable region, (R, 2)."""
        success, failure = self._gains(arms)
        return failure + theta * (success - failure)

    def moments(self, arms: BetaArms) -> tuple[Floats, Floats]:
        """Return the posterior mean and sd of the gain, (R, 2) each."""
        return linear_moments(arms, *self._gains(arms))

    def regions(self, arms: BetaArms) -> Floats:
        """Return the mass of the regions first larger, equivalent, second larger: (R, 3)."""
        return self._masses(arms.posterior)[..., 0, :]

    def _gains(self, arms: BetaArms) -> tuple[Floats, Floats]:
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
    mass: Floats = np.exp(log_density) / power * np.maximum(length, 0) * _WEIGHTS
    return x, mass


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
        gain = self._comparison.expected(
            _arms_of_pair(arms, pair), np.take_along_axis(theta, pair, axis=1)
        )
        return _spread(gain, pair, theta.shape, _OTHERS)

    def moments(self, arms: BetaArms) -> tuple[Floats, Floats]:
        """Return mean and sd of the gain, (R, A) each, for the arms whose means are furthest."""
        pair = _furthest(arms.posterior.mean)
        mean, sd = self._comparison.moments(_arms_of_pair(arms, pair))
        shape = arms.unlabelled.shape
        return _spread(mean, pair, shape, _OTHERS), _spread(sd, pair, shape, 0.0)

    @property
    def _comparison(self) -> ComparisonReward:
        return ComparisonReward(self.margin)


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

    def expected(self, arms: NormalArms, theta: Floats) -> Floats:
        """Return the fall, (R, A), if these means tell which arms are furthest apart."""
        fall: Floats = self.share * arms.posterior.variance / (arms.posterior.strength + 1)
        if not self.furthest:
            return fall
        pair = _furthest(theta)
        return _spread(np.take_along_axis(fall, pair, axis=1), pair, theta.shape, _OTHERS)

    def moments(self, arms: NormalArms) -> tuple[Floats, Floats]:
        """Return the fall that the arms' means would give if they were certain."""
        fall = self.expected(arms, arms.posterior.mean)
        return fall, np.zeros_like(fall)


def _furthest(rates: Floats) -> NDArray[np.int64]:
    """Return the arms of the lowest and the highest rate, (R, 2), never the same one twice."""
    order = np.argsort(rates, axis=1, kind="stable")
    return order[:, [0, -1]]


def _arms_of_pair(arms: BetaArms, pair: NDArray[np.int64]) -> BetaArms:
    won, lost = (
        np.take_along_axis(array, pair, axis=1)
        for array in (arms.posterior.successes, arms.posterior.failures)
    )
    return BetaArms(Beta(won, lost), np.take_along_axis(arms.unlabelled, pair, axis=1))


def _spread(values: Floats, pair: NDArray[np.int64], shape: tuple[int, ...], fill: float) -> Floats:
    full = np.full(shape, fill)
    np.put_along_axis(full, pair, values, axis=1)
    return full
