"""Gauss rules of empirical distributions: a few weighted points in place of many rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal

Floats = NDArray[np.float64]


def gauss_rule(values: Floats, nodes: int) -> tuple[Floats, Floats]:
    """Return points and weights that integrate polynomials up to degree 2 `nodes` - 1 exactly.

    By the Lanczos process on diag(values), fully reorthogonalised (Golub, Meurant 2010, ch. 4).
    Values with few distinct ones need fewer points; no values need none.

    Parameters
    ----------
    values : (n,) numbers; a sum over f(values) becomes one over weights * f(points).

    Returns
    -------
    points, weights : (k,) with k <= nodes; the weights sum to n.
    """
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= nodes:
        return distinct, counts.astype(np.float64)
    diagonal, off_diagonal = _lanczos(distinct, np.sqrt(counts / len(values)), nodes)
    points, vectors = eigh_tridiagonal(diagonal, off_diagonal)
    return points, len(values) * vectors[0] ** 2


def _lanczos(values: Floats, start: Floats, nodes: int) -> tuple[Floats, Floats]:
    """Return the diagonals of the Jacobi matrix of diag(values) and a unit vector."""
    basis = np.zeros((nodes, len(values)))
    basis[0] = start
    diagonal, off_diagonal = np.zeros(nodes), np.zeros(nodes - 1)
    for k in range(nodes):
        following = values * basis[k]
        diagonal[k] = following @ basis[k]
        if k == nodes - 1:
            break
        for _ in range(2):
            following -= basis[: k + 1].T @ (basis[: k + 1] @ following)
        off_diagonal[k] = np.linalg.norm(following)
        if off_diagonal[k] < 1e-10 * np.ptp(values):
            return diagonal[: k + 1], off_diagonal[:k]
        basis[k + 1] = following / off_diagonal[k]
    return diagonal, off_diagonal
