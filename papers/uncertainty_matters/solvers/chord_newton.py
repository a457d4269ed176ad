"""Newton's method for many problems at once, each keeping its Hessian while that will do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fairbench.components.papers.uncertainty_matters.solvers.folds import Array, Rows, times

# Of F problems, those listed (k,) at the points (k, p): gradients (k, p), Hessians (k, p, p).
OfProblems = Callable[[Array, Rows], Array]

TOLERANCE = 1e-7  # largest step in any coordinate
KEPT = 8  # steps for which a Hessian is kept
PATIENCE = 24  # steps after which none is: near a kink an old one may go to and fro
WHOLE = 60  # steps after which they get shorter and shorter, since a new one may too
STEPS = 1000


def chord_newton(start: Array, hessians: Array, gradient: OfProblems, hessian: OfProblems) -> Array:
    """Return the minima of F convex problems, (F, p).

    Parameters
    ----------
    start : (F, p) points that are close to the minima.
    hessians : (F, p, p) Hessians close to those in the minima, for the first steps.
    gradient, hessian : what gives them anew; few problems ask for a second Hessian.

    Raises
    ------
    ArithmeticError : problems that have not converged in `STEPS` steps.
    """
    points, inverses, left = start.copy(), np.linalg.inv(hessians), np.arange(len(start))
    for count in range(1, STEPS + 1):
        step = times(inverses, gradient(points[left], left))
        points[left] -= step * min(1, WHOLE / count)
        moving = np.abs(step).max(axis=1) > TOLERANCE
        if not moving.any():
            return points
        if not moving.all():
            left, inverses = left[moving], inverses[moving]
        if count % KEPT == 0 or count > PATIENCE:
            inverses = np.linalg.inv(hessian(points[left], left))
    raise ArithmeticError(f"{len(left)} of {len(start)} problems did not converge in {STEPS} steps")
