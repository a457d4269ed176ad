"""Launching the jobs of a sweep: none is lost with another, and none takes another's core."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest import mock

from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from hydra.plugins.launcher import Launcher
from omegaconf import DictConfig

from fairbench.cli.outcome import OUTCOME, Outcome
from fairbench.cli.progress import PROGRESS, watched

LAUNCHER = "FAIRBENCH_LAUNCHER"
KILLED = "its process was killed (by hand, or out of memory or time): finished cells are kept"


def guard_launchers(conf: Path) -> None:
    """Have Hydra hand every sweep to a `GuardedLauncher`, set up by the files in `conf`."""
    plugins = Plugins.instance()  # finding them fills the store
    entries = ConfigStore.instance().repo["hydra"]["launcher"]
    for path in (conf / "hydra" / "launcher").glob("*.yaml"):
        # Hydra warns of a file that has the name of a plugin's own entry.
        entries.pop(path.name, None)
    instantiate = plugins.instantiate_launcher

    def guarded(**arguments: Any) -> GuardedLauncher:
        config = arguments["config"]
        launcher = _here(arguments) if config.plan else instantiate(**arguments)
        return GuardedLauncher(launcher, config)

    plugins.instantiate_launcher = guarded  # type: ignore[assignment, method-assign]


def _here(arguments: dict[str, Any]) -> Launcher:
    """Return a launcher of this process: a plan is no reason to wait for a cluster."""
    from hydra._internal.core_plugins.basic_launcher import BasicLauncher

    launcher = BasicLauncher()
    launcher.setup(**arguments)
    return launcher


def processes(n_jobs: int, launcher: DictConfig) -> int:
    """Return how many processes a job may use for its cells: those its launcher gave it."""
    if launcher._target_.endswith(".JoblibLauncher"):
        return 1
    return min(n_jobs, launcher.get("cpus_per_task") or n_jobs)


@lru_cache(maxsize=1)
def end_with_launcher() -> None:
    """Have this process, if it is a joblib worker, end with the one that launched it.

    A parent that is killed leaves its workers behind: they go through the jobs they were handed
    beside the workers of the next command, and may then wait for ever.
    """
    launcher = int(os.environ.get(LAUNCHER, os.getpid()))
    if launcher != os.getpid():
        threading.Thread(target=_end_after, args=(launcher,), daemon=True).start()


def _end_after(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)  # at once: what is not finished is not kept, and locks free themselves


@dataclass(frozen=True)
class Job:
    """One job of a sweep: its number, what it overrides, and its folder."""

    number: int
    overrides: tuple[str, ...]
    folder: Path

    @property
    def settled(self) -> bool:
        """Whether the job left an outcome."""
        return (self.folder / OUTCOME).exists()

    @property
    def started(self) -> bool:
        """Whether the job began at all."""
        return (self.folder / PROGRESS).exists()

    def fail(self, reason: str) -> None:
        """Leave the outcome of a job whose process could not."""
        name = " ".join(self.overrides)
        outcome = Outcome("failed", name, message=reason, overrides=self.overrides)
        outcome.write(self.folder)


Errors = dict[int, str]  # a job's number -> why its process failed, where that is known


@dataclass(frozen=True)
class GuardedLauncher:
    """A launcher that ends with an outcome for every job, whatever became of its process."""

    launcher: Launcher
    config: DictConfig

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[object]:
        """Run every job and show how they come on; what became of each is in its folder."""
        folder = Path(self.config.hydra.sweep.dir)
        numbered = enumerate(job_overrides, start=initial_job_idx)
        jobs = [Job(number, tuple(each), folder / str(number)) for number, each in numbered]
        launch = _LAUNCH.get(type(self.launcher).__name__, _launch)
        asked = self.config.n_jobs
        if (given := processes(asked, self.config.hydra.launcher)) < asked:
            print(f"n_jobs={asked} is taken as {given}: jobs that run side by side share no core")
        with watched([job.folder for job in jobs]):
            errors = launch(self.launcher, jobs)
            for job in jobs:
                if not job.settled:
                    job.fail(errors.get(job.number, KILLED))
        return []


def _launch(launcher: Launcher, jobs: Sequence[Job]) -> Errors:
    results = launcher.launch([job.overrides for job in jobs], jobs[0].number)
    pairs = zip(jobs, results, strict=True)
    return {job.number: error for job, result in pairs if (error := _error(result))}


def _error(result: Any) -> str | None:
    """Return the last line of what a job's process raised, None if it raised nothing."""
    error = result if isinstance(result, Exception) else None
    if error is None and result.status.name == "FAILED":
        error = result._return_value
    lines = [line.strip() for line in str(error or "").splitlines() if line.strip("- ")]
    return lines[-1] if lines else None


