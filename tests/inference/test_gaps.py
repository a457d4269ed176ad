"""Largest gaps, smallest ratios and pairs: by construction; tests/coverage has what they hold."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from fairbench.inference import gaps
from fairbench.inference.rates import difference_limits, rate_limits, ratio_limits
from fairbench.inference.survey import Design, SurveyCounts
from fairbench.metrics import registry
from fairbench.metrics.registry import accuracy

REPLICATIONS = 2000


def counts_of(sizes, rates, seed=0):
    return np.random.default_rng(seed).binomial(sizes, rates, size=(REPLICATIONS, len(sizes)))


def held(limits, true):
    return (limits.lower <= true) & (true <= limits.upper)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.9999])
@pytest.mark.parametrize("groups", [3, 10, 200])
def test_the_range_of_normals_is_the_studentised_range_of_scipy(groups, level):
    expected = stats.studentized_range.ppf(level, groups, np.inf)
    assert gaps._range_quantile(level, groups) == pytest.approx(expected, rel=1e-12)
    of_pairs = 2 * stats.norm.cdf(expected / np.sqrt(2)) - 1
    assert gaps.simultaneous_level(level, groups) == pytest.approx(of_pairs)
    # Two groups need no wider limits, and two rates do.
    assert gaps.simultaneous_level(level, 2) == level
    assert gaps.simultaneous_level(level, 2, 2) == pytest.approx((1 + level) / 2)


def test_among_equal_groups_no_pair_is_named_more_often_than_allowed():
    sizes = [200] * 10
    named = gaps.GroupLimits.of(counts_of(sizes, [0.3] * 10), sizes).leads > 0
    assert named.any(axis=(-2, -1)).mean() < 0.07


def test_two_groups_never_reach_beyond_their_own_signed_difference():
    draw = np.random.default_rng(2)
    sizes = draw.integers(1, 60, (500, 2))
    counts = draw.binomial(sizes, draw.uniform(0, 1, (500, 2)))
    limits = rate_limits(counts, sizes)
    _, lower, upper = difference_limits(limits.take(0), limits.take(1))
    gap = gaps.largest_gap(gaps.GroupLimits.of(counts, sizes))
    np.testing.assert_array_equal(gap.upper, np.maximum(np.abs(lower), np.abs(upper)))
    np.testing.assert_array_equal(gap.lower, np.maximum(0, np.maximum(lower, -upper)))


def test_a_tiny_group_is_not_compared_with_itself():
    """Of rates 0.5 and 0.5, the tiny group's own two ends are 1.4 times as far apart."""
    gap = gaps.largest_gap(gaps.GroupLimits.of([2, 500, 510], [4, 1000, 1000]))
    tiny = rate_limits(2, 4)
    assert gap.upper < 0.8 * np.sqrt(2) * (tiny.upper - tiny.value)


@pytest.mark.parametrize("left_out", [0, 2, 3])
def test_some_of_the_groups_are_compared_as_if_there_were_no_others(left_out):
    sizes, counts = np.array([40, 30, 50, 5]), np.array([[10, 20, 30, 4], [1, 2, 49, 0]])
    some = np.arange(4) != left_out
    limits = gaps.GroupLimits.of(counts, sizes)
    alone = gaps.GroupLimits(limits.pointwise.take(some), limits.simultaneous.take(some))
    masked = limits.only(np.tile(some, (2, 1)))
    np.testing.assert_array_equal(gaps.largest_gap(masked), gaps.largest_gap(alone))
    named = masked.leads > 0
    assert not named[:, left_out].any()
    np.testing.assert_array_equal(named[:, some][..., some], alone.leads > 0)


def test_a_group_of_no_rows_may_have_any_rate():
    counts, sizes = np.array([300, 320, 0]), np.array([1000, 1000, 0])
    single = rate_limits(counts[:2], sizes[:2])
    further = gaps.GroupLimits.of([300, 320, 5], [1000, 1000, 9])
    for limits in (
        gaps.GroupLimits.of(counts, sizes),
        further.only(sizes > 0, unseen=sizes == 0),
    ):
        value, lower, upper = gaps.largest_gap(limits)
        assert (value, lower) == (pytest.approx(0.02), 0)
        assert upper == max(single.upper.max(), 1 - single.lower.min())
    assert np.isnan(gaps.largest_gap(gaps.GroupLimits.of([3], [9]))).all()


