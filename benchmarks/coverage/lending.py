"""Families of what lenders are asked for: odds ratios, the best by score, and mean differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import special

from benchmarks.coverage.counts import Counts, varied
from benchmarks.coverage.simulate import LEVEL, Ends, Family, Interval, Random, Sample, Setting
from fairbench.core.arrays import Floats
from fairbench.inference.gaps import GroupLimits, largest_gap, probability_below, ratios_to_group
from fairbench.inference.pooled import pool
from fairbench.inference.rates import rate_limits
from fairbench_dossiers import lending

PLAIN = "mean difference"
RESIDUAL, ADJUSTED = f"residual {PLAIN}", f"adjusted {PLAIN}"


def _two_rates() -> Iterator[Setting]:
    """Yield sizes and rates of two groups, the second of which is the reference."""
    of_sizes = ((5, 50), (10, 10), (20, 20), (20, 2000), (50, 50), (100, 400), (2000, 2000))
    of_rates = (0.005, 0.03, 0.3, 0.5, 0.9, 0.98)
    for sizes, rates in product(of_sizes, product(of_rates, of_rates)):
        name = "groups of {} and {} rows, rates {:g} and {:g}".format(*sizes, *rates)
        yield Setting(name=name, sizes=sizes, rates=rates)


def _draw_odds(population: Setting, replications: int, draw: Random) -> Sample:
    rates = np.stack([varied(rate, replications, draw) for rate in population.rates], axis=1)
    counts = Counts(draw.binomial(population.sizes, rates), np.array(population.sizes))
    odds = rates / (1 - rates)
    return Sample(counts, odds[:, 0] / odds[:, 1])


def _odds_ours(counts: Counts, _: Random) -> Interval:
    (x, y), (n, m) = counts.successes.T, counts.size
    return lending.odds_ratios((x, y), (n, m), level=LEVEL)


def _scored() -> Iterator[Setting]:
    """Yield normal scores of two groups of a population, the first lower by a shift.

    There are so many rows of both together, a share of them in the first group, and a share of all
    that is best. A step is what scores are rounded to; 0 for not at all.
    """
    for rows, share, shift, spread, best, step in product(
        *((60, 200, 1000, 5000), (0.05, 0.2, 0.5), (0.0, 0.5, 1.0), (0.3, 1.0, 1.5)),
        *((0.05, 0.2, 0.5, 0.9), (0.0, 0.5)),
    ):
        one = Setting(rows=rows, share=share, shift=shift, spread=spread, best=best, step=step)
        one.name = f"{rows} rows, {share:g} in a group lower by {shift:g} of spread {spread:g}, "
        one.name += f"the best {best:g}" + (f", rounded to {step:g}" if step else "")
        yield one


def _above(one: Setting, cut: Floats) -> Floats:
    """Return the shares (..., 2) of both groups that are at or above cuts."""
    edge = np.ceil(cut / one.step - 1e-9) * one.step - one.step / 2 if one.step else cut
    return np.stack([special.ndtr(-(edge + one.shift) / one.spread), special.ndtr(-edge)], -1)


def _draw_scored(one: Setting, replications: int, draw: Random) -> Sample:
    """Draw scores; the truth is that of the population at the cut of the sample."""
    first = np.arange(one.rows) < draw.binomial(one.rows, one.share, replications)[:, None]
    score = draw.normal(size=(replications, one.rows))
    score = np.where(first, one.spread * score - one.shift, score)
    if one.step:
        score = np.round(score / one.step) * one.step
    best, cut = lending.among_best(score, one.best, high=True)
    shares = _above(one, cut)
    groups = np.stack([first, ~first], axis=1)
    counts = Counts((groups & best[:, None]).sum(axis=-1), groups.sum(axis=-1))
    return Sample(counts, shares[:, 0] / shares[:, 1])


def _best_ours(counts: Counts, _: Random) -> Interval:
    rates = rate_limits(counts.successes, counts.size, level=LEVEL)
    ratios = ratios_to_group(rates, 1, level=LEVEL)[0]
    return ratios.lower[:, 0], ratios.upper[:, 0]


ERRORS: Mapping[str, Callable[[Random, tuple[int, int]], Floats]] = {
    "normal": lambda draw, shape: draw.normal(size=shape),
    "lognormal": lambda draw, shape: (
        (np.exp(draw.normal(size=shape)) - np.exp(0.5)) / np.sqrt((np.e - 1) * np.e)
    ),
    "gamma": lambda draw, shape: (draw.gamma(0.5, size=shape) - 0.5) / np.sqrt(0.5),
    "t(5)": lambda draw, shape: draw.standard_t(5, size=shape) / np.sqrt(5 / 3),
    "uniform": lambda draw, shape: draw.uniform(-np.sqrt(3), np.sqrt(3), shape),
    "rare": lambda draw, shape: ((draw.random(shape) < 0.05) - 0.05) / np.sqrt(0.05 * 0.95),
}


def _priced() -> Iterator[Setting]:
    """Yield prices of three groups, which hang on a factor and on the group.

    There are so many rows of all together, in shares of the groups, the second of which is the
    reference. `errors` is the distribution of what the factor does not tell, and the gap is in its
    standard deviations; that of the first group is multiplied by the spread. The factor's means are
    apart, in its own standard deviations.
    """
    for rows, shares, errors, gap, spread, apart in product(
        *((100, 400, 2000), ((0.3, 0.7, 0.0), (0.3, 0.4, 0.3), (0.06, 0.8, 0.14)), ERRORS),
        *((0.0, 0.3, 1.0), (1.0, 2.0), (0.0, 0.7)),
    ):
        one = Setting(rows=rows, shares=shares, errors=errors, gap=gap, spread=spread, apart=apart)
        words = f"{rows} rows in shares {', '.join(f'{share:g}' for share in shares)}"
        of = f"gap {gap:g}, spread {spread:g}, factors apart by {apart:g}"
        one.name = f"{words}, {errors} errors, {of}"
        yield one


def _draw_priced(one: Setting, replications: int, draw: Random) -> Sample:
    shape, slope, shares = (replications, one.rows), 0.8, np.array(one.shares)
    codes = draw.choice(3, size=shape, p=shares)
    shift, away = np.array([one.gap, 0.0, -one.gap / 2]), np.array([-one.apart, 0, one.apart / 2])
    spread = np.array([one.spread, 1.0, 1.0])
    factor = away[codes] + draw.normal(size=shape)
    price = shift[codes] + slope * factor + spread[codes] * ERRORS[one.errors](draw, shape)

    def together(first: Floats, second: Floats) -> float:
        return float(shares @ (first * second) - (shares @ first) * (shares @ second))

    noise = float(shares @ spread**2)
    fitted = slope + together(shift, away) / (1 + together(away, away))
    whole, left = shift + slope * away, shift + (slope - fitted) * away
    sd = np.sqrt(together(whole, whole) + slope**2 + noise)
    sd_left = np.sqrt(together(left, left) + (slope - fitted) ** 2 + noise)
    apart = (whole[0] - whole[1]) / sd, (left[0] - left[1]) / sd_left, one.gap / sd
    truth = zip((PLAIN, RESIDUAL, ADJUSTED), apart, strict=True)
    return Sample(
        (price, factor, codes), {name: np.full(replications, value) for name, value in truth}
    )


Prices = tuple[Floats, Floats, NDArray[np.intp]]  # and factors and groups, (R, n) each


def _means_ours(prices: Prices, _: Random) -> Ends:
    ends: dict[str, list[tuple[float, float]]] = {PLAIN: [], RESIDUAL: [], ADJUSTED: []}
    for price, factor, codes in zip(*prices, strict=True):
        given, factors = (price, codes, 1), factor[:, None]
        for name, limits in (
            (PLAIN, lending.mean_differences(*given, level=LEVEL)),
            (RESIDUAL, lending.mean_differences(*given, factors, level=LEVEL)),
            (ADJUSTED, lending.adjusted_mean_differences(*given, factors, level=LEVEL)),
        ):
            ends[name].append((limits.lower[0], limits.upper[0]))
    return {name: tuple(np.array(both).T) for name, both in ends.items()}


# The families of pooled rates: estimates of many groups together, and whether gaps are small.


def _populations() -> Iterator[Setting]:
    """Yield groups whose rates' logits vary around that of a rate by a standard deviation."""
    every = product((10, 50), (30, 200), (0.0, 0.3, 0.6), (0.05, 0.3))
    for groups, rows, spread, rate in every:
        name = f"{groups} groups of {rows} rows, logits of spread {spread:g} around {rate:g}"
        yield Setting(name=name, groups=groups, rows=rows, spread=spread, rate=rate)


