"""Losses of one score: gradients against finite differences, values against scikit-learn."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import log_loss, mean_squared_error

from fairbench.components.algorithms.losses import Binomial, Softmax, SquaredError

LOSSES = {loss.name: loss for loss in (Binomial(), SquaredError())}

NAMES = ["binomial", "squared_error"]
STEP = 1e-5


def scored(n=50):
    draw = np.random.default_rng(0)
    return draw.integers(2, size=n).astype(float), draw.normal(0, 3, (n, 1))


@pytest.mark.parametrize("name", NAMES)
def test_gradient_is_the_derivative_of_the_value(name):
    loss, (y, raw) = LOSSES[name], scored()
    for k in range(loss.outputs):
        step = np.zeros_like(raw)
        step[:, k] = STEP
        slope = (loss.value(y, raw + step) - loss.value(y, raw - step)) / (2 * STEP)
        np.testing.assert_allclose(loss.gradient(y, raw)[:, k], slope, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_curvature_is_the_derivative_of_the_gradient(name):
    loss, (y, raw) = LOSSES[name], scored()
    slope = (loss.gradient(y, raw + STEP) - loss.gradient(y, raw - STEP)) / (2 * STEP)
    np.testing.assert_allclose(loss.curvature(y, raw), slope, rtol=1e-6, atol=1e-9)
    assert (loss.curvature(y, raw) > 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_shapes_are_those_of_rows_and_of_raw_scores(name):
    loss, (y, raw) = LOSSES[name], scored()
    assert loss.name == name
    assert loss.outputs == 1
    assert loss.value(y, raw).shape == (50,)
    for function in (loss.gradient, loss.curvature):
        assert function(y, raw).shape == (50, 1)
    assert loss.link(raw).shape == (50, 1)


def test_binomial_is_the_log_loss_of_the_logistic_link():
    loss, (y, raw) = LOSSES["binomial"], scored()
    p = loss.link(raw)[:, 0]
    np.testing.assert_allclose(p, stats.logistic.cdf(raw[:, 0]))
    assert loss.value(y, raw).mean() == pytest.approx(log_loss(y, p))


def test_squared_error_is_half_of_scikit_learns_and_its_link_the_identity():
    loss, (y, raw) = LOSSES["squared_error"], scored()
    assert 2 * loss.value(y, raw).mean() == pytest.approx(mean_squared_error(y, raw[:, 0]))
    np.testing.assert_array_equal(loss.link(raw), raw)


def test_binomial_neither_overflows_nor_loses_a_certain_mistake():
    loss, raw = LOSSES["binomial"], np.array([[800.0], [-800.0], [800.0], [-800.0]])
    y = np.array([1.0, 0.0, 0.0, 1.0])
    np.testing.assert_allclose(loss.value(y, raw), [0, 0, 800, 800], atol=1e-12)
    np.testing.assert_allclose(loss.gradient(y, raw)[:, 0], [0, 0, 1, -1], atol=1e-12)


@pytest.mark.parametrize(
    ("name", "link"), [("binomial", lambda m: np.log(m / (1 - m))), ("squared_error", lambda m: m)]
)
def test_the_mean_of_the_labels_is_the_best_constant(name, link):
    y, _ = scored()
    best = np.full((50, 1), link(y.mean()))
    assert LOSSES[name].gradient(y, best).sum() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_the_start_is_the_best_constant_with_and_without_weights(name):
    loss, (y, _) = LOSSES[name], scored()
    weight = np.arange(50.0)
    for weights in (None, weight):
        start = np.tile(loss.initial(y, weights), (50, 1))
        slope = np.average(loss.gradient(y, start)[:, 0], weights=weights)
        assert slope == pytest.approx(0, abs=1e-12)


def test_the_start_is_finite_where_all_labels_are_equal():
    for label in (0.0, 1.0):
        assert np.isfinite(LOSSES["binomial"].initial(np.full(5, label))).all()


def classes(n=40, c=4):
    draw = np.random.default_rng(1)
    return draw.integers(c, size=n).astype(float), draw.normal(0, 2, (n, c))


def test_softmax_is_scikit_learns_log_loss_with_the_gradient_of_its_value():
    (y, raw), loss = classes(), Softmax(4)
    assert (loss.name, loss.outputs, loss.classes) == ("softmax", 4, 4)
    assert loss.value(y, raw).mean() == pytest.approx(log_loss(y, loss.link(raw)))
    for k in range(4):
        step = STEP * (np.arange(4) == k)
        slope = (loss.value(y, raw + step) - loss.value(y, raw - step)) / (2 * STEP)
        np.testing.assert_allclose(loss.gradient(y, raw)[:, k], slope, rtol=1e-6, atol=1e-9)


def test_softmax_agrees_with_torch():
    torch = pytest.importorskip("torch")
    (y, raw), loss = classes(), Softmax(4)
    scores = torch.tensor(raw, requires_grad=True)
    value = torch.nn.functional.cross_entropy(scores, torch.tensor(y, dtype=torch.long))
    value.backward()
    assert loss.value(y, raw).mean() == pytest.approx(value.item())
    np.testing.assert_allclose(loss.gradient(y, raw) / len(y), scores.grad.numpy(), atol=1e-12)


def test_softmax_of_two_classes_is_binomial_in_the_difference_of_the_scores():
    y, raw = classes(c=2)
    two, one = Softmax(2), Binomial()
    score = (raw[:, 1] - raw[:, 0])[:, None]
    np.testing.assert_allclose(two.value(y, raw), one.value(y, score))
    np.testing.assert_allclose(two.link(raw)[:, 1:], one.link(score))
    np.testing.assert_allclose(two.gradient(y, raw)[:, 1:], one.gradient(y, score))


def test_a_step_by_the_softmax_curvature_never_goes_too_far():
    (y, raw), loss = classes(), Softmax(4)
    p = loss.link(raw)
    second = p[:, :, None] * (np.eye(4) - p[:, None, :])
    for row, bound in zip(second, loss.curvature(y, raw), strict=True):
        assert np.linalg.eigvalsh(np.diag(bound) - row).min() > -1e-12
    step = raw - loss.gradient(y, raw) / loss.curvature(y, raw)
    assert (loss.value(y, step) <= loss.value(y, raw)).all()


def test_softmax_starts_at_the_shares_and_knows_classes_without_rows():
    y, weight, loss = classes()[0], np.arange(40.0), Softmax(5)
    for weights in (None, weight):
        start = loss.initial(y, weights)
        share = np.bincount(y.astype(int), weights, minlength=5)
        np.testing.assert_allclose(loss.link(start[None])[0], share / share.sum(), atol=2e-6)
        assert start.sum() == pytest.approx(0, abs=1e-12)
    certain = np.array([[800.0, 0, 0, 0, 0]])
    assert loss.value(np.array([1.0]), certain) == pytest.approx(800)
    assert (loss.curvature(np.array([1.0]), certain) > 0).all()
