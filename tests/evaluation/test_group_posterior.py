"""Group rows of an evaluation: intervals and probabilities against exact posteriors."""

from functools import cache

import numpy as np
import pytest
from scipy import integrate, stats

from fairbench import Evaluator
from fairbench.evaluation.table import BELOW_EPSILON, DEBIASED, OUTSIDE_BAND
from fairbench.metrics.registry import BINARY, metrics_of
from tests.evaluation.counted import row, table_of

GAPS = metrics_of(BINARY, "widest")
RATES = [
    declared.function
    for declared in metrics_of(BINARY, "rate").values()
    if len(declared.rates) == 1
]

DRAWS = 20_000
COUNTS = {"a": [30, 10, 12, 28], "b": [25, 14, 5, 16], "c": [12, 4, 9, 15]}
PAIR = {name: COUNTS[name] for name in "ab"}


@cache
def fine_table(groups, **settings):
    """Return the table of the groups called so, from many draws."""
    return table_of(
        {name: COUNTS[name] for name in groups},
        Evaluator(interval="dirichlet", draws=DRAWS, **settings),
    )


def beta(counts, numerator, denominator):
    """Return the posterior of a rate, with a uniform prior: a Beta distribution."""
    weights, top, bottom = np.array(counts) + 1, np.array(numerator), np.array(denominator)
    return stats.beta(weights[top > 0].sum(), weights[(bottom > 0) & (top == 0)].sum())


def posteriors(groups, rate):
    return [beta(COUNTS[name], rate.numerator, rate.denominator) for name in groups]


def integral(function):
    return integrate.quad(function, 0, 1, limit=200)[0]


def probability_below(groups, epsilon):
    """Return P(largest - smallest < epsilon), by which group is the smallest."""
    return sum(
        integral(
            lambda x, g=g: (
                groups[g].pdf(x)
                * np.prod(
                    [
                        other.cdf(x + epsilon) - other.cdf(x)
                        for h, other in enumerate(groups)
                        if h != g
                    ]
                )
            )
        )
        for g in range(len(groups))
    )


def probability_outside(group, reference, band):
    """Return P(|group / reference - 1| > band)."""
    return 1 - integral(
        lambda x: reference.pdf(x) * (group.cdf(x * (1 + band)) - group.cdf(x * (1 - band)))
    )


def assert_probability(estimate, exact):
    assert 0.02 < exact < 0.98
    assert abs(estimate - exact) < 5 * np.sqrt(exact * (1 - exact) / DRAWS)


SINGLE_RATE = [name for name, metric in GAPS.items() if metric.is_gap]
SINGLE_RATE.remove("equalized_odds")


@pytest.mark.parametrize("groups", ["ab", "abc"])
@pytest.mark.parametrize("name", SINGLE_RATE)
def test_probability_of_a_small_gap_is_that_of_the_posterior(name, groups):
    result = row(fine_table(groups, epsilon=0.15), name, "group", statistic=BELOW_EPSILON)
    assert result["setting"] == "epsilon=0.15"
    (rate,) = GAPS[name].rates
    assert_probability(result["value"], probability_below(posteriors(groups, rate), 0.15))


def test_probability_of_small_equalized_odds_is_the_product_of_both_gaps():
    # True and false positive rates of a Dirichlet posterior are independent.
    table = fine_table("ab", epsilon=0.2)
    one, other = (
        probability_below(posteriors("ab", rate), 0.2) for rate in GAPS["equalized_odds"].rates
    )
    result = row(table, "equalized_odds", "group", statistic=BELOW_EPSILON)
    assert_probability(result["value"], one * other)


@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("statistical_parity", "selection_rate"),
        ("equal_opportunity", "true_positive_rate"),
        ("false_positive_rate", "false_positive_rate"),
        ("predictive_parity", "positive_predictive_value"),
        ("accuracy", "accuracy"),
    ],
)
@pytest.mark.parametrize("group", ["b", "c"])
def test_probability_of_a_ratio_outside_the_band_is_that_of_the_posterior(name, rate, group):
    table = fine_table("abc")
    result = row(table, f"{name}_ratio", "group", group, statistic=OUTSIDE_BAND)
    assert result["setting"] == "band=0.2"
    (rate,) = [candidate for candidate in RATES if candidate.name == rate]
    reference, other = posteriors(["a", group], rate)
    assert_probability(result["value"], probability_outside(other, reference, 0.2))


@pytest.mark.parametrize("level", [0.95, 0.5])
@pytest.mark.parametrize(
    "rate", [rate for rate in RATES if rate.name != "f1_score"], ids=lambda rate: rate.name
)
def test_interval_of_a_groups_rate_has_the_probability_asked_for(rate, level):
    table, tail = fine_table("ab", level=level), (1 - level) / 2
    error = 6 * np.sqrt(tail * (1 - tail) / DRAWS)
    for group, exact in zip("ab", posteriors("ab", rate), strict=True):
        result = row(table, rate.name, "group", group)
        assert abs(exact.cdf(result["lower"]) - tail) < error
        assert abs(exact.sf(result["upper"]) - tail) < error


@pytest.mark.parametrize("group", ["b", "c"])
def test_interval_of_a_signed_difference_is_that_of_the_posterior(group):
    result = row(fine_table("abc"), "statistical_parity_difference", "group", group)
    reference, other = (beta(COUNTS[g], [0, 1, 0, 1], [1, 1, 1, 1]) for g in ("a", group))
    for end, level in ((result["lower"], 0.025), (result["upper"], 0.975)):
        below = integral(lambda x, end=end: reference.pdf(x) * other.cdf(x + end))
        assert abs(below - level) < 6 * np.sqrt(0.025 * 0.975 / DRAWS)


def test_alpha_is_the_prior_count_of_every_cell():
    table = fine_table("ab", alpha=50)
    result, cells = row(table, "selection_rate", "group", "b"), np.array(PAIR["b"]) + 50
    exact = stats.beta(cells[[1, 3]].sum(), cells[[0, 2]].sum())
    assert abs(exact.cdf(result["lower"]) - 0.025) < 6 * np.sqrt(0.025 * 0.975 / DRAWS)


def test_debiased_gaps_come_with_more_than_two_groups_only():
    metrics = {name for name, metric in GAPS.items() if metric.is_gap}
    for counts, expected in ((PAIR, set()), (COUNTS, metrics)):
        table = table_of(counts)
        corrected = table[table["statistic"] == DEBIASED]
        assert set(corrected.index.get_level_values("metric")) == expected
    table = fine_table("abc")
    for name in metrics:
        plug_in = row(table, name, "group")["value"]
        assert 0 <= row(table, name, "group", statistic=DEBIASED)["value"] < plug_in
