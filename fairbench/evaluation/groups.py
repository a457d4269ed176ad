"""Intervals of the rates of groups, and of what compares them, from counts: of one of two kinds.

``frequentist`` intervals hold in repeated samples, however few the rows (closed forms of counts);
``dirichlet`` ones are quantiles of the posterior that the papers use, and hold for rates and
differences of many rows alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairbench.core.arrays import Floats, Mask, divide
from fairbench.evaluation.many_groups import DRAWS as POOLED_DRAWS
from fairbench.evaluation.many_groups import parts_of
from fairbench.evaluation.table import Statuses, in_group, without
from fairbench.inference.gaps import (
    GroupLimits,
    compared_means,
    largest_gap,
    simultaneous_levels,
    smallest_ratio,
)
from fairbench.inference.pooled import Generators, Pooled, pool_rates
from fairbench.inference.posterior import central_interval
from fairbench.inference.rates import (
    Limits,
    difference_limits,
    mean_limits,
    probability_ratio_below,
    rate_limits,
    ratio_limits,
)
from fairbench.inference.survey import LabelledRows, SurveyCounts
from fairbench.metrics.group import debiased
from fairbench.metrics.registry import (
    BINARY,
    WIDEST,
    Counts,
    Metric,
    Rate,
    metrics_of,
    shares_of,
    table_rows,
)

LimitPair = tuple[Floats, Floats]
Metrics = Sequence[Metric]


@lru_cache(maxsize=1)
def counted_rates() -> tuple[Rate, ...]:
    """Return the distinct rates that metrics of counts are computed from."""
    metrics = metrics_of(BINARY, "rate", "difference", "ratio", *WIDEST).values()
    return tuple(dict.fromkeys(rate for metric in metrics for rate in metric.rates))


class GapInterval(NamedTuple):
    """The intervals (...) of largest gaps, or of smallest ratios.

    `leads` (..., G, G) has the simultaneous lower limits of the first group's rate minus the
    second's, for every ordered pair of groups; None if they are not computed.
    """

    lower: Floats
    upper: Floats
    leads: Floats | None = None

    @classmethod
    def of(cls, limits: GroupLimits) -> GapInterval:
        """Return the interval of the largest gap between groups with these limits (G,)."""
        gap = largest_gap(limits)
        return cls(gap.lower, gap.upper, limits.leads)

    def take(self, index: int) -> GapInterval:
        """Return one of several."""
        of_pairs = None if self.leads is None else self.leads[index]
        return GapInterval(self.lower[index], self.upper[index], of_pairs)

    @property
    def apart(self) -> list[tuple[int, int]]:
        """The (higher, lower) positions of groups that surely differ, the widest apart first."""
        lower = np.nan_to_num(np.asarray(self.leads, float), nan=-np.inf)
        order = np.argsort(-lower, axis=None, kind="stable")
        return [divmod(int(cell), len(lower)) for cell in order[: int((lower > 0).sum())]]


@dataclass(frozen=True, eq=False)
class _Counted:
    """The confusion counts of one attribute's groups, the reference first.

    Attributes
    ----------
    counts : (G, 4), or (K, G, 4) of K samples; the limits of R rates are then (R, K, G).
    level : the level of the intervals.
    draws : posterior draws (T, G, 4), from which the probabilities of small gaps are counted.
    bounded : whether the interval of a ratio over a rate of 0 tells what it is at least.
    """

    counts: Counts
    level: float
    draws: Floats = field(default_factory=lambda: np.empty((0, 0, 4)))
    bounded: ClassVar[bool]

    def rows(self, rates: Sequence[Rate]) -> Floats:
        """Return how many rows (R, G) each rate rests on."""
        return shares_of(rates, self.counts)[1]

    def counts_of(self, metric: Metric) -> Counts:
        """Return the counts (G, 4) from which a metric's values are computed."""
        return self.counts

    def posterior_counts(self, metric: Metric) -> Counts:
        """Return posterior draws (T, G, 4) of counts that have the metric's rates."""
        return self.draws

    def probability_gap_below(self, metric: Metric, epsilon: float, among: Sequence[int]) -> Floats:
        """Return the posterior probability (...) that a gap of some groups is under epsilon."""
        draws = self.posterior_counts(metric)[..., list(among), :]
        return np.asarray((metric(draws) < epsilon).mean(axis=0))


