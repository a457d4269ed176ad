"""Populations of groups whose rates are known: sizes, numbers of groups, base rates and gaps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product, starmap
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage import simulate
from benchmarks.coverage.simulate import LEVEL, Family, Interval, Random, Sample, Setting
from fairbench.core.arrays import Floats
from fairbench.inference.gaps import GroupLimits, compared_means, largest_gap, smallest_ratio
from fairbench.inference.posterior import Beta, central_interval, posterior_draws
from fairbench.inference.rates import (
    Limits,
    difference_limits,
    quantile,
    rate_limits,
    ratio_limits,
)

Integers = NDArray[np.int64]

# Rows of the larger and of the smaller groups.
SIZES = ((20, 20), (50, 50), (200, 200), (2000, 2000))
UNEQUAL_SIZES = ((200, 20), (500, 50), (2000, 200), (2000, 20))
GROUPS = (2, 3, 4, 10, 50)
BASE_RATES = (0.005, 0.03, 0.3, 0.5, 0.97)
GAPS = (0.0, 0.02, 0.1, 0.2)
# Who differs: the last group, the first (a large one, where sizes differ), or all, evenly.
LAST, FIRST, SPREAD = "last", "first", "spread"
_IN_WORDS = {LAST: "in one group", FIRST: "in one large group", SPREAD: "spread over all"}


@dataclass(frozen=True)
class Population:
    """Groups of rows, each with a rate.

    Attributes
    ----------
    sizes : rows of the first half of the groups (at least one), and of the others.
    groups : how many groups there are.
    base : the rate of the groups that do not differ.
    gap : the largest difference of two rates, towards the middle: downwards from over 1/2.
    shape : which groups differ, see above.
    """

    sizes: tuple[int, int]
    groups: int
    base: float
    gap: float
    shape: str

    @property
    def name(self) -> str:
        """What tables call it."""
        large, small = self.sizes
        rows = f"{large}" if large == small else f"{large} and {small}"
        gap = f"gap {self.gap:g} {_IN_WORDS[self.shape]}" if self.gap else "no gap"
        return f"{self.groups} groups of {rows} rows, rate {self.base:g}, {gap}"

    @property
    def slow(self) -> bool:
        """Whether its many pairs take so long that fewer replications are made."""
        return self.groups > 10

    @property
    def rows(self) -> Integers:
        """The rows (G,) of every group."""
        large, small = self.sizes
        first = max(1, self.groups // 2)
        return np.array([large] * first + [small] * (self.groups - first), np.int64)

    def rates(self, replications: int, generator: Random) -> Floats:
        """Return (R, G) rates; the base rate varies by a tenth of itself between replications."""
        shape = np.linspace(0, 1, self.groups)
        if self.shape != SPREAD:
            shape = np.arange(self.groups) == (0 if self.shape == FIRST else self.groups - 1)
        direction = -1 if self.base > 0.5 else 1
        return varied(self.base, replications, generator)[:, None] + direction * self.gap * shape


def varied(base: float, replications: int, generator: Random) -> Floats:
    """Return (R,) rates within a tenth of `base`, or of 1 - `base` where that is smaller.

    No population then sits where the coverage of discrete counts happens to jump.
    """
    spread = min(base, 1 - base) / 10
    drawn: Floats = base + spread * generator.uniform(-1, 1, replications)
    return drawn


def all_populations(groups: Sequence[int] = GROUPS) -> list[Population]:
    """Return every population of so many groups: some 1,600 of all numbers of groups."""
    return [
        Population(sizes, count, base, gap, shape)
        for sizes, count, base, gap in product((*SIZES, *UNEQUAL_SIZES), groups, BASE_RATES, GAPS)
        # Those that differ from each other.
        for shape in (LAST, *[FIRST] * (sizes[0] != sizes[1]), *[SPREAD] * (count > 2))
        if gap or shape == LAST
    ]


# Constructions of intervals from counts: ours, the posterior of before, and what others print.
#
# Each takes counts of R replications of G groups and returns the lower and upper ends of all R.

DRAWS = 400  # of posteriors and bootstraps
# Of the papers' posterior: pseudo-counts of either outcome of a share of all rows, which is of two
# cells of the four.
PRIOR = 2.0


@dataclass(frozen=True)
class Counts:
    """How many rows of each group have an outcome.

    Attributes
    ----------
    successes : (R, G) counts.
    size : (R, G) or (G,) rows.
    """

    successes: NDArray[np.int64]
    size: NDArray[np.int64]

    @property
    def rows(self) -> NDArray[np.int64]:
        """The rows (R, G) of every group."""
        return np.broadcast_to(self.size, self.successes.shape)

    @property
    def rate(self) -> Floats:
        """The observed rates (R, G), NaN of no rows."""
        with np.errstate(invalid="ignore"):
            return self.successes / self.rows


OfCounts: TypeAlias = Callable[[Counts, Random], Interval]
Statistic: TypeAlias = Callable[[Floats], Floats]


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


def rate_ours(counts: Counts, _: Random) -> Limits:
    """Return modified Jeffreys limits, of few rows nearer to the exact ones."""
    return rate_limits(counts.successes, counts.rows, level=LEVEL)


def of_pair(rates: Callable[..., Limits], joined: Callable[[Limits, Limits], Limits]) -> OfCounts:
    """Return the limits of the second group against the first, joined by MOVER.

    Of Wilson's limits these are Newcombe's (1998, method 10) and Donner and Zou's (2012).
    """

    def interval(counts: Counts, draw: Random) -> Interval:
        limits = rates(counts, draw)
        return joined(limits.take(1), limits.take(0))

    return interval


def gap_ours(counts: Counts, _: Random) -> Interval:
    """Return the folded differences of all pairs."""
    return largest_gap(_group_limits(counts))


def smallest_ours(counts: Counts, _: Random) -> Interval:
    """Return the folded ratios of all pairs."""
    return smallest_ratio(_group_limits(counts))


def odds_ours(counts: Sequence[Counts], _: Random) -> Interval:
    """Return the folded differences of all pairs in several rates, none where one is of no rows."""
    gaps = [largest_gap(_group_limits(each, len(counts))) for each in counts]
    empty = np.any([(each.rows == 0).any(axis=-1) for each in counts], axis=0)
    _, lower, upper = np.where(empty, np.nan, np.fmax.reduce(gaps))
    return lower, upper


def mean_gap_ours(counts: Sequence[Counts], _: Random) -> Interval:
    """Return the folded differences of all pairs in the mean of misses and false alarms."""

    def means(level: float) -> Limits:
        caught, alarms = (rate_limits(each.successes, each.rows, level=level) for each in counts)
        return compared_means(caught.mirrored, alarms, [each.rows for each in counts])

    empty = np.any([(each.rows == 0).any(axis=-1) for each in counts], axis=0)
    _, lower, upper = np.where(empty, np.nan, largest_gap(GroupLimits.at(means, LEVEL)))
    return lower, upper


def _group_limits(counts: Counts, rates: int = 1) -> GroupLimits:
    return GroupLimits.of(counts.successes, counts.rows, level=LEVEL, rates=rates)


# The papers' posterior, which was printed before.


def rate_posterior(counts: Counts, _: Random) -> Interval:
    """Return the central interval of a rate under Dir(1, 1, 1, 1), in closed form."""
    hits, rows = counts.successes.astype(float), counts.rows
    return Beta(hits + PRIOR, rows - hits + PRIOR).interval(LEVEL)


def posterior(statistic: Statistic) -> OfCounts:
    """Return the central interval of a statistic of the rates' posterior draws."""
    return lambda counts, draw: central_interval(statistic(_drawn(counts, draw)), LEVEL)


