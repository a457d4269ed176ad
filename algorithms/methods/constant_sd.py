"""A plain model with the same standard deviation for everyone: what other methods must beat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairbench.components.algorithms.fitters import constant_sd
from fairbench.components.algorithms.methods.normal_nll import normal_predictions
from fairbench.core.errors import check_minimum
from fairbench.data.dataset import Task
from fairbench.experiments.contracts import REGRESSION, Capabilities, Method, RawOutputs


@dataclass(frozen=True)
class ConstantSD(Method):
    """The standard deviation of residuals out of `folds` folds of the training rows."""

    folds: int = 5

    capabilities = Capabilities(tasks=REGRESSION)

    def __post_init__(self) -> None:
        """Refuse a single fold."""
        check_minimum("method.folds", self.folds, 2)

    @property
    def fitter(self) -> constant_sd.ConstantSD:
        """A fit to all rows, and one without each fold."""
        return constant_sd.ConstantSD(self.folds)

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return mean and standard deviation."""
        return normal_predictions(raw)
