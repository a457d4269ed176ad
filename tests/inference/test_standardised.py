"""Standardised rates: against sums by hand, the raw rates of one stratum, and enumeration."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from fairbench.inference.gaps import (
    GroupLimits,
    StandardisedRates,
    largest_difference,
    largest_gap,
    leads,
    smallest_ratio,
    smallest_standardised_ratio,
)
from fairbench.inference.rates import difference_limits, rate_limits, ratio_limits

# Two groups in three strata; nobody of the second is in the last.
SIZES = np.array([[40, 60, 25], [30, 20, 0]])
HITS = np.array([[10, 30, 5], [3, 16, 0]])


def random_counts(seed, groups=4, strata=6, largest=40):
    draw = np.random.default_rng(seed)
    size = draw.integers(0, largest, (groups, strata)) * (draw.random((groups, strata)) < 0.8)
    return draw.binomial(size, draw.uniform(0, 1, (groups, strata))), size


def test_a_difference_is_the_weighted_mean_of_those_within_strata():
    weight = np.array([70, 80]) / 150
    within = HITS[1, :2] / SIZES[1, :2] - HITS[0, :2] / SIZES[0, :2]
    rates = StandardisedRates.of(HITS, SIZES)
    assert rates.differences().value[1, 0] == pytest.approx(weight @ within)
    assert rates.value[0, 1] == pytest.approx(weight @ (HITS[0, :2] / SIZES[0, :2]))
    assert rates.ratios().value[1, 0] == pytest.approx(rates.value[1, 0] / rates.value[0, 1])
    assert rates.covered[0, 1] == pytest.approx(150 / 175)
    assert rates.rows.tolist() == [[125, 100], [50, 50]]
    # The weights of Mantel and Haenszel are others.
    haenszel = np.array([40 * 30 / 70, 60 * 20 / 80])
    assert rates.differences().value[1, 0] != pytest.approx(np.average(within, weights=haenszel))


@pytest.mark.parametrize("seed", range(4))
def test_every_pair_has_the_strata_that_both_groups_are_in(seed):
    hits, size = random_counts(seed)
    rates = StandardisedRates.of(hits, size)
    for one, other in product(range(4), range(4)):
        shared = [k for k in range(6) if size[one, k] and size[other, k]]
        people = sum(size[:, k].sum() for k in shared)
        mean = sum(size[:, k].sum() / people * hits[one, k] / size[one, k] for k in shared)
        assert rates.value[one, other] == pytest.approx(mean)
        assert rates.rows[one, other] == sum(size[one, k] for k in shared)


def test_one_stratum_is_the_raw_comparison():
    hits, size = np.array([3, 10, 0, 15]), np.array([20, 30, 15, 15])
    rates = StandardisedRates.of(hits[:, None], size[:, None])
    raw = rate_limits(hits, size)
    for got, expected in zip(rates.limits().take(0), raw, strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-12)
    for kind, of_two in (("differences", difference_limits), ("ratios", ratio_limits)):
        expected = of_two(raw.take(1), raw.take(0))
        for got, end in zip(getattr(rates, kind)(), expected, strict=True):
            assert got[1, 0] == pytest.approx(float(end), rel=1e-9)
    limits = GroupLimits.of(hits, size)
    gap, ahead = largest_difference([rates], [rates.compared()])
    np.testing.assert_allclose(gap, largest_gap(limits), rtol=1e-9)
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_allclose(ahead[off], leads(limits)[off], atol=1e-9)
    smallest = smallest_standardised_ratio(rates, rates.compared())
    np.testing.assert_allclose(smallest, smallest_ratio(limits), rtol=1e-9)


def test_of_many_rows_the_interval_is_the_normal_one():
    """Its variance is that of the cells and that of the strata's shares, by hand."""
    size = np.array([[4000, 9000, 6000], [8000, 3000, 5000]])
    p = np.array([[0.2, 0.5, 0.7], [0.25, 0.4, 0.75]])
    rates = StandardisedRates.of(size * p, size)
    weight = size.sum(axis=0) / size.sum()
    within = p[1] - p[0]
    total = weight @ within
    variance = (weight**2 * (p * (1 - p) / size).sum(axis=0)).sum()
    variance += weight @ (within - total) ** 2 / size.sum()
    lower, upper = (end[1, 0] for end in rates.differences()[1:])
    half = stats.norm.ppf(0.975) * np.sqrt(variance)
    assert (lower + upper) / 2 == pytest.approx(total, abs=1e-4)
    assert (upper - lower) / 2 == pytest.approx(half, rel=0.02)