def _drawn(counts: Counts, draw: Random) -> Floats:
    """Return (T, R, G) posterior draws of the rates."""
    cells = np.stack([counts.successes, counts.rows - counts.successes], axis=-1)
    return posterior_draws(cells, DRAWS, draw, alpha=PRIOR)[..., 0]


# Newcombe, with Wilson's limits.


def wilson_limits(counts: Counts, _: Random | None = None) -> Limits:
    """Return rates with Wilson's (1927) score limits."""
    z, n, p = quantile(LEVEL), counts.rows, counts.rate
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return Limits(p, centre - half, centre + half)


def rate_wald(counts: Counts, _: Random) -> Interval:
    """Return the rate and 1.96 of its estimated standard errors, as most packages do."""
    with np.errstate(invalid="ignore", divide="ignore"):
        half = quantile(LEVEL) * np.sqrt(counts.rate * (1 - counts.rate) / counts.rows)
    return counts.rate - half, counts.rate + half


# The bootstrap of fairlearn's MetricFrame.


def bootstrap(statistic: Statistic) -> OfCounts:
    """Return the central interval of a statistic over resampled rows.

    All rows are resampled together, as ``MetricFrame(n_boot=...)`` of fairlearn does: a resample's
    counts of groups and outcomes are multinomial.
    """

    def interval(counts: Counts, draw: Random) -> Interval:
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


