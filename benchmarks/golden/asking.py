"""Asking a tree: a command in a process of its own, which must be that tree's and no other's."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pandas as pd

from benchmarks.golden import evaluating, serving
from benchmarks.golden.dialect import Dialect
from benchmarks.golden.frozen import ROOT, GoldenError


@dataclass(frozen=True)
class Reply:
    """What a command ended with: its exit status, what it printed, and what it complained of."""

    status: int
    printed: str
    errors: str


# A task of a dialect, the case's words, and the folder to ask in.
Ask = Callable[[str, Sequence[str], Path], Reply]
# The questions to `fairbench.evaluate`, and the folder to ask in.
Evaluate = Callable[[Sequence[Mapping[str, Any]], Path], list[Any]]


@contextlib.contextmanager
def commands_of(tree: Path, dialect: Dialect) -> Iterator[Ask]:
    """Yield what asks the commands of a tree, a process each."""
    line = [sys.executable, "-P", serving.__file__]
    pipes: dict[str, Any] = {"stdin": PIPE, "stdout": PIPE, "text": True}
    with subprocess.Popen(line, env=_environment(tree), **pipes) as server:
        yield partial(_served, server, tree, dialect)
        server.communicate()


def _served(
    server: subprocess.Popen[str],
    tree: Path,
    dialect: Dialect,
    task: str,
    words: Sequence[str],
    folder: Path,
) -> Reply:
    start, *others = dialect.commands[task].line(words)
    script = start if start.startswith("-") else str(tree / start)
    question = {"line": [script, *others], "folder": str(folder)}
    assert server.stdin and server.stdout
    server.stdin.write(json.dumps(question) + "\n")
    server.stdin.flush()
    answer = server.stdout.readline()
    if not answer:
        raise GoldenError(f"the process that runs the commands of {tree} ended")
    return Reply(**json.loads(answer))


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
    return next((folder for folder in folders if folder.is_dir()), folders[0]).resolve()
