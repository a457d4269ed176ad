"""What the networks of today share: how they are trained, and the losses they take."""

from __future__ import annotations

from dataclasses import dataclass

from fairbench.core.errors import check_choice, check_minimum, check_share
from fairbench.data.features import Encoding
from fairbench.experiments.contracts import Learner

LOSSES = frozenset(
    {"binomial", "softmax", "squared_error", "normal_nll", "beta_nll", "faithful_nll"}
)
DEVICES = ("cpu", "cuda")


@dataclass(frozen=True)
class TabularNetworkLearner(Learner):
    """Hyperparameters of a network of a table's columns that AdamW trains.

    Numbers become the normal scores of their ranks among the training rows, categories codes.
    `validation` of the training rows say when to stop: `patience` epochs after the best. On `cpu`
    the same seed gives the same bits; on `cuda`, an NVIDIA GPU, nobody promises that.
    """

    epochs: int = 100
    batch_size: int = 256
    learning_rate: float = 0.001
    weight_decay: float = 0.0001
    validation: float = 0.15
    patience: int = 8
    device: str = "cpu"

    encoding = Encoding.NATIVE

    def __post_init__(self) -> None:
        """Refuse what could not be trained."""
        for name in ("epochs", "batch_size", "patience"):
            check_minimum(f"learner.{name}", getattr(self, name), 1)
        check_minimum("learner.learning_rate", self.learning_rate, 0)
        check_minimum("learner.weight_decay", self.weight_decay, 0)
        check_share("learner.validation", self.validation)
        check_choice("learner.device", self.device, DEVICES)
