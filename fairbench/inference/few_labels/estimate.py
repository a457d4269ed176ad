"""An estimate of a rate per group with its standard error, and differences of such."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RateEstimate:
    """A rate of every group; NaN where it is undefined.

    Attributes
    ----------
    value, error : (G,) estimates and standard errors, independent between groups.
    """

    value: Floats
    error: Floats

    def differences(self) -> RateEstimate:
        """Return every other group minus the reference, (G - 1,)."""
        error = np.hypot(self.error[1:], self.error[0])
        return RateEstimate(self.value[1:] - self.value[0], error)
