"""Largest gaps, smallest ratios and pairs: what they hold, in simulation and by construction."""

import numpy as np
import pytest
from scipy import stats

from fairbench.inference import gaps
from fairbench.inference.gaps import (
    GroupLimits,
    _range_quantile,
    gap_of_noise,
    largest_gap,
    leads,
    pairs,
    probability_below,
    simultaneous_level,
    smallest_ratio,
    surest_gap,
)
from fairbench.inference.rates import Limits, difference_limits, rate_limits

REPLICATIONS = 2000
# 93 % by five standard errors.
LEAST = 0.93 - 5 * np.sqrt(0.93 * 0.07 / REPLICATIONS)
POPULATIONS = [
    ([100] * 2, [0.3, 0.3]),
    ([2000, 20], [0.003, 0.003]),
    ([100] * 8, [0.3] * 7 + [0.4]),
    ([30, 1000, 200], [0.1, 0.1, 0.3]),
    ([50] * 20, list(np.linspace(0.3, 0.5, 20))),
    ([500] * 10, [0.3] * 10),
    ([20, 2000] * 5, [0.97] * 10),
]


def counts_of(sizes, rates, seed=0):
    draw = np.random.default_rng(seed)
    return draw.binomial(sizes, rates, size=(REPLICATIONS, len(sizes)))


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.9999])
@pytest.mark.parametrize("groups", [3, 10, 200])
def test_the_range_of_normals_is_the_studentised_range_of_scipy(groups, level):
    expected = stats.studentized_range.ppf(level, groups, np.inf)
    assert _range_quantile(level, groups) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("sizes", "rates"), POPULATIONS)
def test_the_largest_gap_is_covered(sizes, rates):
    gap = largest_gap(GroupLimits.of(counts_of(sizes, rates), sizes))
    truth = max(rates) - min(rates)
    assert ((gap.lower <= truth) & (truth <= gap.upper)).mean() > LEAST
    assert ((gap.lower <= gap.value) & (gap.value <= gap.upper)).all()


@pytest.mark.parametrize(("sizes", "rates"), POPULATIONS)
def test_the_smallest_ratio_is_covered(sizes, rates):
    result = smallest_ratio(GroupLimits.of(counts_of(sizes, rates), sizes))
    truth = min(rates) / max(rates)
    assert ((result.lower <= truth) & (truth <= result.upper)).mean() > LEAST
    known = ~np.isnan(result.value)
    assert ((result.lower <= result.value) & (result.value <= result.upper))[known].all()


@pytest.mark.parametrize(("sizes", "rates"), POPULATIONS)
def test_the_larger_of_two_gaps_is_covered(sizes, rates):
    other = rates[::-1]
    gap = largest_gap(
        GroupLimits.of(counts_of(sizes, rates), sizes, rates=2),
        GroupLimits.of(counts_of(sizes, other, seed=1), sizes, rates=2),
    )
    truth = max(rates) - min(rates)
    assert ((gap.lower <= truth) & (truth <= gap.upper)).mean() > LEAST


def test_among_equal_groups_no_pair_is_named_more_often_than_allowed():
    sizes = [200] * 10
    named = leads(GroupLimits.of(counts_of(sizes, [0.3] * 10), sizes)) > 0
    assert named.any(axis=(-2, -1)).mean() < 0.07


def test_more_true_pairs_are_named_than_with_bonferroni():
    """Newcombe's intervals (Wilson limits) at 1 - 0.05 / pairs, a pair at a time."""
    sizes, rates = [300] * 8, np.linspace(0.2, 0.4, 8)
    counts = counts_of(sizes, rates)
    named = (leads(GroupLimits.of(counts, sizes)) > 0).sum()
    z = stats.norm.ppf(1 - 0.05 / 28 / 2)
    p = counts / 300
    centre, reach = p + z**2 / 600, z * np.sqrt(p * (1 - p) / 300 + z**2 / 4 / 300**2)
    low, high = ((centre + sign * reach) / (1 + z**2 / 300) for sign in (-1, 1))
    d = p[:, :, None] - p[:, None]
    lower = d - np.sqrt((p - low)[:, :, None] ** 2 + (high - p)[:, None] ** 2)
    assert named >= (lower > 0).sum()


def test_two_groups_fold_the_signed_difference():
    one, other = rate_limits(30, 100), rate_limits(50, 100)
    signed = difference_limits(one, other)
    gap = largest_gap(GroupLimits.of([30, 50], [100, 100]))
    assert gap.value == pytest.approx(0.2)
    assert gap.lower == pytest.approx(-signed.upper)
    assert gap.upper == pytest.approx(-signed.lower)


