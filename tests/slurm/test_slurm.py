"""A sweep through a real Slurm: as the local one to the last bit, a killed task included."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pandas as pd
import pytest

from tests.harness import cells_of, command, metrics_of, ran, run_py

HERE = Path(__file__).parent
SWEEP = (
    "-m", "method=ensemble,binomial_nll", "dataset.n_samples=1000", "split.repeats=10",
    "learner.rounds=150", "figures=false", "tracking=none",
)  # fmt: skip
# Two tasks: the cells of the ensemble, and those of the other run.
SLURM = (
    "hydra/launcher=submitit_slurm", "hydra.launcher.mem_gb=null",
    "hydra.launcher.cells_per_task=10",
)  # fmt: skip
SYSTEM = os.pathsep.join([os.environ["PATH"], "/usr/sbin"])


@pytest.fixture
def slurm(tmp_path):
    """Return the environment in which sweeps find a Slurm of one node."""
    programs = ("munged", "slurmctld", "slurmd", "srun")
    missing = [name for name in programs if not shutil.which(name, path=SYSTEM)]
    if missing:
        pytest.skip(f"no {', '.join(missing)}: make system-packages")
    if os.geteuid() != 0:
        pytest.skip("bringing up Slurm needs root")
    base = tmp_path / "slurm"
    subprocess.run([HERE / "one_node.sh", "up", base, "2"], check=True)
    path = os.pathsep.join([str(HERE / "shim"), os.environ["PATH"]])
    yield os.environ | {"SLURM_CONF": str(base / "slurm.conf"), "PATH": path}
    subprocess.run([HERE / "one_node.sh", "down", base], check=True)


def kill_first_task(cwd, environment):
    """Kill the task of the ensemble's cells, with at least one of them finished."""
    started = time.monotonic()
    while len(cells_of(cwd)) < 11:  # the other task has ten
        assert time.monotonic() < started + 120
        time.sleep(0.01)
    (submitted,) = cwd.glob("results/sweeps/*/.submitit/*_0/*_submitted.pkl")
    step = f"{submitted.parent.name}.0"
    subprocess.run(["scancel", "--signal=KILL", step], env=environment, check=True)


# What sbatch 22 says on a machine where it was installed and never told of a cluster.
UNCONFIGURED = """#!/bin/sh
echo 'sbatch: error: fetch_config: DNS SRV lookup failed' >&2
echo 'sbatch: fatal: Could not establish a configuration source' >&2
exit 1
"""


@pytest.mark.thorough
def test_a_slurm_that_was_never_set_up_is_said_to_be_in_a_sentence(tmp_path):
    for name in ("sbatch", "srun", "sinfo"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(UNCONFIGURED)
        program.chmod(0o755)
    path = os.pathsep.join([str(program.parent), os.environ["PATH"]])
    words = ("method=baseline,binomial_nll", "dataset.n_samples=200", "split.repeats=1")
    done = run_py("-m", *words, "tracking=none", SLURM[0], cwd=tmp_path, PATH=path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert line.startswith("error: Slurm did not take the jobs of this sweep (sbatch: fatal: Could")
    assert line.endswith("or use this machine's cores with hydra/launcher=joblib")
    handed_over = [path for path in tmp_path.glob("results/sweeps/**/*") if path.is_file()]
    assert not handed_over


@pytest.mark.thorough
def test_killed_task_is_run_again_and_all_equals_the_local_sweep(slurm, tmp_path):
    local, cluster = tmp_path / "local", tmp_path / "cluster"
    local.mkdir()
    cluster.mkdir()
    # A package of this name where the sweep is started does not hide the checkout's.
    (cluster / "datasets.py").write_text("raise RuntimeError('not this one')")
    process = subprocess.Popen(
        command(*SWEEP, *SLURM), cwd=cluster, env=slurm, text=True, stdout=subprocess.PIPE
    )
    kill_first_task(cluster, slurm)
    ran(*SWEEP, cwd=local)

    printed, _ = process.communicate(timeout=240)
    assert process.returncode == 1
    assert "1 runs finished, 0 skipped, 1 failed" in printed
    assert "method=ensemble its process was killed" in " ".join(printed.split())
    kept = cells_of(cluster)
    assert 11 <= len(kept) < 20

    assert printed.splitlines()[-1].startswith("the same command runs what failed again")
    again = subprocess.run(
        command(*SWEEP, *SLURM), cwd=cluster, env=slurm, capture_output=True, text=True
    )
    assert again.returncode == 0, again.stderr
    assert "2 runs finished, 0 skipped, 0 failed" in again.stdout
    assert kept.items() <= cells_of(cluster).items()
    expected, result = metrics_of(local), metrics_of(cluster)
    assert expected.keys() == result.keys()
    for run, metrics in expected.items():
        pd.testing.assert_frame_equal(metrics, result[run], check_exact=True)
