"""Components of one's own that raise what they should not: the sweep goes on, and says which."""

import json

import pytest

from fairbench.core.processes import failure
from tests import warm
from tests.harness import fairbench, quick, run_py, verb

SMALL = ("dataset.n_samples=200", "split.repeats=1", "tracking=none", "figures=false")
ODD = '''
"""Components that raise what a test asks for."""

from dataclasses import dataclass

from fairbench.components.algorithms.learners.gaussian_nb import GaussianNB
from fairbench.components.algorithms.methods.baseline import Baseline
from fairbench.components.datasets import simulated


class Mute(Exception):
    def __str__(self):
        raise ValueError("no text")


class Ended(BaseException):
    pass


RAISED = {
    "exit": SystemExit(0), "message": SystemExit("bye"), "ended": Ended("own"), "mute": Mute(),
    "long": ValueError("x" * 5_000_000), "lines": ValueError("x\\n" * 500_000),
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
    "mute": "Mute: (its text raises ValueError)",
    "long": "ValueError: xxx",
    "lines": "ValueError: x",
    "signs": r"ValueError: \x1b[31m\u202eevil",
}
OFTEN = [
    ("learner", "exit", "here"), ("method", "exit", "here"), ("dataset", "exit", "here"),
]  # fmt: skip
RARE = [
    ("learner", "exit", "workers"), ("learner", "exit", "joblib"), ("learner", "exit", "local"),
    ("learner", "message", "here"),
    ("learner", "ended", "workers"), ("method", "exit", "workers"), ("dataset", "ended", "here"),
    *((where, how, "here") for where in ("learner", "dataset") for how in list(SAID)[3:]),
]  # fmt: skip


@pytest.mark.parametrize(("where", "how", "executor"), quick(OFTEN + RARE, OFTEN, several=True))
def test_what_would_end_the_process_or_is_endless_is_a_failed_run(
    where, how, executor, folder, tmp_path
):
    words = {"dataset": "simulated", "learner": "gaussian_nb", "method": "baseline", where: "odd"}
    done = run_py(
        "-m", *(f"{name}={value}" for name, value in words.items()), f"{where}.how=none,{how}",
        *SMALL, *EXECUTORS[executor], f"results={tmp_path}", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 runs finished, 0 skipped, 1 failed" in done.stdout
    assert f"how={how}: {SAID[how]}" in done.stdout
    assert len(list((tmp_path / "runs").iterdir())) == 1
    (kept,) = tmp_path.rglob("outcomes.json")
    (outcome,) = (job for job in json.loads(kept.read_text()) if job["status"] == "failed")
    assert outcome["message"].startswith(SAID[how])
    for text in (done.stdout, done.stderr, kept.read_text()):
        assert len(text) < 50_000 and "\x1b" not in text and "\u202e" not in text


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
