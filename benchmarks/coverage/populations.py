"""Populations of groups whose rates are known: sizes, numbers of groups, base rates and gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats

Integers = NDArray[np.int64]
Kind = TypeVar("Kind")

# Rows of the larger and of the smaller groups.
SIZES = ((20, 20), (50, 50), (200, 200), (2000, 2000))
UNEQUAL_SIZES = ((200, 20), (500, 50), (2000, 200), (2000, 20))
GROUPS = (2, 3, 4, 10, 50)
BASE_RATES = (0.005, 0.03, 0.3, 0.5, 0.97)
GAPS = (0.0, 0.02, 0.1, 0.2)
# Who differs: the last group, the first (a large one, where sizes differ), or all, evenly.
LAST, FIRST, SPREAD = "last", "first", "spread"
_IN_WORDS = {LAST: "in one group", FIRST: "in one large group", SPREAD: "spread over all"}


@dataclass(frozen=True)
class Population:
    """Groups of rows, each with a rate.

    Attributes
    ----------
    sizes : rows of the first half of the groups (at least one), and of the others.
    groups : how many groups there are.
    base : the rate of the groups that do not differ.
    gap : the largest difference of two rates, towards the middle: downwards from over 1/2.
    shape : which groups differ, see above.
    """

    sizes: tuple[int, int]
    groups: int
    base: float
    gap: float
    shape: str

    @property
    def name(self) -> str:
        """What tables call it."""
        large, small = self.sizes
        rows = f"{large}" if large == small else f"{large} and {small}"
        gap = f"gap {self.gap:g} {_IN_WORDS[self.shape]}" if self.gap else "no gap"
        return f"{self.groups} groups of {rows} rows, rate {self.base:g}, {gap}"

    @property
    def slow(self) -> bool:
        """Whether its many pairs take so long that fewer replications are made."""
        return self.groups > 10

    @property
    def rows(self) -> Integers:
        """The rows (G,) of every group."""
        large, small = self.sizes
        first = max(1, self.groups // 2)
        return np.array([large] * first + [small] * (self.groups - first), np.int64)

    def rates(self, replications: int, generator: np.random.Generator) -> Floats:
        """Return (R, G) rates; the base rate varies by a tenth of itself between replications."""
        if self.shape == SPREAD:
            shape = np.linspace(0, 1, self.groups)
        else:
            shape = np.zeros(self.groups)
            shape[0 if self.shape == FIRST else -1] = 1
        direction = -1 if self.base > 0.5 else 1
        return varied(self.base, replications, generator)[:, None] + direction * self.gap * shape


def varied(base: float, replications: int, generator: np.random.Generator) -> Floats:
    """Return (R,) rates within a tenth of `base`, or of 1 - `base` where that is smaller.

    No population then sits where the coverage of discrete counts happens to jump.
    """
    spread = min(base, 1 - base) / 10
    drawn: Floats = base + spread * generator.uniform(-1, 1, replications)
    return drawn


def all_populations(groups: Sequence[int] = GROUPS) -> list[Population]:
    """Return every population of so many groups: some 1,600 of all numbers of groups."""
    result = []
    for sizes, count, base, gap in product((*SIZES, *UNEQUAL_SIZES), groups, BASE_RATES, GAPS):
        for shape in _shapes(sizes, count, gap):
            result.append(Population(sizes, count, base, gap, shape))
    return result


def _shapes(sizes: tuple[int, int], groups: int, gap: float) -> list[str]:
    """Return the shapes that differ from each other."""
    if not gap:
        return [LAST]
    unequal = [FIRST] if sizes[0] != sizes[1] else []
    return [LAST, *unequal, *([SPREAD] if groups > 2 else [])]


def thinned(populations: Sequence[Kind], count: int) -> list[Kind]:
    """Return about `count` populations, spread evenly over a fixed shuffle of all."""
    if count >= len(populations):
        return list(populations)
    chosen = np.random.default_rng(17).permutation(len(populations))[:count]
    return [populations[i] for i in np.sort(chosen)]
