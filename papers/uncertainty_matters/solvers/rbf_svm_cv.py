"""Support vector machines with a Gaussian kernel of many training parts, by active sets.

A support vector machine is a system of linear equations once it is known which multipliers are 0,
which are C and which lie between. Each part starts from what the fit of all rows says of its
training rows; rows whose multiplier or margin contradicts their state change it, until none does
(a primal-dual active set method: some four systems of 200 rows a part). Kernel columns are computed
only for candidates, rows that may have a multiplier. A part may have features of its own, as where
numbers are repaired group by group, and a direction that its machine must not use, as under equal
opportunity (Donini et al. 2018).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import sposv

from fairbench.components.papers.uncertainty_matters.solvers.folds import Array, Folds, Rows

Single = NDArray[np.float32]
States = NDArray[np.int8]
ZERO, FREE, AT_C = 0, 1, 2  # states of a multiplier
LIKELY = 1.4  # rows whose margin in the fit of all rows is lower are candidates
TOLERANCE = 1e-4  # of a margin at 1; scikit-learn's is 1e-3
ROUNDS = 1000
BLOCK = 200  # rows of a kernel computed at once
PATIENCE = 3  # rounds without fewer contradictions


def margins(
    X: Array,
    y: Array,
    fold: Rows,
    *,
    C: float = 1.0,
    gamma: float | None = None,
    weight: Array | None = None,
    repair: Callable[[Array, NDArray[np.bool_]], Array] | None = None,
    apart: Array | None = None,
) -> Array:
    """Return the margins of all rows by every model, (F, n).

    Models are those of scikit-learn's StandardScaler and SVC(C, gamma=gamma), by default of its own
    ``gamma="scale"``, fitted to the training rows. Kernels are in single precision.

    Parameters
    ----------
    X, y : (n, d) features and (n,) labels 0 and 1.
    fold : (B, n) test folds, see :class:`Folds`.
    weight : (F, n) weights of the training rows, which multiply C.
    repair : what is done to standardised features, (n, d) and which rows train -> (n, d).
    apart : (F, n) weights of training rows, 0 for the others: no machine uses the direction of the
        sum of these rows in the kernel's feature space.
    """
    folds = Folds.of(X, fold, weight)
    sign = np.where(y == 1, 1, -1).astype(np.float32)
    cost = (C * folds.weight).astype(np.float32)

    def kernel(standard: Array, used: NDArray[np.bool_], direction: Array | None) -> Kernel:
        own = standard if repair is None else repair(standard, used)
        return Kernel.of(_points(own, used, gamma), direction)

    everywhere = None if apart is None else apart.mean(axis=0)
    start = kernel(folds.Z[:, :-1], np.ones(len(y), bool), everywhere)
    problem = Problem.of(start, sign, C * folds.common)
    values = np.empty(folds.used.shape)
    for part, used in enumerate(folds.used):
        standard = (folds.Z[:, :-1] - folds.mean[part]) / folds.sd[part]
        own = kernel(standard, used, None if apart is None else apart[part])
        values[part] = problem.solved(own, used, cost[part])
    return values


def _points(standard: Array, used: NDArray[np.bool_], gamma: float | None) -> Single:
    """Return rows whose kernel is exp(-|a - b|² / 2), (n, d).

    scikit-learn's gamma is one over the number of features times the variance of their matrix.
    """
    width = 1 / (standard.shape[1] * standard[used].var()) if gamma is None else gamma
    points: Array = standard * np.sqrt(2 * width)
    return points.astype(np.float32)


@dataclass(frozen=True)
class Kernel:
    """The kernel of points a and b, exp(a'b - |a|² / 2 - |b|² / 2), as a product and its exp.

    Attributes
    ----------
    left, right : (n, d + 2) the points, and what makes their products the exponent.
    along : (n,) the points' coordinates along a direction that is left out of the feature space,
        in units of its length; None where nothing is left out.
    """

    left: Single
    right: Single
    along: Single | None = None

    @classmethod
    def of(cls, points: Single, apart: Array | None = None) -> Kernel:
        """Return the kernel of points (n, d) without the direction of a weighted sum of them."""
        half = 0.5 * np.einsum("ij,ij->i", points, points)[:, None]
        ones = np.ones_like(half)
        whole = cls(np.hstack([points, -half, ones]), np.hstack([points, ones, -half]))
        if apart is None or not apart.any():
            return whole
        rows = np.flatnonzero(apart)
        weights = apart[rows].astype(np.float32)
        along: Single = whole.between(np.arange(len(points)), rows) @ weights
        along /= np.sqrt(weights @ along[rows])
        return cls(whole.left, whole.right, along)

    def between(self, rows: Rows, columns: Rows) -> Single:
        """Return the kernel of some points and others, (r, c)."""
        values: Single = self.left[rows] @ self.right[columns].T
        np.exp(values, out=values)
        if self.along is not None:
            values -= np.outer(self.along[rows], self.along[columns])
        return values

    def among(self, rows: Rows) -> Single:
        """Return the kernel of some points, (r, r): what is above its diagonal is copied."""
        values = np.empty((len(rows), len(rows)), np.float32)
        for start in range(0, len(rows), BLOCK):
            stop = start + BLOCK
            values[start:stop, :stop] = self.between(rows[start:stop], rows[:stop])
            values[:start, start:stop] = values[start:stop, :start].T
        return values


@dataclass(frozen=True)
class Problem:
    """What the parts have in common.

    Attributes
    ----------
    sign : (n,) labels -1 and 1.
    states : (n,) states of the multipliers in the fit of all rows.
    likely : (n,) whether a row is a candidate.
    """

    sign: Single
    states: States
    likely: NDArray[np.bool_]

    @classmethod
    def of(cls, kernel: Kernel, sign: Single, cost: Array) -> Problem:
        """Learn from the fit of all rows, of costs (n,), where to start."""
        from sklearn.svm import SVC

        values = kernel.among(np.arange(len(sign))).astype(float)
        machine = SVC(C=1, tol=1e-5, kernel="precomputed").fit(values, sign, sample_weight=cost)
        alpha = np.zeros(len(sign))
        alpha[machine.support_] = np.abs(machine.dual_coef_[0])
        states = np.where(alpha >= cost * (1 - 1e-9), AT_C, np.where(alpha > 0, FREE, ZERO)).astype(
            np.int8
        )
        return cls(sign, states, sign * machine.decision_function(values) < LIKELY)

    def solved(self, kernel: Kernel, used: NDArray[np.bool_], cost: Single) -> Array:
        """Return the margins of all rows by the machine of the training rows, (n,).

        `cost` are the rows' own C. A training row that was no candidate and should have been
        becomes one.
        """
        candidate, values = used & self.likely, np.empty(len(used))
        for _ in range(ROUNDS):
            chosen, rest = np.flatnonzero(candidate), np.flatnonzero(~candidate)
            beta, intercept, values[chosen] = self._multipliers(
                kernel.among(chosen), chosen, cost[chosen]
            )
            support = np.flatnonzero(beta)
            values[rest] = kernel.between(rest, chosen[support]) @ beta[support] + intercept
            missed = used & ~candidate & (self.sign * values < 1 - TOLERANCE)
            if not missed.any():
                return values
            candidate |= missed
        raise ArithmeticError("the candidates of a support vector machine did not settle")

    def _multipliers(
        self, kernel: Single, chosen: Rows, cost: Single
    ) -> tuple[Single, np.float32, Single]:
        """Return the candidates' multipliers times their sign, the intercept, their margins."""
        sign, state, pivots = self.sign[chosen], self.states[chosen], Pivots(len(chosen))
        bound = Bound.of(kernel, cost * sign, state)
        for _ in range(ROUNDS):
            free = np.flatnonzero(state == FREE)
            columns, beta = kernel[free], bound.beta.copy()
            missing = (sign - bound.values)[free]
            beta[free], intercept = _equations(columns[:, free], missing, beta.sum())
            values = bound.values + beta[free] @ columns + intercept
            changed = _changed(state, sign * values, sign * beta, cost)
            wrong = np.flatnonzero(changed != state)
            if not len(wrong):
                return beta, intercept, values
            exchanged = pivots.choose(wrong)
            state[exchanged] = changed[exchanged]
            bound.exchange(exchanged, state)
        raise ArithmeticError(f"a support vector machine did not converge in {ROUNDS} rounds")


@dataclass
class Bound:
    """What rows whose multiplier is C contribute to the margins, kept up to date.

    Attributes
    ----------
    kernel : (c, c) of the candidates.
    most : (c,) cost times sign, a row's multiplier at C.
    beta : (c,) that where a row is at C, else 0.
    values : (c,) ``kernel @ beta``.
    """

    kernel: Single
    most: Single
    beta: Single
    values: Single

    @classmethod
    def of(cls, kernel: Single, most: Single, state: States) -> Bound:
        """Start from the states (c,)."""
        beta = np.where(state == AT_C, most, np.float32(0))
        return cls(kernel, most, beta, kernel @ beta)

    def exchange(self, rows: Rows, state: States) -> None:
        """Take over the states of some rows."""
        moved = np.where(state[rows] == AT_C, self.most[rows], np.float32(0)) - self.beta[rows]
        self.beta[rows] += moved
        self.values += moved @ self.kernel[rows]


@dataclass
class Pivots:
    """Which contradictions to mend: all, unless their number has not fallen for a while.

    Then one at a time, the last, until there are fewer than ever: all at once may go round in
    circles, and one at a time cannot (Júdice and Pires 1994, block principal pivoting).
    """

    fewest: int
    patience: int = PATIENCE

    def choose(self, wrong: Rows) -> Rows:
        """Return those of the rows listed whose states are to change."""
        if len(wrong) < self.fewest:
            self.fewest, self.patience = len(wrong), PATIENCE
        elif self.patience:
            self.patience -= 1
        else:
            return wrong[-1:]
        return wrong


def _changed(state: States, margin: Single, alpha: Single, cost: Single) -> States:
    """Return states without what contradicts them: a free row's alpha, another's margin."""
    changed = state.copy()
    changed[alpha < 0] = ZERO
    changed[alpha > cost] = AT_C
    changed[(state == ZERO) & (margin < 1 - TOLERANCE)] = FREE
    changed[(state == AT_C) & (margin > 1 + TOLERANCE)] = FREE
    return changed


def _equations(kernel: Single, wanted: Single, bound: np.float32) -> tuple[Single, np.float32]:
    """Solve ``kernel @ beta + intercept = wanted``, where beta sum to ``-bound``."""
    right = np.stack([wanted, np.ones_like(wanted)])
    # A symmetric matrix is its own transpose, which LAPACK takes without a copy.
    _, solution, failed = sposv(kernel.T, right.T, overwrite_a=True, overwrite_b=True)
    if failed:
        raise ArithmeticError("the kernel of a support vector machine is singular")
    to_wanted, to_ones = solution.T
    intercept = (to_wanted.sum() + bound) / to_ones.sum()
    return to_wanted - intercept * to_ones, intercept
