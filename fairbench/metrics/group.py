"""Group fairness of classifications: pure functions of counts (..., G, 4), reference group first.

The same function serves observed counts, posterior draws (T, G, 4) and effective counts. The last
part has thresholds per group, and metrics of several classes, each of which has such counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairbench.core.arrays import Floats, divide
from fairbench.metrics.probability import brier_rows, log_loss_rows
from fairbench.metrics.registry import FN, FP, Counts, Rate, base_rate, selection_rate


def gap(rate: Callable[[Counts], Floats], counts: Counts) -> Floats:
    """Return the largest difference of `rate` between two groups; NaN if any group's is NaN."""
    values = rate(counts)
    return values.max(axis=-1) - values.min(axis=-1)


def difference(rate: Rate, counts: Counts) -> Floats:
    """Return `rate` of every other group minus the reference's, (..., G, 4) -> (..., G - 1)."""
    values = rate(counts)
    return values[..., 1:] - values[..., :1]


def ratio(rate: Rate, counts: Counts) -> Floats:
    """Return `rate` of every other group over the reference's; NaN where the reference's is 0."""
    values = rate(counts)
    return divide(values[..., 1:], values[..., :1])


def mean_rate(first: Rate, second: Rate, counts: Counts) -> Floats:
    """Return the mean of two rates, (..., 4) -> (...)."""
    return (first(counts) + second(counts)) / 2


def larger_gap(first: Rate, second: Rate, counts: Counts) -> Floats:
    """Return the larger of the gaps of two rates (equalized odds of Hardt et al. 2016)."""
    return np.maximum(gap(first, counts), gap(second, counts))


def extreme_ratio(rate: Rate, counts: Counts) -> Floats:
    """Return the ratio of two groups' rates (disparate impact of Feldman et al. 2015).

    Unprivileged over privileged for two groups, smallest over largest for more.
    """
    values = rate(counts)
    if values.shape[-1] == 2:
        return divide(values[..., 1], values[..., 0])
    return divide(values.min(axis=-1), values.max(axis=-1))


def debiased(metric: Callable[[Counts], Floats], counts: Counts, resampled: Counts) -> Floats:
    """Return gaps (...) freed of the upward bias that many small groups give the plug-in.

    The bias is estimated by a parametric bootstrap (mean over `resampled` minus the plug-in) and
    subtracted; the result is cut off at 0.

    Parameters
    ----------
    counts : (..., G, 4) observed counts.
    resampled : (T, ..., G, 4) multinomial counts around them.
    """
    samples = metric(resampled)
    defined = ~np.isnan(samples)
    mean = divide(np.where(defined, samples, 0.0).sum(axis=0), defined.sum(axis=0))
    return np.maximum(0.0, 2 * metric(counts) - mean)


# Thresholds for each group: the least error of a score at every distance from parity.
#
# Cruz and Hardt (ICLR 2024, "Unprocessing seven years of algorithmic fairness") compare models at
# equal fairness by them: the loosest constraint unprocesses a model, tighter ones postprocess it.
#
# A group's threshold may be drawn at random: its decisions are then a mixture of the decisions at
# several thresholds, and so are its confusion counts and rates. What is optimised are the weights
# of these mixtures.


