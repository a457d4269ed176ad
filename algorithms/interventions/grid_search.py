"""Refits the learner with a grid of weights and keeps the best trade-off of error and fairness.

Agarwal et al. 2018, section 3.4, and 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fairbench.components.algorithms.interventions.reductions import (
    Reduced,
    check_constraints,
    moment,
)
from fairbench.components.algorithms.interventions.rows import OnRows, Rows
from fairbench.components.algorithms.interventions.shared import Array
from fairbench.core.errors import UserError, check_minimum
from fairbench.data.features import Frame
from fairbench.experiments.contracts import Capabilities, Intervention, RawOutputs


@dataclass(frozen=True)
class GridSearch(Intervention):
    """fairlearn's grid search reduction, around any learner.

    Of `grid_size` refits the one is kept whose error plus violation, the latter with the weight
    `constraint_weight`, is least on the training rows: violation of a parity of labels, or, in
    regression, the largest mean `loss` of a group. The probability it gives is the chosen refit's,
    of the labels and weights that it was given. Names and defaults are those of fairlearn.
    """

    constraints: str = "demographic_parity"
    loss: str = "square"
    constraint_weight: float = 0.5
    grid_size: int = 10
    grid_limit: float = 2.0

    capabilities = Capabilities(packages=("fairlearn",), reads_groups=True)

    def __post_init__(self) -> None:
        """Refuse what fairlearn would refuse only once it fits."""
        check_constraints(self)
        weight = self.constraint_weight
        if not 0 <= weight <= 1:
            raise UserError(f"intervention.constraint_weight is {weight}; it must be from 0 to 1")
        check_minimum("intervention.grid_size", self.grid_size, 2)
        check_minimum("intervention.grid_limit", self.grid_limit, 1e-9)

    def wrap(self, estimator: Any, seed: int) -> Best:
        """Return the unfitted model."""
        return Best(self, estimator)

    def reduction(self, oracle: OnRows, y: Array, groups: int) -> Any:
        """Return fairlearn's unfitted reduction of labels, or of values, `y`."""
        import fairlearn.reductions

        binary = hasattr(oracle.estimator, "predict_proba")
        self._check_size(groups, events=2 if binary and "odds" in self.constraints else 1)
        return fairlearn.reductions.GridSearch(
            oracle,
            moment(self, oracle, y),
            constraint_weight=self.constraint_weight,
            grid_size=self.grid_size,
            grid_limit=self.grid_limit,
        )

    def _check_size(self, groups: int, events: int) -> None:
        """Refuse a grid too small to have a point on each side of every constraint."""
        if groups < 2:
            raise UserError(
                "intervention=grid_search compares groups, and the training rows have one: "
                "choose another attribute with protect="
            )
        needed = 2 ** (events * (groups - 1))
        if self.grid_size < needed:
            raise UserError(
                f"intervention.grid_size is {self.grid_size}, and {groups} groups need a grid of "
                f"at least {needed}: raise it, or use intervention=exponentiated_gradient"
            )


class Best(Reduced):
    """The refit that was chosen, read as the estimator it is."""

    def kept(self, reduction: Any) -> Any:
        """Return the best of the grid; the others are let go."""
        return reduction.predictors_[reduction.best_idx_]

    def outputs(self, X: Frame, *, sensitive_features: pd.Series, random_state: int) -> RawOutputs:
        """Return ``score`` or ``mean``."""
        rows = Rows.of(X)
        if not self.gives_labels:
            return {"mean": self.fitted.predict(rows)}
        p = self.fitted.predict_proba(rows)
        # Where all rows were given one label, that label is certain.
        score = p[:, 1] if p.shape[1] == 2 else self.fitted.predict(rows)
        return {"score": np.asarray(score, np.float64)}
