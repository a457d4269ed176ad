"""Probabilities of being best: closed form, calibration by simulation, ties and few splits."""

import numpy as np
import pytest

from fairbench.core.arrays import rng
from fairbench.inference.selection import (
    posterior_draws,
    standings,
    student_draws,
)
from tests.correlated import probability_better

DRAWS = 40000


def standing(values, test_share=0.2, rope=0.0):
    return standings(values, test_share, rope=rope, draws=drawn_of(values))


def drawn_of(values):
    return student_draws(max(len(values), 2), DRAWS, rng(0, "test"))


@pytest.mark.parametrize("splits", [2, 3, 10])
@pytest.mark.parametrize("test_share", [0.0, 0.2, 0.5])
def test_two_methods_have_the_correlated_t_test(splits, test_share):
    values = np.random.default_rng(splits).normal(size=(splits, 2)) + [0.5, 0]
    expected = probability_better(*values.T, test_share)
    assert 0.02 < expected < 0.99
    assert standing(values, test_share)[0][0] == pytest.approx(expected, abs=4 * 0.5 / 200)
    near = probability_better(*values.T, test_share, rope=-0.1)
    assert standing(values, test_share, rope=0.1)[1][0] == pytest.approx(near, abs=0.01)


def test_every_difference_of_many_has_it_too():
    values = np.random.default_rng(1).normal(size=(5, 8)) + np.linspace(0, 1, 8)
    drawn = posterior_draws(values, 0.2, drawn_of(values))
    for i, j in [(0, 1), (2, 7), (6, 3)]:
        expected = probability_better(values[:, i], values[:, j], 0.2)
        assert (drawn[:, i] > drawn[:, j]).mean() == pytest.approx(expected, abs=0.01)


def test_without_overlap_it_is_the_paired_t_test():
    from scipy import stats

    first, second = np.random.default_rng(2).normal(size=(2, 9))
    p = stats.ttest_rel(first, second, alternative="greater").pvalue
    assert probability_better(first, second, 0.0) == pytest.approx(1 - p)


def test_equal_methods_share_the_probability_and_are_near():
    column = np.array([0.1, 0.4, 0.2])
    best, near = standing(np.column_stack([column, column - 1, column]))
    assert best.tolist() == [0.5, 0, 0.5]
    assert near.tolist() == [1, 0, 1]


def test_a_constant_difference_is_certain():
    assert probability_better(np.array([2.0, 3.0]), np.array([1.0, 2.0]), 0.2) == 1
    assert probability_better(np.array([2.0, 3.0]), np.array([1.0, 2.0]), 0.2, rope=1) == 0


def test_one_split_says_nothing():
    assert np.isnan(standing(np.array([[1.0, 2.0]]))).all()


@pytest.mark.parametrize(("methods", "splits"), [(2, 3), (2, 10), (6, 10)])
def test_in_independent_splits_equal_methods_are_best_equally_often(methods, splits):
    generator = np.random.default_rng(0)
    best = np.array(
        [
            standings(values, 0.0, rope=0, draws=student_draws(splits, 1000, generator))[0]
            for values in generator.normal(size=(600, splits, methods))
        ]
    )
    # The sd of a mean of 600 probabilities is at most 0.5 / sqrt(600) = 0.02.
    assert best.mean(axis=0) == pytest.approx(np.full(methods, 1 / methods), abs=0.07)
    sure = (best.max(axis=1) > 0.95).mean()
    assert sure < 0.10 + 4 * np.sqrt(0.09 / 600)
    if methods == 2:  # one of the two is in the upper twentieth in a tenth of all cases
        assert sure > 0.10 - 4 * np.sqrt(0.09 / 600)


def overlapping(generator, rows=100, splits=10, train=80):
    """Return accuracies of nearest means on one feature or the other: equal in expectation."""
    y = np.repeat([0, 1], rows // 2)
    x = generator.normal(size=(rows, 2)) + 0.5 * y[:, None]
    values = np.empty((splits, 2))
    for values_of_split in values:
        order = generator.permutation(rows)
        fit, test = order[:train], order[train:]
        low, high = x[fit][y[fit] == 0].mean(axis=0), x[fit][y[fit] == 1].mean(axis=0)
        predicted = (x[test] > (low + high) / 2) == (high > low)
        values_of_split[:] = (predicted == y[test][:, None]).mean(axis=0)
    return values


def test_in_overlapping_splits_the_correction_keeps_the_promise():
    generator = np.random.default_rng(0)
    measured = [overlapping(generator) for _ in range(600)]

    def sure(test_share):
        result = [probability_better(*values.T, test_share) for values in measured]
        return (np.abs(np.array(result) - 0.5) > 0.45).mean()

    # Nominally a tenth; without the correction more than three times as often.
    assert sure(0.2) < 0.16
    assert sure(0.0) > 0.3
