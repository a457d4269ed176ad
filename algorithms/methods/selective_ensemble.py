"""A bag read by a sign test on its members' votes (Black, Leino, Fredrikson 2022)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr

from algorithms.fitters.bag import Bag
from algorithms.methods.decomposed import decomposed
from algorithms.methods.votes import count_votes
from fairbench.core.checks import check_minimum
from fairbench.data.dataset import Task
from fairbench.experiments.contracts import BINARY, Capabilities, Method, RawOutputs


@dataclass(frozen=True)
class SelectiveEnsemble(Method):
    """Majority label; uncertainty is the two-sided binomial p-value of the votes at 1/2."""

    members: int = 10

    capabilities = Capabilities(tasks=BINARY)

    def __post_init__(self) -> None:
        """Refuse an empty bag."""
        check_minimum("method.members", self.members, 1)

    @property
    def fitter(self) -> Bag:
        """One bag serves the three ensemble readings."""
        return Bag(self.members)

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return majority label and p-value; a bag of k has only k + 1 of them."""
        votes = count_votes(raw)
        k = votes.members
        fewer = np.minimum(np.arange(k + 1), k - np.arange(k + 1))
        p_values = np.minimum(1, 2 * bdtr(fewer, k, 0.5))
        labels = {"prediction": votes.majority, "uncertainty": p_values[votes.ones]}
        return {**labels, **decomposed(raw)}
