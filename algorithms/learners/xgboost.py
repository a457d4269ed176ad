"""Gradient-boosted trees by XGBoost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairbench.core.errors import UserError, check_minimum
from fairbench.data.features import Encoding, parse_encoding
from fairbench.experiments.contracts import ANY_TASK, Capabilities, Learner, Loss

PACKAGES = ("xgboost-cpu", "xgboost")
_DEVICES = ("cpu", "cuda")


@dataclass(frozen=True)
class XGBoost(Learner):
    """Hyperparameters; the defaults are those of FairlyUncertain (10 rounds, depth 6).

    Losses of several scores (a mean and a scale, or one a class) grow a tree for each in every
    round; with `vector_leaves` one tree for all. The reference losses always do the latter.
    """

    rounds: int = 10
    max_depth: int = 6
    learning_rate: float = 0.3
    min_child_weight: float = 1.0
    gamma: float = 0.0
    reg_lambda: float = 1.0
    reg_alpha: float = 0.0
    subsample: float = 1.0
    colsample_bytree: float = 1.0
    max_bin: int = 256
    features: str = "onehot"
    vector_leaves: bool = False
    device: str = "cpu"

    def __post_init__(self) -> None:
        """Refuse what XGBoost would refuse only once it fits."""
        check_minimum("learner.rounds", self.rounds, 1)
        check_minimum("learner.max_depth", self.max_depth, 0)
        check_minimum("learner.max_bin", self.max_bin, 2)
        check_minimum("learner.learning_rate", self.learning_rate, 0)
        parse_encoding(self.features)
        if self.device.partition(":")[0] not in _DEVICES:
            raise UserError(f"learner.device is '{self.device}': valid: cpu, cuda, cuda:<number>")

    @property
    def capabilities(self) -> Capabilities:
        """Every loss, from its gradient and curvature."""
        return Capabilities(
            tasks=ANY_TASK,
            packages=PACKAGES,
            losses=None,
            # Nothing is drawn unless rows or columns are.
            seeded=self.subsample < 1 or self.colsample_bytree < 1,
        )

    @property
    def encoding(self) -> Encoding:
        """One-hot columns, or pandas categoricals as they are."""
        return parse_encoding(self.features)

    def estimator(self, loss: Loss, seed: int) -> Any:
        """Return an unfitted estimator."""
        from fairbench.components.algorithms.estimators.xgboost import XGBoostEstimator

        strategies = ("one_output_per_tree", "multi_output_tree")
        parameters = {
            "max_depth": self.max_depth,
            "learning_rate": self.learning_rate,
            "min_child_weight": self.min_child_weight,
            "gamma": self.gamma,
            "reg_lambda": self.reg_lambda,
            "reg_alpha": self.reg_alpha,
            "subsample": self.subsample,
            "colsample_bytree": self.colsample_bytree,
            "multi_strategy": strategies[self.vector_leaves and loss.outputs > 1],
            "device": self.device,
        }
        return XGBoostEstimator(loss, self.rounds, self.max_bin, parameters, seed)
