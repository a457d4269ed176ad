"""The families of bounds: labels of the selected alone, and groups known through probabilities.

The truth is where it is hardest to hold, at one of the ends, or between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import product, starmap

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.simulate import LEVEL, Ends, Family, Interval, Random, Sample, Setting
from fairbench.core.arrays import Floats
from fairbench.inference.partial import NOTHING, ProxyRows, RateBounds, SelectedLabels
from fairbench.inference.rates import difference_limits
from fairbench.metrics import registry as rates

RATES: tuple[rates.Rate, ...] = (
    *(rates.base_rate, rates.accuracy, rates.true_positive_rate, rates.false_positive_rate),
    rates.positive_predictive_value,
)
BANDS, GROUPS = 3, 2
SIDES = {1: "the largest", -1: "the least", 0: "between"}
_WHOLE = 400_000


def selection(rows: int, labelled: float, odds: float, side: int) -> Setting:
    """Return how many rows a group has, whose labels are known, and how unlike the others are.

    Parameters
    ----------
    labelled : the share of the selected who have a label.
    odds : the factor between odds that is assumed. side : whether the others' odds of label 1 are
        higher or lower by that factor, or anything between.
    """
    unlike = "anything" if np.isinf(odds) else f"odds within {odds:g}"
    name = f"{rows} rows a group, {100 * labelled:g} % labelled, {unlike}, truth {SIDES[side]}"
    return Setting(name=name, rows=rows, labelled=labelled, odds=odds, side=side)


def _selections() -> Iterator[Setting]:
    return starmap(selection, product((200, 1000, 5000), (1.0, 0.5), (1.5, 5.0, NOTHING), SIDES))


def _unseen(population: Setting, share: Floats, draw: Random) -> Floats:
    """Return the share of label 1 among those who were not selected."""
    power = draw.uniform(-1, 1, share.shape)
    if population.side:
        power = np.full(share.shape, float(population.side))
    if np.isinf(population.odds):
        return (power + 1) / 2
    factor = population.odds**power
    return np.asarray(factor * share / (1 + (factor - 1) * share))


def draw_selection(population: Setting, replications: int, draw: Random) -> Sample:
    """Draw rows of two groups by selection, decision and band, each replication another world."""
    shape = (replications, GROUPS, 2, 2, BANDS)
    cells = draw.dirichlet([3.0] * (4 * BANDS), shape[:2])
    share = draw.uniform(0.05, 0.6, (*shape[:2], 2, BANDS)) + np.array([[0.0], [0.35]])
    drawn = draw.multinomial(population.rows, cells).reshape(shape)
    known = draw.binomial(drawn[:, :, 1], population.labelled)
    positive = draw.binomial(known, share)
    result = [drawn[:, :, 0], drawn[:, :, 1], known, positive]
    cells = cells.reshape(shape)
    labels = np.stack([_unseen(population, share, draw), share], axis=2)
    ones, zeros = ((cells * each).sum(axis=(2, 4)) for each in (labels, 1 - labels))
    flat = SelectedLabels(*(each.reshape(-1, 2, BANDS).astype(float) for each in result))
    return Sample((population, flat), _truths(np.concatenate([zeros, ones], axis=-1)))


def _truths(cells: Floats) -> Mapping[str, Floats]:
    """Return the rates (R, 2) of cells (R, 2, 4), and their differences (R,)."""
    result: dict[str, Floats] = {}
    for rate in RATES:
        value = rate(cells)
        result |= {rate.name: value, f"difference in {rate.name}": value[:, 1] - value[:, 0]}
    return result


def _intervals(ends: Mapping[str, RateBounds]) -> Ends:
    """Return the intervals of rates (R, 2) from their ends, and of differences (R,)."""
    result: dict[str, Interval] = {}
    for name, each in ends.items():
        low, high = each.limits(LEVEL)
        result[name] = each.interval(LEVEL)
        result[f"difference in {name}"] = (
            difference_limits(low.take(1), high.take(0)).lower,
            difference_limits(high.take(1), low.take(0)).upper,
        )
    return result


def _of_selected(data: tuple[Setting, SelectedLabels], _: Random, *, alike: bool) -> Ends:
    """Return the intervals at the odds that are assumed, or as if the others were alike."""
    population, labels = data
    odds = 1.0 if alike else population.odds
    ends = {rate.name: labels.bounds(rate, odds=odds) for rate in RATES}
    by_group = (2, -1, GROUPS)
    return _intervals(
        {
            name: RateBounds(of.value.reshape(by_group), of.rows.reshape(by_group))
            for name, of in ends.items()
        }
    )


def proxies(rows: int, side: int, distinct: int) -> Setting:
    """Return how many rows there are, and how groups depend on decisions of people who look alike.

    Parameters
    ----------
    side : 1 where those decided upon positively are of the second group as often as can be, -1
        where they are as seldom, 0 where the two do not depend on each other.
    distinct : how many different probabilities there are; 0 where no two are the same.
    """
    values = f"{distinct} probabilities" if distinct else "any probability"
    name = f"{rows} rows, {values}, truth {SIDES[side]}"
    return Setting(name=name, rows=rows, side=side, distinct=distinct)


def _proxies() -> Iterator[Setting]:
    return starmap(proxies, product((300, 2000), SIDES, (0, 10)))


def proxy_rows(
    side: int, distinct: int, rows: int, draw: Random
) -> tuple[ProxyRows, NDArray[np.int64]]:
    """Draw people with probabilities of two groups, and the groups."""
    share = draw.beta(0.5, 0.8, rows)
    if distinct:
        share = np.ceil(share * distinct) / distinct
    luck = draw.random(rows)
    decision = luck < 0.15 + 0.6 * share
    label = draw.random(rows) < np.where(decision, 0.7, 0.2)
    also = {1: luck, -1: 1 - luck, 0: draw.random(rows)}[side]
    member = (also < share).astype(np.int64)
    group = np.stack([1 - share, share], axis=1)
    outcome = label.astype(np.int64), decision.astype(np.int64)
    return ProxyRows.of(group, *outcome, draw.integers(0, 2, rows)), member


@cache
def proxy_truth(side: int, distinct: int) -> Floats:
    """Return the shares (2, 4) of the cells of the confusion table in both groups."""
    result, member = proxy_rows(side, distinct, _WHOLE, np.random.default_rng(99))
    return np.stack([np.bincount(result.cell[member == g], minlength=4) for g in (0, 1)]) / _WHOLE


def _draw_proxies(population: Setting, replications: int, draw: Random) -> Sample:
    kind = population.side, population.distinct
    result = [proxy_rows(*kind, population.rows, draw)[0] for _ in range(replications)]
    cells = np.broadcast_to(proxy_truth(*kind), (replications, GROUPS, 4))
    return Sample(result, _truths(cells))


def _proxy_bounds(data: Sequence[ProxyRows], _: Random) -> Ends:
    ends = {}
    for rate in RATES:
        each = [rows.bounds(rate) for rows in data]
        value, rows = ([getattr(one, name) for one in each] for name in ("value", "rows"))
        ends[rate.name] = RateBounds(np.stack(value, axis=1), np.stack(rows, axis=1))
    return _intervals(ends)


_SELECTED = {
    "ours": partial(_of_selected, alike=False),
    "as if alike": partial(_of_selected, alike=True),
}
FAMILIES = (
    Family("selected", _selections, draw_selection, _SELECTED, 2000),
    Family("proxies", _proxies, _draw_proxies, {"ours": _proxy_bounds}, 300),
)
