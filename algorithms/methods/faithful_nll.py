"""Mean by squared error and standard deviation by likelihood (Stirn et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from algorithms.fitters.single import Single
from algorithms.methods.normal import normal_predictions
from algorithms.normal_losses import FaithfulNLL as Loss
from fairbench.data.dataset import Task
from fairbench.experiments.contracts import REGRESSION, Capabilities, Method, RawOutputs


@dataclass(frozen=True)
class FaithfulNLL(Method):
    """The mean of a plain model, and a standard deviation beside it."""

    capabilities = Capabilities(tasks=REGRESSION)
    fitter = Single(Loss())

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return mean and standard deviation."""
        return normal_predictions(raw)