@dataclass(frozen=True, eq=False)
class PosteriorIntervals(_Counted):
    """Central intervals of posterior draws (T, G, 4) of the confusion counts (G, 4)."""

    bounded: ClassVar[bool] = False

    def rates(self, metrics: Metrics) -> LimitPair:
        """Return both limits (M, G) of rates."""
        intervals = [central_interval(metric(self.draws), self.level) for metric in metrics]
        lower, upper = map(np.array, zip(*intervals, strict=True))
        return lower, upper

    def pairs(self, metrics: Metrics) -> LimitPair:
        """Return both limits (M, G - 1) of differences from the reference, or of ratios to it."""
        return self.rates(metrics)

    def outside(self, metrics: Metrics, band: float) -> Floats:
        """Return the probability (M, G - 1) that ratios are further than `band` from 1."""
        return np.array(
            [(np.abs(metric(self.draws) - 1) > band).mean(axis=0) for metric in metrics]
        )

    def compared(self, metrics: Metrics) -> Mask:
        """Return all groups (M, ..., G): without one of them, there is no gap."""
        return np.ones((len(metrics), *self.counts.shape[:-1]), bool)

    def gaps(self, metrics: Metrics, among: Mask, *, unseen: Mask | None = None) -> GapInterval:
        """Return the intervals (M, ...) of largest gaps, or of smallest ratios, of all groups."""
        return GapInterval(*self.rates(metrics))


