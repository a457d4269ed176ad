"""Losses of a mean and a scale: gradients, curvatures, starts, bounds."""

import numpy as np
import pytest
from scipy import stats

from fairbench.components.algorithms.losses import NormalLoss

LOSSES = [
    NormalLoss(),
    NormalLoss("beta_nll"),
    NormalLoss("beta_nll", 0.8),
    NormalLoss("faithful_nll"),
]
REFERENCES = [
    NormalLoss("normal_nll_reference"),
    NormalLoss("beta_nll_reference"),
    NormalLoss("faithful_nll_reference"),
]
STEP = 1e-5


def scored(n=60, positive=False):
    draw = np.random.default_rng(0)
    raw = draw.normal(0, 1, (n, 2))
    return draw.normal(0, 2, n), np.abs(raw) + 0.2 if positive else raw


def slope(function, raw, k):
    step = np.zeros_like(raw)
    step[:, k] = STEP
    return (function(raw + step) - function(raw - step)) / (2 * STEP)


@pytest.mark.parametrize("k", [0, 1])
def test_the_gradient_of_the_likelihood_is_the_derivative_of_its_value(k):
    loss, (y, raw) = NormalLoss(), scored()
    expected = slope(lambda scores: loss.value(y, scores), raw, k)
    np.testing.assert_allclose(loss.gradient(y, raw)[:, k], expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_value_is_the_likelihood_of_the_linked_distribution(loss):
    y, raw = scored()
    mean, sd = loss.link(raw).T
    np.testing.assert_allclose(loss.value(y, raw), -stats.norm.logpdf(y, mean, sd))


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
def test_beta_weights_the_value_with_a_weight_held_fixed(beta):
    loss, (y, raw) = NormalLoss("beta_nll", beta), scored()
    weight = np.exp(2 * beta * raw[:, 1])
    for k in (0, 1):
        expected = slope(lambda scores: weight * NormalLoss().value(y, scores), raw, k)
        np.testing.assert_allclose(loss.gradient(y, raw)[:, k], expected, rtol=1e-6, atol=1e-7)


def test_beta_of_one_gives_the_mean_the_gradient_of_squared_error():
    y, raw = scored()
    np.testing.assert_allclose(NormalLoss("beta_nll", 1.0).gradient(y, raw)[:, 0], raw[:, 0] - y)
    np.testing.assert_allclose(
        NormalLoss("beta_nll", 0.0).gradient(y, raw), NormalLoss().gradient(y, raw)
    )


def test_the_faithful_field_has_squared_errors_mean_and_the_likelihoods_scale():
    loss, (y, raw) = NormalLoss("faithful_nll"), scored()
    np.testing.assert_allclose(loss.gradient(y, raw)[:, 0], raw[:, 0] - y)
    expected = slope(lambda scores: NormalLoss().value(y, scores), raw, 1)
    np.testing.assert_allclose(loss.gradient(y, raw)[:, 1], expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(loss.curvature(y, raw), np.tile([1, 2], (60, 1)))
    assert loss.scale_detached_from_trunk


def test_the_curvature_is_the_expected_second_derivative():
    loss, raw = NormalLoss(), np.array([[0.3, -0.7]])
    mean, sd = loss.link(raw)[0]
    draws = np.random.default_rng(0).normal(mean, sd, 400_000)
    scores = np.tile(raw, (len(draws), 1))
    gradients = loss.gradient(draws, scores)
    expected = loss.curvature(draws[:1], raw)[0]
    np.testing.assert_allclose((gradients**2).mean(axis=0), expected, rtol=0.01)
    np.testing.assert_allclose(expected, [1 / sd**2, 2])


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_extreme_scores_neither_overflow_nor_lose_their_curvature(loss):
    raw = np.array([[0.0, 1e4], [0.0, -1e4], [1e6, 0.0]])
    y = np.array([1.0, 1.0, -1e6])
    for values in (loss.gradient(y, raw), loss.curvature(y, raw), loss.link(raw)):
        assert np.isfinite(values.astype(np.float32)).all()
    assert (loss.curvature(y, raw).astype(np.float32) > 0).all()
    assert (loss.link(raw)[:, 1] > 0).all()


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_start_is_the_mean_and_the_log_sd(loss):
    y, weight = np.array([1.0, 2.0, 4.0]), np.array([2.0, 0.0, 1.0])
    np.testing.assert_allclose(loss.initial(y), [y.mean(), np.log(y.std())])
    repeated = np.array([1.0, 1.0, 4.0])
    expected = [repeated.mean(), np.log(repeated.std())]
    np.testing.assert_allclose(loss.initial(y, weight), expected)
    assert np.isfinite(loss.initial(np.ones(3))).all()


def test_the_reference_takes_two_sd_for_the_derivative_of_two_log_sd():
    loss, (y, raw) = NormalLoss("normal_nll_reference"), scored(positive=True)
    error, sd = raw[:, 0] - y, raw[:, 1]
    np.testing.assert_allclose(loss.gradient(y, raw)[:, 0], error / sd**2)
    np.testing.assert_allclose(loss.gradient(y, raw)[:, 1], 2 * sd - error**2 / sd**3)
    np.testing.assert_allclose(loss.curvature(y, raw)[:, 1], 2 + 3 * error**2 / sd**4)
    # Its scale balances where sd^4 = error^2 / 2: for small errors far above the error itself.
    balanced = np.column_stack([y + 0.01, np.full(60, (0.01**2 / 2) ** 0.25)])
    np.testing.assert_allclose(loss.gradient(y, balanced)[:, 1], 0, atol=1e-9)
    assert balanced[0, 1] > 8 * 0.01


def test_the_other_references_follow_from_the_first():
    y, raw = scored(positive=True)
    first, sd = NormalLoss("normal_nll_reference"), raw[:, 1:]
    beta, faithful = NormalLoss("beta_nll_reference"), NormalLoss("faithful_nll_reference")
    np.testing.assert_allclose(beta.gradient(y, raw), first.gradient(y, raw) * sd)
    np.testing.assert_allclose(beta.curvature(y, raw), first.curvature(y, raw) * sd)
    np.testing.assert_allclose(faithful.gradient(y, raw)[:, 0], raw[:, 0] - y)
    np.testing.assert_allclose(faithful.gradient(y, raw)[:, 1], first.gradient(y, raw)[:, 1])
    np.testing.assert_allclose(faithful.curvature(y, raw)[:, 0], 1)


@pytest.mark.parametrize("loss", REFERENCES, ids=str)
def test_references_start_at_a_half_and_keep_what_comes_out(loss):
    np.testing.assert_array_equal(loss.initial(np.array([7.0, 9.0])), [0.5, 0.5])
    raw = np.array([[1.0, -2.0], [1.0, 0.0]])
    np.testing.assert_array_equal(loss.link(raw), raw)
    assert np.isnan(loss.value(np.zeros(2), raw)).all()
    assert loss.vector_leaves
