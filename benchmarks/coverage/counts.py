"""Families of rates: single ones, differences, ratios, largest gaps, smallest ratios, two rates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from benchmarks.coverage import constructions as made
from benchmarks.coverage.populations import (
    BASE_RATES,
    SPREAD,
    Population,
    all_populations,
    thinned,
    varied,
)
from benchmarks.coverage.simulate import BEFORE, OURS, Construction, Family, Interval, Sample
from fairbench.core.arrays import Floats

RATE_SIZES = (20, 50, 200, 500, 2000)
RATES = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.97, 0.99, 0.999)
BOOTSTRAP = "fairlearn's bootstrap"


@dataclass(frozen=True)
class OneRate:
    """A rate of some rows."""

    size: int
    rate: float

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"{self.size} rows, rate {self.rate:g}"


def _one_rates(short: bool) -> Sequence[OneRate]:
    rates = BASE_RATES if short else RATES
    return [OneRate(n, p) for n, p in product(RATE_SIZES, rates)]


def _draw_rate(population: OneRate, replications: int, draw: np.random.Generator) -> Sample:
    """Draw counts (R, 1) of one rate; everything is asked of shares of all rows and of some."""
    rate = varied(population.rate, replications, draw)
    counts = made.Counts(draw.binomial(population.size, rate)[:, None], np.array([population.size]))
    truth = rate[:, None]
    return Sample(counts, {"share of everyone": truth, "share of some rows": truth})


@dataclass(frozen=True)
class FixedRate:
    """The same rate of few rows in all replications, where few intervals hold."""

    size: int
    rate: float

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"{self.size} rows, rate {self.rate:g} in all replications"


# Where the modified Jeffreys limits cover 90 to 92 %, and where ours cover least.
_JEFFREYS = ((3, 0.1767), (8, 0.4537), (9, 0.4145), (10, 0.3812), (20, 0.2839), (50, 0.0897))
_FIXED = (*_JEFFREYS, (8, 0.5), (12, 0.4364), (90, 0.0498))


def _fixed_rates(short: bool) -> Sequence[FixedRate]:
    return [FixedRate(n, p + sign * 1e-4) for n, p in _FIXED for sign in (-1, 1)]


def _draw_fixed(population: FixedRate, replications: int, draw: np.random.Generator) -> Sample:
    hits = draw.binomial(population.size, population.rate, (replications, 1))
    counts = made.Counts(hits, np.array([population.size]))
    return Sample(counts, {"rate": np.full((replications, 1), population.rate)})


@dataclass(frozen=True)
class Tiny:
    """Groups of which the last has five rows, and may have none that the rate is of.

    Attributes
    ----------
    sizes : rows of every group.
    share : of the rows of every group, on average, the rate is of so many.
    base, gap : the rate of the others, and by how much the last one's is lower.
    """

    sizes: tuple[int, ...]
    share: float
    base: float
    gap: float

    @property
    def name(self) -> str:
        """What tables call it."""
        rows = ", ".join(map(str, self.sizes))
        of = f" of {100 * self.share:g} % of the rows" if self.share < 1 else ""
        return f"groups of {rows} rows, rate {self.base:g}{of}, gap {self.gap:g} in the last"


def _tiny(short: bool) -> Sequence[Tiny]:
    sizes = ((50000, 5), (50000, 500, 50, 5), (50000, 5000, 500, 50, 5))
    shares, gaps = (1.0, 0.3, 0.1), (0.2, 0.4)
    result = [Tiny(*each) for each in product(sizes, shares, (0.6, 0.95), gaps)]
    return result[::3] if short else result


def _draw_tiny(population: Tiny, replications: int, draw: np.random.Generator) -> Sample:
    """Draw counts; the truth is the gap of all groups, whether or not they have rows."""
    sizes = np.tile(np.array(population.sizes), (replications, 1))
    rows = draw.binomial(sizes, population.share)
    rates = np.full(sizes.shape, population.base)
    rates[:, -1] -= population.gap
    counts = made.Counts(draw.binomial(rows, rates), rows)
    return Sample(counts, {"largest gap": np.full(replications, population.gap)})


def _of_both_shares(interval: made.OfCounts) -> made.Intervals:
    """Return a rate's construction for shares of everyone and of some, which priors tell apart."""

    def intervals(counts: made.Counts, draw: np.random.Generator) -> Mapping[str, Interval]:
        some = made.Counts(counts.successes, counts.size, prior=1.0)
        return {
            "share of everyone": interval(counts, draw),
            "share of some rows": interval(some, draw),
        }

    return intervals