@dataclass(frozen=True, eq=False)
class CountIntervals(_Counted):
    """Intervals from the confusion counts alone, that hold for few rows too.

    Attributes
    ----------
    asked : the rates that intervals may be wanted of.
    """

    asked: Sequence[Rate] = field(default_factory=counted_rates)
    bounded: ClassVar[bool] = True

    @cached_property
    def _limits(self) -> Limits:
        return self._limits_at(self.asked, np.full(len(self.asked), self.level))

    def limits(self, rates: Sequence[Rate]) -> Limits:
        """Return rates (R, ..., G), of those `asked`, with their limits."""
        indices = self._indices(rates)
        return self._limits.apply(lambda limit: limit[indices])

    def _indices(self, rates: Sequence[Rate]) -> list[int]:
        """Return the indices of rates among those in `asked`."""
        index = {rate.name: r for r, rate in enumerate(self.asked)}
        return [index[rate.name] for rate in rates]

    def _limits_at(self, rates: Sequence[Rate], levels: ArrayLike) -> Limits:
        """Return rates (R, ..., G) with their limits, at levels (R, ...) or at one."""
        at = np.asarray(levels)
        shares = self._shares(
            rates, at[..., None] if at.ndim > 1 else _column_like(at, self.counts)
        )
        success, failure = zip(*(rate.weights for rate in rates), strict=True)
        like = shares[0]
        return shares.weighted(_column_like(success, like), _column_like(failure, like))

    def _shares(self, rates: Sequence[Rate], levels: Floats) -> Limits:
        """Return which share of each rate's rows is in its numerator's cells.

        Parameters
        ----------
        levels : levels that broadcast to (R, ..., G), the same for all groups.
        """
        return self.of_counts(*self.effective_counts(rates), levels)

    def of_counts(self, successes: ArrayLike, sizes: ArrayLike, level: ArrayLike) -> Limits:
        """Return rates of counts with the intervals that these are."""
        return rate_limits(successes, sizes, level=level)

    def effective_counts(self, rates: Sequence[Rate]) -> tuple[Floats, Floats]:
        """Return how many rows (R, G) of each rate count, and of how many."""
        return shares_of(rates, self.counts)

    def correlation(self, *rates: Rate) -> Floats | float:
        """Return the correlations (G, G) of the errors of a rate, or of a mean, in two groups.

        They are 0 of distinct rows.
        """
        return 0.0

    def difference_error(self, rate: Rate, first: int, second: int) -> float:
        """Return the standard error of a rate of one group less that of another."""
        successes, sizes = (count[0] for count in self.effective_counts([rate]))
        with np.errstate(invalid="ignore", divide="ignore"):
            variances = successes / sizes * (1 - successes / sizes) / sizes
        return float(np.sqrt(variances[first] + variances[second]))

    def difference(self, rate: Rate, first: int, second: int) -> Limits:
        """Return a rate of one group less that of another, with its limits."""
        limits = self.limits([rate])
        groups = self.counts.shape[-2]
        shared = np.broadcast_to(self.correlation(rate), (groups, groups))[first, second]
        return difference_limits(limits.take(first), limits.take(second), shared).take(0)

    def _correlations(self, rates: Sequence[Sequence[Rate]]) -> Floats | float:
        """Return the correlations (R, G, G) of the errors of rates, or means, in two groups."""
        correlations = [self.correlation(*of_mean) for of_mean in rates]
        if all(isinstance(of_rate, float) for of_rate in correlations):
            return 0.0
        groups = self.counts.shape[-2]
        return np.stack([np.broadcast_to(of_rate, (groups, groups)) for of_rate in correlations])

    def _correlation_of(self, first: Rate, second: Rate) -> Floats | float:
        """Return the correlations (G,) of the errors of two rates that rest on distinct rows."""
        return 0.0

    def _limits_of_two(self, rates: Sequence[Rate], level: Floats) -> Limits:
        """Return two rates (2, ..., G) of which the mean is taken, at a level (...)."""
        if (level == self.level).all():
            return self.limits(rates)
        return self._limits_at(rates, np.stack([level, level]))

    def rates(self, metrics: Metrics) -> LimitPair:
        """Return both limits (M, G) of rates, or of means of two rates."""
        limits = self.limits([metric.rates[0] for metric in metrics])
        for m, metric in enumerate(metrics):
            if len(metric.rates) == 2:
                of_two = self._limits_of_two(metric.rates, np.asarray(self.level))
                first, second = (of_two.apply(itemgetter(r)) for r in (0, 1))
                mean = mean_limits(first, second, self._correlation_of(*metric.rates))
                for of_metrics, of_mean in zip(limits, mean, strict=True):
                    of_metrics[m] = of_mean
        return _blank_undefined(limits, limits.value)

    def pairs(self, metrics: Metrics) -> LimitPair:
        """Return both limits (M, G - 1) of differences from the reference, or of ratios to it."""
        pairs = self._against_reference(metrics)
        is_ratio = _column_like([metric.interval == "ratio" for metric in metrics], pairs[0].value)
        limits = ratio_limits(*pairs).where(is_ratio > 0, difference_limits(*pairs))
        return _blank_undefined(limits, pairs[0].value + pairs[1].value)

    def outside(self, metrics: Metrics, band: float) -> Floats:
        """Return the probabilities (M, G - 1) that ratios are further than `band` from 1."""
        others, reference, shared = self._against_reference(metrics)
        below_band, below_end_of_band = (
            probability_ratio_below(others, reference, ratio, level=self.level, correlation=shared)
            for ratio in (1 - band, 1 + band)
        )
        return below_band + 1 - below_end_of_band

    def compared(self, metrics: Metrics) -> Mask:
        """Return the groups (M, ..., G) in which every rate of a metric is defined."""
        has_rows = self.rows(self.asked) > 0
        return np.array([has_rows[self._indices(one.rates)].all(axis=0) for one in metrics])

    def gaps(self, metrics: Metrics, among: Mask, *, unseen: Mask | None = None) -> GapInterval:
        """Return the intervals (M, ...) of largest gaps, or smallest ratios, of groups (M, ..., G).

        The groups `unseen` (M, ..., G) have no rows in the rates' denominators. Their rates may be
        anything from 0 to 1; the intervals cover the gaps that include these groups.
        """
        # One row for each rate of each metric, or for their mean; those of a metric follow each
        # other.
        rates = [of_mean for metric in metrics for of_mean in _compared_rates(metric)]
        metric_of_rate = [m for m, metric in enumerate(metrics) for _ in _compared_rates(metric)]
        first_rate = np.searchsorted(metric_of_rate, np.arange(len(metrics)))
        shape = len(metrics), *self.counts.shape[:-1]
        compared = np.broadcast_to(among, shape)[metric_of_rate]
        unseen_of_rate = np.broadcast_to(False if unseen is None else unseen, shape)[metric_of_rate]
        n_rates = np.array([len(_compared_rates(metrics[m])) for m in metric_of_rate])
        # The limits of all pairs of groups, and of all rates of a metric, hold at once.
        levels = np.empty(compared.shape[:-1])
        for count in np.unique(n_rates):
            has_count = n_rates == count
            n_groups = compared[has_count].sum(axis=-1)
            levels[has_count] = simultaneous_levels(self.level, n_groups, int(count))
        single = self._limits_of_all(rates, np.full(levels.shape, self.level))
        wider = single if (levels == self.level).all() else self._limits_of_all(rates, levels)
        limits = GroupLimits(single, wider, self._correlations(rates))
        of_compared = limits.only(compared, unseen=unseen_of_rate)
        gap = largest_gap(of_compared)
        unknown = (np.isnan(limits.pointwise.value) & compared).any(axis=-1)
        # The largest gap of a metric is the largest of its rates' gaps.
        lower = np.maximum.reduceat(np.where(unknown, np.nan, gap.lower), first_rate)
        upper = np.maximum.reduceat(np.where(unknown, np.nan, gap.upper), first_rate)
        largest_leads = np.fmax.reduceat(of_compared.leads, first_rate)
        for m, metric in enumerate(metrics):
            if metric.better != "lower":  # a ratio
                rate = first_rate[m]
                lower[m], upper[m] = _ratios(limits.row(rate), compared[rate])
                lower[m] = np.where(unseen_of_rate[rate].any(axis=-1), 0.0, lower[m])
        return GapInterval(lower, upper, largest_leads)

    def _limits_of_all(self, rates: Sequence[Sequence[Rate]], levels: Floats) -> Limits:
        """Return rates, and means of two, with their limits (R, ..., G) at levels (R, ...)."""
        first = [of_mean[0] for of_mean in rates]
        is_own = (levels == self.level).all()
        limits = self.limits(first) if is_own else self._limits_at(first, levels)
        for r, of_mean in enumerate(rates):
            if len(of_mean) == 2:
                of_two = self._limits_of_two(of_mean, levels[r])
                one, other = (of_two.apply(itemgetter(at)) for at in (0, 1))
                about = self.rows(of_mean), self._correlation_of(*of_mean)
                mean = compared_means(one, other, *about)
                for of_rates, end in zip(limits, mean, strict=True):
                    of_rates[r] = end
        return limits

    def _against_reference(self, metrics: Metrics) -> tuple[Limits, Limits, Floats | float]:
        rates = [metric.rates[0] for metric in metrics]
        limits, shared = self.limits(rates), self._correlations([[rate] for rate in rates])
        correlation = shared if isinstance(shared, float) else shared[:, 1:, 0]
        return limits.take(slice(1, None)), limits.take(slice(0, 1)), correlation


