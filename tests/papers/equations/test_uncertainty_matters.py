"""Numbered equations and definitions of Uncertainty Matters, each against a number by hand."""

import numpy as np
import pytest

from fairbench.inference.comparing import Comparison, highest_density_region
from fairbench.inference.posterior import posterior_draws, table_draws
from fairbench.inference.survey import (
    effective_counts,
    mean_shrinkage,
    overestimated_variance,
    relative_rho,
    shrinkage,
)
from fairbench.metrics.group import one_vs_rest

OBJECTIVES = ("accuracy", "equal_opportunity")
# Differences A - B of two objectives; the region of practical equivalence is 0.01 wide each way.
DELTA = np.array(
    [
        [0.010, -0.010],  # on the region's edge: equivalent
        [0.000, 0.000],
        [0.020, -0.005],  # A in the first, equivalent in the second
        [0.020, 0.030],  # A in both
        [-0.020, 0.010],  # B in the first
        [0.020, -0.030],  # A in the first, B in the second
        [-0.050, 0.040],  # B in the first, A in the second
        [-0.050, 0.011],  # the same
    ]
)
COMPARISON = Comparison(OBJECTIVES, DELTA, np.array([0.01, 0.01]))


def test_equation_1_draws_a_table_after_its_probabilities():
    """Equation (1): pi from Dir(C + 1), then C from the multinomial, then the metric."""
    counts, draws = np.array([[30.0, 10.0, 5.0, 15.0]]), 40000
    shares = posterior_draws(counts, draws, np.random.default_rng(0))[:, 0, 0]
    tables = table_draws(counts, draws, np.random.default_rng(0), predictive=True)[:, 0, 0]
    mean = (30 + 1) / (60 + 4)
    variance = mean * (1 - mean) / (60 + 4 + 1)
    assert shares.mean() == pytest.approx(mean, abs=0.002)
    assert shares.var() == pytest.approx(variance, rel=0.03)
    # Of the drawn table: E[pi (1 - pi)] / 60 comes on top, so that the variance about doubles.
    assert (tables / 60).var() == pytest.approx(
        variance + (mean * (1 - mean) - variance) / 60, rel=0.03
    )


def test_equation_2_divides_the_sum_of_the_folds():
    """Equation (2), Proposition 2.3: the sum of the folds over 1 + (K - 1) rho."""
    folds = np.array([[8, 1, 2, 9], [7, 2, 1, 10], [9, 0, 3, 8], [8, 1, 2, 9], [8, 2, 1, 9]])
    expected = np.array([8 + 7 + 9 + 8 + 8, 1 + 2 + 0 + 1 + 2, 2 + 1 + 3 + 2 + 1, 45]) / (
        1 + 4 * 0.2
    )
    assert effective_counts(folds, float(shrinkage(0.2, 5))) == pytest.approx(expected)


def test_definition_2_2_the_effective_matrix_has_the_variance_of_the_mean():
    """Definition 2.2: psi (1 + (K - 1) rho) / K, here of a rate of 0.8 from 10 folds of 70 rows."""
    psi, rho = 0.8 * 0.2 / 70, 0.1
    expected = psi * (1 + 9 * rho) / 10
    rows = float(effective_counts(np.full((10, 1), 70), float(shrinkage(rho, 10)))[0])
    assert 0.8 * 0.2 / rows == pytest.approx(expected)


@pytest.mark.parametrize(
    ("r", "rho_0", "expected"),
    [
        (1.0, 0.1, (0 + 1 * 9 * 0.1) / 9),
        (2.0, 0.1, ((2 - 1) + 2 * 9 * 0.1) / 9),
        (0.5, 0.05, ((0.5 - 1) + 0.5 * 9 * 0.05) / 9),
    ],
)
def test_equation_3_relative_correlation(r, rho_0, expected):
    """Equation (3): ((r - 1) + r (K - 1) rho_0) / (K - 1)."""
    assert relative_rho(r, 10, rho_0) == pytest.approx(expected)


def test_equation_3_has_a_correlation_for_each_subgroup():
    """Equation (3) of two groups, r = 1 and 3: their counts shrink by 1 / 1.9 and 1 / 5.7."""
    own = shrinkage(relative_rho(np.array([1.0, 3.0]), 10), 10)
    assert own == pytest.approx([1 / (1 + 9 * 0.1), 1 / (3 * (1 + 9 * 0.1))])


