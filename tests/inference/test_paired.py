"""Two classifiers on the same rows: counts by hand, and intervals that hold the change of a gap."""

import numpy as np
import pytest
from scipy.special import ndtri

from fairbench.inference.gaps import CELLS, cells_of, difference, gap_change, rates_of
from fairbench.metrics.registry import (
    accuracy,
    binary_confusion,
    positive_predictive_value,
    true_positive_rate,
)

RATES = (accuracy, true_positive_rate, positive_predictive_value)


def decided(right, other_right, sizes, generator, *, shared=0.5):
    """Return labels, both classifiers' decisions and groups; each is right with its probability."""
    columns = []
    for group, (one, other, size) in enumerate(zip(right, other_right, sizes, strict=True)):
        label = generator.integers(0, 2, size)
        common = np.sqrt(shared) * generator.normal(size=size)
        decisions = [
            np.where(
                common + np.sqrt(1 - shared) * generator.normal(size=size) < ndtri(chance),
                label,
                1 - label,
            )
            for chance in (one, other)
        ]
        columns.append(np.stack([label, *decisions, np.full(size, group)]))
    return np.concatenate(columns, axis=1)


def counted(rows, groups):
    return cells_of(*rows, groups=groups)


def test_rates_and_differences_are_those_of_the_confusion_counts():
    rows = decided((0.8, 0.7), (0.75, 0.9), (200, 100), np.random.default_rng(0))
    label, first, second, group = rows
    cells = counted(rows, 2)
    assert cells.shape == (2, CELLS)
    for rate in RATES:
        one, other = (
            rate(binary_confusion(label, decision, group, n_groups=2))
            for decision in (first, second)
        )
        both = rates_of(cells, rate, level=0.95)
        np.testing.assert_allclose([limits.value for limits in both], [one, other])
        change = difference(cells, rate, level=0.95)
        np.testing.assert_allclose(change.value, other - one)
        gap = gap_change(cells, rate)
        assert gap.value == pytest.approx(np.ptp(other) - np.ptp(one))
        assert gap.lower <= gap.value <= gap.upper


def test_what_both_have_in_common_cancels():
    generator = np.random.default_rng(1)
    alike, apart = (
        gap_change(counted(decided((0.8, 0.6), (0.8, 0.6), (400, 400), generator, shared=s), 2),
                   accuracy)
        for s in (0.95, 0.0)
    )  # fmt: skip
    assert alike.upper - alike.lower < 0.6 * (apart.upper - apart.lower)


@pytest.mark.parametrize(("rate", "reach"), [(accuracy, 0.1), (positive_predictive_value, 0.2)])
def test_no_two_classifiers_are_taken_to_agree_for_ever(rate, reach):
    rows = decided((0.8, 0.8), (0.8, 0.8), (30, 30), np.random.default_rng(2))
    label, first, _, group = rows
    change = gap_change(cells_of(label, first, first, group, groups=2), rate)
    assert change.value == 0
    assert change.upper > reach
    assert change.lower < -reach


def test_more_groups_never_change_more_than_each_of_them():
    generator = np.random.default_rng(3)
    for _ in range(20):
        cells = counted(decided((0.8, 0.7, 0.6), (0.8, 0.7, 0.6), (90,) * 3, generator), 3)
        for rate in RATES:
            change = gap_change(cells, rate)
            assert change.lower <= change.value <= change.upper


@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "other", "sizes"),
    [
        ((0.8, 0.8), (0.8, 0.8), (300, 300)),
        ((0.8, 0.6), (0.7, 0.7), (200, 60)),
        ((0.8, 0.7), (0.8, 0.8), (300, 300)),
        ((0.7, 0.8), (0.8, 0.7), (300, 300)),
        ((0.8, 0.7, 0.6), (0.7, 0.7, 0.7), (300, 300, 300)),
        ((0.8,) * 5, (0.8,) * 5, (100,) * 5),
    ],
)
def test_intervals_hold_the_change_of_the_largest_gap(right, other, sizes):
    """At least 93 % of 500 are to hold it: 450 are three standard errors fewer."""
    generator = np.random.default_rng(4)
    truth = np.ptp(other) - np.ptp(right)
    held = 0
    for _ in range(500):
        rows = decided(right, other, sizes, generator)
        change = gap_change(counted(rows, len(sizes)), accuracy)
        held += change.lower <= truth <= change.upper
    assert held >= 450