def test_a_probability_says_nothing_that_the_interval_does_not():
    lower, upper = np.array([0.0, 0.06, 0.0, np.nan]), np.array([0.1, 0.2, 0.04, np.nan])
    for share, expected in (
        (0.0, [0.05, 0, 0.95, 0.05]),
        (1.0, [0.95, 0.05, 1, 0.95]),
        (0.3, [0.3, 0.05, 0.95, 0.3]),
    ):
        found = gaps.probability_below(np.full(4, share), lower, upper, 0.05)
        np.testing.assert_allclose(found, expected)
        assert not ((found < 0.05) | (found > 0.95))[[0, 3]].any()
    np.testing.assert_allclose(gaps.probability_below(1.0, 0, 1, 0.05, level=0.3), 0.5)


def test_the_surest_gap_of_many_groups_is_the_largest_gap(monkeypatch):
    monkeypatch.setattr(gaps, "_BLOCK", 100)
    generator = np.random.default_rng(3)
    for _ in range(20):
        sizes = generator.integers(1, 200, 37)
        limits = gaps.GroupLimits.of(generator.binomial(sizes, generator.beta(3, 3, 37)), sizes)
        result, low, high = gaps.surest_gap(limits)
        np.testing.assert_allclose(result, gaps.largest_gap(limits))
        wide = difference_limits(*gaps.pairs(limits.simultaneous)).lower
        assert wide[high, low] == wide.max()


@pytest.mark.parametrize(("level", "groups", "rates"), [(1.0, 3, 1), (np.nan, 3, 1), (0.95, 3, 0)])
def test_a_level_or_a_number_of_groups_that_cannot_be_is_refused(level, groups, rates):
    with pytest.raises(ValueError, match="no level"):
        gaps.simultaneous_level(level, groups, rates)


@pytest.mark.parametrize(
    ("sizes", "rate"), [([50] * 20, 0.3), ([200] * 3, 0.5), ([30, 900, 900], 0.4)]
)
def test_the_gap_of_noise_is_that_of_groups_alike(sizes, rate):
    sizes = np.array(sizes)
    drawn = counts_of(sizes, [rate] * len(sizes)) / sizes
    result = gaps.gap_of_noise(rate_limits(rate * sizes, sizes))
    # Limits of few rows are wider than normal ones, by up to a fifteenth here.
    assert result == pytest.approx(np.ptp(drawn, axis=1).mean(), rel=0.07)
    # A difference of two is signed.
    assert np.isnan(gaps.gap_of_noise(rate_limits([30, 40, 0], [100, 100, 0])))


# Impact ratios: intervals that hold, and a probability that is as sure as it says.


def to_highest(selected, sizes, highest=None):
    highest = np.ones(len(sizes), bool) if highest is None else highest
    return gaps.ratios_to_highest(lambda at: rate_limits(selected, sizes, level=at), highest)


def test_a_ratio_to_a_named_group_is_the_ratio_of_two_rates():
    rates = rate_limits([20, 30, 9], [100, 80, 60])
    ratios, below = gaps.ratios_to_group(rates, 1)
    expected = ratio_limits(rates.take(0), rates.take(1))
    np.testing.assert_allclose([end[0] for end in ratios], expected)
    assert ratios.value[1] == ratios.lower[1] == ratios.upper[1] == 1
    assert below[1] == 0 and 0.8 < below[0] < 1


def test_of_two_groups_the_lower_is_compared_as_if_the_higher_had_been_named():
    ratios, below, reference = to_highest([20, 40], [100, 100])
    named, below_named = gaps.ratios_to_group(rate_limits([20, 40], [100, 100]), 1)
    assert reference == 1
    assert (ratios.lower[0], ratios.upper[0]) == (named.lower[0], named.upper[0])
    assert below[0] == pytest.approx(below_named[0])
    assert ratios.value[1] == ratios.upper[1] == 1
    assert ratios.lower[1] > 0.9  # surely the higher


@pytest.mark.parametrize(
    ("sizes", "rates"),
    [
        ((200, 200), (0.4, 0.5)),
        ((100,) * 4, (0.4, 0.5, 0.5, 0.5)),
        ((100,) * 10, (0.5,) * 10),
        ((1000, 50, 50, 300), (0.4, 0.5, 0.3, 0.45)),
        ((500,) * 6, (0.3, *[0.24] * 5)),
    ],
)
def test_ratios_to_the_highest_rate_hold_whichever_is_the_highest(sizes, rates):
    generator, truth = np.random.default_rng(len(sizes)), np.array(rates) / max(rates)
    selected = generator.binomial(sizes, rates, (4000, len(sizes)))
    ratios, below, _ = to_highest(selected, sizes)
    assert held(ratios, ratios.value).all()
    # What the probability says, the interval says.
    assert ((ratios.upper < 0.8) == (below > 0.975)).all()
    assert ((ratios.lower > 0.8) == (below < 0.025)).all()
    assert held(ratios, truth).mean(axis=0).min() > 0.935
    called, cleared = (below >= 0.95).mean(axis=0), (below <= 0.05).mean(axis=0)
    assert called[truth >= 0.8].max() < 0.065
    assert cleared[truth < 0.8].max(initial=0) < 0.065


