"""Evaluates group fairness of a classification: rates, what compares them, and how sure each is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from fairbench.evaluation.group_intervals import (
    CountIntervals,
    GapInterval,
    GroupIntervals,
    PosteriorIntervals,
    SurveyIntervals,
    counted_rates,
    group_intervals,
)
from fairbench.evaluation.many_groups import PooledGroups
from fairbench.evaluation.predictions import Groups, Labelled
from fairbench.evaluation.table import (
    NAN,
    OK,
    MetricTable,
    Setting,
    Status,
    Where,
    insufficient,
    undefined,
)
from fairbench.inference.posterior import DIRICHLET, posterior_draws, resampled_counts
from fairbench.inference.survey import Design, SurveyCounts
from fairbench.metrics.group import (
    GroupThresholds,
    RocHull,
    debiased,
    expected_counts,
    least_error,
    thresholds_under,
)
from fairbench.metrics.rates import (
    Counts,
    Rate,
    binary_confusion,
    error_rate,
    selection_rate,
    total,
)
from fairbench.metrics.registry import BINARY, Metric, metrics_of

Array = NDArray[np.float64]


NO_DRAWS = np.empty((0, 0, 4))
RESAMPLES = 200  # of the bias of a gap: a mean, which needs far fewer than an interval


@dataclass(frozen=True)
class Counted:
    """The confusion counts (G, 4) of an attribute's groups, and what makes their intervals.

    `pooled` is what all groups together say of each.
    """

    attribute: str
    groups: list[str]
    counts: Counts
    intervals: GroupIntervals
    pooled: PooledGroups | None = None

    @cached_property
    def sizes(self) -> dict[str, list[int]]:
        """How many rows each rate rests on in each group."""
        rates = counted_rates()
        each = self.intervals.rows(rates).astype(int).tolist()
        return {rate.name: size for rate, size in zip(rates, each, strict=True)}

    def weakest(self, rates: tuple[Rate, ...], among: Sequence[int]) -> tuple[int, int, Rate]:
        """Return (rows, group, rate) of the rate and group that rest on the fewest rows."""
        sizes = [(self.sizes[rate.name][g], g, rate) for rate in rates for g in among]
        return min(sizes, key=itemgetter(0))

    def below(self, metric: Metric, epsilon: float, among: list[int]) -> float:
        """Return the probability that a gap between these groups is under epsilon."""
        if self.pooled is None:
            return self.intervals.below(metric, epsilon, among)
        return self.pooled.below(metric.rates, epsilon, among)

    def gap_status(
        self, metric: Metric, minimum: int, among: Sequence[int], value: float
    ) -> Status:
        """Say what the weakest of the groups compared, and those left out, make of a gap."""
        status = self.status(metric.rates, minimum, among)
        if np.isnan(value) and status.kind != "undefined":
            zero = "every group" if len(among) > 2 else f"group '{self.groups[among[0]]}'"
            return undefined(f"{selection_rate.name} of {zero} is 0")
        left_out = [name for g, name in enumerate(self.groups) if g not in among]
        if left_out and status.kind != "undefined":
            names = ", ".join(f"'{name}'" for name in left_out)
            rate = self.weakest(metric.rates, [self.groups.index(left_out[0])])[2]
            return insufficient(f"without {names}: {rate.empty}")
        return status

    def status(self, rates: tuple[Rate, ...], minimum: int, among: Sequence[int]) -> Status:
        """Say whether `rates` are defined, and rest on at least `minimum` rows, in every group."""
        return group_status(self.groups, *self.weakest(rates, among), minimum)


def group_status(groups: list[str], size: int, g: int, rate: Rate, minimum: int) -> Status:
    """Say what `size` rows in a group make of a rate."""
    if size >= max(minimum, 1):
        return OK
    where = f" in group '{groups[g]}'" if groups[g] else ""
    return insufficient(f"n={size}{where}") if size else undefined(rate.empty + where)


@dataclass(frozen=True)
class GroupEvaluation:
    """Computes metrics and adds them to `table`; the other attributes are the Evaluator's."""

    table: MetricTable
    interval: str
    n_draws: int
    alpha: float
    level: float
    epsilon: float
    ratio_band: float
    minimum: int
    design: Design | None = None

    def attribute(
        self, groups: Groups, target: Array, hard: Array, generator: np.random.Generator
    ) -> None:
        """Add per-group rates, differences and ratios to the reference, and gaps."""
        self.counted(self.count(groups, target, hard, generator), generator)

    def counted(self, counted: Counted, generator: np.random.Generator) -> None:
        """Add the same rows of counts whose intervals are known how to make."""
        self._rates(counted)
        if len(counted.groups) > 1:
            self._pairs(counted)
            self._gaps(counted, generator)
            if counted.pooled is not None and len(counted.groups) > 2:
                counted.pooled.add_to(self.table, self.level, counted.sizes)

    def count(
        self, groups: Groups, target: Array, hard: Array, generator: np.random.Generator
    ) -> Counted:
        """Return the counts of an attribute's groups, and what makes their intervals."""
        name, names = groups.attribute, list(groups.names)
        if self.design is not None:
            cell = (2 * target + hard).astype(np.intp)
            survey = SurveyCounts.of(cell, groups.codes, self.design, groups=len(groups))
            return self._surveyed(name, names, survey, generator)
        counts = binary_confusion(target, hard, groups.codes, n_groups=len(groups))
        if self.interval == DIRICHLET:
            draws = posterior_draws(counts, self.n_draws, generator, alpha=self.alpha)
            return Counted(name, names, counts, PosteriorIntervals(counts, draws, self.level))
        intervals = group_intervals(counts, NO_DRAWS, self.level)
        pooled = PooledGroups(name, names, counts, self.n_draws, generator)
        return Counted(name, names, counts, intervals, pooled)

    def _surveyed(
        self, name: str, groups: list[str], survey: SurveyCounts, generator: np.random.Generator
    ) -> Counted:
        """Return the counts of weighted or clustered rows, at the groups' effective sizes."""
        counts = survey.counts()
        intervals = SurveyIntervals(counts, NO_DRAWS, self.level, survey=survey)
        pooled = PooledGroups(name, groups, counts, self.n_draws, generator)
        return Counted(name, groups, counts, intervals, pooled)

    def _rates(self, counted: Counted) -> None:
        metrics = metrics_of(BINARY, "rate")
        everyone = [Where(counted.attribute, group) for group in counted.groups]
        ends = np.stack(counted.intervals.rates(list(metrics.values())), axis=-1).tolist()
        for (name, metric), of_metric in zip(metrics.items(), ends, strict=True):
            values = metric(counted.intervals.counts_of(metric)).tolist()
            sizes = np.min([counted.sizes[rate.name] for rate in metric.rates], axis=0).tolist()
            for g, (value, n, interval) in enumerate(zip(values, sizes, of_metric, strict=True)):
                status = self._status(counted, metric, [g], n)
                self.table.add(name, value, n, everyone[g], interval=interval, status=status)

    def _pairs(self, counted: Counted) -> None:
        metrics = list(metrics_of(BINARY, "difference", "ratio").values())
        ends = np.stack(counted.intervals.pairs(metrics), axis=-1).tolist()
        ratios = [metric for metric in metrics if metric.interval == "ratio"]
        outside = counted.intervals.outside(ratios, self.ratio_band).tolist()
        of_ratio = {metric.name: each for metric, each in zip(ratios, outside, strict=True)}
        for metric, of_metric in zip(metrics, ends, strict=True):
            self._pairs_of(counted, metric, of_metric, of_ratio.get(metric.name))

    def _pairs_of(
        self,
        counted: Counted,
        metric: Metric,
        ends: Sequence[tuple[float, float]],
        outside: Sequence[float] | None,
    ) -> None:
        """Add the differences of a rate from the reference's, or ratios to it."""
        values = metric(counted.intervals.counts_of(metric)).tolist()
        sizes = counted.sizes[metric.rates[0].name]
        band, bounded = Setting(band=self.ratio_band), counted.intervals.bounded
        for g, value in enumerate(values, start=1):
            where, n = Where(counted.attribute, counted.groups[g]), min(sizes[0], sizes[g])
            status = self._status(counted, metric, [0, g], n)
            if value != value and status.kind != "undefined":
                zero = f"{metric.rates[0].name} of group '{counted.groups[0]}' is 0"
                status = undefined(zero)
            interval = ends[g - 1]
            self.table.add(
                metric.name, value, n, where, interval=interval, status=status, bounded=bounded
            )
            if outside is not None:
                sure = NAN if value != value else outside[g - 1]
                name = f"{metric.name}_outside_band"
                self.table.add(name, sure, n, where, setting=band, status=status)

    def _status(self, counted: Counted, metric: Metric, among: Sequence[int], n: int) -> Status:
        """Say what it makes of a metric of some groups that it rests on `n` rows at the least."""
        enough = n >= max(self.minimum, 1)
        return OK if enough else counted.status(metric.rates, self.minimum, among)

    def _gaps(self, counted: Counted, generator: np.random.Generator) -> None:
        many = len(counted.groups) > 2
        resampled = resampled_counts(counted.counts, RESAMPLES, generator) if many else None
        metrics = list(metrics_of(BINARY, "widest").values())
        among = counted.intervals.compared(metrics)
        among[among.sum(axis=1) < 2] = True
        gaps = counted.intervals.gaps(metrics, among)
        for metric, groups, gap in zip(metrics, among, gaps, strict=True):
            self._gap(counted, metric, np.flatnonzero(groups).tolist(), gap, resampled)

    def _gap(
        self,
        counted: Counted,
        metric: Metric,
        among: list[int],
        gap: GapInterval,
        resampled: Counts | None,
    ) -> None:
        name, where = metric.name, Where(counted.attribute)
        value = float(metric(counted.intervals.counts_of(metric)[among]))
        n = counted.weakest(metric.rates, among)[0]
        status = counted.gap_status(metric, self.minimum, among, value)
        bounded = counted.intervals.bounded
        ends = float(gap.lower), float(gap.upper)
        self.table.add(name, value, n, where, interval=ends, status=status, bounded=bounded)
        if not metric.is_gap:
            return
        missing = np.isnan(value)
        below = NAN if missing else counted.below(metric, self.epsilon, among)
        setting = Setting(epsilon=self.epsilon)
        self.table.add(f"{name}_below", below, n, where, setting=setting, status=status)
        if resampled is not None:
            everyone = len(among) == len(counted.groups)
            of_those = resampled if everyone else resampled[:, among]
            corrected = debiased(metric, counted.counts[among], of_those)
            if np.isnan(corrected) and status.kind != "undefined":
                status = undefined("no resample has the rates of every group")
            self.table.add(f"{name}_debiased", corrected, n, where, status=status)
        if gap.surely is not None and not missing:
            pairs = int((gap.surely | gap.surely.T).sum()) // 2
            self.table.add(f"{name}_pairs", pairs, n, where, status=status)


