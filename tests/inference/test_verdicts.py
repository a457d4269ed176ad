"""Which of several methods are better: pairs, ranks, and who may be the best."""

import numpy as np
import pytest
from scipy import stats

from fairbench.core.arrays import rng
from fairbench.inference.repeats import posterior_draws, student_draws
from fairbench.inference.verdicts import (
    ALIKE,
    BETTER,
    OPEN,
    WORSE,
    Pairs,
    outperforms,
    ranking,
    standings,
)
from tests.correlated import probability_better

# Rankings with ties.


def test_only_certain_differences_rank_and_the_diagonal_is_not_looked_at():
    outperforms = np.array([[1, 0.99, 0.97], [0, 1, 0.5], [0, 0.2, 1]])
    for certainty, ranks in ((0.95, [1, 2, 2]), (0.5, [1, 2, 3]), (0.995, [1, 1, 1])):
        np.testing.assert_array_equal(ranking(outperforms.copy(), certainty=certainty), ranks)


# Every pair: verdicts on both sides of a pair, and what outperforms by known values.


def test_verdicts_are_of_the_event_that_is_certain_enough():
    better = np.array([[np.nan, 0.95, 0.1], [0.0, np.nan, 0.0], [0.3, 0.0, np.nan]])
    equivalent = np.array([[np.nan, 0.0, 0.1], [0.0, np.nan, 0.99], [0.1, 0.99, np.nan]])
    traded = np.zeros((3, 3))
    result = Pairs(better, equivalent, traded).verdicts(0.95)
    assert result.tolist() == [[OPEN, BETTER, OPEN], [WORSE, OPEN, ALIKE], [OPEN, ALIKE, OPEN]]
    assert Pairs(better * 0, equivalent * 0, traded + 1).verdicts(0.95)[0, 1] == OPEN


def test_known_values_outperform_beyond_the_rope_only():
    values = np.array([[0.80, -0.1], [0.82, -0.105], [0.90, -0.3]])
    result = outperforms(values, np.array([0.01, 0.01]))
    # Two points more accurate, a gap that is larger by less than the rope.
    assert np.argwhere(result).tolist() == [[1, 0]]
    assert not outperforms(values, np.array([1.0, 1.0])).any()


# Probabilities of being best: closed form, ties and few splits.


def standing(values, test_share=0.2, rope=0.0):
    return standings(values, test_share, rope=rope, draws=drawn_of(values))


def drawn_of(values):
    return student_draws(max(len(values), 2), 40_000, rng(0, "test"))


@pytest.mark.parametrize("splits", [2, 3, 10])
@pytest.mark.parametrize("test_share", [0.0, 0.2, 0.5])
def test_two_methods_have_the_correlated_t_test(splits, test_share):
    values = np.random.default_rng(splits).normal(size=(splits, 2)) + [0.5, 0]
    expected = probability_better(*values.T, test_share)
    assert 0.02 < expected < 0.99
    if not test_share:
        p = stats.ttest_rel(*values.T, alternative="greater").pvalue
        assert expected == pytest.approx(1 - p)
    assert standing(values, test_share)[0][0] == pytest.approx(expected, abs=4 * 0.5 / 200)
    near = probability_better(*values.T, test_share, rope=-0.1)
    assert standing(values, test_share, rope=0.1)[1][0] == pytest.approx(near, abs=0.01)


def test_every_difference_of_many_has_it_too():
    values = np.random.default_rng(1).normal(size=(5, 8)) + np.linspace(0, 1, 8)
    drawn = posterior_draws(values, 0.2, drawn_of(values))
    for i, j in [(0, 1), (2, 7), (6, 3)]:
        expected = probability_better(values[:, i], values[:, j], 0.2)
        assert (drawn[:, i] > drawn[:, j]).mean() == pytest.approx(expected, abs=0.01)


def test_equal_methods_share_the_probability_and_are_near_and_one_split_says_nothing():
    column = np.array([0.1, 0.4, 0.2])
    best, near = standing(np.column_stack([column, column - 1, column]))
    assert best.tolist() == [0.5, 0, 0.5]
    assert near.tolist() == [1, 0, 1]
    assert np.isnan(standing(np.array([[1.0, 2.0]]))).all()  # one split says nothing
