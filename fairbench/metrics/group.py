"""Group fairness of classifications: pure functions of counts (..., G, 4), reference group first.

The same function serves observed counts, posterior draws (T, G, 4) and effective counts.

Last come thresholds for each group: the least error of a score at every distance from parity. Cruz
and Hardt (ICLR 2024, "Unprocessing seven years of algorithmic fairness") compare models at equal
fairness by them: the loosest constraint unprocesses a model, tighter ones postprocess it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.metrics.rates import (
    FN,
    FP,
    Counts,
    Rate,
    accuracy,
    false_positive_rate,
    positive_predictive_value,
    selection_rate,
    true_positive_rate,
)
from fairbench.metrics.registry import BINARY, Better, Metric


def gap(rate: Rate, counts: Counts) -> Floats:
    """Return the largest difference of `rate` between two groups; NaN if any group's is NaN."""
    values = rate(counts)
    largest: Floats = values.max(axis=-1) - values.min(axis=-1)
    return largest


def difference(rate: Rate, counts: Counts) -> Floats:
    """Return `rate` of every other group minus the reference's, (..., G, 4) -> (..., G - 1)."""
    values = rate(counts)
    signed: Floats = values[..., 1:] - values[..., :1]
    return signed


def ratio(rate: Rate, counts: Counts) -> Floats:
    """Return `rate` of every other group over the reference's; NaN where the reference's is 0."""
    values = rate(counts)
    return _divide(values[..., 1:], values[..., :1])


def statistical_parity(counts: Counts) -> Floats:
    """Return the largest gap of selection rates (demographic parity difference)."""
    return gap(selection_rate, counts)


def equal_opportunity(counts: Counts) -> Floats:
    """Return the largest gap of true positive rates (Hardt et al. 2016)."""
    return gap(true_positive_rate, counts)


def false_positive_rate_gap(counts: Counts) -> Floats:
    """Return the largest gap of false positive rates (predictive equality)."""
    return gap(false_positive_rate, counts)


def equalized_odds(counts: Counts) -> Floats:
    """Return the larger of the gaps of true and of false positive rates (Hardt et al. 2016)."""
    return np.maximum(equal_opportunity(counts), false_positive_rate_gap(counts))


def predictive_parity(counts: Counts) -> Floats:
    """Return the largest gap of positive predictive values."""
    return gap(positive_predictive_value, counts)


def accuracy_gap(counts: Counts) -> Floats:
    """Return the largest gap of accuracies."""
    return gap(accuracy, counts)


def disparate_impact(counts: Counts) -> Floats:
    """Return the ratio of selection rates (Feldman et al. 2015).

    Unprivileged over privileged for two groups, smallest over largest for more.
    """
    values = selection_rate(counts)
    if values.shape[-1] == 2:
        return _divide(values[..., 1], values[..., 0])
    return _divide(values.min(axis=-1), values.max(axis=-1))


