"""Logistic regression under covariance constraints on its errors (Zafar et al. 2017)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.special import expit
from sklearn.base import BaseEstimator, clone

from fairbench.components.algorithms.estimators.convex_concave import Problem, convex_concave

Array = NDArray[np.float64]


class ConstrainedLogisticRegression(BaseEstimator):
    """The `regression` given, whose errors are to be uncorrelated with the group.

    Where it meets the constraints it is the solution itself; else they are imposed, starting from
    it, on the same penalised likelihood.

    Parameters
    ----------
    regression : an unfitted scikit-learn LogisticRegression with an L2 penalty.
    constrained : for each constraint, the labels of the rows whose errors it counts.
    threshold : the largest covariance of group (0, 1) and min(0, margin) over those rows, in size.
    max_iter : the most steps of the convex-concave procedure.
    """

    def __init__(
        self,
        regression: Any,
        constrained: tuple[tuple[int, ...], ...],
        threshold: float,
        max_iter: int,
    ) -> None:
        self.regression = regression
        self.constrained = constrained
        self.threshold = threshold
        self.max_iter = max_iter

    def fit(
        self, X: Array, y: Array, groups: NDArray[Any], sample_weight: Array | None = None
    ) -> ConstrainedLogisticRegression:
        """Fit to rows, labels 0 and 1, and groups 0 and 1."""
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        plain = clone(self.regression).fit(X, y, sample_weight=sample_weight)
        start = np.append(plain.coef_[0], plain.intercept_)
        problem, whitener = whitened(X, y, weight, start, C=self.regression.C)
        shares = [
            covariance_shares(groups, weight * np.isin(y, labels)) for labels in self.constrained
        ]
        solution, converged = convex_concave(
            problem, shares, self.threshold, whitener @ start, self.max_iter
        )
        self.diagnostics_ = {"converged": float(converged)}
        self.coefficients_ = solve_triangular(whitener, solution)
        return self

    def predict_proba(self, X: Array) -> Array:
        """Return the (n, 2) probabilities of labels 0 and 1."""
        p = expit(X @ self.coefficients_[:-1] + self.coefficients_[-1])
        return np.column_stack([1 - p, p])


def whitened(X: Array, y: Array, weight: Array, at: Array, *, C: float) -> tuple[Problem, Array]:
    """Return the problem in coordinates ``whitener @ coefficients``, and the whitener, (p, p).

    In them the curvature of the loss at the coefficients `at` is the identity, which quasi-Newton
    steps start from. The intercept, which comes last, has no penalty.
    """
    rows = np.column_stack([X, np.ones(len(X))])
    p = expit(rows @ at)
    penalty = np.diag(np.append(np.full(X.shape[1], 1 / C), 0))
    whitener = cholesky(rows.T @ ((weight * p * (1 - p))[:, None] * rows) + penalty)
    signed = solve_triangular(whitener, (rows * (2 * y - 1)[:, None]).T, trans=1).T
    half = solve_triangular(whitener, np.sqrt(penalty), trans=1)
    return Problem(np.ascontiguousarray(signed), half @ half.T, weight), whitener


def covariance_shares(groups: NDArray[Any], weight: Array) -> Array:
    """Return what each row's value counts for in its covariance with the group, (n,)."""
    mean = np.average(groups, weights=weight)
    shares: Array = weight * (groups - mean) / weight.sum()
    return shares
