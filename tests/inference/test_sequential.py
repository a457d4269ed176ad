"""Intervals of rates that hold at every look."""

import numpy as np
from scipy.stats import betabinom, binom

from fairbench.inference.rates import _log_evidence_of_rate, rate_sequence


def test_evidence_against_a_rate_is_the_ratio_of_two_binomials():
    x = np.arange(21)
    ratio = betabinom.logpmf(x, 20, 0.5, 0.5) - binom.logpmf(x, 20, 0.3)
    assert np.allclose(_log_evidence_of_rate(x, 20, 0.3), ratio)


def test_ends_of_a_rate_are_where_the_evidence_is_enough():
    limits = rate_sequence([0, 3, 300, 10], [10, 10, 1000, 10], np.log(20))
    assert limits.lower[0] == 0
    assert limits.upper[3] == 1
    assert np.allclose(_log_evidence_of_rate(300, 1000, limits.lower[2]), np.log(20))
    assert (limits.lower <= limits.value).all()
    assert (limits.value <= limits.upper).all()
    none = rate_sequence(0, 0, np.log(20))
    assert (float(none.lower), float(none.upper)) == (0, 1)
