"""A transformer of sequences in several modalities (the Depression Detector), by torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairbench.core.errors import UserError, check_choice, check_minimum, check_share
from fairbench.data.features import SequenceEncoding
from fairbench.experiments.contracts import ANY_TASK, SEQUENCES, Capabilities, Learner, Loss

_DEVICES = ("cpu", "cuda")


@dataclass(frozen=True)
class SequenceTransformer(Learner):
    """Hyperparameters of the Depression Detector of Yoon et al. (2022), trained by AdamW.

    Each of `modalities` (all by default) has an encoder of `layers` layers of `heads` attention
    heads, whose frames then attend to those of the others; means over the frames go into the last
    layer. A single modality has no others, and is the paper's unimodal detector. `width` is that
    of the vector that stands for a frame.

    A row's frames after `length` are not read (null: as many are read as the longest training row
    has); `cut` says which end that is. What fills up shorter rows is not attended to.

    `validation` of the training rows say when to stop: `patience` epochs after the best. On `cpu`
    the same seed gives the same bits; on `cuda`, an NVIDIA GPU, nobody promises that.
    """

    modalities: Sequence[str] = ()
    length: int | None = None
    cut: str = "end"
    width: int = 16
    layers: int = 1
    heads: int = 2
    dropout: float = 0.1
    epochs: int = 60
    batch_size: int = 64
    learning_rate: float = 0.003
    weight_decay: float = 0.01
    validation: float = 0.15
    patience: int = 8
    device: str = "cpu"

    capabilities = Capabilities(
        tasks=ANY_TASK,
        features=SEQUENCES,
        losses=frozenset(
            {"binomial", "softmax", "squared_error", "normal_nll", "beta_nll", "faithful_nll"}
        ),
        packages=("torch",),
        seeded=True,
    )

    def __post_init__(self) -> None:
        """Refuse what could not be trained."""
        for name in ("width", "layers", "heads", "epochs", "batch_size", "patience"):
            check_minimum(f"learner.{name}", getattr(self, name), 1)
        check_minimum("learner.learning_rate", self.learning_rate, 0)
        check_minimum("learner.weight_decay", self.weight_decay, 0)
        check_share("learner.validation", self.validation)
        check_share("learner.dropout", self.dropout, zero=True)
        check_choice("learner.device", self.device, _DEVICES)
        if self.width % (2 * self.heads):
            raise UserError(
                f"learner.width is {self.width} and learner.heads {self.heads}; the width must be "
                "a multiple of twice the heads"
            )
        if len(set(self.modalities)) < len(self.modalities):
            raise UserError("learner.modalities names one twice")
        _ = self.encoding

    @property
    def encoding(self) -> SequenceEncoding:
        """Standardised frames, as many as are read of a row."""
        return SequenceEncoding(tuple(self.modalities), self.length, self.cut)

    def estimator(self, loss: Loss, seed: int) -> Any:
        """Return an unfitted estimator."""
        from fairbench.components.algorithms.estimators.sequence_transformer import (
            SequenceEstimator,
        )

        return SequenceEstimator(loss, self, seed)
