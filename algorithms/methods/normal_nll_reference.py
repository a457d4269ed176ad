"""Normal NLL as the reference implementation of FairlyUncertain fits it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from algorithms.fitters.single import Single
from algorithms.methods.normal import normal_predictions
from algorithms.methods.regression_only import regression_only
from algorithms.reference_losses import NormalNLLReference as Loss
from fairbench.data.dataset import Dataset, Task
from fairbench.experiments.contracts import RawOutputs


@dataclass(frozen=True)
class NormalNLLReference:
    """What the published tables call Normal NLL; its sds can be NaN, zero or negative."""

    fitter = Single(Loss())
    keep_invalid = True

    def incompatible(self, dataset: Dataset) -> str | None:
        """Refuse binary targets."""
        return regression_only("normal_nll_reference", dataset)

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return mean and standard deviation."""
        return normal_predictions(raw)
