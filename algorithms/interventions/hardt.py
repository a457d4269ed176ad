"""Changes labels after training so that all groups have equal error rates (Hardt et al. 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.components.algorithms.interventions.derived import Array, Derive, Derived, Rule
from fairbench.components.algorithms.interventions.shared import Groups
from fairbench.components.algorithms.interventions.threshold_optimizer import thresholds
from fairbench.core.errors import check_choice, check_minimum
from fairbench.experiments.contracts import ANY_FEATURES, BINARY, Capabilities, Intervention

_OBJECTIVES = ("accuracy", "balanced_accuracy")
_SOURCES = ("labels", "scores")


@dataclass(frozen=True)
class Hardt(Intervention):
    """Equalised odds by the best rule that reads a model's label or score and the group.

    From labels ("Deriving from a binary predictor") it is the optimum of a linear programme, by
    default with the objective of AIF360's EqOddsPostprocessing; AIF360 then flips a fixed number of
    labels, and here, as in the paper, each row is drawn on its own. From scores ("Deriving from a
    score function") it is the best point under the ROC hulls of all groups, which is fairlearn's
    equalised odds: it tries `grid_size` false positive rates.
    """

    derived_from: str = "labels"
    objective: str = "balanced_accuracy"
    grid_size: int = 1000

    capabilities = Capabilities(
        tasks=BINARY,
        features=ANY_FEATURES,
        packages=("fairlearn", "scipy"),
        reads_groups=True,
        group_at_prediction=True,
        gives_score=False,
    )

    def __post_init__(self) -> None:
        """Refuse unknown names and an empty grid."""
        check_choice("intervention.derived_from", self.derived_from, _SOURCES)
        check_choice("intervention.objective", self.objective, _OBJECTIVES)
        check_minimum("intervention.grid_size", self.grid_size, 1)

    def wrap(self, estimator: Any, seed: int) -> Derived:
        """Return the unfitted model."""
        hard = self.derived_from == "labels"
        derive: Derive = partial(
            thresholds,
            constraints="equalized_odds",
            objective=self.objective,
            grid_size=self.grid_size,
        )
        if hard:
            derive = partial(from_labels, objective=self.objective)
        return Derived("hardt", estimator, hard, derive)


def from_labels(label: Array, y: Array, groups: Groups, *, objective: str) -> Rule:
    """Return the rule of the linear programme for predicted labels, (n,)."""
    names = np.unique(groups)
    rates = np.array([_rates(label[groups == name], y[groups == name]) for name in names])
    value = np.array([1 - y.mean(), y.mean()]) if objective == "accuracy" else np.ones(2)
    chances = equalised_odds(rates, value)

    def rule(label: Array, groups: Groups, seed: int) -> NDArray[np.bool_]:
        own = np.searchsorted(names, groups).clip(max=len(names) - 1)
        chance = chances[own, label.astype(np.intp)]
        drawn: NDArray[np.bool_] = np.random.default_rng(seed).random(len(label)) < chance
        return drawn

    return rule


def _rates(label: Array, y: Array) -> Array:
    positive = np.array([label[y == truth].mean() for truth in (0, 1)])
    return np.column_stack([1 - positive, positive])


def equalised_odds(rates: Array, value: Array) -> Array:
    """Solve the linear programme of Hardt et al. (2016) for any number of groups.

    Parameters
    ----------
    rates : (groups, 2, 2) shares of predicted label h among the rows of true label y, [g, y, h].
    value : what a false positive costs and a true positive gains, (2,).

    Returns
    -------
    (groups, 2) probabilities of predicting 1, by group and predicted label: of those under which
    all groups have the same two rates, the ones of least cost.
    """
    from scipy.linalg import block_diag
    from scipy.optimize import linprog

    cost = value[0] * rates[:, 0] - value[1] * rates[:, 1]
    constraints = block_diag(*rates)[2:]
    constraints[:, :2] -= np.tile(rates[0], (len(rates) - 1, 1))
    solution = linprog(
        cost.ravel(), A_eq=constraints, b_eq=np.zeros(len(constraints)), bounds=(0, 1)
    )
    chances: Array = solution.x.reshape(-1, 2).clip(0, 1)
    return chances
