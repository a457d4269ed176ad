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


def test_bounds_hold_whichever_labels_are_wrong():
    generator = np.random.default_rng(2)
    label, decision = generator.integers(0, 2, (2, 300))
    truth = np.where(generator.random(300) < 0.1, 1 - label, label)
    counts, right = (np.bincount(2 * labels + decision, minlength=4) for labels in (label, truth))
    for rate in RATES.values():
        lower, upper = flip_bounds(rate, counts, (truth != label).sum())
        assert lower <= rate(right) <= upper


def test_no_wrong_labels_leave_the_rates_as_they_are():
    counts = np.array([[5, 3, 2, 10], [0, 4, 1, 1]])
    for rate in RATES.values():
        for end in flip_bounds(rate, counts, np.zeros(2)):
            np.testing.assert_allclose(end, rate(counts))


def test_no_label_is_made_up_and_none_is_lost():
    tables = _correct_counts([5.0, 3, 2, 10], 6, splits=5)
    assert tables.shape == (20, 4)
    assert tables.min() >= 0
    np.testing.assert_allclose(tables.sum(axis=1), 20)
    np.testing.assert_allclose(tables[:, [FP, TP]].sum(axis=1), 13)  # decisions stay


@pytest.mark.parametrize("power", [0.3, 1, 4])
def test_the_last_number_of_wrong_labels_is_found(power):
    def margin(wrong, last=37):
        return np.sign(last + 0.5 - wrong) * abs(last + 0.5 - wrong) ** power

    assert _tipping_point(margin, 100) == 37
    assert _tipping_point(lambda wrong: 1.0, 100) is None
    assert _tipping_point(lambda wrong: 0.0, 100) == -1
    many = _tipping_point(lambda wrong: margin(wrong, 370_000), 10**6)
    assert 370_000 * 0.98 <= many <= 370_000
