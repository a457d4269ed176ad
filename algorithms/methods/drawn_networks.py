"""The reading shared by methods whose networks are drawn from a fitted one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from algorithms.fitters.drawn_members import DrawnMembers
from algorithms.methods.deep_ensemble import DeepEnsemble
from fairbench.core.checks import check_minimum
from fairbench.data.dataset import Task
from fairbench.experiments.contracts import Method, RawOutputs


@dataclass(frozen=True)
class DrawnNetworks(Method):
    """Networks drawn from a fitted one; a method says what draws them, and which learners can."""

    members: int = 10

    def __post_init__(self) -> None:
        """Refuse members without disagreement."""
        check_minimum("method.members", self.members, 2)

    @property
    def fitter(self) -> DrawnMembers:
        """One fit, and the networks drawn from it."""
        return DrawnMembers(self.members)

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return the mean distribution and its two variances, as of a deep ensemble."""
        return DeepEnsemble(self.members).read(raw, task, rng)
