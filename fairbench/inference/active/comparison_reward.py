"""Comparison of two arms: how sure a label is expected to make the answer.

The answer is one of three regions: the first arm's rate is larger by more than a margin, smaller by
more than it, or neither. The reward of a label is the expected mass of the most probable region
after it (Ji et al. 2021, AAAI, section 4.3), by quadrature.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaln

from fairbench.inference.active.arms import BetaArms
from fairbench.inference.active.rewards import linear_moments
from fairbench.inference.beta import Beta

Floats = NDArray[np.float64]
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
        first, second = (
            Beta(posterior.successes[..., i], posterior.failures[..., i]) for i in (0, 1)
        )
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
