"""Carries out planned runs: a missing cell is computed once, even if several runs share it.

A `Plan` is a run that was checked: its configuration, and the ids of its cells. `Execution` takes
the union of the missing cells of all plans, hands them to an executor (see `executors`), and has
each run evaluated as soon as its own cells are there. A `WorkUnit` is one cell or one evaluation;
it holds the plan of its run alone, and so is small enough to be sent to any worker, which prepares
the run itself. `carry_out` does all of this for one run.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from omegaconf import DictConfig

from fairbench.core.errors import UserError
from fairbench.core.failures import failure
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
    """Return the error of a work unit that took longer than an option allows."""
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
    """What a worker does: compute one cell of a run or, if `cell` is None, evaluate the run.

    `wait` says to wait for a cell that another process is computing, instead of skipping it.
    """

    plan: Plan
    cell: str | None = None
    wait: bool = False
    draw: pipeline.DrawFigures | None = None


@dataclass(frozen=True)
class UnitResult:
    """The result of a work unit: how many cells it fitted, or why it failed.

    `busy` means that another process is computing the cell; `trace` is the traceback of an error
    that is not a `UserError`.
    """

    unit: WorkUnit
    computed: int = 0
    seconds: float = 0.0
    busy: bool = False
    error: str = ""
    trace: str = ""


class Executor(Protocol):
    """Carries out work units, in this process or elsewhere, in any order."""

    def run(self, units: Iterable[WorkUnit]) -> Iterator[UnitResult]:
        """Yield the result of each unit as it ends."""


@dataclass(frozen=True)
class InProcessExecutor:
    """Carries out work units in this process."""

    def run(self, units: Iterable[WorkUnit]) -> Iterator[UnitResult]:
        """Carry out one unit after the other."""
        return map(work, units)


@dataclass(frozen=True)
class RunEnd:
    """How a run ended: the cells fitted for it and the seconds they took, or why it failed."""

    plan: Plan
    computed: int
    seconds: float
    error: str = ""
    trace: str = ""

    def describe(self, seconds: float) -> str:
        """Return a line for the user on the work that was done in `seconds`."""
        cells = len(self.plan.cells)
        if self.computed == 0:
            return f"nothing to fit: all {cells} cells were in the store ({seconds:.1f} s)"
        return f"fitted {self.computed} of {cells} cells in {seconds:.1f} s"

    @property
    def prepared(self) -> pipeline.PlannedRun:
        """The run with its data set, its cells, and the folder that was written."""
        return prepared(self.plan)

    def checked(self) -> RunEnd:
        """Return this object, or raise the error if the run failed.

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


def plan_run(cfg: DictConfig | Config) -> Plan:
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
    plan = Plan(
        config=config,
        id=run.id,
        name=run.name,
        cells=cells,
        finished=finished,
        drawn=drawn,
        cost_key=run.study.cost_key,
        rows=run.cells[0].fold.rows,
        noted=noted,
    )
    _keep_prepared(plan.key, run)
    return plan


