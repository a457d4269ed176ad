"""A threshold of its own for each group, by fairlearn's ThresholdOptimizer (Hardt et al. 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fairbench.components.algorithms.interventions.derived import Array, Derived, Rule
from fairbench.components.algorithms.interventions.shared import Groups
from fairbench.core.errors import check_choice, check_minimum
from fairbench.experiments.contracts import ANY_FEATURES, BINARY, Capabilities, Intervention

_CONSTRAINTS = {
    "demographic_parity": "demographic_parity",
    "equalized_odds": "equalized_odds",
    "equal_opportunity": "true_positive_rate_parity",
}
_OBJECTIVES = ("accuracy", "balanced_accuracy")
_PREDICT_METHODS = ("auto", "predict_proba", "predict")


@dataclass(frozen=True)
class ThresholdOptimizer(Intervention):
    """The thresholds of the best `objective` under `constraints` on the training rows.

    `predict_method` says what is thresholded: the probability of label 1 (``auto``, for a
    classifier the same as ``predict_proba``), or with ``predict`` the label, as FairlyUncertain
    does. `grid_size` is the number of values of the constrained rate that are tried.
    """

    constraints: str = "demographic_parity"
    objective: str = "accuracy"
    predict_method: str = "auto"
    grid_size: int = 1000

    capabilities = Capabilities(
        tasks=BINARY,
        features=ANY_FEATURES,
        packages=("fairlearn",),
        reads_groups=True,
        group_at_prediction=True,
        gives_score=False,
    )

    def __post_init__(self) -> None:
        """Refuse what fairlearn would refuse only once it fits."""
        check_choice("intervention.constraints", self.constraints, _CONSTRAINTS)
        check_choice("intervention.objective", self.objective, _OBJECTIVES)
        check_choice("intervention.predict_method", self.predict_method, _PREDICT_METHODS)
        check_minimum("intervention.grid_size", self.grid_size, 1)

    def wrap(self, estimator: Any, seed: int) -> Derived:
        """Return the unfitted model."""
        derive = partial(
            thresholds,
            constraints=self.constraints,
            objective=self.objective,
            grid_size=self.grid_size,
        )
        return Derived("threshold_optimizer", estimator, self.predict_method == "predict", derive)


def thresholds(
    output: Array,
    y: Array,
    groups: Groups,
    *,
    constraints: str,
    objective: str,
    grid_size: int,
) -> Rule:
    """Return the rule that fairlearn's ThresholdOptimizer learns from outputs, (n,)."""
    import fairlearn.postprocessing

    from fairbench.components.algorithms.estimators.given import Given

    optimizer = fairlearn.postprocessing.ThresholdOptimizer(
        estimator=Given(),
        constraints=_CONSTRAINTS[constraints],
        objective=f"{objective}_score",
        grid_size=grid_size,
        prefit=True,
        predict_method="predict",
    )
    optimizer.fit(output[:, None], y, sensitive_features=groups)

    def rule(output: Array, groups: Groups, seed: int) -> Any:
        features = output[:, None]
        return optimizer.predict(
            features, sensitive_features=groups, random_state=np.random.RandomState(seed)
        )

    return rule
