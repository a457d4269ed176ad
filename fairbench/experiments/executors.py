"""Executors carry out work units in this process, on worker processes, or through submitit.

None of them loses more than the cell in flight when a process is killed: what a unit computed is in
the store, and units that were lost with a worker are carried out again, one by one, so that only a
unit that kills its own worker fails.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from multiprocessing import connection
from pathlib import Path
from typing import Any

from fairbench.core.errors import UserError, refused
from fairbench.core.files import naming
from fairbench.core.locks import using
from fairbench.core.processes import CallWith, serve
from fairbench.core.safe_open import names_in, remove
from fairbench.experiments.execute import (
    KILLED,
    Executor,
    InProcessExecutor,
    UnitResult,
    WorkUnit,
    too_long,
    work,
)


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
    if kind is None:
        return processes(n_jobs, minutes)
    if kind == "joblib":
        return processes(int(launcher_options["n_jobs"]), minutes)
    folder = Path(launcher_options.pop("submitit_folder"))
    units_per_job = launcher_options.pop("cells_per_task")
    if kind in ("local", "slurm"):
        return Submitit(kind, folder, launcher_options, n_jobs, units_per_job, minutes)
    raise UserError(f"executor is '{kind}' in the launcher's file; valid: joblib, local, slurm")


def processes(n_jobs: int, minutes: float | None = None) -> Executor:
    """Return an executor on some processes of this machine, never more than there are cores.

    With a limit of `minutes` a unit is carried out by a worker process, which can be killed.
    """
    from joblib import cpu_count

    wanted = min(n_jobs, cpu_count()) if n_jobs > 0 else cpu_count()
    return Workers(wanted, minutes) if wanted > 1 or minutes else InProcessExecutor()


@dataclass(frozen=True)
class Workers:
    """Worker processes of this machine; what kills one of them leaves the others at work.

    Attributes
    ----------
    minutes : the minutes that one unit may take; after them its process is killed.
    """

    n_jobs: int
    minutes: float | None = None

    def run(self, units: Iterable[WorkUnit]) -> Iterator[UnitResult]:
        """Carry out the units in parallel, taking the next one only when a worker is free."""
        lost: list[WorkUnit] = []
        yield from self._run_in_parallel(units, self.n_jobs, lost)
        for unit in lost:  # alone: it may have taken more memory than there was for several
            lost_again: list[WorkUnit] = []
            yield from self._run_in_parallel([unit], 1, lost_again)
            yield from (UnitResult(unit, error=KILLED) for unit in lost_again)

    def _run_in_parallel(
        self, units: Iterable[WorkUnit], n_jobs: int, lost: list[WorkUnit]
    ) -> Iterator[UnitResult]:
        """Yield the results of units, and add to `lost` those whose workers were killed."""
        source = iter(units)
        busy = list[_Worker]()
        try:
            while True:
                while len(busy) < n_jobs and (unit := next(source, None)) is not None:
                    busy.append(_Worker.give_unit(unit))
                if not busy:
                    return
                for worker in self._wait_for_end(busy):
                    busy.remove(worker)
                    if result := worker.outcome(self.minutes):
                        yield result
                    else:
                        lost.append(worker.unit)
        finally:
            for worker in busy:
                worker.kill()

    def _wait_for_end(self, busy: Sequence[_Worker]) -> list[_Worker]:
        """Wait until some workers have ended their units or run out of time; return these."""
        seconds_left = None
        if self.minutes is not None:
            seconds_left = max(
                0.0, min(worker.since for worker in busy) + 60 * self.minutes - time.monotonic()
            )
        ready = connection.wait([worker.pipe for worker in busy], seconds_left)
        return [worker for worker in busy if worker.pipe in ready or worker.late(self.minutes)]


@dataclass(eq=False)
class _Worker:
    """A process that carries out one unit after the other."""

    pipe: connection.Connection
    process: Any
    unit: WorkUnit
    since: float = 0.0

    @classmethod
    def give_unit(cls, unit: WorkUnit) -> _Worker:
        """Send a unit to an idle worker, or to a new one, and return that worker."""
        worker = _idle.pop() if _idle else cls._start(unit)
        worker.unit = unit
        worker.since = time.monotonic()
        with suppress(OSError):  # it was killed while it was idle
            worker.pipe.send((work, unit))
        return worker

    @classmethod
    def _start(cls, unit: WorkUnit) -> _Worker:
        """Start a worker process; it waits for what is sent to it."""
        context = multiprocessing.get_context("spawn")
        pipe, other = context.Pipe()
        process = context.Process(target=serve, args=(other, os.getpid()), daemon=True)
        process.start()
        other.close()
        return cls(pipe, process, unit)

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
            return UnitResult(self.unit, error=too_long(minutes or 0))
        self.kill()
        return None

    def kill(self) -> None:
        """End the process at once: cells that it has finished are in the store."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


