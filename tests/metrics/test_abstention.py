"""Weights of the rows kept, and risk against coverage: brute force and extremes."""

import itertools

import numpy as np
import pytest

from fairbench.metrics.abstention import area_under_risk_coverage, keep_weights

RATES = (0.0, 0.05, 0.1, 0.25, 1 / 3, 0.5, 0.77, 0.99)


def tied(seed, n=24, distinct=4):
    return np.random.default_rng(seed).integers(distinct, size=n) / 10


def kept_by_hand(uncertainty, kept):
    """Return the expectation over random tie-breaks: each block of ties is filled in turn."""
    weights, left = np.zeros(len(uncertainty)), kept
    for value in sorted(set(uncertainty)):
        rows = [i for i, u in enumerate(uncertainty) if u == value]
        taken = min(left, len(rows))
        weights[rows] = taken / len(rows)
        left -= taken
    return weights


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("seed", range(4))
def test_exactly_the_share_asked_for_is_kept(rate, seed):
    for uncertainty in (tied(seed), np.random.default_rng(seed).random(37), np.zeros(11)):
        weights = keep_weights(uncertainty, rate)
        kept = max(len(uncertainty) - round(rate * len(uncertainty)), 1)
        assert weights.sum() == pytest.approx(kept, abs=1e-9)
        assert ((weights >= 0) & (weights <= 1)).all()
        np.testing.assert_allclose(weights, kept_by_hand(uncertainty, kept))


def test_at_least_one_row_is_kept():
    np.testing.assert_allclose(keep_weights([0.3, 0.1, 0.2], 0.99), [0, 1, 0])
    np.testing.assert_allclose(keep_weights([0.5], 0.9), [1])


def test_ties_share_the_boundary_and_nothing_else():
    weights = keep_weights([0.1, 0.2, 0.2, 0.2, 0.9], 0.4)
    np.testing.assert_allclose(weights, [1, 2 / 3, 2 / 3, 2 / 3, 0])
    np.testing.assert_allclose(keep_weights([0.4] * 5, 0.4), [0.6] * 5)


@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_the_rows_does_not_matter(seed):
    uncertainty = tied(seed)
    order = np.random.default_rng(seed + 100).permutation(len(uncertainty))
    for rate in RATES:
        weights = keep_weights(uncertainty, rate)
        np.testing.assert_allclose(keep_weights(uncertainty[order], rate), weights[order])


@pytest.mark.parametrize("rate", [0.1, 0.35, 0.6])
def test_weights_are_the_expectation_over_ties_broken_at_random(rate):
    uncertainty, draws = tied(0, n=20), 4000
    generator = np.random.default_rng(1)
    kept = len(uncertainty) - round(rate * len(uncertainty))
    share = np.zeros(len(uncertainty))
    for _ in range(draws):
        share[np.lexsort((generator.random(len(uncertainty)), uncertainty))[:kept]] += 1 / draws
    weights = keep_weights(uncertainty, rate)
    assert (weights > 0).any()
    assert ((weights > 0) & (weights < 1)).any()
    sd = np.sqrt(weights * (1 - weights) / draws)
    assert (np.abs(share - weights) <= 6 * sd + 1e-9).all()


def area_by_brute_force(loss, uncertainty):
    """Return the mean over every order that the uncertainty allows of the mean prefix risk."""
    orders = [
        order
        for order in itertools.permutations(range(len(loss)))
        if all(uncertainty[a] <= uncertainty[b] for a, b in itertools.pairwise(order))
    ]
    return np.mean(
        [np.mean(loss[list(order[:k])]) for order in orders for k in range(1, len(order) + 1)]
    )


@pytest.mark.parametrize("seed", range(8))
def test_area_is_the_mean_risk_over_coverages_and_tie_breaks(seed):
    draw = np.random.default_rng(seed)
    loss, uncertainty = draw.integers(2, size=6).astype(float), draw.integers(3, size=6) / 4
    expected = area_by_brute_force(loss, uncertainty)
    assert area_under_risk_coverage(loss, uncertainty) == pytest.approx(expected)


@pytest.mark.parametrize(("n", "errors"), [(10, 3), (25, 1), (7, 7), (9, 0)])
def test_area_of_a_perfect_and_of_a_reversed_ranking(n, errors):
    loss = np.arange(n) >= n - errors
    perfect = sum(max(k - (n - errors), 0) / k for k in range(1, n + 1)) / n
    worst = sum(min(k, errors) / k for k in range(1, n + 1)) / n
    best_found = area_under_risk_coverage(loss, np.arange(n))
    worst_found = area_under_risk_coverage(loss, -np.arange(n))
    assert best_found == pytest.approx(perfect)
    assert worst_found == pytest.approx(worst)
    for seed in range(10):
        ranking = np.random.default_rng(seed).random(n)
        area = area_under_risk_coverage(loss, ranking)
        assert best_found - 1e-12 <= area <= worst_found + 1e-12


def test_area_of_an_uninformative_uncertainty_is_the_error_rate():
    loss = np.array([1, 0, 0, 1, 0], bool)
    assert area_under_risk_coverage(loss, np.full(5, 0.2)) == pytest.approx(0.4)
