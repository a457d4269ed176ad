"""LightGBM as the package fairgbm builds it, with the groups where its objective reads them."""

from __future__ import annotations

from typing import Any

import fairgbm
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from fairbench.core.errors import UserError
from fairbench.data.features import Frame, Unit

Array = NDArray[np.float64]

CONSTRAINED = "constrained_cross_entropy"


class LightGBMEstimator(BaseEstimator):
    """Trees of an `objective`, called through the package's own training function.

    Its scikit-learn classes pass an argument that scikit-learn has renamed. Whole-number weights
    are copies of rows, in counts of rows per leaf too; others weigh the loss, and are refused by
    the constrained objective, which knows no weights.
    """

    def __init__(self, objective: str, rounds: int, parameters: dict[str, Any], seed: int) -> None:
        self.objective = objective
        self.rounds = rounds
        self.parameters = parameters
        self.seed = seed

    def fit(
        self,
        X: Frame,
        y: Array,
        groups: NDArray[Any] | None = None,
        sample_weight: Array | None = None,
    ) -> LightGBMEstimator:
        """Fit to labels or values `y`; groups, (n,) whole numbers from 0, only if constrained."""
        if sample_weight is not None and (sample_weight == sample_weight.astype(int)).all():
            rows = np.repeat(np.arange(len(y)), sample_weight.astype(int))
            X, y, sample_weight = X[rows], y[rows], None
            groups = None if groups is None else groups[rows]
        if sample_weight is not None and self.objective == CONSTRAINED:
            raise UserError(
                "intervention=fairgbm takes weights that count copies of rows, and got fractions: "
                "use whole-number weights"
            )
        options = {
            **self.parameters,
            "objective": self.objective,
            "seed": self.seed,
            "num_threads": 1,
            "deterministic": True,
            "force_row_wise": True,
            "verbosity": -1,
        }
        # An L1 penalty is in the target's own unit.
        given = self.parameters.get("reg_alpha")
        self.unit_ = Unit() if given else Unit.of_target(y, sample_weight)
        data = fairgbm.Dataset(
            X,
            self.unit_.standard(y),
            constraint_group=groups,
            weight=sample_weight,
            params=options,
        )
        self.booster_ = fairgbm.train(options, data, self.rounds)
        self.classes_ = np.arange(float(self.parameters.get("num_class", 2)))
        return self

    @available_if(lambda self: self.objective != "regression")
    def predict_proba(self, X: Frame) -> Array:
        """Return the (n, C) probabilities of the classes."""
        p = self._output(X)
        return p if p.ndim > 1 else np.column_stack([1 - p, p])

    def predict(self, X: Frame) -> Array:
        """Return labels (the greatest probability, of a tie the first), or values."""
        if self.objective == "regression":
            return self.unit_.mean(self._output(X))
        label: Array = self.predict_proba(X).argmax(axis=1).astype(np.float64)
        return label

    def _output(self, X: Frame) -> Array:
        return np.asarray(self.booster_.predict(X, num_threads=1), np.float64)
