"""Units of features and targets, so that a fit does not depend on those they are measured in.

Learners compute in single precision, which has 24 binary digits, and some stop at gains that are
fixed numbers. Numbers of an ordinary size keep their unit, and so what is fitted to them its bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Rounding that no learner notices, as a share of the width of the middle half of the values.
_UNNOTICED = 1e-5
# LightGBM takes features under 1e-35 for 0, and single precision ends at 3e38.
_FEATURES = 2.0**-100, 2.0**100
# XGBoost asks for a gain of 1e-6 in squared error, scikit-learn's trees for a variance of 2e-16.
_TARGETS = 2.0**-4, 2.0**20


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

    @staticmethod
    def of_feature(values: Array) -> Unit:
        """Return the unit of a column (n,), NaN where it is missing: its own, if that can be."""
        least, most = _FEATURES
        largest = np.nanmax(np.abs(values), initial=0.0)
        if (not largest or least <= largest <= most) and single_keeps(values):
            return Unit()
        return _of(values, *_FEATURES)

    @staticmethod
    def of_target(y: Array, weight: Array | None = None) -> Unit:
        """Return the unit of values (n,) for trees: their own, if that can be; labels keep it."""
        y = np.asarray(y if weight is None else y[weight > 0], np.float64)
        return _of(y, *_TARGETS)

    def standard(self, y: Array) -> Array:
        """Return values in this unit."""
        return (y - self.shift) / self.scale

    def mean(self, standard: Array) -> Array:
        """Return means as they were."""
        return self.shift + self.scale * standard

    def distribution(self, standard: Array) -> Array:
        """Return (n, 2) means and standard deviations as they were."""
        return np.column_stack([self.mean(standard[:, 0]), self.scale * standard[:, 1]])


def single_keeps(values: Array) -> bool:
    """Say whether single precision keeps the steps between values (n,), of which some may be NaN.

    It is asked of the middle half of the distinct values, so that neither a placeholder nor a long
    tail hides what the others lose.
    """
    with np.errstate(over="ignore", under="ignore"):
        lost = np.abs(values - values.astype(np.float32))
    if not np.nanmax(lost, initial=0.0):
        return True
    middle, width = _middle_half(values)
    inside = np.abs(values - middle) <= width
    return bool(lost[inside].max(initial=0.0) <= _UNNOTICED * width)


def _of(values: Array, least: float, most: float) -> Unit:
    """Return the unit in which the middle half is neither tiny nor huge, and keeps its steps.

    A scale is a power of two, which changes no digit. It comes first: only where it does not help,
    as with Unix seconds, is 0 moved.
    """
    middle, width = _middle_half(values)
    if not width:
        return Unit()
    power = float(2.0 ** np.floor(np.log2(width)))
    unit = Unit(0.0, 1.0 if least <= width <= most else power)
    return unit if single_keeps(unit.standard(values)) else Unit(middle, power)


def _middle_half(values: Array) -> tuple[float, float]:
    """Return the median and the distance of the quartiles of the distinct values; 0 of one."""
    distinct = np.unique(values[~np.isnan(values)])
    if len(distinct) < 2:
        return 0.0, 0.0
    low, middle, high = distinct[[round(p * (len(distinct) - 1)) for p in (0.25, 0.5, 0.75)]]
    return float(middle), float(high - low)
