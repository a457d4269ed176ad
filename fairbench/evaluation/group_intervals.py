"""Intervals of rates by group and of what compares them, made in one of two ways.

``frequentist`` intervals hold in repeated samples, however few the rows (closed forms of counts);
``dirichlet`` ones are quantiles of the posterior that the papers use, and hold for rates and
differences of many rows alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from fairbench.inference.gaps import (
    GroupLimits,
    largest_gap,
    pairs_that_differ,
    simultaneous_level,
    smallest_ratio,
)
from fairbench.inference.posterior import DIRICHLET, FREQUENTIST, central_interval
from fairbench.inference.rates import (
    Limits,
    difference_limits,
    mean_limits,
    probability_ratio_below,
    rate_limits,
    ratio_limits,
    weighted_share,
)
from fairbench.inference.survey import SurveyCounts
from fairbench.metrics.rates import Counts, Rate
from fairbench.metrics.registry import BINARY, Interval, Metric, metrics_of

Array = NDArray[np.float64]
Ends = tuple[Array, Array]


class GroupIntervals(Protocol):
    """Makes the intervals of one attribute's groups, G of them, the reference first.

    `bounded` says whether the interval of a ratio over a rate of 0 tells what it is at least;
    `draws` are posterior draws (T, G, 4) of the groups' confusion counts.
    """

    bounded: ClassVar[bool]

    @property
    def draws(self) -> Array: ...  # noqa: D102

    def rates(self, metric: Metric) -> Ends:
        """Return the ends (G,) of a rate's intervals."""

    def pairs(self, metric: Metric) -> Ends:
        """Return the ends (G - 1,) of differences from the reference, or of ratios to it."""

    def outside(self, metric: Metric, band: float) -> Array:
        """Return how sure it is (G - 1,) that ratios are further than `band` from 1."""

    def compared(self, rates: tuple[Rate, ...]) -> list[int]:
        """Return the groups among which a largest gap is looked for."""

    def gap(self, metric: Metric, among: list[int]) -> Ends:
        """Return the ends of the interval of a largest gap, or of a smallest ratio."""

    def below(self, metric: Metric, epsilon: float, among: list[int]) -> float:
        """Return the probability that a gap is under epsilon."""

    def differing(self, metric: Metric, among: list[int]) -> NDArray[np.bool_] | None:
        """Say of every ordered pair of groups whether the first's rate is surely the higher.

        All statements hold at once. None where that is not asked.
        """


def group_intervals(
    counts: Counts, draws: Array, level: float, interval: str = FREQUENTIST
) -> GroupIntervals:
    """Return what makes the intervals of counts (G, 4) with posterior draws (T, G, 4)."""
    if interval == DIRICHLET:
        return PosteriorIntervals(draws, level)
    return CountIntervals(counts, draws, level)


@dataclass(frozen=True, eq=False)
class PosteriorIntervals:
    """Central intervals of posterior draws (T, G, 4) of the confusion counts."""

    draws: Array
    level: float
    bounded: ClassVar[bool] = False

    def rates(self, metric: Metric) -> Ends:
        """Return the ends (G,) of a rate's intervals."""
        return central_interval(metric(self.draws), self.level)

    def pairs(self, metric: Metric) -> Ends:
        """Return the ends (G - 1,) of differences from the reference, or of ratios to it."""
        return central_interval(metric(self.draws), self.level)

    def outside(self, metric: Metric, band: float) -> Array:
        """Return the probability (G - 1,) that ratios are further than `band` from 1."""
        share: Array = (np.abs(metric(self.draws) - 1) > band).mean(axis=0)
        return share

    def compared(self, rates: tuple[Rate, ...]) -> list[int]:
        """Return all groups: without one of them, there is no gap."""
        return list(range(self.draws.shape[1]))

    def gap(self, metric: Metric, among: list[int]) -> Ends:
        """Return the ends of the interval of a largest gap, or of a smallest ratio."""
        return central_interval(metric(self.draws), self.level)

    def below(self, metric: Metric, epsilon: float, among: list[int]) -> float:
        """Return the probability that a gap is under epsilon."""
        return float((metric(self.draws) < epsilon).mean())

    def differing(self, metric: Metric, among: list[int]) -> NDArray[np.bool_] | None:
        """Return None."""
        return None


@lru_cache(maxsize=8)
def _rates_of(kind: Interval) -> tuple[Rate, ...]:
    """Return the different rates that metrics of a kind rest on."""
    rates = [rate for metric in metrics_of(BINARY, kind).values() for rate in metric.rates]
    return tuple({rate.name: rate for rate in rates}.values())


