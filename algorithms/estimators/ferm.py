"""Kernel support vector machine under a constraint of equal opportunity (Donini et al. 2018)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics.pairwise import pairwise_kernels

Array = NDArray[np.float64]


class EqualOpportunitySVC(ClassifierMixin, BaseEstimator):
    """An SVC whose mean decisions for one label's rows of groups 0 and 1 differ by `epsilon` only.

    With u the difference of the two means of these rows in the kernel's feature space, the
    constraint is |<w, u>| <= epsilon (equation 12). Its Lagrangian is a support vector machine
    with the kernel K - t K u u'K / u'K u for one t in [0, 1]: 0 where the plain machine meets the
    constraint, 1 where epsilon is 0 (the projection onto the complement of u), else the root of
    |<w, u>| = epsilon, which falls as t grows. So no other solver is needed.

    The last column of X is the group, read in fitting alone: cross-validation then cuts it with
    the rows. In a fold where a group has no such row there is nothing to constrain.

    Parameters
    ----------
    machine : an unfitted SVC, of scikit-learn's own ``gamma="scale"``.
    epsilon : the largest difference, in units of the decision function.
    label : of the rows that are compared, 0 or 1.
    """

    rows_: Array
    coefficients_: Array
    intercept_: float

    def __init__(self, machine: Any, epsilon: float, label: int = 1) -> None:
        self.machine = machine
        self.epsilon = epsilon
        self.label = label

    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> EqualOpportunitySVC:
        """Fit to labels `y`, 0 or 1, of rows of positive weight."""
        X, groups = X[:, :-1], X[:, -1]
        variance = X.var()
        self.gamma_ = 1 / (X.shape[1] * variance) if variance > 0 else 1.0
        self.rows_, self.classes_ = X, np.unique(y)
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        self._solve(y, weight, mean_difference(groups, y == self.label, weight))
        used = np.flatnonzero(self.coefficients_)
        self.rows_, self.coefficients_ = X[used], self.coefficients_[used]
        return self

    def _solve(self, y: Array, weight: Array, u: Array) -> None:
        kernel = self._kernel(self.rows_)
        along = kernel @ u
        squared = float(u @ along)
        removed = 0.0

        def excess(t: float) -> float:
            nonlocal removed
            if squared > 0:
                subtract_outer(kernel, along, (t - removed) / squared)
            removed = t
            fitted = clone(self.machine).set_params(kernel="precomputed")
            fitted.fit(kernel, y, sample_weight=weight)
            dual = np.zeros(len(y))
            dual[fitted.support_] = fitted.dual_coef_[0]
            projection = along @ dual
            self.coefficients_ = dual - (t * projection / squared * u if squared > 0 else 0)
            self.intercept_ = fitted.intercept_[0]
            return float(abs((1 - t) * projection) - self.epsilon)

        if self.epsilon == 0:
            excess(1.0)
        elif excess(0.0) > 0:
            excess(brentq(excess, 0.0, 1.0, xtol=1e-6))

    def _kernel(self, X: Array) -> Array:
        parameters = {name: getattr(self.machine, name) for name in ("degree", "coef0")}
        kernel: Array = pairwise_kernels(
            X,
            self.rows_,
            metric=self.machine.kernel,
            filter_params=True,
            gamma=self.gamma_,
            **parameters,
        )
        return kernel

    def decision_function(self, X: Array) -> Array:
        """Return the margins, (n,)."""
        margins: Array = self._kernel(X[:, :-1]) @ self.coefficients_ + self.intercept_
        return margins

    def predict(self, X: Array) -> Array:
        """Return labels, (n,)."""
        return (self.decision_function(X) > 0).astype(np.float64)


def mean_difference(groups: NDArray[Any], compared: NDArray[np.bool_], weight: Array) -> Array:
    """Return the row weights, (n,), whose sum over rows is mean of group 1 less mean of group 0.

    The means are those of the rows to be compared; all weights are 0 where one group has none.
    """
    shares = [np.where((groups == code) & compared, weight, 0) for code in (0, 1)]
    if min(share.sum() for share in shares) == 0:
        return np.zeros(len(weight))
    difference: Array = shares[1] / shares[1].sum() - shares[0] / shares[0].sum()
    return difference


def subtract_outer(matrix: Array, vector: Array, factor: float) -> None:
    """Subtract factor * vector vector' in place, row by row: a kernel fills much of the memory."""
    for row, value in zip(matrix, vector, strict=True):
        row -= factor * value * vector


class GroupColumn(BaseEstimator):
    """An estimator that is given the groups as the last column of X."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(
        self, X: Array, y: Array, groups: NDArray[Any], sample_weight: Array | None = None
    ) -> GroupColumn:
        """Fit to rows, labels and groups."""
        self.estimator.fit(np.column_stack([X, groups]), y, sample_weight=sample_weight)
        return self

    def predict_proba(self, X: Array) -> Array:
        """Return the (n, 2) probabilities; no group is known."""
        column = np.column_stack([X, np.full(len(X), np.nan)])
        probabilities: Array = self.estimator.predict_proba(column)
        return probabilities