def _compared_rates(metric: Metric) -> list[tuple[Rate, ...]]:
    """Return what a gap, or a smallest ratio, compares: each of its rates, or the mean of two."""
    if metric.interval == "widest_mean":
        return [metric.rates]
    return [(rate,) for rate in metric.rates]


def _column_like(values: ArrayLike, like: Floats) -> Floats:
    """Return numbers (R,) in a shape that broadcasts with an array (R, ...)."""
    return np.reshape(values, (-1, *(1,) * (like.ndim - 1)))


def _blank_undefined(limits: Limits, value: Floats) -> LimitPair:
    """Return both limits, NaN where the value is undefined for lack of rows."""
    missing = np.isnan(value)
    return np.where(missing, np.nan, limits.lower), np.where(missing, np.nan, limits.upper)


def _by_pattern(
    among: Mask, of_groups: Callable[[list[int], Mask], ArrayLike], ends: int = 0
) -> Floats:
    """Return values (...), or `ends` of each, among some groups (..., G) at a time.

    Parameters
    ----------
    of_groups : returns the values of groups that are compared in the samples (...) of a mask.
    """
    values = np.full((*(ends,) * bool(ends), *among.shape[:-1]), np.nan)
    flat = among.reshape(-1, among.shape[-1])
    distinct, pattern = flat[:1], np.zeros(len(flat), np.intp)
    if not (flat == distinct).all():  # rarely: the same groups have rows in every split
        distinct, pattern = np.unique(flat, axis=0, return_inverse=True)
    for i, groups in enumerate(distinct):
        if groups.any():
            samples = np.reshape(pattern == i, among.shape[:-1])
            values[..., samples] = of_groups(np.flatnonzero(groups).tolist(), samples)
    return values


