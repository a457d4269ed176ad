"""Normal NLL as the reference implementation of FairlyUncertain fits it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from algorithms.fitters.single import Single
from algorithms.methods.normal import normal_predictions
from algorithms.reference_losses import NormalNLLReference as Loss
from fairbench.data.dataset import Task
from fairbench.experiments.contracts import REGRESSION, Capabilities, Method, RawOutputs


@dataclass(frozen=True)
class NormalNLLReference(Method):
    """What the published tables call Normal NLL; its sds can be NaN, zero or negative."""

    fitter = Single(Loss())
    capabilities = Capabilities(tasks=REGRESSION, keep_invalid=True)

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return mean and standard deviation."""
        return normal_predictions(raw)
