"""What every network of torch keeps to: its seed and weights alone, units, and a faithful scale."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from fairbench.components.algorithms.learners.bayesian_nn import BayesianNN
from fairbench.components.algorithms.learners.ft_transformer import FTTransformer
from fairbench.components.algorithms.learners.mlp import MLP
from fairbench.components.algorithms.learners.sequence_transformer import SequenceTransformer
from fairbench.components.algorithms.learners.tabm import TabM
from fairbench.components.algorithms.losses import Binomial, NormalLoss, Softmax, SquaredError
from fairbench.components.datasets import simulated_sequences
from fairbench.core.errors import UserError
from fairbench.data.features import Encoder, Sequences
from fairbench.experiments import pipeline
from tests.harness import TINY, Lazily, configuration

torch = Lazily("torch")
mlp = Lazily("fairbench.components.algorithms.estimators.network")
N, KEPT = 120, 100
SMALL = {"width": 8, "blocks": 1, "epochs": 2, "batch_size": 64}
NETWORKS = {
    "mlp": MLP(epochs=8),
    "bayesian_nn": BayesianNN(epochs=5, hidden=(8,)),
    "sequence_transformer": SequenceTransformer(epochs=2, width=4, heads=1),
    "ft_transformer": FTTransformer(heads=2, **SMALL),
    "tabm": TabM(members=3, bins=4, embedding=2, **SMALL),
}
LOSSES = [Binomial(), Softmax(4), SquaredError()]
LOSSES += [NormalLoss(), NormalLoss("beta_nll"), NormalLoss("faithful_nll")]
each = pytest.mark.parametrize("name", NETWORKS)


@cache
def rows(name):
    """Return encoded rows of the kind that a network takes, and values of the first column."""
    if name == "sequence_transformer":
        data = simulated_sequences.load(None, n_samples=N, length=6, event=2)
        X = Encoder(NETWORKS[name].encoding).fit(data.features).transform(data.features)
        return X, data.target.to_numpy(float) + 0.1 * np.random.default_rng(0).normal(size=N)
    X = np.random.default_rng(0).normal(size=(N, 3))
    y = X[:, 0] + 0.3 * np.random.default_rng(1).normal(size=N)
    return (X if name in ("mlp", "bayesian_nn") else pd.DataFrame(X, columns=list("abc"))), y


def fit(name, loss, given, seed=0, weight=None):
    X, y = given
    if loss.classes:  # the last class has no row
        y = np.searchsorted([0, 1.0], y).astype(float)
    elif loss.name == "binomial":
        y = (y > 0).astype(float)
    return NETWORKS[name].estimator(loss, seed).fit(X, y, sample_weight=weight)


def outputs(model, X):
    """Return what a model says of rows, and what its members do, if it has any."""
    said = next(
        getattr(model, name)(X)
        for name in ("predict_proba", "predict_distribution", "predict")
        if hasattr(model, name)
    )
    members = model.predict_members(X, 6, 3) if hasattr(model, "predict_members") else np.empty(0)
    assert said.dtype == members.dtype == np.float64 and np.isfinite(said).all()
    return np.append(said, members)


@each
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_a_fit_is_that_of_its_seed_whatever_torch_draws_and_leaves_torch_alone(name, loss):
    given = rows(name)
    if loss.name not in NETWORKS[name].capabilities.losses:
        pytest.skip(f"{name} has no {loss.name}")
    torch.manual_seed(1)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    one = outputs(fit(name, loss, given), given[0])
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    torch.manual_seed(2)
    np.testing.assert_array_equal(one, outputs(fit(name, loss, given), given[0]))
    assert not np.array_equal(one, outputs(fit(name, loss, given, seed=1), given[0]))


@each
@pytest.mark.parametrize("loss", [Binomial(), NormalLoss()], ids=lambda loss: loss.name)
def test_rows_of_weight_zero_have_no_part(name, loss):
    X, y = rows(name)
    weight = (np.arange(N) < KEPT).astype(float)
    spoilt = np.where(weight == 0, -50 * y, y)
    first = X.take(np.arange(KEPT)) if isinstance(X, Sequences) else X[:KEPT]
    one = outputs(fit(name, loss, (X, spoilt), weight=weight), X)
    np.testing.assert_array_equal(one, outputs(fit(name, loss, (first, y[:KEPT])), X))


@pytest.mark.parametrize("name", ["mlp", "bayesian_nn"])
def test_values_are_fitted_in_whatever_unit(name):
    X, y = rows(name)
    one, other = (
        fit(name, NormalLoss(), (X, values)).predict_distribution(X)
        for values in (y, 1e4 * y + 1e6)
    )
    np.testing.assert_allclose(other[:, 0], 1e4 * one[:, 0] + 1e6, rtol=1e-3)
    np.testing.assert_allclose(other[:, 1], 1e4 * one[:, 1], rtol=1e-2)


REFUSED = {
    "^learner.hidden is 0; ": (MLP, {"hidden": (64, 0)}),
    "^learner.validation is 1": (MLP, {"validation": 1.0}),
    "^learner.prior_narrow is 0": (BayesianNN, {"prior_narrow": 0.0}),
    "initial_means 'normall'.*did you mean normal": (BayesianNN, {"initial_means": "normall"}),
    "^learner.likelihood_weight is 0": (BayesianNN, {"likelihood_weight": 0.0}),
    "^learner.prior_share is 1": (BayesianNN, {"prior_share": 1.0}),
    "^learner.width is 6 and learner.heads 2; the width must be ": (
        SequenceTransformer, {"width": 6, "heads": 2},
    ),
    "^learner.modalities names one twice$": (SequenceTransformer, {"modalities": ("a", "a")}),
    "^learner.length is 0; it must be at least 1$": (SequenceTransformer, {"length": 0}),
    "learner.cut 'left'": (SequenceTransformer, {"cut": "left"}),
    "learner.device 'tpu'": (SequenceTransformer, {"device": "tpu"}),
    "^learner.dropout is 1.0": (SequenceTransformer, {"dropout": 1.0}),
    "^learner.width is 30; it must be a multiple of learner.h": (FTTransformer, {"width": 30}),
    "^learner.members is 1": (TabM, {"members": 1}),
    "learner.device": (TabM, {"device": "gpu"}),
}  # fmt: skip


@pytest.mark.parametrize("sentence", REFUSED)
def test_settings_that_cannot_be_trained_are_refused(sentence):
    learner, options = REFUSED[sentence]
    with pytest.raises(UserError, match=sentence):
        learner(**options)


@pytest.mark.parametrize("learner", [SequenceTransformer, TabM])
def test_a_gpu_that_is_not_there_is_asked_for_in_vain(learner, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    name = {SequenceTransformer: "sequence_transformer", TabM: "tabm"}[learner]
    with pytest.raises(UserError, match="^learner.device=cuda, but torch finds no GPU here"):
        learner(device="cuda").estimator(Binomial(), 0).fit(rows(name)[0], np.arange(N) % 2.0)


@pytest.mark.parametrize("loss", [NormalLoss(), NormalLoss("faithful_nll")], ids=str)
def test_a_faithful_scale_leaves_the_hidden_layers_alone(loss):
    network = mlp.new_network(3, np.zeros(2), (5,), loss, 0)
    raw = network.forward(torch.ones(4, 3))
    torch.autograd.backward(raw[:, 1].sum())
    hidden, last = network.weights[0].grad, network.weights[1].grad
    assert bool((hidden != 0).any()) == (not loss.scale_detached_from_trunk)
    assert last is not None and (last[:, 1] != 0).any()


def test_backpropagating_the_losses_gradient_is_backpropagating_its_value():
    loss, network = NormalLoss(), mlp.new_network(3, np.zeros(2), (5,), NormalLoss(), 0)
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


def test_training_stops_where_held_out_rows_no_longer_improve():
    X, y = rows("mlp")
    short, long = (MLP(epochs=n, patience=2).estimator(SquaredError(), 0) for n in (150, 300))
    np.testing.assert_array_equal(short.fit(X, y).predict(X), long.fit(X, y).predict(X))


@pytest.fixture(scope="module")
def thinned():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(400, 4))
    y = (X[:, 0] + 0.5 * draw.normal(size=400) > 0).astype(float)
    model = MLP(hidden=(16,), dropout=0.25, epochs=20).estimator(Binomial(), 0).fit(X, y)
    return model, X


def test_a_member_leaves_the_same_units_out_for_every_row(thinned):
    model, X = thinned
    members = model.predict_members(X, 50, 1)
    assert members.shape == (50, 400, 1)
    part = model.predict_members(X[:7], 50, 1)
    np.testing.assert_allclose(members[:, :7], part, atol=1e-6)
    assert members.std(axis=0).min() > 0


def test_dropout_keeps_the_expected_scores(thinned):
    model, X = thinned
    p = np.clip(model.predict_members(X, 4000, 2)[..., 0], 1e-12, 1 - 1e-12)
    scores = np.log(p / (1 - p))
    whole = model.predict_proba(X)[:, 1]
    error = scores.std(axis=0) / np.sqrt(len(scores))
    # One hidden layer: the score is linear in the masks, whose mean is 1.
    assert (np.abs(scores.mean(axis=0) - np.log(whole / (1 - whole))) < 6 * error).all()


def test_a_network_without_dropout_has_no_members():
    model = MLP(epochs=1).estimator(Binomial(), 0)
    assert not hasattr(model, "predict_members")


def test_the_two_variances_of_drawn_networks_add_up(tmp_path):
    chosen = ["learner=bayesian_nn", "method=bayes_by_backprop", "learner.epochs=3"]
    run = pipeline.prepare(configuration(*chosen, *TINY, results=tmp_path))
    members = np.random.default_rng(0).random((50, 10))
    read = run.method.read({"score": members}, run.dataset.task, np.random.default_rng(0))
    np.testing.assert_allclose(
        read["aleatoric"] + read["epistemic"], 2 * read["score"] * (1 - read["score"])
    )
    assert (read["epistemic"] > 0).all()
    assert (read["aleatoric"] <= 0.5).all()
