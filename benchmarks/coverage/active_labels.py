"""The family of active labelling: groups are chosen by what labels said, and one looks on.

``python -m benchmarks.coverage.active_labels`` prints how often the least accurate of ten groups is
found, by strategy and number of labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import special

from benchmarks.coverage.few_labels import GRID
from benchmarks.coverage.simulate import LEVEL, Construction, Family, Interval, Sample
from fairbench.audits.labelling.questions import LEAST_SHARE
from fairbench.core.arrays import Floats
from fairbench.inference.active.arms import BetaArms
from fairbench.inference.active.intervals import found_limits, sequence_limits, together
from fairbench.inference.active.rewards import Lowest
from fairbench.inference.active.strategies import choose
from fairbench.inference.beta import centred
from fairbench.inference.few_labels.assisted import LabelledRows
from fairbench.inference.rates import Limits, rate_limits
from fairbench.metrics.rates import accuracy

Codes = NDArray[np.int64]
ROWS, BLOCK, FIRST_LOOK, EVERY = 4000, 100, 30, 10
# What the log odds of a score are multiplied by, and moved by, to be those of the label; by group.
TEN = (1.0,) * 9
MAPS: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "ten groups, all alike": ((*TEN, 1.0), (0.0,) * 10),
    "ten groups, one overconfident": ((*TEN, 0.15), (0.0,) * 10),
    "ten groups, one shifted": ((*TEN, 1.0), (*(0.0,) * 9, -1.5)),
    "ten groups, more and more overconfident": (tuple(np.linspace(1, 0.3, 10)), (0.0,) * 10),
    "two groups, alike": ((1.0, 1.0), (0.0, 0.0)),
    "two groups, one inverted": ((1.0, -1.0), (0.0, 0.0)),
}
RANDOM, TOP_TWO, THOMPSON = "random", "top_two", "thompson"


@dataclass(frozen=True)
class Labelling:
    """A pool of groups of equal size, and how its rows are labelled.

    Attributes
    ----------
    map : from scores to probabilities, of `MAPS`.
    pleased : labelling stops at the first look at which the interval of the group that looks worst,
        of the labelled rows by themselves, lies under the share of all labels that were right; one
        looks at 30 labels, and then at every tenth. It stops at `labels` at the latest.
    """

    map: str
    labels: int
    strategy: str
    pleased: bool

    @property
    def name(self) -> str:
        """What tables call it."""
        stop = "stopped when it pleases, at most" if self.pleased else "stopped at"
        return f"{self.map}, {self.strategy}, {stop} {self.labels} labels"


@dataclass(frozen=True)
class Pools:
    """R pools of N rows in G groups, (R, N) each."""

    score: Floats
    decision: Codes
    group: Codes
    label: Codes
    groups: int

    def block(self, rows: slice) -> Pools:
        """Return some of them."""
        decision, group, label = self.decision[rows], self.group[rows], self.label[rows]
        return Pools(self.score[rows], decision, group, label, self.groups)


@dataclass(frozen=True)
class Counted:
    """What the labels of R pools are worth, by group (R, G), helped by scores and by themselves."""

    helped: tuple[Floats, Floats]
    alone: tuple[Floats, Floats]

    @property
    def found(self) -> Codes:
        """The group that looks worst, (R, 1)."""
        with np.errstate(invalid="ignore"):
            value = self.helped[0] / self.helped[1]
        result: Codes = np.where(np.isnan(value), np.inf, value).argmin(axis=1)[:, None]
        return result


def _said(short: bool) -> Sequence[Labelling]:
    maps, labels = _maps(short), (300,) if short else (50, 100, 300)
    strategies = (TOP_TWO,) if short else (RANDOM, TOP_TWO, THOMPSON)
    return [Labelling(*each, False) for each in product(maps, labels, strategies)]


def _pleased(short: bool) -> Sequence[Labelling]:
    return [Labelling(each, 300, TOP_TWO, True) for each in _maps(short)]


def _maps(short: bool) -> Sequence[str]:
    return list(MAPS)[: 2 if short else None]


def _draw(population: Labelling, replications: int, draw: np.random.Generator) -> Sample:
    slopes, shifts = (np.array(each) for each in MAPS[population.map])
    grid = (np.arange(GRID) + 0.5) / GRID
    grid = np.concatenate([special.betaincinv(1, 5, grid), special.betaincinv(5, 1, grid)])
    pools = _pools(slopes, shifts, grid, replications, draw)
    given, order = _labelled(population, pools, draw)
    log_odds = special.logit(grid)[:, None]
    chance = special.expit(slopes * log_odds + shifts)
    truth = np.where(grid[:, None] > 0.5, chance, 1 - chance).mean(axis=0)
    counted = _counted(pools, given, order)
    every = np.broadcast_to(truth, given.shape)
    return Sample(counted, {OF_ALL: every, OF_FOUND: np.take_along_axis(every, counted.found, 1)})


def _pools(
    slopes: Floats, shifts: Floats, grid: Floats, replications: int, draw: np.random.Generator
) -> Pools:
    shape = (replications, ROWS)
    score, group = draw.choice(grid, shape), draw.choice(len(slopes), shape)
    chance = special.expit(slopes[group] * special.logit(score) + shifts[group])
    label = (draw.random(shape) < chance).astype(np.int64)
    return Pools(score, (score > 0.5).astype(np.int64), group, label, len(slopes))


def _labelled(
    population: Labelling, pools: Pools, draw: np.random.Generator
) -> tuple[Codes, Codes]:
    """Return how many rows of each group (R, G) get labels, and the order (R, N) they come in."""
    count, groups = len(pools.score), pools.groups
    order = np.argsort(pools.group + draw.random(pools.group.shape), axis=1)
    right = np.take_along_axis(pools.label == pools.decision, order, axis=1)
    sizes = _of_groups(pools, np.ones_like(pools.score))
    first = np.cumsum(sizes, axis=1) - sizes
    sure = _of_groups(pools, np.maximum(pools.score, 1 - pools.score)) / sizes
    arms = BetaArms.of(centred(sure), sizes.astype(np.int64), replications=count)
    given, each = np.zeros((count, groups), np.int64), np.arange(count)
    won, going = np.zeros_like(given), np.ones(count, bool)
    for turn in range(population.labels):
        arm = choose(population.strategy, arms, Lowest(), draw)[:, 0]
        if population.strategy != RANDOM:
            behind = given.min(axis=1) < LEAST_SHARE * given.mean(axis=1)
            arm = np.where(behind, given.argmin(axis=1), arm)
        which = each[going]
        mine = arm[going]
        result = right[which, (first[which, mine] + given[which, mine]).astype(np.int64)]
        arms.record(which, mine, result.astype(np.int64))
        given[which, mine] += 1
        won[which, mine] += result
        looked = turn + 1 >= FIRST_LOOK and (turn + 1) % EVERY == 0
        if population.pleased and looked:
            going &= ~_pleases(won, given)
    return given, order


def _of_groups(pools: Pools, values: Floats) -> Floats:
    groups = range(pools.groups)
    return np.stack([np.where(pools.group == g, values, 0).sum(axis=1) for g in groups], axis=1)


def _pleases(won: Codes, given: Codes) -> NDArray[np.bool_]:
    """Say where the group that looks worst is surely so, to somebody who has looked just once."""
    limits = rate_limits(won, given, level=LEVEL)
    worst = np.where(given > 0, limits.value, np.inf).argmin(axis=1)[:, None]
    share = won.sum(axis=1) / given.sum(axis=1)
    pleased: NDArray[np.bool_] = np.take_along_axis(limits.upper, worst, 1)[:, 0] < share
    return pleased


def _counted(pools: Pools, given: Codes, order: Codes) -> Counted:
    parts = []
    for start in range(0, len(given), BLOCK):
        rows = slice(start, start + BLOCK)
        parts.append(_of_block(pools.block(rows), given[rows], order[rows]))
    whole = (np.concatenate(each) for each in zip(*parts, strict=True))
    helped, worth, alone, labels = whole
    return Counted((helped, worth), (alone, labels))


def _of_block(pools: Pools, given: Codes, order: Codes) -> tuple[Floats, Floats, Floats, Floats]:
    count, groups = given.shape
    sorted_group = np.take_along_axis(pools.group, order, axis=1)
    sizes = _of_groups(pools, np.ones_like(pools.score))
    first = np.cumsum(sizes, axis=1) - sizes
    place = np.arange(order.shape[1]) - np.take_along_axis(first, sorted_group, axis=1)
    known = np.zeros(order.shape, bool)
    np.put_along_axis(known, order, place < np.take_along_axis(given, sorted_group, axis=1), 1)
    code = (pools.group + groups * np.arange(count)[:, None]).ravel()
    rows, label = np.flatnonzero(known.ravel()), pools.label.ravel()
    decision = pools.decision.ravel()
    result = LabelledRows(
        pools.score.ravel(), decision, code, count * groups, rows, label[rows]
    ).effective_counts([accuracy])
    helped, worth = (each.reshape(count, groups) for each in result)
    right = np.bincount(code[rows], label[rows] == decision[rows], minlength=count * groups)
    return helped, worth, right.reshape(count, groups).astype(float), given.astype(float)


OF_ALL, OF_FOUND = "accuracy of every group", "accuracy of the group that looks worst"


def _said_before(data: Counted, _: np.random.Generator) -> Mapping[str, Interval]:
    return _ends(data, *(rate_limits(*data.helped, level=level) for level in _levels(data)))


def _whenever(data: Counted, _: np.random.Generator) -> Mapping[str, Interval]:
    return _ends(data, *(sequence_limits(*data.helped, level=level) for level in _levels(data)))


def _uncorrected(data: Counted, _: np.random.Generator) -> Mapping[str, Interval]:
    limits = rate_limits(*data.helped, level=LEVEL)
    return _ends(data, limits, limits)


def _of_labels(data: Counted, _: np.random.Generator) -> Mapping[str, Interval]:
    limits = rate_limits(*data.alone, level=LEVEL)
    return _ends(data, limits, limits)


def _levels(data: Counted) -> tuple[float, float]:
    return LEVEL, together(LEVEL, data.alone[0].shape[1])


def _ends(data: Counted, single: Limits, all_together: Limits) -> Mapping[str, Interval]:
    result = found_limits(single, all_together, lowest=True)
    lower, upper = (np.take_along_axis(each, data.found, 1) for each in result[1:])
    return {OF_ALL: (single.lower, single.upper), OF_FOUND: (lower, upper)}


_BESIDE = (Construction("uncorrected", _uncorrected), Construction("labelled rows", _of_labels))
FAMILIES = (
    Family(
        "active_labels",
        "Active labelling, number of labels fixed in advance",
        f"A pool of {ROWS} rows is in groups of equal size. The group that gets the next label is "
        "drawn at random, or depends on the labels so far (*top_two* and *thompson*). In the "
        "latter case, a group that has less than half of an equal share of the labels comes "
        "first. The number of labels is fixed in advance. *any stopping time*: intervals that "
        "hold whenever labelling stops. *uncorrected*: ours without the correction for having "
        "searched for the worst group. *labelled rows*: intervals from the labelled rows alone.",
        _said,
        _draw,
        (
            Construction("ours", _said_before),
            Construction("any stopping time", _whenever),
            *_BESIDE,
        ),
        replications=1000,
    ),
    Family(
        "stopped_labels",
        "Active labelling, stopped by what the labels say",
        "Labels are given as above, but their number depends on what they say. Somebody looks at "
        "them after the first 30 and after every ten more, and stops when the group that looks "
        "worst seems surely worse than all labels together, by an interval for a fixed number of "
        "labels. Ours are intervals that hold whenever labelling stops; *fixed number* are those "
        "for a number of labels fixed in advance.",
        _pleased,
        _draw,
        (Construction("ours", _whenever), Construction("fixed number", _said_before), *_BESIDE),
        replications=1000,
    ),
)


def found_by(
    map_name: str, strategy: str, labels: Sequence[int], replications: int, seed: int
) -> Iterator[tuple[int, float]]:
    """Yield how often the last group is the one that looks worst, by number of labels."""
    for number in labels:
        draw = np.random.default_rng([seed, number])
        population = Labelling(map_name, number, strategy, False)
        sample = _draw(population, replications, draw)
        last = len(MAPS[map_name][0]) - 1
        yield number, float((sample.data.found[:, 0] == last).mean())


def main() -> None:
    """Print how often the least accurate group of ten is found."""
    labels = (50, 100, 150, 200, 300)
    name = "ten groups, one overconfident"
    for strategy in (RANDOM, TOP_TWO, THOMPSON):
        result = found_by(name, strategy, labels, 500, 0)
        print(strategy, " ".join(f"{number}: {share:.2f}" for number, share in result))


if __name__ == "__main__":
    main()
