"""What a label of an arm is worth: the expected reward of Ji et al. (2021, AAAI, section 4).

A reward is a function of the arms and of success rates theta, drawn or assumed. Each one pays
something for a success and something for a failure, so that its expectation is linear in theta;
its posterior mean and standard deviation follow from those of theta. The exceptions are the
calibration gap, a function of theta itself, and the cost, of several outcomes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fairbench.inference.active.arms import BetaArms, DirichletArms

Floats = NDArray[np.float64]


class Reward(Protocol):
    """The expected reward of a label, arm by arm."""

    def expected(self, arms: Any, theta: Floats) -> Floats:
        """Return the reward, (R, A), were the arms' parameters `theta`."""

    def moments(self, arms: Any) -> tuple[Floats, Floats]:
        """Return the posterior mean and standard deviation of the reward, (R, A) each."""


@dataclass(frozen=True)
class Lowest:
    """Identification of the least accurate arms: the lower the success rate, the better."""

    def expected(self, arms: BetaArms, theta: Floats) -> Floats:
        """Return the negative of theta."""
        return -theta

    def moments(self, arms: BetaArms) -> tuple[Floats, Floats]:
        """Return the moments of the negative of theta."""
        return -arms.posterior.mean, np.sqrt(arms.posterior.variance)


@dataclass(frozen=True)
class Highest:
    """Identification of the most accurate arms, or of the highest error rates."""

    def expected(self, arms: BetaArms, theta: Floats) -> Floats:
        """Return theta."""
        return theta

    def moments(self, arms: BetaArms) -> tuple[Floats, Floats]:
        """Return the moments of theta."""
        return arms.posterior.mean, np.sqrt(arms.posterior.variance)


@dataclass(frozen=True, eq=False)
class LeastCalibrated:
    """Identification of the arms whose success rate is furthest from their mean score.

    Attributes
    ----------
    confidence : (A,) mean score of each arm's rows.
    """

    confidence: Floats

    def expected(self, arms: BetaArms, theta: Floats) -> Floats:
        """Return |theta - confidence|."""
        return np.abs(theta - self.confidence)

    def moments(self, arms: BetaArms) -> tuple[Floats, Floats]:
        """Return E|theta - s|, which is more than |E theta - s|, and its standard deviation."""
        posterior, score = arms.posterior, self.confidence
        distance = posterior.absolute_error(score)
        square = posterior.variance + (posterior.mean - score) ** 2
        return distance, np.sqrt(np.maximum(square - distance**2, 0))


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
        won, lost = arms.posterior.successes, arms.posterior.failures
        seen, now = won + lost, arms.posterior.variance
        scale = 1 / ((seen + 1) ** 2 * (seen + 2))  # of the variance after one more label
        success, failure = now - (won + 1) * lost * scale, now - won * (lost + 1) * scale
        return self.share * success, self.share * failure


def linear_moments(arms: BetaArms, success: Floats, failure: Floats) -> tuple[Floats, Floats]:
    """Return mean and sd of a reward that pays (R, A) for a success and (R, A) for a failure."""
    slope = success - failure
    return failure + arms.posterior.mean * slope, np.abs(slope) * np.sqrt(arms.posterior.variance)
