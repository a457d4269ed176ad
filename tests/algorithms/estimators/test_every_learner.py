"""What every learner keeps to: a fit is that of its seed, labels and weights, and nothing else."""

from functools import cache
from glob import glob

import numpy as np
import pandas as pd
import pytest

from fairbench.components.algorithms.learners.lightgbm import LightGBM
from fairbench.components.algorithms.learners.sequence_transformer import SequenceTransformer
from fairbench.components.algorithms.learners.tabm import TabM
from fairbench.components.algorithms.learners.xgboost import XGBoost
from fairbench.components.algorithms.learners.xgboost_tuned import TunedXGBoost
from fairbench.components.algorithms.losses import Binomial, NormalLoss, Softmax, SquaredError
from fairbench.components.datasets import simulated_sequences
from fairbench.core.errors import UserError
from fairbench.data.dataset import Task
from fairbench.data.features import Encoder, Encoding, Sequences
from tests.conformance import grid
from tests.harness import Lazily, listed

torch = Lazily("torch")
N, KEPT = 120, 100
LEARNERS = {name: grid._component("learner", name) for name in sorted(grid.installed("learner"))}
# One of a contributor's own may use its seed in ties alone.
OURS = [learner for name, learner in LEARNERS.items() if name in listed("learner")]
LEARNERS["lightgbm of some columns"] = LightGBM(rounds=5, colsample_bytree=0.3)
LOSSES = [Binomial(), Softmax(4), SquaredError()]
LOSSES += [NormalLoss(), NormalLoss("beta_nll"), NormalLoss("faithful_nll")]
# Bins are placed by all rows of a frame, whatever their weight.
BINNED = (XGBoost, TunedXGBoost)


@cache
def rows(encoding):
    """Return encoded rows of the kind that a learner takes, and values of the first column."""
    if not isinstance(encoding, Encoding):
        data = simulated_sequences.load(None, n_samples=N, length=6, event=2)
        X = Encoder(encoding).fit(data.features).transform(data.features)
        return X, data.target.to_numpy(float) + 0.1 * np.random.default_rng(0).normal(size=N)
    X = np.random.default_rng(0).normal(size=(N, 3))
    y = X[:, 0] + 0.3 * np.random.default_rng(1).normal(size=N)
    return (pd.DataFrame(X, columns=list("abc")) if encoding is Encoding.NATIVE else X), y


def labels(loss, y):
    """Return values as a loss has them; of the classes the last has no row."""
    if loss.name == "softmax":
        return np.searchsorted([0, 1.0], y).astype(float)
    return (y > 0).astype(float) if loss.classes else y


def outputs(model, X):
    """Return what a model says of rows, and what its members do, if it has any."""
    said = next(
        getattr(model, name)(X)
        for name in ("predict_proba", "predict_distribution", "predict")
        if hasattr(model, name)
    )
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(said.sum(axis=1), 1, atol=1e-5)
        assert said.shape[1] == 2 or (said[:, 3] < 0.05).all()
    members = model.predict_members(X, 6, 3) if hasattr(model, "predict_members") else np.empty(0)
    assert said.dtype == members.dtype == np.float64 and np.isfinite(said).all()
    return np.append(said, members)


def minimises(learner, loss):
    """Say whether a learner has the task of a loss, and minimises it."""
    task = {"binomial": Task.BINARY, "softmax": Task.MULTICLASS}.get(loss.name, Task.REGRESSION)
    known = learner.capabilities.losses
    return task in learner.capabilities.tasks and (known is None or loss.name in known)


CASES = [
    pytest.param(learner, loss, id=f"{name}-{loss.name}")
    for name, learner in LEARNERS.items()
    for loss in LOSSES
    if minimises(learner, loss)
]


@pytest.mark.parametrize(("learner", "loss"), CASES)
def test_a_fit_is_that_of_its_seed_its_labels_and_its_weights(learner, loss):
    X, y = rows(learner.encoding)
    weight = (np.arange(N) < KEPT).astype(float)

    def fitted(X=X, y=y, weight=weight, seed=0):
        return learner.estimator(loss, seed).fit(X, labels(loss, y), sample_weight=weight)

    torch.manual_seed(1)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    one = outputs(fitted(), X)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    torch.manual_seed(2)
    assert np.abs(outputs(fitted(weight=weight * np.where(y > 0.5, 3, 1)), X) - one).max() > 1e-3
    np.testing.assert_array_equal(outputs(fitted(y=np.where(weight == 0, -50 * y, y)), X), one)
    if not isinstance(learner, BINNED):
        first = X.take(np.arange(KEPT)) if isinstance(X, Sequences) else X[:KEPT]
        np.testing.assert_allclose(outputs(fitted(first, y[:KEPT], None), X), one, rtol=1e-9)
    if not isinstance(learner, TunedXGBoost):  # which deals out rows to tune on by its seed
        same = np.array_equal(outputs(fitted(seed=1), X), one)
        assert same if not learner.capabilities.seeded else not same or learner not in OURS


@pytest.mark.parametrize("make", [SequenceTransformer, TabM, XGBoost, TunedXGBoost])
def test_a_gpu_that_is_not_there_is_asked_for_in_vain(make, monkeypatch):
    if make in BINNED and glob("/dev/nvidia[0-9]*"):
        pytest.skip("this machine has a GPU")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    learner = make(device="cuda")
    with pytest.raises(UserError, match="^learner.device=cuda.*, but (XGBoost|torch) finds no GPU"):
        learner.estimator(Binomial(), 0).fit(rows(learner.encoding)[0], np.arange(N) % 2.0)
    assert make is not XGBoost or learner.estimator(Binomial(), 0).parameters["device"] == "cuda"