# Families of rates: single ones, differences, ratios, largest gaps, smallest ratios, two rates.

RATE_SIZES = (20, 50, 200, 500, 2000)
RATES = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.97, 0.99, 0.999)
BOOTSTRAP = "fairlearn's bootstrap"


def _one_rate(size: int, rate: float, words: str = "") -> Setting:
    return Setting(name=f"{size} rows, rate {rate:g}{words}", size=size, rate=rate)


def _rates() -> Iterator[Setting]:
    return starmap(_one_rate, product(RATE_SIZES, RATES))


def _draw_rate(population: Setting, replications: int, draw: Random) -> Sample:
    """Draw counts (R, 1) of one rate."""
    rate = varied(population.rate, replications, draw)[:, None]
    return Sample(Counts(draw.binomial(population.size, rate), np.array([population.size])), rate)


# Where the modified Jeffreys limits cover 90 to 92 %, and where ours cover least.
_JEFFREYS = ((3, 0.1767), (8, 0.4537), (9, 0.4145), (10, 0.3812), (20, 0.2839), (50, 0.0897))
_FIXED = (*_JEFFREYS, (8, 0.5), (12, 0.4364), (90, 0.0498))


def _fixed_rates() -> list[Setting]:
    """Return rates of few rows at which few intervals hold."""
    at = [(n, p + sign * 1e-4) for n, p in _FIXED for sign in (-1, 1)]
    return [_one_rate(n, p, " in all replications") for n, p in at]


def _draw_fixed(population: Setting, replications: int, draw: Random) -> Sample:
    hits = draw.binomial(population.size, population.rate, (replications, 1))
    counts = Counts(hits, np.array([population.size]))
    return Sample(counts, np.full((replications, 1), population.rate))


def _tiny() -> Iterator[Setting]:
    """Yield groups of which the last has five rows, and may have none that the rate is of.

    A rate is of a share of the rows of every group, on average, and the last one's is lower.
    """
    for sizes, share, base, gap in product(
        ((50000, 5), (50000, 500, 50, 5), (50000, 5000, 500, 50, 5)),
        *((1.0, 0.3, 0.1), (0.6, 0.95), (0.2, 0.4)),
    ):
        of = f" of {100 * share:g} % of the rows" if share < 1 else ""
        rows = ", ".join(map(str, sizes))
        name = f"groups of {rows} rows, rate {base:g}{of}, gap {gap:g} in the last"
        yield Setting(name=name, sizes=sizes, share=share, base=base, gap=gap)


def _draw_tiny(population: Setting, replications: int, draw: Random) -> Sample:
    """Draw counts; the truth is the gap of all groups, whether or not they have rows."""
    sizes = np.tile(np.array(population.sizes), (replications, 1))
    rows = draw.binomial(sizes, population.share)
    rates = np.full(sizes.shape, population.base)
    rates[:, -1] -= population.gap
    counts = Counts(draw.binomial(rows, rates), rows)
    return Sample(counts, np.full(replications, population.gap))


