"""Simulates a family of intervals, and counts how often each construction's holds the truth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

from benchmarks.measure import exact_interval
from fairbench.core.arrays import Floats, rng
from fairbench.inference.rates import Limits

Interval = tuple[Floats, Floats] | Limits  # lower and upper ends; of limits, beside their values
Ends = Mapping[str, Interval]  # of several metrics
Random = np.random.Generator
Kind = TypeVar("Kind")
LEVEL = 0.95
OURS, BEFORE = "ours", "earlier default"  # constructions
# A cell fails when even the upper end of its own exact 99.9 % interval is under this.
REQUIRED, CERTAINTY = 0.93, 0.999
_ROUNDING = 1e-9


class Setting(SimpleNamespace):
    """A population: what its family draws it from, and as attributes the values of all that varies.

    Attributes
    ----------
    name : what tables call it.
    slow : whether it takes so long that fewer replications are made.
    """

    name: str
    slow = False


@dataclass(frozen=True)
class Sample:
    """Replications of one population.

    Attributes
    ----------
    data : what the family's constructions take.
    truth : of each metric, the (R, ...) values that its intervals should hold; of a family with one
        metric, these alone.
    """

    data: Any
    truth: Mapping[str, Floats] | Floats


Make = Callable[[Any, Random], Ends] | Callable[[Any, Random], Interval]
Constructions = Mapping[str, Make | tuple[Make, int, int]]


@dataclass(frozen=True)
class Family:
    """Intervals that are simulated in the same way.

    Attributes
    ----------
    name : of the option ``family=``, by which the page says in words what it is.
    populations : returns what is simulated; a short run has a tenth of them, but four.
    draw : takes a population, a number of replications and a generator to a sample.
    constructions : ways to make intervals, by name: functions of a sample's data and a generator
        (for those that draw) to the lower and upper ends of each metric, of the shape of its truth
        (of one metric, these alone); NaN where no interval is printed. What they have of metrics
        that the truth has not is left out. With one that is slow there is the most of replications,
        and in which part of the populations it is simulated: in one of so many.
    replications : of a full run; a short one has a fifth of them, and a slow population a quarter.
    most : so many of its populations are simulated, evenly from a fixed shuffle; 0 for all.
    metric : the only one that there is; empty where truths and ends are by metric.
    bounded : widths are measured on the scale v / (1 + |v|), as one may be infinite.
    """

    name: str
    populations: Callable[[], Iterable[Any]]
    draw: Callable[[Any, int, Random], Sample]
    constructions: Constructions
    replications: int = 1000
    most: int = 0
    metric: str = ""
    bounded: bool = False


@dataclass(frozen=True)
class Cell:
    """What was counted of one construction of one metric in one population.

    Attributes
    ----------
    trials, printed : intervals that were asked for, and those that there were.
    below, above : printed intervals that the truth lies below, and above.
    width : mean width of those printed.
    """

    family: str
    metric: str
    construction: str
    population: str
    trials: int
    printed: int
    below: int
    above: int
    width: float

    @property
    def coverage(self) -> float:
        """The share of printed intervals that hold the truth; NaN where none is printed."""
        covered = self.printed - self.below - self.above
        return covered / self.printed if self.printed else float("nan")

    @property
    def failed(self) -> bool:
        """Whether the coverage is certainly under what is required."""
        covered = self.printed - self.below - self.above
        return exact_interval(covered, self.printed, CERTAINTY)[1] < REQUIRED


def simulate(family: Family, *, short: bool = False, construction: str = "") -> Iterator[Cell]:
    """Yield the cells of a family, population by population.

    Parameters
    ----------
    short : fewer populations and replications.
    construction : the only one that is simulated; all without it.
    """
    populations = list(family.populations())
    populations = thinned(populations, family.most or len(populations))
    if short:
        populations = thinned(populations, max(4, len(populations) // 10))
    # A fixed shuffle, so that what is simulated in some populations is not always the same kind.
    places = np.random.default_rng(5).permutation(len(populations))
    for place, population in zip(places, populations, strict=True):
        samples: dict[int, Sample] = {}
        for name, made in family.constructions.items():
            make, most, every = made if isinstance(made, tuple) else (made, 10_000, 1)
            if place % every or construction not in ("", name):
                continue
            replications = family.replications // (5 if short else 1)
            replications = min(most, max(80, replications // (4 if population.slow else 1)))
            keys = (family.name, population.name, replications)
            if replications not in samples:
                draw = rng(0, "coverage", *keys)
                samples[replications] = family.draw(population, replications, draw)
            sample = samples[replications]
            ends: Any = make(sample.data, rng(0, "intervals", *keys))
            truth: Any = sample.truth
            if family.metric:
                ends, truth = {family.metric: ends}, {family.metric: truth}
            for metric in (metric for metric in ends if metric in truth):
                names = (family.name, metric, name, population.name)
                yield count(names, truth[metric], ends[metric], family.bounded)


def thinned(populations: Sequence[Kind], count: int) -> list[Kind]:
    """Return about `count` populations, spread evenly over a fixed shuffle of all."""
    if count >= len(populations):
        return list(populations)
    chosen = np.random.default_rng(17).permutation(len(populations))[:count]
    return [populations[i] for i in np.sort(chosen)]


def count(
    names: tuple[str, str, str, str], truth: Floats, interval: Interval, bounded: bool = False
) -> Cell:
    """Return the cell of intervals whose truths are known; names as the first fields of `Cell`."""
    lower, upper = interval[-2:]
    there = ~(np.isnan(lower) | np.isnan(upper) | np.isnan(truth))
    low, high, true = lower[there], upper[there], truth[there]
    slack = _ROUNDING * np.maximum(1, np.abs(true))
    below, above = int((true < low - slack).sum()), int((true > high + slack).sum())
    if bounded:
        low, high = _bounded(low), _bounded(high)
    mean = float((high - low).mean()) if low.size else float("nan")
    return Cell(*names, int(truth.size), int(low.size), below, above, mean)


def _bounded(values: Floats) -> Floats:
    """Return v / (1 + |v|), on which the widths of ratios are measured: ends may be infinite."""
    with np.errstate(invalid="ignore"):
        return np.sign(values) * (1 - 1 / (1 + np.abs(values)))