def _populations(short: bool, *, groups: Sequence[int], few: int) -> Sequence[Population]:
    result = all_populations(groups)
    return thinned(result, few) if short else result


def _counts(population: Population, rates: Floats, draw: np.random.Generator) -> made.Counts:
    return made.Counts(draw.binomial(population.rows, rates), population.rows)


def _draw_pair(
    metric: str, population: Population, replications: int, draw: np.random.Generator
) -> Sample:
    """Draw two groups' counts; the truth is the other group's rate against the first one's."""
    rates = population.rates(replications, draw)
    first, other = rates[:, 0], rates[:, 1]
    truth = other - first if metric == "difference" else other / first
    return Sample(_counts(population, rates, draw), {metric: truth})


def _draw_all(
    metric: str, population: Population, replications: int, draw: np.random.Generator
) -> Sample:
    """Draw all groups' counts; the truth is of the widest pair."""
    rates = population.rates(replications, draw)
    smallest, largest = rates.min(axis=1), rates.max(axis=1)
    truth = largest - smallest if metric == "largest gap" else smallest / largest
    return Sample(_counts(population, rates, draw), {metric: truth})


POSITIVES, FALSE_POSITIVES = 0.3, 0.1


def _draw_odds(population: Population, replications: int, draw: np.random.Generator) -> Sample:
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
        made.Counts(draw.binomial(positives, caught), positives, prior=1.0),
        made.Counts(draw.binomial(negatives, alarms), negatives, prior=1.0),
    )
    return Sample(counts, {"equalized odds": np.maximum(np.ptp(caught, 1), np.ptp(alarms, 1))})


def _single(metric: str, interval: made.OfCounts) -> made.Intervals:
    return lambda counts, draw: {metric: interval(counts, draw)}


def _of_odds(interval: made.OfSeveral) -> made.Intervals:
    return lambda counts, draw: {"equalized odds": interval(counts, draw)}


def _bounded(ratio: Floats) -> Floats:
    """Return r / (1 + r), a ratio's place between 0 and 1: its ends may be infinite."""
    place: Floats = 1 - 1 / (1 + ratio)
    return place


def _of_two(
    form: str, title: str, words: str, width: Callable[[Floats], Floats] = np.asarray
) -> Family:
    """Return the family of differences or ratios (`form`) of the rates of two groups."""
    constructions = (
        Construction(OURS, _single(form, getattr(made, f"{form}_ours"))),
        Construction(BEFORE, _single(form, made.posterior(getattr(made, f"{form}_of"))), 500),
        Construction("Newcombe", _single(form, getattr(made, f"{form}_newcombe"))),
        Construction("Wald", _single(form, getattr(made, f"{form}_wald"))),
    )
    return Family(
        f"{form}s",
        title,
        words,
        partial(_populations, groups=(2,), few=60),
        partial(_draw_pair, form),
        constructions,
        replications=2000,
        width=width,
    )


