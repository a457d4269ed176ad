"""The plain mean of a difference over families of data, with an interval and without a model.

Tasks are averaged within a family and families equally, however large their data are and however
precisely a difference was measured on them: that is the estimand of "the mean over families", and
families are what its uncertainty comes from. The multilevel model (`multilevel`) weighs data sets
by precision; where effects shrink with the size of the data its mean is another one.
"""

from __future__ import annotations

import numpy as np

from fairbench.core.arrays import Floats
from fairbench.inference.comparing.multilevel import FEWEST_FAMILIES, MeasuredDifferences
from fairbench.inference.means import Moments, signed_limits
from fairbench.inference.rates import Limits


def family_means(measured: MeasuredDifferences) -> Floats:
    """Return the mean of each difference over the tasks of each family, (P, F).

    NaN of a family on whose tasks a difference was not measured.
    """
    count = measured.known.astype(float) @ measured.members
    total = np.where(measured.known, measured.means, 0) @ measured.members
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def mean_over_families(means: Floats, *, level: float = 0.95) -> Limits:
    """Return the mean over families of each difference, with its interval, (P,) each.

    Parameters
    ----------
    means : (P, F) of each family; NaN where there is none. A difference on fewer than
        `FEWEST_FAMILIES` families gets NaN.
    level : the level of each interval by itself.

    Notes
    -----
    The ends are the wider of Student's and of Hall's with one more family that lies farther out
    than any (:func:`fairbench.inference.means.signed_limits`). Families are few and their means
    skewed, so that the usual bootstraps of families give intervals that are too short. Where 20
    families are drawn from those of the atlas, percentiles and BCa cover 87 to 89 % for 95 %,
    Student's t 89 to 91 %, a bootstrapped t 91 %, and this 94 to 95 %
    (``python -m benchmarks.family_means``). No construction holds where one family in twenty
    makes the mean, as a sample of twenty then often lacks such a one.
    """
    limits = np.full((3, len(means)), np.nan)
    for difference, family_values in enumerate(means):
        finite = family_values[np.isfinite(family_values)]
        if len(finite) >= FEWEST_FAMILIES:
            limits[:, difference] = signed_limits(Moments.of(finite), level=level)
    return Limits(*limits)