def test_section_5_1_averages_what_a_count_is_worth_over_an_interval():
    """Section 5.1: the integral of 1 / (1 + (K - 1) rho) over [a, b], divided by b - a."""
    middles = (np.arange(1000) + 0.5) / 1000 * 0.1
    assert mean_shrinkage(10) == pytest.approx(np.mean(1 / (1 + 9 * middles)), abs=1e-7)
    assert mean_shrinkage(10) == pytest.approx(np.log(1 + 9 * 0.1) / (9 * 0.1))


def test_definition_3_1_equivalence_holds_on_the_edge():
    """Definition 3.1 and event (a): |x_i| <= epsilon_i in every objective, 2 of 8 draws."""
    assert COMPARISON.events()["A ~ B"] == 2 / 8


def test_section_3_event_b_a_is_better_somewhere_and_worse_nowhere():
    """Section 3, event (b): 2 of 8 draws."""
    assert COMPARISON.events()["A >> B"] == 2 / 8


def test_section_3_event_c_and_the_mixed_events():
    """Section 3, event (c) and the others: 1, 1 and 2 of 8 draws."""
    events = COMPARISON.events()
    assert events["B >> A"] == 1 / 8
    assert events["A accuracy, B equal_opportunity"] == 1 / 8
    assert events["B accuracy, A equal_opportunity"] == 2 / 8


def test_equation_4_a_table_of_each_class_against_the_rest():
    """Equation (4): of class 1, TP 5, FP 2 + 1, FN 3 + 0, TN the other 4 + 1 + 2 + 6."""
    counts = np.array([[[4, 2, 1], [3, 5, 0], [2, 1, 6]]])
    assert one_vs_rest(counts)[1, 0].tolist() == [4 + 1 + 2 + 6, 2 + 1, 3 + 0, 5]


def test_lemma_9_1_variance_of_a_mean_of_correlated_folds():
    """Lemma 9.1: delta (pi + (1 - pi) / K), which (2) turns into a number of rows."""
    delta, pi, folds = 0.04, 0.3, 4
    expected = 0.04 * (0.3 + 0.7 / 4)
    assert delta / (folds * float(shrinkage(pi, folds))) == pytest.approx(expected)


def test_equation_17_is_the_variance_of_step_i_alone():
    """Equations (17) and (18): r (1 - r) (1 + (K - 1) rho) / n of the probabilities, not of (1)."""
    found, missed, rho = 80.0, 20.0, 0.1
    counts = np.array([[0.0, 0.0, missed, found]]) * float(shrinkage(rho, 10))
    expected = 0.8 * 0.2 * (1 + 9 * 0.1) / 100
    draws = table_draws(counts, 40000, np.random.default_rng(1), alpha=0)
    rates = draws[:, 0, 3] / (draws[:, 0, 2] + draws[:, 0, 3])
    assert rates.var() == pytest.approx(expected, rel=0.05)
    again = table_draws(counts, 40000, np.random.default_rng(1), alpha=0, predictive=True)
    rates = again[:, 0, 3] / (again[:, 0, 2] + again[:, 0, 3])
    assert rates.var() == pytest.approx(2 * expected, rel=0.05)


def test_equation_20_variance_from_disjoint_halves():
    """Equation (20): 1 / (2 J) times the sum of the squared differences of the halves."""
    halves = np.array([[0.70, 0.76], [0.74, 0.72], [0.71, 0.73]])
    expected = (0.06**2 + 0.02**2 + 0.02**2) / (2 * 3)
    assert overestimated_variance(halves) == pytest.approx(expected)


def test_section_11_5_the_region_keeps_the_draws_of_highest_density():
    """Section 11.5: the 95 % of a normal's draws nearest to its middle, of area 5.99 pi s1 s2."""
    draws = np.random.default_rng(2).normal(size=(4000, 2)) * [0.02, 0.06]
    region = highest_density_region(draws, 0.95)
    assert region.inside.mean() == pytest.approx(0.95, abs=0.001)
    assert region.size == pytest.approx(5.991 * np.pi * 0.02 * 0.06, rel=0.1)
