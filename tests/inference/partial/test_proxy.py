"""Groups known through probabilities: bounds are a linear programme's, and hold the truth."""

import numpy as np
import pytest

from benchmarks.coverage.bounds import proxy_rows, proxy_truth
from fairbench.audits.direction import RATE_OF
from fairbench.inference.partial import (
    ProxyRows,
    _cells_of_equal_probability,
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


def by_linear_programme(group, kinds, weight, g):
    """Return the least and largest rate of a group: how many (Z, G, 3) there are is unknown.

    Known is how many rows of each cell are in each group, and how many of each kind.
    """
    shape = (*group.shape, 3)
    every = np.eye(np.prod(shape)).reshape(*shape, -1)
    known = np.concatenate([every.sum(axis=2), every.sum(axis=1)], axis=1)
    right = weight[:, None] * np.concatenate([group, kinds], axis=1)
    equal = known.reshape(right.size, -1), right.ravel()
    top, whole = every[:, g, 0].sum(axis=0), every[:, g, :2].sum(axis=(0, 1))
    return extremes([0, *top], [0, *whole], [(0, 1)] * len(top), equal=equal)


@pytest.mark.parametrize(
    ("rate", "cells"), [("equal_opportunity", [3, 2, 0]), ("statistical_parity", [1, 0, 0])]
)
def test_of_many_rows_the_ends_are_the_bounds_of_a_linear_programme(rate, cells):
    generator = np.random.default_rng(4)
    group, kinds, weight = some(generator, 3)
    if rate == "statistical_parity":  # everybody is in the denominator
        kinds = np.stack([kinds[:, 0], 1 - kinds[:, 0], 0 * kinds[:, 0]], axis=1)
    rows = 100_000
    z = generator.choice(5, rows, p=weight)
    kind = (generator.random((rows, 1)) > kinds.cumsum(axis=1)[z]).sum(axis=1)
    alike = _cells_of_equal_probability(group[z], most=50)
    result = ProxyRows(group[z], np.array(cells)[kind], alike, generator.integers(0, 2, rows))
    ends = np.array(result.bounds(RATE_OF[rate]).value).T
    expected = [by_linear_programme(group, kinds, weight, g) for g in range(3)]
    np.testing.assert_allclose(ends, expected, atol=0.015)


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


@pytest.mark.parametrize("side", [1, -1])
def test_gaps_lie_in_their_intervals_too(side):
    draw, value = np.random.default_rng(7), base_rate(proxy_truth(side, 10))
    result = [proxy_rows(side, 10, 500, draw)[0].bounds(base_rate).gap() for _ in range(60)]
    held = [low <= value[1] - value[0] <= high for low, high in (r["interval"] for r in result)]
    assert np.mean(held) > 0.92
