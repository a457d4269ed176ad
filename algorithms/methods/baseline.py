"""A plain model: its predictions, and no uncertainty beyond the probability it gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from algorithms.fitters.single import Single
from fairbench.data.dataset import Task
from fairbench.experiments.contracts import Method, RawOutputs


@dataclass(frozen=True)
class Baseline(Method):
    """Predictions without an uncertainty: what every other method is compared with."""

    fitter = Single()

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return label and score, or the predicted mean."""
        return point_predictions(raw)


def point_predictions(raw: RawOutputs) -> dict[str, np.ndarray]:
    """Return the prediction columns of one model's raw outputs; a score of exactly 1/2 is 0."""
    if "mean" in raw:
        return {"prediction": raw["mean"], "mean": raw["mean"]}
    if "score" in raw:
        return {"prediction": raw["score"] > 0.5, "score": raw["score"]}
    return {"prediction": raw["prediction"]}
