"""Logistic regression whose errors do not depend on the group (Zafar et al. 2017, WWW)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairbench.components.algorithms.interventions.trained_on_groups import TrainedOnGroups
from fairbench.core.errors import check_choice, check_minimum
from fairbench.experiments.contracts import BINARY, Capabilities, Intervention

# For each constraint the labels of the rows whose errors it counts.
_LABELS = {
    "false_negative_rate": ((1,),),
    "false_positive_rate": ((0,),),
    "both": ((1,), (0,)),
    "misclassification_rate": ((0, 1),),
}


@dataclass(frozen=True)
class DisparateMistreatment(Intervention):
    """Fits logistic regression with its errors kept uncorrelated with the group.

    What is bounded by `threshold` is the covariance, over the rows whose errors count, of the group
    (0 or 1) and the signed distance to the boundary of a misclassified row (0 for others).
    """

    constraint: str = "both"
    threshold: float = 0.0
    max_iter: int = 50

    capabilities = Capabilities(
        tasks=BINARY,
        packages=("scipy",),
        reads_groups=True,
        groups_at_most=2,
        needs="a logistic likelihood",
    )

    def __post_init__(self) -> None:
        """Refuse an unknown constraint and impossible numbers."""
        check_choice("intervention.constraint", self.constraint, _LABELS)
        check_minimum("intervention.threshold", self.threshold, 0)
        check_minimum("intervention.max_iter", self.max_iter, 1)

    def wrap(self, estimator: Any, seed: int) -> TrainedOnGroups:
        """Return the unfitted model."""
        from fairbench.components.algorithms.estimators.disparate_mistreatment import (
            ConstrainedLogisticRegression,
        )

        labels = _LABELS[self.constraint]
        constrained = ConstrainedLogisticRegression(
            estimator, labels, self.threshold, self.max_iter
        )
        needed = tuple(each[0] for each in labels if len(each) == 1)
        return TrainedOnGroups("disparate_mistreatment", constrained, needed)
