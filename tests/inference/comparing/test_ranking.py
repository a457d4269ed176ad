"""Rankings with ties."""

import numpy as np

from fairbench.inference.selection import ranking


def test_only_certain_differences_rank():
    outperforms = np.array([[0, 0.99, 0.97], [0, 0, 0.5], [0, 0.2, 0]])
    np.testing.assert_array_equal(ranking(outperforms), [1, 2, 2])
    np.testing.assert_array_equal(ranking(outperforms, certainty=0.5), [1, 2, 3])
    np.testing.assert_array_equal(ranking(outperforms, certainty=0.995), [1, 1, 1])


def test_diagonal_is_not_looked_at():
    np.testing.assert_array_equal(ranking(np.eye(3)), [1, 1, 1])
