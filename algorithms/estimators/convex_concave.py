"""Solves a logistic regression whose errors may not vary with the group.

Zafar et al. (2017) solve it with cvxpy and DCCP. A step is here a smooth problem of as many
variables as there are features, in place of two exponential cones a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

Array = NDArray[np.float64]
Measure = Callable[[Array], tuple[float, Array]]

# The kink of max(0, -margin) is a parabola over this width, for a solver of smooth problems; its
# value is an upper bound, so what meets the smooth constraint meets the constraint.
_WIDTH = 0.01
# Tolerances: of a covariance, of the loss between two steps, of the loss (a log likelihood, in
# units of which coefficients are known to about 1) within one.
_FEASIBLE = 1e-4
_CONVERGED = 1e-6
_SOLVED = 1e-5


@dataclass(frozen=True)
class Problem:
    """A penalised likelihood, in coordinates in which its curvature is about 1.

    Attributes
    ----------
    signed : (n, p) rows times their label, -1 or 1: ``signed @ v`` are the margins.
    penalty : (p, p) matrix of the quadratic penalty.
    weight : (n,) row weights.
    """

    signed: Array
    penalty: Array
    weight: Array

    def loss(self, v: Array) -> tuple[float, Array]:
        """Return the objective and its gradient."""
        margin, pull = self.signed @ v, self.penalty @ v
        value = self.weight @ np.logaddexp(0, -margin) + 0.5 * v @ pull
        return float(value), pull - (self.weight * expit(-margin)) @ self.signed

    def covariance(self, share: Array, v: Array) -> float:
        """Return sum share_i min(0, margin_i), equations 11 to 13."""
        return float(share @ np.minimum(0, self.signed @ v))

    def room(self, share: Array, threshold: float, at: Array) -> Measure:
        """Return the threshold less a convex bound of the covariance that is tight in `at`.

        A term of a negative share is convex, and kept; one of a positive share is concave, and
        replaced by its tangent, which lies above it. All terms are 0 in v = 0, which so always
        meets the constraint, and no slack is needed.
        """
        tangent = np.where((share > 0) & (self.signed @ at < 0), share, 0) @ self.signed
        kept = np.flatnonzero(share < 0)
        rows, size = self.signed[kept], -share[kept]

        def measure(v: Array) -> tuple[float, Array]:
            hinge, slope = smooth_hinge(rows @ v)
            return float(threshold - tangent @ v - size @ hinge), -tangent - (size * slope) @ rows

        return measure


def smooth_hinge(margin: Array) -> tuple[Array, Array]:
    """Return max(0, -margin), its kink smoothed, and the derivative."""
    into = np.clip(0.5 - margin / _WIDTH, 0, 1)
    return np.where(into < 1, 0.5 * _WIDTH * into**2, -margin), -into


def convex_concave(
    problem: Problem, shares: list[Array], threshold: float, start: Array, max_iter: int
) -> tuple[Array, bool]:
    """Minimise the loss under |covariance| <= threshold by the convex-concave procedure.

    Each step solves the convex problem whose constraints are tight where the last one ended, so
    that the loss falls from step to step. Of a constraint's two sides only the violated one is
    imposed, until the other is found violated at convergence: both, at a threshold of 0, fix which
    rows are misclassified, and remain the last resort.

    Returns
    -------
    The solution, (p,), and whether it converged within `max_iter` steps.
    """
    v, last = start, np.inf
    imposed: list[set[float]] = [set() for _ in shares]
    tried: list[set[float]] = [set() for _ in shares]
    for _ in range(max_iter):
        if last == np.inf:
            values = np.array([problem.covariance(share, v) for share in shares])
            violated = np.flatnonzero(np.abs(values) > threshold + _FEASIBLE)
            if not len(violated):
                return v, True
            for i in violated:
                side = np.sign(values[i])
                imposed[i] = {1.0, -1.0} if side in tried[i] else {side}
                tried[i].add(side)
        rooms = [
            problem.room(side * share, threshold, v)
            for share, sides in zip(shares, imposed, strict=True)
            for side in sides
        ]
        v = step(problem, rooms, v)
        loss = problem.loss(v)[0]
        last = np.inf if last - loss < _CONVERGED * abs(loss) else loss
    return v, False


def step(problem: Problem, rooms: list[Measure], start: Array) -> Array:
    """Minimise the loss where every one of `rooms` is at least 0."""
    solution: Array = minimize(
        problem.loss,
        start,
        jac=True,
        method="SLSQP",
        constraints=[
            {
                "type": "ineq",
                "fun": lambda v, room=room: room(v)[0],
                "jac": lambda v, room=room: room(v)[1],
            }
            for room in rooms
        ],
        options={"maxiter": 200, "ftol": _SOLVED},
    ).x
    return solution
