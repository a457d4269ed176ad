"""Executors do tasks: in this process, on worker processes, or through submitit (Slurm, local).

None of them loses more than the cell in flight when a process is killed: what a task computed is in
the store, and the tasks that were lost with a worker are done again, one by one, so that only one
that kills its own worker fails.
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
from fairbench.experiments.execute import KILLED, Done, Executor, Here, WorkUnit, too_long, work


def executor(options: Mapping[str, Any], n_jobs: int, minutes: float | None = None) -> Executor:
    """Return the executor that a launcher's options name.

    Parameters
    ----------
    options : the options of ``conf/hydra/launcher``; without `executor`, it is this process.
    n_jobs : processes for cells; ``hydra/launcher=joblib`` has its own option for that.
    minutes : the minutes that one task may take.
    """
    launcher_options = dict(options)
    kind = launcher_options.pop("executor", None)
    if kind is None:
        return processes(n_jobs, minutes)
    if kind == "joblib":
        return processes(int(launcher_options["n_jobs"]), minutes)
    folder = Path(launcher_options.pop("submitit_folder"))
    per_task = launcher_options.pop("cells_per_task")
    if kind in ("local", "slurm"):
        return Submitit(kind, folder, launcher_options, n_jobs, per_task, minutes)
    raise UserError(f"executor is '{kind}' in the launcher's file: valid: joblib, local, slurm")


def processes(n_jobs: int, minutes: float | None = None) -> Executor:
    """Return an executor on some processes of this machine, never more than there are cores.

    A task that may take some `minutes` only is done by a process of its own, which can be ended.
    """
    from joblib import cpu_count

    wanted = min(n_jobs, cpu_count()) if n_jobs > 0 else cpu_count()
    return Workers(wanted, minutes) if wanted > 1 or minutes else Here()


@dataclass(frozen=True)
class Workers:
    """Worker processes of this machine; what kills one of them leaves the others at work.

    Attributes
    ----------
    minutes : the minutes that one task may take; after them its process is killed.
    """

    n_jobs: int
    minutes: float | None = None

    def run(self, tasks: Iterable[WorkUnit]) -> Iterator[Done]:
        """Do the tasks side by side, taking each up only when a worker is free."""
        lost: list[WorkUnit] = []
        yield from self._together(tasks, self.n_jobs, lost)
        for task in lost:  # alone: it may have taken more memory than there was for several
            lost_again: list[WorkUnit] = []
            yield from self._together([task], 1, lost_again)
            yield from (Done(unit, error=KILLED) for unit in lost_again)

    def _together(
        self, tasks: Iterable[WorkUnit], n_jobs: int, lost: list[WorkUnit]
    ) -> Iterator[Done]:
        """Yield the results of tasks, and add to `lost` those whose workers were killed."""
        source = iter(tasks)
        busy = list[_Worker]()
        try:
            while True:
                while len(busy) < n_jobs and (task := next(source, None)) is not None:
                    busy.append(_Worker.give_task(task))
                if not busy:
                    return
                for worker in self._wait_for_end(busy):
                    busy.remove(worker)
                    if done := worker.outcome(self.minutes):
                        yield done
                    else:
                        lost.append(worker.task)
        finally:
            for worker in busy:
                worker.kill()

    def _wait_for_end(self, busy: Sequence[_Worker]) -> list[_Worker]:
        """Wait until workers have ended their tasks, or must end; return them."""
        seconds_left = None
        if self.minutes is not None:
            seconds_left = max(
                0.0, min(worker.since for worker in busy) + 60 * self.minutes - time.monotonic()
            )
        ready = connection.wait([worker.pipe for worker in busy], seconds_left)
        return [worker for worker in busy if worker.pipe in ready or worker.late(self.minutes)]


@dataclass(eq=False)
class _Worker:
    """A process that does one task after the other."""

    pipe: connection.Connection
    process: Any
    task: WorkUnit
    since: float = 0.0

    @classmethod
    def give_task(cls, task: WorkUnit) -> _Worker:
        """Return a worker that does a task: one that has nothing to do, or a new one."""
        worker = _idle.pop() if _idle else cls._start(task)
        worker.task = task
        worker.since = time.monotonic()
        with suppress(OSError):  # it was killed while it had nothing to do
            worker.pipe.send((work, task))
        return worker

    @classmethod
    def _start(cls, task: WorkUnit) -> _Worker:
        context = multiprocessing.get_context("spawn")
        pipe, other = context.Pipe()
        process = context.Process(target=serve, args=(other, os.getpid()), daemon=True)
        process.start()
        other.close()
        return cls(pipe, process, task)

    def late(self, minutes: float | None) -> bool:
        """Return whether its task has taken longer than some minutes."""
        return minutes is not None and time.monotonic() - self.since >= 60 * minutes

    def outcome(self, minutes: float | None) -> Done | None:
        """Return the result of its task; None if something killed the worker."""
        with suppress(EOFError, OSError):
            if self.pipe.poll():
                done: Done = self.pipe.recv()
                _idle.append(self)
                return done
            self.kill()
            return Done(self.task, error=too_long(minutes or 0))
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
    """Jobs of Slurm, or processes that stand for them ("local"), each with a batch of tasks.

    Attributes
    ----------
    options : the options of submitit, without the prefix ``slurm_``.
    n_jobs : processes for the cells of a job, at most its ``cpus_per_task``.
    per_task : tasks in a job; None makes four jobs for each that Slurm may run at once, and one
        for each that this machine can.
    minutes : the minutes that one task may take; those of a whole job are among the options.
    """

    cluster: str
    folder: Path
    options: Mapping[str, Any]
    n_jobs: int = 1
    per_task: int | None = None
    minutes: float | None = None
    wait_s: float = field(default=1.0)  # between two looks

    def run(self, tasks: Iterable[WorkUnit]) -> Iterator[Done]:
        """Submit all tasks, and yield each as soon as its cell is in the store or its job ended.

        Raises
        ------
        UserError : Slurm does not take the jobs.
        """
        unfinished = {(task.run.key, task.cell): task for task in tasks}
        place = self.folder.parent
        try:
            with naming(place):
                for batch in self._submit_all(self._batches(list(unfinished.values()))):
                    for done in batch:
                        del unfinished[done.task.run.key, done.task.cell]
                        yield done
        except UserError:
            self._remove_unsubmitted()
            raise
        except OSError as error:  # nothing can be written where jobs are handed over
            self._remove_unsubmitted()
            yield from (Done(task, error=refused(error)) for task in unfinished.values())

    def _remove_unsubmitted(self) -> None:
        place = self.folder.parent
        for name in names_in(place)[0]:
            if name.endswith(".pkl") or fnmatchcase(name, ".submission_file_*.sh"):
                remove(place / name)

    def _batches(self, tasks: Sequence[WorkUnit]) -> list[Sequence[WorkUnit]]:
        most = self._at_once() * (4 if self.cluster == "slurm" else 1)
        size = self.per_task or max(1, -(-len(tasks) // most))
        return [tasks[start : start + size] for start in range(0, len(tasks), size)]

    def _at_once(self) -> int:
        from joblib import cpu_count

        if self.cluster == "slurm":
            return int(self.options["array_parallelism"])
        return max(1, int(cpu_count()) // (self.options.get("cpus_per_task") or 1))

    def _submit_all(self, batches: Sequence[Sequence[WorkUnit]]) -> Iterator[Iterator[Done]]:
        """Submit, Slurm's all at once and others as cores come free, and look after them."""
        waiting = list(reversed(batches))
        running = list[_Batch]()
        cpus = self.options.get("cpus_per_task") or self.n_jobs
        n_jobs = self.n_jobs if 0 < self.n_jobs < cpus else cpus
        if self.cluster == "slurm":
            job_arguments = [[argument] * len(batches) for argument in (n_jobs, self.minutes)]
            with _explain_slurm_errors():
                jobs = self.submitter().map_array(work_all, batches, *job_arguments)
            running = [self._batch(job, batch) for job, batch in zip(jobs, batches, strict=True)]
            waiting = []
        else:
            submit = self.submitter()
        watch = _Watch(self.wait_s)
        while waiting or running:
            while waiting and len(running) < self._at_once():
                batch = waiting.pop()
                call = CallWith(os.getpid(), work_all, (batch, n_jobs, self.minutes))
                job = submit.submit(call)
                running.append(self._batch(job, batch))
            watch.pause(running)
            for submitted in running:
                yield submitted.look()
            running = [submitted for submitted in running if submitted.tasks]

    def _batch(self, job: Any, tasks: Sequence[WorkUnit]) -> _Batch:
        return _Batch(job, list(tasks), self.options["timeout_min"], self.cluster)

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


