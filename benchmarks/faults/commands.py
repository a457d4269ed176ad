"""Commands that are given in folders with results: as processes, in this process, in forks."""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import os
import shutil
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Self, TypeVar
from unicodedata import category

from benchmarks.measure import ROOT
from fairbench.cli.main import main as fairbench

Result = TypeVar("Result")
RUN = ("dataset=simulated", "dataset.n_samples=300", "split.repeats=2", "method=baseline",
       "learner=logistic_regression")  # fmt: skip
# Hostile texts by their kind, and labels of groups by what is odd about them.
LISTED = json.loads(Path(__file__).with_name("hostile.json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Place:
    """A folder with results of some runs, in which commands are given."""

    root: Path

    @property
    def results(self) -> Path:
        """The results folder."""
        return self.root / "results"

    @property
    def runs(self) -> list[str]:
        """The ids of its runs."""
        return sorted(path.name for path in (self.results / "runs").glob("*"))

    @contextlib.contextmanager
    def copied(self, name: str) -> Iterator[Self]:
        """Yield a copy beside it, which is removed afterwards."""
        copy = replace(self, root=Path(shutil.copytree(self.root, self.root.with_name(name))))
        yield copy
        shutil.rmtree(copy.root)


def queued(process: int) -> float:
    """Return how long the main thread of an ended process waited for a core."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[1]) / 1e9


@cache
def warm() -> Any:
    """Return the module of the tests that forks; another package may be called ``tests``."""
    outcome = spec_from_file_location("warm", ROOT / "tests" / "warm.py")
    assert outcome and outcome.loader
    module = module_from_spec(outcome)
    outcome.loader.exec_module(module)
    return module


def carried_out(words: Sequence[str], folder: Path | None = None) -> tuple[int, str]:
    """Carry out a command in this process, in a folder or here; return its status and what it said.

    What it said is all that it printed, and all that it complained of.
    """
    printed = io.StringIO()
    with (
        contextlib.chdir(folder or Path()),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        status = fairbench(words)
    return status, printed.getvalue()


def in_fork(call: Callable[[], object], said: Path) -> int:
    """Begin a call in a fork, which ends with what it returns or `FAILED`; return the process.

    Parameters
    ----------
    said : the file that gets all that is printed, after what it holds.
    """
    if process := os.fork():
        return process
    status = FAILED
    try:
        handle = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for descriptor, source in ((0, os.open(os.devnull, os.O_RDONLY)), (1, handle), (2, handle)):
            os.dup2(source, descriptor)
        sys.stdout, sys.stderr = (os.fdopen(n, "w", buffering=1, closefd=False) for n in (1, 2))
        status = int(call() or 0)  # type: ignore[call-overload]
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
        os._exit(status)


FAILED = 70
Total = Counter[str]


def ended_well(title: str, total: Total) -> bool:
    """Print what was counted, and say whether nothing was wrong."""
    print(f"{title}: {dict(total)}")
    return not total["wrong"]


def obeyed(said: str) -> set[str]:
    """Return the signs of a printed text that a terminal obeys."""
    return {sign for sign in said if category(sign) in _OBEYED and sign != "\n"}


_OBEYED = ("Cc", "Cf", "Cs", "Zl", "Zp")


class TooLongError(BaseException):
    """A command that waits, or computes for too long; nothing catches it as an error."""


def too_long(*_: object) -> None:
    """End a command that waits."""
    raise TooLongError


def in_forks(call: Callable[..., Result]) -> list[Result]:
    """Return what a call returns in each fork; it takes the fork's number, and how many there are.

    Parameters
    ----------
    call : called with ``worker`` and, by name, ``workers``.
    """
    workers = min(os.cpu_count() or 1, 8)
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        return pool.map(partial(call, workers=workers), range(workers))