FAMILIES = (
    Family(
        "rates",
        "Rates",
        "The interval is for one rate, such as a selection rate. Some rates are shares of "
        "everyone (selection rate, accuracy), others of some rows (true positive rate, "
        "precision). Only the earlier default treats the two differently: its prior adds more "
        "pseudo-counts to a share of everyone.",
        _one_rates,
        _draw_rate,
        (
            Construction(OURS, _of_both_shares(made.rate_ours)),
            Construction(BEFORE, _of_both_shares(made.rate_posterior)),
            Construction("Wilson", _of_both_shares(made.rate_wilson)),
            Construction("Wald", _of_both_shares(made.rate_wald)),
            Construction(BOOTSTRAP, _of_both_shares(made.bootstrap(made.rate_of)), 500),
        ),
        replications=5000,
    ),
    _of_two(
        "difference",
        "Differences of two groups",
        "The interval is for the second group's rate minus the first group's.",
    ),
    _of_two(
        "ratio",
        "Ratios of two groups",
        "The interval is for the second group's rate divided by the first group's. The upper end "
        "of a ratio may be infinite, so widths are measured on the scale r / (1 + r).",
        width=_bounded,
    ),
    Family(
        "gaps",
        "Largest gaps",
        "The interval is for the largest difference in selection rate between any two of 2, 3, 4, "
        "10 or 50 groups. Newcombe and Wald are applied to the two groups that lie furthest "
        "apart, as if these had been chosen before the data were seen.",
        partial(_populations, groups=(2, 3, 4, 10, 50), few=120),
        partial(_draw_all, "largest gap"),
        (
            Construction(OURS, _single("largest gap", made.gap_ours)),
            Construction(BEFORE, _single("largest gap", made.posterior(made.gap_of)), 200, 4),
            Construction("Newcombe", _single("largest gap", made.gap_newcombe)),
            Construction("Wald", _single("largest gap", made.gap_wald)),
            Construction(BOOTSTRAP, _single("largest gap", made.bootstrap(made.gap_of)), 200, 16),
        ),
    ),
    Family(
        "fixed_rates",
        "Rates at which coverage jumps",
        "The interval is for one rate, which has exactly the same value in all replications. The "
        "values lie just beside the rates at which both ends of the modified Jeffreys interval "
        "fail at once, or at which our intervals cover least.",
        _fixed_rates,
        _draw_fixed,
        (
            Construction(OURS, _single("rate", made.rate_ours)),
            Construction("Wilson", _single("rate", made.rate_wilson)),
            Construction("Wald", _single("rate", made.rate_wald)),
        ),
        replications=5000,
    ),
    Family(
        "gaps_with_tiny_groups",
        "Largest gaps with a group of five rows",
        "The interval is for the largest gap over all groups. The group whose rate differs has "
        "only five rows. Where the rate is of some rows only, such as a true positive rate, this "
        "group may have none of them. Its rate may then be anything, and our interval allows for "
        "that.",
        _tiny,
        _draw_tiny,
        (
            Construction(OURS, _single("largest gap", made.gap_ours)),
            Construction(
                "leaving out groups without rows", _single("largest gap", made.gap_of_some)
            ),
        ),
    ),
    Family(
        "smallest_ratios",
        "Smallest ratios",
        "The interval is for the smallest selection rate of any group divided by the largest, for "
        "2, 3, 4, 10 or 50 groups.",
        partial(_populations, groups=(2, 3, 4, 10, 50), few=120),
        partial(_draw_all, "smallest ratio"),
        (
            Construction(OURS, _single("smallest ratio", made.smallest_ours)),
            Construction(
                BEFORE, _single("smallest ratio", made.posterior(made.smallest_of)), 200, 4
            ),
            Construction("Newcombe", _single("smallest ratio", made.smallest_newcombe)),
            Construction(
                BOOTSTRAP, _single("smallest ratio", made.bootstrap(made.smallest_of)), 200, 16
            ),
        ),
    ),
    Family(
        "equalized_odds",
        "Equalized odds",
        "The interval is for the larger of two gaps: the largest gap in true positive rates and "
        "the largest gap in false positive rates. 30 % of the rows are positive. A group without "
        "positives has no true positive rate, and no interval is printed then.",
        partial(_populations, groups=(2, 3, 4, 10, 50), few=80),
        _draw_odds,
        (
            Construction(OURS, _of_odds(made.odds_ours)),
            Construction(BEFORE, _of_odds(made.odds_posterior), 200, 4),
            Construction("Newcombe", _of_odds(made.odds_newcombe)),
            Construction("Wald", _of_odds(made.odds_wald)),
        ),
        replications=500,
    ),
)
