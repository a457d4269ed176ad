"""Members' distributions averaged; variance split into theirs and that between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from algorithms.fitters import deep_ensemble
from fairbench.checks import check_minimum
from fairbench.contracts import RawOutputs
from fairbench.data import Dataset, Task


@dataclass(frozen=True)
class DeepEnsemble:
    """Lakshminarayanan et al. 2017, with the law of total variance.

    Aleatoric is the mean of the members' variances, epistemic the variance of their means; the
    uncertainty is the root of the sum.
    """

    members: int = 5

    reads_score = True

    def __post_init__(self) -> None:
        """Refuse an ensemble without disagreement."""
        check_minimum("method.members", self.members, 2)

    @property
    def fitter(self) -> deep_ensemble.DeepEnsemble:
        """Members that differ by seed, or by bootstrap where the seed changes nothing."""
        return deep_ensemble.DeepEnsemble(self.members)

    def incompatible(self, dataset: Dataset) -> str | None:
        """Every data set will do."""
        return None

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return the mean distribution, its two variances and the root of their sum."""
        binary = task is Task.BINARY
        means = raw["score"] if binary else raw["mean"]
        variances = means * (1 - means) if binary else raw["sd"] ** 2
        mean, aleatoric, epistemic = means.mean(axis=1), variances.mean(axis=1), means.var(axis=1)
        sd = np.sqrt(aleatoric + epistemic)
        spread = {"sd": sd, "uncertainty": sd, "aleatoric": aleatoric, "epistemic": epistemic}
        if binary:
            return {"prediction": mean > 0.5, "score": mean, **spread}
        return {"prediction": mean, "mean": mean, **spread}