def _divide(top: Floats, bottom: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(bottom > 0, top / bottom, np.nan)


def _of_groups(
    function: Callable[[Counts], Floats],
    label: str,
    sentence: str,
    *rates: Rate,
    better: Better = "lower",
) -> Metric:
    """Return the declaration of a metric that compares the rates of all groups."""
    return Metric(
        name=function.__name__,
        label=label,
        sentence=sentence,
        task=BINARY,
        better=better,
        needs=("prediction", "groups"),
        interval="widest",
        function=function,
        rates=rates,
        shown=("gaps",),
    )


STATISTICAL_PARITY = _of_groups(
    statistical_parity,
    "gap in selection rate",
    "The largest difference between two groups in the share predicted 1 (demographic parity "
    "difference).",
    selection_rate,
)
DISPARATE_IMPACT = _of_groups(
    disparate_impact,
    "ratio of selection rates",
    "The share predicted 1 of one group over another's, of several the smallest over the largest.",
    selection_rate,
    better=1.0,
)
EQUAL_OPPORTUNITY = _of_groups(
    equal_opportunity,
    "gap in true positive rate",
    "The largest difference between two groups in the true positive rate (equal opportunity).",
    true_positive_rate,
)
FALSE_POSITIVE_RATE_GAP = _of_groups(
    false_positive_rate_gap,
    "gap in false positive rate",
    "The largest difference between two groups in the false positive rate.",
    false_positive_rate,
)
EQUALIZED_ODDS = _of_groups(
    equalized_odds,
    "gap in equalized odds",
    "The larger of the largest differences in the true and in the false positive rate.",
    true_positive_rate,
    false_positive_rate,
)
PREDICTIVE_PARITY = _of_groups(
    predictive_parity,
    "gap in precision",
    "The largest difference between two groups in precision.",
    positive_predictive_value,
)
ACCURACY_GAP = _of_groups(
    accuracy_gap,
    "gap in accuracy",
    "The largest difference between two groups in accuracy.",
    accuracy,
)


def _spelled(rate: Rate) -> str:
    return rate.name.replace("_", " ").replace("positive predictive value", "precision")


def _of_pairs(form: Literal["difference", "ratio"], name: str, rate: Rate) -> Metric:
    compared = "minus" if form == "difference" else "over"
    return Metric(
        name=f"{name}_{form}",
        label=f"{'difference in' if form == 'difference' else 'ratio of'} {_spelled(rate)}",
        sentence=f"A group's {_spelled(rate)} {compared} that of the first group.",
        task=BINARY,
        better="neither" if form == "difference" else 1.0,
        needs=("prediction", "groups"),
        interval=form,
        function=partial(difference if form == "difference" else ratio, rate),
        rates=(rate,),
    )


STATISTICAL_PARITY_DIFFERENCE = _of_pairs("difference", "statistical_parity", selection_rate)
STATISTICAL_PARITY_RATIO = _of_pairs("ratio", "statistical_parity", selection_rate)
EQUAL_OPPORTUNITY_DIFFERENCE = _of_pairs("difference", "equal_opportunity", true_positive_rate)
EQUAL_OPPORTUNITY_RATIO = _of_pairs("ratio", "equal_opportunity", true_positive_rate)
FALSE_POSITIVE_RATE_DIFFERENCE = _of_pairs("difference", "false_positive_rate", false_positive_rate)
FALSE_POSITIVE_RATE_RATIO = _of_pairs("ratio", "false_positive_rate", false_positive_rate)
PREDICTIVE_PARITY_DIFFERENCE = _of_pairs(
    "difference", "predictive_parity", positive_predictive_value
)
PREDICTIVE_PARITY_RATIO = _of_pairs("ratio", "predictive_parity", positive_predictive_value)
ACCURACY_DIFFERENCE = _of_pairs("difference", "accuracy", accuracy)
ACCURACY_RATIO = _of_pairs("ratio", "accuracy", accuracy)


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
    with np.errstate(invalid="ignore"):
        mean = np.where(defined, samples, 0.0).sum(axis=0) / defined.sum(axis=0)
    corrected: Floats = np.maximum(0.0, 2 * metric(counts) - mean)
    return corrected


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

        values, place = np.unique(score, return_inverse=True)
        size, positives = np.bincount(place), np.bincount(place, target)
        cuts = isotonic_regression(positives / size, weights=size).blocks
        between = (values[cuts[1:-1] - 1] + values[cuts[1:-1]]) / 2
        # The rows at and under a threshold are given label 0: all rows, and the positives.
        zeros, fn = (np.concatenate([[0], sums.cumsum()])[cuts] for sums in (size, positives))
        counts = _at_thresholds(zeros - fn, fn)
        return cls(np.concatenate([[-np.inf], between, [np.inf]]), counts)

    def counts_of(self, target: Floats, score: Floats) -> Floats:
        """Return the confusion counts (V, 4) of other rows (n,) at each threshold."""
        one_group = np.zeros(len(score), np.intp)
        counts = counts_at(self.thresholds, target, score, one_group)[:, 0]
        return np.array(counts, np.float64, order="C")

    @property
    def costs(self) -> Floats:
        """The errors (V,) in rows; of equal ones, thresholds near 1/2 are preferred by 1/1000."""
        near = np.abs(self.thresholds - 0.5).clip(max=0.5) / 500
        return np.asarray(self.counts[:, FP] + self.counts[:, FN] + near)


def counts_at(
    thresholds: Floats, target: Floats | None, score: Floats, codes: NDArray[np.intp]
) -> NDArray[np.int64]:
    """Return the confusion counts (K, G, 4) of decisions score > threshold, at thresholds (K,).

    Parameters
    ----------
    target : (n,) labels 0 / 1; all 0 without any.
    codes : (n,) the groups.
    """
    distinct, place = np.unique(thresholds, return_inverse=True)
    steps, groups = len(distinct) + 1, int(codes.max(initial=0)) + 1
    passed = np.searchsorted(distinct, score, side="left")  # thresholds that are less
    label = 0 if target is None else target.astype(np.intp)
    cells = np.bincount((2 * codes + label) * steps + passed, minlength=2 * groups * steps)
    not_selected = cells.reshape(groups, 2, steps).cumsum(axis=-1)
    negative, whole = not_selected[..., :-1], not_selected[..., -1:]
    by_decision = np.stack([negative, whole - negative], axis=2)  # (G, label, decision, K)
    return np.moveaxis(by_decision.reshape(groups, 4, steps - 1).take(place, axis=-1), -1, 0)


def _at_thresholds(tn: Floats, fn: Floats) -> Floats:
    """Return the counts (V, 4) at thresholds; the last one is above all scores."""
    return np.stack([tn, tn[-1] - tn, fn, fn[-1] - fn], axis=1)


Weights = list[Floats]  # of one sample: for each group (E, V), of its V thresholds at E relaxations


def expected_counts(weights: Weights, counts: Sequence[Floats]) -> Floats:
    """Return the counts (E, G, 4) where every row's threshold is drawn anew.

    Parameters
    ----------
    weights : the probability of each threshold, as :func:`least_error` has them.
    counts : (V, 4) those at each threshold of each group.
    """
    return np.stack(
        [w @ group_counts for w, group_counts in zip(weights, counts, strict=True)], axis=-2
    )


def least_error(
    samples: Sequence[Sequence[RocHull]], rates: Sequence[Rate], relaxations: Sequence[float]
) -> list[Weights]:
    """Return the thresholds of least error whose rates differ by at most each relaxation.

    Parameters
    ----------
    samples : of each, a hull for each of any number of groups.
    rates : what is to be equal. Their denominators must not depend on the thresholds, and be
        above 0 in every group: selection, true positive or false positive rates.
    relaxations : (E,) the largest differences of a rate between two groups that are allowed.

    Notes
    -----
    Equalised odds of Hardt et al. (2016), relaxed as by Cruz and Hardt (2024): a linear
    programme in the mixtures' weights and the lowest value of each rate. Of one rate, its solution
    is where a convex function of the lowest value has its least value; of several, it is left to a
    solver, but where the thresholds that are best without a constraint meet it.
    """
    if len(rates) == 1:
        return [_at_one_rate(hulls, rates[0], np.asarray(relaxations, float)) for hulls in samples]
    return _at_several_rates(samples, rates, relaxations)


_SAME = 1e-9  # rows, under which costs differ by rounding alone


@dataclass(frozen=True, eq=False)
class _LeastCost:
    """What a group costs at least at a value of one rate: convex, linear between vertices.

    Attributes
    ----------
    thresholds : (H,) the places of those that are mixed.
    rate, cost : (H,) of each, by rate.
    size : how many thresholds there are in all, V.
    """

    thresholds: NDArray[np.intp]
    rate: Floats
    cost: Floats
    size: int

    @classmethod
    def of(cls, hull: RocHull, rate: Rate) -> _LeastCost:
        """Return the lower convex hull of costs over rates: increasing slopes, as PAV makes them.

        The ROC curve's hull is convex in every rate, too, but for what a threshold costs itself.
        """
        from scipy.optimize import isotonic_regression

        values, costs = rate(hull.counts), hull.costs
        order = np.lexsort((costs, values))
        order = order[np.diff(values[order], prepend=-1.0) > 0]
        across = np.diff(values[order])
        slopes = np.diff(costs[order]) / across
        places = order[isotonic_regression(slopes, weights=across).blocks]
        return cls(places, values[places], costs[places], len(costs))

    @property
    def best(self) -> float:
        """The rate at which it costs least."""
        return float(self.rate[self.cost.argmin()])

    def weights(self, rate: Floats) -> Floats:
        """Return the mixtures (E, V) that cost least at values (E,) of the rate."""
        above = np.searchsorted(self.rate, rate).clip(1, len(self.rate) - 1)
        low, high = self.rate[above - 1], self.rate[above]
        share, weights = (rate - low) / (high - low), np.zeros((len(rate), self.size))
        rows = np.arange(len(rate))
        weights[rows, self.thresholds[above - 1]] = 1 - share
        weights[rows, self.thresholds[above]] = share
        return weights


def _at_one_rate(hulls: Sequence[RocHull], rate: Rate, relaxations: Floats) -> Weights:
    """Return the thresholds of one sample whose values of a rate may differ by (E,)."""
    groups = [_LeastCost.of(hull, rate) for hull in hulls]
    # In a window of values each group takes the one nearest to its best. Over the lowest value of
    # the window their sum is convex and linear between places where an end is at a vertex.
    ends, width = np.unique(np.concatenate([group.rate for group in groups])), relaxations[:, None]
    at = np.broadcast_to(ends, (len(relaxations), len(ends)))
    low, high = np.hstack([at, at - width]), np.hstack([at + width, at])
    values = [np.clip(group.best, low, high) for group in groups]
    pairs = list(zip(groups, values, strict=True))
    costs = np.sum([np.interp(value, group.rate, group.cost) for group, value in pairs], axis=0)
    # Of windows that cost the same, which rounding would choose among, the highest is taken.
    same = costs <= costs.min(axis=1, keepdims=True) + _SAME
    place = np.where(same, low, -np.inf).argmax(axis=1)
    rows = np.arange(len(relaxations))
    return [group.weights(value[rows, place]) for group, value in pairs]


_CLEARLY = 1e-5  # rows by which a threshold must be better, a hundred times what solvers tell apart
_AT_ONCE = 100  # programmes that a solver is called for, as a call costs more than a small one


def _at_several_rates(
    samples: Sequence[Sequence[RocHull]], rates: Sequence[Rate], relaxations: Sequence[float]
) -> list[Weights]:
    """Return the thresholds of each sample whose values of several rates may differ."""
    solved = [
        [np.zeros((len(relaxations), len(hull.costs))) for hull in hulls] for hulls in samples
    ]
    programmes, places = [], []
    for hulls, weights in zip(samples, solved, strict=True):
        best = [hull.costs.argmin() for hull in hulls]
        counts = np.stack([hull.counts[v] for hull, v in zip(hulls, best, strict=True)])
        width = np.max([gap(rate, counts) for rate in rates])
        if any(np.diff(np.partition(hull.costs, 1)[:2])[0] < _CLEARLY for hull in hulls):
            width = np.inf
        programme = _Programme(hulls, rates)
        for e, relaxation in enumerate(relaxations):
            if width <= relaxation:
                for of_group, v in zip(weights, best, strict=True):
                    of_group[e, v] = 1
            else:
                programmes.append((programme, relaxation))
                places.append((weights, e))
    for start in range(0, len(programmes), _AT_ONCE):
        batch = slice(start, start + _AT_ONCE)
        for (weights, e), solution in zip(places[batch], _solved(programmes[batch]), strict=True):
            for of_group, mixture in zip(weights, solution, strict=True):
                of_group[e] = mixture
    return solved


@dataclass(frozen=True, eq=False)
class _Programme:
    """The linear programme of thresholds whose `rates` are to be alike in all groups.

    Its variables are the weights of each group in turn, and the lowest value of each rate.
    """

    hulls: Sequence[RocHull]
    rates: Sequence[Rate]

    @cached_property
    def costs(self) -> Floats:
        """What a unit of each variable costs."""
        return np.concatenate([*(hull.costs for hull in self.hulls), np.zeros(len(self.rates))])

    @cached_property
    def rows(self) -> Floats:
        """The matrix of the constraints: highest rates, lowest rates, sums of weights."""
        groups, counts = len(self.hulls), np.concatenate([hull.counts for hull in self.hulls])
        of_group = np.repeat(np.eye(groups), [len(hull.counts) for hull in self.hulls], axis=1)
        lowest = np.repeat(np.eye(len(self.rates)), groups, axis=0)
        above = np.hstack([np.vstack([of_group * rate(counts) for rate in self.rates]), -lowest])
        whole = np.hstack([of_group, np.zeros((groups, len(self.rates)))])
        return np.vstack([above, -above, whole])

    def limits(self, relaxation: float) -> Floats:
        """Return the least and the largest values (2, rows) at a relaxation."""
        size = len(self.hulls) * np.array([len(self.rates), len(self.rates), 1])
        ends = np.array([[-np.inf, -np.inf, 1.0], [relaxation, 0.0, 1.0]])
        return np.repeat(ends, size, axis=1)

    def weights(self, solution: Floats) -> Weights:
        """Return each group's weights (V,), freed of the solver's rounding."""
        ends = np.cumsum([len(hull.counts) for hull in self.hulls])
        parts = np.split(solution.clip(min=0), ends)[:-1]
        return [part / part.sum() for part in parts]


def _solved(programmes: Sequence[tuple[_Programme, float]]) -> list[Weights]:
    """Return the solutions of programmes at one relaxation each, solved side by side."""
    # Without whole numbers, `milp` is `linprog` with half its checks and the same solution.
    from scipy.optimize import LinearConstraint, milp
    from scipy.sparse import block_diag

    costs = [programme.costs for programme, _ in programmes]
    limits = np.hstack([programme.limits(relaxation) for programme, relaxation in programmes])
    rows = block_diag([programme.rows for programme, _ in programmes], format="csc")
    solution = milp(np.concatenate(costs), constraints=LinearConstraint(rows, *limits)).x
    parts = np.split(solution, np.cumsum([len(cost) for cost in costs])[:-1])
    return [programme.weights(part) for (programme, _), part in zip(programmes, parts, strict=True)]
