"""The family of weights and clusters: rows that count unequally, or that do not come alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from benchmarks.coverage import simulate
from benchmarks.coverage.counts import varied
from benchmarks.coverage.simulate import LEVEL, Ends, Family, Interval, Random, Sample, Setting
from fairbench.core.arrays import Floats, Mask
from fairbench.inference import gaps
from fairbench.inference.gaps import GroupLimits, StandardisedRates
from fairbench.inference.means import Moments, around, loss_limits
from fairbench.inference.rates import Limits, difference_limits
from fairbench.inference.survey import Design, Sampled, SurveyCounts
from fairbench.metrics.registry import selection_rate

METRICS = ("rate", "difference", "largest gap", "difference in mean loss")
# Rows of no clusters; and numbers of clusters, with the sizes that they have.
ROWS = (50, 200, 2000)
CLUSTERS = tuple(product((20, 50, 200), ((2, 2), (2, 20), (20, 20))))


@dataclass(frozen=True)
class Rows:
    """Replications (R, n) of outcomes, losses and weights, of rows (n,) in clusters and groups."""

    outcome: NDArray[np.int64]
    loss: Floats
    weight: Floats
    unit: NDArray[np.intp]
    group: NDArray[np.intp]
    groups: int


def _populations() -> Iterator[Setting]:
    """Yield rows that were sampled with unequal chances, or in clusters that groups share.

    Groups alternate from row to row, so that clusters have rows of several; clusters of one row are
    none. The outcome of two rows of one cluster has the `correlation`, and weights have a
    coefficient of `variation`; those of rows with the outcome are so many times as large
    (`informed`).
    """
    alike = (2, 4), (0.005, 0.03, 0.3, 0.5, 0.97), (0.0, 0.1)
    unequal = ((0.5, 1.0), (1.5, 1.0), (1.0, 2.0), (1.0, 0.5))
    alone = product([(n, (1, 1)) for n in ROWS], *alike, (0.0,), unequal)
    clustered = product(CLUSTERS, *alike, (0.05, 0.3), ((0.0, 1.0), (1.0, 2.0)))
    chosen = [*simulate.thinned(list(alone), 50), *simulate.thinned(list(clustered), 100)]
    for (count, sizes), g, rate, gap, correlation, (variation, informed) in chosen:
        low, high = sizes
        of = f" of {low}" if low == high else f" of {low} to {high}"
        rows = f"{count} rows" if high == 1 else f"{count} clusters{of}"
        within = f", correlation {correlation:g}" if high > 1 else ""
        weights = f", weights vary by {variation:g}" if variation else ""
        more = f" (outcome: times {informed:g})" if informed != 1 else ""
        one = Setting(clusters=count, sizes=sizes, groups=g, base=rate, gap=gap)
        one.name = f"{g} groups in {rows}{within}{weights}{more}, rate {rate:g}, gap {gap:g}"
        one.correlation, one.variation, one.informed = correlation, variation, informed
        yield one


def _draw(population: Setting, replications: int, draw: Random) -> Sample:
    """Draw rows; truths are of the people whom weights stand for."""
    sizes = draw.integers(population.sizes[0], population.sizes[1] + 1, population.clusters)
    unit = np.repeat(np.arange(population.clusters), sizes)
    group, shape = np.arange(len(unit)) % population.groups, (replications, len(unit))
    base = varied(population.base, replications, draw)[:, None]
    chance = base
    if population.correlation:
        strength = 1 / population.correlation - 1
        clusters = (replications, population.clusters)
        chance = draw.beta(base * strength, (1 - base) * strength, clusters)[:, unit]
    outcome = draw.random(shape) < chance
    rare = population.base > 0.5
    last = group == population.groups - 1
    # The last group's rate is that much nearer to a half.
    turned = (draw.random(shape) < population.gap / (base if rare else 1 - base)) & last
    outcome = outcome & ~turned if rare else outcome | turned
    spread = np.sqrt(np.log1p(population.variation**2))
    weight = np.exp(spread * draw.standard_normal(shape))
    weight = weight * np.where(outcome, population.informed, 1.0)
    # Losses are skewed, larger of those with the outcome, and alike within clusters.
    alike = np.sqrt(population.correlation)
    noise = alike * draw.standard_normal((replications, population.clusters))[:, unit]
    noise = noise + np.sqrt(1 - alike**2) * draw.standard_normal(shape)
    loss = np.exp(0.5 * noise) * (1 + outcome)
    rates = np.repeat(base, population.groups, axis=1)
    rates[:, -1] += (-1 if rare else 1) * population.gap
    of_people = population.informed * rates / (population.informed * rates + 1 - rates)
    apart = of_people[:, -1] - of_people[:, 0]
    truth = of_people[:, 0], apart, np.ptp(of_people, axis=1), np.exp(0.125) * apart
    data = Rows(outcome.astype(np.int64), loss, weight, unit, group, population.groups)
    return Sample(data, dict(zip(METRICS, truth, strict=True)))


def _each(made: Callable[[Rows, int], Sequence[Limits]]) -> Callable[[Any, Random], Ends]:
    """Return a construction of single replications as one of all."""

    def intervals(rows: Rows, _: Random) -> Ends:
        result = [made(rows, r) for r in range(len(rows.outcome))]
        ends = np.array([[(each.lower, each.upper) for each in of] for of in result], float)
        return dict(zip(METRICS, ends.transpose(1, 2, 0), strict=False))

    return intervals


def _ours(rows: Rows, r: int) -> Sequence[Limits]:
    design = Design.of(len(rows.unit), weight=rows.weight[r], clusters=rows.unit)
    counts = SurveyCounts.of(3 * rows.outcome[r], rows.group, design, groups=rows.groups)
    shared = counts.correlation(selection_rate)
    levels = LEVEL, gaps.simultaneous_level(LEVEL, rows.groups)
    single, together = (counts.limits(selection_rate, level=level) for level in levels)
    last = rows.groups - 1
    difference = difference_limits(single.take(last), single.take(0), shared[last, 0])
    gap = gaps.largest_gap(GroupLimits(single, together, shared))
    sample = Sampled.of(design, rows.group, rows.groups)
    mean = sample.means(rows.loss[r])
    totals = sample.totals(sample.share * (rows.loss[r] - mean[rows.group]))
    moments = Moments.of_sampled(mean, totals, sample)
    means = around(mean, loss_limits(moments, level=LEVEL, least=0.0))
    of_means = difference_limits(
        means.take(last), means.take(0), sample.correlation(totals)[last, 0]
    )
    return single.take(0), difference, gap, of_means


def ratios(top: Floats, bottom: Floats, design: Design) -> tuple[Floats, Floats]:
    """Return ratios (K,) of weighted sums of (K, n), and sums (K, C) of their scores by cluster."""
    weight = (bottom * design.weight).sum(axis=1, keepdims=True)
    value = (top * design.weight).sum(axis=1, keepdims=True) / weight
    return value[:, 0], design.totals(design.weight * (top - value * bottom) / weight)


def t_limits(value: Floats, totals: Floats, *, level: float = LEVEL) -> Limits:
    """Return estimates (K,) with t intervals of linearised errors, as survey packages print."""
    count = totals.shape[-1]
    error = np.sqrt((totals**2).sum(axis=-1) * count / (count - 1))
    half = special.stdtrit(count - 1, (1 + level) / 2) * error
    return Limits(value, value - half, value + half)


def _less(value: Floats, totals: Floats) -> tuple[Floats, Floats]:
    """Return the first estimate less the last, allowing for their covariance."""
    return value[[0]] - value[[-1]], totals[[0]] - totals[[-1]]


def _last_less_first(value: Floats, totals: Floats) -> Limits:
    return t_limits(*_less(value[::-1], totals[::-1])).take(0)


def _linearised(rows: Rows, r: int) -> Sequence[Limits]:
    """Return t intervals of linearised errors, as survey packages print; of one pair, no gap."""
    design = Design.of(len(rows.unit), weight=rows.weight[r], clusters=rows.unit)
    groups = (rows.group == np.arange(rows.groups)[:, None]).astype(float)
    value, totals = ratios(groups * rows.outcome[r], groups, design)
    rate, difference = t_limits(value, totals), _last_less_first(value, totals)
    pair = [int(np.argmax(value)), int(np.argmin(value))]
    apart = t_limits(*_less(value[pair], totals[pair])).take(0)
    gap = Limits(apart.value, np.maximum(apart.lower, 0), apart.upper)
    of_means = _last_less_first(*ratios(groups * rows.loss[r], groups, design))
    return rate.take(0), difference, gap, of_means


# The family of standardised rates: groups compared within strata, of one mix of strata.

MINIMUM = 10  # rows of a group in the strata of a pair, under which it is not compared
STRATA, GROUPS, ROWS_STANDARDISED = (2, 4, 10, 40), (2, 3, 10), (50, 200, 500, 2000)
# The rate in the middle stratum, and how far those of the first and the last are from it.
RATES = ((0.03, 0.0), (0.1, 0.08), (0.3, 0.25), (0.5, 0.47), (0.97, 0.0))
GAPS = (0.0, 0.1)
# How the last group is spread over strata: as the others are, mostly where they are not (so that
# the raw gap may be the other way round), or rare everywhere.
ALIKE, OPPOSITE, RARE = "spread alike", "spread otherwise", "rare"
DIFFERENCE, RATIO = "standardised difference", "standardised ratio"
OWN_MIX = "ratio over the group's own mix"
LARGEST, SMALLEST = "largest standardised difference", "smallest standardised ratio"


@dataclass(frozen=True)
class Counts:
    """Counts (R, G, K) of R replications, and the pairs of groups (R, G, G) that are compared."""

    successes: NDArray[np.int64]
    size: NDArray[np.int64]
    among: Mask


def _populations_standardised() -> Iterator[Setting]:
    """Yield groups of people in strata, so many rows of all together, at random in cells.

    The rates of strata are around a base, and the last group's is by a gap nearer to a half. The
    mix says how that group is spread over strata.
    """
    for strata, groups, rows, (base, spread), gap, mix in product(
        STRATA, GROUPS, ROWS_STANDARDISED, RATES, GAPS, (ALIKE, OPPOSITE, RARE)
    ):
        by = f" by {spread:g}" if spread else ", alike"
        of = f"{groups} groups in {strata} strata, {rows} rows"
        one = Setting(strata=strata, groups=groups, rows=rows, base=base, spread=spread)
        one.name = f"{of}, rate {base:g}{by}, gap {gap:g}, the last {mix}"
        one.gap, one.mix, one.slow = gap, mix, groups * strata > 100
        yield one


def _draw_standardised(population: Setting, replications: int, draw: Random) -> Sample:
    """Draw counts; truths are over the strata that both groups of a pair have rows in."""
    # Of all people, in each cell; the first stratum is the smallest, a third of the last.
    shares = np.tile(np.linspace(1, 3, population.strata), (population.groups, 1))
    of_last = {OPPOSITE: np.linspace(5, 0.2, population.strata), RARE: 0.1}
    shares[-1] *= of_last.get(population.mix, 1.0)
    shares /= shares.sum()
    size = draw.multinomial(population.rows, shares.ravel(), replications)
    size = size.reshape(replications, *shares.shape)
    base = varied(population.base, replications, draw)[:, None, None]
    rates = base + population.spread * np.linspace(-1, 1, population.strata)
    rates = np.repeat(rates, population.groups, axis=1)
    rates[:, -1] += (-1 if population.base > 0.5 else 1) * population.gap
    rates = np.clip(rates, 0.005, 0.995)
    shared = (size[:, :, None] > 0) & (size[:, None] > 0)
    weight, own = shared * shares.sum(axis=0), shared[:, -1, 0] * shares[-1]
    with np.errstate(invalid="ignore"):
        true = (weight * rates[:, :, None]).sum(axis=-1) / weight.sum(axis=-1)
        of_own = (own * rates[:, -1]).sum(axis=-1) / (own * rates[:, 0]).sum(axis=-1)
    other = true.swapaxes(1, 2)
    enough = (shared * size[:, :, None]).sum(axis=-1) >= MINIMUM
    among = enough & enough.swapaxes(1, 2) & ~np.eye(population.groups, dtype=bool)
    truth = {
        OWN_MIX: of_own,
        DIFFERENCE: true[:, -1, 0] - other[:, -1, 0],
        RATIO: true[:, -1, 0] / other[:, -1, 0],
        LARGEST: _over(np.fmax, true - other, among),
        SMALLEST: _over(np.fmin, true / other, among),
    }
    return Sample(Counts(draw.binomial(size, rates), size, among), truth)


def _over(extreme: np.ufunc, values: Floats, among: Mask) -> Floats:
    worst: Floats = extreme.reduce(np.where(among, values, np.nan), axis=(-2, -1))
    return worst


def _of_pair(lower: Floats, upper: Floats, among: Mask) -> Interval:
    """Return the ends (R,) of the last group against the first, where the two are compared."""
    there = among[:, -1, 0]
    return np.where(there, lower, np.nan), np.where(there, upper, np.nan)


def _ours_standardised(counts: Counts, _: Random) -> Ends:
    rates, among = StandardisedRates.of(counts.successes, counts.size), counts.among
    two = (counts.successes[:, [-1, 0]], counts.size[:, [-1, 0]])
    of_own = StandardisedRates.of(*two, mix=counts.size[:, -1]).ratios(level=LEVEL)
    difference, ratio = (
        _of_pair(each.lower[:, -1, 0], each.upper[:, -1, 0], among)
        for each in (rates.differences(level=LEVEL), rates.ratios(level=LEVEL))
    )
    return {
        OWN_MIX: _of_pair(of_own.lower[:, 0, 1], of_own.upper[:, 0, 1], among),
        DIFFERENCE: difference,
        RATIO: ratio,
        LARGEST: gaps.largest_difference([rates], [among], level=LEVEL)[0],
        SMALLEST: gaps.smallest_standardised_ratio(rates, among, level=LEVEL),
    }


_OF_ROWS: dict[str, Any] = {
    "ours": _each(_ours),
    "linearised t": (_each(_linearised), 300, 2),
}
_OF_STRATA = {"ours": _ours_standardised}
_ALL = _populations_standardised
FAMILIES = (
    Family("weights_and_clusters", _populations, _draw, _OF_ROWS, 600),
    Family("standardised", _ALL, _draw_standardised, _OF_STRATA, most=240, bounded=True),
)
