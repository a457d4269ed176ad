"""What the tables of Uncertainty Matters are made of: counts, variance ratios, and posteriors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.comparison.settings import Settings
from fairbench.components.papers import CONF
from fairbench.components.papers.uncertainty_matters.algorithms import ALGORITHMS
from fairbench.components.papers.uncertainty_matters.posteriors import FOLDS, Cloud
from fairbench.core.seeds import rng

# The paper's choices of rho -> ours.
RHOS = {
    "rho=1/K": "1/K",
    "rho in [0,1/K]": "average",
    "rho_rel": "relative",
    "rho_rel_up": "relative_up",
}


@dataclass(frozen=True, eq=False)
class Measured:
    """What the tables are made of, by algorithm.

    Attributes
    ----------
    counts : (B, G, 4) of cross-validations; the same index is the same partition.
    joint : pair -> (R, G, 8) joint counts of both on a few cross-validations.
    ratios : the variance over the reference learner's.
    posteriors : how many of the cross-validations give a posterior.
    """

    counts: Mapping[str, NDArray[np.int64]]
    joint: Mapping[tuple[str, str], NDArray[np.int64]] = field(default_factory=dict)
    ratios: Mapping[str, float] = field(default_factory=dict)
    posteriors: int = 20
    draws: int = 10000

    def cvs(self, *names: str) -> int:
        """Return how many cross-validations of the ground truth all of these algorithms have."""
        return min(len(self.counts.get(name, ())) for name in names)

    def effective_fraction(self, name: str, rho: str) -> float | None:
        """Return what a count of an algorithm is worth; None without half-splits."""
        settings = Settings(rho=RHOS[rho])
        if settings.relative and name not in self.ratios:
            return None
        return float(settings.shrinkage(FOLDS, self.ratios.get(name)))

    def cloud(self, name: str, rho: str, *, predictive: bool = False) -> Cloud | None:
        """Return the posteriors of an algorithm, each algorithm drawn on its own."""
        worth = self.effective_fraction(name, rho)
        if worth is None or name not in self.counts:
            return None
        generator = rng(0, "uncertainty matters", name, rho, int(predictive))
        options: dict[str, Any] = {"draws": self.draws, "predictive": predictive}
        return Cloud.of(self.counts[name][: self.posteriors], worth, generator, **options)

    def pair(self, names: tuple[str, str], rho: str) -> tuple[Cloud, Cloud] | None:
        """Return both algorithms' posteriors from their joint tables, at the smaller worth."""
        worths = [self.effective_fraction(name, rho) for name in names]
        if names not in self.joint or None in worths:
            return None
        generator = rng(0, "uncertainty matters", *names, rho)
        worth = min(each for each in worths if each is not None)
        return Cloud.paired(self.joint[names], worth, generator, draws=self.draws)


def measure(pairs: Sequence[tuple[str, str]], results: Path, cvs: int | None = None) -> Measured:
    """Read the cross-validations of each algorithm, and what finished runs add to them.

    Parameters
    ----------
    cvs : at most so many; all that there are if None.

    Notes
    -----
    Cross-validations are the packed ones, or those of the results folder where it has more. So are
    ratios of variances: those of finished half-split runs, and of the packed half-splits without.
    """
    from fairbench.components.papers.uncertainty_matters import packed
    from fairbench.components.papers.uncertainty_matters.stored import (
        joint_counts,
        stored_runs,
        variance_ratios,
    )

    runs = stored_runs(CONF, results)
    counts = {name: packed.most_counts(name, results)[:cvs] for name in ALGORITHMS}
    joint = {
        pair: joint_counts(runs[pair[0]], runs[pair[1]]) for pair in pairs if set(pair) <= {*runs}
    }
    ratios = {name: packed.variance_ratio_of(name) for name in ALGORITHMS}
    return Measured(counts, joint, ratios | variance_ratios(runs, CONF, results))
