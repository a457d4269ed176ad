"""A plain model that predicts 1 above another threshold than one half."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairbench.components.algorithms.fitters.single import Single
from fairbench.core.errors import check_share
from fairbench.data.dataset import Task
from fairbench.experiments.contracts import BINARY, Capabilities, Method, RawOutputs


@dataclass(frozen=True)
class Thresholded(Method):
    """The baseline with a threshold: the same for everyone, so that no group has to be known.

    Its cells are those of the baseline: another threshold fits nothing again.
    """

    threshold: float = 0.5

    fitter = Single()
    capabilities = Capabilities(tasks=BINARY, reads_score=True)

    def __post_init__(self) -> None:
        """Refuse a threshold that decides alike for everyone."""
        check_share("method.threshold", self.threshold)

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return label and score; of a tie the label is 0."""
        return {"prediction": raw["score"] > self.threshold, "score": raw["score"]}
