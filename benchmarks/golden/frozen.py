"""The frozen commit, and a checkout of it for as long as it is asked."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import pandas as pd

from benchmarks.golden import evaluating

# The one place where the commit is written down that every later tree is compared with.
COMMIT = "e8ea803f023d805c82855343003c057ab6038a15"
ROOT = Path(__file__).resolve().parents[2]


class GoldenError(Exception):
    """A reason why nothing can be compared, in one line."""


@contextlib.contextmanager
def frozen_tree() -> Iterator[Path]:
    """Yield a folder with the files of the frozen commit; it is removed afterwards.

    Raises
    ------
    GoldenError : this folder is no clone of the repository, or one without that commit.
    """
    try:
        _git("cat-file", "-e", f"{COMMIT}^{{commit}}")
    except GoldenError as error:
        raise GoldenError(
            f"the frozen commit {COMMIT[:12]} is not in {ROOT}: golden needs a full clone, "
            "which `git fetch --unshallow` makes of a shallow one"
        ) from error
    with tempfile.TemporaryDirectory(prefix="fairbench-frozen-") as folder:
        tree = Path(folder) / COMMIT[:7]
        _git("worktree", "add", "--quiet", "--detach", str(tree), COMMIT)
        try:
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _git(*words: str) -> None:
    """Run git in this checkout."""
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    except OSError as error:
        raise GoldenError(f"git cannot be run: {error}") from error
    if done.returncode:
        said = " ".join(done.stderr.split())
        raise GoldenError(f"git {words[0]} {words[1]} failed: {said}")


# Asking a tree: a command in a process of its own, which must be that tree's and no other's.


@dataclass(frozen=True)
class Reply:
    """What a command ended with: its exit status, what it printed, and what it complained of."""

    status: int
    printed: str
    errors: str


# A task, which is a verb, the case's words, and the folder to ask in.
Ask = Callable[[str, Sequence[str], Path], Reply]
# The questions to `fairbench.evaluate`, and the folder to ask in.
Evaluate = Callable[[Sequence[Mapping[str, Any]], Path], list[Any]]


def commands_of(tree: Path) -> Ask:
    """Return what asks the commands of a tree, a process each."""

    def ask(task: str, words: Sequence[str], folder: Path) -> Reply:
        line = [sys.executable, "-P", "-m", "fairbench", task, *words]
        pipes: dict[str, Any] = {"stdin": DEVNULL, "stdout": PIPE, "stderr": PIPE, "text": True}
        done = subprocess.run(line, cwd=folder, env=_environment(tree), **pipes)
        return Reply(done.returncode, done.stdout, done.stderr)

    return ask


def evaluate_in_process(tree: Path) -> Evaluate:
    """Return what asks ``fairbench.evaluate`` of a tree."""

    def evaluate(questions: Sequence[Mapping[str, Any]], folder: Path) -> list[Any]:
        asked, answered = folder / "questions.json", folder / "answers.json"
        asked.write_text(json.dumps(list(questions)))
        line = [sys.executable, "-P", evaluating.__file__, str(asked), str(answered)]
        done = subprocess.run(line, cwd=folder, env=_environment(tree), stderr=PIPE, text=True)
        if done.returncode:
            raise GoldenError(f"evaluate of {tree} failed: {done.stderr.strip()}")
        content = json.loads(answered.read_text())
        if not Path(content["library"]).is_relative_to(tree):
            raise GoldenError(f"{tree} was asked, and {content['library']} answered")
        return [
            pd.read_parquet(folder / answer["table"]) if answer["table"] else answer["refusal"]
            for answer in content["answers"]
        ]

    return evaluate


def _environment(tree: Path) -> dict[str, str]:
    """Return this environment with one thread, the tree first on the path, and its raw data."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {**os.environ, **threads, "PYTHONPATH": str(tree), "FAIRBENCH_DATA": str(raw_data())}


def raw_data() -> Path:
    """Return the folder of raw data files, the same for both trees, wherever they lie."""
    named = os.environ.get("FAIRBENCH_DATA")
    folders = [Path(named)] if named else [ROOT / "data", ROOT.parent / "shared" / "data"]
    # A run makes a folder of data for its cache alone.
    filled = (folder for folder in folders if [*folder.glob("[!.]*")])
    return next(filled, folders[0]).resolve()
