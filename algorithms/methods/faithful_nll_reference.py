"""Faithful NLL as the reference implementation of FairlyUncertain fits it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from algorithms.fitters.single import Single
from algorithms.methods.normal import normal_predictions
from algorithms.methods.regression_only import regression_only
from algorithms.reference_losses import FaithfulNLLReference as Loss
from fairbench.data.dataset import Dataset, Task
from fairbench.experiments.contracts import RawOutputs


@dataclass(frozen=True)
class FaithfulNLLReference:
    """What the published tables call Faithful NLL; its sds can be NaN, zero or negative."""

    fitter = Single(Loss())
    keep_invalid = True

    def incompatible(self, dataset: Dataset) -> str | None:
        """Refuse binary targets."""
        return regression_only("faithful_nll_reference", dataset)

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return mean and standard deviation."""
        return normal_predictions(raw)
