"""The families of pooled rates: estimates of many groups together, and whether gaps are small."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import special

from benchmarks.coverage.simulate import LEVEL, Construction, Family, Interval, Sample
from fairbench.core.arrays import Floats
from fairbench.inference.gaps import GroupLimits, largest_gap, probability_below
from fairbench.inference.pooled import pool
from fairbench.inference.rates import rate_limits


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
    ends = [pool(success, size, draw).interval(LEVEL) for success in data.successes]
    lower, upper = (np.stack(each) for each in zip(*ends, strict=True))
    return {"rate of every group": (lower, upper)}


def _alone(data: Counted, _: np.random.Generator) -> Mapping[str, Interval]:
    limits = rate_limits(data.successes, data.rows, level=LEVEL)
    return {"rate of every group": (limits.lower, limits.upper)}


EPSILON = 0.05


@dataclass(frozen=True)
class Apart:
    """Groups of which the last differs, or that combine three attributes of unequal values.

    Attributes
    ----------
    sizes : rows of every group; of combinations, of all groups together.
    rates : of all groups but the last, and of the last.
    combined : whether the groups are combinations, of 2, 3 and 4 values.
    """

    sizes: tuple[int, ...]
    rates: tuple[float, float]
    combined: bool = False

    @property
    def name(self) -> str:
        """What tables call it."""
        first, last = self.rates
        if self.combined:
            return f"24 combinations of three attributes in {self.sizes[0]} rows, rate {first:g}"
        rows = " and ".join(f"{n}" for n in dict.fromkeys(self.sizes))
        return f"{len(self.sizes)} groups of {rows} rows, rates {first:g} and {last:g}"


_VALUES = ((0.6, 0.4), (0.6, 0.3, 0.1), (0.5, 0.3, 0.15, 0.05))
_CODES = np.array(list(product(*(range(len(shares)) for shares in _VALUES))))


@dataclass(frozen=True)
class Compared:
    """Counts (R, G) of groups, of so many rows, and the attributes' codes (G, K) if combined."""

    successes: NDArray[np.int64]
    rows: NDArray[np.int64]
    attributes: NDArray[np.int64] | None


def _apart(short: bool) -> Sequence[Apart]:
    combined = [Apart((n,), (rate, rate), True) for n, rate in ((800, 0.3), (2000, 0.1))]
    others = [
        Apart((3000, 30), (0.999, 0.946)),
        Apart((3000, 30), (0.5, 0.449)),
        Apart((500, 30, 30), (0.97, 0.918)),
        Apart((500,) * 10, (0.3, 0.3)),
        Apart((200,) * 10, (0.3, 0.351)),
        Apart((50000, 5), (0.3, 0.3)),
        Apart((50000, 500, 5), (0.3, 0.351)),
    ]
    return [*combined[:1], *others[:4]] if short else [*combined, *others]


def _draw_apart(population: Apart, replications: int, draw: np.random.Generator) -> Sample:
    """Draw counts; the truth is the widest gap between groups that have rows."""
    first, last = population.rates
    if population.combined:
        shares = np.prod([np.array(v)[c] for v, c in zip(_VALUES, _CODES.T, strict=True)], axis=0)
        rows = draw.multinomial(population.sizes[0], shares, replications)
    else:
        rows = np.tile(np.array(population.sizes), (replications, 1))
    rates = np.full(rows.shape, first)
    rates[:, -1] = last
    attributes = _CODES if population.combined else None
    data = Compared(draw.binomial(rows, rates), rows, attributes)
    return Sample(data, {"P(gap < 0.05)": np.full(replications, abs(first - last))})


def _said(probability: Floats) -> Mapping[str, Interval]:
    """Return where gaps are said to lie: over epsilon under 5 %, under it over 95 %."""
    lower = np.where(probability < 1 - LEVEL, EPSILON, 0.0)
    return {"P(gap < 0.05)": (lower, np.where(probability > LEVEL, EPSILON, 1.0))}


def _posterior_below(data: Compared, draw: np.random.Generator) -> Floats:
    pairs = zip(data.successes, data.rows, strict=True)
    some = [(y[n > 0], n[n > 0], n > 0) for y, n in pairs]
    codes = data.attributes
    return np.array(
        [
            pool(y, n, draw, attributes=None if codes is None else codes[has], draws=400).gap_below(
                EPSILON
            )
            for y, n, has in some
        ]
    )


def _below_posterior(data: Compared, draw: np.random.Generator) -> Mapping[str, Interval]:
    return _said(_posterior_below(data, draw))


def _below_ours(data: Compared, draw: np.random.Generator) -> Mapping[str, Interval]:
    limits = GroupLimits.of(data.successes, data.rows, level=LEVEL).only(data.rows > 0)
    gap, posterior = largest_gap(limits), _posterior_below(data, draw)
    return _said(probability_below(posterior, gap.lower, gap.upper, EPSILON, level=LEVEL))


FAMILIES = (
    Family(
        "pooled",
        "Pooled rates",
        "The rates of 10 or 50 groups are estimated together. The groups resemble each other as "
        "the model assumes: *logits of spread 0.3 around 0.05* means that the logits of the "
        "groups' rates have a standard deviation of 0.3 around that of 0.05. Pooled intervals "
        "rely on this assumption, so they are always shown beside the intervals of each group "
        "alone. Coverage is over all groups.",
        _populations,
        _draw,
        (Construction("ours", _ours), Construction("each group alone", _alone)),
        replications=200,
    ),
    Family(
        "small_gaps",
        "Whether a gap is small",
        "The probability P(gap < 0.05) is read as a statement. Below 5 %, it says that the gap is "
        "larger than 0.05; above 95 %, that it is smaller; in between, it says nothing. So a miss "
        "is a false statement, and an interval is narrow if something is said. Our probability "
        "goes below 5 % or above 95 % only if the interval of the gap agrees; *posterior alone* "
        "does not consult that interval.",
        _apart,
        _draw_apart,
        (Construction("ours", _below_ours), Construction("posterior alone", _below_posterior)),
        replications=600,
    ),
)
