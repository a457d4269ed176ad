"""Executors do tasks: in this process, on worker processes, or through submitit (Slurm, local).

None of them loses more than the cell in flight when a process is killed: what a task computed is in
the store, and the tasks that were lost with a worker are done again, one by one, so that only one
that kills its own worker fails.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairbench.core.errors import UserError
from fairbench.core.locks import using
from fairbench.experiments.execute import KILLED, Done, Executor, WorkUnit, work


def executor(options: Mapping[str, Any], n_jobs: int) -> Executor:
    """Return the executor that a launcher's options name.

    Parameters
    ----------
    options : of ``conf/hydra/launcher``; no `executor` among them means this process.
    n_jobs : processes for cells; workers of joblib are counted by its own option instead.
    """
    own = dict(options)
    kind = own.pop("executor", None)
    if kind is None:
        return processes(n_jobs)
    if kind == "joblib":
        return processes(int(own["n_jobs"]))
    folder, per_task = Path(own.pop("submitit_folder")), own.pop("cells_per_task")
    if kind in ("local", "slurm"):
        return Submitit(kind, folder, own, n_jobs, per_task)
    raise UserError(f"executor is '{kind}' in the launcher's file: valid: joblib, local, slurm")


def processes(n_jobs: int) -> Executor:
    """Return an executor on some processes of this machine, never more than there are cores."""
    from joblib import cpu_count

    wanted = min(n_jobs, cpu_count()) if n_jobs > 0 else cpu_count()
    return Joblib(wanted) if wanted > 1 else Here()


@dataclass(frozen=True)
class Here:
    """The process that runs the sweep."""

    def run(self, tasks: Iterable[WorkUnit]) -> Iterator[Done]:
        """Do one task after the other."""
        return map(work, tasks)


@dataclass(frozen=True)
class Joblib:
    """Worker processes of this machine, two or more."""

    n_jobs: int

    def run(self, tasks: Iterable[WorkUnit]) -> Iterator[Done]:
        """Do the tasks side by side, taking each up only when a worker is about to be free."""
        source = iter(tasks)
        while True:
            flight: dict[int, WorkUnit] = {}
            try:
                yield from self._together(source, flight)
                return
            except BrokenProcessPool:  # a worker was killed, and joblib has ended the others
                lost = list(flight.values())
            for task in lost:
                yield self._alone(task)

    def _together(self, source: Iterator[WorkUnit], flight: dict[int, WorkUnit]) -> Iterator[Done]:
        from joblib import Parallel, delayed

        def calls() -> Iterator[Any]:
            for number, task in enumerate(source):
                flight[number] = task
                yield delayed(_numbered)(number, task)

        parallel = Parallel(
            self.n_jobs,
            return_as="generator_unordered",
            batch_size=1,
            pre_dispatch="2*n_jobs",
            initializer=end_with,
            initargs=(os.getpid(),),
        )
        for number, done in parallel(calls()):
            del flight[number]
            yield done

    def _alone(self, task: WorkUnit) -> Done:
        try:
            (done,) = self._together(iter([task]), {})
        except BrokenProcessPool:
            return Done(task, error=KILLED)
        return done


def _numbered(number: int, task: WorkUnit) -> tuple[int, Done]:
    return number, work(task)


def end_with(parent: int) -> None:
    """Have this worker end with the process that started it, even if that one is killed.

    It would go on with what it was handed, or wait for more, beside the next command's workers.
    """
    threading.Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)  # at once: what is not finished is not kept, and locks free themselves


@dataclass(frozen=True)
class Submitit:
    """Jobs of Slurm, or processes that stand for them ("local"), each with a batch of tasks.

    Attributes
    ----------
    options : of submitit, without the prefix ``slurm_``.
    n_jobs : processes for the cells of a job, at most its ``cpus_per_task``.
    per_task : tasks in a job; None makes four jobs for each that Slurm may run at once, and one
        for each that this machine can.
    """

    cluster: str
    folder: Path
    options: Mapping[str, Any]
    n_jobs: int = 1
    per_task: int | None = None
    wait_s: float = field(default=1.0)  # between two looks

    def run(self, tasks: Iterable[WorkUnit]) -> Iterator[Done]:
        """Submit all tasks, and yield each as soon as its cell is in the store or its job ended."""
        batches = self._batches(list(tasks))
        for batch in self._submitted(batches):
            yield from batch

    def _batches(self, tasks: Sequence[WorkUnit]) -> list[Sequence[WorkUnit]]:
        most = self._at_once() * (4 if self.cluster == "slurm" else 1)
        size = self.per_task or max(1, -(-len(tasks) // most))
        return [tasks[start : start + size] for start in range(0, len(tasks), size)]

    def _at_once(self) -> int:
        from joblib import cpu_count

        if self.cluster == "slurm":
            return int(self.options["array_parallelism"])
        return max(1, int(cpu_count()) // (self.options.get("cpus_per_task") or 1))

    def _submitted(self, batches: Sequence[Sequence[WorkUnit]]) -> Iterator[Iterator[Done]]:
        """Submit, Slurm's all at once and others as cores come free, and look after them."""
        waiting, running = list(reversed(batches)), list[_Batch]()
        submit = self.submitter()
        cpus = self.options.get("cpus_per_task") or self.n_jobs
        n_jobs = self.n_jobs if 0 < self.n_jobs < cpus else cpus
        if self.cluster == "slurm":
            jobs = submit.map_array(work_all, batches, [n_jobs] * len(batches))
            running = [_Batch(job, list(batch)) for job, batch in zip(jobs, batches, strict=True)]
            waiting = []
        watch = _Watch(self.wait_s)
        while waiting or running:
            while waiting and len(running) < self._at_once():
                batch = waiting.pop()
                running.append(_Batch(submit.submit(work_all, batch, n_jobs), list(batch)))
            watch.pause(running)
            for each in running:
                yield each.look()
            running = [each for each in running if each.tasks]

    def submitter(self) -> Any:
        """Return submitit's executor, with the options of the launcher's file."""
        import submitit

        shared = (
            "timeout_min", "mem_gb", "nodes", "cpus_per_task", "gpus_per_node", "tasks_per_node",
            "name", "stderr_to_stdout",
        )  # fmt: skip
        own = {**self.options}
        timeouts = {"slurm_max_num_timeout": own.pop("max_num_timeout", 0)}
        made = submitit.AutoExecutor(self.folder, self.cluster, **timeouts)
        named = {name if name in shared else f"slurm_{name}": own[name] for name in own}
        made.update_parameters(**named)
        return made


