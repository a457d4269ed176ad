"""Intervals of all rows and of the rows since each mark, all of which hold no matter when you look.

One risk buys the whole family. While all of it holds, a quantity has surely changed where its
interval since a mark and that of all rows up to the mark have nothing in common (Shekhar and Ramdas
2023, "Reducing sequential change detection to sequential estimation").
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fairbench.core.arrays import Floats

FROM_START = 0.9  # of a quantity's risk, what is left to the interval of all rows


def log_evidence_needed(risk: float, restart: ArrayLike = 0) -> Floats:
    """Return the logarithm of the evidence at which a value is outside an interval.

    Parameters
    ----------
    risk : the probability with which any interval of the family may ever be wrong.
    restart : the number, from 1, of the mark from which the interval counts rows; 0 for the
        interval of all rows.
    """
    k = np.asarray(restart, float)
    later = (1 - FROM_START) / np.maximum(k * (k + 1), 1)
    return np.log(2 / (risk * np.where(k == 0, FROM_START, later)))
