"""A model of mean and standard deviation, fitted by the likelihood of a normal label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from algorithms.fitters.single import Single
from algorithms.methods.normal import normal_predictions
from algorithms.methods.regression_only import regression_only
from algorithms.normal_losses import NormalNLL as Loss
from fairbench.data.dataset import Dataset, Task
from fairbench.experiments.contracts import RawOutputs


@dataclass(frozen=True)
class NormalNLL:
    """Normal negative log-likelihood."""

    fitter = Single(Loss())

    def incompatible(self, dataset: Dataset) -> str | None:
        """Refuse binary targets."""
        return regression_only("normal_nll", dataset)

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return mean and standard deviation."""
        return normal_predictions(raw)
