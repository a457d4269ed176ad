"""The family of pooled rates: estimates of many groups together, in populations of their model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import special

from benchmarks.coverage.simulate import LEVEL, Construction, Family, Interval, Sample
from fairbench.inference.pooled import pool
from fairbench.inference.rates import rate_limits

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Alike:
    """Groups whose rates' logits vary around that of a rate.

    Attributes
    ----------
    spread : the standard deviation of the logits.
    """

    groups: int
    rows: int
    spread: float
    rate: float

    @property
    def name(self) -> str:
        """What tables call it."""
        return (
            f"{self.groups} groups of {self.rows} rows, logits of spread {self.spread:g} around "
            f"{self.rate:g}"
        )


@dataclass(frozen=True)
class Counted:
    """Counts (R, G) of groups of so many rows."""

    successes: NDArray[np.int64]
    rows: int


def _populations(short: bool) -> Sequence[Alike]:
    groups = (10,) if short else (10, 50)
    return [Alike(*e) for e in product(groups, (30, 200), (0.0, 0.3, 0.6), (0.05, 0.3))]


def _draw(population: Alike, replications: int, draw: np.random.Generator) -> Sample:
    logits = special.logit(population.rate) + draw.uniform(-0.2, 0.2, (replications, 1))
    noise = draw.standard_normal((replications, population.groups))
    rates = special.expit(logits + population.spread * noise)
    counts = Counted(draw.binomial(population.rows, rates), population.rows)
    return Sample(counts, {"rate of every group": rates})


def _ours(data: Counted, draw: np.random.Generator) -> Mapping[str, Interval]:
    size = np.full(data.successes.shape[1], data.rows)
    ends = [pool(each, size, draw).interval(LEVEL) for each in data.successes]
    lower, upper = (np.stack(each) for each in zip(*ends, strict=True))
    return {"rate of every group": (lower, upper)}


def _alone(data: Counted, _: np.random.Generator) -> Mapping[str, Interval]:
    limits = rate_limits(data.successes, data.rows, level=LEVEL)
    return {"rate of every group": (limits.lower, limits.upper)}


FAMILIES = (
    Family(
        "pooled",
        "Pooled rates",
        "Rates of 10 or 50 groups estimated together, where groups resemble each other as the "
        "model says: this is what pooled intervals rest on, and why those of each group alone "
        "stand beside them. Coverage is that over all groups.",
        _populations,
        _draw,
        (Construction("ours", _ours), Construction("each group alone", _alone)),
        replications=200,
    ),
)
