"""Ranks and probabilities of being extreme, against quadrature for three arms."""

import numpy as np
import pytest
from scipy import integrate, stats

from fairbench.inference.beta import Beta, probability_less
from fairbench.inference.reliability import equivalence, ranks

ARMS = Beta(np.array([8.0, 7.0, 12.0]), np.array([4.0, 2.0, 3.0]))
DRAWS = ARMS.draws(40000, np.random.default_rng(0))
ERROR = 5 * 0.5 / np.sqrt(len(DRAWS))


def arm(g):
    return stats.beta(ARMS.successes[g], ARMS.failures[g])


def test_probability_of_being_least_accurate_against_quadrature():
    result = ranks(DRAWS, m=2, largest=False)
    for g in range(3):
        others = [arm(h) for h in range(3) if h != g]
        least, most = (
            integrate.quad(lambda t, g=g, o=o, n=n: arm(g).pdf(t) * getattr(o[0], n)(t)
                           * getattr(o[1], n)(t), 0, 1)[0]
            for o, n in ((others, "sf"), (others, "cdf"))
        )  # fmt: skip
        assert result.first[g] == pytest.approx(least, abs=ERROR)
        assert result.among[g] == pytest.approx(1 - most, abs=ERROR)
    assert result.first.sum() == pytest.approx(1)
    assert result.among.sum() == pytest.approx(2)


def test_expected_rank_is_one_plus_the_arms_that_are_probably_before():
    pairs = Beta(ARMS.successes[:, None], ARMS.failures[:, None])
    before = probability_less(ARMS, pairs)
    np.fill_diagonal(before, 0)
    np.testing.assert_allclose(
        ranks(DRAWS, largest=False).mean, 1 + before.sum(axis=1), atol=2 * ERROR
    )


def test_order_and_interval():
    draws = np.array([[0.1, 0.3, 0.2]] * 9 + [[0.4, 0.3, 0.2]])
    result = ranks(draws)
    np.testing.assert_allclose(result.first, [0.1, 0.9, 0])
    np.testing.assert_allclose(result.mean, [2.8, 1.1, 2.1])
    np.testing.assert_array_equal(result.lower, [1, 1, 2])
    np.testing.assert_array_equal(result.upper, [3, 2, 3])
    np.testing.assert_allclose(ranks(draws, largest=False).first, [0.9, 0, 0.1])


@pytest.mark.parametrize("rope", [0.0, 0.05])
def test_equivalence_against_quadrature(rope):
    less, same, greater = equivalence(DRAWS[:, 0], DRAWS[:, 1], rope=rope)
    first, second = (Beta(ARMS.successes[g], ARMS.failures[g]) for g in (0, 1))
    assert less == pytest.approx(probability_less(first, second, margin=rope), abs=ERROR)
    assert greater == pytest.approx(probability_less(second, first, margin=rope), abs=ERROR)
    assert less + same + greater == pytest.approx(1)
