"""Covering arrays: few combinations of choices in which every pair that can meet, meets."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product

import numpy as np


def all_pairs(
    factors: Mapping[str, Sequence[str]], works: Callable[[tuple[str, ...]], bool]
) -> list[tuple[str, ...]]:
    """Return rows, one choice a factor, that hold each pair of choices found in any working row.

    Each row is the working one that adds the most pairs, the first of equals: the same factors
    always give the same rows. The last pairs are met by the first choices of the other factors.
    """
    kept = [row for row in product(*factors.values()) if works(row)]
    places = [{name: place for place, name in enumerate(names)} for names in factors.values()]
    rows = np.array([[of[name] for of, name in zip(places, row, strict=True)] for row in kept])
    columns = list(combinations(range(len(factors)), 2))
    wanted = [np.zeros((rows[:, a].max() + 1, rows[:, b].max() + 1), bool) for a, b in columns]
    for (a, b), missing in zip(columns, wanted, strict=True):
        missing[rows[:, a], rows[:, b]] = True
    chosen = []
    while any(missing.any() for missing in wanted):
        gain = sum(m[rows[:, a], rows[:, b]] for (a, b), m in zip(columns, wanted, strict=True))
        best = int(np.argmax(gain))
        chosen.append(kept[best])
        for (a, b), missing in zip(columns, wanted, strict=True):
            missing[rows[best, a], rows[best, b]] = False
    return chosen