_idle: list[_Worker] = []  # of this process


@dataclass(frozen=True)
class Submitit:
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

    def run(self, units: Iterable[WorkUnit]) -> Iterator[UnitResult]:
        """Submit all units; yield the result of each once its cell is stored or its job has ended.

        Raises
        ------
        UserError : Slurm does not take the jobs.
        """
        unfinished = {(unit.plan.key, unit.cell): unit for unit in units}
        try:
            with naming(self.folder.parent):
                for batch in self._submit_all(self._batches(list(unfinished.values()))):
                    for result in batch:
                        del unfinished[result.unit.plan.key, result.unit.cell]
                        yield result
        except UserError:
            self._remove_unsubmitted()
            raise
        except OSError as error:  # nothing can be written where jobs are handed over
            self._remove_unsubmitted()
            yield from (UnitResult(unit, error=refused(error)) for unit in unfinished.values())

    def _remove_unsubmitted(self) -> None:
        """Remove the files that submitit wrote for jobs that were not submitted."""
        parent = self.folder.parent
        for name in names_in(parent)[0]:
            if name.endswith(".pkl") or fnmatchcase(name, ".submission_file_*.sh"):
                remove(parent / name)

    def _batches(self, units: Sequence[WorkUnit]) -> list[Sequence[WorkUnit]]:
        most = self._at_once() * (4 if self.cluster == "slurm" else 1)
        size = self.units_per_job or max(1, -(-len(units) // most))
        return [units[start : start + size] for start in range(0, len(units), size)]

    def _at_once(self) -> int:
        from joblib import cpu_count

        if self.cluster == "slurm":
            return int(self.options["array_parallelism"])
        return max(1, int(cpu_count()) // (self.options.get("cpus_per_task") or 1))

    def _submit_all(self, batches: Sequence[Sequence[WorkUnit]]) -> Iterator[Iterator[UnitResult]]:
        """Submit batches, to Slurm all at once, else as cores come free; yield their results."""
        waiting = list(reversed(batches))
        running = list[_Batch]()
        cpus = self.options.get("cpus_per_task") or self.n_jobs
        n_jobs = self.n_jobs if 0 < self.n_jobs < cpus else cpus
        if self.cluster == "slurm":
            job_arguments = [[argument] * len(batches) for argument in (n_jobs, self.minutes)]
            with _explain_slurm_errors():
                jobs = self.submitter().map_array(work_all, batches, *job_arguments)
            running = [self._as_batch(job, batch) for job, batch in zip(jobs, batches, strict=True)]
            waiting = []
        else:
            submit = self.submitter()
        watch = _Watch(self.wait_s)
        while waiting or running:
            while waiting and len(running) < self._at_once():
                batch = waiting.pop()
                call = CallWith(os.getpid(), work_all, (batch, n_jobs, self.minutes))
                job = submit.submit(call)
                running.append(self._as_batch(job, batch))
            watch.pause(running)
            for submitted in running:
                yield submitted.new_results()
            running = [submitted for submitted in running if submitted.units]

    def _as_batch(self, job: Any, units: Sequence[WorkUnit]) -> _Batch:
        return _Batch(job, list(units), self.options["timeout_min"], self.cluster)

    def submitter(self) -> Any:
        """Return submitit's executor, with the options of the launcher's file."""
        import submitit

        shared = (
            "timeout_min", "mem_gb", "nodes", "cpus_per_task", "gpus_per_node", "tasks_per_node",
            "name", "stderr_to_stdout",
        )  # fmt: skip
        options = {**self.options}
        timeouts = {"slurm_max_num_timeout": options.pop("max_num_timeout", 0)}
        submitit_executor = submitit.AutoExecutor(self.folder, self.cluster, **timeouts)
        parameters = {
            name if name in shared else f"slurm_{name}": options[name] for name in options
        }
        submitit_executor.update_parameters(**parameters)
        return submitit_executor


@contextmanager
def _explain_slurm_errors() -> Iterator[None]:
    """Turn a RuntimeError of submitit into a sentence on why Slurm did not take jobs.

    Raises
    ------
    UserError : there is no Slurm here, or it is not set up, or it refuses what is asked of it.
    """
    try:
        yield
    except RuntimeError as error:
        lines = [line.strip(" -") for line in str(error).splitlines() if line.strip(" -")]
        why = lines[-1] if lines else repr(error)
        raise UserError(
            f"Slurm did not take the jobs of this sweep ({why}): see that sinfo lists a partition "
            "here, and name what the cluster asks for (hydra.launcher.partition=NAME), or use this "
            "machine's cores with hydra/launcher=joblib"
        ) from error


def work_all(
    units: Sequence[WorkUnit], n_jobs: int, minutes: float | None = None
) -> list[UnitResult]:
    """Carry out the units of one submitted job, on as many processes as it was given.

    A job of Slurm may outlive the command that submitted it, and so it registers its own use of
    the results folder. A local process ends with the command.
    """
    with ExitStack() as held:
        for root in {unit.plan.store.root for unit in units}:
            held.enter_context(using(root))
        return list(processes(n_jobs, minutes).run(units))


@dataclass
class _Batch:
    """A submitted job, and its units that have not ended yet.

    `minutes` is the time limit of the whole job.
    """

    job: Any
    units: list[WorkUnit]
    minutes: float
    cluster: str
    since: float = field(default_factory=time.monotonic)

    def new_results(self) -> Iterator[UnitResult]:
        """Yield the results that have become known since the last call."""
        if not self.job.done():
            for unit in [unit for unit in self.units if _is_stored(unit)]:
                self.units.remove(unit)
                yield UnitResult(unit, computed=1)
            return
        unfinished, self.units = self.units, []
        error = self.job.exception()
        results = (
            {}
            if error
            else {(result.unit.plan.key, result.unit.cell): result for result in self.job.result()}
        )
        why = self._why(error)
        for unit in unfinished:
            yield results.get((unit.plan.key, unit.cell)) or _lost(unit, why)

    def _why(self, error: Exception | None) -> str:
        """Return why a job gave no results."""
        lines = [line.strip() for line in str(error or "").splitlines() if line.strip("- ")]
        raised = [
            line for line in lines if "Error" in line and not line.startswith(("Job", "File"))
        ]
        if type(error).__name__ == "FailedJobError" and raised:
            return raised[-1]
        waited = time.monotonic() - self.since  # Slurm's may have waited for their turn, too
        local = self.cluster == "local" and waited >= 60 * self.minutes
        late = local or self.job.state == "TIMEOUT"
        return too_long(self.minutes, "hydra.launcher.timeout_min") if late else KILLED


def _is_stored(unit: WorkUnit) -> bool:
    """Return whether a cell that was missing is in the store by now."""
    resumed = bool(unit.plan.config["resume"])
    return resumed and unit.cell is not None and unit.plan.store.has(unit.cell)


def _lost(unit: WorkUnit, why: str) -> UnitResult:
    """Return the result of a unit whose job gave none: it is stored, or it failed."""
    return UnitResult(unit, computed=1) if _is_stored(unit) else UnitResult(unit, error=why)


@dataclass
class _Watch:
    """Pauses between checks of submitted jobs: checking takes at most a twentieth of the time."""

    least_s: float
    asked: float = 0.0
    checked: float = field(default_factory=time.monotonic)

    def pause(self, running: Sequence[_Batch]) -> None:
        """Wait, and once a minute ask the cluster itself which jobs have ended."""
        spent = time.monotonic() - self.checked
        time.sleep(max(self.least_s, 20 * min(spent, 3.0) if spent > 0.1 else 0.0))
        self.checked = time.monotonic()
        if self.checked - self.asked > 60:
            self.asked = self.checked
            running[0].job.done(force_check=True)  # which asks for all of them
