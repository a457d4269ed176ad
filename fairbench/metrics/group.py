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
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairbench.metrics.rates import (
    FN,
    FP,
    TN,
    TP,
    Counts,
    Rate,
    accuracy,
    false_positive_rate,
    positive_predictive_value,
    selection_rate,
    true_positive_rate,
)
from fairbench.metrics.registry import BINARY, Better, Metric

Values = NDArray[np.float64]


def gap(rate: Rate, counts: Counts) -> Values:
    """Return the largest difference of `rate` between two groups; NaN if any group's is NaN."""
    values = rate(counts)
    largest: Values = values.max(axis=-1) - values.min(axis=-1)
    return largest


def difference(rate: Rate, counts: Counts) -> Values:
    """Return `rate` of every other group minus the reference's, (..., G, 4) -> (..., G - 1)."""
    values = rate(counts)
    signed: Values = values[..., 1:] - values[..., :1]
    return signed


def ratio(rate: Rate, counts: Counts) -> Values:
    """Return `rate` of every other group over the reference's; NaN where the reference's is 0."""
    values = rate(counts)
    return _divide(values[..., 1:], values[..., :1])


def statistical_parity(counts: Counts) -> Values:
    """Return the largest gap of selection rates (demographic parity difference)."""
    return gap(selection_rate, counts)


def equal_opportunity(counts: Counts) -> Values:
    """Return the largest gap of true positive rates (Hardt et al. 2016)."""
    return gap(true_positive_rate, counts)


def false_positive_rate_gap(counts: Counts) -> Values:
    """Return the largest gap of false positive rates (predictive equality)."""
    return gap(false_positive_rate, counts)


def equalized_odds(counts: Counts) -> Values:
    """Return the larger of the gaps of true and of false positive rates (Hardt et al. 2016)."""
    return np.maximum(equal_opportunity(counts), false_positive_rate_gap(counts))


def predictive_parity(counts: Counts) -> Values:
    """Return the largest gap of positive predictive values."""
    return gap(positive_predictive_value, counts)


def accuracy_gap(counts: Counts) -> Values:
    """Return the largest gap of accuracies."""
    return gap(accuracy, counts)


def disparate_impact(counts: Counts) -> Values:
    """Return the ratio of selection rates (Feldman et al. 2015).

    Unprivileged over privileged for two groups, smallest over largest for more.
    """
    values = selection_rate(counts)
    if values.shape[-1] == 2:
        return _divide(values[..., 1], values[..., 0])
    return _divide(values.min(axis=-1), values.max(axis=-1))


def _divide(top: Values, bottom: Values) -> Values:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(bottom > 0, top / bottom, np.nan)


def _of_groups(
    function: Callable[[Counts], Values],
    label: str,
    sentence: str,
    *rates: Rate,
    better: Better = "lower",
) -> Metric:
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


def debiased(metric: Callable[[Counts], Values], counts: Counts, resampled: Counts) -> float:
    """Return a gap freed of the upward bias that many small groups give the plug-in.

    The bias is estimated by a parametric bootstrap (mean over `resampled` minus the plug-in) and
    subtracted; the result is cut off at 0.

    Parameters
    ----------
    counts : (G, 4) observed counts.
    resampled : (T, G, 4) multinomial counts around them.
    """
    plug_in = float(metric(counts))
    samples = metric(resampled)
    samples = samples[~np.isnan(samples)]
    if np.isnan(plug_in) or not samples.size:
        return float("nan")
    return max(0.0, 2 * plug_in - float(samples.mean()))


Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RocHull:
    """The thresholds on the convex hull of one group's ROC curve, the only ones worth mixing.

    Attributes
    ----------
    thresholds : (V,) from minus to plus infinity; label 1 is for scores above.
    counts : (V, 4) the confusion counts at each, TN, FP, FN, TP.
    """

    thresholds: Array
    counts: Array

    @classmethod
    def of(cls, target: Array, score: Array) -> RocHull:
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
        tn = zeros - fn
        counts = np.stack([tn, tn[-1] - tn, fn, fn[-1] - fn], axis=1)
        return cls(np.concatenate([[-np.inf], between, [np.inf]]), counts)


@dataclass(frozen=True, eq=False)
class GroupThresholds:
    """A threshold for every group, drawn anew for each row: `weights` (V,) of each hull."""

    hulls: Sequence[RocHull]
    weights: Sequence[Array]

    def chance(self, score: Array, group: NDArray[np.int_]) -> Array:
        """Return the probability (n,) with which each row is given label 1."""
        return self.chance_at(thresholds_under(self.hulls, score, group))

    def chance_at(self, under: NDArray[np.intp]) -> Array:
        """Return the same of rows (n,) of which it is known which thresholds lie under them."""
        chance: Array = np.concatenate([[0, *weights.cumsum()] for weights in self.weights])
        return chance[under]

    @property
    def counts(self) -> Array:
        """The expected confusion counts (G, 4) on the rows the hulls were made of."""
        return np.stack([w @ hull.counts for hull, w in zip(self.hulls, self.weights, strict=True)])