@dataclass(frozen=True, eq=False)
class RocHull:
    """The thresholds on the convex hull of one group's ROC curve, the only ones worth mixing.

    Attributes
    ----------
    thresholds : (V,) from minus to plus infinity; label 1 is for scores above.
    counts : (V, 4) the confusion counts at each, TN, FP, FN, TP.
    """

    thresholds: Floats
    counts: Floats

    @classmethod
    def of(cls, target: Floats, score: Floats) -> RocHull:
        """Return the hull of labels 0 / 1 and scores, (n,).

        Its thresholds lie between the blocks of the isotonic regression of label on score (Fawcett
        and Niculescu-Mizil 2007, "PAV and the ROC convex hull").
        """
        from scipy.optimize import isotonic_regression

        distinct, score_index = np.unique(score, return_inverse=True)
        size = np.bincount(score_index)
        positives = np.bincount(score_index, target)
        block_starts = isotonic_regression(positives / size, weights=size).blocks
        inner_starts = block_starts[1:-1]
        between = (distinct[inner_starts - 1] + distinct[inner_starts]) / 2
        # The rows at and under a threshold are given label 0: all rows, and the positives.
        rows_below, fn = (
            np.concatenate([[0], sums.cumsum()])[block_starts] for sums in (size, positives)
        )
        tn = rows_below - fn
        # The last threshold is above all scores.
        counts = np.stack([tn, tn[-1] - tn, fn, fn[-1] - fn], axis=1)
        return cls(np.concatenate([[-np.inf], between, [np.inf]]), counts)

    def counts_of(self, target: Floats, score: Floats) -> Floats:
        """Return the confusion counts (V, 4) of other rows (n,) at each threshold."""
        one_group = np.zeros(len(score), np.intp)
        counts = counts_at(self.thresholds, target, score, one_group)[:, 0]
        return np.array(counts, np.float64, order="C")

    @property
    def costs(self) -> Floats:
        """The errors (V,) in rows; of equal ones, thresholds near 1/2 are preferred by 1/1000."""
        distance_cost = np.abs(self.thresholds - 0.5).clip(max=0.5) / 500
        return np.asarray(self.counts[:, FP] + self.counts[:, FN] + distance_cost)


def counts_at(
    thresholds: Floats, target: Floats | None, score: Floats, codes: NDArray[np.intp]
) -> NDArray[np.int64]:
    """Return the confusion counts (K, G, 4) of decisions score > threshold, at thresholds (K,).

    Parameters
    ----------
    target : (n,) labels 0 / 1; None counts every label as 0.
    codes : (n,) the groups.
    """
    distinct, threshold_index = np.unique(thresholds, return_inverse=True)
    steps = len(distinct) + 1
    groups = int(codes.max(initial=0)) + 1
    passed = np.searchsorted(distinct, score, side="left")  # how many thresholds are less
    label = 0 if target is None else target.astype(np.intp)
    cells = np.bincount((2 * codes + label) * steps + passed, minlength=2 * groups * steps)
    not_selected = cells.reshape(groups, 2, steps).cumsum(axis=-1)
    negative = not_selected[..., :-1]
    all_rows = not_selected[..., -1:]
    by_decision = np.stack([negative, all_rows - negative], axis=2)  # (G, label, decision, K)
    counts = by_decision.reshape(groups, 4, steps - 1).take(threshold_index, axis=-1)
    return np.moveaxis(counts, -1, 0)


Weights = list[Floats]  # of one sample: for each group (E, V), of its V thresholds at E relaxations


def expected_counts(weights: Weights, counts: Sequence[Floats]) -> Floats:
    """Return the counts (E, G, 4) to expect where each row's threshold is drawn at random.

    Parameters
    ----------
    weights : the probability of each threshold, as :func:`least_error` returns them.
    counts : for each group, the counts (V, 4) at each of its thresholds.
    """
    return np.stack(list(map(np.matmul, weights, counts)), axis=-2)


