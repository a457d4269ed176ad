"""The family of standardised rates: groups compared within strata, of one mix of strata."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.populations import thinned, varied
from benchmarks.coverage.simulate import LEVEL, Construction, Family, Interval, Sample
from fairbench.core.arrays import Floats
from fairbench.inference.rates import Limits, difference_limits, quantile, rate_limits
from fairbench.inference.standardised import (
    StandardisedRates,
    largest_difference,
    smallest_ratio,
)

MINIMUM = 10  # rows of a group in the strata of a pair, under which it is not compared
STRATA, GROUPS, ROWS = (2, 4, 10, 40), (2, 3, 10), (50, 200, 500, 2000)
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
class Stratified:
    """Groups of people in strata, of which the first is the smallest, a third of the last.

    Attributes
    ----------
    rows : of all together, at random in cells.
    base, spread : the rates of strata. gap : by how much the last group's is nearer to a half.
    mix : how the last group is spread over strata.
    """

    strata: int
    groups: int
    rows: int
    base: float
    spread: float
    gap: float
    mix: str

    @property
    def name(self) -> str:
        """What tables call it."""
        by = f" by {self.spread:g}" if self.spread else ", alike"
        return (
            f"{self.groups} groups in {self.strata} strata, {self.rows} rows, rate {self.base:g}"
            f"{by}, gap {self.gap:g}, the last {self.mix}"
        )

    @property
    def slow(self) -> bool:
        """Whether its many pairs take so long that fewer replications are made."""
        return self.groups * self.strata > 100

    @property
    def shares(self) -> Floats:
        """The shares (G, K) of all people in each cell."""
        stratum = np.linspace(1, 3, self.strata)
        shares = np.tile(stratum, (self.groups, 1))
        if self.mix == OPPOSITE:
            shares[-1] *= np.linspace(5, 0.2, self.strata)
        elif self.mix == RARE:
            shares[-1] *= 0.1
        whole: Floats = shares / shares.sum()
        return whole


@dataclass(frozen=True)
class Counts:
    """Counts (R, G, K) of R replications, and the pairs of groups (R, G, G) that are compared."""

    successes: NDArray[np.int64]
    size: NDArray[np.int64]
    among: NDArray[np.bool_]


def _populations(short: bool) -> Sequence[Stratified]:
    every = [
        Stratified(strata, groups, rows, base, spread, gap, mix)
        for strata, groups, rows, (base, spread), gap, mix in product(
            STRATA, GROUPS, ROWS, RATES, GAPS, (ALIKE, OPPOSITE, RARE)
        )
    ]
    return thinned(every, 30 if short else 240)


def _draw(population: Stratified, replications: int, draw: np.random.Generator) -> Sample:
    """Draw counts; truths are over the strata that both groups of a pair have rows in."""
    shares = population.shares
    size = draw.multinomial(population.rows, shares.ravel(), replications)
    size = size.reshape(replications, *shares.shape)
    base = varied(population.base, replications, draw)[:, None, None]
    rates = base + population.spread * np.linspace(-1, 1, population.strata)
    rates = np.repeat(rates, population.groups, axis=1)
    rates[:, -1] += (-1 if population.base > 0.5 else 1) * population.gap
    rates = np.clip(rates, 0.005, 0.995)
    shared = (size[:, :, None] > 0) & (size[:, None] > 0)
    weight = shared * shares.sum(axis=0)
    with np.errstate(invalid="ignore"):
        true = (weight * rates[:, :, None]).sum(axis=-1) / weight.sum(axis=-1)
    other = true.swapaxes(1, 2)
    rows = (shared * size[:, :, None]).sum(axis=-1)
    among = (
        (rows >= MINIMUM)
        & (rows.swapaxes(1, 2) >= MINIMUM)
        & ~np.eye(population.groups, dtype=bool)
    )
    counts = Counts(draw.binomial(size, rates), size, among)
    own = shared[:, -1, 0] * shares[-1]
    with np.errstate(invalid="ignore"):
        of_own = (own * rates[:, -1]).sum(axis=-1) / (own * rates[:, 0]).sum(axis=-1)
    truth = {
        OWN_MIX: of_own,
        DIFFERENCE: true[:, -1, 0] - other[:, -1, 0],
        RATIO: true[:, -1, 0] / other[:, -1, 0],
        LARGEST: _over(np.fmax, true - other, among),
        SMALLEST: _over(np.fmin, true / other, among),
    }
    return Sample(counts, truth)


def _over(extreme: np.ufunc, values: Floats, among: NDArray[np.bool_]) -> Floats:
    worst: Floats = extreme.reduce(np.where(among, values, np.nan), axis=(-2, -1))
    return worst


def _of_pair(limits: Limits, among: NDArray[np.bool_]) -> Interval:
    """Return the ends of the last group against the first, where the two are compared."""
    there = among[:, -1, 0]
    lower, upper = (np.where(there, end[:, -1, 0], np.nan) for end in (limits.lower, limits.upper))
    return lower, upper


def _ours(counts: Counts, _: np.random.Generator) -> Mapping[str, Interval]:
    rates = StandardisedRates.of(counts.successes, counts.size)
    among = counts.among
    largest, _ahead = largest_difference([rates], [among], level=LEVEL)
    smallest = smallest_ratio(rates, among, level=LEVEL)
    two = (counts.successes[:, [-1, 0]], counts.size[:, [-1, 0]])
    of_own = StandardisedRates.of(*two, mix=counts.size[:, -1]).ratios(level=LEVEL)
    there = among[:, -1, 0]
    return {
        OWN_MIX: tuple(np.where(there, end[:, 0, 1], np.nan) for end in of_own[1:]),  # type: ignore[dict-item]
        DIFFERENCE: _of_pair(rates.differences(level=LEVEL), among),
        RATIO: _of_pair(rates.ratios(level=LEVEL), among),
        LARGEST: (largest.lower, largest.upper),
        SMALLEST: (smallest.lower, smallest.upper),
    }


def _of_two(
    ends: Callable[[Floats, Floats, Floats], tuple[Floats, Floats]],
) -> Callable[[Counts, np.random.Generator], Mapping[str, Interval]]:
    """Return a construction of the difference alone, from weights and counts (R, 2, K)."""

    def intervals(counts: Counts, _: np.random.Generator) -> Mapping[str, Interval]:
        n, x = (each[:, [-1, 0]].astype(np.float64) for each in (counts.size, counts.successes))
        shared = np.asarray((n > 0).all(axis=1))[:, None]
        everyone = counts.size.sum(axis=1) * shared[:, 0]
        with np.errstate(invalid="ignore", divide="ignore"):
            weight = everyone / everyone.sum(axis=1, keepdims=True)
            lower, upper = ends(weight, x * shared, n * shared)
        there = counts.among[:, -1, 0]
        return {DIFFERENCE: (np.where(there, lower, np.nan), np.where(there, upper, np.nan))}

    return intervals


def _mover(weight: Floats, x: Floats, n: Floats) -> tuple[Floats, Floats]:
    """Recover the variance of every cell from its own limits (Zou and Donner 2008)."""
    cells = rate_limits(x, n, level=LEVEL)
    first, second = (Limits(*(end[:, g] for end in cells)) for g in (0, 1))
    within = difference_limits(first, second)
    value, lower, upper = (np.nan_to_num(end) for end in within)
    total = (weight * value).sum(axis=-1)
    down, up = (
        np.sqrt(((weight * away) ** 2).sum(axis=-1)) for away in (value - lower, upper - value)
    )
    return total - down, total + up


def _wald(weight: Floats, x: Floats, n: Floats) -> tuple[Floats, Floats]:
    """Return the weighted mean difference and 1.96 of its estimated standard errors."""
    rate = np.nan_to_num(x / n)
    total = (weight * (rate[:, 0] - rate[:, 1])).sum(axis=-1)
    variance = np.nan_to_num(rate * (1 - rate) / n).sum(axis=1)
    half = quantile(LEVEL) * np.sqrt((weight**2 * variance).sum(axis=-1))
    return total - half, total + half


def _bounded(values: Floats) -> Floats:
    """Return v / (1 + |v|): ends of ratios may be infinite."""
    return np.sign(values) * (1 - 1 / (1 + np.abs(values)))


FAMILIES = (
    Family(
        "standardised",
        "Standardised differences",
        "Groups are compared over the same mix of strata, such as age bands: one pair of groups, "
        "or all pairs. A pair is compared over the strata in which both have rows, if each has at "
        "least 10 rows there. The weights of the strata are estimated. *rate 0.3 by 0.25* means "
        "that the rates of the strata range from 0.05 to 0.55; *alike* means that they are the "
        "same. The last group is spread over the strata like the others (*spread alike*), mostly "
        "over other strata than they are (*spread otherwise*), or *rare* everywhere. *MOVER over "
        "strata* combines the intervals of the groups' rates in each stratum. Widths are measured "
        "on the scale v / (1 + |v|), as ratios may be infinite.",
        _populations,
        _draw,
        (
            Construction("ours", _ours),
            Construction("MOVER over strata", _of_two(_mover)),
            Construction("Wald", _of_two(_wald)),
        ),
        replications=1000,
        width=_bounded,
    ),
)
