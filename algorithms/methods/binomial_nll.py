"""The model's own probability: a label drawn with it has the standard deviation sqrt(p (1 - p))."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairbench.components.algorithms.fitters.single import Single
from fairbench.components.algorithms.methods.baseline import label_sd, point_predictions
from fairbench.data.dataset import Task
from fairbench.experiments.contracts import BINARY, MULTICLASS, Capabilities, Method, RawOutputs


@dataclass(frozen=True)
class BinomialNLL(Method):
    """Binomial negative log-likelihood (FairlyUncertain, section 4), of classes the softmax one."""

    fitter = Single()
    capabilities = Capabilities(tasks=BINARY | MULTICLASS, reads_score=True)

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return label, probability and the standard deviation of the label.

        The codes of several classes have none: their uncertainty is that of `label_sd`.
        """
        p = raw["score"]
        if p.ndim > 1:
            return {**point_predictions(raw), "uncertainty": label_sd(p)}
        sd = np.sqrt(p * (1 - p))
        return {**point_predictions(raw), "sd": sd, "uncertainty": sd}
