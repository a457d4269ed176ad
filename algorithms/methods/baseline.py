"""A plain model: its predictions, and no uncertainty beyond the probability it gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairbench.components.algorithms.fitters.single import Single
from fairbench.data.dataset import Task
from fairbench.experiments.contracts import ANY_TASK, Capabilities, Method, RawOutputs


@dataclass(frozen=True)
class Baseline(Method):
    """Predictions without an uncertainty: what every other method is compared with."""

    fitter = Single()
    capabilities = Capabilities(tasks=ANY_TASK)

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return label and score, or the predicted mean."""
        return point_predictions(raw)


def point_predictions(raw: RawOutputs) -> dict[str, np.ndarray]:
    """Return the prediction columns of one model's raw outputs; of a tie the first class.

    Of three or more classes ``score_0``, ``score_1`` ... are their probabilities.
    """
    if "mean" in raw:
        return {"prediction": raw["mean"], "mean": raw["mean"]}
    if "score" in raw and raw["score"].ndim > 1:
        return class_predictions(raw["score"])
    if "score" in raw:
        return {"prediction": raw["score"] > 0.5, "score": raw["score"]}
    return {"prediction": raw["prediction"]}


def class_predictions(score: np.ndarray) -> dict[str, np.ndarray]:
    """Return the columns of the probabilities (n, C) of three or more classes."""
    return {
        "prediction": score.argmax(axis=1),
        **{f"score_{k}": score[:, k] for k in range(score.shape[1])},
    }


def label_sd(score: np.ndarray) -> np.ndarray:
    """Return sqrt(sum of p (1 - p) / 2) over the classes, (n,): of two that of a label drawn."""
    sd: np.ndarray = np.sqrt((score * (1 - score)).sum(axis=1) / 2)
    return sd
