"""Evaluates group fairness of a classification: rates, what compares them, and how sure each is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats, Mask
from fairbench.evaluation.columns import (
    BELOW_EPSILON,
    DEBIASED,
    OUTSIDE_BAND,
    PAIRS_THAT_DIFFER,
)
from fairbench.evaluation.group_intervals import (
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
    NAN,
    About,
    MetricTable,
    Setting,
    Several,
    Statuses,
    Where,
)
from fairbench.inference.gaps import probability_below
from fairbench.inference.pooled import Generators
from fairbench.inference.posterior import DIRICHLET, posterior_draws, resampled_counts
from fairbench.inference.survey import Design, SurveyCounts
from fairbench.metrics.group import debiased
from fairbench.metrics.rates import Counts, Rate, binary_confusion, selection_rate
from fairbench.metrics.registry import BINARY, Metric, metrics_of

NO_DRAWS = np.empty((0, 0, 4))
RESAMPLES = 200  # of the bias of a gap: a mean, which needs far fewer than an interval


@dataclass(frozen=True, eq=False)
class Counted:
    """The confusion counts (..., G, 4) of an attribute's groups, and what makes their intervals.

    The axes before the groups are those of samples, such as splits, of which there may be none.
    `pooled` is what all groups together say of each.
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
        sizes = self.intervals.rows(rates).astype(np.int64)
        return {rate.name: size for rate, size in zip(rates, sizes, strict=True)}

    def sizes(self, rates: Sequence[Rate]) -> NDArray[np.int64]:
        """Return how many rows (R, ..., G) each rate rests on in each group."""
        return np.stack([self._sizes[rate.name] for rate in rates])

    def unseen(self, among: Mask) -> Mask:
        """Return the groups (..., G) that have rows, but are not among those compared."""
        present: Mask = self.counts.sum(axis=-1) > 0
        return present & ~among

    def below(self, metric: Metric, epsilon: float, among: Mask) -> Floats:
        """Return the probability (...) that a gap between groups (..., G) is under epsilon."""
        of_groups = self.intervals.below if self.pooled is None else self.pooled.below
        below = np.full(among.shape[:-1], NAN)
        for groups, places in patterns(among):
            below[places] = np.reshape(of_groups(metric, epsilon, groups), below.shape)[places]
        return below

    def values(self, metric: Metric, among: Mask) -> Floats:
        """Return a gap or smallest ratio (...) among some groups (..., G)."""
        counts, values = self.intervals.counts_of(metric), np.full(among.shape[:-1], NAN)
        for groups, places in patterns(among):
            if groups:
                values[places] = metric(counts[places][..., groups, :])
        return values

    def gap_status(self, metric: Metric, minimum: int, among: Mask, value: Floats) -> Statuses:
        """Return statuses of gaps (...): of the weakest group compared, of groups left out."""
        sizes = np.where(among, self.sizes(metric.rates), np.iinfo(np.int64).max)
        status = self._weakest_statuses(metric.rates, sizes, minimum)
        without_value = np.isnan(value) & status.has_value

        def all_zero(*place: int) -> str:
            reference = self.groups[int(among[place].argmax())]
            whose = "every group" if among[place].sum() > 2 else f"group '{reference}'"
            return f"{selection_rate.name} of {whose} is 0"

        def without(*place: int) -> str:
            left_out = np.flatnonzero(~among[place])
            names = ", ".join(f"'{self.groups[g]}'" for g in left_out)
            least = self.sizes(metric.rates)[(slice(None), *place, left_out[0])].argmin()
            return f"without {names}: {metric.rates[least].empty}"

        status.flag(
            ~among.all(axis=-1) & status.has_value & ~without_value, "insufficient", without
        )
        status.flag(without_value, "undefined", all_zero)
        return status

    def status(self, rates: Sequence[Rate], minimum: int) -> Statuses:
        """Return statuses of groups: whether rates are defined, and rest on `minimum` rows."""
        return self._weakest_statuses(rates, self.sizes(rates)[..., None], minimum)

    def against_first(self, rates: Sequence[Rate], minimum: int) -> Statuses:
        """Return statuses (..., G - 1) of comparisons of every other group with the first."""
        sizes = self.sizes(rates)
        pairs = np.stack(np.broadcast_arrays(sizes[..., :1], sizes[..., 1:]), axis=-1)
        return self._weakest_statuses(rates, pairs, minimum, others=True)

    def _weakest_statuses(
        self, rates: Sequence[Rate], sizes: NDArray[np.int64], minimum: int, *, others: bool = False
    ) -> Statuses:
        """Return statuses (...) of values that need K groups each, by their sizes (R, ..., K).

        Parameters
        ----------
        others : whether the K groups are the first one and the one that the last axis of the
            statuses is of. Otherwise they are all groups in their order, or, where K is 1, the
            one that this axis is of.
        """
        flat = np.moveaxis(sizes, 0, -2)
        flat = flat.reshape(*flat.shape[:-2], -1)
        place, least = flat.argmin(axis=-1), flat.min(axis=-1)
        status, count = Statuses.ok(least.shape), sizes.shape[-1]

        def weakest(at: tuple[int, ...]) -> tuple[Rate, str]:
            rate, g = divmod(int(place[at]), count)
            if others:
                g = 0 if g == 0 else at[-1] + 1
            elif count == 1:
                g = at[-1]
            return rates[rate], f" in group '{self.groups[g]}'" if self.groups[g] else ""

        def few(*at: int) -> str:
            return f"n={least[at]}{weakest(at)[1]}"

        def none(*at: int) -> str:
            rate, where = weakest(at)
            return rate.empty + where

        status.flag((least > 0) & (least < minimum), "insufficient", few)
        status.flag(least == 0, "undefined", none)
        return status


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
    design: Design | None = None

    def attribute(
        self, groups: Groups, target: Floats, hard: Floats, generators: Generators
    ) -> None:
        """Add per-group rates, differences and ratios to the reference, and gaps."""
        self.counted(self.count(groups, target, hard, generators), generators)

    def counted(self, counted: Counted, generators: Generators) -> None:
        """Add the same rows of counts whose intervals are known how to make."""
        self._rates(counted)
        if len(counted.groups) > 1:
            self._pairs(counted)
            self._gaps(counted, generators)
            if counted.pooled is not None and len(counted.groups) > 2:
                counted.pooled.add_to(self.table, self.level, counted.sizes)

    def count(
        self,
        groups: Groups,
        target: Floats,
        hard: Floats,
        generators: Generators,
        *,
        times: NDArray[np.int64] | None = None,
    ) -> Counted:
        """Return the counts of an attribute's groups, and what makes their intervals.

        Parameters
        ----------
        groups : of S splits; the counts are (S, G, 4), or (G, 4) of one split.
        generators : of each split.
        times : (n,) how often each row comes; once by default.
        """
        name, names = groups.attribute, list(groups.names)
        if self.design is not None:
            cell = (2 * target + hard).astype(np.intp)
            survey = SurveyCounts.of(cell, groups.codes, self.design, groups=len(groups))
            return self._surveyed(name, names, survey, generators)
        counts = binary_confusion(target, hard, groups.codes, n_groups=groups.cells, times=times)
        if groups.splits > 1:
            counts = counts.reshape(groups.splits, len(groups), 4)
        if self.interval == DIRICHLET:
            draws = [
                posterior_draws(of_split, self.n_draws, generator, alpha=self.alpha)
                for of_split, generator in zip(_by_split(counts), generators, strict=True)
            ]
            drawn = draws[0] if counts.ndim == 2 else np.stack(draws, axis=1)
            return Counted(name, names, counts, PosteriorIntervals(counts, drawn, self.level))
        intervals = group_intervals(counts, NO_DRAWS, self.level)
        pooled = PooledGroups(name, names, counts, self.n_draws, generators)
        return Counted(name, names, counts, intervals, pooled)

    def _surveyed(
        self, name: str, groups: list[str], survey: SurveyCounts, generators: Generators
    ) -> Counted:
        """Return the counts of weighted or clustered rows, at the groups' effective sizes."""
        counts = survey.counts()
        intervals = SurveyIntervals(counts, NO_DRAWS, self.level, survey=survey)
        pooled = PooledGroups(name, groups, counts, self.n_draws, generators)
        return Counted(name, groups, counts, intervals, pooled)

    def _rates(self, counted: Counted) -> None:
        """Add the rates of every group."""
        metrics = list(metrics_of(BINARY, "rate").values())
        values = [metric(counted.intervals.counts_of(metric)) for metric in metrics]
        sizes = [counted.sizes(metric.rates).min(axis=0) for metric in metrics]
        statuses = [counted.status(metric.rates, self.table.minimum) for metric in metrics]
        names = [metric.name for metric in metrics]
        self._add(names, counted, values, sizes, counted.intervals.rates(metrics), statuses)

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
        """Add M metrics, each of arrays (..., G) of samples and groups."""
        shape = len(names), len(self.table.splits), len(where.names)
        lower, upper = (np.reshape(end, shape) for end in interval)
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

    def _pairs(self, counted: Counted) -> None:
        """Add the differences of rates from the reference's, and the ratios to it."""
        metrics = list(metrics_of(BINARY, "difference", "ratio").values())
        others = Several(counted.attribute, counted.names[1:])
        values, sizes, statuses = [], [], []
        for metric in metrics:
            value = metric(counted.intervals.counts_of(metric))
            rows = counted.sizes(metric.rates)[0]
            status = counted.against_first(metric.rates, self.table.minimum)
            zero = f"{metric.rates[0].name} of group '{counted.groups[0]}' is 0"
            status.flag(np.isnan(value) & status.has_value, "undefined", zero)
            values.append(value)
            sizes.append(np.minimum(rows[..., :1], rows[..., 1:]))
            statuses.append(status)
        ends, bounded = counted.intervals.pairs(metrics), counted.intervals.bounded
        names = [metric.name for metric in metrics]
        self._add(names, others, values, sizes, ends, statuses, bounded=bounded)
        ratios = [m for m, metric in enumerate(metrics) if metric.interval == "ratio"]
        outside = counted.intervals.outside([metrics[m] for m in ratios], self.ratio_band)
        outside_band = [
            np.where(np.isnan(values[m]), NAN, probability)
            for m, probability in zip(ratios, outside, strict=True)
        ]
        no_ends = np.full(np.shape(outside_band), NAN)
        self._add(
            [names[m] for m in ratios],
            others,
            outside_band,
            [sizes[m] for m in ratios],
            (no_ends, no_ends),
            [statuses[m] for m in ratios],
            statistic=OUTSIDE_BAND,
            setting=Setting(band=self.ratio_band),
        )

    def _gaps(self, counted: Counted, generators: Generators) -> None:
        """Add the largest gaps and smallest ratios, and the further statistics of the gaps."""
        metrics = list(metrics_of(BINARY, "widest").values())
        among = counted.intervals.compared(metrics)
        among[among.sum(axis=-1) < 2] = True
        intervals = counted.intervals.gaps(metrics, among, unseen=counted.unseen(among))
        # Drawn before the posteriors of `counted.below`, which share the generators.
        resampled = None
        if len(counted.groups) > 2:
            resampled = _resampled(counted.counts, generators)
        compared = _Compared.of(counted, metrics, among, intervals, self.table.minimum)
        self._add(
            [metric.name for metric in metrics],
            Where(counted.attribute),
            compared.values,
            compared.sizes,
            compared.ends(),
            compared.statuses,
            bounded=counted.intervals.bounded,
        )
        gaps = compared.only_gaps()
        self._probabilities_below(counted, gaps)
        if resampled is not None:
            self._debiased_gaps(counted, gaps, resampled)
        if all(interval.surely is not None for interval in intervals):
            self._pairs_that_differ(counted, gaps)

    def _probabilities_below(self, counted: Counted, gaps: _Compared) -> None:
        """Add the probability that each gap is under epsilon."""
        below = [
            counted.below(metric, self.epsilon, groups)
            for metric, groups in zip(gaps.metrics, gaps.among, strict=True)
        ]
        if not isinstance(counted.intervals, PosteriorIntervals):  # whose interval is its own
            below = list(probability_below(below, *gaps.ends(), self.epsilon, level=self.level))
        below = [
            np.where(np.isnan(value), NAN, probability)
            for value, probability in zip(gaps.values, below, strict=True)
        ]
        setting = Setting(epsilon=self.epsilon)
        self._add_statistic(BELOW_EPSILON, counted, gaps, below, gaps.statuses, setting=setting)

    def _debiased_gaps(self, counted: Counted, gaps: _Compared, resampled: Counts) -> None:
        """Add the gaps less what chance adds to them."""
        corrected = [
            _debiased(counted, metric, groups, resampled)
            for metric, groups in zip(gaps.metrics, gaps.among, strict=True)
        ]
        statuses = [
            Statuses.of(status, value.shape)
            for status, value in zip(gaps.statuses, gaps.values, strict=True)
        ]
        for status, value in zip(statuses, corrected, strict=True):
            without_value = np.isnan(value) & status.has_value
            status.flag(without_value, "undefined", "no resample has the rates of every group")
        self._add_statistic(DEBIASED, counted, gaps, corrected, statuses)

    def _pairs_that_differ(self, counted: Counted, gaps: _Compared) -> None:
        """Add how many pairs of groups surely differ, where there is a gap."""
        pairs = [
            _pairs(interval, value)
            for interval, value in zip(gaps.intervals, gaps.values, strict=True)
        ]
        is_row = ~np.isnan(np.reshape(gaps.values, (len(gaps.values), -1, 1)))
        self._add_statistic(PAIRS_THAT_DIFFER, counted, gaps, pairs, gaps.statuses, there=is_row)

    def _add_statistic(
        self,
        statistic: str,
        counted: Counted,
        gaps: _Compared,
        values: Sequence[Floats],
        statuses: Sequence[Statuses],
        **options: Any,
    ) -> None:
        """Add a further statistic of each gap, which has no interval."""
        names = [metric.name for metric in gaps.metrics]
        no_ends = np.full((len(names), *gaps.values[0].shape), NAN)
        self._add(
            names,
            Where(counted.attribute),
            values,
            gaps.sizes,
            (no_ends, no_ends),
            statuses,
            statistic=statistic,
            **options,
        )


