"""Networks drawn from one fitted network: weight samples, dropout, and what has neither."""

import numpy as np
import pytest

from fairbench.components.algorithms.learners.mlp import MLP
from fairbench.components.algorithms.losses import Binomial
from fairbench.experiments import pipeline
from tests.harness import TINY, configuration


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