def least_error(
    samples: Sequence[Sequence[RocHull]], rates: Sequence[Rate], relaxations: Sequence[float]
) -> list[Weights]:
    """Return the thresholds of least error whose rates differ by at most each relaxation.

    Parameters
    ----------
    samples : for each sample, the hulls of its groups.
    rates : what is to be equal. Their denominators must not depend on the thresholds, and be
        above 0 in every group: selection, true positive or false positive rates.
    relaxations : (E,) the largest differences of a rate between two groups that are allowed.

    Notes
    -----
    Equalised odds of Hardt et al. (2016), relaxed as by Cruz and Hardt (2024): a linear
    programme in the mixtures' weights and the lowest value of each rate. With one rate, its
    solution is where a convex function of the lowest value has its least value. With several
    rates, a solver finds it. Where the groups' thresholds of least error differ by at most the
    relaxation already, they are the solution, and no programme is needed; all other pairs of a
    sample and a relaxation are a programme each, and solved in batches.
    """
    if len(rates) == 1:
        return [_at_one_rate(hulls, rates[0], np.asarray(relaxations, float)) for hulls in samples]
    weights = [
        [np.zeros((len(relaxations), len(hull.costs))) for hull in hulls] for hulls in samples
    ]
    # The sample and the relaxation of each programme, and what it is.
    unsolved: list[tuple[int, int, _Programme]] = []
    for s, hulls in enumerate(samples):
        thresholds, largest_gap = _unconstrained_optimum(hulls, rates)
        programme = _programme(hulls, rates)
        for e, relaxation in enumerate(relaxations):
            if largest_gap > relaxation:
                unsolved.append((s, e, programme))
                continue
            for group_weights, threshold in zip(weights[s], thresholds, strict=True):
                group_weights[e, threshold] = 1
    for start in range(0, len(unsolved), _BATCH):
        batch = unsolved[start : start + _BATCH]
        solutions = _solve([(programme, relaxations[e]) for _, e, programme in batch], len(rates))
        for (s, e, _), solution in zip(batch, solutions, strict=True):
            stops = np.cumsum([group_weights.shape[1] for group_weights in weights[s]])
            # Freed of the solver's rounding.
            mixtures = np.split(solution.clip(min=0), stops)[:-1]
            for group_weights, mixture in zip(weights[s], mixtures, strict=True):
                group_weights[e] = mixture / mixture.sum()
    return weights


_SAME = 1e-9  # rows; costs that differ by less differ by rounding alone


def _least_cost(hull: RocHull, rate: Rate) -> tuple[NDArray[np.intp], Floats, Floats]:
    """Return the least cost of a group at each value of one rate: convex, with H vertices.

    It is the lower convex hull of costs over rates: increasing slopes, as PAV makes them. The ROC
    curve's hull would already be convex in every rate if thresholds had no costs of their own.

    Returns
    -------
    Of each vertex (H,) the index of its threshold, its rate, increasing, and its cost.
    """
    from scipy.optimize import isotonic_regression

    values, costs = rate(hull.counts), hull.costs
    order = np.lexsort((costs, values))
    order = order[np.diff(values[order], prepend=-1.0) > 0]
    steps = np.diff(values[order])
    slopes = np.diff(costs[order]) / steps
    vertices = order[isotonic_regression(slopes, weights=steps).blocks]
    return vertices, values[vertices], costs[vertices]


def _mixtures(thresholds: NDArray[np.intp], vertices: Floats, rate: Floats, size: int) -> Floats:
    """Return the mixtures (E, V) of `size` thresholds of least cost at values (E,) of the rate.

    Each mixes the two vertices (H,) that its value lies between.
    """
    above = np.searchsorted(vertices, rate).clip(1, len(vertices) - 1)
    low, high = vertices[above - 1], vertices[above]
    share_of_high = (rate - low) / (high - low)
    weights = np.zeros((len(rate), size))
    each = np.arange(len(rate))
    weights[each, thresholds[above - 1]] = 1 - share_of_high
    weights[each, thresholds[above]] = share_of_high
    return weights


def _at_one_rate(hulls: Sequence[RocHull], rate: Rate, relaxations: Floats) -> Weights:
    """Return the thresholds of one sample whose values of a rate may differ by (E,).

    Notes
    -----
    A relaxation allows a window of values [low, low + relaxation]. In it each group takes the value
    nearest to its best one. Over `low`, the sum of the groups' costs is convex, and linear between
    points at which an end of the window is at a vertex of a group: the least cost is at one of
    these points, and all of them are tried.
    """
    groups = [_least_cost(hull, rate) for hull in hulls]
    vertices = np.unique(np.concatenate([values for _, values, _ in groups]))
    window = relaxations[:, None]
    at_vertices = np.broadcast_to(vertices, (len(relaxations), len(vertices)))
    low = np.hstack([at_vertices, at_vertices - window])
    high = np.hstack([at_vertices + window, at_vertices])
    rates = [np.clip(values[cost.argmin()], low, high) for _, values, cost in groups]
    costs = np.sum(
        [np.interp(at, *group[1:]) for at, group in zip(rates, groups, strict=True)], axis=0
    )
    # Of windows that cost the same, which rounding would choose among, the highest is taken.
    is_least = costs <= costs.min(axis=1, keepdims=True) + _SAME
    window_index = np.where(is_least, low, -np.inf).argmax(axis=1)
    each = np.arange(len(relaxations))
    return [
        _mixtures(thresholds, values, at[each, window_index], len(hull.thresholds))
        for hull, (thresholds, values, _), at in zip(hulls, groups, rates, strict=True)
    ]


