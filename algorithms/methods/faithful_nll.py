"""Mean by squared error and standard deviation by likelihood (Stirn et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from algorithms.fitters.single import Single
from algorithms.methods.normal import normal_predictions
from algorithms.methods.regression_only import regression_only
from algorithms.normal_losses import FaithfulNLL as Loss
from fairbench.data.dataset import Dataset, Task
from fairbench.experiments.contracts import RawOutputs


@dataclass(frozen=True)
class FaithfulNLL:
    """The mean of a plain model, and a standard deviation beside it."""

    fitter = Single(Loss())

    def incompatible(self, dataset: Dataset) -> str | None:
        """Refuse binary targets."""
        return regression_only("faithful_nll", dataset)

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return mean and standard deviation."""
        return normal_predictions(raw)
