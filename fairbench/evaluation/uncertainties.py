"""Evaluates how uncertain predictions are, by group, across variants and among similar people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fairbench.data.dataset import Task
from fairbench.evaluation.predictions import Groups, Labelled
from fairbench.evaluation.table import (
    EVERYONE,
    NAN,
    NO_SETTING,
    OK,
    MetricTable,
    Setting,
    Status,
    Where,
    insufficient,
    invalid_rows,
    no_rows,
    undefined,
)
from fairbench.inference.means import ROOT_ROWS as FEWEST
from fairbench.inference.means import Moments, around, loss_limits
from fairbench.inference.rates import (
    Limits,
    difference_limits,
    probability_ratio_below,
    ratio_limits,
)
from fairbench.metrics.group_means import GroupMeans, Neighbours, individual_fairness

Array = NDArray[np.float64]


def variances(data: Labelled) -> dict[str, Array]:
    """Return the variances of the target that predictions claim, of a label over all classes.

    `aleatoric` and `epistemic` are those of methods with members. `predictive` is their sum, and
    2 p (1 - p), over several classes the sum of p (1 - p), or the square of the standard deviation
    of every other method: a single model's variance is known, but not how much of it is which.

    Of several classes, the same three of the entropy in nats follow, where predictions have it.
    """
    columns = data.predictions
    given = {name: data.column(name) for name in ("aleatoric", "epistemic") if name in columns}
    if len(given) == 2:
        given["predictive"] = given["aleatoric"] + given["epistemic"]
    elif data.task is Task.BINARY and "score" in columns:
        score = data.column("score")
        given["predictive"] = 2 * score * (1 - score)
    elif data.task is Task.MULTICLASS and "score_0" in columns:
        scores = [data.column(f"score_{k}") for k in range(len(data.classes))]
        given["predictive"] = _variance_of(scores)
    elif data.task is Task.REGRESSION and "sd" in columns:
        sd = data.column("sd")
        given["predictive"] = np.where(sd > 0, sd, NAN) ** 2
    entropies = [name for name in ENTROPIES if name in columns]
    if entropies:
        given |= {name: data.column(name) for name in entropies}
        given["entropy_predictive"] = given["entropy_aleatoric"] + given["entropy_epistemic"]
    return given


ENTROPIES = ("entropy_aleatoric", "entropy_epistemic")


def _variance_of(scores: Sequence[Array]) -> Array:
    """Return the sum of p (1 - p) over the classes, of two as of a label."""
    if len(scores) == 2:
        return 2 * scores[1] * (1 - scores[1])
    return np.asarray(sum(p * (1 - p) for p in scores))


@dataclass(frozen=True)
class UncertaintyEvaluation:
    """Computes metrics and adds them to `table`; the other attributes are the Evaluator's."""

    table: MetricTable
    level: float
    ratio_band: float
    minimum: int
    negligible_sd: float

    def run(self, data: Labelled) -> None:
        """Add everyone's means, each group's, and their differences and ratios to the reference."""
        given = variances(data)
        if not given:
            return
        values, floor = np.stack(list(given.values())), self._floor(data)
        # Measures that are not finite everywhere are undefined.
        reasons = {name: invalid_rows(~np.isfinite(each), name) for name, each in given.items()}
        for groups in (Groups.everyone(len(data)), *data.coded.values()):
            means = GroupMeans.of(values.T, groups.codes, len(groups))
            lowest = means.interval(self.level)[0][0]
            found: GroupMeans | _Limits = means
            if self.table.frequentist:
                found = _Limits.of(values, groups, self.level)
            self._attribute(_MeasuredGroups(groups, reasons), found, lowest, floor)

    def _floor(self, data: Labelled) -> float:
        """Return the variance under which there is nothing to divide by."""
        if data.task is not Task.REGRESSION:
            return 2 * self.negligible_sd**2
        return (self.negligible_sd * float(data.target.std())) ** 2

    def _attribute(
        self, at: _MeasuredGroups, means: GroupMeans | _Limits, lowest: Array, floor: float
    ) -> None:
        lower, upper = means.interval(self.level)
        self._add("", at, means.mean, lower, upper)
        self._add("_difference", at, *means.difference(self.level))
        # What the paper calls F, and the probability that it is further from 1 than is fair.
        reference = means.mean[0]
        small = (np.fmin(lowest, reference) < floor) | (reference == 0)
        at = at.without_small_denominators(reference, small)
        self._add("_ratio", at, *means.ratio(self.level))
        outside, band = means.ratio_outside(self.ratio_band), Setting(band=self.ratio_band)
        self._add("_ratio_outside_band", at, outside, setting=band)

    def _add(
        self,
        form: str,
        at: _MeasuredGroups,
        values: Array,
        lower: Array | None = None,
        upper: Array | None = None,
        setting: Setting = NO_SETTING,
    ) -> None:
        """Add the values (G, V) of a form of the means; one that is not "" compares groups."""
        for i, measure in enumerate(at.reasons):
            for g in range(bool(form), len(at.groups)):
                n, status = at.status(measure, [0, g] if form else [g], self.minimum)
                value = NAN if status.kind in ("undefined", "invalid") else values[g, i]
                interval = (NAN, NAN)
                if lower is not None and upper is not None and n > 1:
                    interval = (lower[g, i], upper[g, i])
                if self.table.frequentist and status == OK and n < FEWEST:
                    status = insufficient(f"n={n}, an interval needs {FEWEST}")
                if np.isnan(value) and status.kind not in ("undefined", "invalid"):
                    few = "the error of a mean of 1 row is unknown"
                    status = undefined(few if n == 1 else status.reason)
                self.table.add(
                    f"{measure}_uncertainty{form}",
                    value,
                    n,
                    at.groups.where(g),
                    setting=setting,
                    interval=interval,
                    status=status,
                )


