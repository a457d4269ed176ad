"""Constructions of intervals from counts: ours, the posterior of before, and what others print.

Each takes counts of R replications of G groups and returns the lower and upper ends of all R.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.simulate import LEVEL, Interval
from fairbench.core.arrays import Floats
from fairbench.inference.beta import Beta
from fairbench.inference.gaps import GroupLimits, largest_gap, smallest_ratio
from fairbench.inference.posterior import central_interval, posterior_draws
from fairbench.inference.rates import (
    Limits,
    difference_limits,
    quantile,
    rate_limits,
    ratio_limits,
)

DRAWS = 400  # of posteriors and bootstraps


@dataclass(frozen=True)
class Counts:
    """How many rows of each group have an outcome.

    Attributes
    ----------
    successes : (R, G) counts.
    size : (R, G) or (G,) rows.
    prior : pseudo-counts of either outcome that the papers' posterior adds: 2 for shares of all
        rows, each outcome being two cells of the four, and 1 for shares of half of the cells.
    """

    successes: NDArray[np.int64]
    size: NDArray[np.int64]
    prior: float = 2.0

    @property
    def rows(self) -> NDArray[np.int64]:
        """The rows (R, G) of every group."""
        return np.broadcast_to(self.size, self.successes.shape)

    @property
    def rate(self) -> Floats:
        """The observed rates (R, G), NaN of no rows."""
        with np.errstate(invalid="ignore"):
            return self.successes / self.rows


OfCounts: TypeAlias = Callable[[Counts, np.random.Generator], Interval]
OfSeveral: TypeAlias = Callable[[Sequence[Counts], np.random.Generator], Interval]
Statistic: TypeAlias = Callable[[Floats], Floats]
Intervals: TypeAlias = Callable[..., Mapping[str, Interval]]


# What is estimated, of rates (..., G).


def rate_of(rates: Floats) -> Floats:
    """Return the rates as they are."""
    return rates


def difference_of(rates: Floats) -> Floats:
    """Return the second group's rate minus the first's."""
    return rates[..., 1] - rates[..., 0]


def ratio_of(rates: Floats) -> Floats:
    """Return the second group's rate over the first's."""
    return _divided(rates[..., 1], rates[..., 0])


def gap_of(rates: Floats) -> Floats:
    """Return the largest difference of two groups."""
    largest: Floats = rates.max(axis=-1) - rates.min(axis=-1)
    return largest


def smallest_of(rates: Floats) -> Floats:
    """Return the smallest rate over the largest."""
    return _divided(rates.min(axis=-1), rates.max(axis=-1))


def _divided(top: Floats, bottom: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(bottom > 0, top / bottom, np.nan)


# Ours.


def rate_ours(counts: Counts, _: np.random.Generator) -> Interval:
    """Return modified Jeffreys limits, of few rows nearer to the exact ones."""
    return _ends(rate_limits(counts.successes, counts.rows, level=LEVEL))


def difference_ours(counts: Counts, _: np.random.Generator) -> Interval:
    """Return the difference's limits by MOVER."""
    limits = rate_limits(counts.successes, counts.rows, level=LEVEL)
    return _ends(difference_limits(limits.take(1), limits.take(0)))


def ratio_ours(counts: Counts, _: np.random.Generator) -> Interval:
    """Return the ratio's limits by MOVER, of modified Jeffreys limits."""
    limits = rate_limits(counts.successes, counts.rows, level=LEVEL)
    return _ends(ratio_limits(limits.take(1), limits.take(0)))


def gap_ours(counts: Counts, _: np.random.Generator) -> Interval:
    """Return the folded differences of all pairs."""
    return _ends(largest_gap(_group_limits(counts)))


def gap_of_some(counts: Counts, _: np.random.Generator) -> Interval:
    """Return the same of the groups that have rows, as if there were no others."""
    return _ends(largest_gap(_group_limits(counts).only(counts.rows > 0)))


def smallest_ours(counts: Counts, _: np.random.Generator) -> Interval:
    """Return the folded ratios of all pairs."""
    return _ends(smallest_ratio(_group_limits(counts)))


