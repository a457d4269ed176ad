"""Equal opportunity for linear classifiers by a change of features (Donini et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from algorithms.interventions.label import check_label
from algorithms.interventions.trained_on_groups import TrainedOnGroups
from algorithms.learners.linear_svm import LinearSVM
from algorithms.learners.logistic_regression import LogisticRegression
from fairbench.core.checks import check_choice
from fairbench.data.dataset import Dataset
from fairbench.experiments.contracts import Learner


@dataclass(frozen=True)
class LinearFERM:
    """The learner's own fit, of features whose means for one `label` are equal in the two groups.

    The `representation` of the paper, ``substitution``, drops the feature in which the means
    differ most; ``projection`` treats all alike, and equals ``ferm`` with a linear kernel.
    """

    representation: str = "substitution"
    label: int = 1

    losses = frozenset({"binomial"})
    packages = ()
    reads_groups = True
    groups_at_most = 2

    def __post_init__(self) -> None:
        """Refuse an unknown representation or label."""
        check_label(self.label)
        check_choice(
            "intervention.representation", self.representation, ("substitution", "projection")
        )

    def incompatible(self, dataset: Dataset, learner: Learner) -> str | None:
        """Refuse learners that are not linear."""
        if isinstance(learner, LinearSVM | LogisticRegression):
            return None
        return (
            "intervention=linear_ferm balances the features of a linear classifier: use "
            "learner=linear_svm or learner=logistic_regression"
        )

    def wrap(self, estimator: Any, seed: int) -> TrainedOnGroups:
        """Return the unfitted model."""
        from algorithms.estimators.without_direction import WithoutDirection

        constrained = WithoutDirection(estimator, self.representation, self.label)
        return TrainedOnGroups("linear_ferm", constrained, labels=(self.label,))
