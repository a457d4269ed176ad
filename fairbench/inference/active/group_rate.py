"""Rates that need both kinds of prediction: arms are the rows of a group with one prediction.

A true positive rate cannot be read off single rows: a row only counts once it turns out positive.
But predictions are known for every row, and a label of any row says how often its prediction is
right in its group. With pi the group's share of positive predictions, p1 = P(y = 1 | predicted 1)
and p0 = P(y = 1 | predicted 0), both Beta,

    accuracy = pi p1 + (1 - pi) (1 - p0)
    true positive rate = pi p1 / (pi p1 + (1 - pi) p0)
    false positive rate = pi (1 - p1) / (pi (1 - p1) + (1 - pi) (1 - p0)).

Arm 2 g holds group g's rows predicted 0, arm 2 g + 1 those predicted 1; a success is a label of 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.inference.active.arms import BetaArms

Floats = NDArray[np.float64]
Rate = Callable[[Floats, Floats, Floats], Floats]


def accuracy(share: Floats, negative: Floats, positive: Floats) -> Floats:
    """Return the accuracy, from pi, p0 and p1."""
    return share * positive + (1 - share) * (1 - negative)


def true_positive_rate(share: Floats, negative: Floats, positive: Floats) -> Floats:
    """Return the true positive rate, from pi, p0 and p1; 0 where there is no positive."""
    return _ratio(share * positive, (1 - share) * negative)


def false_positive_rate(share: Floats, negative: Floats, positive: Floats) -> Floats:
    """Return the false positive rate, from pi, p0 and p1; 0 where there is no negative."""
    return _ratio(share * (1 - positive), (1 - share) * (1 - negative))


def _ratio(part: Floats, rest: Floats) -> Floats:
    whole: Floats = part / np.maximum(part + rest, np.finfo(float).tiny)
    return whole


@dataclass(frozen=True, eq=False)
class LowestRate:
    """Identification of the group with the lowest rate (the highest, with `sign` = 1).

    Attributes
    ----------
    share : (G,) share of positive predictions among each group's rows.
    rate : accuracy, true_positive_rate or false_positive_rate.
    """

    share: Floats
    rate: Rate
    sign: int = -1

    def rates(self, theta: Floats) -> Floats:
        """Return the groups' rates (R, G) under (R, 2 G) shares of label 1 in the arms."""
        return self.rate(self.share, theta[:, 0::2], theta[:, 1::2])

    def expected(self, arms: BetaArms, theta: Floats) -> Floats:
        """Return the rate of each arm's group, at the arm that says more about it."""
        return self._at_arms(arms, self.sign * self.rates(theta))

    def moments(self, arms: BetaArms) -> tuple[Floats, Floats]:
        """Return the rate at the posterior means, and its standard deviation by the delta method.

        The less telling arm of a group has a mean of minus infinity, which no strategy chooses.
        """
        mean = self.sign * self.rates(arms.posterior.mean)
        parts = self._slopes(arms) ** 2 * arms.posterior.variance
        sd = np.sqrt(parts[:, 0::2] + parts[:, 1::2])
        return self._at_arms(arms, mean), np.repeat(sd, 2, axis=1)

    def _at_arms(self, arms: BetaArms, values: Floats) -> Floats:
        fall = self._slopes(arms) ** 2 * arms.posterior.variance / (arms.posterior.strength + 1)
        fall = np.where(arms.unlabelled > 0, fall, -1.0)
        pairs = fall.reshape(len(fall), -1, 2)
        chosen = pairs.argmax(axis=-1)[..., None] == np.arange(2)
        return np.where(chosen.reshape(fall.shape), np.repeat(values, 2, axis=1), -np.inf)

    def _slopes(self, arms: BetaArms) -> Floats:
        """Return the derivative of each group's rate by its two arms, by central differences."""
        mean, step = arms.posterior.mean, 1e-6
        slopes = np.empty_like(mean)
        for which in (0, 1):
            shift = step * (np.arange(mean.shape[1]) % 2 == which)
            change = self.rates(mean + shift) - self.rates(mean - shift)
            slopes[:, which::2] = change / (2 * step)
        return slopes
