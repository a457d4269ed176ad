"""TabPFN: a network trained on simulated tables, which is shown the training rows as they are."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairbench.components.algorithms.learners.tabular_networks import DEVICES
from fairbench.core.errors import UserError, check_choice, check_minimum
from fairbench.data.features import Encoding
from fairbench.experiments.contracts import ANY_TASK, Capabilities, Learner, Loss


@dataclass(frozen=True)
class TabPFN(Learner):
    """A tabular foundation model (Hollmann et al. 2025), for those who have its weights.

    `checkpoint` is their file, for labels or for values; nothing is downloaded. `estimators` is
    how many views of the training rows it is shown, whose predictions are averaged. Time grows
    with the square of the rows: data sets of more than `max_rows` are refused. Its predictive
    distribution of a value is read as a mean and a standard deviation.

    Attributes
    ----------
    content : a hash of the file, so that other weights of the same name are another fit.
    """

    checkpoint: str = ""
    estimators: int = 8
    max_rows: int = 10000
    device: str = "cpu"
    content: str = field(init=False, repr=False)

    encoding = Encoding.NATIVE

    def __post_init__(self) -> None:
        """Refuse to go without the weights."""
        check_minimum("learner.estimators", self.estimators, 1)
        check_choice("learner.device", self.device, DEVICES)
        path = Path(self.checkpoint).expanduser()
        if not self.checkpoint:
            raise UserError(
                "learner=tabpfn needs the file of TabPFN's weights, which is not part of "
                "fairbench: learner.checkpoint=FILE"
            )
        if not path.is_file():
            raise UserError(
                f"learner.checkpoint is {self.checkpoint}, and no such file is here: give the "
                "file of TabPFN's weights"
            )
        with path.open("rb") as file:
            object.__setattr__(self, "content", hashlib.file_digest(file, "sha256").hexdigest())

    @property
    def capabilities(self) -> Capabilities:
        """Labels and values, by a package that few have."""
        return Capabilities(
            tasks=ANY_TASK,
            packages=("torch", "tabpfn"),
            requires=("tabpfn",),
            losses=frozenset({"binomial", "softmax", "squared_error", "normal_nll"}),
            seeded=True,
            rows_at_most=(self.max_rows, "learner.max_rows"),
        )

    def estimator(self, loss: Loss, seed: int) -> Any:
        """Return an unfitted estimator."""
        from fairbench.components.algorithms.estimators.tabpfn import TabPFNEstimator

        return TabPFNEstimator(loss, self, seed)
