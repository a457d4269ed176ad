"""A plain model whose uncertainty is drawn at random: the least a method must beat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairbench.components.algorithms.fitters.single import Single
from fairbench.components.algorithms.methods.baseline import point_predictions
from fairbench.data.dataset import Task
from fairbench.experiments.contracts import ANY_TASK, Capabilities, Method, RawOutputs


@dataclass(frozen=True)
class Random(Method):
    """Uncertainty uniform on [0, 1/2], as in FairlyUncertain."""

    fitter = Single()
    capabilities = Capabilities(tasks=ANY_TASK)

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return the baseline's predictions with random uncertainty."""
        predictions = point_predictions(raw)
        return {**predictions, "uncertainty": rng.uniform(0, 0.5, len(predictions["prediction"]))}
