"""Evaluates group fairness of a classification: rates, their comparisons, and the intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats, Mask
from fairbench.evaluation.intervals import (
    GapInterval,
    GroupIntervals,
    PosteriorIntervals,
    SurveyIntervals,
    counted_rates,
    group_intervals,
    patterns,
)
from fairbench.evaluation.many_groups import PooledGroups
from fairbench.evaluation.predictions import Groups
from fairbench.evaluation.table import (
    BELOW_EPSILON,
    DEBIASED,
    NAN,
    OUTSIDE_BAND,
    PAIRS_THAT_DIFFER,
    About,
    MetricTable,
    Setting,
    SomeGroups,
    Statuses,
    Where,
)
from fairbench.inference.gaps import probability_below
from fairbench.inference.pooled import Generators
from fairbench.inference.posterior import DIRICHLET, posterior_draws, resampled_counts
from fairbench.inference.survey import Design, SurveyCounts
from fairbench.metrics.group import debiased
from fairbench.metrics.registry import (
    BINARY,
    Counts,
    Metric,
    Rate,
    binary_confusion,
    metrics_of,
    selection_rate,
)

NO_DRAWS = np.empty((0, 0, 4))
RESAMPLES = 200  # of the bias of a gap: a mean, which needs far fewer than an interval


@dataclass(frozen=True, eq=False)
class GroupCounts:
    """The confusion counts of an attribute's groups, and what makes their intervals.

    Attributes
    ----------
    groups : the names of the G groups.
    counts : (..., G, 4); the axes before the groups are those of samples, such as splits, of which
        there may be none.
    intervals : makes the intervals of rates and of what compares them.
    pooled : the joint estimates of all groups' rates; None unless they are asked for.
    """

    attribute: str
    groups: list[str]
    counts: Counts
    intervals: GroupIntervals
    pooled: PooledGroups | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the groups."""
        return tuple(self.groups)

    @cached_property
    def _sizes(self) -> dict[str, NDArray[np.int64]]:
        rates = counted_rates()
        n_rows = self.intervals.rows(rates).astype(np.int64)
        return {rate.name: size for rate, size in zip(rates, n_rows, strict=True)}

    def sizes(self, rates: Sequence[Rate]) -> NDArray[np.int64]:
        """Return how many rows (R, ..., G) each rate rests on in each group."""
        return np.stack([self._sizes[rate.name] for rate in rates])

    def unseen(self, among: Mask) -> Mask:
        """Return the groups (..., G) that have rows, but are not among those compared."""
        present: Mask = self.counts.sum(axis=-1) > 0
        return present & ~among

    def probability_gap_below(self, metric: Metric, epsilon: float, among: Mask) -> Floats:
        """Return the probability (...) that a gap between groups (..., G) is under epsilon."""
        source = self.intervals if self.pooled is None else self.pooled
        probabilities = np.full(among.shape[:-1], NAN)
        for groups, samples in patterns(among):
            of_groups = source.probability_gap_below(metric, epsilon, groups)
            probabilities[samples] = np.reshape(of_groups, probabilities.shape)[samples]
        return probabilities

    def values(self, metric: Metric, among: Mask) -> Floats:
        """Return a gap or smallest ratio (...) among some groups (..., G)."""
        counts = self.intervals.counts_of(metric)
        values = np.full(among.shape[:-1], NAN)
        for groups, samples in patterns(among):
            if groups:
                values[samples] = metric(counts[samples][..., groups, :])
        return values

    def gap_status(self, metric: Metric, minimum: int, among: Mask, value: Floats) -> Statuses:
        """Return statuses of gaps (...): of the weakest group compared, of groups left out."""
        sizes = np.where(among, self.sizes(metric.rates), np.iinfo(np.int64).max)
        status = self._weakest_statuses(metric.rates, sizes, minimum)
        without_value = np.isnan(value) & status.has_value

        def all_zero(*sample: int) -> str:
            reference = self.groups[int(among[sample].argmax())]
            whose = "every group" if among[sample].sum() > 2 else f"group '{reference}'"
            return f"{selection_rate.name} of {whose} is 0"

        def without(*sample: int) -> str:
            left_out = np.flatnonzero(~among[sample])
            names = ", ".join(f"'{self.groups[g]}'" for g in left_out)
            least = self.sizes(metric.rates)[(slice(None), *sample, left_out[0])].argmin()
            return f"without {names}: {metric.rates[least].empty}"

        status.flag(
            ~among.all(axis=-1) & status.has_value & ~without_value, "insufficient", without
        )
        status.flag(without_value, "undefined", all_zero)
        return status

    def status(self, rates: Sequence[Rate], minimum: int) -> Statuses:
        """Return statuses (..., G): whether rates are defined, and rest on `minimum` rows."""
        return self._weakest_statuses(rates, self.sizes(rates)[..., None], minimum)

    def against_first(self, rates: Sequence[Rate], minimum: int) -> Statuses:
        """Return statuses (..., G - 1) of comparisons of every other group with the first."""
        sizes = self.sizes(rates)
        pairs = np.stack(np.broadcast_arrays(sizes[..., :1], sizes[..., 1:]), axis=-1)
        return self._weakest_statuses(rates, pairs, minimum, pairs_with_first=True)

    def _weakest_statuses(
        self,
        rates: Sequence[Rate],
        sizes: NDArray[np.int64],
        minimum: int,
        *,
        pairs_with_first: bool = False,
    ) -> Statuses:
        """Return statuses (...) of values that need K groups each, by their sizes (R, ..., K).

        Parameters
        ----------
        pairs_with_first : whether a value compares two groups, the first of all and the one that
            its last axis counts. Otherwise a value needs all groups (K = G), or the one that its
            last axis counts (K = 1).
        """
        by_value = np.moveaxis(sizes, 0, -2)
        needed_groups = by_value.shape[-1]
        by_value = by_value.reshape(*by_value.shape[:-2], -1)  # (..., R K)
        weakest_index = by_value.argmin(axis=-1)
        least = by_value.min(axis=-1)
        status = Statuses.ok(least.shape)

        def weakest(value_index: tuple[int, ...]) -> tuple[Rate, str]:
            """Return the rate and the group that a value has fewest rows of."""
            rate_index, g = divmod(int(weakest_index[value_index]), needed_groups)
            if pairs_with_first:
                g = 0 if g == 0 else value_index[-1] + 1
            elif needed_groups == 1:
                g = value_index[-1]
            in_group = f" in group '{self.groups[g]}'" if self.groups[g] else ""
            return rates[rate_index], in_group

        def few(*value_index: int) -> str:
            return f"n={least[value_index]}{weakest(value_index)[1]}"

        def none(*value_index: int) -> str:
            rate, in_group = weakest(value_index)
            return rate.empty + in_group

        status.flag((least > 0) & (least < minimum), "insufficient", few)
        status.flag(least == 0, "undefined", none)
        return status


