"""Posteriors of accuracy and equal opportunity difference from the counts of cross-validations.

Counts are (..., G, 4), the reference group first, of the label that is 1 in the data (German: a bad
loan). The paper's label is the good loan, so that every table is turned round here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.inference.comparing.objectives import objective
from fairbench.inference.comparing.practical_difference import (
    Comparison,
    Region,
    highest_density_region,
)
from fairbench.inference.posterior import paired_draws, table_draws

FOLDS, LEVEL = 10, 0.95
# Signed as in the published code: the other group's true positive rate minus the reference's.
OBJECTIVES = ("accuracy", "equal_opportunity_difference")
ROPE = (0.01, 0.01)


def favourable(counts: NDArray[Any]) -> NDArray[Any]:
    """Return the tables of label 0: TN, FP, FN, TP become TP, FN, FP, TN."""
    return counts[..., ::-1]


def short(name: str) -> str:
    """Return an algorithm's name as it fits a table."""
    return name.replace("Disparate impact remover", "DI remover")


def values(counts: NDArray[Any]) -> Floats:
    """Return both objectives of every table, (..., G, 4) -> (..., 2)."""
    turned = favourable(counts)
    return np.stack([objective(name)(turned) for name in OBJECTIVES], axis=-1)


@dataclass(frozen=True, eq=False)
class Cloud:
    """Draws (R, T, 2) of both objectives from each of R cross-validations."""

    draws: Floats

    @classmethod
    def of(
        cls,
        counts: NDArray[Any],
        worth: float | Floats,
        generator: np.random.Generator,
        *,
        draws: int,
        predictive: bool = False,
    ) -> Cloud:
        """Draw from (R, G, 4) pooled counts, each worth `worth`, by the posterior or beyond it."""
        tables = table_draws(counts * worth, draws, generator, predictive=predictive)
        return cls(np.moveaxis(values(tables), 1, 0))

    @classmethod
    def paired(
        cls, joint: NDArray[Any], worth: float, generator: np.random.Generator, *, draws: int
    ) -> tuple[Cloud, Cloud]:
        """Draw two algorithms from (R, G, 8) joint counts, each worth `worth`."""
        tables = paired_draws(joint * worth, draws, generator)
        return cls(np.moveaxis(values(tables[0]), 1, 0)), cls(np.moveaxis(values(tables[1]), 1, 0))

    def regions(self) -> list[Region]:
        """Return the 95 % region of every cross-validation's draws."""
        return [highest_density_region(_defined(each), LEVEL) for each in self.draws]

    def events(self, other: Cloud) -> list[dict[str, float]]:
        """Return, by cross-validation, the probabilities that A (this) or B outperforms."""
        return [events(one - two) for one, two in zip(self.draws, other.draws, strict=False)]


def events(delta: Floats) -> dict[str, float]:
    """Return the events' shares among differences A - B, (N, 2)."""
    return Comparison(OBJECTIVES, _defined(delta), np.array(ROPE)).events()


def _defined(draws: Floats) -> Floats:
    kept: Floats = draws[~np.isnan(draws).any(axis=1)]
    return kept