def test_nobody_is_compared_with_a_group_left_out_nor_known_where_nobody_is_selected():
    highest = np.array([True, True, False])
    ratios, below, reference = to_highest([40, 50, 9], np.array([100, 100, 10]), highest)
    assert reference == 1
    assert ratios.value[2] == pytest.approx(0.9 / 0.5)
    assert ratios.upper[2] > 1.8 and ratios.upper[:2].max() == 1
    ratios, below, _ = to_highest([0, 0], np.array([50, 60]))
    np.testing.assert_array_equal([*ratios], [[np.nan] * 2, [0, 0], [1, 1]])
    assert below == pytest.approx(0.5)


def test_groups_that_share_clusters_are_compared_more_closely():
    luck = np.repeat(np.random.default_rng(0).random(300), 2)  # of a pair, one of each group
    selected = (luck < np.tile([0.4, 0.5], 300)).astype(np.intp)
    design = Design.of(600, clusters=np.repeat(np.arange(300), 2))
    survey = SurveyCounts.of(selected, np.tile([0, 1], 300), design, groups=2)
    limits, shared = (of(registry.selection_rate) for of in (survey.limits, survey.correlation))
    apart, together = (
        gaps.ratios_to_group(limits, 1, correlation=correlation)[0] for correlation in (0.0, shared)
    )
    assert (together.upper - together.lower)[0] < 0.6 * (apart.upper - apart.lower)[0]


# Two classifiers on the same rows: counts by hand, and intervals that hold the change of a gap.

RATES = (accuracy, registry.true_positive_rate, registry.positive_predictive_value)


