"""Posteriors of a figure in several groups, and how one more label would change them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fairbench.core.arrays import Floats
from fairbench.inference.beta import Beta, Normal

DRAWS = 2000


@dataclass(frozen=True, eq=False)
class GroupPosterior:
    """The posterior of a figure in each of A groups, which steers what is labelled next.

    Attributes
    ----------
    posterior : (A,) the posterior of each group's figure.
    uniform : (T, A) uniform numbers.
    draws : (T, A) draws of the figures: the quantiles at these numbers.
    """

    posterior: Beta | Normal
    uniform: Floats
    draws: Floats

    @classmethod
    def of(cls, posterior: Beta | Normal, generator: np.random.Generator) -> GroupPosterior:
        """Draw the figures."""
        uniform = generator.random((DRAWS, len(posterior.mean)))
        return cls(posterior, uniform, posterior.quantile(uniform))

    def after(self, group: int, *, up: bool) -> GroupPosterior:
        """Return the posterior after one label of a group that raises its figure, or lowers it.

        Draws are quantiles at the same uniform numbers: only that group's change, and slightly.
        """
        label = np.arange(len(self.posterior.mean)) == group
        posterior = self.posterior.after(label * int(up), label * int(not up))
        draws = self.draws.copy()
        draws[:, group] = posterior.take(group).quantile(self.uniform[:, group])
        return replace(self, posterior=posterior, draws=draws)

    def half_width(self, group: int) -> float:
        """Return half the width of the interval of a group."""
        lower, upper = self.posterior.take(group).interval()
        return float(upper - lower) / 2

    def beyond(self, low: int, high: int, epsilon: float) -> float:
        """Return the probability that one group is above another by more than epsilon."""
        return float((self.draws[:, high] - self.draws[:, low] > epsilon).mean())

    def furthest_apart(self, epsilon: float) -> tuple[int, int]:
        """Return two groups: the second is most probably above the first by more than epsilon."""
        beyond = np.stack(
            [(self.draws - of_group[:, None] > epsilon).mean(axis=0) for of_group in self.draws.T]
        )
        # Where several pairs are as certain, the one furthest apart.
        mean = self.draws.mean(axis=0)
        certain = beyond + 1e-6 * (mean[None, :] - mean[:, None])
        low, high = np.unravel_index(int(certain.argmax()), certain.shape)
        return int(low), int(high)
