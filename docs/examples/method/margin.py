"""A plain model that is the less certain, the nearer its probability is to one half."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairbench.components.algorithms.fitters.single import Single
from fairbench.components.algorithms.methods.baseline import point_predictions
from fairbench.data.dataset import Task
from fairbench.experiments.contracts import BINARY, Capabilities, Method, RawOutputs


@dataclass(frozen=True)
class Margin(Method):
    """The uncertainty is one half where the probability is one half, and 0 where it is 0 or 1."""

    fitter = Single()
    capabilities = Capabilities(tasks=BINARY, reads_score=True)

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return label, score and uncertainty of each row; nothing is fitted here."""
        return {**point_predictions(raw), "uncertainty": 0.5 - np.abs(raw["score"] - 0.5)}