def decided(right, other_right, sizes, generator, *, shared=0.5):
    """Return counts of cells of two classifiers, and columns: labels, both decisions, groups."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    label, noise = generator.integers(0, 2, len(group)), generator.normal(size=(3, len(group)))
    score = np.sqrt(shared) * noise[0] + np.sqrt(1 - shared) * noise[1:]
    is_right = score < stats.norm.ppf(np.array([right, other_right])[:, group])
    columns = label, *np.where(is_right, label, 1 - label), group
    return gaps.cells_of(*columns, groups=len(sizes)), columns


def change_of(*drawn, **options):
    return gaps.gap_change(decided(*drawn, **options)[0], accuracy)


@pytest.mark.parametrize("groups", [2, 3])
def test_rates_and_differences_are_those_of_the_confusion_counts(groups):
    parts = (0.8, 0.7, 0.6)[:groups], (0.75, 0.9, 0.7)[:groups], (200, 100, 90)[:groups]
    cells, (label, *decisions, group) = decided(*parts, np.random.default_rng(0))
    assert cells.shape == (groups, gaps.CELLS)
    counts = [registry.binary_confusion(label, each, group, n_groups=groups) for each in decisions]
    for rate in RATES:
        one, other = map(rate, counts)
        both = gaps.rates_of(cells, rate, level=0.95)
        np.testing.assert_allclose([limits.value for limits in both], [one, other])
        np.testing.assert_allclose(gaps.difference(cells, rate, level=0.95).value, other - one)
        gap = gaps.gap_change(cells, rate)
        assert gap.value == pytest.approx(np.ptp(other) - np.ptp(one))
        assert held(gap, gap.value)


def test_what_both_have_in_common_cancels():
    generator, drawn = np.random.default_rng(1), ((0.8, 0.6), (0.8, 0.6), (400, 400))
    alike, apart = (change_of(*drawn, generator, shared=share) for share in (0.95, 0.0))
    assert alike.upper - alike.lower < 0.6 * (apart.upper - apart.lower)


@pytest.mark.parametrize(("rate", "reach"), [(RATES[0], 0.1), (RATES[2], 0.2)])
def test_no_two_classifiers_are_taken_to_agree_for_ever(rate, reach):
    _, (label, first, _, group) = decided(
        (0.8,) * 2, (0.8,) * 2, (30, 30), np.random.default_rng(2)
    )
    change = gaps.gap_change(gaps.cells_of(label, first, first, group, groups=2), rate)
    assert change.value == 0
    assert change.upper > reach
    assert change.lower < -reach


@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "other", "sizes"),
    [
        ((0.8, 0.8), (0.8, 0.8), (300, 300)),
        ((0.8, 0.6), (0.7, 0.7), (200, 60)),
        ((0.7, 0.8), (0.8, 0.7), (300, 300)),
        ((0.8, 0.7, 0.6), (0.7, 0.7, 0.7), (300, 300, 300)),
        ((0.8,) * 5, (0.8,) * 5, (100,) * 5),
    ],
)
def test_intervals_hold_the_change_of_the_largest_gap(right, other, sizes):
    """At least 93 % of 500 are to hold it: 450 are three standard errors fewer."""
    generator, truth = np.random.default_rng(4), np.ptp(other) - np.ptp(right)
    changes = (change_of(right, other, sizes, generator) for _ in range(500))
    assert sum(held(change, truth) for change in changes) >= 450


# Standardised rates: against sums by hand, the raw rates of one stratum, and enumeration.


def random_counts(seed, groups=4, strata=6, largest=40):
    draw = np.random.default_rng(seed)
    size = draw.integers(0, largest, (groups, strata)) * (draw.random((groups, strata)) < 0.8)
    return draw.binomial(size, draw.uniform(0, 1, (groups, strata))), size


@pytest.mark.parametrize("seed", range(4))
def test_every_pair_is_compared_by_weighted_means_over_the_strata_that_both_are_in(seed):
    hits, size = random_counts(seed)
    of = gaps.StandardisedRates.of(hits, size)
    for one, other in product(range(4), range(4)):
        shared = [k for k in range(6) if size[one, k] and size[other, k]]
        people = sum(size[:, k].sum() for k in shared)
        first, second = (
            sum(size[:, k].sum() / people * hits[g, k] / size[g, k] for k in shared)
            for g in (one, other)
        )
        assert of.value[one, other] == pytest.approx(first)
        assert of.differences().value[one, other] == pytest.approx(first - second)
        assert of.ratios().value[one, other] == pytest.approx(first / second)
        assert of.covered[one, other] == pytest.approx(people / size.sum())
        assert of.rows[one, other] == sum(size[one, k] for k in shared)


def test_one_stratum_is_the_raw_comparison():
    hits, size = np.array([3, 10, 0, 15]), np.array([20, 30, 15, 15])
    rates = gaps.StandardisedRates.of(hits[:, None], size[:, None])
    raw, among = rate_limits(hits, size), rates.compared()
    np.testing.assert_allclose(rates.limits().take(0), raw, atol=1e-12)
    for of_pairs, of_two in ((rates.differences, difference_limits), (rates.ratios, ratio_limits)):
        expected = of_two(raw.take(1), raw.take(0))
        np.testing.assert_allclose([end[1, 0] for end in of_pairs()], expected, rtol=1e-9)
    limits = gaps.GroupLimits.of(hits, size)
    gap, ahead = gaps.largest_difference([rates], [among])
    np.testing.assert_allclose(gap, gaps.largest_gap(limits), rtol=1e-9)
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_allclose(ahead[off], limits.leads[off], atol=1e-9)
    smallest = gaps.smallest_standardised_ratio(rates, among)
    np.testing.assert_allclose(smallest, gaps.smallest_ratio(limits), rtol=1e-9)


def test_of_many_rows_the_interval_is_the_normal_one():
    """Its variance is that of the cells and that of the strata's shares, by hand."""
    size = np.array([[4000, 9000, 6000], [8000, 3000, 5000]])
    p = np.array([[0.2, 0.5, 0.7], [0.25, 0.4, 0.75]])
    weight, within = size.sum(axis=0) / size.sum(), p[1] - p[0]
    total = weight @ within
    variance = weight**2 @ (p * (1 - p) / size).sum(axis=0)
    variance += weight @ (within - total) ** 2 / size.sum()
    _, lower, upper = (end[1, 0] for end in gaps.StandardisedRates.of(size * p, size).differences())
    half = stats.norm.ppf(0.975) * np.sqrt(variance)
    assert (lower + upper) / 2 == pytest.approx(total, abs=1e-4)
    assert (upper - lower) / 2 == pytest.approx(half, rel=0.02)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("largest", [2, 5, 40])
def test_no_interval_excludes_its_own_point(seed, largest):
    hits, size = random_counts(seed, groups=5, strata=9, largest=largest)
    rates = gaps.StandardisedRates.of(hits, size)
    among = rates.compared()
    gap, _ = gaps.largest_difference([rates, rates], [among, among])
    ratio = gaps.smallest_standardised_ratio(rates, among)
    for limits in (rates.limits(), rates.differences(), rates.ratios(), gap, ratio):
        value, lower, upper = (np.atleast_1d(end) for end in limits)
        there = ~np.isnan(value)
        assert ((lower - 1e-12 <= value) & (value <= upper + 1e-12))[there].all()
    assert not np.isnan(gap.lower)