@dataclass(frozen=True)
class GroupEvaluation:
    """Computes metrics of groups and adds them to `table`.

    Attributes
    ----------
    n_draws : posterior draws.
    design : the weights and clusters of rows; None if there are neither.

    The other attributes are those of :class:`fairbench.evaluation.evaluator.Evaluator`.
    """

    table: MetricTable
    interval: str
    n_draws: int
    alpha: float
    level: float
    epsilon: float
    ratio_band: float
    design: Design | None = None

    def add_attribute(
        self, groups: Groups, target: Floats, hard: Floats, generators: Generators
    ) -> None:
        """Count the rows of an attribute's groups, and add what `add_counts` adds."""
        self.add_counts(self.count(groups, target, hard, generators), generators)

    def add_counts(self, counts: GroupCounts, generators: Generators) -> None:
        """Add per-group rates, differences and ratios to the reference, and gaps."""
        self._add_rates(counts)
        if len(counts.groups) > 1:
            self._add_pairs(counts)
            self._add_gaps(counts, generators)
            if counts.pooled is not None and len(counts.groups) > 2:
                counts.pooled.add_to(self.table, self.level, counts.sizes)

    def count(
        self,
        groups: Groups,
        target: Floats,
        hard: Floats,
        generators: Generators,
        *,
        times: NDArray[np.int64] | None = None,
    ) -> GroupCounts:
        """Return the counts of an attribute's groups, and what makes their intervals.

        Parameters
        ----------
        groups : the groups in S splits; their counts are (S, G, 4), or (G, 4) where S is 1.
        target : (n,) labels 0 / 1.
        hard : (n,) predictions 0 / 1.
        generators : one for the draws of each split.
        times : (n,) how often each row comes; once by default.
        """
        name = groups.attribute
        names = list(groups.names)
        if self.design is not None:
            cell = (2 * target + hard).astype(np.intp)
            survey = SurveyCounts.of(cell, groups.codes, self.design, groups=len(groups))
            return self._survey_counts(name, names, survey, generators)
        counts = binary_confusion(target, hard, groups.codes, n_groups=groups.cells, times=times)
        if groups.splits > 1:
            counts = counts.reshape(groups.splits, len(groups), 4)
        if self.interval == DIRICHLET:
            draws_of_splits = [
                posterior_draws(of_split, self.n_draws, generator, alpha=self.alpha)
                for of_split, generator in zip(_by_split(counts), generators, strict=True)
            ]
            draws = draws_of_splits[0] if counts.ndim == 2 else np.stack(draws_of_splits, axis=1)
            return GroupCounts(name, names, counts, PosteriorIntervals(counts, draws, self.level))
        intervals = group_intervals(counts, NO_DRAWS, self.level)
        pooled = PooledGroups(name, names, counts, self.n_draws, generators)
        return GroupCounts(name, names, counts, intervals, pooled)

    def _survey_counts(
        self, name: str, groups: list[str], survey: SurveyCounts, generators: Generators
    ) -> GroupCounts:
        """Return the counts of weighted or clustered rows, at the groups' effective sizes."""
        counts = survey.counts()
        intervals = SurveyIntervals(counts, NO_DRAWS, self.level, survey=survey)
        pooled = PooledGroups(name, groups, counts, self.n_draws, generators)
        return GroupCounts(name, groups, counts, intervals, pooled)

    def _add_rates(self, counts: GroupCounts) -> None:
        """Add the rates of every group."""
        metrics = list(metrics_of(BINARY, "rate").values())
        values = [metric(counts.intervals.counts_of(metric)) for metric in metrics]
        sizes = [counts.sizes(metric.rates).min(axis=0) for metric in metrics]
        statuses = [counts.status(metric.rates, self.table.minimum) for metric in metrics]
        names = [metric.name for metric in metrics]
        self._add(names, counts, values, sizes, counts.intervals.rates(metrics), statuses)

    def _add(
        self,
        names: Sequence[str],
        where: About,
        values: Sequence[Floats],
        sizes: Sequence[NDArray[np.int64]],
        interval: tuple[Floats, Floats],
        statuses: Sequence[Statuses],
        **options: Any,
    ) -> None:
        """Add M metrics, each of arrays (..., G) of samples and groups.

        Parameters
        ----------
        names : (M,)
        interval : both limits, (M, ..., G) each.
        options : further arguments of :meth:`MetricTable.add`.
        """
        shape = len(names), len(self.table.splits), len(where.names)
        lower, upper = (np.reshape(limit, shape) for limit in interval)
        status = Statuses.stacked(statuses)
        self.table.add(
            names,
            np.reshape(np.stack(values), shape),
            np.reshape(np.stack(sizes), shape),
            where,
            interval=(lower, upper),
            status=Statuses(*(np.reshape(array, shape) for array in status)),
            **options,
        )

    def _add_pairs(self, counts: GroupCounts) -> None:
        """Add the differences of rates from the reference's, and the ratios to it."""
        metrics = list(metrics_of(BINARY, "difference", "ratio").values())
        others = SomeGroups(counts.attribute, counts.names[1:])
        values = []
        sizes = []
        statuses = []
        for metric in metrics:
            value = metric(counts.intervals.counts_of(metric))
            n_rows = counts.sizes(metric.rates)[0]
            status = counts.against_first(metric.rates, self.table.minimum)
            zero = f"{metric.rates[0].name} of group '{counts.groups[0]}' is 0"
            status.flag(np.isnan(value) & status.has_value, "undefined", zero)
            values.append(value)
            sizes.append(np.minimum(n_rows[..., :1], n_rows[..., 1:]))
            statuses.append(status)
        self._add(
            [metric.name for metric in metrics],
            others,
            values,
            sizes,
            counts.intervals.pairs(metrics),
            statuses,
            bounded=counts.intervals.bounded,
        )
        is_ratio = [metric.interval == "ratio" for metric in metrics]
        ratios = list(compress(metrics, is_ratio))
        outside = counts.intervals.outside(ratios, self.ratio_band)
        outside_band = [
            np.where(np.isnan(value), NAN, probability)
            for value, probability in zip(compress(values, is_ratio), outside, strict=True)
        ]
        no_limits = np.full(np.shape(outside_band), NAN)
        self._add(
            [metric.name for metric in ratios],
            others,
            outside_band,
            list(compress(sizes, is_ratio)),
            (no_limits, no_limits),
            list(compress(statuses, is_ratio)),
            statistic=OUTSIDE_BAND,
            setting=Setting(band=self.ratio_band),
        )

    def _add_gaps(self, counts: GroupCounts, generators: Generators) -> None:
        """Add the largest gaps and smallest ratios, and the further statistics of the gaps."""
        metrics = list(metrics_of(BINARY, "widest").values())
        among = counts.intervals.compared(metrics)
        among[among.sum(axis=-1) < 2] = True
        intervals = counts.intervals.gaps(metrics, among, unseen=counts.unseen(among))
        # Draw these before the posteriors of `counts.probability_gap_below`: both use the same
        # generators, whose order has to stay.
        resampled = None
        if len(counts.groups) > 2:
            resampled = _resample(counts.counts, generators)
        gaps_and_ratios = _GroupGaps.of(counts, metrics, among, intervals, self.table.minimum)
        self._add(
            [metric.name for metric in metrics],
            Where(counts.attribute),
            gaps_and_ratios.values,
            gaps_and_ratios.sizes,
            gaps_and_ratios.limits(),
            gaps_and_ratios.statuses,
            bounded=counts.intervals.bounded,
        )
        gaps = gaps_and_ratios.only_gaps()
        self._add_probabilities_below(counts, gaps)
        if resampled is not None:
            self._add_debiased_gaps(counts, gaps, resampled)
        if all(interval.surely is not None for interval in intervals):
            self._add_pairs_that_differ(counts, gaps)

    def _add_probabilities_below(self, counts: GroupCounts, gaps: _GroupGaps) -> None:
        """Add the probability that each gap is under epsilon."""
        probabilities = [
            counts.probability_gap_below(metric, self.epsilon, groups)
            for metric, groups in zip(gaps.metrics, gaps.among, strict=True)
        ]
        # Other intervals than the posterior's bound the posterior probability.
        if not isinstance(counts.intervals, PosteriorIntervals):
            lower, upper = gaps.limits()
            probabilities = list(
                probability_below(probabilities, lower, upper, self.epsilon, level=self.level)
            )
        probabilities = [
            np.where(np.isnan(value), NAN, probability)
            for value, probability in zip(gaps.values, probabilities, strict=True)
        ]
        self._add_statistic(
            BELOW_EPSILON,
            counts,
            gaps,
            probabilities,
            gaps.statuses,
            setting=Setting(epsilon=self.epsilon),
        )

    def _add_debiased_gaps(self, counts: GroupCounts, gaps: _GroupGaps, resampled: Counts) -> None:
        """Add the gaps less what chance adds to them."""
        corrected = [
            _debiased_gap(counts, metric, groups, resampled)
            for metric, groups in zip(gaps.metrics, gaps.among, strict=True)
        ]
        statuses = [
            Statuses.of(status, value.shape)
            for status, value in zip(gaps.statuses, gaps.values, strict=True)
        ]
        for status, value in zip(statuses, corrected, strict=True):
            without_value = np.isnan(value) & status.has_value
            status.flag(without_value, "undefined", "no resample has the rates of every group")
        self._add_statistic(DEBIASED, counts, gaps, corrected, statuses)

    def _add_pairs_that_differ(self, counts: GroupCounts, gaps: _GroupGaps) -> None:
        """Add how many pairs of groups surely differ, where there is a gap."""
        pairs = [
            _number_of_pairs(interval, value)
            for interval, value in zip(gaps.intervals, gaps.values, strict=True)
        ]
        is_row = ~np.isnan(np.reshape(gaps.values, (len(gaps.values), -1, 1)))
        self._add_statistic(PAIRS_THAT_DIFFER, counts, gaps, pairs, gaps.statuses, is_row=is_row)

    def _add_statistic(
        self,
        statistic: str,
        counts: GroupCounts,
        gaps: _GroupGaps,
        values: Sequence[Floats],
        statuses: Sequence[Statuses],
        **options: Any,
    ) -> None:
        """Add a further statistic of each gap, which has no interval."""
        names = [metric.name for metric in gaps.metrics]
        no_limits = np.full((len(names), *gaps.values[0].shape), NAN)
        self._add(
            names,
            Where(counts.attribute),
            values,
            gaps.sizes,
            (no_limits, no_limits),
            statuses,
            statistic=statistic,
            **options,
        )