_CLEARLY = 1e-5  # rows by which a threshold must be better, a hundred times what solvers tell apart
_BATCH = 100  # programmes solved by one call of the solver, as a call costs more than a small one


def _unconstrained_optimum(
    hulls: Sequence[RocHull], rates: Sequence[Rate]
) -> tuple[list[int], float]:
    """Return the thresholds of least error of one sample's groups, and their largest gap.

    That is the largest difference between two groups in any rate; infinite where a group has
    another threshold that is about as good, so that a solver has to choose.
    """
    thresholds = [int(hull.costs.argmin()) for hull in hulls]
    # Whether the least cost is clearly less than the second.
    if any(np.diff(np.partition(hull.costs, 1)[:2]) < _CLEARLY for hull in hulls):
        return thresholds, np.inf
    counts = np.stack(
        [hull.counts[threshold] for hull, threshold in zip(hulls, thresholds, strict=True)]
    )
    return thresholds, float(np.max([gap(rate, counts) for rate in rates]))


# A linear programme: what a unit of each variable costs, and the matrix of its constraints.
_Programme = tuple[Floats, Floats]


def _programme(hulls: Sequence[RocHull], rates: Sequence[Rate]) -> _Programme:
    """Return the programme of thresholds under which `rates` are nearly equal in all groups.

    Its variables are the weights of each group in turn, and the lowest value m_r of each rate r;
    its constraints those of the highest rates, the lowest rates and the sums of weights.

    Notes
    -----
    With w_gv the weight of threshold v in group g, c_gv its cost and x_gvr its value of rate r,

        minimise sum_gv c_gv w_gv
        such that sum_v x_gvr w_gv - m_r <= relaxation   for all g, r
                  m_r - sum_v x_gvr w_gv <= 0            for all g, r
                  sum_v w_gv = 1                         for all g.
    """
    groups = len(hulls)
    counts = np.concatenate([hull.counts for hull in hulls])
    is_of_group = np.repeat(np.eye(groups), [len(hull.counts) for hull in hulls], axis=1)
    lowest = np.repeat(np.eye(len(rates)), groups, axis=0)
    above_lowest = np.hstack([np.vstack([is_of_group * rate(counts) for rate in rates]), -lowest])
    sums_of_weights = np.hstack([is_of_group, np.zeros((groups, len(rates)))])
    costs = np.concatenate([*(hull.costs for hull in hulls), np.zeros(len(rates))])
    return costs, np.vstack([above_lowest, -above_lowest, sums_of_weights])


def _solve(programmes: Sequence[tuple[_Programme, float]], rates: int) -> list[Floats]:
    """Return the solutions of programmes at one relaxation each, solved side by side."""
    # Without whole numbers, `milp` is `linprog` with half its checks and the same solution.
    from scipy.optimize import LinearConstraint, milp
    from scipy.sparse import block_diag

    costs = [of_variables for (of_variables, _), _ in programmes]
    matrix = block_diag([constraints for (_, constraints), _ in programmes], format="csc")
    # The least and the largest value of each kind of constraint, in every group.
    limits = [
        np.repeat(
            np.array([[-np.inf, -np.inf, 1.0], [relaxation, 0.0, 1.0]]),
            len(constraints) // (2 * rates + 1) * np.array([rates, rates, 1]),
            axis=1,
        )
        for (_, constraints), relaxation in programmes
    ]
    constraint = LinearConstraint(matrix, *np.hstack(limits))
    solution = milp(np.concatenate(costs), constraints=constraint).x
    return np.split(solution, np.cumsum([len(cost) for cost in costs])[:-1])


