"""The family of weights and clusters: rows that count unequally, or that do not come alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from benchmarks.coverage.populations import thinned, varied
from benchmarks.coverage.simulate import LEVEL, Construction, Family, Interval, Sample
from fairbench.core.arrays import Floats
from fairbench.inference.gaps import GroupLimits, largest_gap, simultaneous_level
from fairbench.inference.means import Moments, around, loss_limits
from fairbench.inference.rates import Limits, difference_limits, rate_limits
from fairbench.inference.survey import Design, Sampled, SurveyCounts, ratios
from fairbench.metrics.rates import selection_rate

METRICS = ("rate", "difference", "largest gap", "difference in mean loss")
# Rows of no clusters; and numbers of clusters, with the sizes that they have.
ROWS = (50, 200, 2000)
CLUSTERS = tuple(product((20, 50, 200), ((2, 2), (2, 20), (20, 20))))


@dataclass(frozen=True)
class Surveyed:
    """Rows that were sampled with unequal chances, or in clusters that groups share.

    Attributes
    ----------
    clusters, sizes : how many clusters of how many rows; clusters of one row are none.
    groups : they alternate from row to row, so that clusters have rows of several.
    correlation : of the outcome, of two rows of one cluster.
    variation : coefficient of variation of the weights.
    informed : how many times as large the weights of those with the outcome are.
    """

    clusters: int
    sizes: tuple[int, int]
    groups: int
    base: float
    gap: float
    correlation: float
    variation: float
    informed: float

    @property
    def name(self) -> str:
        """What tables call it."""
        low, high = self.sizes
        of = f" of {low}" if low == high else f" of {low} to {high}"
        rows = f"{self.clusters} rows" if high == 1 else f"{self.clusters} clusters{of}"
        within = f", correlation {self.correlation:g}" if high > 1 else ""
        weights = f", weights vary by {self.variation:g}" if self.variation else ""
        more = f" (outcome: times {self.informed:g})" if self.informed != 1 else ""
        rate = f"rate {self.base:g}, gap {self.gap:g}"
        return f"{self.groups} groups in {rows}{within}{weights}{more}, {rate}"


@dataclass(frozen=True)
class Rows:
    """Replications (R, n) of outcomes, losses and weights, of rows (n,) in clusters and groups."""

    outcome: NDArray[np.int64]
    loss: Floats
    weight: Floats
    unit: NDArray[np.intp]
    group: NDArray[np.intp]
    groups: int


def _populations(short: bool) -> Sequence[Surveyed]:
    rates, gaps, groups = (0.005, 0.03, 0.3, 0.5, 0.97), (0.0, 0.1), (2, 4)
    alone = [
        Surveyed(n, (1, 1), g, rate, gap, 0.0, variation, informed)
        for n, g, rate, gap, (variation, informed) in product(
            ROWS, groups, rates, gaps, ((0.5, 1.0), (1.5, 1.0), (1.0, 2.0), (1.0, 0.5))
        )
    ]
    clustered = [
        Surveyed(count, sizes, g, rate, gap, correlation, variation, 1 + variation)
        for (count, sizes), g, rate, gap, correlation, variation in product(
            CLUSTERS, groups, rates, gaps, (0.05, 0.3), (0.0, 1.0)
        )
    ]
    few = 6 if short else 50
    return [*thinned(alone, few), *thinned(clustered, 2 * few)]


def _draw(population: Surveyed, replications: int, draw: np.random.Generator) -> Sample:
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


Made = Callable[[Rows, int], Sequence[Limits]]


def _each(made: Made) -> Callable[[Any, np.random.Generator], Mapping[str, Interval]]:
    """Return a construction of single replications as one of all."""

    def intervals(rows: Rows, _: np.random.Generator) -> Mapping[str, Interval]:
        result = [made(rows, r) for r in range(len(rows.outcome))]
        return {
            metric: (
                np.array([float(each[i].lower) for each in result]),
                np.array([float(each[i].upper) for each in result]),
            )
            for i, metric in enumerate(METRICS[: len(result[0])])
        }

    return intervals


def _ours(rows: Rows, r: int) -> Sequence[Limits]:
    design = Design.of(len(rows.unit), weight=rows.weight[r], clusters=rows.unit)
    counts = SurveyCounts.of(3 * rows.outcome[r], rows.group, design, groups=rows.groups)
    shared = counts.correlation(selection_rate)
    wider = simultaneous_level(LEVEL, rows.groups)
    single, together = (counts.limits(selection_rate, level=level) for level in (LEVEL, wider))
    last = rows.groups - 1
    difference = difference_limits(single.take(last), single.take(0), shared[last, 0])
    gap = largest_gap(GroupLimits(single, together, shared))
    sample = Sampled.of(design, rows.group, rows.groups)
    mean = sample.means(rows.loss[r])
    totals = sample.totals(sample.share * (rows.loss[r] - mean[rows.group]))
    moments = Moments.of_sampled(mean, totals, sample)
    means = around(mean, loss_limits(moments, level=LEVEL, least=0.0))
    shared = sample.correlation(totals)
    return (
        *(single.take(0), difference, gap),
        difference_limits(means.take(last), means.take(0), shared[last, 0]),
    )


def _kish(rows: Rows, r: int) -> Sequence[Limits]:
    """Return intervals of counts at Kish's effective size, which knows no clusters."""
    sums = [
        np.bincount(rows.group, each, rows.groups)
        for each in (rows.weight[r], rows.weight[r] ** 2, rows.weight[r] * rows.outcome[r])
    ]
    size = sums[0] ** 2 / sums[1]
    limits = rate_limits(sums[2] / sums[0] * size, size, level=LEVEL)
    last = limits.take(rows.groups - 1)
    return (
        limits.take(0),
        difference_limits(last, limits.take(0)),
        largest_gap(GroupLimits.of(sums[2] / sums[0] * size, size, level=LEVEL)),
    )