def _draw(population: Setting, replications: int, draw: Random) -> Sample:
    logits = special.logit(population.rate) + draw.uniform(-0.2, 0.2, (replications, 1))
    noise = draw.standard_normal((replications, population.groups))
    rates = special.expit(logits + population.spread * noise)
    rows = np.full(population.groups, population.rows)
    return Sample(Counts(draw.binomial(rows, rates), rows), rates)


def _ours(data: Counts, draw: Random) -> Interval:
    ends = [pool(success, data.size, draw).interval(LEVEL) for success in data.successes]
    lower, upper = np.stack(ends, axis=1)
    return lower, upper


EPSILON = 0.05


_VALUES = ((0.6, 0.4), (0.6, 0.3, 0.1), (0.5, 0.3, 0.15, 0.05))
_CODES = np.array(list(product(*(range(len(shares)) for shares in _VALUES))))


# Counts of groups, and the attributes' codes (G, K) if these are combined.
Compared = tuple[Counts, NDArray[np.int64] | None]


def _apart() -> Iterator[Setting]:
    """Yield combinations of three attributes of 2, 3 and 4 unequal values, and other groups.

    Others are of so many rows each, with the rates of all but the last, and of the last.
    """
    for rows, rate in ((800, 0.3), (2000, 0.1)):
        name = f"24 combinations of three attributes in {rows} rows, rate {rate:g}"
        yield Setting(name=name, sizes=(rows,), rates=(rate, rate), combined=True)
    for sizes, first, last in (
        ((3000, 30), 0.999, 0.946),
        ((3000, 30), 0.5, 0.449),
        ((500, 30, 30), 0.97, 0.918),
        ((500,) * 10, 0.3, 0.3),
        ((200,) * 10, 0.3, 0.351),
        ((50000, 5), 0.3, 0.3),
        ((50000, 500, 5), 0.3, 0.351),
    ):
        rows_each = " and ".join(map(str, dict.fromkeys(sizes)))
        name = f"{len(sizes)} groups of {rows_each} rows, rates {first:g} and {last:g}"
        yield Setting(name=name, sizes=sizes, rates=(first, last), combined=False)


