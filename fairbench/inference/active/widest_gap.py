"""Whether any two of many arms differ by more than a margin: the reward of a label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.inference.active.arms import BetaArms
from fairbench.inference.active.comparison_reward import ComparisonReward
from fairbench.inference.beta import Beta

Floats = NDArray[np.float64]
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
        gain = self._comparison.expected(_two(arms, pair), np.take_along_axis(theta, pair, axis=1))
        return _spread(gain, pair, theta.shape, _OTHERS)

    def moments(self, arms: BetaArms) -> tuple[Floats, Floats]:
        """Return mean and sd of the gain, (R, A) each, for the arms whose means are furthest."""
        pair = _furthest(arms.posterior.mean)
        mean, sd = self._comparison.moments(_two(arms, pair))
        shape = arms.unlabelled.shape
        return _spread(mean, pair, shape, _OTHERS), _spread(sd, pair, shape, 0.0)

    @property
    def _comparison(self) -> ComparisonReward:
        return ComparisonReward(self.margin)


def _furthest(rates: Floats) -> NDArray[np.int64]:
    """Return the arms of the lowest and the highest rate, (R, 2), never the same one twice."""
    order = np.argsort(rates, axis=1, kind="stable")
    return order[:, [0, -1]]


def _two(arms: BetaArms, pair: NDArray[np.int64]) -> BetaArms:
    won, lost = (
        np.take_along_axis(each, pair, axis=1)
        for each in (arms.posterior.successes, arms.posterior.failures)
    )
    return BetaArms(Beta(won, lost), np.take_along_axis(arms.unlabelled, pair, axis=1))


def _spread(values: Floats, pair: NDArray[np.int64], shape: tuple[int, ...], rest: float) -> Floats:
    full = np.full(shape, rest)
    np.put_along_axis(full, pair, values, axis=1)
    return full
