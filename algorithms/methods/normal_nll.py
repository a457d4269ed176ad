"""A model of mean and standard deviation, fitted by the likelihood of a normal label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from algorithms.fitters.single import Single
from algorithms.methods.normal import normal_predictions
from algorithms.normal_losses import NormalNLL as Loss
from fairbench.data.dataset import Task
from fairbench.experiments.contracts import REGRESSION, Capabilities, Method, RawOutputs


@dataclass(frozen=True)
class NormalNLL(Method):
    """Normal negative log-likelihood."""

    capabilities = Capabilities(tasks=REGRESSION)
    fitter = Single(Loss())

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return mean and standard deviation."""
        return normal_predictions(raw)
