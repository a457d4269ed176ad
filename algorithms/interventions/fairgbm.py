"""Gradient boosting under constraints of equal error rates (Cruz et al. 2023, FairGBM)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairbench.components.algorithms.interventions.trained_on_groups import TrainedOnGroups
from fairbench.core.errors import check_choice, check_minimum, check_share
from fairbench.experiments.contracts import BINARY, Capabilities, Intervention

_LABELS = {"FPR,FNR": (0, 1), "FPR": (0,), "FNR": (1,)}


@dataclass(frozen=True)
class FairGBM(Intervention):
    """Boosted trees trained against differences in the groups' error rates.

    They have Lagrange multipliers for these differences.

    `constraint_type` names the rates that are to be equal, up to a tolerance. In each round a
    multiplier changes by `multiplier_learning_rate` times how far its constraint is violated; where
    that is 0 the trees are the learner's own.
    """

    constraint_type: str = "FPR,FNR"
    multiplier_learning_rate: float = 0.1
    constraint_fpr_tolerance: float = 0.01
    constraint_fnr_tolerance: float = 0.01

    capabilities = Capabilities(
        tasks=BINARY, reads_groups=True, needs="the constrained objective of FairGBM"
    )

    def __post_init__(self) -> None:
        """Refuse what the package would refuse only once it fits."""
        check_choice("intervention.constraint_type", self.constraint_type, _LABELS)
        check_minimum("intervention.multiplier_learning_rate", self.multiplier_learning_rate, 0)
        for name in ("constraint_fpr_tolerance", "constraint_fnr_tolerance"):
            check_share(f"intervention.{name}", getattr(self, name), zero=True)

    def wrap(self, estimator: Any, seed: int) -> TrainedOnGroups:
        """Return the unfitted model."""
        from sklearn.base import clone

        from fairbench.components.algorithms.estimators.lightgbm import CONSTRAINED

        parameters = {
            **estimator.parameters,
            "constraint_type": self.constraint_type,
            "multiplier_learning_rate": self.multiplier_learning_rate,
            "constraint_fpr_tolerance": self.constraint_fpr_tolerance,
            "constraint_fnr_tolerance": self.constraint_fnr_tolerance,
        }
        constrained = clone(estimator).set_params(objective=CONSTRAINED, parameters=parameters)
        labels = _LABELS[self.constraint_type]
        return TrainedOnGroups("fairgbm", constrained, labels, at_most=None)
