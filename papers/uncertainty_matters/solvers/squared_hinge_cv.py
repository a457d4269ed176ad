"""Linear support vector machines with a squared hinge of many training parts.

The objective is quadratic wherever the same rows have margins under 1. Every part starts from the
fit of all rows, with its Hessian less the test rows' share.
"""

from __future__ import annotations

import numpy as np

from fairbench.components.papers.uncertainty_matters.solvers.chord_newton import chord_newton
from fairbench.components.papers.uncertainty_matters.solvers.folds import (
    Array,
    Folds,
    Rows,
    add_diagonals,
    times,
)


def margins(
    X: Array, y: Array, fold: Rows, *, C: float = 1.0, weight: Array | None = None
) -> Array:
    """Return the margins of all rows by every model, (F, n).

    Models are those of scikit-learn's StandardScaler and LinearSVC(C, dual=False), which penalises
    the intercept too, fitted to the training rows.

    Parameters
    ----------
    X, y : (n, d) features and (n,) labels 0 and 1.
    fold : (B, n) test folds, see :class:`Folds`.
    weight : (F, n) weights of the training rows; those of test rows are not read.
    """
    folds, sign = Folds.of(X, fold, weight), 2 * y - 1
    penalty = _penalties(folds)

    def gradient(theta: Array, left: Rows) -> Array:
        short = np.maximum(0, 1 - sign * (theta @ folds.Z.T)) * folds.weight[left]
        pull: Array = times(penalty[left], theta) - 2 * C * (short * sign) @ folds.Z
        return pull

    def hessian(theta: Array, left: Rows) -> Array:
        below = sign * (theta @ folds.Z.T) < 1
        full: Array = folds.gram(2 * C * below, left) + penalty[left]
        return full

    start = _of_all_rows(folds, sign, C)
    first = folds.downdated(2 * C * (sign * (folds.Z @ start) < 1)) + penalty
    theta = chord_newton(np.tile(start, (len(first), 1)), first, gradient, hessian)
    values: Array = theta @ folds.Z.T
    return values


def _penalties(folds: Folds) -> Array:
    """Return the matrices of |w|² + b² in coefficients of Z, (F, d + 1, d + 1).

    With w = sd v and b = c + mean'v, where v and c are the coefficients of Z.
    """
    mean = np.column_stack([folds.mean, np.ones(len(folds.mean))])
    own = np.column_stack([folds.sd**2, np.zeros(len(folds.mean))])
    return add_diagonals(mean[:, :, None] * mean[:, None, :], own)


def _of_all_rows(folds: Folds, sign: Array, C: float) -> Array:
    """Return the coefficients that all rows give, (d + 1,)."""
    Z, identity = folds.Z, np.eye(folds.Z.shape[1])

    def gradient(theta: Array, _: Rows) -> Array:
        short = folds.common * np.maximum(0, 1 - sign * (theta @ Z.T))
        pull: Array = theta - 2 * C * (short * sign) @ Z
        return pull

    def hessian(theta: Array, _: Rows) -> Array:
        below = folds.common * (sign * (Z @ theta[0]) < 1)
        full: Array = 2 * C * (Z * below[:, None]).T @ Z + identity
        return full[None]

    zero = np.zeros((1, Z.shape[1]))
    theta: Array = chord_newton(zero, hessian(zero, np.arange(1)), gradient, hessian)[0]
    return theta
