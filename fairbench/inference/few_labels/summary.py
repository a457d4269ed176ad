"""What a posterior or an estimate says about a difference: direction, size, interval, fairness."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from fairbench.inference.posterior import central_interval

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Summary:
    """A difference between two groups, unprivileged minus reference.

    Attributes
    ----------
    estimate : its mean.
    direction : sign of the estimate, -1, 0 or 1.
    certainty : probability that the difference has that sign.
    sd, lower, upper : its standard deviation and interval.
    practically_fair : probability that its size is under epsilon.
    """

    estimate: float
    direction: int
    certainty: float
    sd: float
    lower: float
    upper: float
    practically_fair: float


def summarise(draws: Floats, epsilon: float = 0.02, *, level: float = 0.95) -> Summary:
    """Summarise equally weighted draws (T,); any NaN makes everything NaN.

    Parameters
    ----------
    epsilon : the size under which a difference makes no practical difference.
    """
    if np.isnan(draws).any():
        return _undefined()
    estimate = float(draws.mean())
    lower, upper = central_interval(draws, level)
    return Summary(
        estimate,
        int(np.sign(estimate)),
        float((np.sign(draws) == np.sign(estimate)).mean()),
        float(draws.std()),
        float(lower),
        float(upper),
        float((np.abs(draws) < epsilon).mean()),
    )


def summarise_normal(
    estimate: float, error: float, epsilon: float = 0.02, *, level: float = 0.95
) -> Summary:
    """Summarise an estimate whose error is normal, as by the central limit theorem."""
    if np.isnan(estimate) or np.isnan(error):
        return _undefined()
    around = norm(estimate, max(error, np.finfo(float).tiny))
    lower, upper = around.interval(level)
    return Summary(
        estimate,
        int(np.sign(estimate)),
        float(max(around.sf(0), around.cdf(0))),
        error,
        float(lower),
        float(upper),
        float(around.cdf(epsilon) - around.cdf(-epsilon)),
    )


def _undefined() -> Summary:
    nan = float("nan")
    return Summary(nan, 0, nan, nan, nan, nan, nan)