def thresholds_under(
    hulls: Sequence[RocHull], score: Array, group: NDArray[np.int_]
) -> NDArray[np.intp]:
    """Return how many thresholds of its group lie under each score (n,), counted on by group."""
    under, first = np.zeros(len(score), np.intp), 0
    for g, hull in enumerate(hulls):
        rows = group == g
        under[rows] = first + np.searchsorted(hull.thresholds, score[rows], side="left")
        first += len(hull.thresholds) + 1
    return under


_CLEARLY = 1e-5  # rows by which a threshold must be better, a hundred times what solvers tell apart


def least_error(
    hulls: Sequence[RocHull], rates: Sequence[Rate], relaxations: Sequence[float]
) -> list[GroupThresholds]:
    """Return the thresholds of least error whose rates differ by at most each relaxation.

    Parameters
    ----------
    hulls : one for each of any number of groups.
    rates : what is to be equal. Their denominators must not depend on the thresholds, and be
        above 0 in every group: selection, true positive or false positive rates.
    relaxations : the largest difference of a rate between two groups that is allowed.

    Notes
    -----
    Equalised odds of Hardt et al. (2016), relaxed as by Cruz and Hardt (2024): a linear
    programme in the mixtures' weights and the lowest value of each rate. Where the thresholds that
    are best without a constraint meet it, they solve the programme, and it is left out.
    """
    costs = _costs(hulls)
    best = _unconstrained(hulls, costs)
    width = np.inf if best is None else np.max([gap(rate, best.counts) for rate in rates])
    programme = _Programme(hulls, costs, rates)
    return [
        best if best is not None and width <= relaxation else programme.solved(relaxation)
        for relaxation in relaxations
    ]


def _costs(hulls: Sequence[RocHull]) -> list[Array]:
    """Return errors in rows; of equal ones, thresholds near 1/2 are preferred by 1/1000 row."""
    return [
        hull.counts[:, FP] + hull.counts[:, FN] + np.abs(hull.thresholds - 0.5).clip(max=0.5) / 500
        for hull in hulls
    ]


def _unconstrained(hulls: Sequence[RocHull], costs: Sequence[Array]) -> GroupThresholds | None:
    """Return the best threshold of each group, None where one is not clearly the best."""
    if any(np.diff(np.partition(cost, 1)[:2])[0] < _CLEARLY for cost in costs):
        return None
    return GroupThresholds(hulls, [np.eye(len(cost))[cost.argmin()] for cost in costs])


@dataclass(frozen=True, eq=False)
class _Programme:
    """The linear programme of thresholds whose `rates` are to be alike in all groups."""

    hulls: Sequence[RocHull]
    costs: Sequence[Array]
    rates: Sequence[Rate]

    @cached_property
    def _owner(self) -> NDArray[np.intp]:
        """Which group each threshold is of."""
        return np.repeat(np.arange(len(self.hulls)), [len(cost) for cost in self.costs])

    @cached_property
    def _rows(self) -> Any:
        """The matrix of the constraints: highest rates, lowest rates, sums of weights."""
        from scipy.sparse import csc_array

        groups, counts = len(self.hulls), np.concatenate([hull.counts for hull in self.hulls])
        own = (self._owner == np.arange(groups)[:, None]).astype(float)
        # The lowest value of each rate is a variable too, after the weights.
        lowest = np.repeat(np.eye(len(self.rates)), groups, axis=0)
        above = np.hstack([np.vstack([own * rate(counts) for rate in self.rates]), -lowest])
        whole = np.hstack([own, np.zeros((groups, len(self.rates)))])
        return csc_array(np.vstack([above, -above, whole]))

    def solved(self, relaxation: float) -> GroupThresholds:
        """Return the thresholds of least error at one relaxation."""
        # Without whole numbers, `milp` is `linprog` with half its checks and the same solution.
        from scipy.optimize import LinearConstraint, milp

        size = len(self.hulls) * np.array([len(self.rates), len(self.rates), 1])
        ends = [-np.inf, -np.inf, 1.0], [relaxation, 0.0, 1.0]
        limits = LinearConstraint(self._rows, *(np.repeat(each, size) for each in ends))
        cost = np.concatenate([*self.costs, np.zeros(len(self.rates))])
        return GroupThresholds(self.hulls, _parts(milp(cost, constraints=limits).x, self._owner))


def _parts(solution: Array, owner: NDArray[np.int_]) -> list[Array]:
    """Return each group's weights, freed of the solver's rounding."""
    weights = solution[: len(owner)].clip(min=0)
    parts = (weights[owner == g] for g in range(owner[-1] + 1))
    return [part / part.sum() for part in parts]


def expected_counts(
    target: ArrayLike, chance: ArrayLike, group: NDArray[np.int_], *, n_groups: int
) -> Array:
    """Count (group, [TN, FP, FN, TP]) as (G, 4) where label 1 has probability `chance`, (n,)."""
    y, p = np.asarray(target, float), np.asarray(chance, float)
    counts = np.empty((n_groups, 4))
    for cell, weight in (
        (TN, (1 - y) * (1 - p)),
        (FP, (1 - y) * p),
        (FN, y * (1 - p)),
        (TP, y * p),
    ):
        counts[:, cell] = np.bincount(group, weight, n_groups)
    return counts