def work_all(tasks: Sequence[WorkUnit], n_jobs: int, minutes: float | None = None) -> list[Done]:
    """Do the tasks of one submitted job, on as many processes as it was given.

    A job of Slurm may outlive the command that submitted it, and so uses the results folder
    itself. A process that stands for one ends with the command.
    """
    with ExitStack() as held:
        for root in {task.run.store.root for task in tasks}:
            held.enter_context(using(root))
        return list(processes(n_jobs, minutes).run(tasks))


@dataclass
class _Batch:
    """A submitted job, and its tasks that have not ended yet.

    `minutes` are those that the whole job may take.
    """

    job: Any
    tasks: list[WorkUnit]
    minutes: float
    cluster: str
    since: float = field(default_factory=time.monotonic)

    def look(self) -> Iterator[Done]:
        """Yield the results that are known by now."""
        if not self.job.done():
            for task in [task for task in self.tasks if _is_stored(task)]:
                self.tasks.remove(task)
                yield Done(task, computed=1)
            return
        unfinished, self.tasks = self.tasks, []
        error = self.job.exception()
        results = (
            {}
            if error
            else {(done.task.run.key, done.task.cell): done for done in self.job.result()}
        )
        why = self._why(error)
        for task in unfinished:
            yield results.get((task.run.key, task.cell)) or _lost(task, why)

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


def _is_stored(task: WorkUnit) -> bool:
    """Return whether a cell that was missing is in the store by now."""
    resumed = bool(task.run.config["resume"])
    return resumed and task.cell is not None and task.run.store.has(task.cell)


def _lost(task: WorkUnit, why: str) -> Done:
    """Return the result of a task whose job gave none: it is stored, or it failed."""
    return Done(task, computed=1) if _is_stored(task) else Done(task, error=why)


@dataclass
class _Watch:
    """The pauses between looks at submitted jobs: looking takes at most a twentieth of the time."""

    least_s: float
    asked: float = 0.0
    looked: float = field(default_factory=time.monotonic)

    def pause(self, running: Sequence[_Batch]) -> None:
        """Wait, and once a minute ask the cluster itself which jobs have ended."""
        spent = time.monotonic() - self.looked
        time.sleep(max(self.least_s, 20 * min(spent, 3.0) if spent > 0.1 else 0.0))
        self.looked = time.monotonic()
        if self.looked - self.asked > 60:
            self.asked = self.looked
            running[0].job.done(force_check=True)  # which asks for all of them
