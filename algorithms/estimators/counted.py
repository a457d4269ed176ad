"""Scikit-learn estimators that may take no weights of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import has_fit_parameter

from fairbench.components.algorithms.estimators.weighted import Weighted
from fairbench.core.errors import UserError

Array = NDArray[np.float64]


class Counted(Weighted):
    """An estimator that sees a row as often as its weight says, if it takes no weights."""

    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> Counted:
        """Fit to labels or values `y`.

        Raises
        ------
        UserError : a weight that is no number of rows, of an estimator without weights; an option's
            value that the estimator does not take.
        """
        if sample_weight is None or has_fit_parameter(self.estimator, "sample_weight"):
            return self._fit(X, y, sample_weight)
        counts = np.asarray(sample_weight).astype(np.intp)
        if (counts != sample_weight).any():
            raise UserError(
                f"{type(self.estimator).__name__} takes no weights of rows, and got fractions: use "
                "another learner with this intervention or method"
            )
        rows = np.repeat(np.arange(len(y)), counts)
        return self._fit(X[rows], y[rows])

    def _fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> Counted:
        try:
            super().fit(X, y, sample_weight)
        except ValueError as error:
            if type(error).__name__ != "InvalidParameterError":  # a class that is not public
                raise
            raise UserError(f"learner.options: {error}") from error
        return self
