"""Members' distributions averaged; variance split into theirs and that between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from algorithms.fitters import deep_ensemble
from algorithms.methods.decomposed import decomposed
from fairbench.core.checks import check_minimum
from fairbench.data.dataset import Task
from fairbench.experiments.contracts import Capabilities, Method, RawOutputs


@dataclass(frozen=True)
class DeepEnsemble(Method):
    """Lakshminarayanan et al. 2017, with the law of total variance.

    Aleatoric is the mean of the members' variances, epistemic the variance of their means, of
    labels summed over the two classes. The uncertainty is the standard deviation of the target.
    """

    members: int = 5

    capabilities = Capabilities(reads_score=True)

    def __post_init__(self) -> None:
        """Refuse an ensemble without disagreement."""
        check_minimum("method.members", self.members, 2)

    @property
    def fitter(self) -> deep_ensemble.DeepEnsemble:
        """Members that differ by seed, or by bootstrap where the seed changes nothing."""
        return deep_ensemble.DeepEnsemble(self.members)

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return the mean distribution, its two variances and its standard deviation."""
        if task is Task.BINARY:
            mean = raw["score"].mean(axis=1)
            sd, variances = np.sqrt(mean * (1 - mean)), decomposed(raw)
            labels = {"prediction": mean > 0.5, "score": mean}
            return {**labels, "sd": sd, "uncertainty": sd, **variances}
        mean, epistemic = raw["mean"].mean(axis=1), raw["mean"].var(axis=1)
        aleatoric = (raw["sd"] ** 2).mean(axis=1)
        sd = np.sqrt(aleatoric + epistemic)
        spread = {"sd": sd, "uncertainty": sd, "aleatoric": aleatoric, "epistemic": epistemic}
        return {"prediction": mean, "mean": mean, **spread}
