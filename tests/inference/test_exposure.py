"""Shares of the first places and of exposure: closed cases, and intervals that hold."""

import numpy as np
import pytest

from fairbench.inference.gaps import exposure_weights, top_weights, weighted_shares
from fairbench.inference.rates import rate_limits

ONE = np.zeros(6, np.intp)


def test_ties_share_their_places():
    score = np.array([3.0, 2, 2, 2, 1, 0])
    assert top_weights(score, ONE, 2) == pytest.approx([1, 1 / 3, 1 / 3, 1 / 3, 0, 0])
    assert top_weights(score, ONE, 0.5) == pytest.approx([1, 2 / 3, 2 / 3, 2 / 3, 0, 0])
    discount = 1 / np.log2(np.arange(2, 8))
    expected = [discount[0], *[discount[1:4].mean()] * 3, *discount[4:]]
    assert exposure_weights(score, ONE) == pytest.approx(expected)


def test_every_list_has_first_places():
    lists = np.array([0, 1, 0, 1, 0, 1], np.intp)
    score = np.array([1.0, 6, 2, 5, 3, 4])
    assert top_weights(score, lists, 1).tolist() == [0, 1, 0, 0, 1, 0]
    assert top_weights(score, lists, 0.1).tolist() == [0, 1, 0, 0, 1, 0]  # one at least
    assert top_weights(score, lists, 9).tolist() == [1] * 6
    assert exposure_weights(score, lists)[[1, 4]].tolist() == [1, 1]


def test_the_first_places_are_a_sample_of_their_own():
    generator = np.random.default_rng(0)
    score, codes = generator.random(200), (generator.random(200) < 0.3).astype(np.intp)
    weight = top_weights(score, np.zeros(200, np.intp), 40)
    shares, rows, ratios, below = weighted_shares(weight, codes, 2)
    expected = rate_limits(codes[np.argsort(-score)[:40]].sum(), 40)
    assert [float(share[1]) for share in shares] == pytest.approx([float(e) for e in expected])
    assert rows.value[1] == pytest.approx(codes.mean())
    everyone = weighted_shares(np.ones(200), codes, 2)[2]
    assert everyone.value == pytest.approx(1)
    assert everyone.upper - everyone.lower == pytest.approx(0, abs=0.05)  # of the same rows


def test_a_group_that_is_not_among_the_first_has_an_interval():
    codes = np.r_[np.zeros(50), np.ones(10)].astype(np.intp)
    weight = top_weights(np.arange(60, 0, -1.0), np.zeros(60, np.intp), 20)
    shares, rows, ratios, below = weighted_shares(weight, codes, 2)
    assert ratios.value[1] == ratios.lower[1] == 0
    assert 0 < ratios.upper[1] < 2
    assert below[1] > 0.8


@pytest.mark.thorough
@pytest.mark.parametrize(("rows", "share", "shift", "top"), [(60, 0.5, 0, 10), (500, 0.2, 0.7, 50)])
def test_intervals_of_one_list_hold(rows, share, shift, top):
    """The truth is what many such rankings have on average."""
    generator, one = np.random.default_rng(rows), np.zeros(rows, np.intp)
    result, values = [], []
    for _ in range(300):
        codes = (generator.random(rows) < share).astype(np.intp)
        score = generator.normal(size=rows) - shift * codes
        for weight in (top_weights(score, one, top), exposure_weights(score, one)):
            shares, _, ratios, _ = weighted_shares(weight, codes, 2)
            values.append(shares.value[1])
            result.append([*shares[1:], *ratios[1:]])
    truth = np.reshape(values, (300, 2)).mean(axis=0)
    ends = np.reshape(result, (300, 2, 4, 2))[..., 1]
    for k, at in enumerate((truth, truth / share)):
        holds = (ends[..., 2 * k] <= at) & (at <= ends[..., 2 * k + 1])
        assert holds.mean(axis=0).min() > 0.91  # 95 % less three standard errors


@pytest.mark.thorough
def test_intervals_of_many_lists_hold():
    generator, lists = np.random.default_rng(1), np.repeat(np.arange(30), 15).astype(np.intp)
    result, values = [], []
    for _ in range(300):
        chance = generator.beta(1.5, 3.5, 30)  # lists differ in who is in them
        codes = (generator.random(450) < chance[lists]).astype(np.intp)
        score = generator.normal(size=450) - 0.5 * codes
        weight = top_weights(score, lists, 5)
        shares, _, ratios, _ = weighted_shares(weight, codes, 2, lists=lists)
        values.append((shares.value[1], codes.mean()))
        result.append([*shares[1:], *ratios[1:]])
    truth = np.mean(values, axis=0)
    ends = np.array(result)[..., 1]
    for k, at in enumerate((truth[0], truth[0] / truth[1])):
        assert ((ends[:, 2 * k] <= at) & (at <= ends[:, 2 * k + 1])).mean() > 0.91


@pytest.mark.thorough
@pytest.mark.parametrize("rows", [300, 1000])
def test_a_small_groups_exposure_is_not_surely_unlike_its_rows(rows):
    """Of ten groups alike one had an interval without 1 on half of the pages at 99.75 %."""
    generator = np.random.default_rng(4)
    missed = 0
    for _ in range(100):
        codes = generator.integers(0, 10, rows)
        weight = exposure_weights(generator.random(rows), np.zeros(rows, np.intp))
        ratios = weighted_shares(weight, codes, 10, level=0.9975)[2]
        missed += int(((ratios.lower > 1) | (ratios.upper < 1)).any())
    assert missed < 12


@pytest.mark.thorough
@pytest.mark.parametrize("lists", [2, 3, 4, 6])
def test_hardly_any_lists_say_hardly_anything(lists):
    generator = np.random.default_rng(5)
    missed = 0
    for _ in range(150):
        of, codes = np.repeat(np.arange(lists), 10), generator.integers(0, 3, 10 * lists)
        weight = exposure_weights(generator.random(10 * lists), of)
        ratios = weighted_shares(weight, codes, 3, lists=of, level=0.99)[2]
        missed += int(((ratios.lower > 1) | (ratios.upper < 1)).any())
    assert missed < 15
