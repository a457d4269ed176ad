"""Mixes models at random so that their predictions meet a fairness constraint.

Agarwal et al. 2018, 2019.
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
from fairbench.core.errors import check_minimum
from fairbench.data.features import Frame
from fairbench.experiments.contracts import Capabilities, Intervention, RawOutputs


@dataclass(frozen=True)
class ExponentiatedGradient(Intervention):
    """fairlearn's exponentiated gradient reduction, around any learner.

    Labels are constrained to a parity up to `difference_bound`; in regression every group's mean
    `loss`, in the unit of the target, to at most `bound`. The other parameters have the names and
    defaults of fairlearn.
    """

    constraints: str = "demographic_parity"
    difference_bound: float = 0.01
    loss: str = "square"
    bound: float = 0.1
    eps: float = 0.01
    max_iter: int = 50
    nu: float | None = None
    eta0: float = 2.0
    run_linprog_step: bool = True

    capabilities = Capabilities(
        packages=("fairlearn", "scipy"), reads_groups=True, gives_score=False
    )

    def __post_init__(self) -> None:
        """Refuse what fairlearn would refuse only once it fits."""
        check_constraints(self)
        check_minimum("intervention.difference_bound", self.difference_bound, 0)
        check_minimum("intervention.bound", self.bound, 0)
        check_minimum("intervention.eps", self.eps, 1e-9)
        check_minimum("intervention.max_iter", self.max_iter, 1)

    def wrap(self, estimator: Any, seed: int) -> Mixture:
        """Return the unfitted model."""
        return Mixture(self, estimator)

    def reduction(self, oracle: OnRows, y: Array, groups: int) -> Any:
        """Return fairlearn's unfitted reduction of labels, or of values, `y`."""
        import fairlearn.reductions

        return fairlearn.reductions.ExponentiatedGradient(
            oracle,
            moment(self, oracle, y, bound=self.bound, difference_bound=self.difference_bound),
            eps=self.eps,
            max_iter=self.max_iter,
            nu=self.nu,
            eta0=self.eta0,
            run_linprog_step=self.run_linprog_step,
        )


class Mixture(Reduced):
    """Models with weights: each prediction is that of one of them, drawn by its weight."""

    @property
    def diagnostics(self) -> dict[str, float]:
        """Whether the constraint changes anything: 0 where it costs nothing to meet it."""
        return {"constraint_active": float(constraint_active(self.fitted))}

    def outputs(self, X: Frame, *, sensitive_features: pd.Series, random_state: int) -> RawOutputs:
        """Return ``prediction``, or ``mean``, drawn anew for each row."""
        rows = Rows.of(X)
        if self.gives_labels:
            drawn = self.fitted.predict(rows, random_state=random_state)
            return {"prediction": drawn.astype(np.float64)}
        return {"mean": drawn_values(self.fitted, rows, random_state)}


def constraint_active(fitted: Any) -> bool:
    """Say whether a multiplier of the last saddle point over the models' mixtures is positive."""
    multipliers = fitted.lambda_vecs_LP_ if len(fitted.lambda_vecs_LP_) else fitted.lambda_vecs_EG_
    return bool((multipliers.iloc[:, -1] > 1e-9).any())


def drawn_values(fitted: Any, rows: Rows, random_state: int) -> Array:
    """Return for each row the value of a model drawn by its weight, (n,).

    The draws are those of fairlearn's ``predict``, which goes row by row, and which gives models
    the weights of others where they did not enter the mixture in the order they were fitted in.
    """
    weights = fitted.weights_[fitted.weights_ > 0].sort_index()
    values = np.stack([fitted.predictors_[t].predict(rows) for t in weights.index])
    cumulative = weights.to_numpy().cumsum()
    uniform = np.random.RandomState(random_state).random_sample(len(rows))
    chosen = np.searchsorted(cumulative / cumulative[-1], uniform, side="right")
    drawn: Array = values[chosen, np.arange(len(rows))]
    return drawn