@dataclass(frozen=True, eq=False)
class _GroupGaps:
    """The largest gaps and smallest ratios of an attribute's groups, one entry for each metric.

    Attributes
    ----------
    among : (..., G) the groups that are compared.
    values : (...) the gap or ratio.
    sizes : (...) the rows of the smallest group that is compared.
    """

    metrics: Sequence[Metric]
    among: Sequence[Mask]
    intervals: Sequence[GapInterval]
    values: Sequence[Floats]
    sizes: Sequence[NDArray[np.int64]]
    statuses: Sequence[Statuses]

    @classmethod
    def of(
        cls,
        counts: GroupCounts,
        metrics: Sequence[Metric],
        among: Mask,
        intervals: Sequence[GapInterval],
        minimum: int,
    ) -> _GroupGaps:
        """Return the values of metrics among groups (M, ..., G), flagged under `minimum` rows."""
        values = [counts.values(*pair) for pair in zip(metrics, among, strict=True)]
        sizes = [
            np.where(groups, counts.sizes(metric.rates), np.iinfo(np.int64).max).min(axis=(0, -1))
            for metric, groups in zip(metrics, among, strict=True)
        ]
        statuses = [
            counts.gap_status(metric, minimum, groups, value)
            for metric, groups, value in zip(metrics, among, values, strict=True)
        ]
        return cls(
            metrics=metrics,
            among=list(among),
            intervals=intervals,
            values=values,
            sizes=sizes,
            statuses=statuses,
        )

    def only_gaps(self) -> _GroupGaps:
        """Return the gaps, without the ratios."""
        is_gap = [metric.is_gap for metric in self.metrics]
        return _GroupGaps(
            metrics=list(compress(self.metrics, is_gap)),
            among=list(compress(self.among, is_gap)),
            intervals=list(compress(self.intervals, is_gap)),
            values=list(compress(self.values, is_gap)),
            sizes=list(compress(self.sizes, is_gap)),
            statuses=list(compress(self.statuses, is_gap)),
        )

    def limits(self) -> tuple[Floats, Floats]:
        """Return the lower and the upper limits (M, ...) of the intervals."""
        lower = np.stack([interval.lower for interval in self.intervals])
        upper = np.stack([interval.upper for interval in self.intervals])
        return lower, upper


