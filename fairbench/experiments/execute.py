"""Carries out planned runs: a missing cell is computed once, even if several runs share it.

A `Plan` is a run that was checked: its configuration, and the ids of its cells. `Execution` takes
the union of the missing cells of all plans, hands them to an `Executor`, and has each run
evaluated as soon as its own cells are there, or together with other small runs that end within
seconds. A `WorkUnit` is one cell or the evaluation of some runs; it holds their plans alone, and so
is small enough to be sent to any worker, which prepares the runs itself. `carry_out` does all of
this for one run. Last are the executors: this process, workers of this machine, and submitit.
"""

from __future__ import annotations

import os
import pickle
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from itertools import chain
from multiprocessing import connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from fairbench.core.errors import UserError, refused
from fairbench.core.files import is_folder, names_in, naming, remove
from fairbench.core.processes import Worker, call_with, failure, using
from fairbench.core.text import said
from fairbench.experiments import pipeline
from fairbench.experiments.configuration import Config, plain
from fairbench.results.catalogue import Catalogue
from fairbench.results.runs import BusyCellError, Store
from fairbench.results.upkeep import note_begun

if TYPE_CHECKING:
    from omegaconf import DictConfig

KILLED = "its process was killed (by hand, or out of memory or time): finished cells are kept"
_PREPARED = 32  # runs that a process keeps prepared
# Small runs are evaluated together: so many, of so many rows of cells, that wait for so many s.
_RUNS, _ROWS, _WAIT_S = 16, 300_000, 2.0


