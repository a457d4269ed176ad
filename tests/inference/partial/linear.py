"""The same bounds by linear programming, which the closed forms are checked against."""

import numpy as np
from scipy.optimize import linprog


def extremes(numerator, denominator, bounds, *, upper=None, equal=None):
    """Return the least and the largest ratio of two linear functions over a polytope.

    The ratio is made linear by Charnes and Cooper's (1962) change of variables.

    Parameters
    ----------
    numerator, denominator : (1 + V,) a constant and a coefficient for each variable.
    bounds : (V, 2) of the variables.
    upper, equal : matrices (rows, V) and right sides (rows,) of inequalities and equations.
    """
    size = len(bounds)
    low, high = np.asarray(bounds, float).T
    matrices = [np.c_[-high, np.eye(size)], np.c_[low, -np.eye(size)]]
    if upper is not None:
        matrices.append(np.c_[-np.asarray(upper[1]), upper[0]])
    equations, right = [np.asarray(denominator, float)], [1.0]
    if equal is not None:
        equations += list(np.c_[-np.asarray(equal[1]), equal[0]])
        right += [0.0] * len(equal[1])
    ends = []
    for sign in (1, -1):
        result = linprog(
            sign * np.asarray(numerator, float),
            A_ub=np.concatenate(matrices),
            b_ub=np.zeros(sum(map(len, matrices))),
            A_eq=np.array(equations),
            b_eq=right,
            bounds=(0, None),
        )
        assert result.status == 0, result.message
        ends.append(sign * result.fun)
    return ends
