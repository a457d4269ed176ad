"""Likelihood weighted by the variance to the power beta (Seitzer et al. 2022)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from algorithms.fitters.single import Single
from algorithms.methods.normal import normal_predictions
from algorithms.normal_losses import BetaNLL as Loss
from fairbench.core.checks import check_minimum
from fairbench.data.dataset import Task
from fairbench.experiments.contracts import REGRESSION, Capabilities, Method, RawOutputs


@dataclass(frozen=True)
class BetaNLL(Method):
    """Between the likelihood (`beta` = 0) and squared error for the mean (1)."""

    beta: float = 0.5

    capabilities = Capabilities(tasks=REGRESSION)

    def __post_init__(self) -> None:
        """Refuse a negative power."""
        check_minimum("method.beta", self.beta, 0)

    @property
    def fitter(self) -> Single:
        """One fit of the weighted likelihood."""
        return Single(Loss(self.beta))

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return mean and standard deviation."""
        return normal_predictions(raw)