def test_a_reversal_within_strata_is_seen():
    """Simpson: of everyone the second group's rate is the higher, in both strata the lower."""
    size = np.array([[900, 100], [100, 900]])
    hits = size * np.array([[0.3, 0.8], [0.2, 0.7]])
    raw = hits.sum(axis=1) / size.sum(axis=1)
    difference = StandardisedRates.of(hits, size).differences()
    assert raw[1] - raw[0] > 0.25
    assert difference.value[1, 0] == pytest.approx(-0.1)
    assert difference.upper[1, 0] < 0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("largest", [2, 5, 40])
def test_no_interval_excludes_its_own_point(seed, largest):
    hits, size = random_counts(seed, groups=5, strata=9, largest=largest)
    rates = StandardisedRates.of(hits, size)
    among = rates.compared()
    gap, _ = largest_difference([rates, rates], [among, among])
    ratio = smallest_standardised_ratio(rates, among)
    for limits in (rates.limits(), rates.differences(), rates.ratios(), gap, ratio):
        value, lower, upper = (np.atleast_1d(end) for end in limits)
        there = ~np.isnan(value)
        assert (lower[there] <= value[there] + 1e-12).all()
        assert (value[there] <= upper[there] + 1e-12).all()
    assert not np.isnan(gap.lower)


def test_the_order_of_strata_and_of_groups_does_not_matter():
    hits, size = random_counts(3)
    rates, turn = StandardisedRates.of(hits, size), np.array([2, 0, 3, 1])
    other = StandardisedRates.of(hits[turn][:, ::-1], size[turn][:, ::-1])
    for one, two in zip(rates.differences(), other.differences(), strict=True):
        np.testing.assert_allclose(one[np.ix_(turn, turn)], two, atol=1e-12)
    upside_down = rates.differences()
    np.testing.assert_allclose(upside_down.lower, -upside_down.upper.T, atol=1e-12)


def test_groups_that_share_no_stratum_are_not_compared():
    hits, size = np.array([[3, 0], [0, 2]]), np.array([[10, 0], [0, 10]])
    rates = StandardisedRates.of(hits, size)
    assert not rates.compared().any()
    assert np.isnan(rates.value[0, 1])
    gap, ahead = largest_difference([rates], [rates.compared()])
    assert np.isnan([*gap, *ahead.ravel()]).all()
    assert rates.compared(11).sum() == 0


def test_samples_are_taken_side_by_side():
    pairs = [random_counts(seed) for seed in range(3)]
    hits, size = (np.stack(counts) for counts in zip(*pairs, strict=True))
    several = StandardisedRates.of(hits, size)
    among = several.compared(5)
    gaps, _ = largest_difference([several], [among])
    for place, (one_hits, one_size) in enumerate(pairs):
        rates = StandardisedRates.of(one_hits, one_size)
        gap, _ = largest_difference([rates], [rates.compared(5)])
        np.testing.assert_allclose(gap, [end[place] for end in gaps])


@pytest.mark.parametrize(
    ("size", "rate"),
    [
        (((6, 9), (8, 5)), ((0.2, 0.6), (0.3, 0.4))),
        (((10, 4), (3, 11)), ((0.5, 0.9), (0.5, 0.9))),
        (((12, 3), (12, 3)), ((0.05, 0.1), (0.2, 0.2))),
    ],
)
def test_every_sample_of_two_small_strata_together_is_covered(size, rate):
    """Every table of counts that there can be, with its probability."""
    size, rate = np.array(size), np.array(rate)
    hits = np.array(list(product(*(range(n + 1) for n in size.ravel()))))
    probability = stats.binom.pmf(hits, size.ravel(), rate.ravel()).prod(axis=1)
    assert probability.sum() == pytest.approx(1)
    hits = hits.reshape(-1, 2, 2)
    rates = StandardisedRates.of(hits, np.broadcast_to(size, hits.shape))
    weight = size.sum(axis=0) / size.sum()
    true = weight @ (rate[1] - rate[0])
    _, lower, upper = (end[:, 1, 0] for end in rates.differences())
    assert probability[(lower <= true) & (true <= upper)].sum() > 0.93
