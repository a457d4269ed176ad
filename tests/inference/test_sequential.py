"""Intervals of rates and means that hold at every look."""

import itertools

import numpy as np
import pytest
from scipy.stats import betabinom, binom

from fairbench.inference.rates import (
    Sums,
    log_evidence_above,
    log_evidence_of_rate,
    rate_sequence,
)


def test_evidence_against_a_rate_is_the_ratio_of_two_binomials():
    x = np.arange(21)
    ratio = betabinom.logpmf(x, 20, 0.5, 0.5) - binom.logpmf(x, 20, 0.3)
    assert np.allclose(log_evidence_of_rate(x, 20, 0.3), ratio)


def test_ends_of_a_rate_are_where_the_evidence_is_enough():
    limits = rate_sequence([0, 3, 300, 10], [10, 10, 1000, 10], np.log(20))
    assert limits.lower[0] == 0
    assert limits.upper[3] == 1
    assert np.allclose(log_evidence_of_rate(300, 1000, limits.lower[2]), np.log(20))
    assert (limits.lower <= limits.value).all()
    assert (limits.value <= limits.upper).all()
    none = rate_sequence(0, 0, np.log(20))
    assert (float(none.lower), float(none.upper)) == (0, 1)


@pytest.mark.parametrize(
    ("values", "chances"),
    [([-1, 1], [0.5, 0.5]), ([-0.2, 0.8], [0.8, 0.2]), ([-0.9, 0.1], [0.1, 0.9])],
)
def test_evidence_about_a_mean_is_at_most_1_on_average_if_the_claim_is_true(values, chances):
    """By enumeration of eight values."""
    mean, average = np.dot(values, chances), 0.0
    for drawn in itertools.product(range(2), repeat=8):
        x = np.array(values)[list(drawn)]
        chance = np.prod(np.array(chances)[list(drawn)])
        average += chance * np.exp(log_evidence_above(Sums(8, x.sum(), (x**2).sum()), mean))
    assert average <= 1


def test_intervals_of_a_mean_hold_at_every_look():
    """Residuals of scores that are off by 0.1, looked at after each of 3000."""
    generator, missed = np.random.default_rng(0), 0
    for _ in range(200):
        score = generator.uniform(0.1, 0.7, 3000)
        residual = (generator.random(3000) < score + 0.1) - score
        sums = Sums(np.arange(1, 3001), np.cumsum(residual), np.cumsum(residual**2))
        needed = np.log(2 / 0.05)
        above = log_evidence_above(sums, 0.1) >= needed
        mirrored = Sums(sums.size, -np.asarray(sums.total), sums.squares)
        missed += bool((above | (log_evidence_above(mirrored, -0.1) >= needed)).any())
    assert missed <= 0.05 * 200


def test_the_interval_of_a_mean_narrows_as_a_fixed_one_does():
    n = np.array([100, 10_000, 1_000_000])
    limits = Sums(n, 0.1 * n, 0.2 * n).limits(np.log(40))
    assert np.allclose(limits.value, 0.1)
    fixed = 1.96 * np.sqrt(0.19 / n)
    assert ((limits.upper - limits.lower) / 2 < 2.4 * fixed).all()
