"""Losses: gradients against finite differences, values against scikit-learn and scipy, starts."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import log_loss, mean_squared_error

from fairbench.components.algorithms.losses import Binomial, NormalLoss, Softmax, SquaredError

STEP = 1e-5
BINOMIAL, SQUARED, SOFTMAX, NORMAL = Binomial(), SquaredError(), Softmax(4), NormalLoss()
NORMALS = [NORMAL, NormalLoss("beta_nll"), NormalLoss("beta_nll", 0.8), NormalLoss("faithful_nll")]
REFERENCES = [NormalLoss(f"{name}_nll_reference") for name in ("normal", "beta", "faithful")]
of_one_score = pytest.mark.parametrize("loss", [BINOMIAL, SQUARED], ids=str)
normal = pytest.mark.parametrize("loss", NORMALS, ids=str)


def scored(loss, n=60, *, positive=False):
    """Return labels or values of rows, and raw scores (n, k)."""
    draw = np.random.default_rng(0)
    raw = draw.normal(0, 1.5, (n, loss.outputs))
    y = draw.normal(0, 2, n) if loss.outputs == 2 else draw.integers(loss.classes or 2, size=n)
    return y.astype(float), np.abs(raw) + 0.2 if positive else raw


def slopes(function, raw):
    """Return the derivative of a function of raw scores by each of them."""
    steps = STEP * np.eye(raw.shape[1])
    return np.column_stack([(function(raw + s) - function(raw - s)) / (2 * STEP) for s in steps])


@pytest.mark.parametrize("loss", [BINOMIAL, SQUARED, SOFTMAX, NORMAL], ids=str)
def test_the_gradient_is_the_derivative_of_the_value(loss):
    y, raw = scored(loss)
    expected = slopes(lambda scores: loss.value(y, scores), raw)
    np.testing.assert_allclose(loss.gradient(y, raw), expected, rtol=1e-6, atol=1e-7)


@of_one_score
def test_the_curvature_is_the_derivative_of_the_gradient(loss):
    y, raw = scored(loss)
    expected = slopes(lambda scores: loss.gradient(y, scores), raw)
    np.testing.assert_allclose(loss.curvature(y, raw), expected, rtol=1e-6, atol=1e-9)
    assert (loss.curvature(y, raw) > 0).all()


def test_values_are_those_of_scikit_learn_at_the_links():
    for loss in (BINOMIAL, SOFTMAX):
        y, raw = scored(loss)
        assert loss.value(y, raw).mean() == pytest.approx(log_loss(y, loss.link(raw)))
    y, raw = scored(BINOMIAL)
    np.testing.assert_allclose(BINOMIAL.link(raw), stats.logistic.cdf(raw))
    assert 2 * SQUARED.value(y, raw).mean() == pytest.approx(mean_squared_error(y, raw[:, 0]))
    np.testing.assert_array_equal(SQUARED.link(raw), raw)


def test_binomial_neither_overflows_nor_loses_a_certain_mistake():
    loss, raw = BINOMIAL, np.array([[800.0], [-800.0], [800.0], [-800.0]])
    y = np.array([1.0, 0.0, 0.0, 1.0])
    np.testing.assert_allclose(loss.value(y, raw), [0, 0, 800, 800], atol=1e-12)
    np.testing.assert_allclose(loss.gradient(y, raw)[:, 0], [0, 0, 1, -1], atol=1e-12)


@pytest.mark.parametrize("weights", [None, np.arange(60.0)], ids=["alike", "weighted"])
@pytest.mark.parametrize("loss", [BINOMIAL, SQUARED, SOFTMAX, *NORMALS], ids=str)
def test_the_start_is_the_best_constant_with_and_without_weights(loss, weights):
    y, _ = scored(loss)
    start = np.tile(loss.initial(y, weights), (60, 1))
    slope = np.average(loss.gradient(y, start), axis=0, weights=weights)
    np.testing.assert_allclose(slope, 0, atol=2e-6)
    for label in (0.0, 1.0):
        assert np.isfinite(loss.initial(np.full(5, label))).all()


def test_a_step_by_the_softmax_curvature_never_goes_too_far():
    (y, raw), loss = scored(SOFTMAX), SOFTMAX
    p = loss.link(raw)
    second = p[:, :, None] * (np.eye(4) - p[:, None, :])
    for row, bound in zip(second, loss.curvature(y, raw), strict=True):
        assert np.linalg.eigvalsh(np.diag(bound) - row).min() > -1e-12
    step = raw - loss.gradient(y, raw) / loss.curvature(y, raw)
    assert (loss.value(y, step) <= loss.value(y, raw)).all()


def test_softmax_knows_classes_without_rows_and_certain_mistakes():
    loss = Softmax(5)
    start = loss.initial(scored(SOFTMAX)[0])
    assert loss.link(start[None])[0, 4] == pytest.approx(0, abs=2e-6)
    assert np.isfinite(start).all() and start.sum() == pytest.approx(0, abs=1e-12)
    certain = np.array([[800.0, 0, 0, 0, 0]])
    assert loss.value(np.array([1.0]), certain) == pytest.approx(800)
    assert (loss.curvature(np.array([1.0]), certain) > 0).all()


@normal
def test_the_value_is_the_likelihood_of_the_linked_distribution(loss):
    y, raw = scored(loss)
    mean, sd = loss.link(raw).T
    np.testing.assert_allclose(loss.value(y, raw), -stats.norm.logpdf(y, mean, sd))


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
def test_beta_weights_the_value_with_a_weight_held_fixed(beta):
    y, raw = scored(NORMAL)
    weight = np.exp(2 * beta * raw[:, 1])
    expected = slopes(lambda scores: weight * NORMAL.value(y, scores), raw)
    ours = NormalLoss("beta_nll", beta).gradient(y, raw)
    np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-7)


def test_the_faithful_field_has_squared_errors_mean_and_the_likelihoods_scale():
    loss, (y, raw) = NormalLoss("faithful_nll"), scored(NORMAL)
    expected = np.column_stack([raw[:, 0] - y, NORMAL.gradient(y, raw)[:, 1]])
    np.testing.assert_allclose(loss.gradient(y, raw), expected)
    np.testing.assert_array_equal(loss.curvature(y, raw), np.tile([1, 2], (60, 1)))
    assert loss.scale_detached_from_trunk


def test_the_curvature_is_the_fisher_information_of_mean_and_log_sd():
    y, raw = scored(NORMAL)
    expected = np.column_stack([np.exp(-2 * raw[:, 1]), np.full(60, 2)])
    np.testing.assert_allclose(NORMAL.curvature(y, raw), expected)


@normal
def test_extreme_scores_neither_overflow_nor_lose_their_curvature(loss):
    raw = np.array([[0.0, 1e4], [0.0, -1e4], [1e6, 0.0]])
    y = np.array([1.0, 1.0, -1e6])
    for values in (loss.gradient(y, raw), loss.curvature(y, raw), loss.link(raw)):
        assert np.isfinite(values.astype(np.float32)).all()
    assert (loss.curvature(y, raw).astype(np.float32) > 0).all()
    assert (loss.link(raw)[:, 1] > 0).all()


def test_the_reference_takes_two_sd_for_the_derivative_of_two_log_sd():
    loss, (y, raw) = NormalLoss("normal_nll_reference"), scored(NORMAL, positive=True)
    error, sd = raw[:, 0] - y, raw[:, 1]
    np.testing.assert_allclose(loss.gradient(y, raw)[:, 0], error / sd**2)
    np.testing.assert_allclose(loss.gradient(y, raw)[:, 1], 2 * sd - error**2 / sd**3)
    np.testing.assert_allclose(loss.curvature(y, raw)[:, 1], 2 + 3 * error**2 / sd**4)
    # Its scale balances where sd^4 = error^2 / 2: for small errors far above the error itself.
    balanced = np.column_stack([y + 0.01, np.full(60, (0.01**2 / 2) ** 0.25)])
    np.testing.assert_allclose(loss.gradient(y, balanced)[:, 1], 0, atol=1e-9)
    assert balanced[0, 1] > 8 * 0.01


def test_the_other_references_follow_from_the_first():
    y, raw = scored(NORMAL, positive=True)
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