@dataclass(frozen=True, eq=False)
class CountIntervals:
    """Intervals from the confusion counts (G, 4) alone, that hold for few rows too.

    Attributes
    ----------
    draws : posterior draws (T, G, 4), of which the probabilities of small gaps are counted.
    """

    counts: Counts
    draws: Array
    level: float
    bounded: ClassVar[bool] = True
    _known: dict[tuple[str, float], Limits] = field(default_factory=dict)

    def limits(self, rate: Rate, level: float | None = None) -> Limits:
        """Return a rate (G,) with its limits, at this level or at another."""
        level = level or self.level
        if (rate.name, level) not in self._known:
            # All rates that are asked for at this level, as one call costs what each would.
            rates = (
                (*_rates_of("rate"), rate) if level == self.level else (*_rates_of("widest"), rate)
            )
            for each, shares in zip(rates, self._shares(rates, level), strict=True):
                self._known[each.name, level] = weighted_share(shares, *each.weights)
        return self._known[rate.name, level]

    def _shares(self, rates: Sequence[Rate], level: float) -> Iterator[Limits]:
        """Return which share of each rate's rows is in its numerator's cells."""
        successes = np.stack([rate.successes(self.counts) for rate in rates])
        sizes = np.stack([rate.size(self.counts) for rate in rates])
        limits = rate_limits(successes, sizes, level=level)
        return (Limits(*each) for each in zip(*limits, strict=True))

    def correlation(self, rate: Rate) -> Array | float:
        """Return the correlations (G, G) of a rate's errors in two groups: 0 of distinct rows."""
        return 0.0

    def _correlation_of(self, first: Rate, second: Rate) -> Array | float:
        """Return the correlations (G,) of the errors of two rates that rest on distinct rows."""
        return 0.0

    def rates(self, metric: Metric) -> Ends:
        """Return the ends (G,) of a rate's intervals, or of a mean of two rates."""
        limits = [self.limits(rate) for rate in metric.rates]
        found = limits[0]
        if len(limits) == 2:
            one, other = metric.rates
            found = mean_limits(limits[0], limits[1], self._correlation_of(one, other))
        return self._defined(found, found.value)

    def pairs(self, metric: Metric) -> Ends:
        """Return the ends (G - 1,) of differences from the reference, or of ratios to it."""
        others, reference, shared = self._against_reference(metric)
        make = difference_limits if metric.interval == "difference" else ratio_limits
        found = make(others, reference, shared)
        return self._defined(found, others.value + reference.value)

    def outside(self, metric: Metric, band: float) -> Array:
        """Return how sure it is (G - 1,) that ratios are further than `band` from 1."""
        others, reference, shared = self._against_reference(metric)
        below, under = (
            probability_ratio_below(others, reference, at, level=self.level, correlation=shared)
            for at in (1 - band, 1 + band)
        )
        return below + 1 - under

    def compared(self, rates: tuple[Rate, ...]) -> list[int]:
        """Return the groups in which every rate is defined."""
        return np.flatnonzero(
            np.all([rate.size(self.counts) > 0 for rate in rates], axis=0)
        ).tolist()

    def gap(self, metric: Metric, among: list[int]) -> Ends:
        """Return the ends of the interval of a largest gap, or of a smallest ratio."""
        of_rates = [self._together(rate, among, len(metric.rates)) for rate in metric.rates]
        if metric.is_gap:
            found = largest_gap(*of_rates)
        elif len(among) == 2:
            single, shared = of_rates[0].single, of_rates[0].correlation
            between = np.broadcast_to(shared, (2, 2))[0, 1]
            found = ratio_limits(single.take(1), single.take(0), between)
        else:
            found = smallest_ratio(of_rates[0])
        return found.lower, found.upper

    def below(self, metric: Metric, epsilon: float, among: list[int]) -> float:
        """Return the posterior probability that a gap is under epsilon."""
        return float((metric(self.draws[:, among]) < epsilon).mean())

    def differing(self, metric: Metric, among: list[int]) -> NDArray[np.bool_]:
        """Say of every ordered pair of groups whether the first's rate is surely the higher."""
        of_rates = [self._together(rate, among, len(metric.rates)) for rate in metric.rates]
        surely: NDArray[np.bool_] = np.any([pairs_that_differ(each) for each in of_rates], axis=0)
        return surely

    def _together(self, rate: Rate, among: list[int], rates: int) -> GroupLimits:
        wider = simultaneous_level(self.level, len(among), rates)
        shared = self.correlation(rate)
        if not isinstance(shared, float):
            shared = shared[np.ix_(among, among)]
        single, together = self.limits(rate), self.limits(rate, wider)
        return GroupLimits(single.take(among), together.take(among), shared)

    def _against_reference(self, metric: Metric) -> tuple[Limits, Limits, Array | float]:
        limits, shared = self.limits(metric.rates[0]), self.correlation(metric.rates[0])
        correlation = shared if isinstance(shared, float) else shared[1:, 0]
        return limits.take(slice(1, None)), limits.take(slice(0, 1)), correlation

    def _defined(self, limits: Limits, value: Array) -> Ends:
        """Return the ends, NaN where there are no rows to say anything about."""
        missing = np.isnan(value)
        return np.where(missing, np.nan, limits.lower), np.where(missing, np.nan, limits.upper)


@dataclass(frozen=True, eq=False)
class SurveyIntervals(CountIntervals):
    """Intervals of weighted rows, or of rows in clusters, which groups may share.

    Attributes
    ----------
    survey : the weighted counts; `counts` are theirs at the groups' effective sizes.
    """

    survey: SurveyCounts = field(kw_only=True)

    def _shares(self, rates: Sequence[Rate], level: float) -> Iterator[Limits]:
        """Return which share of each rate's weight is in its numerator's cells."""
        return (self.survey.limits(rate, level=level) for rate in rates)

    def correlation(self, rate: Rate) -> Array | float:
        """Return the correlations (G, G) of a rate's errors in two groups."""
        return self.survey.correlation(rate)

    def _correlation_of(self, first: Rate, second: Rate) -> Array | float:
        """Return the correlations (G,) of the errors of two rates of one group."""
        return self.survey.correlation_of(first, second)