# The gaps that thresholds can close by a linear programme.
CONSTRAINTS = (
    "statistical_parity",
    "equal_opportunity",
    "false_positive_rate_gap",
    "equalized_odds",
)
_MEASURES = ("error_rate", "gap", "validation_error_rate")


def evaluate_group_thresholds(
    table: MetricTable,
    data: Labelled,
    validation: Labelled | None,
    relaxations: Sequence[float],
    attribute: str,
) -> None:
    """Add error and gap under every constraint at every relaxation of it.

    Thresholds are chosen on the validation rows. At a relaxation of 1 the score is unprocessed:
    its error alone counts. Values are expectations over the thresholds' draws.
    """
    missing = attribute not in data.groups or "score" not in data.predictions
    if validation is None or missing or not relaxations:
        return
    test, chosen_on = (_ScoredGroups(part, part.coded[attribute]) for part in (data, validation))
    for name in CONSTRAINTS:
        metric = metrics_of(BINARY, "widest")[name]
        status = test.status(metric)
        if status == OK:
            status = chosen_on.status(metric, of=" of the validation rows")
        rows = [(NAN,) * len(_MEASURES)] * len(relaxations)
        if status == OK:
            rows = _measured(test, chosen_on, metric, relaxations)
        for relaxation, values in zip(relaxations, rows, strict=True):
            setting = Setting(constraint=name, relaxation=relaxation)
            for measure, value in zip(_MEASURES, values, strict=True):
                table.add(
                    f"postprocessed_{measure}",
                    value,
                    len(data),
                    Where(attribute),
                    setting=setting,
                    status=status,
                )


