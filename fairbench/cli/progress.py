"""How far a run or a sweep has come: a line on a terminal, fed by files that the jobs leave."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fairbench.cli.outcome import Outcome

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PROGRESS = "progress.json"
SECONDS = 0.5  # between two looks at a sweep, and between two words of a job


class JobProgress:
    """What a job of a sweep tells whoever watches: its cells, those fitted, those in the store."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / PROGRESS
        self.total: int | None = None
        self.fitted = self.cached = 0
        self._write()

    def prepared(self, total: int) -> None:
        """Say how many cells the job has."""
        self.total = total
        self._write()

    def cell(self, fresh: bool) -> None:
        """Count a cell, as fitted or as found in the store."""
        self.fitted, self.cached = self.fitted + fresh, self.cached + (not fresh)
        if time.monotonic() - self._written >= SECONDS:
            self._write()

    def _write(self) -> None:
        # Not atomic: who reads half a file looks again.
        state = {"total": self.total, "fitted": self.fitted, "cached": self.cached}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(state))
        self._written = time.monotonic()


@dataclass(frozen=True)
class JobState:
    """What is known of a job: its status, and counts of its cells (None: not yet known)."""

    status: str = "waiting"  # waiting, running, or an outcome's status
    total: int | None = None
    fitted: int = 0
    cached: int = 0


@dataclass
class SweepWatch:
    """The jobs of a sweep, each read from its folder until it has an outcome."""

    folders: Sequence[Path]
    states: dict[Path, JobState] = field(default_factory=dict)

    def look(self) -> list[Outcome]:
        """Read what changed and return the outcomes that are new."""
        new = []
        for folder in self.folders:
            before = self.states.get(folder, JobState())
            if before.status not in ("waiting", "running"):
                continue
            outcome = Outcome.read(folder)
            self.states[folder] = _after(outcome, before) if outcome else _running(folder, before)
            new += [outcome] if outcome else []
        return new

    def cells(self) -> tuple[int, int]:
        """Return how many cells are done, and how many there are, jobs not begun taken as alike."""
        states = list(self.states.values())
        totals = [state.total for state in states if state.total is not None]
        ahead = [state for state in states if state.status in ("waiting", "running")]
        unknown = sum(state.total is None for state in ahead)
        mean = sum(totals) / len(totals) if totals else 0.0
        done = sum(state.fitted + state.cached for state in states)
        return done, sum(totals) + round(unknown * mean)

    def line(self) -> str:
        """Return the counts in words."""
        states = list(self.states.values())
        failed = [state for state in states if state.status == "failed"]
        lost = sum((state.total or 0) - state.fitted - state.cached for state in failed)
        jobs = {name: sum(s.status == name for s in states) for name in ("finished", "skipped")}
        return (
            f"{sum(s.fitted for s in states)} fitted, {sum(s.cached for s in states)} cached, "
            f"{lost} failed; jobs: {jobs['finished']} of {len(self.folders)}, "
            f"{jobs['skipped']} skipped, {len(failed)} failed"
        )


def _after(outcome: Outcome, before: JobState) -> JobState:
    """Return the last state of a job; a failed one keeps the counts it came to."""
    if outcome.status == "finished":
        cells = len(outcome.cells)
        return JobState("finished", cells, outcome.computed, cells - outcome.computed)
    if outcome.status == "failed":
        return JobState("failed", before.total, before.fitted, before.cached)
    return JobState(outcome.status)


def _running(folder: Path, before: JobState) -> JobState:
    try:
        return JobState("running", **json.loads((folder / PROGRESS).read_text()))
    except (OSError, ValueError):
        return before


@contextlib.contextmanager
def counter(name: str, total: int) -> Iterator[Callable[[bool], None]]:
    """Show the cells of one run, where there is a terminal; yield what to call after each."""
    with _display(shown=sys.stderr.isatty()) as progress:
        task = progress.add_task(name, total=total)
        yield lambda fresh: progress.advance(task)


@contextlib.contextmanager
def watched(folders: Sequence[Path], *, shown: bool | None = None) -> Iterator[None]:
    """Show how the jobs in these folders come on, where there is a terminal."""
    shown = sys.stderr.isatty() if shown is None else shown
    if not shown:
        yield
        return
    watch, stop = SweepWatch(folders), threading.Event()
    with _display(shown=True) as progress:
        task = progress.add_task("", total=None)
        thread = threading.Thread(target=_keep_looking, args=(watch, progress, task, stop))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            _show(watch, progress, task)


def _keep_looking(
    watch: SweepWatch, progress: Progress, task: TaskID, stop: threading.Event
) -> None:
    while not stop.wait(SECONDS):
        _show(watch, progress, task)


def _show(watch: SweepWatch, progress: Progress, task: TaskID) -> None:
    for outcome in watch.look():
        progress.console.print(outcome.line, markup=False, highlight=False)
    done, total = watch.cells()
    progress.update(task, completed=done, total=total or None, description=watch.line())


def _display(*, shown: bool) -> Progress:
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        MofNCompleteColumn(),
        TextColumn("cells"),
        TimeRemainingColumn(),
        TextColumn("left; {task.description}"),
        console=Console(stderr=True),
        transient=True,
        disable=not shown,
        redirect_stdout=sys.stdout.isatty(),
        # The time left is judged by the last five minutes: cells may take one each.
        speed_estimate_period=300,
    )
