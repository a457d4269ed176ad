"""TabPFN through a stand-in of the package's interface: nobody here has its weights."""

import importlib.util
import sys

import numpy as np
import pandas as pd
import pytest

from fairbench.components.algorithms.learners.tabpfn import TabPFN
from fairbench.components.algorithms.losses import Binomial, NormalLoss, Softmax, SquaredError
from fairbench.core.errors import IncompatibleError, UserError
from fairbench.experiments import build as compatibility
from fairbench.experiments import pipeline
from fairbench.experiments.execute import carry_out
from tests.harness import TINY, configuration

# What TabPFN 9.2 takes and gives, of what is used: it knows as much as the mean of the labels.
PACKAGE = """
from pathlib import Path
import numpy as np
import torch

class Stored:
    def __init__(
        self, *, model_path, n_estimators, device, random_state, ignore_pretraining_limits
    ):
        assert Path(model_path).is_file() and device == "cpu" and ignore_pretraining_limits
    def fit(self, X, y):
        self.y, self.rows = y, len(X)
        return self

class TabPFNClassifier(Stored):
    def fit(self, X, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.share = counts / counts.sum()
        return super().fit(X, y)
    def predict_proba(self, X):
        return np.tile(self.share, (len(X), 1)).astype(np.float32)

class Criterion:
    def variance(self, logits):
        return logits.square()

class TabPFNRegressor(Stored):
    def predict(self, X, *, output_type="mean"):
        mean = np.full(len(X), self.y.mean(), np.float32)
        if output_type == "mean":
            return mean
        logits = torch.full((len(X),), float(self.y.std()))
        return {"mean": mean, "criterion": Criterion(), "logits": logits}
"""


@pytest.fixture
def weights(tmp_path, monkeypatch):
    """Return a file of weights, for a package that is found."""
    (tmp_path / "tabpfn.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "weights.safetensors"
    file.write_bytes(b"weights")
    yield str(file)
    sys.modules.pop("tabpfn", None)


def test_gives_what_the_package_gives(weights):
    X, y = pd.DataFrame({"x": np.arange(6.0)}), np.array([0, 1, 1, 0, 1, 1.0])
    learner = TabPFN(weights)
    p = learner.estimator(Binomial(), 0).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(p, [[1 / 3, 2 / 3]] * 6, rtol=1e-6)
    copies = np.array([1, 0, 0, 0, 0, 2.0])
    model = learner.estimator(NormalLoss(), 0).fit(X, 3 * y, copies)
    assert model.fitted_.rows == 3
    np.testing.assert_allclose(model.predict_distribution(X), [[2, np.sqrt(2)]] * 6, rtol=1e-6)
    np.testing.assert_allclose(learner.estimator(SquaredError(), 0).fit(X, y).predict(X), y.mean())
    one = learner.estimator(Binomial(), 0).fit(X, np.ones(6)).predict_proba(X)
    np.testing.assert_array_equal(one, [[0, 1]] * 6)
    p = learner.estimator(Softmax(4), 0).fit(X, 3 * y).predict_proba(X)
    np.testing.assert_allclose(p, [[1 / 3, 0, 0, 2 / 3]] * 6, rtol=1e-6)
    with pytest.raises(UserError, match="weights that count copies"):
        learner.estimator(Binomial(), 0).fit(X, y, y / 2)


def test_a_run_composes_it_as_any_learner(weights, tmp_path):
    chosen = ["learner=tabpfn", f"learner.checkpoint={weights}", "method=binomial_nll", *TINY]
    metrics = carry_out(configuration(*chosen, results=tmp_path)).prepared.folder.all_metrics()
    assert metrics.query("metric == 'log_loss'")["status"].eq("ok").any()


def test_other_weights_in_a_file_of_the_same_name_are_another_fit(weights):
    one = TabPFN(weights)
    assert one == TabPFN(weights)
    with open(weights, "ab") as file:
        file.write(b"!")
    assert one != TabPFN(weights)


def test_without_the_weights_or_the_package_it_is_refused_in_a_sentence(tmp_path, monkeypatch):
    for checkpoint, sentence in (
        ("", "^learner=tabpfn needs the file of TabPFN's weights, .* learner.checkpoint=FILE$"),
        ("none.ckpt", "^learner.checkpoint is none.ckpt, and no such file is here: give the file"),
    ):
        with pytest.raises(UserError, match=sentence):
            TabPFN(checkpoint)
    file, result = tmp_path / "weights.ckpt", importlib.util.find_spec
    file.touch()
    monkeypatch.setattr(
        compatibility, "find_spec", lambda name: None if name == "tabpfn" else result(name)
    )
    chosen = ["learner=tabpfn", f"learner.checkpoint={file}", *TINY]
    with pytest.raises(IncompatibleError, match="package tabpfn, .*pip install tabpfn.*use learn"):
        pipeline.prepare(configuration(*chosen, results=tmp_path))
