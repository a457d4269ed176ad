"""Support vector machines trained under equal opportunity (Donini et al. 2018, FERM)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairbench.components.algorithms.interventions.shared import check_label
from fairbench.components.algorithms.interventions.trained_on_groups import TrainedOnGroups
from fairbench.core.errors import check_minimum
from fairbench.experiments.contracts import BINARY, Capabilities, Intervention


@dataclass(frozen=True)
class FERM(Intervention):
    """The learner's support vector machine, with the constraint in its training problem.

    The mean decisions for the rows of one `label` of the two groups differ by at most `epsilon`:
    opportunity is equal for label 1, or for label 0 where that is the favourable one.
    """

    epsilon: float = 0.0
    label: int = 1

    capabilities = Capabilities(tasks=BINARY, reads_groups=True, groups_at_most=2, needs="a kernel")

    def __post_init__(self) -> None:
        """Refuse a negative distance and an unknown label."""
        check_minimum("intervention.epsilon", self.epsilon, 0)
        check_label(self.label)

    def wrap(self, estimator: Any, seed: int) -> TrainedOnGroups:
        """Return the unfitted model: `estimator`, its classifier replaced by the constrained."""
        from sklearn.base import clone

        from fairbench.components.algorithms.estimators.ferm import EqualOpportunitySVC, GroupColumn

        machine = estimator.estimator.classifier
        constrained = EqualOpportunitySVC(machine, self.epsilon, self.label)
        estimator = clone(estimator).set_params(estimator__classifier=constrained)
        return TrainedOnGroups("ferm", GroupColumn(estimator), labels=(self.label,))
