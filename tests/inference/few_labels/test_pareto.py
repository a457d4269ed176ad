"""Pareto shape and effective size of importance weights with known tails."""

import numpy as np
import pytest

from fairbench.inference.few_labels.importance import effective_size, smooth_tail


@pytest.mark.parametrize("shape", [0.2, 0.5, 1.0])
def test_shape_of_pareto_weights(shape):
    uniform = np.random.default_rng(0).random((50, 4000))
    shapes = [smooth_tail(row**-shape)[1] for row in uniform]
    # The prior around 1/2 draws a tail of 190 towards it.
    assert np.mean(shapes) == pytest.approx((190 * shape + 5) / 200, abs=0.06)


def test_smoothing_keeps_the_body_and_the_order_and_steadies_the_mean():
    uniform = np.random.default_rng(1).random((200, 2000))
    raw = uniform**-0.6
    means = [smooth_tail(row)[0].mean() for row in raw]
    assert np.std(means) < 0.9 * np.std(raw.mean(axis=1))
    weights, _ = smooth_tail(raw[0])
    assert (weights != raw[0]).sum() <= 3 * np.sqrt(2000)
    np.testing.assert_array_equal(np.argsort(weights), np.argsort(raw[0]))
    assert weights.max() <= raw[0].max()


def test_equal_weights_have_no_tail():
    weights, shape = smooth_tail(np.full(100, 0.3))
    assert shape == -np.inf
    assert effective_size(weights) == pytest.approx(100)


def test_one_weight_is_one_draw():
    assert effective_size(np.array([0.0, 2.0, 0.0])) == 1