def test_two_groups_never_reach_beyond_their_own_signed_difference():
    draw = np.random.default_rng(2)
    sizes = draw.integers(1, 60, (500, 2))
    counts = draw.binomial(sizes, draw.uniform(0, 1, (500, 2)))
    limits = rate_limits(counts, sizes)
    signed = difference_limits(limits.take(0), limits.take(1))
    gap = largest_gap(GroupLimits.of(counts, sizes))
    furthest = np.maximum(np.abs(signed.lower), np.abs(signed.upper))
    np.testing.assert_array_equal(gap.upper, furthest)
    np.testing.assert_array_equal(gap.lower, np.maximum(0, np.maximum(signed.lower, -signed.upper)))


def test_a_tiny_group_is_not_compared_with_itself():
    """Of rates 0.5 and 0.5, the tiny group's own two ends are 1.4 times as far apart."""
    gap = largest_gap(GroupLimits.of([2, 500, 510], [4, 1000, 1000]))
    tiny = rate_limits(2, 4)
    assert gap.upper < 0.8 * np.sqrt(2) * (tiny.upper - tiny.value)


@pytest.mark.parametrize("left_out", [0, 2, 3])
def test_some_of_the_groups_are_compared_as_if_there_were_no_others(left_out):
    sizes, counts = np.array([40, 30, 50, 5]), np.array([[10, 20, 30, 4], [1, 2, 49, 0]])
    some = np.arange(4) != left_out
    limits = GroupLimits.of(counts, sizes)
    single, together = limits.pointwise.take(some), limits.simultaneous.take(some)
    expected = largest_gap(GroupLimits(single, together))
    masked = limits.only(np.tile(some, (2, 1)))
    np.testing.assert_array_equal(np.array(largest_gap(masked)), np.array(expected))
    named = leads(masked) > 0
    assert not named[:, left_out].any()
    np.testing.assert_array_equal(
        named[:, some][..., some], leads(GroupLimits(single, together)) > 0
    )


def test_a_group_of_no_rows_may_have_any_rate():
    counts, sizes = np.array([300, 320, 0]), np.array([1000, 1000, 0])
    seen = largest_gap(GroupLimits.of(counts[:2], sizes[:2]))
    single = rate_limits(counts[:2], sizes[:2])
    for limits in (
        GroupLimits.of(counts, sizes),
        GroupLimits.of([300, 320, 5], [1000, 1000, 9]).only(sizes > 0, unseen=sizes == 0),
    ):
        gap = largest_gap(limits)
        assert gap.value == seen.value
        assert gap.lower == 0
        assert gap.upper == max(single.upper.max(), 1 - single.lower.min())
    assert np.isnan(largest_gap(GroupLimits.of([3], [9]))).all()


def test_the_gap_of_all_is_covered_where_the_group_that_differs_may_have_no_rows():
    draw = np.random.default_rng(4)
    rates = np.array([0.6, 0.6, 0.6, 0.2])
    rows = draw.binomial([5000, 500, 50, 5], 0.2, (REPLICATIONS, 4))
    counts = draw.binomial(rows, rates)
    gap = largest_gap(GroupLimits.of(counts, rows))
    assert (rows[:, 3] == 0).mean() > 0.3
    assert ((gap.lower <= 0.4) & (gap.upper >= 0.4)).mean() > LEAST


def test_a_probability_says_nothing_that_the_interval_does_not():
    lower, upper = np.array([0.0, 0.06, 0.0, np.nan]), np.array([0.1, 0.2, 0.04, np.nan])
    none = probability_below(np.zeros(4), lower, upper, 0.05)
    np.testing.assert_allclose(none, [0.05, 0, 0.95, 0.05])
    certain = probability_below(np.ones(4), lower, upper, 0.05)
    np.testing.assert_allclose(certain, [0.95, 0.05, 1, 0.95])
    between = probability_below(np.full(4, 0.3), lower, upper, 0.05)
    np.testing.assert_allclose(between, [0.3, 0.05, 0.95, 0.3])
    assert not (none[[0, 3]] < 0.05).any()
    assert not (certain[[0, 3]] > 0.95).any()
    np.testing.assert_allclose(probability_below(1.0, 0, 1, 0.05, level=0.3), 0.5)


