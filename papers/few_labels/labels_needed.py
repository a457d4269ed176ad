"""How many labels a gap of true positive rates takes from labels alone: Ji et al.'s 96,000.

Their example (NeurIPS 2020), from memory, the text not being at hand: one in five people has label
1, one in five belongs to the smaller group, true positive rates are 0.95 and 0.90; for a chance of
95 % that the estimated gap lies between 0.04 and 0.06, some 96,000 rows must have labels. Here the
smallest number by a closed form and by simulation. ``python -m papers.few_labels.labels_needed``
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from fairbench.components.papers import run_main
from fairbench.core.seeds import rng

PUBLISHED = 96_000


@dataclass(frozen=True)
class Population:
    """Two groups, the larger first.

    Attributes
    ----------
    shares : of rows. base_rates : of label 1. rates : true positive rates.
    """

    shares: tuple[float, float] = (0.8, 0.2)
    base_rates: tuple[float, float] = (0.2, 0.2)
    rates: tuple[float, float] = (0.95, 0.90)

    @property
    def positives(self) -> NDArray[np.float64]:
        """Return the share of rows that are positives of a group, (2,)."""
        positives: NDArray[np.float64] = np.multiply(self.shares, self.base_rates)
        return positives

    @property
    def gap(self) -> float:
        """Return the smaller group's true positive rate minus the larger's."""
        return self.rates[1] - self.rates[0]


def by_normal(population: Population, margin: float = 0.01, level: float = 0.95) -> int:
    """Return the rows for which the gap's normal error stays within `margin` at `level`.

    z² Σ θ (1 - θ) / (share x base rate) / margin².
    """
    rates = np.array(population.rates)
    variance = float((rates * (1 - rates) / population.positives).sum())
    return ceil(NormalDist().inv_cdf((1 + level) / 2) ** 2 * variance / margin**2)


def chance(
    population: Population,
    rows: int,
    generator: np.random.Generator,
    *,
    margin: float = 0.01,
    draws: int = 100_000,
) -> float:
    """Return how often the gap of `rows` labelled rows is within `margin` of the true one.

    Samples without a positive in both groups have no gap, and count as outside.
    """
    shares = np.append(population.positives, 1 - population.positives.sum())
    positives = generator.multinomial(rows, shares, size=draws)[:, :2]
    correct = generator.binomial(positives, population.rates)
    rates = correct / np.maximum(positives, 1)
    within = np.abs(rates[:, 1] - rates[:, 0] - population.gap) <= margin
    return float((within & (positives > 0).all(axis=1)).mean())


def by_simulation(
    population: Population, *, margin: float = 0.01, level: float = 0.95, step: int = 1000
) -> int:
    """Return the smallest multiple of `step` whose simulated chance is at least `level`.

    The chance of every number of rows is simulated from the same seed.
    """
    low, high = 0, 1
    while _short(population, high * step, margin, level):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if _short(population, middle * step, margin, level):
            low = middle
        else:
            high = middle
    return high * step


def _short(population: Population, rows: int, margin: float, level: float) -> bool:
    return chance(population, rows, rng(0, "labels_needed"), margin=margin) < level


def main() -> None:
    """Print both numbers and the published one, and the labels for smaller margins and groups."""
    example = Population()
    print(f"published: {PUBLISHED:,}; normal: {by_normal(example):,}; ", end="")
    print(f"simulated: {by_simulation(example):,}")
    within = chance(example, PUBLISHED, rng(0, "labels_needed"), draws=1_000_000)
    print(f"chance at {PUBLISHED:,} rows: {within:.4f}")
    for share in (0.5, 0.2, 0.1, 0.05):
        population = Population(shares=(1 - share, share))
        rows = [f"±{m:g}: {by_normal(population, m):,}" for m in (0.05, 0.02, 0.01)]
        print(f"smaller group of {share:.0%}: rows for {'; '.join(rows)}")


if __name__ == "__main__":
    run_main(main)
