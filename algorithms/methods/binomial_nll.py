"""The model's own probability: a label drawn with it has the standard deviation sqrt(p (1 - p))."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from algorithms.fitters.single import Single
from algorithms.methods.baseline import point_predictions
from fairbench.data.dataset import Task
from fairbench.experiments.contracts import BINARY, Capabilities, Method, RawOutputs


@dataclass(frozen=True)
class BinomialNLL(Method):
    """Binomial negative log-likelihood (FairlyUncertain, section 4)."""

    fitter = Single()
    capabilities = Capabilities(tasks=BINARY, reads_score=True)

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return label, probability and the standard deviation of the label."""
        p = raw["score"]
        sd = np.sqrt(p * (1 - p))
        return {**point_predictions(raw), "sd": sd, "uncertainty": sd}