@pytest.mark.parametrize(("sizes", "rates"), POPULATIONS)
def test_whatever_the_posterior_it_is_seldom_wrong_where_it_is_sure(sizes, rates):
    """A posterior that is always wrong, about just more and just less than the true gap."""
    gap = largest_gap(GroupLimits.of(counts_of(sizes, rates), sizes))
    truth = max(rates) - min(rates)
    under = probability_below(0.0, gap.lower, gap.upper, truth + 1e-9)
    over = probability_below(1.0, gap.lower, gap.upper, truth - 1e-9)
    assert (under < 0.05).mean() < 1 - LEAST
    assert (over > 0.95).mean() < 0.05


def test_two_groups_need_no_wider_limits_and_two_rates_do():
    assert simultaneous_level(0.95, 2) == 0.95
    assert simultaneous_level(0.95, 2, 2) == 0.975
    assert simultaneous_level(0.95, 10) > simultaneous_level(0.95, 5) > 0.95


@pytest.mark.parametrize(("groups", "tabled"), [(3, 3.314), (5, 3.858), (10, 4.474), (20, 5.012)])
def test_levels_of_all_pairs_are_those_of_the_table_of_the_studentised_range(groups, tabled):
    """Harter (1960), "Tables of range and studentized range": 95 %, infinite freedom."""
    expected = 2 * stats.norm.cdf(tabled / np.sqrt(2)) - 1
    assert simultaneous_level(0.95, groups) == pytest.approx(expected, abs=3e-5)


def test_an_unknown_group_leaves_the_others_gap_standing():
    gap = largest_gap(GroupLimits.of([500, 200], [1000, 1000]))
    with_one_row = largest_gap(GroupLimits.of([500, 200, 1], [1000, 1000, 1]))
    assert with_one_row.lower > 0.9 * gap.lower


def test_normal_estimates_fold_alike():
    draw = np.random.default_rng(0)
    truth, error = np.array([1.0, 1.0, 1.3]), np.array([0.1, 0.2, 0.1])
    values = truth + error * draw.normal(size=(REPLICATIONS, 3))
    quantiles = (stats.norm.ppf((1 + level) / 2) for level in (0.95, simultaneous_level(0.95, 3)))
    limits = (Limits(values, values - q * error, values + q * error) for q in quantiles)
    gap = largest_gap(GroupLimits(*limits))
    assert ((gap.lower <= 0.3) & (gap.upper >= 0.3)).mean() > LEAST


def test_the_surest_gap_of_many_groups_is_the_largest_gap(monkeypatch):
    monkeypatch.setattr(gaps, "_BLOCK", 100)
    generator = np.random.default_rng(3)
    for _ in range(20):
        sizes = generator.integers(1, 200, 37)
        limits = GroupLimits.of(generator.binomial(sizes, generator.beta(3, 3, 37)), sizes)
        result, low, high = surest_gap(limits)
        np.testing.assert_allclose(np.array(result), np.array(largest_gap(limits)))
        wide = difference_limits(*pairs(limits.simultaneous)).lower
        assert wide[high, low] == wide.max()


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (_range_quantile, (0.95, 1)),
        (_range_quantile, (1.0, 3)),
        (simultaneous_level, (1.0, 3)),
        (simultaneous_level, (0.95, 3, 0)),
        (simultaneous_level, (float("nan"), 3)),
    ],
)
def test_a_level_or_a_number_of_groups_that_cannot_be_is_refused(function, arguments):
    with pytest.raises(ValueError, match="no (studentised range|level)"):
        function(*arguments)


@pytest.mark.parametrize(
    ("sizes", "rate"), [([50] * 20, 0.3), ([200] * 3, 0.5), ([30, 900, 900], 0.4)]
)
def test_the_gap_of_noise_is_that_of_groups_alike(sizes, rate):
    sizes = np.array(sizes)
    drawn = counts_of(sizes, [rate] * len(sizes)) / sizes
    result = gap_of_noise(rate_limits(rate * sizes, sizes))
    # Limits of few rows are wider than normal ones, by up to a fifteenth here.
    assert result == pytest.approx(np.ptp(drawn, axis=1).mean(), rel=0.07)


def test_a_signed_difference_has_no_gap_of_noise():
    assert np.isnan(gap_of_noise(rate_limits([30, 40], [100, 100])))
    assert np.isnan(gap_of_noise(rate_limits([30, 40, 0], [100, 100, 0])))