def _unaware(rows: Rows, r: int) -> Sequence[Limits]:
    """Return intervals that take no notice of weights and clusters."""
    equal = replace(rows, weight=np.ones_like(rows.weight))
    return _kish(equal, r)


def _linearised(rows: Rows, r: int) -> Sequence[Limits]:
    """Return t intervals of linearised errors, as survey packages print; of one pair, no gap."""
    design = Design.of(len(rows.unit), weight=rows.weight[r], clusters=rows.unit)
    groups = (rows.group == np.arange(rows.groups)[:, None]).astype(float)
    estimates = ratios(groups * rows.outcome[r], groups, design)
    rate, difference = estimates.limits(level=LEVEL), estimates.difference(rows.groups - 1, 0)
    t = special.stdtrit(estimates.degrees, (1 + LEVEL) / 2)
    highest, lowest = int(np.argmax(estimates.value)), int(np.argmin(estimates.value))
    apart = estimates.difference(highest, lowest)
    ends = [apart.value[0] + sign * t * apart.error[0] for sign in (-1, 1)]
    gap = Limits(apart.value[0], np.maximum(ends[0], 0), ends[1])
    means = ratios(groups * rows.loss[r], groups, design).difference(rows.groups - 1, 0)
    of_means = means.limits(level=LEVEL).take(0)
    return rate.take(0), difference.limits(level=LEVEL).take(0), gap, of_means


FAMILIES = (
    Family(
        "weights_and_clusters",
        "Weights and clusters",
        "The rows have unequal weights, or come in clusters that contain rows of several groups. "
        "*weights vary by 1* is the coefficient of variation of the weights; *outcome: times 2* "
        "means that the weights of rows with the outcome are twice as large. The rate is the "
        "first group's; differences are the last group's value minus the first group's. "
        "*linearised t* is the interval that survey packages print. *Kish* uses Kish's effective "
        "sample size and ignores clusters.",
        _populations,
        _draw,
        (
            Construction("ours", _each(_ours)),
            Construction("linearised t", _each(_linearised), 300, 2),
            Construction("Kish", _each(_kish), 300, 2),
            Construction("ignoring weights and clusters", _each(_unaware), 300, 2),
        ),
        replications=600,
    ),
)
