"""Components of one's own that raise what they should not: the sweep goes on, and says which."""

import json
import shutil

import pytest

from tests import warm
from tests.harness import run_py, verb

SMALL = ("dataset.n_samples=200", "split.repeats=1", "tracking=none", "figures=false")
ODD = '''
"""Components that raise what a test asks for."""

from dataclasses import dataclass

from fairbench.components.algorithms.learners.gaussian_nb import GaussianNB
from fairbench.components.algorithms.methods.baseline import Baseline
from fairbench.components.datasets import simulated


class Ended(BaseException):
    pass


RAISED = {
    "exit": SystemExit(0), "message": SystemExit("bye"), "ended": Ended("own"),
    "signs": ValueError("\\x1b[31m\\u202eevil"),
}


def now(how):
    if how in RAISED:
        raise RAISED[how]


@dataclass(frozen=True)
class Learner(GaussianNB):
    how: str = "none"

    def estimator(self, loss, seed):
        now(self.how)
        return super().estimator(loss, seed)


@dataclass(frozen=True)
class Method(Baseline):
    how: str = "none"

    def read(self, raw, task, rng):
        now(self.how)
        return super().read(raw, task, rng)


def load(archive, *, n_samples: int = 200, how: str = "none"):
    now(how)
    return simulated.load(archive, n_samples=n_samples)
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a learner, a method and a data set, each of which may raise."""
    folder = tmp_path_factory.mktemp("own")
    files = {
        f"conf/{group}/odd.yaml": f"_target_: algorithms.learners.odd.{name}\nhow: none\n"
        for group, name in (("learner", "Learner"), ("method", "Method"))
    }
    files["conf/dataset/odd.yaml"] = "_target_: datasets.odd.load\nn_samples: 200\nhow: none\n"
    for name, text in {**files, "algorithms/learners/odd.py": ODD, "datasets/odd.py": ODD}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


EXECUTORS = {
    "here": (),
    "workers": ("n_jobs=2",),
    "joblib": ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2"),
    "local": ("hydra/launcher=submitit_local",),
}
SAID = {
    "exit": "SystemExit: 0",
    "message": "SystemExit: bye",
    "ended": "Ended: own",
    "signs": r"ValueError: \x1b[31m\u202eevil",
}


@pytest.mark.parametrize(
    ("where", "executor", "hows"),
    [
        ("method", "here", ["exit", "message"]),
        pytest.param("learner", "here", list(SAID), marks=pytest.mark.thorough),
        pytest.param("dataset", "here", list(SAID), marks=pytest.mark.thorough),
        pytest.param("learner", "workers", ["exit", "ended"], marks=pytest.mark.thorough),
        pytest.param("learner", "joblib", ["exit"], marks=pytest.mark.thorough),
        pytest.param("learner", "local", ["exit"], marks=pytest.mark.slow),
        pytest.param("method", "workers", ["exit"], marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_what_would_end_the_process_is_a_failed_run(where, executor, hows, folder, tmp_path):
    words = {"dataset": "simulated", "learner": "gaussian_nb", "method": "baseline", where: "odd"}
    done = run_py(
        "-m", *(f"{name}={value}" for name, value in words.items()),
        f"{where}.how={','.join(['none', *hows])}",
        *SMALL, *EXECUTORS[executor], f"results={tmp_path}", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"1 runs finished, 0 skipped, {len(hows)} failed" in done.stdout
    assert all(f"how={how}: {SAID[how]}" in done.stdout for how in hows)
    assert len(list((tmp_path / "runs").iterdir())) == 1
    (kept,) = tmp_path.rglob("outcomes.json")
    failed = [job for job in json.loads(kept.read_text()) if job["status"] == "failed"]
    assert len(failed) == len(hows)
    for how, outcome in zip(hows, failed, strict=True):
        assert outcome["message"].startswith(SAID[how])
    for text in (done.stdout, done.stderr, kept.read_text()):
        assert "\x1b" not in text and "\u202e" not in text


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("run", "learner=odd learner.how=exit tracking=none figures=false"),
        ("run", "method=odd method.how=exit tracking=none figures=false"),
        ("run", "dataset=odd dataset.how=exit tracking=none figures=false"),
        ("tune", "dataset=odd dataset.how=exit learner=xgboost learner.max_depth=2,3"),
    ],
)
def test_one_run_that_would_end_the_process_fails(name, words, folder, tmp_path):
    command = verb(name, *words.split(), f"results={tmp_path}")[1:]
    done = warm.run(command, cwd=folder, timeout=240, environment={})
    assert done.returncode == 1, done.stdout + done.stderr
    assert "error: SystemExit: 0" in done.stderr
    assert not (tmp_path / "runs").exists() or not list((tmp_path / "runs").iterdir())


CHANGING = '''
"""A learner that changes what it is given."""

from dataclasses import dataclass

import numpy as np

from fairbench.data.features import Encoding
from fairbench.experiments.contracts import Learner


@dataclass(frozen=True)
class Changing(Learner):
    encoding = Encoding.{encoding}

    def estimator(self, loss, seed):
        return Estimator()


class Estimator:
    def fit(self, X, y, sample_weight=None):
        {fit}
        self.p = y.mean()
        return self

    def predict_proba(self, X):
        {predict}
        return np.tile([1 - self.p, self.p], (X.shape[0], 1))
'''
# How rows are encoded, what `fit` and `predict_proba` do to them, and whether they may.
CHANGES = {
    "labels": ("STANDARD", "y[:5] = 1 - y[:5]", "pass", False),
    "matrix": ("STANDARD", "X *= 2", "pass", False),
    "predicted": ("STANDARD", "pass", "X[:, 0] = 0", False),
    "sparse": ("ONEHOT", "X.data[:] = 0", "pass", False),
    "column": ("NATIVE", 'X["x0"] = 0.0', "pass", False),
    "new": ("NATIVE", 'X["new"] = 0.0', "pass", False),
    "cell": ("NATIVE", "X.iloc[0, 0] = 0.0", "pass", False),
    "copy": ("NATIVE", 'X.copy()["new"] = 0.0', "pass", True),
}


@pytest.fixture(scope="module")
def own_learner(tmp_path_factory):
    """Return what writes a learner into a folder, and runs it there."""
    folder = tmp_path_factory.mktemp("own_learner")
    code, choice = folder / "algorithms/learners", folder / "conf/learner"
    for place in (code, choice):
        place.mkdir(parents=True)
    (choice / "changing.yaml").write_text("_target_: algorithms.learners.changing.Changing\n")

    def run(text):
        # Python takes a file of this size and second for the one that it has compiled.
        shutil.rmtree(code / "__pycache__", ignore_errors=True)
        (code / "changing.py").write_text(text)
        return run_py("learner=changing", "method=ensemble", *SMALL, cwd=folder)

    return run


@pytest.mark.thorough
@pytest.mark.parametrize(("encoding", "fit", "predict", "allowed"), CHANGES.values(), ids=CHANGES)
def test_what_is_given_to_others_too_cannot_be_changed(
    encoding, fit, predict, allowed, own_learner
):
    """Every member of a bag is given the same rows, and every later fit in this process."""
    done = own_learner(CHANGING.format(encoding=encoding, fit=fit, predict=predict))
    is_table = encoding == "NATIVE"
    said = "Changing or NoIntervention or Bag changes the table" if is_table else "read-only"
    assert done.returncode == (0 if allowed else 2 if is_table else 1), done.stderr
    assert allowed or said in done.stderr


def test_a_class_that_is_not_there_is_named(own_learner):
    done = own_learner("class Changin: pass\n")
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert "learners/changing.py has no Changing" in done.stderr
