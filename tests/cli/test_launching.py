"""Launching: an outcome for every job, whatever its process came to; cores are not shared."""

import dataclasses
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import joblib
import pytest
import yaml
from hydra.core.utils import JobReturn, JobStatus
from hydra_plugins.hydra_joblib_launcher.config import JobLibLauncherConf
from hydra_plugins.hydra_submitit_launcher.config import LocalQueueConf, SlurmQueueConf
from omegaconf import OmegaConf

from fairbench.cli.launching import KILLED, GuardedLauncher, processes
from fairbench.cli.outcome import Outcome
from fairbench.cli.progress import JobProgress
from tests.harness import CONF, ROOT

JOBLIB = {"_target_": "hydra_plugins.hydra_joblib_launcher.joblib_launcher.JoblibLauncher"}
LOCAL = {"_target_": "submitit.LocalLauncher", "cpus_per_task": 2}


def config(tmp_path, launcher):
    return OmegaConf.create(
        {"n_jobs": 1, "hydra": {"sweep": {"dir": str(tmp_path)}, "launcher": launcher}}
    )


class JoblibLauncher:
    """Runs each job, named by its deed, in a worker process, as Hydra's launcher does."""

    def __init__(self, folder):
        self.folder, self.joblib, self.launched = folder, {"n_jobs": 2}, []

    def launch(self, job_overrides, initial_job_idx):
        def work(folder, deed):
            JobProgress(folder)
            if deed == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            Outcome("finished", deed).write(folder)

        numbered = list(enumerate(job_overrides, start=initial_job_idx))
        self.launched += [number for number, _ in numbered]
        joblib.Parallel(**self.joblib, batch_size=1)(
            joblib.delayed(work)(self.folder / str(number), deed) for number, (deed,) in numbered
        )
        return [JobReturn(status=JobStatus.COMPLETED) for _ in numbered]


def test_killed_worker_loses_its_own_job_only(tmp_path):
    deeds = ["finish", "finish", "die", "finish", "finish", "finish"]
    launcher = JoblibLauncher(tmp_path)
    GuardedLauncher(launcher, config(tmp_path, JOBLIB)).launch([[deed] for deed in deeds], 3)
    outcomes = [Outcome.read(tmp_path / str(number)) for number in range(3, 9)]
    expected = ["failed" if deed == "die" else "finished" for deed in deeds]
    assert [outcome.status for outcome in outcomes] == expected
    assert (outcomes[2].message, outcomes[2].overrides) == (KILLED, ("die",))


def test_worker_ends_with_the_process_that_launched_it(tmp_path):
    worker = "from fairbench.cli import launching as l; import time; l.end_with_launcher(); "
    worker += f"open({str(tmp_path / 'worker')!r}, 'w').close(); time.sleep(60)"
    parent = (
        "import os, subprocess, sys; os.environ['FAIRBENCH_LAUNCHER'] = str(os.getpid()); "
        f"print(subprocess.Popen([sys.executable, '-c', {worker!r}]).pid, flush=True); "
        "sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    )
    with process:
        pid = int(process.stdout.readline())
        while not (tmp_path / "worker").exists():
            time.sleep(0.05)
        process.kill()
    deadline = time.monotonic() + 30
    while alive(pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def alive(pid):
    """Say whether a process runs; one that ended and that nobody waited for does not."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def test_error_outside_a_job_is_its_outcome(tmp_path):
    failed = JobReturn(status=JobStatus.FAILED, _return_value=ValueError("no such\ninterpolation"))
    launcher = SimpleNamespace(launch=lambda overrides, first: [failed])
    GuardedLauncher(launcher, config(tmp_path, LOCAL)).launch([["a=1"]], 0)
    assert Outcome.read(tmp_path / "0").message == "interpolation"


@pytest.mark.parametrize(
    ("n_jobs", "launcher", "expected"),
    [
        (4, JOBLIB, 1),
        (4, LOCAL, 2),
        (1, LOCAL, 1),
        (4, {"_target_": "hydra._internal.core_plugins.basic_launcher.BasicLauncher"}, 4),
    ],
)
def test_processes_of_a_job(n_jobs, launcher, expected):
    assert processes(n_jobs, OmegaConf.create(launcher)) == expected


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("joblib", JobLibLauncherConf),
        ("submitit_local", LocalQueueConf),
        ("submitit_slurm", SlurmQueueConf),
    ],
)
def test_launcher_files_name_options_that_exist(name, schema):
    """Ours stand in place of the plugins' own entries, so nothing else would check them."""
    options = yaml.safe_load((CONF / "hydra" / "launcher" / f"{name}.yaml").read_text())
    fields = {field.name: field.default for field in dataclasses.fields(schema)}
    assert options["_target_"] == fields["_target_"]
    assert options.keys() <= fields.keys()
    if name != "joblib":  # it has defaults of its own
        assert options.keys() == fields.keys()
