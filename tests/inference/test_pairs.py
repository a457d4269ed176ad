"""Every pair: verdicts on both sides of a pair, and what outperforms by known values."""

import numpy as np

from fairbench.inference.selection import (
    ALIKE,
    BETTER,
    OPEN,
    WORSE,
    Pairs,
    outperforms,
)

NAN = np.nan


def test_verdicts_are_of_the_event_that_is_certain_enough():
    better = np.array([[NAN, 0.95, 0.1], [0.0, NAN, 0.0], [0.3, 0.0, NAN]])
    equivalent = np.array([[NAN, 0.0, 0.1], [0.0, NAN, 0.99], [0.1, 0.99, NAN]])
    traded = np.zeros((3, 3))
    result = Pairs(better, equivalent, traded).verdicts(0.95)
    assert result[0, 1] == BETTER
    assert result[1, 0] == WORSE
    assert result[0, 2] == result[2, 0] == OPEN
    assert result[1, 2] == result[2, 1] == ALIKE
    assert (np.diag(result) == OPEN).all()
    assert Pairs(better * 0, equivalent * 0, traded + 1).verdicts(0.95)[0, 1] == OPEN


def test_known_values_outperform_beyond_the_rope_only():
    values = np.array([[0.80, -0.1], [0.82, -0.105], [0.90, -0.3]])
    result = outperforms(values, np.array([0.01, 0.01]))
    expected = np.zeros((3, 3), bool)
    expected[1, 0] = True  # two points more accurate, a gap that is larger by less than the rope
    np.testing.assert_array_equal(result, expected)
    assert not outperforms(values, np.array([1.0, 1.0])).any()
