"""Joint tables of two algorithms: their margins, and what pairing does to the variance."""

import numpy as np
import pytest

from fairbench.inference.posterior import (
    independent_draws,
    joint_confusion,
    margins,
    paired_draws,
)
from fairbench.metrics.rates import accuracy, confusion

JOINT = np.array([[60, 5, 6, 9, 12, 4, 5, 39]])
DRAWS = 40000


@pytest.mark.parametrize("n_classes", [2, 3])
def test_margins_are_each_algorithms_own_confusion(n_classes):
    draw = np.random.default_rng(0)
    target, first, second = draw.integers(n_classes, size=(3, 500))
    group = draw.integers(3, size=500)
    joint = joint_confusion(target, first, second, group, n_groups=4, n_classes=n_classes)
    assert joint.shape == (4, n_classes**3)
    for mine, prediction in zip(margins(joint), (first, second), strict=True):
        expected = confusion(target, prediction, group, n_groups=4, n_classes=n_classes)
        np.testing.assert_array_equal(mine, expected.reshape(4, -1))


def accuracy_difference(tables):
    first, second = tables
    return (accuracy(first) - accuracy(second))[:, 0]


def test_paired_variance_is_the_closed_form():
    """A - B is the difference of two Dirichlet sums: A right and B wrong, minus the reverse."""
    values = accuracy_difference(paired_draws(JOINT, DRAWS, np.random.default_rng(1)))
    weights = JOINT[0] + 0.5
    whole = weights.sum()
    # Cells are (target, A, B): A alone is right in 001 and 110, B alone in 010 and 101.
    p, q = weights[[0b001, 0b110]].sum() / whole, weights[[0b010, 0b101]].sum() / whole
    variance = (p + q - (p - q) ** 2) / (whole + 1)
    assert abs(values.mean() - (p - q)) < 5 * np.sqrt(variance / DRAWS)
    np.testing.assert_allclose(values.var(), variance, rtol=5 * np.sqrt(2 / DRAWS))


def test_independent_variance_is_the_sum_of_the_betas():
    first, second = margins(JOINT)
    draws = independent_draws(first, second, DRAWS, np.random.default_rng(2))
    variance = 0.0
    for counts in (first, second):
        right, whole = counts[0, [0, 3]].sum() + 2, counts.sum() + 4
        variance += right * (whole - right) / whole**2 / (whole + 1)
    values = accuracy_difference(draws)
    np.testing.assert_allclose(values.var(), variance, rtol=5 * np.sqrt(2 / DRAWS))
    paired = accuracy_difference(paired_draws(JOINT, DRAWS, np.random.default_rng(1)))
    assert paired.var() < values.var()


def test_each_algorithm_alone_has_the_same_posterior_paired_or_not():
    paired = paired_draws(JOINT, DRAWS, np.random.default_rng(3))
    alone = independent_draws(*margins(JOINT), DRAWS, np.random.default_rng(4))
    for one, other in zip(paired, alone, strict=True):
        error = 5 * one.std(axis=0) / np.sqrt(DRAWS / 2)
        assert (np.abs(one.mean(axis=0) - other.mean(axis=0)) < error).all()
        np.testing.assert_allclose(one.std(axis=0), other.std(axis=0), rtol=0.03)


def test_predictive_margins_are_counts_of_the_same_rows():
    first, second = paired_draws(JOINT, 100, np.random.default_rng(5), predictive=True)
    assert (first.sum(axis=-1) == JOINT.sum()).all()
    positives = first[..., 2:].sum(axis=-1)
    np.testing.assert_array_equal(positives, second[..., 2:].sum(axis=-1))
