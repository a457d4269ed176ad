"""Commands that are given at the same time, in copies of a folder, and what became of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import ROOT
from fairbench.results.catalogue import Catalogue
from fairbench.results.runs import Run

RUN = ("dataset=simulated", "dataset.n_samples=300", "split.repeats=2", "method=baseline",
       "learner=logistic_regression")  # fmt: skip


@dataclass(frozen=True)
class Place:
    """A folder with results of some finished runs, from which commands are given."""

    root: Path
    user: int | None = None

    @property
    def results(self) -> Path:
        """The results folder."""
        return self.root / "results"

    @property
    def runs(self) -> list[Run]:
        """Its runs."""
        return list(Catalogue(self.results))

    def copy(self, name: str, user: int | None = None) -> Place:
        """Return a copy beside it."""
        copied = Place(Path(shutil.copytree(self.root, self.root.with_name(name))), user)
        if user:
            for path in [copied.root, *copied.root.rglob("*")]:
                path.chmod(0o777 if path.is_dir() else 0o666)
        return copied

    def start(self, *words: str, **environment: str) -> subprocess.Popen[str]:
        """Start a command."""
        return subprocess.Popen(
            [sys.executable, *words], cwd=self.root, text=True, user=self.user,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1",
                 **environment},
        )  # fmt: skip

    def run(self, seed: int = 0, *words: str) -> subprocess.Popen[str]:
        """Start the command of a run."""
        return self.start(str(ROOT / "run.py"), *RUN, f"seed={seed}", *words)

    def sync(self, *words: str) -> subprocess.Popen[str]:
        """Start ``fairbench sync``."""
        return self.start("-m", "fairbench", "sync", *words)


@dataclass(frozen=True)
class Outcome:
    """What became of commands given at once: seconds, exit statuses and what they printed.

    The seconds are those on a clock, without those that a command waited for a free core.
    """

    seconds: list[float]
    statuses: list[int]
    printed: list[str]

    @classmethod
    def of(cls, commands: Iterable[subprocess.Popen[str]]) -> Outcome:
        """Wait for commands that were just started."""
        started = time.monotonic()

        def ended(command: subprocess.Popen[str]) -> tuple[float, int, str]:
            os.waitid(os.P_PID, command.pid, os.WEXITED | os.WNOWAIT)
            seconds = time.monotonic() - started - queued(command.pid)
            printed = command.communicate()[0]
            return seconds, command.returncode, printed

        commands = list(commands)
        with ThreadPoolExecutor(len(commands)) as pool:
            seconds, statuses, printed = zip(*pool.map(ended, commands), strict=True)
        return cls(list(seconds), list(statuses), list(printed))

    @property
    def said(self) -> str:
        """The line of the first command that tells of MLflow."""
        lines = "\n".join(self.printed[-1:]).splitlines()
        told = [line for line in lines if line.startswith(("warning: not", "not sync"))]
        told = told or [line[line.index("MLflow") :] for line in lines if "MLflow" in line]
        aside = [line for line in lines if "set aside" in line]
        return "; ".join([*aside, *told])


def queued(process: int) -> float:
    """Return how long the main thread of an ended process waited for a core."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[1]) / 1e9
