"""Wrong labels: the closed form of the bounds is a linear programme's."""

import numpy as np
import pytest

from fairbench.audits.direction import RATE_OF
from fairbench.inference.partial import _correct_counts, _tipping_point
from fairbench.metrics.registry import FN, FP, TN, TP, base_rate
from tests.inference.partial.linear import extremes

RATES = {**RATE_OF, "base rate": base_rate}
# What a label that is wrong takes from a cell, and gives to another.
MOVES = np.zeros((4, 4))
for place, (source, goal) in enumerate([(TP, FP), (FP, TP), (TN, FN), (FN, TN)]):
    MOVES[place, [source, goal]] = -1, 1
SOURCES = [TP, FP, TN, FN]


def by_linear_programme(rate, counts, wrong):
    top, whole = np.array(rate.numerator), np.array(rate.denominator)
    return extremes(
        [top @ counts, *(MOVES @ top)],
        [whole @ counts, *(MOVES @ whole)],
        [(0, counts[cell]) for cell in SOURCES],
        upper=(np.ones((1, 4)), [wrong]),
    )


def flip_bounds(rate, counts, wrong):
    values = rate(_correct_counts(counts, wrong))
    return np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)


@pytest.mark.parametrize("name", RATES)
def test_bounds_are_a_linear_programmes(name):
    generator = np.random.default_rng(1)
    for _ in range(12):
        counts = generator.dirichlet([0.7] * 4) * generator.choice([1, 50, 3000])
        wrong = generator.choice([0, 0.01, 0.2, 0.9]) * counts.sum()
        result = flip_bounds(RATES[name], counts, wrong)
        expected = by_linear_programme(RATES[name], counts, wrong)
        np.testing.assert_allclose(result, expected, atol=1e-6)


@pytest.mark.parametrize("power", [0.3, 1, 4])
def test_the_last_number_of_wrong_labels_is_found(power):
    def margin(wrong, last=37):
        return np.sign(last + 0.5 - wrong) * abs(last + 0.5 - wrong) ** power

    assert _tipping_point(margin, 100) == 37
    assert _tipping_point(lambda wrong: 1.0, 100) is None
    assert _tipping_point(lambda wrong: 0.0, 100) == -1
    many = _tipping_point(lambda wrong: margin(wrong, 370_000), 10**6)
    assert 370_000 * 0.98 <= many <= 370_000
