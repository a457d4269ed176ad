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
        UserError : a weight that is no number of rows, of an estimator without weights.
        """
        if sample_weight is None or has_fit_parameter(self.estimator, "sample_weight"):
            super().fit(X, y, sample_weight)
            return self
        counts = np.asarray(sample_weight).astype(np.intp)
        if (counts != sample_weight).any():
            raise UserError(
                f"{type(self.estimator).__name__} takes no weights of rows, and got fractions: use "
                "another learner with this intervention or method"
            )
        rows = np.repeat(np.arange(len(y)), counts)
        super().fit(X[rows], y[rows])
        return self