def _ratios(limits: GroupLimits, among: Mask) -> Floats:
    """Return both limits (2, ...) of ratios of groups (..., G), for each set of groups compared.

    They are of the ratio of two groups, or of the smallest over the largest of more.
    """

    def of_groups(groups: list[int], samples: Mask) -> ArrayLike:
        single, wider = (
            of_all.apply(lambda limit: limit[samples])
            for of_all in (limits.pointwise, limits.simultaneous)
        )
        compared = GroupLimits(single, wider, limits.correlation).take(groups)
        if len(groups) < 2:
            return np.nan
        if len(groups) > 2:
            return smallest_ratio(compared)[1:]
        between = np.broadcast_to(compared.correlation, (2, 2))[0, 1]
        return ratio_limits(compared.pointwise.take(1), compared.pointwise.take(0), between)[1:]

    return _by_pattern(among, of_groups, ends=2)


@dataclass(frozen=True, eq=False)
class SurveyIntervals(CountIntervals):
    """Intervals of weighted rows, or of rows in clusters, which groups may share.

    Attributes
    ----------
    survey : the weighted counts; `counts` are theirs at the groups' effective sizes.
    """

    survey: SurveyCounts = field(kw_only=True)

    def rows(self, rates: Sequence[Rate]) -> Floats:
        """Return how many rows (R, G) each rate rests on, whatever they weigh."""
        return shares_of(rates, self.survey.rows)[1]

    def _shares(self, rates: Sequence[Rate], levels: Floats) -> Limits:
        """Return which share of each rate's weight is in its numerator's cells."""
        each = [
            self.survey.limits(rate, level=float(level.flat[0]))
            for rate, level in zip(rates, levels, strict=True)
        ]
        return Limits(*(np.stack(parts) for parts in zip(*each, strict=True)))

    def correlation(self, *rates: Rate) -> Floats | float:
        """Return the correlations (G, G) of the errors of a rate, or of a mean, in two groups."""
        return self.survey.correlation(*rates)

    def difference_error(self, rate: Rate, first: int, second: int) -> float:
        """Return the standard error of a rate of one group less that of another, linearised."""
        _, scores, _ = self.survey.linearised(rate)
        sign = (self.survey.group == first) * 1.0 - (self.survey.group == second)
        among = np.flatnonzero(sign)
        _, unit = np.unique(self.survey.unit[among], return_inverse=True)
        totals = np.bincount(unit, (sign * scores)[among])
        count = len(totals)
        correction = count / (count - 1) if count > 1 else np.nan
        return float(np.sqrt((totals**2).sum() * correction))

    def _correlation_of(self, first: Rate, second: Rate) -> Floats | float:
        """Return the correlations (G,) of the errors of two rates of one group."""
        return self.survey.correlation_of(first, second)


GroupIntervals = CountIntervals | PosteriorIntervals


# Intervals of rates by group where some rows have a label, and all a score.


@dataclass(frozen=True, eq=False)
class LabelledIntervals(CountIntervals):
    """Intervals from the labels there are, helped by scores of any quality.

    Attributes
    ----------
    worth : effective successes and sizes (R, G) of each rate in `asked`: the numbers of labelled
        rows that would be as informative as the labels and scores together; and how many rows
        (R, G) each rate rests on.
    generator : makes the posterior draws.
    labels : the labelled rows.
    """

    worth: tuple[Floats, Floats, Floats] = field(kw_only=True)
    generator: np.random.Generator = field(kw_only=True)
    labels: LabelledRows = field(kw_only=True)

    @classmethod
    def of(
        cls, labels: LabelledRows, counts: Counts, level: float, generator: np.random.Generator
    ) -> LabelledIntervals:
        """Return the intervals of labelled rows with these counts (G, 4)."""
        rates = counted_rates()
        worth = (*labels.effective_counts(rates), labels.rows_of(rates))
        return cls(counts, level, worth=worth, generator=generator, labels=labels)

    def effective_counts(self, rates: Sequence[Rate]) -> tuple[Floats, Floats]:
        """Return how many rows (R, G) count, and of how many, that labels are worth."""
        successes, sizes, _ = (counts[self._indices(rates)] for counts in self.worth)
        return successes, sizes

    def rows(self, rates: Sequence[Rate]) -> Floats:
        """Return how many rows (R, G) each rate rests on: with labels, where it needs them."""
        return np.asarray(self.worth[-1][self._indices(rates)])

    def _counts_for(self, metric: Metric) -> tuple[Floats, Floats]:
        """Return what labels are worth for a metric, successes and sizes (R, G) of its rates."""
        if metric.interval in ("rate", "widest_mean") and len(metric.rates) > 1:
            return self.labels.effective_counts_of_mean(metric.rates)
        return self.effective_counts(metric.rates)

    def _limits_of_two(self, rates: Sequence[Rate], level: Floats) -> Limits:
        """Return two rates (2, G) of which the mean is taken, at a level."""
        return self.of_counts(*self.labels.effective_counts_of_mean(rates), level)

    def counts_of(self, metric: Metric) -> Counts:
        """Return counts (G, 4) that have the metric's rates; other metrics' may be others."""
        successes, sizes = self._counts_for(metric)
        return _counts_with(metric.rates, divide(successes, sizes))

    def posterior_counts(self, metric: Metric) -> Counts:
        """Draw such counts (T, G, 4) from the rates' Beta posteriors, whose prior is Jeffreys'."""
        successes, sizes = self.effective_counts(metric.rates)
        first = (successes + 0.5)[:, None]
        second = (sizes - successes + 0.5)[:, None]
        shape = (len(sizes), DRAWS, sizes.shape[-1])
        return _counts_with(metric.rates, self.generator.beta(first, second, shape))


