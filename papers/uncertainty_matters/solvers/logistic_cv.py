"""Logistic regressions of many training parts, all started from the fit of all rows.

A part differs from the whole by a tenth of its rows. Its first Hessian is therefore that of the fit
of all rows less its test rows' share.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from fairbench.components.papers.uncertainty_matters.solvers.chord_newton import chord_newton
from fairbench.components.papers.uncertainty_matters.solvers.folds import (
    Array,
    Folds,
    Rows,
    add_diagonals,
)


def margins(
    X: Array, y: Array, fold: Rows, *, C: float = 1.0, weight: Array | None = None
) -> Array:
    """Return the log odds of all rows by every model, (F, n).

    Models are those of scikit-learn's StandardScaler and LogisticRegression(C), fitted to the
    training rows.

    Parameters
    ----------
    X, y : (n, d) features and (n,) labels 0 and 1.
    fold : (B, n) test folds, see :class:`Folds`.
    weight : (F, n) weights of the training rows; those of test rows are not read.
    """
    folds = Folds.of(X, fold, weight)
    penalty = np.column_stack([folds.sd**2 / C, np.zeros(len(folds.sd))])

    def gradient(theta: Array, left: Rows) -> Array:
        residual = (expit(theta @ folds.Z.T) - y) * folds.weight[left]
        pull: Array = residual @ folds.Z + penalty[left] * theta
        return pull

    def hessian(theta: Array, left: Rows) -> Array:
        p = expit(theta @ folds.Z.T)
        return add_diagonals(folds.gram(p * (1 - p), left), penalty[left])

    start = _of_all_rows(folds, y, 1 / C)
    p = expit(folds.Z @ start)
    first = add_diagonals(folds.downdated(p * (1 - p)), penalty)
    theta = chord_newton(np.tile(start, (len(first), 1)), first, gradient, hessian)
    values: Array = theta @ folds.Z.T
    return values


def _of_all_rows(folds: Folds, y: Array, weight: float) -> Array:
    """Return the coefficients that all rows give, (d + 1,), under a penalty of `weight`."""
    Z, penalty = folds.Z, np.append(np.full(folds.Z.shape[1] - 1, weight), 0)

    def gradient(theta: Array, _: Rows) -> Array:
        pull: Array = (folds.common * (expit(theta @ Z.T) - y)) @ Z + penalty * theta
        return pull

    def hessian(theta: Array, _: Rows) -> Array:
        p = expit(Z @ theta[0])
        full: Array = (Z * (folds.common * p * (1 - p))[:, None]).T @ Z + np.diag(penalty)
        return full[None]

    zero = np.zeros((1, Z.shape[1]))
    theta: Array = chord_newton(zero, hessian(zero, np.arange(1)), gradient, hessian)[0]
    return theta
