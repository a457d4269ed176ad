"""What further search may gain: the bound against its own martingale, and what is chosen."""

import numpy as np
import pytest
from scipy import integrate

from fairbench.inference.selection import chance_of_better, further_gain, is_enough, least_gap


@pytest.mark.parametrize("risk", [0.025, 0.05, 0.2])
@pytest.mark.parametrize("tried", [1, 2, 7, 100])
def test_at_the_bound_the_martingale_is_one_over_the_risk(tried, risk):
    bound = float(chance_of_better(tried, risk=risk))
    if bound < 1 - 1e-9:  # (1 - v)^-tried has no integral up to 1
        value, _ = integrate.quad(lambda v: (1 - v) ** -tried, 0, bound)
        assert value == pytest.approx(1 / risk, rel=1e-6)


def test_the_bound_holds_at_all_numbers_of_draws_at_once_and_is_not_idle():
    uniform = np.random.default_rng(0).random((4000, 300))
    least = np.minimum.accumulate(uniform, axis=1)
    bound = chance_of_better(np.arange(1, 301), risk=0.1)
    missed = (least > bound).any(axis=1).mean()
    assert 0.03 < missed < 0.1


def test_the_bound_is_the_one_of_the_paper_and_falls():
    tried = np.arange(2, 400)
    bound = chance_of_better(tried, risk=0.05)
    expected = 1 - ((tried - 1) / 0.05 + 1) ** (-1 / (tried - 1))
    np.testing.assert_allclose(bound, expected)
    assert (np.diff(bound) < 0).all()
    assert chance_of_better(1, risk=0.05) == pytest.approx(1 - np.exp(-20))


def test_the_gain_of_one_more_is_gap_times_chance_and_of_many_at_most_the_gap():
    assert further_gain(0.2, 0.1) == pytest.approx(0.02)
    assert further_gain(0.2, 0.1, more=2) == pytest.approx(0.2 * 0.19)
    assert further_gain(0.2, 0.1, more=10_000) == pytest.approx(0.2)
    assert further_gain(0.2, 1.0) == 0.2 and further_gain(0.2, 0.0, more=9) == 0


def test_the_average_gain_of_one_more_draw_is_under_the_bound_that_stopped_the_search():
    rng = np.random.default_rng(1)
    missed = 0
    for _ in range(400):
        shape = rng.uniform(0.5, 4, 2)  # of the distribution of gaps
        drawn = rng.beta(*shape, 200)
        best = np.minimum.accumulate(drawn)
        at = next((t for t in range(200) if is_enough(best[t], t + 1, worth=0.01, risk=0.05)), 199)
        fresh = rng.beta(*shape, 4000)
        bound = further_gain(best[at], chance_of_better(at + 1, risk=0.05))
        missed += np.maximum(best[at] - fresh, 0).mean() > bound
    assert missed <= 20


def test_nothing_is_enough_before_a_draw_and_a_gap_of_nothing_is_after_one():
    assert not is_enough(0.0, 0, worth=0.01, risk=0.05)
    assert is_enough(0.0, 1, worth=0.01, risk=0.05)
    assert not is_enough(0.5, 1, worth=0.01, risk=0.05)


@pytest.mark.parametrize(
    ("gaps", "errors", "chosen"),
    [
        ([0.2, 0.1, 0.05], [0.3, 0.3, 0.3], 2),
        ([0.2, 0.1, 0.05], [0.3, 0.31, 0.32], 1),  # the last one errs too often
        ([0.2, 0.2, 0.3], [0.3, 0.1, 0.1], 0),  # none has a smaller gap
        ([0.2, 0.1, 0.1], [0.3, 0.3, 0.29], 2),  # of equal gaps, the less error
        ([0.2, np.nan, 0.1], [0.3, np.nan, 0.3], 2),  # the second failed
        ([0.2, np.nan], [0.3, np.nan], 0),
        ([0.2], [0.3], 0),
    ],
)
def test_the_smallest_gap_whose_error_is_allowed_is_chosen(gaps, errors, chosen):
    assert least_gap(gaps, errors, within=0.01) == chosen
