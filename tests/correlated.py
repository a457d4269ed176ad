"""The Bayesian correlated t-test in closed form, which draws and standings are checked against."""

import numpy as np
from scipy import stats

from fairbench.inference.repeats import inflation


def probability_better(first, second, test_share, *, rope=0.0):
    """Return P(expected value of the first - the second > rope), of values (R,) in one order."""
    difference = first - second
    scale = np.sqrt(inflation(len(difference), test_share) * difference.var(ddof=1))
    distance = difference.mean() - rope
    if scale == 0:
        return float(distance > 0)
    return float(stats.t.cdf(distance / scale, len(difference) - 1))