def _draw_apart(population: Setting, replications: int, draw: Random) -> Sample:
    """Draw counts; the truth is the widest gap between groups that have rows."""
    first, last = population.rates
    if population.combined:
        shares = np.prod([np.array(v)[c] for v, c in zip(_VALUES, _CODES.T, strict=True)], axis=0)
        rows = draw.multinomial(population.sizes[0], shares, replications)
    else:
        rows = np.tile(np.array(population.sizes), (replications, 1))
    rates = np.full(rows.shape, first)
    rates[:, -1] = last
    counts = Counts(draw.binomial(rows, rates), rows)
    attributes = _CODES if population.combined else None
    return Sample((counts, attributes), np.full(replications, abs(first - last)))


def _said(probability: Floats) -> Interval:
    """Return where gaps are said to lie: over epsilon under 5 %, under it over 95 %."""
    lower = np.where(probability < 1 - LEVEL, EPSILON, 0.0)
    return lower, np.where(probability > LEVEL, EPSILON, 1.0)


def _below_ours(data: Compared, draw: Random) -> Interval:
    """Return where gaps are said to lie: by a joint posterior, bounded by the gap's interval."""
    counts, codes = data
    limits = GroupLimits.of(counts.successes, counts.size, level=LEVEL).only(counts.size > 0)
    gap, posterior = largest_gap(limits), []
    for hits, size in zip(counts.successes, counts.size, strict=True):
        has = size > 0
        some = None if codes is None else codes[has]
        pooled = pool(hits[has], size[has], draw, attributes=some, draws=400)
        posterior.append(pooled.gap_below(EPSILON))
    return _said(probability_below(posterior, gap.lower, gap.upper, EPSILON, level=LEVEL))


_ODDS = {"ours": _odds_ours}
_BEST = {"ours": _best_ours}
_SMALL = {"ours": _below_ours}
_BEST_RATIO = "impact ratio among the best"
FAMILIES = (
    Family("odds_ratios", _two_rates, _draw_odds, _ODDS, 5000, metric="odds ratio", bounded=True),
    Family("best_by_score", _scored, _draw_scored, _BEST, 1000, 200, _BEST_RATIO, bounded=True),
    Family("mean_differences", _priced, _draw_priced, {"ours": _means_ours}, 500, 80),
    Family("pooled", _populations, _draw, {"ours": _ours}, 200, metric="rate of every group"),
    Family("small_gaps", _apart, _draw_apart, _SMALL, 600, metric="P(gap < 0.05)"),
)