@dataclass(frozen=True)
class _ScoredGroups:
    """Labels and scores of the groups of one attribute, and what is computed of them once."""

    data: Labelled
    groups: Groups

    @cached_property
    def score(self) -> Array:
        """The scores (n,)."""
        return self.data.column("score")

    @cached_property
    def _labels(self) -> Counted:
        """How many rows of each group have which label."""
        groups, zeros = self.groups, np.zeros(len(self.data))
        counts = binary_confusion(self.data.target, zeros, groups.codes, n_groups=len(groups))
        intervals = CountIntervals(counts, np.empty(0), 0.95)
        return Counted(groups.attribute, list(groups.names), counts, intervals)

    @cached_property
    def hulls(self) -> list[RocHull]:
        """The hull of each group's ROC curve."""
        of_groups = zip(*map(self.groups.split, (self.data.target, self.score)), strict=True)
        return [RocHull.of(target, score) for target, score in of_groups]

    def status(self, metric: Metric, of: str = "") -> Status:
        """Say whether every group has the labels that the metric's rates rest on."""
        status = self._labels.status(metric.rates, 1, range(len(self.groups)))
        return status if status == OK else status._replace(reason=status.reason + of)


def _measured(
    test: _ScoredGroups, chosen_on: _ScoredGroups, metric: Metric, relaxations: Sequence[float]
) -> list[tuple[float, ...]]:
    """Return the measures at every relaxation."""
    codes, groups = test.groups.codes, len(test.groups)
    under = thresholds_under(chosen_on.hulls, test.score, codes)
    chosen = least_error(chosen_on.hulls, metric.rates, relaxations)
    measured: dict[GroupThresholds, tuple[float, ...]] = {}
    for thresholds in dict.fromkeys(chosen):
        chance = thresholds.chance_at(under)
        counts = expected_counts(test.data.target, chance, codes, n_groups=groups)
        errors = [float(error_rate(total(each))[0]) for each in (counts, thresholds.counts)]
        measured[thresholds] = errors[0], float(metric(counts)), errors[1]
    return [measured[thresholds] for thresholds in chosen]
