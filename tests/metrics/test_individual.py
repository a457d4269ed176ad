"""Individual fairness against loops over rows, with ties on one point and too few rows."""

import numpy as np
import pytest

from fairbench.metrics.group_means import Neighbours, individual_fairness


def naive(features, values, k):
    """Return individual fairness, equal distances counting with their mean value."""
    fairness = np.full((len(values), k), np.nan)
    for i in range(len(values)):
        distance = np.linalg.norm(features - features[i], axis=1)
        others = [j for j in np.argsort(distance, kind="stable") if j != i]
        level = {d: [values[j] for j in others if distance[j] == d] for d in distance[others]}
        near = [np.mean(level[distance[j]]) for j in others]
        for rank in range(1, min(k, len(others)) + 1):
            fairness[i, rank - 1] = 1 - abs(values[i] - np.mean(near[:rank]))
    return fairness


@pytest.mark.parametrize("kind", ["distinct", "on points", "one point"])
def test_neighbourhoods_are_those_of_loops_over_rows(kind):
    """Points on a line at powers of two have no equal distances but those of one point."""
    draw = np.random.default_rng(0)
    features = draw.random((80, 5)).astype(np.float32).astype(float)
    if kind != "distinct":
        features = 2.0 ** draw.integers(12 if kind == "on points" else 1, size=(80, 1))
    values = draw.random(80)
    result = individual_fairness(values, Neighbours.of(features, 20))
    np.testing.assert_allclose(result, naive(features, values, 20), atol=1e-12)


def test_the_order_of_rows_on_one_point_does_not_matter():
    draw = np.random.default_rng(0)
    features, values = 2.0 ** draw.integers(8, size=(60, 1)), draw.random(60)
    order = draw.permutation(60)
    result, shuffled = (
        individual_fairness(values[rows], Neighbours.of(features[rows], 7))
        for rows in (np.arange(60), order)
    )
    np.testing.assert_allclose(result[order], shuffled)


@pytest.mark.parametrize("features", [[[0], [1], [5]], [[2], [2], [2]], [[2], [2], [5]]])
def test_more_neighbours_than_there_are_rows_is_undefined(features):
    values = np.array([0.1, 0.2, 0.6])
    result = individual_fairness(values, Neighbours.of(features, 4))
    np.testing.assert_array_equal(np.isnan(result), [[False, False, True, True]] * 3)
    np.testing.assert_allclose(result[:, 1], [1 - 0.3, 1 - 0.15, 1 - 0.45])


def test_equal_values_are_fair_and_a_single_row_has_no_neighbour():
    features = np.random.default_rng(0).random((30, 2))
    assert (individual_fairness(np.full(30, 0.3), Neighbours.of(features, 5)) == 1).all()
    assert np.isnan(individual_fairness(np.array([1.0]), Neighbours.of([[0.0]], 2))).all()


def test_minus_zero_is_zero():
    assert Neighbours.of([[0.0], [-0.0], [1.0]], 1).point.tolist() in ([0, 0, 1], [1, 1, 0])
