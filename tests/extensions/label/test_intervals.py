"""Intervals that hold whenever one stops, and of the group that is found to be worst."""

from statistics import NormalDist

import numpy as np
import pytest
from scipy import special
from scipy.optimize import brentq

from fairbench.inference.rates import rate_limits
from fairbench_label.estimates import (
    candidates,
    found_limits,
    lasting_level,
    sequence_limits,
    together,
)


def ever_missed(limits, rate, most, first=1):
    """Return the exact probability that any interval of 1 .. `most` rows misses the rate."""
    chance, missed = np.zeros(most + 2), 0.0
    chance[0] = 1
    for n in range(1, most + 1):
        grown = chance * (1 - rate)
        grown[1:] += chance[:-1] * rate
        if n >= first:
            result = limits(np.arange(n + 1), np.full(n + 1, n))
            out = np.flatnonzero((result.lower > rate) | (result.upper < rate))
            missed += grown[out].sum()
            grown[out] = 0
        chance = grown
    return missed


@pytest.mark.thorough
@pytest.mark.parametrize("rate", [0.05, 0.5, 0.8])
def test_no_interval_of_a_growing_sample_misses(rate):
    """All samples of up to 200 rows are enumerated."""
    assert ever_missed(sequence_limits, rate, 200) <= 0.05
    assert ever_missed(rate_limits, rate, 200, first=30) > 0.2


@pytest.mark.thorough
@pytest.mark.parametrize(("right", "rows"), [(3, 10), (45.5, 60.25), (280, 300)])
def test_ends_are_where_the_averaged_likelihood_is_twenty_times_that_of_the_rate(right, rows):
    def ratio(p):
        average = special.betaln(right + 0.5, rows - right + 0.5) - special.betaln(0.5, 0.5)
        return average - right * np.log(p) - (rows - right) * np.log1p(-p) - np.log(20)

    limits = sequence_limits(right, rows)
    assert limits.lower == pytest.approx(brentq(ratio, 1e-9, right / rows), abs=1e-9)
    assert limits.upper == pytest.approx(brentq(ratio, right / rows, 1 - 1e-9), abs=1e-9)


def test_nothing_and_all_are_at_the_ends():
    limits = sequence_limits([0, 0, 7], [0, 7, 7])
    np.testing.assert_array_equal(limits.lower[:2], 0)
    np.testing.assert_array_equal(limits.upper[[0, 2]], 1)
    assert np.isnan(limits.value[0])
    assert 0 < limits.lower[2] < 1


def test_a_lasting_mean_is_never_missed_in_the_long_run():
    """Normal means looked at after each of 30 to 1000 rows."""
    draw, rows = np.random.default_rng(0), np.arange(1, 1001)
    reach = special.ndtri((1 + lasting_level(0.95, rows)) / 2) / np.sqrt(rows)
    means = draw.normal(size=(2000, 1000)).cumsum(axis=1) / rows
    assert (np.abs(means) > reach)[:, 29:].any(axis=1).mean() < 0.05
    assert reach[99] * 10 == pytest.approx(3.11, abs=0.01)


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 10])
def test_a_lasting_level_of_few_rows_has_a_quantile(rows):
    assert 5 < NormalDist().inv_cdf((1 + float(lasting_level(0.95, rows))) / 2) < 9


def test_the_group_found_worst_of_ten_alike_is_not_as_bad_as_it_looks():
    draw, rows, level = np.random.default_rng(1), 30, together(0.95, 10)
    right = draw.binomial(rows, 0.8, (4000, 10))
    single, wider = (rate_limits(right, rows, level=confidence) for confidence in (0.95, level))
    worst = right.argmin(axis=1)[:, None]
    naive, ours = (
        np.take_along_axis(ends, worst, 1)
        for ends in (single.upper, found_limits(single, wider, lowest=True).upper)
    )
    assert (naive >= 0.8).mean() < 0.85
    assert (ours >= 0.8).mean() > 0.95
    highest = found_limits(single, wider, lowest=False)
    np.testing.assert_array_equal(highest.upper, single.upper)
    np.testing.assert_array_equal(highest.lower, wider.lower)


def test_the_worst_group_is_among_the_candidates():
    draw, rates = np.random.default_rng(2), np.array([0.6, 0.7, 0.9, 0.9])
    right = draw.binomial(60, rates, (1000, 4))
    kept = [candidates(rate_limits(hits, 60, level=together(0.95, 4)), lowest=True)
            for hits in right]  # fmt: skip
    assert np.mean(kept, axis=0)[0] > 0.95
    assert np.mean(kept, axis=0)[2] < 0.32
    errors = 1 - right[0] / 60
    same = candidates(rate_limits(60 * errors, 60, level=together(0.95, 4)), lowest=False)
    np.testing.assert_array_equal(same, kept[0])
