"""Evidence about gaps: fair against every claim that is true, fast where it is not."""

import itertools

import numpy as np
import pytest
from scipy.stats import binom

from benchmarks.watch import streamed
from fairbench_watch import sequences as gaps
from fairbench_watch.sequences import (
    Pair,
    Sums,
    first_beyond,
    log_evidence,
    log_evidence_above,
    rows_until_beyond,
)


@pytest.mark.thorough
@pytest.mark.parametrize("rows", [(1, 1), (5, 40), (30, 30), (60, 7)])
@pytest.mark.parametrize("gap", [-0.3, 0.0, 0.05, 0.4])
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_evidence_is_at_most_1_on_average_if_the_claim_is_true(rows, gap, share):
    """By enumeration: the mean over all outcomes, at every height of both rates."""
    first, second = np.meshgrid(*(np.arange(size + 1) for size in rows), indexing="ij")
    evidence = np.exp(log_evidence(Pair(first, rows[0], second, rows[1], share), gap))
    for height in np.linspace(max(0, -gap), min(1, 1 - gap), 23):
        for below in (0, 0.07):  # the claim holds with room to spare, too
            other = max(height + gap - below, 0)
            chance = binom.pmf(first, rows[0], height) * binom.pmf(second, rows[1], other)
            assert (chance * evidence).sum() <= 1


@pytest.mark.thorough
def test_evidence_is_the_least_of_any_height(pairs, monkeypatch):
    """A search as dense as one likes finds nothing lower."""
    x, n, y, m, _ = pairs
    ahead = y / np.maximum(m, 1) - x / np.maximum(n, 1)
    gap = np.clip(ahead - np.random.default_rng(0).uniform(0, 0.2, 200), -0.9, 0.9)
    result = log_evidence(pairs, gap)
    usual = gaps._heights

    def dense(pair, gap):
        lowest, highest = np.maximum(0, -gap), np.minimum(1, 1 - gap)
        more = lowest + (highest - lowest) * np.linspace(0, 1, 2001)
        heights = np.sort(np.concatenate([usual(pair, gap), more], axis=-1), axis=-1)
        return np.clip(heights, 1e-12, 1 - 1e-12)

    monkeypatch.setattr(gaps, "_heights", dense)
    near = np.abs(result - 5) < 10
    assert near.sum() > 30
    assert (result <= log_evidence(pairs, gap) + 0.01)[near].all()


def test_the_mirror_image_is_the_same():
    pair = Pair([3, 30, 300], [10, 100, 900], [9, 70, 700], [20, 90, 1000], 0.3)
    there, back = pair.limits(4.0), pair.swapped().limits(4.0)
    assert np.allclose(there.lower, -back.upper)
    assert np.allclose(there.value, -back.value) and there.value[1] == pytest.approx(70 / 90 - 0.3)
    first, first_size, second, second_size, share = (np.asarray(column) for column in pair)
    failures = Pair(first_size - first, first_size, second_size - second, second_size, share)
    assert np.allclose(failures.limits(4.0).upper, -there.lower, atol=1e-4)


def test_of_no_rows_the_limits_are_the_ends():
    empty = Pair(0, 0, 0, 0, 0.5).limits(4.0)
    assert np.isnan(empty.value)
    assert (empty.lower, empty.upper) == (-1, 1)


@pytest.fixture
def pairs():
    """Return counts of 200 pairs of groups, large and small, many of them empty."""
    draw = np.random.default_rng(1)
    sizes = np.exp(draw.uniform(-1, 12, (2, 200))).astype(int)
    rate = draw.beta(0.7, 0.7, 200)
    other = np.clip(rate + draw.normal(0, 0.1, 200), 0, 1)
    successes = draw.binomial(sizes, [rate, other])
    return Pair(successes[0], sizes[0], successes[1], sizes[1], draw.uniform(0.1, 0.9, 200))


def test_limits_are_those_of_halving_with_a_fraction_of_the_evidence(pairs, monkeypatch):
    """Twenty halvings either side take 40 evidences a pair."""
    usual, computed = gaps.log_evidence, []
    rates = [x / np.maximum(n, 1) for x, n in (pairs[:2], pairs[2:4])]
    defined = np.minimum(pairs.first_size, pairs.second_size) > 0
    low, high = np.full(200, -1.0), np.where(defined, rates[1] - rates[0], 0)
    for _ in range(20):
        middle = (low + high) / 2
        excluded = usual(pairs, middle) >= 9
        low, high = np.where(excluded, middle, low), np.where(excluded, high, middle)

    def counted(pair, gap):
        computed.append(np.size(gap))
        return usual(pair, gap)

    monkeypatch.setattr(gaps, "log_evidence", counted)
    limits = pairs.limits(9.0)
    assert np.array_equal(limits.lower[defined], low[defined])
    assert 0 < sum(computed) <= 13 * 200
    within = pairs.within_limits(9.0)
    assert (within[0] >= limits.lower).all()
    assert (within[1] <= limits.upper).all()


def test_what_may_be_outside_has_all_that_is_outside(pairs):
    for needed in (2.0, 9.0):
        for bound in (0.0, 0.02, 0.2):
            ends = np.full(200, -bound), np.full(200, bound), np.full(200, needed)
            outside, may_be = pairs.outside(*ends), pairs.may_be_outside(*ends)
            assert outside.any() or bound == 0.2
            assert not (outside & ~may_be).any()
    draw = np.random.default_rng(2)
    size, mean = draw.integers(1, 3000, 300), draw.normal(0, 0.2, 300)
    sums = Sums(size, size * mean, size * np.clip(mean**2 + draw.uniform(0, 0.3, 300), 0, 1))
    ends = np.full(300, -0.05), np.full(300, 0.05), np.full(300, 5.0)
    outside = sums.outside(*ends)
    assert 0 < outside.sum() < 300
    assert not (outside & ~sums.may_be_outside(*ends)).any()


def test_the_first_look_is_the_first_of_all_looks():
    pair = streamed(np.random.default_rng(3), (0.3, 0.5), 0.7, 1500)
    every = log_evidence(pair, 0.05)
    assert first_beyond(pair, 0.05, 6.0) == int((every >= 6).argmax()) > 0
    assert first_beyond(pair, 0.05, 1000.0) is None


def test_what_is_never_found_takes_forever():
    assert rows_until_beyond(0.3, 0.34, 0.5, 0.05, 4.0) == np.inf
    assert rows_until_beyond(0.3, 0.9, 0.5, 0.05, 4.0) < 60


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


def test_the_interval_of_a_mean_narrows_as_a_fixed_one_does():
    n = np.array([100, 10_000, 1_000_000])
    limits = Sums(n, 0.1 * n, 0.2 * n).limits(np.log(40))
    assert np.allclose(limits.value, 0.1)
    fixed = 1.96 * np.sqrt(0.19 / n)
    assert ((limits.upper - limits.lower) / 2 < 2.4 * fixed).all()
