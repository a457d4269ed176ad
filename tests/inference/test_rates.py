"""Limits of rates, differences and ratios: known values, exact coverage, and what never fails."""

import numpy as np
import pytest
from scipy.stats import beta, betabinom, binom

from fairbench.inference.rates import (
    Limits,
    difference_limits,
    mean_limits,
    probability_ratio_below,
    quick_limits,
    rate_limits,
    rate_sequence,
    ratio_limits,
)


@pytest.mark.parametrize(("n", "added"), [(20, 0.25), (60, 0.375), (90, 0.5), (2000, 0.5)])
def test_inside_the_edges_they_are_jeffreys_or_of_few_rows_halfway_to_the_exact_ones(n, added):
    x = np.arange(2, n - 1)
    limits = rate_limits(x, n)
    np.testing.assert_allclose(limits.lower, beta.ppf(0.025, x + added, n - x + 1 - added))
    np.testing.assert_allclose(limits.upper, beta.ppf(0.975, x + 1 - added, n - x + added))


@pytest.mark.parametrize("n", range(1, 91))
def test_every_rate_of_few_rows_is_covered(n):
    """The least coverage of all rates is just beside an end of some interval."""
    x = np.arange(n + 1)
    limits = rate_limits(x, n)
    rates = np.add.outer([-1e-9, 1e-9], np.concatenate(limits[1:])).ravel().clip(1e-12, 1 - 1e-12)
    holds = (limits.lower[:, None] <= rates) & (rates <= limits.upper[:, None])
    covered = (binom.pmf(x[:, None], n, rates) * holds).sum(axis=0)
    assert covered.min() > (0.9285 if n in (8, *range(84, 91)) else 0.93)


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99, 0.9999])
@pytest.mark.parametrize("n", [1, 5, 20, 60, 90, 1000, 10**6])
def test_the_quick_limits_are_the_limits_to_a_hundredth_of_their_width(n, level):
    """Of whole and broken counts, at the edges and inside."""
    few = np.clip(np.linspace(0, 30, 301), 0, n)
    x = np.concatenate([few, n - few, np.linspace(0, n, 101)])[:, None]
    quick, limits = (of(x, np.array([n]), level=level)[1:] for of in (quick_limits, rate_limits))
    assert (np.abs(np.subtract(quick, limits)) < 0.01 * np.subtract(*limits[::-1])).all()


@pytest.mark.parametrize("level", [95, -0.1, float("nan"), [0.95, 95]])
def test_a_level_that_is_no_probability_is_refused(level):
    with pytest.raises(ValueError, match="must be between 0 and 1"):
        rate_limits(3, 10, level=level)


def test_at_the_edges_they_are_the_modified_ones():
    n, tail = 100, 0.025
    limits = rate_limits([0, 1, n - 1, n], n)
    np.testing.assert_allclose(limits.lower[:2], [0, 1 - (1 - tail) ** (1 / n)])
    upper = 1 - tail ** (1 / n), beta.ppf(1 - tail, 1.5, n - 0.5)
    np.testing.assert_allclose(limits.upper[:2], upper)
    np.testing.assert_allclose(1 - limits.upper[::-1], limits.lower)


def test_limits_of_a_single_row_and_of_no_row():
    limits = rate_limits([0, 1, 0], [1, 1, 0])
    assert np.isnan(limits.value[2])
    np.testing.assert_allclose(limits.lower, [0, 0.025, 0])
    np.testing.assert_allclose(limits.upper, [0.975, 1, 1])


def test_nothing_jumps_between_whole_numbers():
    ends = np.array(rate_limits(np.linspace(0, 20, 4001), 20)[1:])
    assert (np.diff(ends) >= 0).all() and np.diff(ends).max() < 2e-3


def enumerated(of_two, true, *rates, rows):
    """Return how probably the interval of two rates holds what is true of them."""
    hits = [np.arange(n + 1) for n in rows]
    limits = of_two(*(rate_limits(x, n) for x, n in zip(np.ix_(*hits), rows, strict=True)))
    chance = np.outer(*(binom.pmf(x, n, p) for x, n, p in zip(hits, rows, rates, strict=True)))
    return chance[(limits.lower <= true) & (true <= limits.upper)].sum()


@pytest.mark.parametrize("p", [0.005, 0.03, 0.3, 0.5, 0.97])
@pytest.mark.parametrize("rows", [(20, 20), (50, 20), (200, 20), (200, 200)])
def test_differences_are_covered_by_enumeration(p, rows):
    for difference in (0, 0.02, 0.1, 0.2):
        if p + difference <= 1:
            covered = enumerated(difference_limits, difference, p + difference, p, rows=rows)
            assert covered > 0.94, difference


@pytest.mark.parametrize(("p", "q"), [(0.05, 0.05), (0.3, 0.3), (0.1, 0.5), (0.5, 0.1)])
@pytest.mark.parametrize("rows", [(50, 50), (200, 20)])
def test_ratios_are_covered_by_enumeration(p, q, rows):
    assert enumerated(ratio_limits, p / q, p, q, rows=rows) > 0.94


def test_ratios_end_where_the_difference_does():
    """The ratio r is an end where the interval of first - r second ends at 0."""
    first, second = rate_limits(12, 40), rate_limits(20, 50)
    limits = ratio_limits(first, second)
    for end, place in ((limits.lower, "lower"), (limits.upper, "upper")):
        scaled = Limits(*(end * factor for factor in second))
        assert getattr(difference_limits(first, scaled), place) == pytest.approx(0, abs=1e-12)
        tail = 0.025 if place == "lower" else 0.975
        assert probability_ratio_below(first, second, end) == pytest.approx(tail)


def test_ratios_of_zero_and_over_zero_are_answers():
    limits = ratio_limits(rate_limits([0, 5, 0], 20), rate_limits([5, 0, 0], 20))
    assert limits.value[0] == limits.lower[0] == 0
    assert np.isnan(limits.value[1:]).all()
    assert limits.lower[1] > 1
    assert limits.upper[1] == limits.upper[2] == np.inf
    assert limits.lower[2] == 0


def test_the_sixth_of_two_thousand_is_not_excluded():
    limits = difference_limits(rate_limits(0, 20), rate_limits(6, 2000))
    assert limits.lower < limits.value < limits.upper


def test_f1_is_a_share_of_the_union():
    result = rate_limits(12, 30).weighted(2, 1)
    assert result.value == pytest.approx(2 * 12 / (2 * 12 + 18))
    assert result.lower < result.value < result.upper


def test_a_mean_is_half_the_difference_from_the_mirror_image():
    first, second = rate_limits(12, 30), rate_limits(5, 40)
    mirrored = Limits(1 - second.value, 1 - second.upper, 1 - second.lower)
    result, difference = mean_limits(first, second), difference_limits(first, mirrored)
    for one, other in zip(result, difference, strict=True):
        assert one == pytest.approx((other + 1) / 2)


# Intervals of rates that hold at every look.


def test_ends_of_a_rate_are_where_the_evidence_is_enough():
    limits = rate_sequence([0, 3, 300, 10, 0], [10, 10, 1000, 10, 0], np.log(20))
    assert limits.lower[0] == limits.lower[4] == 0
    assert limits.upper[3] == limits.upper[4] == 1
    evidence = betabinom.logpmf(300, 1000, 0.5, 0.5) - binom.logpmf(300, 1000, limits.lower[2])
    assert np.allclose(evidence, np.log(20))
    value, lower, upper = (end[:4] for end in limits)
    assert ((lower <= value) & (value <= upper)).all()
