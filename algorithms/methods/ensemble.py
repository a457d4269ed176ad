"""A bag read by its mean and its members' disagreement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from algorithms.fitters.bag import Bag
from algorithms.methods.decomposed import decomposed
from fairbench.core.checks import check_minimum
from fairbench.data.dataset import Task
from fairbench.experiments.contracts import Method, RawOutputs


@dataclass(frozen=True)
class Ensemble(Method):
    """Mean of the members; uncertainty is their population standard deviation."""

    members: int = 10

    def __post_init__(self) -> None:
        """Refuse an empty bag."""
        check_minimum("method.members", self.members, 1)

    @property
    def fitter(self) -> Bag:
        """One bag serves the three ensemble readings."""
        return Bag(self.members)

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return mean and disagreement of the members; of their labels where they have no score."""
        name = next(each for each in ("score", "prediction", "mean") if each in raw)
        mean, disagreement = raw[name].mean(axis=1), raw[name].std(axis=1)
        if name == "prediction":
            return {"prediction": mean > 0.5, "uncertainty": disagreement}
        if name == "score":
            spread = {"uncertainty": disagreement, **decomposed(raw)}
            return {"prediction": mean > 0.5, "score": mean, **spread}
        spread = {"uncertainty": disagreement, "epistemic": disagreement**2}
        return {"prediction": mean, "mean": mean, **spread}
