"""Shows the progress of a run or a sweep: a line on a terminal, and how each job ended."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console

from fairbench.cli.output import print_line

if TYPE_CHECKING:
    from rich.progress import Progress

    from fairbench.cli.summary import Outcome
    from fairbench.experiments.execute import Execution


console = Console(width=None if sys.stdout.isatty() else 100, soft_wrap=False)


T = TypeVar("T")


class SweepProgress:
    """Counts cells and jobs, and shows them where there is a terminal.

    Parameters
    ----------
    name : the name of a single run, shown instead of the counts of jobs.
    jobs : the number of jobs of a sweep.
    """

    def __init__(self, name: str = "", *, jobs: int = 0, shown: bool | None = None) -> None:
        self.name, self.jobs = name, jobs
        self.shown = sys.stderr.isatty() if shown is None else shown
        self.counts: Counter[str] = Counter()
        self.total = 0
        self._started = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._started

    def __enter__(self) -> SweepProgress:
        """Show the line."""
        self._display = _display(shown=self.shown)
        self._task = self._display.add_task(self.name, total=None)
        self._display.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Take the line away."""
        self._display.stop()

    def show_composing(self, jobs: list[T]) -> Iterator[T]:
        """Yield jobs, and show how many have been composed."""
        for number, job in enumerate(jobs):
            self._show(f"composing job {number + 1} of {len(jobs)}")
            yield job

    def add_planned(self, execution: Execution) -> None:
        """Add the cells of a planned sweep, or of a part of one."""
        self.total += execution.cells
        self.counts["cached"] += len(execution.stored)
        self._show()

    def cell(self, fresh: bool | None) -> None:
        """Count a cell: fitted, found in the store after all, or failed."""
        self.counts["failed cells" if fresh is None else "fitted" if fresh else "cached"] += 1
        self._show()

    def outcome(self, outcome: Outcome) -> None:
        """Count a job that ended, and say how."""
        if outcome.status == "planned":
            return
        self.counts[outcome.status] += 1
        if self.shown:
            self._display.console.print(outcome.line, markup=False, highlight=False)
        else:
            print_line(f"  {outcome.line}")
        self._show()

    @property
    def line(self) -> str:
        """The counts in words."""
        count = self.counts
        cells = (
            f"{count['fitted']} fitted, {count['cached']} cached, {count['failed cells']} failed"
        )
        jobs = f"{count['finished']} of {self.jobs}, {count['skipped']} skipped"
        return self.name or f"{cells}; jobs: {jobs}, {count['failed']} failed"

    def _show(self, text: str = "") -> None:
        completed = self.counts["fitted"] + self.counts["cached"] + self.counts["failed cells"]
        self._display.update(
            self._task, completed=completed, total=self.total or None, description=text or self.line
        )


def _display(*, shown: bool) -> Progress:
    """Return the progress bar of cells."""
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