@dataclass
class Execution:
    """Several runs that are carried out together, on one executor.

    Attributes
    ----------
    draw : draws the figures of a run; None draws none.
    on_cell : called after each cell with whether it was fitted, and with None if it failed.
    on_end : called with the end of each run.
    stored : the ids of the cells that were in the store to begin with.
    """

    plans: Sequence[Plan]
    executor: Executor
    draw: pipeline.DrawFigures | None = None
    on_cell: Callable[[bool | None], None] = lambda fresh: None
    on_end: Callable[[RunEnd], None] = lambda end: None

    def __post_init__(self) -> None:
        """Find which cells are missing, each listed with the first plan that needs it."""
        self.distinct = list({plan.id: plan for plan in self.plans}.values())
        self.stored: set[str] = set()
        self.owner: dict[str, Plan] = {}
        self.needed: dict[str, set[str]] = {}  # run id -> its missing cells
        self.users: dict[str, list[Plan]] = {}  # missing cell -> the plans that need it
        self.errors: dict[str, UnitResult] = {}  # run id -> what failed for it
        self.ends: dict[str, RunEnd] = {}
        self.computed = dict.fromkeys((plan.id for plan in self.distinct), 0)
        self.seconds = dict.fromkeys(self.computed, 0.0)
        for plan in self.distinct:
            self._list_missing(plan)

    @property
    def cells(self) -> int:
        """The number of distinct cells of the runs."""
        return len(self.stored) + len(self.owner)

    def _list_missing(self, plan: Plan) -> None:
        """Sort a run's cells into stored and missing ones."""
        missing = set()
        for cell in () if plan.finished else plan.cells:
            if cell not in self.owner and cell not in self.stored:
                if plan.config["resume"] and plan.store.has(cell):
                    self.stored.add(cell)
                else:
                    self.owner[cell] = plan
            if cell in self.owner:
                missing.add(cell)
                self.users.setdefault(cell, []).append(plan)
        self.stored.update(set(plan.cells) - missing)
        self.needed[plan.id] = missing

    def carry_out(self) -> list[RunEnd]:
        """Compute what is missing, evaluate every run, and return how each ended."""
        self.evaluations: deque[WorkUnit] = deque()
        self.missing = deque(WorkUnit(plan, cell) for cell, plan in self.owner.items())
        busy_units: list[WorkUnit] = []
        notes = self._note_begun()
        for plan in self.distinct:
            self._evaluate_if_ready(plan)
        while self.evaluations or self.missing:
            for result in self.executor.run(self._take_waiting()):
                if result.busy:
                    busy_units.append(replace(result.unit, wait=True))
                else:
                    self._settle(result)
            if not (self.evaluations or self.missing):
                self.missing.extend(busy_units)
                busy_units = []
        if not any(end.error for end in self.ends.values()):
            for note in notes:
                remove(note)
        return [replace(self.ends[plan.id], plan=plan) for plan in self.plans]

    def _note_begun(self) -> list[Path]:
        """Protect all cells from garbage collection until the runs have ended; return the notes."""
        by_store: dict[Store, list[Plan]] = {}
        for plan in self.distinct:
            by_store.setdefault(plan.store, []).append(plan)
        return [
            note_begun(store, [plan.id for plan in plans], chain(*(plan.cells for plan in plans)))
            for store, plans in by_store.items()
            if not all(plan.finished for plan in plans)
        ]

    def _take_waiting(self) -> Iterator[WorkUnit]:
        """Yield units, evaluations first; these become ready while cells are computed."""
        while self.evaluations or self.missing:
            yield (self.evaluations or self.missing).popleft()

    def _settle(self, result: UnitResult) -> None:
        """Record the result of a unit, of a cell or of an evaluation."""
        if result.unit.cell is None:
            self._end(result.unit.plan, result)
        else:
            self._settle_cell(result.unit.plan, result.unit.cell, result)

    def _settle_cell(self, plan: Plan, cell: str, result: UnitResult) -> None:
        """Record the result of a cell, and evaluate the runs whose last missing cell it was."""
        self.computed[plan.id] += result.computed
        self.seconds[plan.id] += result.seconds
        self.on_cell(None if result.error else bool(result.computed))
        for user in self.users[cell]:
            self.needed[user.id].discard(cell)
            if result.error:
                self.errors.setdefault(user.id, result)
            self._evaluate_if_ready(user)

    def _evaluate_if_ready(self, plan: Plan) -> None:
        """Queue the evaluation of a run if its cells exist, or end it if one of them failed."""
        if self.needed[plan.id]:
            return
        if plan.id in self.errors:
            self._end(plan, self.errors[plan.id])
        elif plan.finished and plan.noted and (plan.drawn or not self.draw):
            self._end(plan, UnitResult(WorkUnit(plan)))
        else:
            self.evaluations.append(WorkUnit(plan, draw=self.draw))

    def _end(self, plan: Plan, result: UnitResult) -> None:
        """Record how a run ended, and report it."""
        failed_cell = result.unit.cell is not None
        computed = self.computed[plan.id] + (0 if failed_cell else result.computed)
        seconds = self.seconds[plan.id] + (0.0 if failed_cell else result.seconds)
        self.ends[plan.id] = RunEnd(plan, computed, seconds, result.error, result.trace)
        self.on_end(self.ends[plan.id])


def carry_out(
    cfg: DictConfig | Config,
    *,
    executor: Executor | None = None,
    draw: pipeline.DrawFigures | None = None,
) -> RunEnd:
    """Compute what is missing of one run, evaluate and store it, and return how it ended.

    Parameters
    ----------
    executor : carries out the work units; by default this process does.
    draw : draws the figures of the run; without it, no figures are drawn.

    Raises
    ------
    UserError : unknown names, bad values, missing data, or what cannot be computed.
    IncompatibleError : a combination that cannot work.
    RuntimeError : a component failed; the message holds its traceback.
    """
    (end,) = Execution([plan_run(cfg)], executor or InProcessExecutor(), draw).carry_out()
    return end.checked()


def work(unit: WorkUnit) -> UnitResult:
    """Carry out a work unit in this process; errors are returned, so that the sweep goes on."""
    started = time.perf_counter()
    try:
        computed = _work(unit)
    except BusyCellError:
        return UnitResult(unit, busy=True)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit, too: a component does not end the sweep
        reason, trace = failure(error)
        return UnitResult(unit, error=reason, trace=trace)
    return UnitResult(unit, computed, time.perf_counter() - started)


def _work(unit: WorkUnit) -> int:
    """Compute a cell, or evaluate a run; return the number of cells that were computed."""
    run, cells = _run_and_cells(unit.plan)
    again = not unit.plan.config["resume"]
    if unit.cell is None:
        return pipeline.finish(run, draw=unit.draw, again=again)
    if unit.cell not in cells:
        raise UserError(
            f"the code or the data of {run.name} changed after its cells were listed: run the same "
            "command again"
        )
    return int(ensure(cells[unit.cell], run.store, recompute=again, wait=unit.wait))


_runs: OrderedDict[str, tuple[pipeline.PlannedRun, dict[str, Cell]]] = OrderedDict()


def prepared(plan: Plan) -> pipeline.PlannedRun:
    """Return the prepared run of a plan; a process keeps the last few."""
    return _run_and_cells(plan)[0]


def _run_and_cells(plan: Plan) -> tuple[pipeline.PlannedRun, dict[str, Cell]]:
    """Return the prepared run of a plan, and its cells by their ids."""
    if plan.key not in _runs:
        run = pipeline.prepare(plan.config)
        _keep_prepared(plan.key, run)
    _runs.move_to_end(plan.key)
    return _runs[plan.key]


def _keep_prepared(key: str, run: pipeline.PlannedRun) -> None:
    """Keep a prepared run in this process, and drop the one that was used longest ago."""
    _runs[key] = run, {cell.id: cell for cell in run.cells}
    while len(_runs) > _PREPARED:
        _runs.popitem(last=False)
