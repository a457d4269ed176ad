"""A bag read by its mean and its members' disagreement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from algorithms.fitters.bag import Bag
from fairbench.checks import check_minimum
from fairbench.contracts import RawOutputs
from fairbench.data import Dataset, Task


@dataclass(frozen=True)
class Ensemble:
    """Mean of the members; uncertainty is their population standard deviation."""

    members: int = 10

    def __post_init__(self) -> None:
        """Refuse an empty bag."""
        check_minimum("method.members", self.members, 1)

    @property
    def fitter(self) -> Bag:
        """One bag serves the three ensemble readings."""
        return Bag(self.members)

    def incompatible(self, dataset: Dataset) -> str | None:
        """Every data set will do."""
        return None

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return mean and disagreement of the members."""
        members = raw["score"] if task is Task.BINARY else raw["mean"]
        mean, disagreement = members.mean(axis=1), members.std(axis=1)
        if task is Task.BINARY:
            return {"prediction": mean > 0.5, "score": mean, "uncertainty": disagreement}
        return {"prediction": mean, "mean": mean, "uncertainty": disagreement}
