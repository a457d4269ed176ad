"""Groups known through probabilities: bounds are a linear programme's, and hold the truth."""

import numpy as np
import pytest
from scipy.optimize import linprog

from benchmarks.coverage.bounds import proxy_rows, proxy_truth
from fairbench.audits.direction import RATE_OF
from fairbench.inference.partial import (
    ProxyRows,
    _cells_of_equal_probability,
    gap_bounds,
)
from fairbench.metrics.registry import base_rate
from tests.inference.partial.linear import extremes

RATES = {**RATE_OF, "base rate": base_rate}


def some(generator, groups, cells=5):
    """Return probabilities of groups (Z, G), shares of the three kinds of rows (Z, 3), weights."""
    return (
        generator.dirichlet([0.6] * groups, cells),
        generator.dirichlet([1.0] * 3, cells),
        generator.dirichlet([3.0] * cells),
    )


def equations(group, kinds, weight):
    """Return what is known of how many (Z, G, 3) there are of each group and kind of row."""
    shape = (*group.shape, 3)
    place = np.arange(np.prod(shape)).reshape(shape)
    rows, right = [], []
    for z, g in np.ndindex(group.shape):
        rows.append(np.isin(np.arange(place.size), place[z, g]))
        right.append(weight[z] * group[z, g])
    for z, kind in np.ndindex(kinds.shape):
        rows.append(np.isin(np.arange(place.size), place[z, :, kind]))
        right.append(weight[z] * kinds[z, kind])
    return np.array(rows, float), np.array(right), place


def ratio(place, group):
    """Return what counts in a group's numerator and in its denominator."""
    top, whole = np.zeros(place.size), np.zeros(place.size)
    top[place[:, group, 0]] = 1
    whole[place[:, group, :2]] = 1
    return top, whole


def proxy_bounds(group, success, failure, weight):
    """Return the least and the largest rate (...) of groups (..., Z) in cells of equal shares."""

    def least_and_most(share):
        least = (weight * np.maximum(0, group + share - 1)).sum(axis=-1)
        return least, (weight * np.minimum(group, share)).sum(axis=-1)

    least_success, most_success = least_and_most(success)
    least_failure, most_failure = least_and_most(failure)
    return (
        least_success / (least_success + most_failure),
        most_success / (most_success + least_failure),
    )


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("everyone", [False, True])
def test_bounds_are_a_linear_programmes(groups, everyone):
    generator = np.random.default_rng(1)
    for _ in range(5):
        group, kinds, weight = some(generator, groups)
        if everyone:  # everybody is in the denominator, as for accuracy
            kinds = np.stack([kinds[:, 0], 1 - kinds[:, 0], 0 * kinds[:, 0]], axis=1)
        known, right, place = equations(group, kinds, weight)
        result = proxy_bounds(group.T, kinds[:, 0], kinds[:, 1], weight)
        for g in range(groups):
            top, whole = ratio(place, g)
            expected = extremes([0, *top], [0, *whole], [(0, 1)] * place.size, equal=(known, right))
            np.testing.assert_allclose([end[g] for end in result], expected, atol=1e-6)


@pytest.mark.parametrize("groups", [2, 3, 5])
def test_bounds_of_two_groups_are_possible_at_once_so_that_gaps_are_sharp_too(groups):
    generator = np.random.default_rng(2)
    for _ in range(5):
        group, kinds, weight = some(generator, groups)
        known, right, place = equations(group, kinds, weight)
        least, most = proxy_bounds(group.T, kinds[:, 0], kinds[:, 1], weight)
        (first, first_whole), (second, second_whole) = (ratio(place, g) for g in (0, 1))
        limits = [(most[0] - 1e-7) * first_whole - first, second - (least[1] + 1e-7) * second_whole]
        done = linprog(np.zeros(place.size), limits, [0, 0], known, right, bounds=(0, 1))
        assert done.status == 0


@pytest.mark.parametrize("everyone", [False, True])
def test_of_two_groups_the_gap_of_a_selection_rate_is_one_linear_programme(everyone):
    generator = np.random.default_rng(3)
    group, kinds, weight = some(generator, 2, 8)
    kinds = np.stack([kinds[:, 0], 1 - kinds[:, 0], 0 * kinds[:, 0]], axis=1)
    known, right, place = equations(group, kinds, weight)
    people = weight @ group
    gap = ratio(place, 1)[0] / people[1] - ratio(place, 0)[0] / people[0]
    least, most = proxy_bounds(group.T, kinds[:, 0], kinds[:, 1], weight)
    for sign, expected in ((1, least[1] - most[0]), (-1, most[1] - least[0])):
        done = linprog(sign * gap, A_eq=known, b_eq=right, bounds=(0, 1))
        assert sign * done.fun == pytest.approx(expected, abs=1e-6)


def test_of_many_rows_the_ends_are_the_bounds():
    generator = np.random.default_rng(4)
    group, kinds, weight = some(generator, 3)
    rows = 100_000
    z = generator.choice(5, rows, p=weight)
    kind = (generator.random((rows, 1)) > kinds.cumsum(axis=1)[z]).sum(axis=1)
    cell = np.array([3, 2, 0])[kind]  # of the true positive rate
    result = ProxyRows(
        group[z],
        cell,
        _cells_of_equal_probability(group[z], most=50),
        generator.integers(0, 2, rows),
    ).bounds(RATE_OF["equal_opportunity"])
    lower, upper = proxy_bounds(group.T, kinds[:, 0], kinds[:, 1], weight)
    np.testing.assert_allclose(result.value[0], lower, atol=0.015)
    np.testing.assert_allclose(result.value[1], upper, atol=0.015)


def test_known_groups_leave_nothing_open():
    generator = np.random.default_rng(5)
    group, cell = generator.integers(0, 2, 3000), generator.integers(0, 4, 3000)
    share = np.stack([1.0 - group, group], axis=1)
    rows = ProxyRows(
        share, cell, _cells_of_equal_probability(share, most=50), generator.integers(0, 2, 3000)
    )
    for rate in RATES.values():
        ends = rows.bounds(rate)
        counts = np.stack([np.bincount(cell[group == g], minlength=4) for g in (0, 1)])
        np.testing.assert_allclose(ends.value[0], rate(counts), atol=1e-9)
        np.testing.assert_allclose(ends.value[1], rate(counts), atol=1e-9)
        np.testing.assert_allclose(ends.rows[0], rate.size(counts), rtol=0.02)
        np.testing.assert_allclose(rows.weighted(rate), rate(counts))


@pytest.mark.thorough
@pytest.mark.parametrize("side", [1, -1, 0])
def test_intervals_hold_the_truth_even_at_an_end(side):
    """The benchmark of coverage has more populations."""
    draw, counts = np.random.default_rng(6), proxy_truth(side, 0)
    samples = [proxy_rows(side, 0, 300, draw)[0] for _ in range(60)]
    for rate in RATES.values():
        hits = []
        for sample in samples:
            lower, upper = sample.bounds(rate).interval()
            hits.append(((lower <= rate(counts)) & (rate(counts) <= upper)).mean())
        assert np.mean(hits) > 0.92


@pytest.mark.parametrize("side", [1, -1])
def test_gaps_lie_in_their_intervals_too(side):
    draw, value = np.random.default_rng(7), base_rate(proxy_truth(side, 10))
    result = [gap_bounds(proxy_rows(side, 10, 500, draw)[0].bounds(base_rate)) for _ in range(60)]
    held = [low <= value[1] - value[0] <= high for low, high in (r["interval"] for r in result)]
    assert np.mean(held) > 0.92