def _too_long(minutes: float, option: str = "timeout_min") -> str:
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
    `others` are runs that are evaluated together with the first.
    """

    plan: Plan
    cell: str | None = None
    wait: bool = False
    draw: pipeline.DrawFigures | None = None
    others: tuple[Plan, ...] = ()


@dataclass(frozen=True)
class UnitResult:
    """How a work unit, or a whole run, ended: how many cells were fitted for it, or why it failed.

    The unit of a run is its evaluation. `busy` means that another process is computing the cell;
    `trace` is the traceback of an error that is not a `UserError`.
    """

    unit: WorkUnit
    computed: int = 0
    seconds: float = 0.0
    busy: bool = False
    error: str = ""
    trace: str = ""

    @property
    def plan(self) -> Plan:
        """The plan of its run."""
        return self.unit.plan

    def plus(self, other: UnitResult) -> UnitResult:
        """Return this with what another unit of the run did; the first error stays."""
        failed = self if self.error else other
        computed, seconds = self.computed + other.computed, self.seconds + other.seconds
        return UnitResult(self.unit, computed, seconds, error=failed.error, trace=failed.trace)

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

    def checked(self) -> UnitResult:
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


# Carries out work units, in this process or elsewhere, in any order; yields each result as it ends.
Executor: TypeAlias = "Callable[[Iterable[WorkUnit]], Iterator[UnitResult]]"


def in_process(units: Iterable[WorkUnit]) -> Iterator[UnitResult]:
    """Carry out one unit after the other in this process."""
    return map(_work, units)


def plan_run(cfg: DictConfig | Config) -> Plan:
    """Prepare a run and return what is needed to carry it out.

    Raises
    ------
    UserError : unknown names, bad values, missing data.
    IncompatibleError : a combination that cannot work.
    """
    config = plain(cfg)
    run = pipeline.prepare(config)
    finished = bool(config["resume"]) and run.finished
    noted = not finished or run.writer.highest_purpose(run.purpose) == run.folder.purpose
    # Those of a fold follow one another: they share its features, encoded and binned.
    by_fold = sorted(run.cell_of_id.values(), key=lambda cell: cell.repeat_and_fold)
    plan = Plan(
        config=config,
        id=run.id,
        name=run.name,
        cells=tuple(cell.id for cell in by_fold),
        finished=finished,
        drawn=is_folder(run.folder.figures),
        cost_key=run.study.cost_key,
        rows=run.cells[0].fold.rows,
        noted=noted,
    )
    prepared(plan, run)
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
    on_end: Callable[[UnitResult], None] = lambda end: None

    def __post_init__(self) -> None:
        """Find which cells are missing, each listed with the plans that need it, in their order."""
        self.distinct = list({plan.id: plan for plan in self.plans}.values())
        self.stored: set[str] = set()
        self.needed: dict[str, set[str]] = {}  # run id -> its missing cells
        self.users: dict[str, list[Plan]] = {}  # missing cell -> the plans that need it
        self.ends = {plan.id: UnitResult(WorkUnit(plan)) for plan in self.distinct}
        for plan in self.distinct:
            missing = self.needed[plan.id] = set()
            for cell in () if plan.finished else plan.cells:
                if cell not in self.users and cell not in self.stored:
                    if plan.config["resume"] and plan.store.has(cell):
                        self.stored.add(cell)
                    else:
                        self.users[cell] = []
                if cell in self.users:
                    missing.add(cell)
                    self.users[cell].append(plan)
            self.stored.update({*plan.cells} - missing)

    @property
    def cells(self) -> int:
        """The number of distinct cells of the runs."""
        return len(self.stored) + len(self.users)

    def carry_out(self) -> list[UnitResult]:
        """Compute what is missing, evaluate every run, and return how each ended."""
        self.evaluations: deque[WorkUnit] = deque()
        self.ready: list[Plan] = []  # to be evaluated, as soon as there are enough
        self.ready_since = 0.0
        self.missing = deque(WorkUnit(users[0], cell) for cell, users in self.users.items())
        busy_units: list[WorkUnit] = []
        notes = self._note_begun()
        for plan in self.distinct:
            self._evaluate_if_ready(plan)
        while self.evaluations or self.missing or self.ready:
            for result in self.executor(self._take_waiting()):
                if result.busy:
                    busy_units.append(replace(result.unit, wait=True))
                else:
                    self._settle(result)
            if not (self.evaluations or self.missing or self.ready):
                self.missing.extend(busy_units)
                busy_units = []
        if not any(end.error for end in self.ends.values()):
            for note in notes:
                remove(note)
        return [replace(self.ends[plan.id], unit=WorkUnit(plan)) for plan in self.plans]

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
        while self.evaluations or self.missing or self.ready:
            waited = time.monotonic() - self.ready_since
            if self.ready and (not self.missing or waited > _WAIT_S):
                self._evaluate_ready()
            yield (self.evaluations or self.missing).popleft()

    def _evaluate_ready(self) -> None:
        """Queue the evaluation of the runs that are ready, together."""
        first, *others = self.ready
        self.evaluations.append(WorkUnit(first, draw=self.draw, others=tuple(others)))
        self.ready = []

    def _settle(self, result: UnitResult) -> None:
        """Record the result of a unit; of a cell, evaluate the runs whose last missing one it was.

        A cell that failed fails all that need it; what was fitted counts for the first of them.
        Runs that were evaluated together took an equal part of the seconds each.
        """
        plan, cell = result.plan, result.unit.cell
        together = (plan, *result.unit.others)
        result = replace(result, seconds=result.seconds / len(together))
        if result.error and result.unit.others:  # one of them failed: each by itself says which
            self.evaluations.extend(WorkUnit(one, draw=self.draw) for one in together)
            return
        users = [plan] if cell is None else self.users[cell]
        for user in users if result.error else [plan]:
            self.ends[user.id] = self.ends[user.id].plus(result)
        if cell is None:
            for other in result.unit.others:
                self.ends[other.id] = self.ends[other.id].plus(replace(result, computed=0))
            for ended in together:
                self.on_end(self.ends[ended.id])
            return
        self.on_cell(None if result.error else bool(result.computed))
        for user in users:
            self.needed[user.id].discard(cell)
            self._evaluate_if_ready(user)

    def _evaluate_if_ready(self, plan: Plan) -> None:
        """Have a run evaluated if its cells exist, or end it if one of them failed."""
        if self.needed[plan.id]:
            return
        done = plan.finished and plan.noted and (plan.drawn or not self.draw)
        if done or self.ends[plan.id].error:
            self.on_end(self.ends[plan.id])
            return
        self.ready_since = self.ready_since if self.ready else time.monotonic()
        self.ready.append(plan)
        rows = sum(len(one.cells) * one.rows for one in self.ready)
        if rows > _ROWS or len(self.ready) == _RUNS:
            self._evaluate_ready()


def carry_out(
    cfg: DictConfig | Config,
    *,
    executor: Executor | None = None,
    draw: pipeline.DrawFigures | None = None,
) -> UnitResult:
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
    (end,) = Execution([plan_run(cfg)], executor or in_process, draw).carry_out()
    return end.checked()


def _work(unit: WorkUnit) -> UnitResult:
    """Carry out a work unit in this process; errors are returned, so that the sweep goes on."""
    started = time.perf_counter()
    try:
        run, again = prepared(unit.plan), not unit.plan.config["resume"]
        if unit.cell is None:
            runs = [run, *map(prepared, unit.others)]
            computed = pipeline.finish(runs, draw=unit.draw, again=again)
        elif cell := run.cell_of_id.get(unit.cell):
            computed = int(pipeline.ensure(cell, run.store, recompute=again, wait=unit.wait))
        else:
            raise UserError(said("experiments", "changed_meanwhile", name=run.name))
    except BusyCellError:
        return UnitResult(unit, busy=True)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit, too: a component does not end the sweep
        reason, trace = failure(error)
        return UnitResult(unit, error=reason, trace=trace)
    return UnitResult(unit, computed, time.perf_counter() - started)


_runs: OrderedDict[str, pipeline.PlannedRun] = OrderedDict()


def prepared(plan: Plan, made: pipeline.PlannedRun | None = None) -> pipeline.PlannedRun:
    """Return the prepared run of a plan, which may have been `made`; a process keeps the last few.

    The one that was used longest ago is dropped.
    """
    if plan.key not in _runs:
        _runs[plan.key] = made or pipeline.prepare(plan.config)
        while len(_runs) > _PREPARED:
            _runs.popitem(last=False)
    _runs.move_to_end(plan.key)
    return _runs[plan.key]


# Executors carry out work units in this process, on worker processes, or through submitit.
#
# None of them loses more than the cell in flight when a process is killed: what a unit computed
# is in the store, and units that were lost with a worker are carried out again, one by one, so
# that only a unit that kills its own worker fails.


def executor(options: Mapping[str, Any], n_jobs: int, minutes: float | None = None) -> Executor:
    """Return the executor that a launcher's options name.

    Parameters
    ----------
    options : the options of ``conf/hydra/launcher``; without `executor`, it is this process.
    n_jobs : processes for cells; ``hydra/launcher=joblib`` has its own option for that.
    minutes : the minutes that one work unit may take.
    """
    launcher_options = dict(options)
    kind = launcher_options.pop("executor", None)
    if kind in (None, "joblib"):
        return processes(int(launcher_options["n_jobs"]) if kind else n_jobs, minutes)
    folder = Path(launcher_options.pop("submitit_folder"))
    units_per_job = launcher_options.pop("cells_per_task")
    if kind in ("local", "slurm"):
        return _Submitit(kind, folder, launcher_options, n_jobs, units_per_job, minutes)
    raise UserError(f"executor is '{kind}' in the launcher's file; valid: joblib, local, slurm")


def processes(n_jobs: int, minutes: float | None = None) -> Executor:
    """Return an executor on some processes of this machine, never more than there are cores.

    With a limit of `minutes` a unit is carried out by a worker process, which can be killed.
    """
    from joblib import cpu_count

    wanted = min(n_jobs, cpu_count()) if n_jobs > 0 else cpu_count()
    if wanted == 1 and not minutes:
        return in_process
    return partial(_on_workers, n_jobs=wanted, minutes=minutes)


def _on_workers(
    units: Iterable[WorkUnit], n_jobs: int, minutes: float | None = None
) -> Iterator[UnitResult]:
    """Carry out units on worker processes, taking the next one only when a worker is free.

    What kills one of them leaves the others at work.

    Parameters
    ----------
    minutes : the minutes that one unit may take; after them its process is killed.
    """
    lost: list[WorkUnit] = []
    yield from _in_parallel(units, n_jobs, minutes, lost)
    for unit in lost:  # alone: it may have taken more memory than there was for several
        lost_again: list[WorkUnit] = []
        yield from _in_parallel([unit], 1, minutes, lost_again)
        yield from (UnitResult(unit, error=KILLED) for unit in lost_again)


def _in_parallel(
    units: Iterable[WorkUnit], n_jobs: int, minutes: float | None, lost: list[WorkUnit]
) -> Iterator[UnitResult]:
    """Yield the results of units, and add to `lost` those whose workers were killed."""
    source = iter(units)
    busy = list[_UnitWorker]()
    try:
        while True:
            while len(busy) < n_jobs and (unit := next(source, None)) is not None:
                busy.append(_idle.pop() if _idle else _UnitWorker())
                busy[-1].give(unit)
            if not busy:
                return
            for worker in _ended(busy, minutes):
                busy.remove(worker)
                if result := worker.outcome(minutes):
                    yield result
                else:
                    lost.append(worker.unit)
    finally:
        for worker in busy:
            worker.kill()


def _ended(busy: Sequence[_UnitWorker], minutes: float | None) -> list[_UnitWorker]:
    """Wait until some workers have ended their units or run out of time; return these."""
    seconds_left = None
    if minutes is not None:
        ends = min(worker.since for worker in busy) + 60 * minutes
        seconds_left = max(0.0, ends - time.monotonic())
    ready = connection.wait([worker.pipe for worker in busy], seconds_left)
    return [worker for worker in busy if worker.pipe in ready or worker.late(minutes)]


class _UnitWorker(Worker):
    """A process that carries out one unit after the other: what it has finished is in the store."""

    def give(self, unit: WorkUnit) -> None:
        """Send it a unit."""
        self.unit, self.since = unit, time.monotonic()
        with suppress(OSError):  # it was killed while it was idle
            self.pipe.send((_work, unit))

    def late(self, minutes: float | None) -> bool:
        """Return whether its unit has taken `minutes` or longer."""
        return minutes is not None and time.monotonic() - self.since >= 60 * minutes

    def outcome(self, minutes: float | None) -> UnitResult | None:
        """Return the result of its unit; None if something killed the worker."""
        with suppress(EOFError, OSError):
            if self.pipe.poll():
                result: UnitResult = self.pipe.recv()
                _idle.append(self)
                return result
            self.kill()
            return UnitResult(self.unit, error=_too_long(minutes or 0))
        self.kill()
        return None


_idle: list[_UnitWorker] = []  # of this process


_Job = tuple[Any, list[WorkUnit], float]  # submitted, its units that have not ended, and since when


@dataclass(frozen=True)
class _Submitit:
    """Jobs of Slurm, or local processes in place of them ("local"), each with a batch of units.

    Attributes
    ----------
    options : the options of submitit, without the prefix ``slurm_``.
    n_jobs : processes for the cells of a job, at most its ``cpus_per_task``.
    units_per_job : units in a job; None makes four jobs for each job that Slurm may run at once, or
        one for each that this machine may.
    minutes : the minutes that one unit may take; those of a whole job are among the options.
    """

    cluster: str
    folder: Path
    options: Mapping[str, Any]
    n_jobs: int = 1
    units_per_job: int | None = None
    minutes: float | None = None
    wait_s: float = field(default=1.0)  # between two checks of the jobs

    def __call__(self, units: Iterable[WorkUnit]) -> Iterator[UnitResult]:
        """Submit all units; yield the result of each once its cell is stored or its job has ended.

        Raises
        ------
        UserError : Slurm does not take the jobs.
        """
        unfinished = {(unit.plan.key, unit.cell): unit for unit in units}
        parent = self.folder.parent
        try:
            with naming(parent):
                for result in self._submit_all(self._batches(list(unfinished.values()))):
                    del unfinished[result.plan.key, result.unit.cell]
                    yield result
        except (UserError, OSError) as error:
            for name in names_in(parent)[0]:  # what submitit wrote for jobs that were not submitted
                if name.endswith(".pkl") or fnmatchcase(name, ".submission_file_*.sh"):
                    remove(parent / name)
            if isinstance(error, UserError):
                raise
            # Nothing can be written where jobs are handed over.
            yield from (UnitResult(unit, error=refused(error)) for unit in unfinished.values())

    def _batches(self, units: Sequence[WorkUnit]) -> list[Sequence[WorkUnit]]:
        most = self._at_once() * (4 if self.cluster == "slurm" else 1)
        size = self.units_per_job or max(1, -(-len(units) // most))
        return [units[start : start + size] for start in range(0, len(units), size)]

    def _at_once(self) -> int:
        from joblib import cpu_count

        if self.cluster == "slurm":
            return int(self.options["array_parallelism"])
        return max(1, int(cpu_count()) // (self.options.get("cpus_per_task") or 1))

    def _submit_all(self, batches: Sequence[Sequence[WorkUnit]]) -> Iterator[UnitResult]:
        """Submit batches, to Slurm all at once, else as cores come free; yield their results.

        Raises
        ------
        UserError : there is no Slurm here, or it is not set up, or it refuses what is asked of it.
        """
        waiting = list(reversed(batches))
        running = list[_Job]()
        cpus = self.options.get("cpus_per_task") or self.n_jobs
        n_jobs = self.n_jobs if 0 < self.n_jobs < cpus else cpus
        if self.cluster == "slurm":
            job_arguments = [[argument] * len(batches) for argument in (n_jobs, self.minutes)]
            try:
                jobs = self.submitter().map_array(_work_all, batches, *job_arguments)
            except RuntimeError as error:  # of submitit
                lines = [line.strip(" -") for line in str(error).splitlines() if line.strip(" -")]
                why = lines[-1] if lines else repr(error)
                raise UserError(said("experiments", "no_slurm", why=why)) from error
            now = time.monotonic()
            running = [(job, list(units), now) for job, units in zip(jobs, batches, strict=True)]
            waiting = []
        else:
            submit = self.submitter()
        checked, asked = time.monotonic(), 0.0
        while waiting or running:
            while waiting and len(running) < self._at_once():
                units = waiting.pop()
                call = pickle.dumps((_work_all, (units, n_jobs, self.minutes)))
                job = submit.submit(call_with, os.getpid(), call)
                running.append((job, list(units), time.monotonic()))
            # Checking takes at most a twentieth of the time.
            spent = time.monotonic() - checked
            time.sleep(max(self.wait_s, 20 * min(spent, 3.0) if spent > 0.1 else 0.0))
            checked = time.monotonic()
            if checked - asked > 60:
                asked = checked
                running[0][0].done(force_check=True)  # asks the cluster for all of them
            for submitted in running:
                yield from self._new_results(*submitted)
            running = [submitted for submitted in running if submitted[1]]

    def _new_results(self, job: Any, units: list[WorkUnit], since: float) -> Iterator[UnitResult]:
        """Yield the results that have become known since the last call, and remove their units."""
        if not job.done():
            for unit in filter(_is_stored, list(units)):
                units.remove(unit)
                yield UnitResult(unit, computed=1)
            return
        unfinished, units[:] = list(units), []
        error = job.exception()
        ended = [] if error else job.result()
        results = {(result.plan.key, result.unit.cell): result for result in ended}
        why = self._why(job, error, since)
        for unit in unfinished:
            lost = UnitResult(unit, computed=1) if _is_stored(unit) else UnitResult(unit, error=why)
            yield results.get((unit.plan.key, unit.cell), lost)

    def _why(self, job: Any, error: Exception | None, since: float) -> str:
        """Return why a job gave no results."""
        lines = [line.strip() for line in str(error or "").splitlines() if line.strip("- ")]
        raised = [
            line for line in lines if "Error" in line and not line.startswith(("Job", "File"))
        ]
        if type(error).__name__ == "FailedJobError" and raised:
            return raised[-1]
        minutes = self.options["timeout_min"]  # of the whole job
        waited = time.monotonic() - since  # Slurm's may have waited for their turn, too
        late = job.state == "TIMEOUT" or (self.cluster == "local" and waited >= 60 * minutes)
        return _too_long(minutes, "hydra.launcher.timeout_min") if late else KILLED

    def submitter(self) -> Any:
        """Return submitit's executor, with the options of the launcher's file."""
        import submitit

        shared = (
            "timeout_min", "mem_gb", "nodes", "cpus_per_task", "gpus_per_node", "tasks_per_node",
            "name", "stderr_to_stdout",
        )  # fmt: skip
        options = {**self.options}
        timeouts = {"slurm_max_num_timeout": options.pop("max_num_timeout", 0)}
        made = submitit.AutoExecutor(self.folder, self.cluster, **timeouts)
        prefixed = {f"slurm_{name}": options.pop(name) for name in options.keys() - {*shared}}
        made.update_parameters(**options, **prefixed)
        return made


def _work_all(units: Sequence[WorkUnit], n_jobs: int, minutes: float | None) -> list[UnitResult]:
    """Carry out the units of one submitted job, on as many processes as it was given.

    A job of Slurm may outlive the command that submitted it, and so it registers its own use of
    the results folder. A local process ends with the command.
    """
    with ExitStack() as held:
        for root in {unit.plan.store.root for unit in units}:
            held.enter_context(using(root))
        return list(processes(n_jobs, minutes)(units))


def _is_stored(unit: WorkUnit) -> bool:
    """Return whether a cell that was missing is in the store by now."""
    resumed = bool(unit.plan.config["resume"])
    return resumed and unit.cell is not None and unit.plan.store.has(unit.cell)


# The expected cost of fits that are not yet made, by the finished runs of a results folder.

_COMPONENTS = ("dataset", "learner", "intervention", "method")


# CPU seconds of a fit, and the number of rows of its run, 0 if that is not recorded: by the
# `cost_key` of its study, and by the names of its data set and components whatever their options.
Prices = dict[str | tuple[str, ...], tuple[float, int]]


def prices_of(catalogue: Catalogue) -> Prices:
    """Return what fits have cost, as the finished runs of a catalogue tell it."""
    prices: Prices = {}
    for run in catalogue:
        cost = run.environment.get("cost", {})
        if "key" in cost:
            rows = int(run.environment.get("task", {}).get("rows", 0))
            paid = float(cost["seconds_per_cell"]), rows
            prices[cost["key"]] = prices[_names(run.choices)] = paid
    return prices


def seconds_of_fit(prices: Prices, key: str, rows: int, choices: Mapping[str, str]) -> float | None:
    """Return the CPU seconds that a fit will take, in proportion to its rows; None if unknown.

    Parameters
    ----------
    key : the `cost_key` of its study.
    rows : the number of rows that its run uses of the data set.
    choices : the option that the run chose for every group.
    """
    paid = prices.get(key) or prices.get(_names(choices))
    return None if paid is None else paid[0] * (rows / paid[1] if paid[1] else 1.0)


def _names(choices: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the data set and the components that a run chose."""
    return tuple(str(choices.get(group, "")) for group in _COMPONENTS)
