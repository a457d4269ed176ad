"""Networks of layers: a faithful scale, when training stops, and members without some units."""

import numpy as np
import pytest

from fairbench.components.algorithms.learners.mlp import MLP
from fairbench.components.algorithms.losses import Binomial, NormalLoss, SquaredError
from tests.harness import Lazily

torch = Lazily("torch")
mlp = Lazily("fairbench.components.algorithms.estimators.network")


@pytest.mark.parametrize("loss", [NormalLoss(), NormalLoss("faithful_nll")], ids=str)
def test_a_faithful_scale_leaves_the_hidden_layers_alone(loss):
    network = mlp.new_network(3, np.zeros(2), (5,), loss, 0)
    raw = network.forward(torch.ones(4, 3))
    torch.autograd.backward(raw[:, 1].sum())
    hidden, last = network.weights[0].grad, network.weights[1].grad
    assert bool((hidden != 0).any()) == (not loss.scale_detached_from_trunk)
    assert last is not None and (last[:, 1] != 0).any()


def test_training_stops_where_held_out_rows_no_longer_improve():
    X = np.random.default_rng(0).normal(size=(120, 3))
    y = X[:, 0] + 0.3 * np.random.default_rng(1).normal(size=120)
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
    assert not hasattr(MLP().estimator(Binomial(), 0), "predict_members")


def test_dropout_keeps_the_expected_scores(thinned):
    model, X = thinned
    p = np.clip(model.predict_members(X, 4000, 2)[..., 0], 1e-12, 1 - 1e-12)
    scores = np.log(p / (1 - p))
    whole = model.predict_proba(X)[:, 1]
    error = scores.std(axis=0) / np.sqrt(len(scores))
    # One hidden layer: the score is linear in the masks, whose mean is 1.
    assert (np.abs(scores.mean(axis=0) - np.log(whole / (1 - whole))) < 6 * error).all()
