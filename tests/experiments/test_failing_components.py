"""Components of one's own that raise what they should not: the sweep goes on, and says which."""

import json

import pytest

from fairbench.core.processes import failure
from tests.harness import THOROUGH, fairbench, run_py

SMALL = ("dataset.n_samples=200", "split.repeats=1", "tracking=none", "figures=false")
RAISE = '''
"""Raises what a test asks for."""

import sys


class Mute(Exception):
    def __str__(self):
        raise ValueError("no text")


class Ended(BaseException):
    pass


def now(how):
    if how == "exit":
        sys.exit(0)
    if how == "message":
        sys.exit("bye")
    if how == "ended":
        raise Ended("own")
    if how == "mute":
        raise Mute
    if how == "long":
        raise ValueError("x" * 5_000_000)
    if how == "lines":
        raise ValueError("x\\n" * 500_000)
    if how == "signs":
        raise ValueError("\\x1b[31m\\u202eevil")
'''
LEARNER = '''
"""A linear model that may fail where it is fitted."""

from dataclasses import dataclass

from fairbench.components.algorithms import raising
from fairbench.components.algorithms.learners.gaussian_nb import GaussianNB


@dataclass(frozen=True)
class Odd(GaussianNB):
    how: str = "none"

    def estimator(self, loss, seed):
        raising.now(self.how)
        return super().estimator(loss, seed)
'''
METHOD = '''
"""A method that may fail where it reads outputs."""

from dataclasses import dataclass

from fairbench.components.algorithms import raising
from fairbench.components.algorithms.methods.baseline import Baseline


@dataclass(frozen=True)
class Odd(Baseline):
    how: str = "none"

    def read(self, raw, task, rng):
        raising.now(self.how)
        return super().read(raw, task, rng)
'''
DATASET = '''
"""A data set that may fail where it is loaded."""

from fairbench.components.algorithms import raising
from fairbench.components.datasets import simulated


def load(archive, *, n_samples: int = 200, how: str = "none"):
    raising.now(how)
    return simulated.load(archive, n_samples=n_samples)
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a learner, a method and a data set, each of which may raise."""
    folder = tmp_path_factory.mktemp("own")
    files = {
        "algorithms/raising.py": RAISE,
        "algorithms/learners/odd_learner.py": LEARNER,
        "conf/learner/odd.yaml": "_target_: algorithms.learners.odd_learner.Odd\nhow: none\n",
        "algorithms/methods/odd_method.py": METHOD,
        "conf/method/odd.yaml": "_target_: algorithms.methods.odd_method.Odd\nhow: none\n",
        "datasets/odd_data.py": DATASET,
        "conf/dataset/odd.yaml": "_target_: datasets.odd_data.load\nn_samples: 200\nhow: none\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


EXECUTORS = {
    "here": (),
    "workers": ("n_jobs=2",),
    "joblib": ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2"),
    "local": ("hydra/launcher=submitit_local",),
}


@pytest.mark.parametrize(
    ("where", "how", "executor"),
    [
        ("learner", "exit", "here"),
        ("learner", "exit", "workers"),
        pytest.param("learner", "exit", "joblib", marks=THOROUGH),
        pytest.param("learner", "exit", "local", marks=THOROUGH),
        pytest.param("learner", "message", "here", marks=THOROUGH),
        pytest.param("learner", "ended", "workers", marks=THOROUGH),
        pytest.param("method", "exit", "workers", marks=THOROUGH),
        ("method", "exit", "here"),
        ("dataset", "exit", "here"),
        pytest.param("dataset", "ended", "here", marks=THOROUGH),
    ],
)
def test_what_would_end_the_process_is_a_failed_run(where, how, executor, folder, tmp_path):
    results = tmp_path / "results"
    part = ("dataset=odd",) if where == "dataset" else ("dataset=simulated",)
    words = {"learner": "gaussian_nb", "method": "baseline", where: "odd"}
    words.pop("dataset", None)
    done = run_py(
        "-m", *part, *(f"{name}={value}" for name, value in words.items()),
        f"{where}.how=none,{how}", *SMALL, *EXECUTORS[executor], f"results={results}", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 runs finished, 0 skipped, 1 failed" in done.stdout
    said = {"exit": "SystemExit: 0", "message": "SystemExit: bye", "ended": "Ended: own"}[how]
    assert f"how={how}: {said}" in done.stdout
    assert len(list((results / "runs").iterdir())) == 1


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("verb", "word"),
    [
        ("run", "learner=odd learner.how=exit"),
        ("run", "method=odd method.how=exit"),
        ("run", "dataset=odd dataset.how=exit"),
        ("tune", "dataset=odd dataset.how=exit learner=xgboost learner.max_depth=2,3"),
    ],
)
def test_one_run_that_would_end_the_process_fails(verb, word, folder, tmp_path):
    given = ("tracking=none", "figures=false", f"results={tmp_path}")
    done = run_py(*word.split(), *given, cwd=folder) if verb == "run" else None
    if verb == "tune":
        done = run_verb("tune", *word.split(), f"results={tmp_path}", cwd=folder)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "error: SystemExit: 0" in done.stderr
    assert not (tmp_path / "runs").exists() or not list((tmp_path / "runs").iterdir())


def run_verb(*words, cwd):
    """Run a command that fails, with the traceback of a component."""
    from tests import warm
    from tests.harness import verb

    return warm.run(verb(*words)[1:], cwd=cwd, timeout=240, environment={})


@pytest.mark.thorough
@pytest.mark.parametrize("how", ["mute", "long", "lines", "signs"])
@pytest.mark.parametrize("where", ["learner", "dataset"])
def test_a_text_that_raises_or_is_endless_is_shown_and_kept_short(where, how, folder, tmp_path):
    results = tmp_path / "results"
    words = {"dataset": "simulated", "learner": "gaussian_nb"} | {where: "odd"}
    done = run_py(
        "-m", *(f"{name}={value}" for name, value in words.items()), f"{where}.how=none,{how}",
        *SMALL, f"results={results}", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 1 and "1 runs finished" in done.stdout, done.stdout + done.stderr
    (kept,) = results.rglob("outcomes.json")
    (outcome,) = (job for job in json.loads(kept.read_text()) if job["status"] == "failed")
    expected = {
        "mute": "Mute: (its text raises ValueError)",
        "signs": r"ValueError: \x1b[31m\u202eevil",
        "lines": "ValueError: x",
    }
    assert outcome["message"].startswith(expected.get(how, "ValueError: xxx"))
    for text in (done.stdout, done.stderr, kept.read_text()):
        assert len(text) < 50_000 and "\x1b" not in text and "\u202e" not in text


def test_a_traceback_is_cut_in_the_middle_and_in_each_line():
    try:
        raise ValueError("first\n" + "x" * 1000 + "\n" * 1000 + "\x1b last")
    except ValueError as error:
        reason, trace = failure(error)
    assert reason == "ValueError: first"
    lines = trace.split("\n")
    assert lines[0] == "Traceback (most recent call last):" and lines[-1] == r"\x1b last"
    assert len(lines) == 201 and max(map(len, lines)) < 410
    assert " lines are left out ..." in lines[100]


def test_a_version_is_no_failure(tmp_path):
    assert "Hydra" in run_py("--version", cwd=tmp_path).stdout
    fairbench("--version", cwd=tmp_path)
