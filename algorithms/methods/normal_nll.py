"""Predicts a mean and a standard deviation for each row, fitted as a normal distribution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairbench.components.algorithms.fitters.single import Single
from fairbench.components.algorithms.losses import NORMAL_LOSSES, NormalLoss
from fairbench.core.errors import check_choice, check_minimum
from fairbench.data.dataset import Task
from fairbench.experiments.contracts import REGRESSION, Capabilities, Method, RawOutputs


@dataclass(frozen=True)
class NormalNLL(Method):
    """Fits the `loss` of a normal label that it names; `beta` is an option of beta-NLL.

    The published tables of FairlyUncertain are of the losses that end in ``_reference``, whose
    standard deviations can be NaN, zero or negative.
    """

    loss: str = "normal_nll"
    beta: float = 0.5

    def __post_init__(self) -> None:
        """Refuse an unknown loss and a negative power."""
        check_choice("method.loss", self.loss, NORMAL_LOSSES)
        check_minimum("method.beta", self.beta, 0)

    @property
    def capabilities(self) -> Capabilities:
        """Numeric targets; only the reference is allowed what cannot be."""
        return Capabilities(tasks=REGRESSION, keep_invalid=self.loss.endswith("_reference"))

    @property
    def fitter(self) -> Single:
        """One fit."""
        return Single(NormalLoss(self.loss, self.beta))

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return mean and standard deviation."""
        return normal_predictions(raw)


def normal_predictions(raw: RawOutputs) -> RawOutputs:
    """Return mean and standard deviation; the latter is the uncertainty."""
    mean, sd = raw["mean"], raw["sd"]
    return {"prediction": mean, "mean": mean, "sd": sd, "uncertainty": sd}
