"""Carries out planned runs: a missing cell is computed once, even if several runs share it.

A `Plan` is a run that was checked: its configuration, and the ids of its cells. `Execution` takes
the union of the missing cells of all plans, hands them to an executor (see `executors`), and has
each run evaluated as soon as its own cells are there. A task, one cell or one evaluation, names its
run by its configuration, so that it is small enough for any worker; the worker prepares the run
itself. `carry_out` does all of this for one run.
"""

from __future__ import annotations

import secrets
import time
import traceback
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from omegaconf import DictConfig

from fairbench.core.errors import UserError, refused
from fairbench.core.packages import missing_package
from fairbench.core.safe_open import remove
from fairbench.experiments import pipeline
from fairbench.experiments.configuration import Config, plain
from fairbench.experiments.pipeline import ensure
from fairbench.experiments.study import Cell
from fairbench.results.cells import BusyCellError, Store
from fairbench.results.garbage import note_begun

KILLED = "its process was killed (by hand, or out of memory or time): finished cells are kept"
_PREPARED = 16  # runs that a process keeps prepared


def too_long(minutes: float, option: str = "timeout_min") -> str:
    """Return why a task failed that took longer than it may, by an option."""
    unit = "minute" if minutes == 1 else "minutes"
    return f"took longer than {minutes:g} {unit} ({option}): finished cells are kept"


@dataclass(frozen=True)
class Plan:
    """A run that was checked and not yet carried out.

    Attributes
    ----------
    config : the resolved configuration.
    cells : the ids of its cells, each once.
    finished, drawn : whether its folder, and its figures, exist, made from these very cells.
    cost_key : a key that runs share whose cells cost about the same.
    rows : the number of rows of each cell.
    noted : whether the record of a finished run already has its purposes.
    key : the key by which a worker finds the prepared run; no two plans share it.
    """

    config: Mapping[str, Any]
    id: str
    name: str
    cells: tuple[str, ...]
    finished: bool
    drawn: bool
    cost_key: str = ""
    rows: int = 0
    noted: bool = True
    key: str = field(default_factory=lambda: secrets.token_hex(8))

    @property
    def store(self) -> Store:
        """Where its cells are kept."""
        return Store(Path(str(self.config["results"])))


@dataclass(frozen=True)
class WorkUnit:
    """A task of a worker: compute one cell of a run or, if `cell` is None, evaluate the run.

    `wait` says to wait for a cell that another process is computing, instead of leaving it.
    """

    run: Plan
    cell: str | None = None
    wait: bool = False
    draw: pipeline.DrawFigures | None = None


@dataclass(frozen=True)
class Done:
    """The result of a task: how many cells it fitted, or why it failed.

    `busy` means that another process is computing the cell; `trace` is the traceback of an error
    that the user has no part in.
    """

    task: WorkUnit
    computed: int = 0
    seconds: float = 0.0
    busy: bool = False
    error: str = ""
    trace: str = ""


class Executor(Protocol):
    """Something that carries out tasks, in this process or elsewhere, in any order."""

    def run(self, tasks: Iterable[WorkUnit]) -> Iterator[Done]:
        """Yield the result of each task as it ends."""


@dataclass(frozen=True)
class Here:
    """The executor that is this process."""

    def run(self, tasks: Iterable[WorkUnit]) -> Iterator[Done]:
        """Do one task after the other."""
        return map(work, tasks)


@dataclass(frozen=True)
class RunEnd:
    """The end of a run: the cells fitted for it and the seconds they took, or why it failed."""

    run: Plan
    computed: int
    seconds: float
    error: str = ""
    trace: str = ""

    def describe(self, seconds: float) -> str:
        """Return a line for the user on the work done in some seconds."""
        cells = len(self.run.cells)
        if self.computed == 0:
            return f"nothing to fit: all {cells} cells were in the store ({seconds:.1f} s)"
        return f"fitted {self.computed} of {cells} cells in {seconds:.1f} s"

    @property
    def prepared(self) -> pipeline.PlannedRun:
        """The run itself: its data set, its cells, and the folder that was written."""
        return prepared(self.run)

    def checked(self) -> RunEnd:
        """Return this end, unless the run failed.

        Raises
        ------
        UserError : it could not be carried out as it was asked for.
        RuntimeError : a component failed; the message holds its traceback.
        """
        if self.trace:
            raise RuntimeError(self.trace)
        if self.error:
            raise UserError(self.error)
        return self


