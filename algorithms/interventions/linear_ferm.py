"""Linear classifiers under equal opportunity, by a change of features (Donini et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairbench.components.algorithms.interventions.shared import check_label
from fairbench.components.algorithms.interventions.trained_on_groups import TrainedOnGroups
from fairbench.core.errors import check_choice
from fairbench.experiments.contracts import BINARY, Capabilities, Intervention


@dataclass(frozen=True)
class LinearFERM(Intervention):
    """The learner, fitted to features whose means for one `label` are equal in the two groups.

    The `representation` of the paper, ``substitution``, drops the feature in which the means
    differ most; ``projection`` treats all alike, and equals ``ferm`` with a linear kernel.
    """

    representation: str = "substitution"
    label: int = 1

    capabilities = Capabilities(
        tasks=BINARY, reads_groups=True, groups_at_most=2, needs="a linear decision rule"
    )

    def __post_init__(self) -> None:
        """Refuse an unknown representation or label."""
        check_label(self.label)
        check_choice(
            "intervention.representation", self.representation, ("substitution", "projection")
        )

    def wrap(self, estimator: Any, seed: int) -> TrainedOnGroups:
        """Return the unfitted model."""
        from fairbench.components.algorithms.estimators.without_direction import WithoutDirection

        constrained = WithoutDirection(estimator, self.representation, self.label)
        return TrainedOnGroups("linear_ferm", constrained, labels=(self.label,))
