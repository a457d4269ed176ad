"""A small neural network by torch, on standardised one-hot features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairbench.core.errors import check_minimum, check_share
from fairbench.data.features import Encoding
from fairbench.experiments.contracts import ANY_TASK, Capabilities, Learner, Loss


@dataclass(frozen=True)
class MLP(Learner):
    """Hyperparameters: ReLU layers of `hidden` units, trained by AdamW.

    `validation` of the training rows say when to stop: `patience` epochs after the best. `dropout`
    is the share of hidden units left out at random while training; one model predicts with all.
    """

    hidden: Sequence[int] = (64, 64)
    epochs: int = 100
    batch_size: int = 128
    learning_rate: float = 0.003
    weight_decay: float = 0.01
    validation: float = 0.15
    patience: int = 10
    dropout: float = 0.0

    encoding = Encoding.STANDARD

    def __post_init__(self) -> None:
        """Refuse what could not be trained."""
        for units in self.hidden:
            check_minimum("learner.hidden", units, 1)
        for name in ("epochs", "batch_size", "patience"):
            check_minimum(f"learner.{name}", getattr(self, name), 1)
        check_minimum("learner.learning_rate", self.learning_rate, 0)
        check_minimum("learner.weight_decay", self.weight_decay, 0)
        check_share("learner.validation", self.validation)
        check_share("learner.dropout", self.dropout, zero=True)

    @property
    def capabilities(self) -> Capabilities:
        """Every loss but the reference's, which are of trees; with dropout, thinned networks."""
        return Capabilities(
            tasks=ANY_TASK,
            packages=("torch",),
            losses=frozenset(
                {"binomial", "softmax", "squared_error", "normal_nll", "beta_nll", "faithful_nll"}
            ),
            seeded=True,
            gives=frozenset({"dropout"} if self.dropout and self.hidden else ()),
        )

    def estimator(self, loss: Loss, seed: int) -> Any:
        """Return an unfitted estimator."""
        from fairbench.components.algorithms.estimators.mlp import MLPEstimator

        return MLPEstimator(loss, self, seed)
