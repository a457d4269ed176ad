"""The labels that algorithms give to rows they have not seen, in many cross-validations at once.

`held_out_labels` gives them. Plain and reweighed learners are fitted by the solvers of this module,
as are kernel machines under equal opportunity or on repaired numbers, and Hardt's rule is derived
from their labels; all others run as ``run.py split=kfold`` would run them. Either way the labels
are those of the project's components, on the folds that `KFold` draws. What is kept of them is
known by the code of this file (`ground_truth`), so that all that decides a label is here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.linalg.lapack import sposv
from scipy.special import expit

from fairbench.components.algorithms.estimators.ferm import mean_difference
from fairbench.components.algorithms.interventions.disparate_impact_remover import (
    DisparateImpactRemover,
)
from fairbench.components.algorithms.interventions.ferm import FERM
from fairbench.components.algorithms.interventions.hardt import Hardt, equalised_odds
from fairbench.components.algorithms.interventions.none import NoIntervention
from fairbench.components.algorithms.interventions.quantiles import Quantiles
from fairbench.components.algorithms.interventions.reweighing import (
    Reweighing,
    independence_weights,
)
from fairbench.components.algorithms.learners.linear_svm import LinearSVM
from fairbench.components.algorithms.learners.logistic_regression import LogisticRegression
from fairbench.components.algorithms.learners.svm import SVM
from fairbench.core.arrays import Mask, integer_seed, rng
from fairbench.data.dataset import Dataset
from fairbench.data.features import onehot
from fairbench.data.splits import Fold
from fairbench.experiments.compute import compute
from fairbench.experiments.contracts import Study

# The training parts of many cross-validations, and what standardising each on its own means.
#
# A pipeline standardises every training part by its own means and deviations. A linear model of
# features so standardised is one of the features as they are, under a penalty of its own: with
# z = (x - mean) / sd and weights w, v = w / sd makes w'w a quadratic form of v. Features are so
# computed once, and nothing is learnt from a test row.

Array = NDArray[np.floating[Any]]
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Folds:
    """B cross-validations of K folds each; a model is one of their F = B K training parts.

    Attributes
    ----------
    Z : (n, d + 1) features in units that keep numbers small, and a constant as the last column.
    fold : (B, n) the fold in which each row is tested.
    used : (F, n) whether a row is a training row.
    weight : (F, n) weights of the training rows, 0 for the others.
    common : (n,) mean weight of each row in the parts it trains.
    mean, sd : (F, d) of the training rows; a constant feature is not scaled, as in scikit-learn.
    """

    Z: Array
    fold: Rows
    used: NDArray[np.bool_]
    weight: Array
    common: Array
    mean: Array
    sd: Array

    @classmethod
    def of(cls, X: Array, fold: Rows, weight: Array | None = None) -> Folds:
        """Return the folds of features (n, d), of weight 1 unless weights (F, n) are given."""
        used = training(fold)
        marks = used.astype(float)
        weight = marks if weight is None else marks * weight
        units = np.where(np.ptp(X, axis=0) > 0, X.std(axis=0), 1)
        Z = np.column_stack([(X - X.mean(axis=0)) / units, np.ones(len(X))])
        rows = marks.sum(axis=1, keepdims=True)
        mean = marks @ Z[:, :-1] / rows
        variance = marks @ Z[:, :-1] ** 2 / rows - mean**2
        # What rounding leaves of a constant's variance is no spread.
        sd = np.where(variance > 1e-10, np.sqrt(np.maximum(variance, 0)), 1 / units)
        return cls(Z, fold, used, weight, weight.sum(axis=0) / marks.sum(axis=0), mean, sd)

    def downdated(self, curvature: Array) -> Array:
        """Return sum w_i c_i z_i z_i' over each part's training rows, (F, d + 1, d + 1).

        `curvature` is (n,) and the weights are the common ones: what test rows contribute is taken
        from the sum of all.
        """
        weighted = self.Z * (self.common * curvature)[:, None]
        total = weighted.T @ self.Z
        return np.stack([total - self.Z[test].T @ weighted[test] for test in ~self.used])

    def gram(self, curvature: Array, models: Rows) -> Array:
        """Return the same sums for some models, of their own curvatures (k, n) and weights."""
        weights = curvature * self.weight[models]
        return np.stack([(self.Z * weight[:, None]).T @ self.Z for weight in weights])


def training(fold: Rows) -> NDArray[np.bool_]:
    """Return whether each row trains each of the F models, (F, n), of folds (B, n)."""
    marks: NDArray[np.bool_] = fold[:, None, :] != np.arange(int(fold.max()) + 1)[:, None]
    return marks.reshape(-1, fold.shape[1])


def held_out(values: Array, fold: Rows) -> Array:
    """Return each row's value (F, n) by the model that did not see it, (B, n)."""
    per_fold = values.reshape(len(fold), -1, fold.shape[1])
    own: Array = np.take_along_axis(per_fold, fold[:, None, :], axis=1)[:, 0]
    return own