def _joblib(launcher: Any, jobs: Sequence[Job]) -> Errors:
    """Launch on worker processes, no more than there are cores."""
    from joblib import cpu_count

    wanted = launcher.joblib["n_jobs"]
    launcher.joblib["n_jobs"] = min(wanted, cpu_count()) if wanted > 0 else cpu_count()
    with mock.patch.dict(os.environ, {LAUNCHER: str(os.getpid())}):  # inherited by the workers
        return _again_while_lost(launcher, jobs)


def _again_while_lost(launcher: Any, jobs: Sequence[Job]) -> Errors:
    """Launch, and again what was lost with a worker.

    When one worker dies, joblib ends them all and drops the jobs that wait: the jobs that had
    begun are run one by one, so that only what kills its own worker fails, and then the rest.
    """
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    errors: Errors = {}
    while jobs:
        try:
            return errors | _launch(launcher, jobs)
        except TerminatedWorkerError:
            begun = max((i for i, job in enumerate(jobs) if job.started), default=0)
        for job in jobs[: begun + 1]:
            if not job.settled:
                with contextlib.suppress(TerminatedWorkerError):
                    errors |= _launch(launcher, [job])
        jobs = jobs[begun + 1 :]
    return errors


def _submitit(launcher: Any, jobs: Sequence[Job]) -> Errors:
    with _all_waited_for():
        return _launch(launcher, jobs)


def _submitit_slurm(launcher: Any, jobs: Sequence[Job]) -> Errors:
    from submitit.slurm.slurm import SlurmInfoWatcher, SlurmJob

    # Asked of Slurm within the minute; by default a killed job is noticed up to ten minutes late.
    SlurmJob.watcher = SlurmInfoWatcher(delay_s=60)
    return _submitit(launcher, jobs)


def _submitit_local(launcher: Any, jobs: Sequence[Job]) -> Errors:
    """Launch as many jobs at a time as there are cores for; submitit would start them all."""
    from joblib import cpu_count

    size = max(1, cpu_count() // (launcher.params["cpus_per_task"] or 1))
    errors: Errors = {}
    for start in range(0, len(jobs), size):
        errors |= _submitit(launcher, jobs[start : start + size])
    return errors


@contextlib.contextmanager
def _all_waited_for() -> Iterator[None]:
    """Have submitit return a job's error in place of raising it, which leaves the other jobs."""
    from submitit import Job as SubmititJob
    from submitit.core.utils import FailedJobError, UncompletedJobError

    results = SubmititJob.results

    def settled(self: Any) -> list[Any]:
        try:
            return list(results(self))
        except UncompletedJobError:
            return [RuntimeError(KILLED)]
        except FailedJobError as error:
            return [error]

    with mock.patch.object(SubmititJob, "results", settled):
        yield


_LAUNCH: dict[str, Callable[[Any, Sequence[Job]], Errors]] = {
    "JoblibLauncher": _joblib,
    "LocalLauncher": _submitit_local,
    "SlurmLauncher": _submitit_slurm,
}
