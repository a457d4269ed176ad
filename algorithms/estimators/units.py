"""Standardises a target, so that a fit does not depend on the unit it is measured in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Unit:
    """Values are `shift` + `scale` times standard ones."""

    shift: float = 0.0
    scale: float = 1.0

    @staticmethod
    def of(y: Array, weight: Array | None = None) -> Unit:
        """Return the unit in which `y` has mean 0 and, unless constant, standard deviation 1."""
        mean = float(np.average(y, weights=weight))
        sd = float(np.sqrt(np.average((y - mean) ** 2, weights=weight)))
        return Unit(mean, sd or 1.0)

    def standard(self, y: Array) -> Array:
        """Return values in this unit."""
        return (y - self.shift) / self.scale

    def mean(self, standard: Array) -> Array:
        """Return means as they were."""
        return self.shift + self.scale * standard

    def distribution(self, standard: Array) -> Array:
        """Return (n, 2) means and standard deviations as they were."""
        return np.column_stack([self.mean(standard[:, 0]), self.scale * standard[:, 1]])