# Metrics of several classes: likelihoods, and group fairness as averages over the classes.
#
# Each class j against the rest has a table of TN, FP, FN, TP for every group s (Barrainkua et al.,
# AISTATS 2024, section 8, equation 4). Groups are compared in each table as with two classes: gap_j
# is the largest difference between two groups in AR_sj, the share predicted as j (statistical
# parity), or in TPR_sj, the share of j that is predicted as j (equal opportunity). The classes are
# then combined:
#
# - weighted: sum_j p(y = j) gap_j, where p(y = j) is how often j is the label of anyone. These are
#   the paper's macro forms, (9) to (12); the name is scikit-learn's for such weights;
# - group_weighted: each group's rates are summed first, with its own labels as weights, and the
#   largest difference between two groups is taken of the sums sum_j p(y = j | s) AR_sj: the paper's
#   macro-micro form (13), (14). Of true positive rates such a sum is the group's accuracy, because
#   p(y = j | s) TPR_sj is its share of rows that are j and predicted as j; so (15) and (16) equal
#   (7) and (8), which are the micro form;
# - micro: the classes' tables are added up first, (7) and (8). Shares of predictions all become 1
#   over the number of classes, so that (5) and (6) are 0 for every classifier, and are left out;
# - class_mean: the plain mean over the classes, which that paper does not have;
# - largest: the largest gap of any class (Denis, Elie, Hebiri, Hu 2021).

FORMS = ("class_mean", "weighted", "largest")


def average_gaps(form: str, gaps: Floats, shares: Floats) -> Floats:
    """Return a form of the classes' gaps (C, ...); gaps of NaN are left out.

    Parameters
    ----------
    form : one of `FORMS`.
    shares : (C, ...) how often each class is the label.

    Notes
    -----
    ``weighted``: Barrainkua et al., AISTATS 2024, section 8, equations (9) and (11).
    """
    if form == "largest":
        return np.fmax.reduce(gaps)
    weight = np.where(np.isnan(gaps), 0.0, shares if form == "weighted" else 1.0)
    return divide((weight * np.nan_to_num(gaps)).sum(axis=0), weight.sum(axis=0))


def group_weighted(tables: Counts) -> Floats:
    """Return sum_j p(y = j | s) AR_sj of every group s, (C, ..., G, 4) -> (..., G).

    It is how often a row's label and the prediction of another row of its group, drawn at random,
    are the same class; NaN of an empty group.
    """
    return (base_rate(tables) * selection_rate(tables)).sum(axis=0)


def class_log_loss(target: ArrayLike, scores: ArrayLike, *, floor: float = 1e-15) -> Floats:
    """Return each row's -log p of its class, p clipped to [floor, 1 - floor].

    Parameters
    ----------
    target : (n,) codes.
    scores : (n, C); of two classes it is the log loss of a label.
    """
    code, p = np.asarray(target, np.intp), np.asarray(scores, float)
    if p.shape[1] == 2:
        return log_loss_rows(code, p[:, 1], floor=floor)
    of_label = np.take_along_axis(p, code[:, None], axis=1)[:, 0]
    return -np.log(np.clip(of_label, floor, 1 - floor))


def class_brier(target: ArrayLike, scores: ArrayLike) -> Floats:
    """Return half of each row's sum of squared differences, over the classes; at most 1.

    Brier (1950) has the whole sum. Halved, it is the score of a label where there are two classes.

    Parameters
    ----------
    target : (n,) codes.
    scores : (n, C) probabilities.
    """
    code, p = np.asarray(target, np.intp), np.asarray(scores, float)
    if p.shape[1] == 2:
        return brier_rows(code, p[:, 1])
    return ((p - (code[:, None] == np.arange(p.shape[1]))) ** 2).sum(axis=1) / 2
