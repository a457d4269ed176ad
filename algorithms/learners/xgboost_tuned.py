"""XGBoost with depth, leaf size and rounds chosen on a share of its training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairbench.components.algorithms.learners.xgboost import PACKAGES, XGBoost
from fairbench.core.errors import UserError, check_minimum, check_share
from fairbench.data.features import Encoding, parse_encoding
from fairbench.experiments.contracts import ANY_LABEL, ANY_TASK, Capabilities, Learner, Loss


@dataclass(frozen=True)
class TunedXGBoost(Learner):
    """Tries every depth and `min_child_weight` for up to `rounds` rounds, refits the best on all.

    A trial stops `patience` rounds after its best. What is compared is the loss of `validation` of
    the training rows, for beta-NLL and Faithful NLL their likelihood.

    A row counts 2 towards the `min_child_weight` of a scale's leaf. A standard deviation from m
    rows is off by a factor of about exp(1 / sqrt(2 m)), and the likelihood of a row in a leaf of
    its own has no bound; held-out rows seldom show the one in thousands that such a leaf ruins.
    Five rows are therefore the least that is tried.
    """

    depths: Sequence[int] = (1, 2, 3, 4, 6)
    min_child_weights: Sequence[float] = (10.0, 30.0, 100.0)
    rounds: int = 300
    patience: int = 20
    validation: float = 0.2
    learning_rate: float = 0.3
    reg_lambda: float = 1.0
    max_bin: int = 256
    features: str = "onehot"
    device: str = "cpu"

    capabilities = Capabilities(
        tasks=ANY_TASK,
        losses=ANY_LABEL | {"squared_error", "normal_nll", "beta_nll", "faithful_nll"},
        packages=PACKAGES,
        # The seed draws the rows it chooses on alone: members that differ by that are too alike.
        seeded=False,
    )

    def __post_init__(self) -> None:
        """Refuse what XGBoost would refuse only once it fits."""
        if not self.depths or not self.min_child_weights:
            raise UserError("learner.depths and learner.min_child_weights need a value each")
        for depth in self.depths:
            check_minimum("learner.depths", depth, 1)
        for weight in self.min_child_weights:
            check_minimum("learner.min_child_weights", weight, 0)
        check_minimum("learner.patience", self.patience, 1)
        check_share("learner.validation", self.validation)
        self._base()

    @property
    def encoding(self) -> Encoding:
        """One-hot columns, or pandas categoricals as they are."""
        return parse_encoding(self.features)

    def estimator(self, loss: Loss, seed: int) -> Any:
        """Return an unfitted estimator."""
        from fairbench.components.algorithms.estimators.tuned_xgboost import TunedXGBoostEstimator

        grid = {"min_child_weight": self.min_child_weights, "max_depth": self.depths}
        base = self._base().estimator(loss, seed)
        return TunedXGBoostEstimator(base, grid, self.validation, self.patience, seed)

    def _base(self) -> XGBoost:
        """Return the learner whose depth and leaf size are then varied."""
        return XGBoost(
            rounds=self.rounds,
            learning_rate=self.learning_rate,
            reg_lambda=self.reg_lambda,
            max_bin=self.max_bin,
            features=self.features,
            device=self.device,
        )
