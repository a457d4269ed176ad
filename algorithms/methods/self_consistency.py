"""A bag read by how often two of its members disagree (Cooper et al. 2024)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from algorithms.fitters.bag import Bag
from algorithms.methods.decomposed import decomposed
from algorithms.methods.votes import count_votes
from fairbench.core.checks import check_minimum
from fairbench.data.dataset import Task
from fairbench.experiments.contracts import BINARY, Capabilities, Method, RawOutputs


@dataclass(frozen=True)
class SelfConsistency(Method):
    """Majority label; uncertainty is the share of pairs of members that disagree."""

    members: int = 10

    capabilities = Capabilities(tasks=BINARY)

    def __post_init__(self) -> None:
        """Refuse a bag without pairs."""
        check_minimum("method.members", self.members, 2)

    @property
    def fitter(self) -> Bag:
        """One bag serves the three ensemble readings."""
        return Bag(self.members)

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return majority label and 2 k0 k1 / (k (k - 1))."""
        votes = count_votes(raw)
        k = votes.members
        disagreement = 2 * votes.ones * (k - votes.ones) / (k * (k - 1))
        labels = {"prediction": votes.majority, "uncertainty": disagreement}
        return {**labels, **decomposed(raw)}
