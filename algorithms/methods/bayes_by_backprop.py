"""Weight samples of a Bayesian network, read by their mean and their disagreement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from algorithms.fitters.drawn_members import DrawnMembers
from algorithms.methods.deep_ensemble import DeepEnsemble
from fairbench.checks import check_minimum
from fairbench.contracts import RawOutputs
from fairbench.data import Dataset, Task


@dataclass(frozen=True)
class BayesByBackprop:
    """Networks drawn from a posterior over weights (Blundell et al. 2015, Kuzucu et al. 2024)."""

    members: int = 10

    reads_score = True
    reads_members_by = "weights"
    learners = "learner=bayesian_nn"

    def __post_init__(self) -> None:
        """Refuse members without disagreement."""
        check_minimum("method.members", self.members, 2)

    @property
    def fitter(self) -> DrawnMembers:
        """Networks drawn from the posterior over weights."""
        return DrawnMembers(self.members)

    def incompatible(self, dataset: Dataset) -> str | None:
        """Every data set will do."""
        return None

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return the mean distribution and its two variances, as of a deep ensemble."""
        return DeepEnsemble(self.members).read(raw, task, rng)