@dataclass(frozen=True)
class _Limits:
    """The means (G, V) of V measures in G groups, with intervals that skewed measures leave whole.

    It answers as `GroupMeans` does, whose intervals take the logarithms of means to be normal:
    those of 50 rows cover 85 to 94 % where measures are as skewed as lognormal ones.
    """

    limits: Limits
    level: float

    @classmethod
    def of(cls, values: Array, groups: Groups, level: float) -> _Limits:
        """Return the means of measures (V, n) that are at least 0."""
        columns = np.nan_to_num(values, posinf=0, neginf=0)
        moments = Moments.of_groups(columns, groups.codes, len(groups))
        limits = loss_limits(moments, level=level, least=0.0, rows=FEWEST)
        return cls(Limits(*(each.T for each in around(moments.mean, limits))), level)

    @property
    def mean(self) -> Array:
        """The means (G, V)."""
        return self.limits.value

    @property
    def _reference(self) -> Limits:
        return Limits(*(each[:1] for each in self.limits))

    def interval(self, level: float) -> tuple[Array, Array]:
        """Return the ends (G, V) of the means' intervals."""
        return self.limits.lower, self.limits.upper

    def difference(self, level: float) -> tuple[Array, Array, Array]:
        """Return every mean minus the reference's and the ends of its interval, (G, V) each."""
        return difference_limits(self.limits, self._reference)

    def ratio(self, level: float) -> tuple[Array, Array, Array]:
        """Return every mean over the reference's and the ends of its interval, (G, V) each."""
        value, lower, upper = ratio_limits(self.limits, self._reference)
        none = np.isnan(self.limits.lower) | np.isnan(self._reference.lower)
        return value, np.where(none, NAN, lower), np.where(none, NAN, upper)

    def ratio_outside(self, band: float) -> Array:
        """Return how sure it is (G, V) that the ratio is further than `band` from 1."""
        below, under = (
            probability_ratio_below(self.limits, self._reference, ratio, level=self.level)
            for ratio in (1 - band, 1 + band)
        )
        return np.asarray(below + 1 - under)


@dataclass(frozen=True)
class _MeasuredGroups:
    """The groups of an attribute; `reasons` are what is known of each measure's values, by name."""

    groups: Groups
    reasons: dict[str, Status]

    def without_small_denominators(self, means: Array, small: NDArray[np.bool_]) -> _MeasuredGroups:
        """Return the groups with a reason where the reference's mean is no denominator."""
        reasons = dict(self.reasons)
        for (name, reason), mean, is_small in zip(reasons.items(), means, small, strict=True):
            if is_small and reason == OK:
                what = f"{name}_uncertainty of group '{self.groups.names[0]}' is {mean:.2g}"
                reasons[name] = undefined(f"{what}, too near 0 to divide by")
        return replace(self, reasons=reasons)

    def status(self, measure: str, among: list[int], minimum: int) -> tuple[int, Status]:
        """Return how many rows the smallest of `among` has, and what that makes of the measure."""
        g = min(among, key=lambda each: self.groups.size[each])
        n, name = self.groups.size[g], self.groups.names[g]
        if self.reasons[measure] != OK or n >= max(minimum, 1):
            return n, self.reasons[measure]
        where = f" in group '{name}'" if name else ""
        return n, insufficient(f"n={n}{where}") if n else undefined(no_rows(name))