def _drawing(statistic: Statistic) -> Callable[[Population, int, Random], Sample]:
    """Return what draws all groups' counts; the truth is the statistic of their rates."""

    def drawn(population: Population, replications: int, draw: Random) -> Sample:
        rates = population.rates(replications, draw)
        counts = Counts(draw.binomial(population.rows, rates), population.rows)
        return Sample(counts, statistic(rates))

    return drawn


POSITIVES, FALSE_POSITIVES = 0.3, 0.1


def _draw_two(population: Population, replications: int, draw: Random, *, gap: Statistic) -> Sample:
    """Draw counts of two rates: of the positives, 30 % of all rows, and of the negatives.

    The true positive rates are the population's; the false positive rates lie around 10 % and
    differ where the gap is spread over the groups, by half as much.
    """
    shape = (replications, population.groups)
    positives = draw.binomial(np.broadcast_to(population.rows, shape), POSITIVES)
    negatives = population.rows - positives
    caught = population.rates(replications, draw)
    spread = population.gap / 2 if population.shape == SPREAD else 0.0
    base = varied(FALSE_POSITIVES, replications, draw)[:, None]
    alarms = base + spread * np.linspace(1, 0, population.groups)
    counts = (
        Counts(draw.binomial(positives, caught), positives),
        Counts(draw.binomial(negatives, alarms), negatives),
    )
    return Sample(counts, gap(np.stack([alarms, caught])))


def _of_two(form: str, joined: Callable[[Limits, Limits], Limits], of_rates: Statistic) -> Family:
    """Return the family of differences or ratios (`form`) of the rates of two groups."""
    made: dict[str, Any] = {
        "ours": of_pair(rate_ours, joined),
        simulate.BEFORE: (posterior(of_rates), 500, 1),
        "Newcombe": of_pair(wilson_limits, joined),
    }
    of, bounded = partial(all_populations, (2,)), form == "ratio"
    return Family(f"{form}s", of, _drawing(of_rates), made, 2000, metric=form, bounded=bounded)


_FEW = {"ours": rate_ours, "Wilson": wilson_limits, "Wald": rate_wald}
_RATE: dict[str, Any] = {
    **_FEW,
    simulate.BEFORE: rate_posterior,
    BOOTSTRAP: (bootstrap(rate_of), 500, 1),
}
_GAP: dict[str, Any] = {
    "ours": gap_ours,
    simulate.BEFORE: (posterior(gap_of), 200, 4),
    BOOTSTRAP: (bootstrap(gap_of), 200, 16),
}
_SMALLEST: dict[str, Any] = {
    "ours": smallest_ours,
    simulate.BEFORE: (posterior(smallest_of), 200, 4),
    BOOTSTRAP: (bootstrap(smallest_of), 200, 16),
}
_OF_TWO_RATES = (
    ("equalized_odds", lambda both: gap_of(both).max(axis=0), odds_ours, "equalized odds"),
    # Misses are what is not caught, and as far apart.
    ("gaps_of_means", lambda both: gap_of(both[0] - both[1]) / 2, mean_gap_ours, "balanced error"),
)
_ALL, _WIDEST, _LEAST = all_populations, "largest gap", "smallest ratio"
FAMILIES = (
    Family("rates", _rates, _draw_rate, _RATE, 5000, metric="rate"),
    _of_two("difference", difference_limits, difference_of),
    _of_two("ratio", ratio_limits, ratio_of),
    Family("gaps", _ALL, _drawing(gap_of), _GAP, metric=_WIDEST),
    Family("fixed_rates", _fixed_rates, _draw_fixed, _FEW, 5000, metric="rate"),
    Family("gaps_with_tiny_groups", _tiny, _draw_tiny, {"ours": gap_ours}, metric=_WIDEST),
    Family("smallest_ratios", _ALL, _drawing(smallest_of), _SMALLEST, metric=_LEAST),
    *(
        Family(name, _ALL, partial(_draw_two, gap=gap), {"ours": made}, 500, metric=metric)
        for name, gap, made, metric in _OF_TWO_RATES
    ),
)