def _number_of_pairs(gap: GapInterval, value: Floats) -> Floats:
    """Return how many pairs of groups surely differ, (...); NaN where there is no gap."""
    assert gap.surely is not None
    either = gap.surely | gap.surely.swapaxes(-1, -2)
    return np.where(np.isnan(value), NAN, either.sum(axis=(-2, -1)) // 2)


def _by_split(counts: Counts) -> Sequence[Counts]:
    """Return the counts (G, 4) of every split, from those of one or (S, G, 4) of several."""
    return [counts] if counts.ndim == 2 else list(counts)


def _resample(counts: Counts, generators: Generators) -> Counts:
    """Return parametric resamples (T, ..., G, 4) of counts, each split's by its own generator."""
    resamples_of_splits = [
        resampled_counts(of_split, RESAMPLES, generator)
        for of_split, generator in zip(_by_split(counts), generators, strict=True)
    ]
    if counts.ndim == 2:
        return resamples_of_splits[0]
    # The cells come first in memory, so that sums over them add whole arrays.
    cells_first = [np.moveaxis(resamples, -1, 0) for resamples in resamples_of_splits]
    return np.moveaxis(np.stack(cells_first, axis=2), 0, -1)


def _debiased_gap(
    group_counts: GroupCounts, metric: Metric, among: Mask, resampled: Counts
) -> Floats:
    """Return gaps (...) less what chance adds to them, among groups (..., G)."""
    corrected = np.full(among.shape[:-1], NAN)
    for groups, samples in patterns(among):
        counts = group_counts.counts[samples][..., groups, :]
        corrected[samples] = debiased(metric, counts, resampled[:, samples][..., groups, :])
    return corrected