def plan(cfg: DictConfig | Config) -> Plan:
    """Prepare a run and return what is needed to carry it out.

    Raises
    ------
    UserError : unknown names, bad values, missing data.
    IncompatibleError : a combination that cannot work.
    """
    config = plain(cfg)
    run = pipeline.prepare(config)
    cells = tuple(dict.fromkeys(cell.id for cell in run.cells))
    finished = bool(config["resume"]) and run.finished
    noted = not finished or run.writer.purpose(run.purpose) == run.folder.purpose
    drawn = run.writer.has_figures()
    cost, rows = run.study.cost_key, run.cells[0].fold.rows
    planned = Plan(config, run.id, run.name, cells, finished, drawn, cost, rows, noted)
    _keep(planned.key, run)
    return planned


@dataclass
class Execution:
    """Some runs under way, on one executor.

    Attributes
    ----------
    draw : draws the figures of a run; None draws none.
    on_cell : called after each cell with whether it was fitted, and with None if it failed.
    on_end : called with the end of each run.
    stored : the ids of the cells that were in the store to begin with.
    """

    runs: Sequence[Plan]
    executor: Executor
    draw: pipeline.DrawFigures | None = None
    on_cell: Callable[[bool | None], None] = lambda fresh: None
    on_end: Callable[[RunEnd], None] = lambda end: None

    def __post_init__(self) -> None:
        """Find which cells are missing, each listed with the first run that needs it."""
        self.distinct = list({run.id: run for run in self.runs}.values())
        self.stored: set[str] = set()
        self.owner: dict[str, Plan] = {}
        self.needed: dict[str, set[str]] = {}  # run id -> its missing cells
        self.users: dict[str, list[Plan]] = {}  # missing cell -> the runs that need it
        self.errors: dict[str, Done] = {}  # run id -> what failed for it
        self.ends: dict[str, RunEnd] = {}
        self.computed = dict.fromkeys((run.id for run in self.distinct), 0)
        self.seconds = dict.fromkeys(self.computed, 0.0)
        for run in self.distinct:
            self._list_missing(run)

    @property
    def cells(self) -> int:
        """The number of distinct cells of the runs."""
        return len(self.stored) + len(self.owner)

    def _list_missing(self, run: Plan) -> None:
        """Sort a run's cells into stored and missing ones."""
        missing = set()
        for cell in () if run.finished else run.cells:
            if cell not in self.owner and cell not in self.stored:
                if run.config["resume"] and run.store.has(cell):
                    self.stored.add(cell)
                else:
                    self.owner[cell] = run
            if cell in self.owner:
                missing.add(cell)
                self.users.setdefault(cell, []).append(run)
        self.stored.update(set(run.cells) - missing)
        self.needed[run.id] = missing

    def carry_out(self) -> list[RunEnd]:
        """Compute what is missing, evaluate every run, and return how each ended."""
        self.evaluations: deque[WorkUnit] = deque()
        self.missing = deque(WorkUnit(run, cell) for cell, run in self.owner.items())
        later: list[WorkUnit] = []
        notes = self._note_begun()
        for run in self.distinct:
            self._evaluate_if_ready(run)
        while self.evaluations or self.missing:
            for done in self.executor.run(self._waiting()):
                if done.busy:
                    later.append(replace(done.task, wait=True))
                else:
                    self._settle(done)
            if not (self.evaluations or self.missing):
                self.missing.extend(later)
                later = []
        if not any(end.error for end in self.ends.values()):
            for note in notes:
                remove(note)
        return [replace(self.ends[run.id], run=run) for run in self.runs]

    def _note_begun(self) -> list[Path]:
        """Protect all cells from garbage collection until the runs have ended; return the notes."""
        by_store: dict[Store, list[Plan]] = {}
        for run in self.distinct:
            by_store.setdefault(run.store, []).append(run)
        return [
            note_begun(store, [run.id for run in runs], chain(*(run.cells for run in runs)))
            for store, runs in by_store.items()
            if not all(run.finished for run in runs)
        ]

    def _waiting(self) -> Iterator[WorkUnit]:
        """Yield tasks, evaluations first; these become ready while cells are computed."""
        while self.evaluations or self.missing:
            yield (self.evaluations or self.missing).popleft()

    def _settle(self, done: Done) -> None:
        """Record the result of a task, of a cell or of an evaluation."""
        if done.task.cell is None:
            self._end(done.task.run, done)
        else:
            self._settle_cell(done.task.run, done.task.cell, done)

    def _settle_cell(self, run: Plan, cell: str, done: Done) -> None:
        """Record the result of a cell, and evaluate the runs that waited for it alone."""
        self.computed[run.id] += done.computed
        self.seconds[run.id] += done.seconds
        self.on_cell(None if done.error else bool(done.computed))
        for user in self.users[cell]:
            self.needed[user.id].discard(cell)
            if done.error:
                self.errors.setdefault(user.id, done)
            self._evaluate_if_ready(user)

    def _evaluate_if_ready(self, run: Plan) -> None:
        """Queue the evaluation of a run if its cells exist, or end it if one of them failed."""
        if self.needed[run.id]:
            return
        if run.id in self.errors:
            self._end(run, self.errors[run.id])
        elif run.finished and run.noted and (run.drawn or not self.draw):
            self._end(run, Done(WorkUnit(run)))
        else:
            self.evaluations.append(WorkUnit(run, draw=self.draw))

    def _end(self, run: Plan, done: Done) -> None:
        """Record how a run ended, and report it."""
        failed_cell = done.task.cell is not None
        computed = self.computed[run.id] + (0 if failed_cell else done.computed)
        seconds = self.seconds[run.id] + (0.0 if failed_cell else done.seconds)
        self.ends[run.id] = RunEnd(run, computed, seconds, done.error, done.trace)
        self.on_end(self.ends[run.id])


