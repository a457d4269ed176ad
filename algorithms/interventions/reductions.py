"""What exponentiated gradient and grid search share: their constraints, and how they are fitted.

fairlearn calls both reductions: fair learning is reduced to fits with other weights.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import pandas as pd

from fairbench.components.algorithms.interventions.rows import OnRows, Rows
from fairbench.components.algorithms.interventions.shared import Array, group_names
from fairbench.core.errors import check_choice
from fairbench.data.features import Frame
from fairbench.experiments.contracts import Model

CONSTRAINTS = {
    "demographic_parity": "DemographicParity",
    "equalized_odds": "EqualizedOdds",
    "equal_opportunity": "EqualOpportunity",
}
LOSSES = {"square": "SquareLoss", "absolute": "AbsoluteLoss"}


class Reduction(Protocol):
    """The options of a reduction."""

    @property
    def constraints(self) -> str:
        """The parity that labels are held to."""
        ...

    @property
    def loss(self) -> str:
        """What is bounded for each group, in regression."""
        ...

    def reduction(self, oracle: OnRows, y: Array, groups: int) -> Any:
        """Return fairlearn's unfitted reduction of labels, or of values, `y`."""
        ...


@dataclass
class Reduced(Model):
    """What a reduction has fitted around an estimator."""

    options: Reduction
    estimator: Any
    fitted: Any = field(init=False)

    def fit(
        self,
        X: Frame,
        y: Array,
        *,
        sensitive_features: pd.Series,
        sample_weight: Array | None = None,
    ) -> Self:
        """Fit the models; whole sample weights, (n,), repeat rows."""
        rows = Rows.of(X, sample_weight)
        labels, groups = y[rows.index], group_names(sensitive_features)[rows.index]
        oracle = OnRows(self.estimator)
        reduction = self.options.reduction(oracle, labels, len(set(groups)))
        self.fitted = self.kept(reduction.fit(rows, labels, sensitive_features=groups))
        oracle.recent.clear()
        return self

    def kept(self, reduction: Any) -> Any:
        """Return what of a fitted reduction makes predictions."""
        return reduction

    @property
    def gives_labels(self) -> bool:
        """Whether the estimator is a classifier."""
        return hasattr(self.estimator, "predict_proba")


def check_constraints(options: Reduction) -> None:
    """Refuse a parity or a loss that there is not."""
    check_choice("intervention.constraints", options.constraints, CONSTRAINTS)
    check_choice("intervention.loss", options.loss, LOSSES)


def moment(
    options: Reduction, oracle: OnRows, y: Array, *, bound: float | None = None, **bounds: float
) -> Any:
    """Return fairlearn's moment: a parity of labels within `bounds`, or of each group's mean loss.

    Losses are of values within the range of `y`, (n,), and at most `bound`.
    """
    import fairlearn.reductions

    from fairbench.components.algorithms.estimators import moments

    if hasattr(oracle.estimator, "predict_proba"):
        return getattr(moments, CONSTRAINTS[options.constraints])(**bounds)
    measured = getattr(fairlearn.reductions, LOSSES[options.loss])(float(y.min()), float(y.max()))
    return moments.BoundedGroupLoss(measured, upper_bound=bound)
