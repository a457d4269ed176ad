"""What fairlearn's two reductions share: their constraints, and how they are fitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from algorithms.interventions.groups import group_names
from algorithms.interventions.rows import OnRows, Rows
from fairbench.core.checks import check_choice
from fairbench.data.encoding import Frame

Array = NDArray[np.float64]

CONSTRAINTS = {
    "demographic_parity": "DemographicParity",
    "equalized_odds": "EqualizedOdds",
    "equal_opportunity": "EqualOpportunity",
}
LOSSES = {"square": "SquareLoss", "absolute": "AbsoluteLoss"}


def check_constraints(constraints: str, loss: str) -> None:
    """Refuse a parity or a loss that there is not."""
    check_choice("intervention.constraints", constraints, CONSTRAINTS)
    check_choice("intervention.loss", loss, LOSSES)


def parity(constraints: str, **bounds: float) -> Any:
    """Return fairlearn's moment of a parity of labels."""
    from algorithms.estimators import moments

    return getattr(moments, CONSTRAINTS[constraints])(**bounds)


def group_loss(loss: str, y: Array, bound: float | None = None) -> Any:
    """Return fairlearn's moment of each group's mean loss, of values within the range of `y`."""
    import fairlearn.reductions

    from algorithms.estimators import moments

    measured = getattr(fairlearn.reductions, LOSSES[loss])(float(y.min()), float(y.max()))
    return moments.BoundedGroupLoss(measured, upper_bound=bound)


def fit_reduction(
    make: Callable[[OnRows, Array, int], Any],
    estimator: Any,
    X: Frame,
    y: Array,
    *,
    sensitive_features: pd.Series,
    sample_weight: Array | None,
) -> Any:
    """Return a fitted reduction.

    Parameters
    ----------
    make : what takes the estimator, the labels and the number of groups to a reduction.
    sample_weight : (n,) whole numbers, how often each row occurs; None for once.
    """
    rows = Rows.of(X, sample_weight)
    labels, groups = y[rows.index], group_names(sensitive_features)[rows.index]
    oracle = OnRows(estimator)
    fitted = make(oracle, labels, len(np.unique(groups))).fit(
        rows, labels, sensitive_features=groups
    )
    oracle.recent.clear()
    return fitted
