"""Predicts the training labels' mean and standard deviation for everyone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairbench.components.algorithms.fitters import marginal
from fairbench.components.algorithms.methods.baseline import label_sd, point_predictions
from fairbench.components.algorithms.methods.normal_nll import normal_predictions
from fairbench.data.dataset import Task
from fairbench.experiments.contracts import ANY_TASK, Capabilities, Method, RawOutputs


@dataclass(frozen=True)
class Marginal(Method):
    """What is known of a label before any feature is seen: the least a method must beat."""

    fitter = marginal.Marginal()
    capabilities = Capabilities(tasks=ANY_TASK)

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return mean and sd, or the base rate and the sd of a label drawn with it."""
        if task is Task.REGRESSION:
            return normal_predictions(raw)
        p = raw["score"]
        if p.ndim > 1:
            return {**point_predictions(raw), "uncertainty": label_sd(p)}
        sd = np.sqrt(p * (1 - p))
        return {**point_predictions(raw), "sd": sd, "uncertainty": sd}
