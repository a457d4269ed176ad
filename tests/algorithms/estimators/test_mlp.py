"""The torch network: reproducible, weighted, and faithful where the loss asks for it."""

import numpy as np
import pytest

from fairbench.components.algorithms.learners.mlp import MLP
from fairbench.components.algorithms.losses import Binomial, NormalLoss, SquaredError
from fairbench.core.errors import UserError
from tests.harness import Lazily

torch = Lazily("torch")
networks = Lazily("fairbench.components.algorithms.estimators.network")

LOSSES = [
    Binomial(),
    SquaredError(),
    NormalLoss(),
    NormalLoss("beta_nll"),
    NormalLoss("faithful_nll"),
]


def fit(loss, rows, seed=0, weight=None, **options):
    X, y = rows
    y = (y > 0).astype(float) if loss.name == "binomial" else y
    return MLP(**{"epochs": 8, **options}).estimator(loss, seed).fit(X, y, sample_weight=weight)


def outputs(model, X):
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)
    distribution = getattr(model, "predict_distribution", None)
    return distribution(X) if distribution else model.predict(X)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not(rows, loss):
    torch.manual_seed(1)
    one = outputs(fit(loss, rows), rows[0])
    torch.manual_seed(2)
    again = outputs(fit(loss, rows), rows[0])
    assert one.dtype == np.float64
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, outputs(fit(loss, rows, seed=1), rows[0]))


def test_fitting_leaves_torchs_threads_and_generator_alone(rows):
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    fit(NormalLoss(), rows)
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_rows_of_weight_zero_have_no_part(rows, loss):
    X, y = rows
    weight = (np.arange(300) < 200).astype(float)
    spoiled = np.where(weight == 0, -50 * y, y)
    one = outputs(fit(loss, rows, weight=weight), X)
    np.testing.assert_array_equal(one, outputs(fit(loss, (X, spoiled), weight=weight), X))
    np.testing.assert_array_equal(one, outputs(fit(loss, (X[:200], y[:200])), X))


def test_values_are_fitted_in_whatever_unit(rows):
    X, y = rows
    one = fit(NormalLoss(), rows).predict_distribution(X)
    other = fit(NormalLoss(), (X, 1e4 * y + 1e6)).predict_distribution(X)
    np.testing.assert_allclose(other[:, 0], 1e4 * one[:, 0] + 1e6, rtol=1e-3)
    np.testing.assert_allclose(other[:, 1], 1e4 * one[:, 1], rtol=1e-2)


@pytest.mark.parametrize(
    "loss", [NormalLoss(), NormalLoss("faithful_nll")], ids=lambda loss: loss.name
)
def test_a_faithful_scale_leaves_the_hidden_layers_alone(loss):
    network = networks.new_network(3, np.zeros(2), (5,), loss, 0)
    raw = network.forward(torch.ones(4, 3))
    torch.autograd.backward(raw[:, 1].sum())
    hidden, last = network.weights[0].grad, network.weights[1].grad
    assert bool((hidden != 0).any()) == (not loss.scale_detached_from_trunk)
    assert last is not None and (last[:, 1] != 0).any()


def test_backpropagating_the_losses_gradient_is_backpropagating_its_value():
    loss, network = NormalLoss(), networks.new_network(3, np.zeros(2), (5,), NormalLoss(), 0)
    X, y = torch.randn(6, 3, generator=torch.Generator().manual_seed(0)), np.linspace(-1, 1, 6)
    raw = network.forward(X)
    scores = raw.detach().numpy().astype(np.float64)
    torch.autograd.backward(raw, torch.from_numpy(loss.gradient(y, scores).astype(np.float32)))
    ours = network.weights[0].grad.clone()
    network.weights[0].grad = None
    mean, s = network.forward(X).T
    likelihood = torch.distributions.Normal(mean, torch.exp(s)).log_prob(torch.from_numpy(y)).sum()
    (-likelihood).backward()
    torch.testing.assert_close(ours, network.weights[0].grad, rtol=1e-4, atol=1e-5)


def test_training_stops_where_held_out_rows_no_longer_improve(rows):
    short, long = (fit(SquaredError(), rows, epochs=e, patience=2) for e in (150, 300))
    np.testing.assert_array_equal(short.predict(rows[0]), long.predict(rows[0]))


def test_settings_that_cannot_be_trained_are_refused():
    with pytest.raises(UserError, match="^learner.hidden is 0; "):
        MLP(hidden=(64, 0))
    with pytest.raises(UserError, match="^learner.validation is 1"):
        MLP(validation=1.0)