@dataclass(frozen=True, eq=False)
class _Compared:
    """The largest gaps and smallest ratios of an attribute's groups, one entry for each metric.

    Attributes
    ----------
    among : (..., G) the groups that are compared.
    values, sizes : (...) the gap or ratio, and the rows of its smallest group.
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
        counted: Counted,
        metrics: Sequence[Metric],
        among: Mask,
        intervals: Sequence[GapInterval],
        minimum: int,
    ) -> _Compared:
        """Return the values of metrics among groups (M, ..., G), flagged under `minimum` rows."""
        values = [counted.values(*pair) for pair in zip(metrics, among, strict=True)]
        sizes = [
            np.where(groups, counted.sizes(metric.rates), np.iinfo(np.int64).max).min(axis=(0, -1))
            for metric, groups in zip(metrics, among, strict=True)
        ]
        statuses = [
            counted.gap_status(metric, minimum, groups, value)
            for metric, groups, value in zip(metrics, among, values, strict=True)
        ]
        return cls(metrics, list(among), intervals, values, sizes, statuses)

    def only_gaps(self) -> _Compared:
        """Return the gaps, without the ratios."""
        kept = [m for m, metric in enumerate(self.metrics) if metric.is_gap]
        return _Compared(
            [self.metrics[m] for m in kept],
            [self.among[m] for m in kept],
            [self.intervals[m] for m in kept],
            [self.values[m] for m in kept],
            [self.sizes[m] for m in kept],
            [self.statuses[m] for m in kept],
        )

    def ends(self) -> tuple[Floats, Floats]:
        """Return the lower and the upper ends (M, ...) of the intervals."""
        lower = np.stack([interval.lower for interval in self.intervals])
        upper = np.stack([interval.upper for interval in self.intervals])
        return lower, upper


def _pairs(gap: GapInterval, value: Floats) -> Floats:
    """Return how many pairs of groups differ for sure, (...)."""
    assert gap.surely is not None
    either = gap.surely | gap.surely.swapaxes(-1, -2)
    return np.where(np.isnan(value), NAN, either.sum(axis=(-2, -1)) // 2)


def _by_split(counts: Counts) -> Sequence[Counts]:
    """Return the counts (G, 4) of every split, from those of one or (S, G, 4) of several."""
    return [counts] if counts.ndim == 2 else list(counts)


def _resampled(counts: Counts, generators: Generators) -> Counts:
    """Return parametric resamples (T, ..., G, 4) of counts, each split's by its own generator."""
    drawn = [
        resampled_counts(of_split, RESAMPLES, generator)
        for of_split, generator in zip(_by_split(counts), generators, strict=True)
    ]
    if counts.ndim == 2:
        return drawn[0]
    # The cells come first in memory, so that sums over them are of whole arrays.
    return np.moveaxis(
        np.stack([np.moveaxis(resample, -1, 0) for resample in drawn], axis=2), 0, -1
    )


def _debiased(counted: Counted, metric: Metric, among: Mask, resampled: Counts) -> Floats:
    """Return gaps (...) less what chance adds to them, among groups (..., G)."""
    corrected = np.full(among.shape[:-1], NAN)
    for groups, places in patterns(among):
        counts, drawn = counted.counts[places], resampled[:, places]
        corrected[places] = debiased(metric, counts[..., groups, :], drawn[..., groups, :])
    return corrected