REPLICATE = "replicate="  # how the labels of variants begin that differ in their draws alone
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def evaluate_consistency(
    table: MetricTable, uncertainty: Mapping[str, NDArray[np.float64]]
) -> None:
    """Add the spread of per-individual uncertainty over the variants of one fold.

    Per individual the population sd of the uncertainty across variants; reported are its maximum
    (FairlyUncertain, Tables 1 and 2), its mean and its quantiles. Replicates, which differ in
    their draws alone, get the same rows under ``noise_...``.

    Parameters
    ----------
    uncertainty : variant -> (n,) uncertainties of the same individuals.
    """
    for prefix, chosen in (
        ("consistency", [u for v, u in uncertainty.items() if not v.startswith(REPLICATE)]),
        ("noise", [u for v, u in uncertainty.items() if v.startswith(REPLICATE)]),
    ):
        if len(chosen) > 1:
            _add_spread(table, prefix, np.stack(chosen))


def _add_spread(table: MetricTable, prefix: str, values: NDArray[np.float64]) -> None:
    n, setting = values.shape[1], Setting(variants=len(values))
    bad = np.asarray(~np.isfinite(values).all(axis=0))
    status = invalid_rows(bad, "uncertainty")
    if status != OK:
        values = np.full_like(values, NAN)
    sd = values.std(axis=0)
    for name, value, row in (
        ("max_sd", sd.max(), setting),
        ("mean_sd", sd.mean(), setting),
        ("mean_range", np.ptp(values, axis=0).mean(), setting),
        *(("sd", np.quantile(sd, q), setting._replace(quantile=q)) for q in _QUANTILES),
    ):
        table.add(f"{prefix}_{name}", float(value), n, setting=row, status=status)


Mask = NDArray[np.bool_]
OUTCOMES = ("TN", "FP", "FN", "TP")


def evaluate_individual(table: MetricTable, data: Labelled, k: int, attribute: str) -> None:
    """Add the mean fairness among 1, 2 ... `k` neighbours: everyone's, by group and outcome.

    Of the score (or, without one, the label) and of every variance the predictions claim; all lie
    in [0, 1]. Neighbours are among the rows evaluated. Intervals take rows to be independent.
    """
    if not k or data.encoded is None or data.task is not Task.BINARY:
        return
    score = "score" if "score" in data.predictions else "prediction"
    values = {"prediction": data.column(score), **variances(data)}
    neighbours = Neighbours.of(data.encoded, k)
    parts = list(_parts(data, attribute))
    for name, column in values.items():
        fairness = individual_fairness(column, neighbours)
        for where, outcome, rows in parts:
            _add(table, f"individual_fairness_{name}", fairness[rows], where, outcome)


def _parts(data: Labelled, attribute: str) -> Iterator[tuple[Where, str, Mask]]:
    """Yield everyone, each group, and each group's true negatives, false positives ..."""
    yield EVERYONE, "", np.ones(len(data), bool)
    if attribute not in data.groups:
        return
    cell = 2 * data.target + data.column("prediction")
    labels = data.groups[attribute].cat
    for code, label in enumerate(labels.categories):
        where, rows = Where(attribute, str(label)), labels.codes.to_numpy() == code
        yield where, "", rows
        for i, outcome in enumerate(OUTCOMES):
            yield where, outcome, rows & (cell == i)


def _add(table: MetricTable, metric: str, fairness: Array, where: Where, outcome: str) -> None:
    n = len(fairness)
    for rank, losses in enumerate(fairness.T, start=1):
        setting = Setting(outcome=outcome or None, k=rank)
        if n and not np.isnan(losses[0]):
            table.add_mean(metric, losses, where, setting=setting)
            continue
        none = f"no {outcome} in group '{where.group}'" if outcome else no_rows(where.group)
        status = undefined(f"nobody has {rank} neighbours" if n else none)
        table.add(metric, NAN, n, where, setting=setting, status=status)