def work_all(tasks: Sequence[WorkUnit], n_jobs: int) -> list[Done]:
    """Do the tasks of one submitted job, on as many processes as it was given.

    The job may outlive the command that submitted it, and so uses the results folder itself.
    """
    with ExitStack() as held:
        for root in {task.run.store.root for task in tasks}:
            held.enter_context(using(root))
        return list(processes(n_jobs).run(tasks))


@dataclass
class _Batch:
    """A submitted job, and those of its tasks of which nothing is known yet."""

    job: Any
    tasks: list[WorkUnit]

    def look(self) -> Iterator[Done]:
        """Yield what is known by now."""
        if not self.job.done():
            for task in [task for task in self.tasks if _stored(task)]:
                self.tasks.remove(task)
                yield Done(task, computed=1)
            return
        left, self.tasks = self.tasks, []
        error = self.job.exception()
        results = {} if error else {(d.task.run.key, d.task.cell): d for d in self.job.result()}
        for task in left:
            yield results.get((task.run.key, task.cell)) or _lost(task, error)


def _stored(task: WorkUnit) -> bool:
    """Say whether a cell that was missing is in the store by now."""
    resumed = bool(task.run.config["resume"])
    return resumed and task.cell is not None and task.run.store.has(task.cell)


def _lost(task: WorkUnit, error: Exception | None) -> Done:
    """Return what became of a task whose job gave no results."""
    if _stored(task):
        return Done(task, computed=1)
    lines = [line.strip() for line in str(error or "").splitlines() if line.strip("- ")]
    raised = [line for line in lines if "Error" in line and not line.startswith(("Job", "File"))]
    failed = type(error).__name__ == "FailedJobError" and raised
    return Done(task, error=raised[-1] if failed else KILLED)


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