def times(matrices: Array, vectors: Array) -> Array:
    """Multiply F matrices (F, p, p) and vectors (F, p)."""
    products: Array = np.matmul(matrices, vectors[..., None])[..., 0]
    return products


def add_diagonals(matrices: Array, diagonals: Array) -> Array:
    """Return F matrices (F, p, p) with (F, p) added to their diagonals, in place."""
    places = np.arange(matrices.shape[-1])
    matrices[:, places, places] += diagonals
    return matrices


# Newton's method for many problems at once, each keeping its Hessian while that will do.

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


# Logistic regressions of many training parts, all started from the fit of all rows.
#
# A part differs from the whole by a tenth of its rows. Its first Hessian is therefore that of the
# fit of all rows less its test rows' share.


def logistic_margins(
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

    start = _logistic_of_all(folds, y, 1 / C)
    p = expit(folds.Z @ start)
    first = add_diagonals(folds.downdated(p * (1 - p)), penalty)
    theta = chord_newton(np.tile(start, (len(first), 1)), first, gradient, hessian)
    values: Array = theta @ folds.Z.T
    return values


def _logistic_of_all(folds: Folds, y: Array, weight: float) -> Array:
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


# Linear support vector machines with a squared hinge of many training parts.
#
# The objective is quadratic wherever the same rows have margins under 1. Every part starts from the
# fit of all rows, with its Hessian less the test rows' share.


def squared_hinge_margins(
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

    start = _squared_hinge_of_all(folds, sign, C)
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


def _squared_hinge_of_all(folds: Folds, sign: Array, C: float) -> Array:
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


# Support vector machines with a Gaussian kernel of many training parts, by active sets.
#
# A support vector machine is a system of linear equations once it is known which multipliers are 0,
# which are C and which lie between. Each part starts from what the fit of all rows says of its
# training rows; rows whose multiplier or margin contradicts their state change it, until none does
# (a primal-dual active set method: some four systems of 200 rows a part). Kernel columns are
# computed only for candidates, rows that may have a multiplier. A part may have features of its
# own, as where numbers are repaired group by group, and a direction that its machine must not use,
# as under equal opportunity (Donini et al. 2018).

Single = NDArray[np.float32]
States = NDArray[np.int8]
ZERO, FREE, AT_C = 0, 1, 2  # states of a multiplier
LIKELY = 1.4  # rows whose margin in the fit of all rows is lower are candidates
RBF_TOLERANCE = 1e-4  # of a margin at 1; scikit-learn's is 1e-3
ROUNDS = 1000
BLOCK = 200  # rows of a kernel computed at once
RBF_PATIENCE = 3  # rounds without fewer contradictions


def rbf_margins(
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
            missed = used & ~candidate & (self.sign * values < 1 - RBF_TOLERANCE)
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
    patience: int = RBF_PATIENCE

    def choose(self, wrong: Rows) -> Rows:
        """Return those of the rows listed whose states are to change."""
        if len(wrong) < self.fewest:
            self.fewest, self.patience = len(wrong), RBF_PATIENCE
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
    changed[(state == ZERO) & (margin < 1 - RBF_TOLERANCE)] = FREE
    changed[(state == AT_C) & (margin > 1 + RBF_TOLERANCE)] = FREE
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


# Hardt's rule for the labels of many training parts at once, without a linear programme each.
#
# Two groups have the same pair of rates where the chances of the one are a linear map of those of
# the other. Both lie in the unit square, so that the best pair is a corner of one square, or a
# point where an edge of the one meets an edge of the other: 24 candidates, of which the cheapest
# that lies in both is the optimum of the linear programme (Hardt et al. 2016).

SLACK = 1e-9
FLAT = 1e-9  # rates that tell so little of the label are left to the linear programme
_CORNERS = np.array(list(product((0.0, 1.0), repeat=2)))


def hardt_rates(
    labels: NDArray[np.bool_], used: NDArray[np.bool_], y: Array, groups: NDArray[np.intp]
) -> Array:
    """Return shares of label h among training rows of group g and truth y, (F, g, y, h).

    Parameters
    ----------
    labels, used : (F, n) a model's labels of all rows, and which of them train it.
    y, groups : (n,) 0 and 1 each.
    """
    kinds = np.stack([(groups == g) & (y == truth) for g in (0, 1) for truth in (0, 1)], axis=1)
    positive = (labels & used).astype(float) @ kinds / (used.astype(float) @ kinds)
    shares: Array = np.stack([1 - positive, positive], axis=-1).reshape(-1, 2, 2, 2)
    return shares


def hardt_chances(rates: Array, value: Array) -> Array:
    """Return the probabilities of label 1 by part, group and label, (F, 2, 2).

    Parameters
    ----------
    rates : (F, 2, 2, 2) as :func:`rates_of` returns them.
    value : (F, 2) what a false positive costs and a true positive gains.
    """
    flat = (np.abs(np.linalg.det(rates)) < FLAT).any(axis=1)
    found = np.empty((len(rates), 2, 2))
    for part in np.flatnonzero(flat):
        found[part] = equalised_odds(rates[part], value[part])
    found[~flat] = _cheapest(rates[~flat], value[~flat])
    return found


def _cheapest(rates: Array, value: Array) -> Array:
    to_second = np.linalg.solve(rates[:, 1], rates[:, 0])
    first = np.concatenate(
        [
            np.broadcast_to(_CORNERS, (len(rates), 4, 2)),
            _CORNERS @ np.linalg.inv(to_second).swapaxes(1, 2),
            _crossings(to_second),
        ],
        axis=1,
    )
    second = first @ to_second.swapaxes(1, 2)
    both = np.stack([first, second], axis=2)
    cost = value[:, :1] * rates[:, 0, 0] - value[:, 1:] * rates[:, 0, 1]
    price = np.einsum("fch,fh->fc", first, cost)
    possible = ((both >= -SLACK) & (both <= 1 + SLACK)).all(axis=(2, 3))
    best = np.where(possible, price, np.inf).argmin(axis=1)
    chosen: Array = both[np.arange(len(rates)), best].clip(0, 1)
    return chosen


def _crossings(to_second: Array) -> Array:
    """Return where an edge of the first square meets one of the second's, (F, 16, 2)."""
    found = []
    for axis, at, other, bound in product((0, 1), (0.0, 1.0), (0, 1), (0.0, 1.0)):
        point = np.full((len(to_second), 2), at)
        with np.errstate(divide="ignore", invalid="ignore"):
            rest = bound - to_second[:, other, axis] * at
            point[:, 1 - axis] = rest / to_second[:, other, 1 - axis]
        found.append(np.where(np.abs(point) <= 2, point, -1.0))  # parallel edges: outside of both
    return np.stack(found, axis=1)


# Numbers repaired group by group (Feldman et al. 2015), of many training parts of the same rows.
#
# A column's distinct values are the same in every part, and only how many training rows have each
# differs. So nothing is sorted again: a part costs one count a column.


@dataclass(frozen=True)
class Column:
    """A number's distinct values in all rows: one row that has each, (v,), and each row's, (n,)."""

    place: int
    first: Rows
    code: Rows


@dataclass(frozen=True)
class Repair:
    """Full repair of the numeric columns of a matrix in two groups, codes 0 and 1."""

    columns: Sequence[Column]
    groups: Rows

    @classmethod
    def of(cls, X: Array, groups: Rows) -> Repair:
        """Read the distinct values of the columns of (n, d) that have more than two."""
        columns = []
        for place, column in enumerate(X.T):
            values, first, code = np.unique(column, return_index=True, return_inverse=True)
            if len(values) > 2:
                columns.append(Column(place, first, code))
        return cls(columns, groups)

    def __call__(self, standard: Array, used: NDArray[np.bool_]) -> Array:
        """Return (n, d) features, in any units, repaired by what the training rows teach."""
        found = standard.copy()
        for column in self.columns:
            values = standard[column.first, column.place]
            own = [self._quantiles(column, values, used, group) for group in (0, 1)]
            moved = [
                (own[0].value(share) + own[1].value(share)) / 2
                for share in (each.share(values) for each in own)
            ]
            found[:, column.place] = np.stack(moved)[self.groups, column.code]
        return found

    def _quantiles(
        self, column: Column, values: Array, used: NDArray[np.bool_], group: int
    ) -> Quantiles:
        rows = used & (self.groups == group)
        counts = np.bincount(column.code[rows], minlength=len(values))
        seen = values[counts > 0].astype(np.float64)
        counts = counts[counts > 0]
        return Quantiles(seen, (counts.cumsum() - counts / 2) / counts.sum())


# The labels of whole algorithms.

FOLDS = 10


class Solver(Protocol):
    """What the solvers have in common."""

    def __call__(
        self, X: Array, y: Array, fold: Rows, *, C: float, weight: Array | None = None
    ) -> Array:
        """Return the margins of all rows by every model, (F, n)."""
        ...


SOLVERS: dict[type, Solver] = {
    LogisticRegression: logistic_margins,
    LinearSVM: squared_hinge_margins,
    SVM: rbf_margins,
}


def partitions(dataset: Dataset, repeats: Sequence[int], seed: int) -> Rows:
    """Return the fold that tests each row, (B, n), as a stratified `KFold` deals them."""
    target, folds = dataset.target.to_numpy(), np.empty((len(repeats), len(dataset)), np.intp)
    for fold, repeat in zip(folds, repeats, strict=True):
        order = rng(seed, "split", dataset.name, repeat).permutation(len(dataset))
        fold[order[np.argsort(target[order], kind="stable")]] = np.arange(len(dataset)) % FOLDS
    return folds


def held_out_labels(study: Study, repeats: Sequence[int]) -> Mask:
    """Return the label of each row by the model that did not see it, (B, n)."""
    fold = partitions(study.dataset, repeats, study.seed)
    if not solved_here(study):
        return np.stack([composed_labels(study, *each) for each in zip(repeats, fold, strict=True)])
    if isinstance(study.intervention, Hardt):
        return _derived(study, fold, repeats, _margins(study, fold) > 0)
    return held_out(_margins(study, fold, **_options(study, fold)), fold) > 0


def solved_here(study: Study) -> bool:
    """Say whether the solvers of this study fit the algorithm."""
    chosen = study.intervention
    if isinstance(chosen, NoIntervention | Reweighing | Hardt):
        return not isinstance(chosen, Hardt) or chosen.derived_from == "labels"
    if not isinstance(study.learner, SVM) or study.dataset.groups(study.protect).nunique() != 2:
        return False
    if isinstance(chosen, FERM):
        return chosen.epsilon == 0
    return isinstance(chosen, DisparateImpactRemover) and chosen.repair_level == 1


def _options(study: Study, fold: Rows) -> dict[str, Any]:
    """Return what an intervention tells the solver."""
    chosen = study.intervention
    if isinstance(chosen, Reweighing):
        return {"weight": _independence(study, fold)}
    codes = study.dataset.groups(study.protect).cat.codes.to_numpy(np.intp)
    if isinstance(chosen, FERM):
        compared = study.dataset.target.to_numpy() == chosen.label
        shares = [
            mean_difference(codes, compared & used, used.astype(float)) for used in training(fold)
        ]
        return {"apart": np.stack(shares)}
    if isinstance(chosen, DisparateImpactRemover):
        return {"repair": Repair.of(onehot(study.dataset.features).astype(float), codes)}
    return {}


def modules_read(study: Study) -> list[str]:
    """Return the project's modules that decide the labels of an algorithm solved here."""
    modules = ["fairbench.data.features", "fairbench.core.arrays"]
    if not isinstance(study.intervention, NoIntervention):
        modules.append(type(study.intervention).__module__)
    return modules


def _margins(study: Study, fold: Rows, **options: Any) -> Array:
    data, learner = study.dataset, study.learner
    X, y = onehot(data.features).astype(float), data.target.to_numpy(float)
    solver = SOLVERS[type(learner)]
    return solver(X, y, fold, C=getattr(learner, "C"), **options)  # noqa: B009


def _independence(study: Study, fold: Rows) -> Array:
    """Return the reweighing of every training part, (F, n); test rows get 0."""
    groups, y = study.dataset.groups(study.protect), study.dataset.target.to_numpy(float)
    return np.stack(
        [independence_weights(groups, y, used.astype(float)) for used in training(fold)]
    )


def _derived(study: Study, fold: Rows, repeats: Sequence[int], labels: Mask) -> Mask:
    """Return what Hardt's rule makes of labels (F, n) that learners give to all rows."""
    data, found, used = study.dataset, np.empty(fold.shape, bool), training(fold)
    codes, y = _by_name(data.groups(study.protect)), data.target.to_numpy(float)
    rates, value = hardt_rates(labels, used, y, codes), np.ones((len(used), 2))
    if getattr(study.intervention, "objective") == "accuracy":  # noqa: B009
        positive = used @ y / used.sum(axis=1)
        value = np.column_stack([1 - positive, positive])
    chances = hardt_chances(rates, value)
    for part, test in enumerate(~used):
        cv, k = divmod(part, FOLDS)
        seed = integer_seed(rng(study.seed, "predict", data.name, repeats[cv], k))
        chance = chances[part][codes[test], labels[part, test].astype(np.intp)]
        found[cv, test] = np.random.default_rng(seed).random(int(test.sum())) < chance
    return found


def _by_name(groups: pd.Series) -> Rows:
    """Return the place of each row's group among the sorted names, as the rule has them."""
    return np.unique(groups.to_numpy(), return_inverse=True)[1]


def composed_labels(study: Study, repeat: int, fold: Rows) -> Mask:
    """Return the labels of one cross-validation, (n,), cell by cell."""
    labels, none = np.empty(len(fold), bool), np.empty(0, np.intp)
    for k in range(FOLDS):
        rows = np.flatnonzero(fold != k), none, np.flatnonzero(fold == k)
        columns, _ = compute(study, Fold(repeat, k, *rows))
        output = columns["score" if "score" in columns else "prediction"]
        labels[columns["row"]] = output > 0.5
    return labels
