"""What Table 12.1 of Uncertainty Matters is made of: counts, variance ratios, and posteriors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.comparison.settings import Settings
from fairbench.components.papers.uncertainty_matters.algorithms import ALGORITHMS
from fairbench.components.papers.uncertainty_matters.posteriors import FOLDS, Cloud
from fairbench.components.papers.uncertainty_matters.readings import ALONE, RHOS, Reading
from fairbench.core.arrays import Floats
from fairbench.core.seeds import rng


@dataclass(frozen=True, eq=False)
class Measured:
    """What the table is made of, by algorithm.

    Attributes
    ----------
    counts : (B, G, 4) of cross-validations; the same index is the same partition.
    ratios : (R, G, 1) the variance over the reference learner's in each group, of five half-splits
        for each posterior.
    posteriors : how many of the cross-validations give a posterior, R.
    """

    counts: Mapping[str, NDArray[np.int64]]
    ratios: Mapping[str, Floats] = field(default_factory=dict)
    posteriors: int = 20
    draws: int = 10000

    def cvs(self, *names: str) -> int:
        """Return how many cross-validations of the ground truth all of these algorithms have."""
        return min(len(self.counts.get(name, ())) for name in names)

    def effective_fraction(self, name: str, rho: str) -> Floats:
        """Return what a count of an algorithm is worth, a number or (R, G, 1)."""
        settings = Settings(rho=RHOS[rho])
        ratio = self.ratios[name][: self.posteriors] if settings.relative else None
        return settings.shrinkage(FOLDS, ratio)

    def cloud(self, name: str, rho: str, *, predictive: bool = False) -> Cloud:
        """Return the posteriors of an algorithm, each algorithm drawn on its own."""
        worth = self.effective_fraction(name, rho)
        kept = min(self.posteriors, len(self.counts[name]), len(worth) if worth.ndim else 10**9)
        worth = worth[:kept] if worth.ndim else worth
        generator = rng(0, "uncertainty matters", name, rho, int(predictive))
        options: dict[str, Any] = {"draws": self.draws, "predictive": predictive}
        return Cloud.of(self.counts[name][:kept], worth, generator, **options)


def measure(
    reading: Reading = ALONE,
    names: Sequence[str] = tuple(ALGORITHMS),
    *,
    cvs: int | None = None,
    posteriors: int = 20,
    draws: int = 10000,
) -> Measured:
    """Read the packed cross-validations and half-splits of algorithms under a reading.

    Parameters
    ----------
    cvs : at most so many; all that there are if None.
    """
    counts = {name: reading.counts(name)[:cvs] for name in names}
    ratios = {
        name: np.stack([reading.variance_ratio(name, place) for place in range(posteriors)])
        for name in names
    }
    return Measured(counts, ratios, posteriors, draws)
