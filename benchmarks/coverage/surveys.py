"""The family of weights and clusters: rows that count unequally, or that do not come alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import special

from benchmarks.coverage.populations import varied
from benchmarks.coverage.simulate import LEVEL, Construction, Family, Interval, Sample
from fairbench.inference.rates import Limits, difference_limits, rate_limits
from fairbench.inference.survey import Design, SurveyCounts
from fairbench.metrics.rates import selection_rate

Array = NDArray[np.float64]
GAP = 0.1


@dataclass(frozen=True)
class Clustered:
    """Clusters of rows that two groups share.

    Attributes
    ----------
    clusters, rows : how many there are, and the rows of each, half of them of either group.
    within : the correlation of two rows of one cluster and group.
    spread : the standard deviation of the logarithms of the rows' weights.
    rate : of the first group; the second has 10 points more.
    """

    clusters: int
    rows: int
    within: float
    spread: float
    rate: float

    @property
    def name(self) -> str:
        """What tables call it."""
        weights = f"weights of spread {self.spread:g}" if self.spread else "equal weights"
        return (
            f"{self.clusters} clusters of {self.rows} rows, correlation {self.within:g}, "
            f"{weights}, rate {self.rate:g}"
        )

    @property
    def group(self) -> NDArray[np.int64]:
        """The group of every row."""
        return np.tile(np.arange(self.rows) % 2, self.clusters)

    @property
    def cluster(self) -> NDArray[np.int64]:
        """The cluster of every row."""
        return np.repeat(np.arange(self.clusters), self.rows)


@dataclass(frozen=True)
class Rows:
    """Outcomes and weights (R, n) of rows."""

    population: Clustered
    outcome: NDArray[np.int64]
    weight: Array


def _populations(short: bool) -> Sequence[Clustered]:
    clusters, rates = ((50,), (0.3,)) if short else ((20, 50, 200), (0.05, 0.3))
    return [Clustered(*e) for e in product(clusters, (4, 20), (0.0, 0.1, 0.3), (0.0, 0.8), rates)]


def _draw(population: Clustered, replications: int, draw: np.random.Generator) -> Sample:
    first = varied(population.rate, replications, draw)
    rates = np.stack([first, first + GAP], axis=1)
    chance = rates[:, population.group]
    if population.within:
        strength = 1 / population.within - 1
        # Both groups' rates in a cluster have the same rank among those of all clusters.
        rank = draw.random((replications, population.clusters))
        of_cluster = special.betaincinv(
            strength * rates[:, None, :], strength * (1 - rates[:, None, :]), rank[..., None]
        )
        chance = of_cluster[:, population.cluster, population.group]
    outcome = (draw.random(chance.shape) < chance).astype(np.int64)
    weight = np.exp(population.spread * draw.standard_normal(chance.shape))
    truth = {"rate": rates[:, 1], "difference": rates[:, 1] - rates[:, 0]}
    return Sample(Rows(population, outcome, weight), truth)


def _ends(pairs: Sequence[tuple[Limits, Limits]]) -> Mapping[str, Interval]:
    """Return the ends of the second group's rate and of the difference, from every data set's."""
    return {
        name: (np.array([p[i].lower for p in pairs]), np.array([p[i].upper for p in pairs]))
        for i, name in enumerate(("rate", "difference"))
    }


def _ours(data: Rows, _: np.random.Generator) -> Mapping[str, Interval]:
    population, pairs = data.population, []
    for outcome, weight in zip(data.outcome, data.weight, strict=True):
        design = Design.of(len(outcome), weight=weight, clusters=population.cluster)
        counts = SurveyCounts.of(outcome, population.group, design, groups=2)
        limits = counts.limits(selection_rate, level=LEVEL)
        shared = counts.correlation(selection_rate)[0, 1]
        pairs.append((limits.take(1), difference_limits(limits.take(1), limits.take(0), shared)))
    return _ends(pairs)


def _as_independent(data: Rows, _: np.random.Generator) -> Mapping[str, Interval]:
    group, pairs = data.population.group, []
    size = np.bincount(group)
    for outcome, weight in zip(data.outcome, data.weight, strict=True):
        share = np.bincount(group, outcome * weight) / np.bincount(group, weight)
        limits = rate_limits(share * size, size, level=LEVEL)
        pairs.append((limits.take(1), difference_limits(limits.take(1), limits.take(0))))
    return _ends(pairs)


FAMILIES = (
    Family(
        "weights_and_clusters",
        "Weights and clusters",
        "Two groups share clusters, as two people who answer one advertisement do; rows have "
        "weights. The rate is the second group's, the difference that from the first.",
        _populations,
        _draw,
        (
            Construction("ours", _ours),
            Construction("rows as if independent", _as_independent),
        ),
        replications=400,
    ),
)