def carry_out(
    cfg: DictConfig | Config,
    *,
    executor: Executor | None = None,
    draw: pipeline.DrawFigures | None = None,
) -> RunEnd:
    """Compute what is missing of one run, evaluate and store it, and return how it ended.

    Parameters
    ----------
    executor : the executor of the tasks; by default this process.
    draw : draws the figures of the run; without it, no figures are drawn.

    Raises
    ------
    UserError : unknown names, bad values, missing data, or what cannot be computed.
    IncompatibleError : a combination that cannot work.
    RuntimeError : a component failed; the message holds its traceback.
    """
    (end,) = Execution([plan(cfg)], executor or Here(), draw).carry_out()
    return end.checked()


def work(task: WorkUnit) -> Done:
    """Do a task in this process; an error is returned, so that the sweep goes on."""
    started = time.perf_counter()
    try:
        computed = _work(task)
    except BusyCellError:
        return Done(task, busy=True)
    except UserError as error:
        return Done(task, error=str(error))
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and (reason := missing_package(error)):
            return Done(task, error=reason)
        if isinstance(error, OSError) and error.strerror:  # a disk that is full or not to be had
            return Done(task, error=refused(error))
        trace = traceback.format_exc()
        return Done(task, error=f"{type(error).__name__}: {error}".splitlines()[0], trace=trace)
    return Done(task, computed, time.perf_counter() - started)


def _work(task: WorkUnit) -> int:
    """Compute a cell, or evaluate a run; return the number of cells that were computed."""
    run, cells = _with_cells(task.run)
    again = not task.run.config["resume"]
    if task.cell is None:
        return pipeline.finish(run, draw=task.draw, again=again)
    if task.cell not in cells:
        raise UserError(
            f"the code or the data of {run.name} changed after its cells were listed: run the same "
            "command again"
        )
    return int(ensure(cells[task.cell], run.store, recompute=again, wait=task.wait))


_runs: OrderedDict[str, tuple[pipeline.PlannedRun, dict[str, Cell]]] = OrderedDict()


def prepared(planned: Plan) -> pipeline.PlannedRun:
    """Return a planned run, prepared; a process keeps the last few."""
    return _with_cells(planned)[0]


def _with_cells(planned: Plan) -> tuple[pipeline.PlannedRun, dict[str, Cell]]:
    """Return a run, and its cells by their ids."""
    if planned.key not in _runs:
        run = pipeline.prepare(planned.config)
        _keep(planned.key, run)
    _runs.move_to_end(planned.key)
    return _runs[planned.key]


def _keep(key: str, run: pipeline.PlannedRun) -> None:
    _runs[key] = run, {cell.id: cell for cell in run.cells}
    while len(_runs) > _PREPARED:
        _runs.popitem(last=False)