def odds_ours(counts: Sequence[Counts], _: np.random.Generator) -> Interval:
    """Return the folded differences of all pairs in several rates."""
    lower, upper = _ends(largest_gap(*(_group_limits(each, len(counts)) for each in counts)))
    return _where_all_have_rows(counts, lower, upper)


def _group_limits(counts: Counts, rates: int = 1) -> GroupLimits:
    return GroupLimits.of(counts.successes, counts.rows, level=LEVEL, rates=rates)


def _ends(limits: Limits) -> Interval:
    return limits.lower, limits.upper


# The papers' posterior, which was printed before.


def rate_posterior(counts: Counts, _: np.random.Generator) -> Interval:
    """Return the central interval of a rate under Dir(1, 1, 1, 1), in closed form."""
    hits, rows = counts.successes.astype(float), counts.rows
    return Beta(hits + counts.prior, rows - hits + counts.prior).interval(LEVEL)


def posterior(statistic: Statistic) -> OfCounts:
    """Return the central interval of a statistic of the rates' posterior draws."""

    def interval(counts: Counts, draw: np.random.Generator) -> Interval:
        return central_interval(statistic(_drawn(counts, draw)), LEVEL)

    return interval


def odds_posterior(counts: Sequence[Counts], draw: np.random.Generator) -> Interval:
    """Return the central interval of the larger of two gaps."""
    gaps = np.maximum(*(gap_of(_drawn(each, draw)) for each in counts))
    return _where_all_have_rows(counts, *central_interval(gaps, LEVEL))


def _drawn(counts: Counts, draw: np.random.Generator) -> Floats:
    """Return (T, R, G) posterior draws of the rates."""
    cells = np.stack([counts.successes, counts.rows - counts.successes], axis=-1)
    return posterior_draws(cells, DRAWS, draw, alpha=counts.prior)[..., 0]


# Newcombe, with Wilson's limits.


def wilson_limits(counts: Counts) -> Limits:
    """Return rates with Wilson's (1927) score limits."""
    z, n, p = quantile(LEVEL), counts.rows, counts.rate
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return Limits(p, centre - half, centre + half)


def rate_wilson(counts: Counts, _: np.random.Generator) -> Interval:
    """Return Wilson's score limits."""
    return _ends(wilson_limits(counts))


def difference_newcombe(counts: Counts, _: np.random.Generator) -> Interval:
    """Return the limits of Newcombe (1998), method 10."""
    limits = wilson_limits(counts)
    return _ends(difference_limits(limits.take(1), limits.take(0)))


def ratio_newcombe(counts: Counts, _: np.random.Generator) -> Interval:
    """Return the limits of Donner and Zou (2012), of Wilson's."""
    limits = wilson_limits(counts)
    return _ends(ratio_limits(limits.take(1), limits.take(0)))


def gap_newcombe(counts: Counts, _: np.random.Generator) -> Interval:
    """Return Newcombe's interval of the two groups that lie furthest apart."""
    high, low = _extremes(wilson_limits(counts))
    return _ends(difference_limits(high, low))


def smallest_newcombe(counts: Counts, _: np.random.Generator) -> Interval:
    """Return Donner and Zou's interval of the two groups that lie furthest apart, at most 1."""
    high, low = _extremes(wilson_limits(counts))
    lower, upper = _ends(ratio_limits(low, high))
    return lower, np.minimum(upper, 1)


def odds_newcombe(counts: Sequence[Counts], draw: np.random.Generator) -> Interval:
    """Return Newcombe's interval of the pair, of either rate, that lies furthest apart."""
    return _of_larger_gap(counts, [gap_newcombe(each, draw) for each in counts])


def _extremes(limits: Limits) -> tuple[Limits, Limits]:
    """Return the limits of the group of the highest and of the lowest rate."""
    places = (limits.value.argmax(axis=-1), limits.value.argmin(axis=-1))
    high, low = (
        Limits(*(np.take_along_axis(limit, place[:, None], axis=-1)[:, 0] for limit in limits))
        for place in places
    )
    return high, low


# Wald.