def test_groups_that_share_no_stratum_are_not_compared():
    rates = gaps.StandardisedRates.of(np.array([[3, 0], [0, 2]]), np.array([[10, 0], [0, 10]]))
    assert not rates.compared().any() and not rates.compared(11).any()
    gap, ahead = gaps.largest_difference([rates], [rates.compared()])
    assert np.isnan([rates.value[0, 1], *gap, *ahead.ravel()]).all()


def test_samples_are_taken_side_by_side():
    def widest(hits, size):
        rates = gaps.StandardisedRates.of(hits, size)
        return gaps.largest_difference([rates], [rates.compared(5)])[0]

    samples = [random_counts(seed) for seed in range(3)]
    together = widest(*map(np.stack, zip(*samples, strict=True)))
    np.testing.assert_allclose(np.transpose([widest(*counts) for counts in samples]), together)


# Shares of the first places and of exposure: closed cases, and intervals that hold.

ONE = np.zeros(6, np.intp)


def test_ties_share_their_places():
    score = np.array([3.0, 2, 2, 2, 1, 0])
    assert gaps.top_weights(score, ONE, 2) == pytest.approx([1, 1 / 3, 1 / 3, 1 / 3, 0, 0])
    assert gaps.top_weights(score, ONE, 0.5) == pytest.approx([1, 2 / 3, 2 / 3, 2 / 3, 0, 0])
    discount = 1 / np.log2(np.arange(2, 8))
    expected = [discount[0], *[discount[1:4].mean()] * 3, *discount[4:]]
    assert gaps.exposure_weights(score, ONE) == pytest.approx(expected)


def test_every_list_has_first_places():
    lists, score = np.array([0, 1] * 3, np.intp), np.array([1.0, 6, 2, 5, 3, 4])
    for top in (1, 0.1):  # one at least
        assert gaps.top_weights(score, lists, top).tolist() == [0, 1, 0, 0, 1, 0]
    assert gaps.top_weights(score, lists, 9).tolist() == [1] * 6
    assert gaps.exposure_weights(score, lists)[[1, 4]].tolist() == [1, 1]


def test_the_first_places_are_a_sample_of_their_own():
    generator = np.random.default_rng(0)
    score, codes = generator.random(200), (generator.random(200) < 0.3).astype(np.intp)
    weight = gaps.top_weights(score, np.zeros(200, np.intp), 40)
    shares, rows, *_ = gaps.weighted_shares(weight, codes, 2)
    expected = rate_limits(codes[np.argsort(-score)[:40]].sum(), 40)
    np.testing.assert_allclose([share[1] for share in shares], expected)
    assert rows.value[1] == pytest.approx(codes.mean())
    everyone = gaps.weighted_shares(np.ones(200), codes, 2)[2]
    assert everyone.value == pytest.approx(1)
    assert everyone.upper - everyone.lower == pytest.approx(0, abs=0.05)  # of the same rows


def test_a_group_that_is_not_among_the_first_has_an_interval():
    codes = np.repeat([0, 1], [50, 10])
    weight = gaps.top_weights(np.arange(60, 0, -1.0), np.zeros(60, np.intp), 20)
    *_, ratios, below = gaps.weighted_shares(weight, codes, 2)
    assert ratios.value[1] == ratios.lower[1] == 0
    assert 0 < ratios.upper[1] < 2
    assert below[1] > 0.8


@pytest.mark.thorough
def test_intervals_of_many_lists_hold():
    generator, lists = np.random.default_rng(1), np.repeat(np.arange(30), 15).astype(np.intp)
    shares, ratios, groups = [], [], []
    for _ in range(300):
        chance = generator.beta(1.5, 3.5, 30)  # lists differ in who is in them
        codes = (generator.random(450) < chance[lists]).astype(np.intp)
        score = generator.normal(size=450) - 0.5 * codes
        weight = gaps.top_weights(score, lists, 5)
        share, _, ratio, _ = gaps.weighted_shares(weight, codes, 2, lists=lists)
        shares.append(share.take(1))
        ratios.append(ratio.take(1))
        groups.append(codes.mean())
    truth = np.mean([share.value for share in shares])
    assert np.mean([held(share, truth) for share in shares]) > 0.91
    assert np.mean([held(ratio, truth / np.mean(groups)) for ratio in ratios]) > 0.91
