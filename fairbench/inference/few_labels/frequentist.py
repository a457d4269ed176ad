"""The rates of the labelled rows alone, with binomial standard errors."""

from __future__ import annotations

import numpy as np

from fairbench.inference.few_labels.estimate import RateEstimate
from fairbench.metrics.rates import Counts, Rate


def frequentist(counts: Counts, rate: Rate) -> RateEstimate:
    """Estimate a rate of every group by that of its labelled rows.

    The variance is the delta method's for a ratio of multinomial sums, which is p (1 - p) / n for
    a proportion: none at all where all labelled rows agree, so the interval is then too short.

    Parameters
    ----------
    counts : (G, 4) labelled TN, FP, FN, TP.
    """
    value = rate(counts)
    residual = np.array(rate.numerator) - value[:, None] * np.array(rate.denominator)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt((counts * residual**2).sum(axis=-1)) / (counts @ np.array(rate.denominator))
    return RateEstimate(value, error)
