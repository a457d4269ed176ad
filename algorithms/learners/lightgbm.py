"""Gradient-boosted trees by LightGBM, in the build that fairgbm constrains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairbench.core.errors import check_minimum
from fairbench.data.features import Encoding
from fairbench.experiments.contracts import ANY_LABEL, ANY_TASK, Capabilities, Learner, Loss

_OBJECTIVES = {"binomial": "binary", "softmax": "multiclass", "squared_error": "regression"}


@dataclass(frozen=True)
class LightGBM(Learner):
    """Hyperparameters and their defaults, named as LightGBM names them; `rounds` trees."""

    rounds: int = 100
    num_leaves: int = 31
    max_depth: int = -1
    learning_rate: float = 0.1
    min_child_samples: int = 20
    reg_lambda: float = 0.0
    reg_alpha: float = 0.0
    subsample: float = 1.0
    colsample_bytree: float = 1.0
    max_bin: int = 255

    encoding = Encoding.ONEHOT

    def __post_init__(self) -> None:
        """Refuse what LightGBM would refuse only once it fits."""
        check_minimum("learner.rounds", self.rounds, 1)
        check_minimum("learner.num_leaves", self.num_leaves, 2)
        check_minimum("learner.min_child_samples", self.min_child_samples, 0)
        check_minimum("learner.learning_rate", self.learning_rate, 1e-12)
        check_minimum("learner.max_bin", self.max_bin, 2)

    @property
    def capabilities(self) -> Capabilities:
        """Labels and values, by a package that not every machine can install."""
        return Capabilities(
            tasks=ANY_TASK,
            losses=ANY_LABEL | {"squared_error"},
            packages=("fairgbm",),
            requires=("fairgbm",),
            # Nothing is drawn unless rows or columns are.
            seeded=self.subsample < 1 or self.colsample_bytree < 1,
            gives=frozenset({"the constrained objective of FairGBM"}),
        )

    def estimator(self, loss: Loss, seed: int) -> Any:
        """Return an unfitted estimator."""
        from fairbench.components.algorithms.estimators.lightgbm import LightGBMEstimator

        parameters = {
            "num_leaves": self.num_leaves,
            "max_depth": self.max_depth,
            "learning_rate": self.learning_rate,
            "min_child_samples": self.min_child_samples,
            "reg_lambda": self.reg_lambda,
            "reg_alpha": self.reg_alpha,
            "subsample": self.subsample,
            # Without this LightGBM ignores the share of rows.
            "subsample_freq": int(self.subsample < 1),
            "colsample_bytree": self.colsample_bytree,
            "max_bin": self.max_bin,
        }
        if loss.outputs > 1:
            parameters["num_class"] = loss.classes
        return LightGBMEstimator(_OBJECTIVES[loss.name], self.rounds, parameters, seed)
