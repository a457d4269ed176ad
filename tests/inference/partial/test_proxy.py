"""Groups known through probabilities: bounds are a linear programme's, and hold the truth."""

from functools import cache

import numpy as np
import pytest
from scipy.optimize import linprog

from fairbench.audit.gaps import RATE_OF
from fairbench.inference.partial.ends import gap_bounds
from fairbench.inference.partial.proxy import ProxyRows, alike, proxy_bounds
from fairbench.metrics.rates import base_rate
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


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("everyone", [False, True])
def test_bounds_are_a_linear_programmes(groups, everyone):
    generator = np.random.default_rng(1)
    for _ in range(12):
        group, kinds, weight = some(generator, groups)
        if everyone:  # everybody is in the denominator, as for accuracy
            kinds = np.stack([kinds[:, 0], 1 - kinds[:, 0], 0 * kinds[:, 0]], axis=1)
        known, right, place = equations(group, kinds, weight)
        found = proxy_bounds(group.T, kinds[:, 0], kinds[:, 1], weight)
        for g in range(groups):
            top, whole = ratio(place, g)
            expected = extremes([0, *top], [0, *whole], [(0, 1)] * place.size, equal=(known, right))
            np.testing.assert_allclose([each[g] for each in found], expected, atol=1e-6)


@pytest.mark.parametrize("groups", [2, 3, 5])
def test_bounds_of_two_groups_are_possible_at_once_so_that_gaps_are_sharp_too(groups):
    generator = np.random.default_rng(2)
    for _ in range(12):
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
    rows = 400_000
    z = generator.choice(5, rows, p=weight)
    kind = (generator.random((rows, 1)) > kinds.cumsum(axis=1)[z]).sum(axis=1)
    cell = np.array([3, 2, 0])[kind]  # of the true positive rate
    found = ProxyRows(
        group[z], cell, alike(group[z], most=50), generator.integers(0, 2, rows)
    ).ends(RATE_OF["equal_opportunity"])
    lower, upper = proxy_bounds(group.T, kinds[:, 0], kinds[:, 1], weight)
    np.testing.assert_allclose(found.lower, lower, atol=0.01)
    np.testing.assert_allclose(found.upper, upper, atol=0.01)


def test_known_groups_leave_nothing_open():
    generator = np.random.default_rng(5)
    group, cell = generator.integers(0, 2, 3000), generator.integers(0, 4, 3000)
    share = np.stack([1.0 - group, group], axis=1)
    rows = ProxyRows(share, cell, alike(share, most=50), generator.integers(0, 2, 3000))
    for rate in RATES.values():
        ends = rows.ends(rate)
        counts = np.stack([np.bincount(cell[group == g], minlength=4) for g in (0, 1)])
        np.testing.assert_allclose(ends.lower, rate(counts), atol=1e-9)
        np.testing.assert_allclose(ends.upper, rate(counts), atol=1e-9)
        np.testing.assert_allclose(ends.lower_rows, rate.size(counts), rtol=0.02)
        np.testing.assert_allclose(rows.weighted(rate), rate(counts))


def drawn(generator, rows, *, side, distinct):
    """Return rows whose groups depend on decisions and labels as far as is possible, or not."""
    share = generator.beta(0.5, 0.8, rows)
    if distinct:
        share = np.ceil(share * distinct) / distinct
    decided = 0.15 + 0.6 * share
    luck = generator.random(rows)
    decision = luck < decided
    label = generator.random(rows) < np.where(decision, 0.7, 0.2)
    # As alike decisions as can be, as unalike, or by chance.
    also = {1: luck, -1: 1 - luck, 0: generator.random(rows)}[side]
    member = (also < share).astype(int)
    probabilities = np.stack([1 - share, share], axis=1)
    most = int(np.clip(rows // 50, 1, 50))
    proxy = ProxyRows(
        probabilities,
        2 * label.astype(int) + decision,
        alike(probabilities, most=most),
        generator.integers(0, 2, rows),
    )
    return proxy, member


@cache
def truth(side, distinct):
    proxy, member = drawn(np.random.default_rng(99), 400_000, side=side, distinct=distinct)
    return np.stack([np.bincount(proxy.cell[member == g], minlength=4) for g in (0, 1)])


@pytest.mark.parametrize("distinct", [0, 10])
@pytest.mark.parametrize("side", [1, -1, 0])
@pytest.mark.parametrize(
    ("rows", "samples"), [(300, 40), pytest.param(2000, 200, marks=pytest.mark.thorough)]
)
def test_intervals_hold_the_truth_even_at_an_end(side, distinct, rows, samples):
    generator, counts = np.random.default_rng(6), truth(side, distinct)
    hits = dict.fromkeys(RATES, 0)
    gaps = 0
    for _ in range(samples):
        proxy, _ = drawn(generator, rows, side=side, distinct=distinct)
        for name, rate in RATES.items():
            ends = proxy.ends(rate)
            lower, upper = ends.interval()
            hits[name] += ((lower <= rate(counts)) & (rate(counts) <= upper)).mean()
        low, high = gap_bounds(proxy.ends(base_rate), risk=0.01).interval
        gaps += low <= base_rate(counts)[1] - base_rate(counts)[0] <= high
    assert min(hits.values()) >= 0.93 * samples - 1, hits
    assert gaps >= 0.93 * samples - 1