DRAWS = 2048


def _counts_with(rates: Sequence[Rate], shares: Floats) -> Counts:
    """Return counts (..., 4) in which rates have these shares (R, ...) of successes.

    Rates of several rest on different rows, such as the true and the false positive rate.
    """
    counts = np.zeros((*shares.shape[1:], 4))
    for rate, share in zip(rates, shares, strict=True):
        in_numerator = np.array(rate.numerator) > 0
        only_in_denominator = (np.array(rate.denominator) > 0) & ~in_numerator
        counts[..., in_numerator] = (share / in_numerator.sum())[..., None]
        counts[..., only_in_denominator] = ((1 - share) / only_in_denominator.sum())[..., None]
    return counts


# The counts of groups with what makes their intervals, and the gaps between them.


@dataclass(frozen=True, eq=False)
class GroupCounts:
    """The confusion counts of an attribute's groups, and what makes their intervals.

    Attributes
    ----------
    groups : the names of the G groups.
    counts : (..., G, 4); the axes before the groups are those of samples, such as splits, of which
        there may be none.
    intervals : makes the intervals of rates and of what compares them.
    draws, generators : how many draws the joint estimates of all groups' rates have, and what makes
        those of each split; 0 where there are no such estimates.
    """

    attribute: str
    groups: list[str]
    counts: Counts
    intervals: GroupIntervals
    draws: int = 0
    generators: Generators = ()

    @cached_property
    def pooled(self) -> Mapping[str, Pooled]:
        """The joint estimates (S,) of the groups' rates of all gaps, and of the error, by name."""
        widest = metrics_of(BINARY, *WIDEST).values()
        gaps = [metric for metric in widest if metric.better == "lower"]
        ours = {row["name"] for row in table_rows()}
        # What a metric of somebody's own adds changes no draw of the others.
        rates = {rate.name: rate for one in gaps if one.name in ours for rate in one.rates}
        further = {rate.name: rate for one in gaps for rate in one.rates if rate.name not in rates}
        by_rate = self._pooled(rates, self.generators)
        if further:
            by_rate |= self._pooled(further, deepcopy(self.generators))
        return by_rate | {"error_rate": by_rate["accuracy"].complement}

    def _pooled(self, rates: Mapping[str, Rate], generators: Generators) -> dict[str, Pooled]:
        """Return the joint estimates (S,) of the groups' rates by name."""
        shape = len(rates), -1, len(self.groups)
        successes, sizes = shares_of(list(rates.values()), self.counts)
        posteriors = pool_rates(
            successes.reshape(shape),
            sizes.reshape(shape),
            generators,
            attributes=parts_of(self.attribute, self.groups),
            draws=min(self.draws, POOLED_DRAWS),
        )
        return {name: posteriors.take(r) for r, name in enumerate(rates)}

    def sizes(self, rates: Sequence[Rate]) -> NDArray[np.int64]:
        """Return how many rows (R, ..., G) each rate rests on in each group."""
        return self.intervals.rows(rates).astype(np.int64)

    def probability_gap_below(self, metric: Metric, among: Mask, epsilon: float) -> Floats:
        """Return the probability (...) that a gap between groups (..., G) is under epsilon."""

        def of_groups(groups: list[int], samples: Mask) -> Floats:
            if not self.draws:
                below = self.intervals.probability_gap_below(metric, epsilon, groups)
                return np.reshape(below, samples.shape)[samples]
            gaps = []
            for rates in _compared_rates(metric):
                shares = []
                for rate in rates:
                    success, failure = rate.weights
                    share = self.pooled[rate.name].draws[..., groups]
                    if success != failure:
                        share = success * share / (success * share + failure * (1 - share))
                    shares.append(share)
                gaps.append(np.ptp(sum(shares) / len(shares), axis=-1))
            below = (np.max(gaps, axis=0) < epsilon).mean(axis=-1)
            return np.reshape(below, samples.shape)[samples]

        return _by_pattern(among, of_groups)

    def debiased(self, metric: Metric, among: Mask, resampled: Counts) -> Floats:
        """Return a gap less what noise adds to it, from resampled counts (T, ..., G, 4)."""

        def of_groups(groups: list[int], samples: Mask) -> Floats:
            of_resamples = resampled[:, samples][..., groups, :]
            return debiased(metric, self.counts[samples][..., groups, :], of_resamples)

        return _by_pattern(among, of_groups)

    def statuses(
        self, metrics: Sequence[Metric], minimum: int
    ) -> tuple[NDArray[np.int64], Statuses]:
        """Return how many rows (M, ..., G) metrics rest on, and whether that is at least `minimum`.

        Of a metric of several rates, these are those of the rate with the fewest.
        """
        of_rates = [self.sizes(metric.rates) for metric in metrics]
        weakest = [sizes.argmin(axis=0) for sizes in of_rates]
        size = np.stack([sizes.min(axis=0) for sizes in of_rates])
        status = Statuses.ok(size.shape)

        def none(*at: int) -> str:
            rate = metrics[at[0]].rates[int(weakest[at[0]][at[1:]])]
            return rate.empty + in_group(self.groups[at[-1]])

        status.flag_few(size, minimum, self.groups)
        status.flag(size == 0, "undefined", none)
        return size, status

    def gaps(
        self, metrics: Metrics, minimum: int
    ) -> tuple[Mask, GapInterval, Floats, NDArray[np.int64], Statuses]:
        """Return largest gaps, or smallest ratios, among the groups that have the rates.

        Where fewer than two have them, nothing has a value.

        Returns
        -------
        The groups (M, ..., G) compared, and of each metric (M, ...): the interval, the value, the
        rows of the smallest group that is compared, and whether it rests on `minimum` rows in each,
        and on everyone.
        """
        among = self.intervals.compared(metrics)
        among[among.sum(axis=-1) < 2] = True
        unseen = (self.counts.sum(axis=-1) > 0) & ~among
        interval = self.intervals.gaps(metrics, among, unseen=unseen)

        def values(metric: Metric, among: Mask) -> Floats:
            counts = self.intervals.counts_of(metric)
            return _by_pattern(among, lambda groups, of: metric(counts[of][..., groups, :]))

        found = np.stack([values(*pair) for pair in zip(metrics, among, strict=True)])
        size, of_groups = self.statuses(metrics, minimum)
        statuses = of_groups.of_gaps(among, size)
        without_value = np.isnan(found) & statuses.has_value

        def all_zero(m: int, *sample: int) -> str:
            groups = among[(m, *sample)]
            whose = f"group '{self.groups[int(groups.argmax())]}'"
            if groups.sum() > 2:
                whose = "every group"
            return f"selection_rate of {whose} is 0"

        def why(m: int, *at: int) -> str:
            rates = metrics[m].rates
            fewest = np.argmin([self.sizes([rate])[(0, *at)] for rate in rates])
            return str(rates[int(fewest)].empty)

        left_out = ~among & (statuses.has_value & ~without_value)[..., None]
        reason = without(self.groups, left_out, why)
        statuses.flag(np.asarray(left_out.any(axis=-1)), "insufficient", reason)
        statuses.flag(without_value, "undefined", all_zero)
        smallest = np.where(among, size, np.iinfo(np.int64).max).min(axis=-1)
        return among, interval, found, smallest, statuses