def rate_wald(counts: Counts, _: np.random.Generator) -> Interval:
    """Return the rate and 1.96 of its estimated standard errors."""
    return _around(counts.rate, np.sqrt(_variance(counts)))


def difference_wald(counts: Counts, _: np.random.Generator) -> Interval:
    """Return the difference and 1.96 of its estimated standard errors."""
    return _around(difference_of(counts.rate), np.sqrt(_variance(counts).sum(axis=-1)))


def ratio_wald(counts: Counts, _: np.random.Generator) -> Interval:
    """Return the log ratio and 1.96 of its standard errors, as a ratio (Katz et al. 1978)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt((_variance(counts) / counts.rate**2).sum(axis=-1))
        lower, upper = _around(np.log(ratio_of(counts.rate)), error)
    unknown = (counts.successes == 0).any(axis=-1)
    return np.where(unknown, np.nan, np.exp(lower)), np.where(unknown, np.nan, np.exp(upper))


def gap_wald(counts: Counts, _: np.random.Generator) -> Interval:
    """Return the Wald interval of the two groups that lie furthest apart."""
    rate, error = counts.rate, np.sqrt(_variance(counts))
    high, low = _extremes(Limits(rate, error, error))
    return _around(high.value - low.value, np.hypot(high.lower, low.lower))


def odds_wald(counts: Sequence[Counts], draw: np.random.Generator) -> Interval:
    """Return the Wald interval of the pair, of either rate, that lies furthest apart."""
    return _of_larger_gap(counts, [gap_wald(each, draw) for each in counts])


def _variance(counts: Counts) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return counts.rate * (1 - counts.rate) / counts.rows


def _around(value: Floats, error: Floats) -> Interval:
    return value - quantile(LEVEL) * error, value + quantile(LEVEL) * error


# The bootstrap of fairlearn's MetricFrame.


def bootstrap(statistic: Statistic) -> OfCounts:
    """Return the central interval of a statistic over resampled rows.

    All rows are resampled together, as ``MetricFrame(n_boot=...)`` of fairlearn does: a resample's
    counts of groups and outcomes are multinomial.
    """

    def interval(counts: Counts, draw: np.random.Generator) -> Interval:
        cells = np.concatenate([counts.successes, counts.rows - counts.successes], axis=-1)
        total = cells.sum(axis=-1, keepdims=True)
        drawn = draw.multinomial(total[:, 0], cells / total, size=(DRAWS, len(cells)))
        return bootstrap_quantiles(drawn, statistic)

    return interval


def bootstrap_quantiles(resampled: NDArray[np.int64], statistic: Statistic) -> Interval:
    """Return the quantiles of a statistic of the rates in resampled counts.

    Parameters
    ----------
    resampled : (T, R, 2 G) counts: of the rows with the outcome in each group, then of those
        without it.
    """
    hits, misses = np.split(resampled, 2, axis=-1)
    with np.errstate(invalid="ignore"):
        values = statistic(hits / (hits + misses))
    tail = (1 - LEVEL) / 2
    known = ~np.isnan(values).all(axis=0)
    lower, upper = np.nanquantile(np.where(known, values, 0), [tail, 1 - tail], axis=0)
    return np.where(known, lower, np.nan), np.where(known, upper, np.nan)


def _of_larger_gap(counts: Sequence[Counts], intervals: Sequence[Interval]) -> Interval:
    """Return, replication by replication, the interval of the rate with the larger gap."""
    gaps = np.stack([gap_of(each.rate) for each in counts])
    place = np.where(np.isnan(gaps), -1, gaps).argmax(axis=0)[None]
    lower, upper = (
        np.take_along_axis(np.stack(ends), place, axis=0)[0]
        for ends in zip(*intervals, strict=True)
    )
    return _where_all_have_rows(counts, lower, upper)


def _where_all_have_rows(counts: Sequence[Counts], lower: Floats, upper: Floats) -> Interval:
    """Return the ends, NaN where a group has no rows that one of the rates is of."""
    empty = np.any([(each.rows == 0).any(axis=-1) for each in counts], axis=0)
    return np.where(empty, np.nan, lower), np.where(empty, np.nan, upper)
